//! The bottleneck: a fluid queue that drops what does not fit, or what a policy picks.
//!
//! Belhareth 2014, equations 3.3 and 3.5, as a balance: in each step what arrives is sent on, queued or
//! dropped, exactly. As printed, (3.3) keeps an empty queue from ever growing and (3.5) tests q > B; here the
//! queue grows when more arrives than leaves, and drops when it is full.

use super::policy::{Dropper, Policy};

/// Fate of the packets of one step.
#[derive(Clone, Copy, Debug, Default)]
pub struct Step {
    /// Packets that came.
    pub arrived_p: f64,
    /// Packets that were sent on.
    pub departed_p: f64,
    /// Packets that were dropped.
    pub dropped_p: f64,
}

impl Step {
    /// Counts another step as well.
    pub fn add(&mut self, other: Step) {
        self.arrived_p += other.arrived_p;
        self.departed_p += other.departed_p;
        self.dropped_p += other.dropped_p;
    }

    /// Probability that a packet that came was dropped, k.
    pub fn loss_probability(&self) -> f64 {
        if self.dropped_p > 0.0 {
            (self.dropped_p / self.arrived_p).min(1.0)
        } else {
            0.0
        }
    }
}

/// The queue of the bottleneck.
#[derive(Clone, Debug)]
pub struct Queue {
    rate_pps: f64,
    buffer_p: f64,
    dropper: Dropper,
    backlog_p: f64,
    now_s: f64,
}

impl Queue {
    /// An empty queue.
    pub fn new(rate_pps: f64, buffer_p: f64, policy: Policy) -> Queue {
        Queue {
            rate_pps,
            buffer_p,
            dropper: Dropper::new(policy),
            backlog_p: 0.0,
            now_s: 0.0,
        }
    }

    /// Packets that wait.
    pub fn backlog_p(&self) -> f64 {
        self.backlog_p
    }

    /// Queueing delay of an arrival now.
    pub fn delay_s(&self) -> f64 {
        self.backlog_p / self.rate_pps
    }

    /// Let packets arrive at a rate for a time.
    pub fn step(&mut self, arriving_pps: f64, step_s: f64) -> Step {
        let arrived_p = arriving_pps * step_s;
        let early_p = arrived_p * self.early(arrived_p, step_s);
        let head_p = self.at_the_head();
        self.now_s += step_s;
        let there_p = self.backlog_p - head_p + arrived_p - early_p;
        let departed_p = (self.rate_pps * step_s).min(there_p);
        let left_p = there_p - departed_p;
        self.backlog_p = left_p.min(self.buffer_p);
        Step {
            arrived_p,
            departed_p,
            dropped_p: head_p + early_p + (left_p - self.backlog_p),
        }
    }

    /// The share of arrivals that RED or PIE drop; their state moves on.
    fn early(&mut self, arrived_p: f64, step_s: f64) -> f64 {
        let (delay_s, backlog_p) = (self.delay_s(), self.backlog_p);
        match &mut self.dropper {
            Dropper::Red(red, average_p) => {
                let sendable_p = self.rate_pps * step_s;
                *average_p = red.averaged(*average_p, backlog_p, arrived_p, sendable_p);
                red.dropped(*average_p)
            }
            Dropper::Pie(pie) => pie.dropped(self.now_s, step_s, delay_s, backlog_p),
            Dropper::Droptail | Dropper::Codel(_) => 0.0,
        }
    }

    /// The packets that CoDel drops of what waits.
    fn at_the_head(&mut self) -> f64 {
        let delay_s = self.delay_s();
        match &mut self.dropper {
            Dropper::Codel(codel) => codel
                .drops_p(self.now_s, delay_s, self.backlog_p)
                .min(self.backlog_p),
            _ => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::red::Red;

    const RED: Red = Red {
        min_p: 10.0,
        max_p: 30.0,
        probability: 0.2,
        weight: 0.5,
        gentle: true,
    };

    #[test]
    fn only_the_excess_is_dropped() {
        let mut queue = Queue::new(100.0, 5.0, Policy::Droptail {});
        let step = queue.step(130.0, 0.1);
        assert_eq!(
            (step.departed_p, step.dropped_p, queue.backlog_p()),
            (10.0, 0.0, 3.0)
        );
        let step = queue.step(130.0, 0.1);
        assert_eq!(
            (step.departed_p, step.dropped_p, queue.backlog_p()),
            (10.0, 1.0, 5.0)
        );
        assert!((step.loss_probability() - 1.0 / 13.0).abs() < 1e-12);
        assert_eq!(queue.step(0.0, 1.0).departed_p, 5.0);
    }

    /// Halfway between the thresholds p is 0.1; a share of 2p / (1 + p) is dropped, and the average moves on.
    #[test]
    fn red_drops_by_its_average() {
        let mut queue = Queue::new(1000.0, 1e9, Policy::Red(RED));
        (queue.backlog_p, queue.dropper) = (20.0, Dropper::Red(RED, 20.0));
        let step = queue.step(1100.0, 0.01);
        assert!((step.dropped_p - 11.0 * 0.2 / 1.1).abs() < 1e-12);
        assert!((queue.backlog_p - 19.0).abs() < 1e-12);
        (queue.backlog_p, queue.dropper) = (20.0, Dropper::Red(RED, 0.0));
        queue.step(1000.0, 0.001);
        assert!(matches!(queue.dropper, Dropper::Red(_, 10.0)));
    }
}
