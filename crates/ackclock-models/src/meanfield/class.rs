//! Flows of one control and one base RTT: in the limit or a finite number.

use super::cohorts::{Cohorts, Exposure};
use super::field::{Field, Resolution};
use super::law::Law;
use super::particles::Particles;
use super::plan::{ClassPlan, Plan};
use super::record::{take_integer, Flows};
use super::undetected_loss::UndetectedLosses;

/// The flows of a class.
#[derive(Clone, Debug)]
enum Population {
    Field(Field),
    Particles(Particles),
}

/// A class in a run.
#[derive(Clone, Debug)]
pub struct Class {
    flows: Vec<u32>,
    base_rtt_s: f64,
    /// A wait that ends slow start.
    leave_delay_s: Option<f64>,
    undetected: UndetectedLosses,
    /// Share of the windows that is acknowledged: without undetected losses.
    clocked: f64,
    population: Population,
    /// Round-trip time at present.
    pub rtt_s: f64,
    rounds: f64,
    mean_p: f64,
    delivered_p: Vec<f64>,
    measured_p: Vec<f64>,
    hit: Vec<usize>,
    turn: usize,
    fraction: f64,
}

/// Smallest window that delay makes leave slow start, packets (`HyStart`, `hystart_low_window` of Linux).
const MIN_HYSTART_WINDOW_P: f64 = 16.0;

/// Losses that flows detect in a step.
#[derive(Clone, Copy, Debug)]
pub struct DetectedLoss {
    /// Chance of a reduction for a window of one packet to the power `loss_rate_exponent`.
    pub hazard: f64,
    /// Chance of a reduction per packet, for flows in slow start.
    pub by_lot: f64,
    /// γ.
    pub loss_rate_exponent: f64,
    /// True if a flow reduces at most every round trip.
    pub is_limited: bool,
    /// True if windows rest for a round trip.
    pub rests: bool,
}

impl Class {
    /// A class just after its first loss; `number` sets its random numbers apart.
    pub fn new(
        plan: &Plan,
        class: &ClassPlan,
        seed: u64,
        number: u64,
        resolution: Resolution,
    ) -> Class {
        let law = Law::of(class.control);
        let count = class.flows.len();
        let cohorts = beginning(plan, class, &law);
        let population = if plan.particles {
            Population::Particles(Particles::new(law, cohorts, seed, number))
        } else {
            Population::Field(Field::new(law, class.base_rtt_s, cohorts, resolution))
        };
        let apart = if plan.particles { count } else { 1 };
        Class {
            flows: class.flows.clone(),
            base_rtt_s: class.base_rtt_s,
            leave_delay_s: class
                .opening
                .as_ref()
                .and_then(|opening| opening.leave_delay_s),
            undetected: UndetectedLosses::default(),
            clocked: 1.0,
            population,
            rtt_s: class.base_rtt_s,
            rounds: 0.0,
            mean_p: 0.0,
            delivered_p: vec![0.0; apart],
            measured_p: vec![0.0; apart],
            hit: Vec::new(),
            turn: 0,
            fraction: 0.0,
        }
    }

    /// The cohorts, or the particles.
    pub fn cohorts(&self) -> &Cohorts {
        match &self.population {
            Population::Field(field) => field.cohorts(),
            Population::Particles(particles) => particles.cohorts(),
        }
    }

    /// Windows at a time, behind a queue that takes so long; returns the rate of all flows.
    pub fn grow(&mut self, now_s: f64, queue_s: f64) -> f64 {
        self.rtt_s = self.base_rtt_s + queue_s;
        self.mean_p = match &mut self.population {
            Population::Field(field) => field.grow(now_s, self.rounds),
            Population::Particles(particles) => particles.grow(now_s, self.rounds),
        };
        if self.leave_delay_s.is_some_and(|most_s| queue_s >= most_s) {
            self.leave_slow_start(now_s);
        }
        let windows_p = self.flows.len() as f64 * self.mean_p;
        let acknowledged_p = (windows_p - self.undetected.left_p()).max(0.0);
        self.clocked = if windows_p > 0.0 {
            acknowledged_p / windows_p
        } else {
            1.0
        };
        acknowledged_p / self.rtt_s
    }

    fn leave_slow_start(&mut self, now_s: f64) {
        match &mut self.population {
            Population::Field(field) => {
                field.leave_slow_start(now_s, self.rounds, MIN_HYSTART_WINDOW_P);
            }
            Population::Particles(flows) => {
                flows.leave_slow_start(now_s, self.rounds, MIN_HYSTART_WINDOW_P);
            }
        }
    }

    /// Sum over the flows of their rates to a power.
    pub fn weight(&self, power: f64) -> f64 {
        self.windows_to(power) * self.flows.len() as f64 / self.rtt_s.powf(power)
    }

    /// Mean over the flows of their windows to a power; those that have not begun do not count.
    fn windows_to(&self, power: f64) -> f64 {
        if power == 1.0 {
            return self.mean_p;
        }
        let cohorts = self.cohorts();
        let of_one = |(mass, window): (&f64, &f64)| mass * window.powf(power);
        cohorts
            .mass
            .iter()
            .zip(&cohorts.window)
            .filter(|(_, window)| **window > 0.0)
            .map(of_one)
            .sum()
    }

    /// Record that packets of the class are lost.
    pub fn lost(&mut self, now_s: f64, lost_p: f64) {
        self.undetected.push(now_s, lost_p);
    }

    /// Lost packets that the class detects in this step, per flow; detection takes a
    /// round trip, without the queueing delay if they were dropped at the queue's head.
    pub fn detect(&mut self, now_s: f64, at_head: bool) -> f64 {
        let ago_s = if at_head { self.base_rtt_s } else { self.rtt_s };
        self.undetected.detect(now_s - ago_s) / self.flows.len() as f64
    }

    /// Share of a flow's `losses` in this step per window^γ, and per packet.
    pub fn hazards(&self, losses: f64, loss_rate_exponent: f64) -> (f64, f64) {
        let mean = self.windows_to(loss_rate_exponent);
        if mean > 0.0 && self.mean_p > 0.0 {
            (losses / mean, losses / self.mean_p)
        } else {
            (0.0, 0.0)
        }
    }

    /// Reduce the flows that a loss hits; calls back with the number of each.
    pub fn lose(&mut self, now_s: f64, heard: DetectedLoss, mut reduced: impl FnMut(u32)) {
        let loss = Exposure {
            now_s,
            rounds: self.rounds,
            hazard: heard.hazard,
            by_lot: heard.by_lot,
            loss_rate_exponent: heard.loss_rate_exponent,
            rest_s: if heard.rests { self.rtt_s } else { 0.0 },
            until_s: if heard.is_limited {
                now_s - self.rtt_s
            } else {
                f64::INFINITY
            },
        };
        match &mut self.population {
            Population::Particles(particles) => {
                particles.lose(&loss, &mut self.hit);
                self.hit.iter().for_each(|i| reduced(self.flows[*i]));
            }
            Population::Field(field) => {
                let share = field.lose(&loss);
                for _ in 0..take_integer(&mut self.fraction, share * self.flows.len() as f64) {
                    reduced(self.flows[self.turn]);
                    self.turn = (self.turn + 1) % self.flows.len();
                }
            }
        }
    }

    /// The end of a step: round trips go by, and so many packets get through for each that was sent.
    pub fn pass(&mut self, step_s: f64, through: f64, measured: bool) {
        let sent = step_s / self.rtt_s;
        self.rounds += sent;
        let single = [self.mean_p];
        let windows = match &self.population {
            Population::Field(_) => &single[..],
            Population::Particles(particles) => &particles.cohorts().window,
        };
        for ((window, delivered_p), measured_p) in windows
            .iter()
            .zip(&mut self.delivered_p)
            .zip(&mut self.measured_p)
        {
            let got = window * self.clocked * sent * through;
            *delivered_p += got;
            *measured_p += if measured { got } else { 0.0 };
        }
    }

    /// The window and the packets got through of each flow, in the order of their numbers.
    ///
    /// In the limit flow i of n is the i-th n-th part of the class, least windows first: its window is the mean
    /// over that part, so that the mean over the flows is the class's, and their distribution is the class's.
    pub fn samples(&self) -> impl Iterator<Item = (u32, f64, f64)> + '_ {
        let windows = match &self.population {
            Population::Field(field) => parts(field.cohorts(), self.flows.len()),
            Population::Particles(particles) => particles.cohorts().window.clone(),
        };
        let delivered = self.delivered_p.iter().cycle();
        self.flows
            .iter()
            .zip(windows)
            .zip(delivered)
            .map(|((flow, window), got)| (*flow, window, *got))
    }

    /// Add the flows' totals, times a factor.
    pub fn totals(&self, to: &mut Flows, factor: f64) {
        let counted = self.delivered_p.iter().zip(&self.measured_p).cycle();
        for (flow, (delivered_p, measured_p)) in self.flows.iter().zip(counted) {
            to.flow.push(*flow);
            to.delivered_p.push(delivered_p * factor);
            to.measured_p.push(measured_p * factor);
        }
    }
}

/// All flows alike just after a loss, or at the beginning of slow start, and then flow by flow for particles.
fn beginning(plan: &Plan, class: &ClassPlan, law: &Law) -> Cohorts {
    let mut cohorts = Cohorts::default();
    let start = law.from_loss_at(plan.first_loss_p(class));
    let starts = class.opening.as_ref().map_or(1, |one| one.starts_s.len());
    let count = if plan.particles {
        class.flows.len()
    } else {
        starts
    };
    for i in 0..count {
        let mass = 1.0 / count as f64;
        match &class.opening {
            Some(opening) => {
                let begin_s = opening.starts_s[i * starts / count];
                cohorts.open(law, mass, begin_s, opening.window_p);
            }
            None => cohorts.push(law, mass, 0.0, 0.0, start),
        }
    }
    cohorts
}

/// Mean windows of the n parts of equal mass, in ascending order.
fn parts(cohorts: &Cohorts, count: usize) -> Vec<f64> {
    let mut order: Vec<usize> = (0..cohorts.len()).collect();
    order.sort_unstable_by(|a, b| cohorts.window[*a].total_cmp(&cohorts.window[*b]));
    let share = cohorts.total() / count as f64;
    let (mut means, mut mass, mut sum) = (Vec::with_capacity(count), 0.0, 0.0);
    for i in order {
        let mut left = cohorts.mass[i];
        while mass + left >= share && means.len() + 1 < count {
            let taken = share - mass;
            means.push((sum + taken * cohorts.window[i]) / share);
            left -= taken;
            (mass, sum) = (0.0, 0.0);
        }
        mass += left;
        sum += left * cohorts.window[i];
    }
    means.push(if mass > 0.0 {
        sum / mass
    } else {
        means.last().copied().unwrap_or(0.0)
    });
    means
}
