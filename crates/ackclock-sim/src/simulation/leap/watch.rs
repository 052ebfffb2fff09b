//! Observations of a bottleneck over a round trip before a leap, and its queue with larger windows.
//!
//! Within a round trip packets are not spread evenly: flows send in batches, and each in its own part of it. ACKs keep
//! that pattern from one round trip to the next. With windows larger by a factor each part of it carries more packets by
//! that factor: the queue that follows is the recursion q ← max(0, q + factor · arrivals − departures) over the parts.

use std::collections::VecDeque;

use ackclock_core::Time;

/// The bottleneck at a moment.
#[derive(Clone, Copy, Debug)]
pub struct Observation {
    /// The engine's clock.
    pub time: Time,
    /// Packets that have arrived so far.
    pub arrived: u64,
    /// Packets in the queue, and the most since the one before.
    pub backlog_p: f64,
    pub peak_p: f64,
    /// Sum of the windows.
    pub window_p: f64,
}

/// The observations of the last round trip.
#[derive(Debug, Default)]
pub struct Watch {
    observations: VecDeque<Observation>,
}

/// The peak and the mean of a queue over a round trip, in packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Queue {
    pub peak_p: f64,
    pub mean_p: f64,
}

/// A round trip of a bottleneck.
#[derive(Clone, Debug)]
pub struct Pattern {
    /// Packets that arrived and that could have left, in each part.
    parts: Vec<(f64, f64)>,
    span_s: f64,
    /// The round trip as a share of that.
    share: f64,
    first_p: f64,
    measured: Queue,
    replayed: Queue,
    /// Packets by which the sum of the windows grew.
    pub growth_p: f64,
}

impl Watch {
    /// Forget all, since something has happened that a leap must not hide.
    pub fn clear(&mut self) {
        self.observations.clear();
    }

    /// Add an observation; those are kept that are needed to cover `round_trip`.
    pub fn add(&mut self, observation: Observation, round_trip: Time) {
        self.observations.push_back(observation);
        while self.observations.len() > 2
            && observation.time.since(self.observations[1].time) >= round_trip
        {
            self.observations.pop_front();
        }
    }

    /// The pattern of the last round trip on a link of `rate` packets per second, if all of it was observed.
    pub fn pattern(&self, round_trip: Time, rate: f64) -> Option<Pattern> {
        let (first, last) = (self.observations.front()?, self.observations.back()?);
        if last.time.since(first.time) < round_trip {
            return None;
        }
        let neighbours = self
            .observations
            .iter()
            .zip(self.observations.iter().skip(1));
        let parts = neighbours.map(|(one, next)| {
            let could_leave = next.time.since(one.time).seconds() * rate;
            ((next.arrived - one.arrived) as f64, could_leave)
        });
        let backlogs = || {
            self.observations
                .iter()
                .map(|observation| observation.backlog_p)
        };
        let measured = Queue {
            peak_p: self
                .observations
                .iter()
                .skip(1)
                .fold(first.backlog_p, |peak_p, observation| {
                    peak_p.max(observation.peak_p)
                }),
            mean_p: backlogs().sum::<f64>() / self.observations.len() as f64,
        };
        let mut pattern = Pattern {
            parts: parts.collect(),
            span_s: last.time.since(first.time).seconds(),
            share: round_trip.as_f64() / last.time.since(first.time).as_f64(),
            first_p: first.backlog_p,
            measured,
            replayed: measured,
            growth_p: (last.window_p - first.window_p).max(0.0),
        };
        pattern.replayed = pattern.replay(1.0);
        Some(pattern)
    }
}

impl Pattern {
    /// The queue with windows larger by `factor`.
    pub fn queue(&self, factor: f64) -> Queue {
        let replayed = self.replay(factor);
        Queue {
            peak_p: self.measured.peak_p + replayed.peak_p - self.replayed.peak_p,
            mean_p: self.measured.mean_p + replayed.mean_p - self.replayed.mean_p,
        }
    }

    /// Packets that arrived per second.
    pub fn rate(&self) -> f64 {
        let arrived: f64 = self.parts.iter().map(|(arrived, _)| arrived).sum();
        arrived / self.span_s
    }

    /// Packets that could have left and did not arrive.
    pub fn idle_p(&self) -> f64 {
        let idle = self
            .parts
            .iter()
            .map(|(arrived, could_leave)| could_leave - arrived);
        idle.sum::<f64>().max(0.0)
    }

    /// The queue as it was.
    pub fn measured(&self) -> Queue {
        self.measured
    }

    fn replay(&self, factor: f64) -> Queue {
        let factor = 1.0 + (factor - 1.0) * self.share;
        let (mut backlog_p, mut peak_p, mut sum_p) = (self.first_p, self.first_p, 0.0_f64);
        for (arrived, could_leave) in &self.parts {
            backlog_p = (backlog_p + factor * arrived - could_leave).max(0.0);
            peak_p = peak_p.max(backlog_p);
            sum_p += backlog_p;
        }
        Queue {
            peak_p,
            mean_p: sum_p / self.parts.len() as f64,
        }
    }
}

#[cfg(test)]
#[allow(clippy::float_cmp)] // whole packets
mod tests {
    use super::*;

    const ROUND_TRIP: Time = Time::from_milliseconds(40);

    /// Observations every 10 ms, at a link of 1000 packets per second, with so many arrivals before each.
    fn watch(arrivals: &[u64], backlogs: &[f64]) -> Watch {
        let mut watch = Watch::default();
        let mut arrived = 0;
        for (index, (arrivals, &backlog_p)) in arrivals.iter().zip(backlogs).enumerate() {
            arrived += arrivals;
            let time = Time::from_milliseconds(10 * index as u64);
            watch.add(
                Observation {
                    time,
                    arrived,
                    backlog_p,
                    peak_p: backlog_p,
                    window_p: 40.0,
                },
                ROUND_TRIP,
            );
        }
        watch
    }

    #[test]
    fn a_pattern_takes_a_round_trip() {
        let watch = watch(&[0, 10, 10, 10], &[5.0; 4]);
        assert!(watch.pattern(ROUND_TRIP, 1000.0).is_none());
    }

    #[test]
    fn a_saturated_queue_grows_with_the_windows() {
        let pattern = watch(&[0, 10, 10, 10, 10], &[5.0; 5]);
        let pattern = pattern.pattern(ROUND_TRIP, 1000.0).expect("a round trip");
        assert_eq!(pattern.queue(1.5).peak_p, 25.0);
    }

    #[test]
    fn a_dense_part_fills_the_queue_while_the_link_idles_otherwise() {
        let pattern = watch(&[0, 10, 0, 0, 0], &[0.0; 5]);
        let pattern = pattern.pattern(ROUND_TRIP, 1000.0).expect("a round trip");
        assert_eq!(pattern.queue(1.4).peak_p, 4.0);
        assert_eq!(pattern.queue(1.4).mean_p, 1.0);
    }
}
