//! Random early detection: an average of the queue, and the verdict on each arriving packet.
//!
//! S. Floyd, V. Jacobson: Random Early Detection Gateways for Congestion Avoidance, IEEE/ACM ToN 1(4), 1993,
//! figure 2; the uniform spacing of drops is section 7, method 2, with one random number a drop.
//! `gentle` is the slope of ns-2 (Floyd 2000), and `wait` its rule that spaces drops by 1/probability packets and a
//! uniform number up to as many again (the ns Manual, class RED). The adaptation of the maximum probability is S. Floyd,
//! R. Gummadi, S. Shenker: Adaptive RED, 2001, section 4, and the same in Linux 6.1 (`adaptive`).

use ackclock_core::random::unit_interval;
use ackclock_core::Time;
use rand_core::RngCore;
use rand_pcg::Pcg64Mcg;
use serde::de::Error as _;

/// Largest increment of an adaptation (Floyd 2001 section 4.2: small, so that the average does not jump past the
/// target).
const MAX_ALPHA: f64 = 0.01;
/// Factor of a decrease by adaptation (Floyd 2001 section 4.2).
const BETA: f64 = 0.9;
/// Range in which the probability is adapted (Floyd 2001 section 4.1).
const ADAPTED: std::ops::RangeInclusive<f64> = 0.01..=0.5;
/// The target range of the average, as parts of the way from the lower to the upper threshold.
const TARGET: (f64, f64) = (0.4, 0.6);
/// Interval of adaptation in Linux and Floyd 2001.
pub const ADAPTATION_INTERVAL: Time = Time::from_milliseconds(500);

/// Settings of early detection. Amounts are in one unit of the caller's choice.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Average up to which no packet is dropped.
    pub min: f64,
    /// Average from which each packet is dropped (if gentle: from twice that).
    pub max: f64,
    /// Weight of the present queue in the average.
    pub weight: f64,
    /// Probability at the upper threshold.
    pub max_probability: f64,
    /// True if the probability rises to 1 between `max` and twice that; else it jumps.
    pub gentle: bool,
    /// True if drops are at least 1/probability packets apart, and at most twice that.
    pub wait: bool,
    /// Interval at which the maximum probability is adapted, if it is.
    pub adaptation: Option<Time>,
    /// Transmission time of an average packet: an idle time counts as so many arrivals.
    pub packet_time: Time,
}

impl Settings {
    /// Check that they make sense.
    pub fn check(&self) -> Result<(), serde_json::Error> {
        let wrong = if !(self.min > 0.0 && self.min < self.max && self.max.is_finite()) {
            format!(
                "thresholds must be 0 < min < max, found {} and {}",
                self.min, self.max
            )
        } else if !(self.weight > 0.0 && self.weight <= 1.0) {
            format!(
                "weight must be above 0 and at most 1, found {}",
                self.weight
            )
        } else if !(self.max_probability > 0.0 && self.max_probability <= 1.0) {
            let found = self.max_probability;
            format!("probability must be above 0 and at most 1, found {found}")
        } else if self.adaptation == Some(Time::ZERO) {
            "interval must be above 0".to_owned()
        } else {
            return Ok(());
        };
        Err(serde_json::Error::custom(wrong))
    }
}

/// Verdict on a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Queue it.
    Pass,
    /// Drop or mark it: picked at random.
    Early,
    /// Drop or mark it: the average is above the upper threshold.
    Forced,
}

/// Zone of the average.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Zone {
    Below,
    Between(f64),
    Above,
}

/// The state of early detection.
#[derive(Debug)]
pub struct Early {
    settings: Settings,
    average: f64,
    /// Time, past or future, from which on the link is idle; never while a packet is queued.
    idle_since: Time,
    /// Packets (or average packets' worth of bytes) since the last drop; none while the average is outside the
    /// thresholds.
    count: Option<f64>,
    /// The next drop comes when probability × count reaches this.
    draw: f64,
    next_adaptation: Time,
    random: Pcg64Mcg,
}

impl Early {
    /// State of an empty queue.
    pub fn new(settings: Settings, random: Pcg64Mcg) -> Result<Early, serde_json::Error> {
        settings.check()?;
        Ok(Early {
            settings,
            average: 0.0,
            idle_since: Time::ZERO,
            count: None,
            draw: 0.0,
            next_adaptation: settings.adaptation.unwrap_or(Time::NEVER),
            random,
        })
    }

    /// A packet arrives at a queue that holds `queued`. `share` is what it counts for: 1, or its length as a
    /// part of an average packet's. A `spared` one passes, and the count begins anew, as below the lower threshold.
    pub fn arrival(&mut self, queued: f64, share: f64, spared: bool, now: Time) -> Verdict {
        self.observe(queued, now);
        if spared {
            self.count = None;
            return Verdict::Pass;
        }
        self.detect(share)
    }

    /// Update the average for a packet that is exempt.
    pub fn observe(&mut self, queued: f64, now: Time) {
        self.adapt(now);
        if now < self.idle_since {
            self.average += self.settings.weight * (queued - self.average);
        } else {
            self.average = self.average_after_idling(now);
            self.idle_since = now; // Should the packet be dropped, the link stays idle.
        }
    }

    /// A packet was queued.
    pub fn entered(&mut self) {
        self.idle_since = Time::NEVER;
    }

    /// The queue has become empty; the link is busy until then.
    pub fn emptied(&mut self, busy_until: Time) {
        self.idle_since = busy_until;
    }

    /// The average.
    #[cfg(test)]
    pub fn average(&self) -> f64 {
        self.average
    }

    /// The probability at the upper threshold, adapted.
    #[cfg(test)]
    pub fn max_probability(&self) -> f64 {
        self.settings.max_probability
    }

    /// Average after as many arrivals at the empty queue as could have been sent (figure 2: m = f(time − `q_time`)).
    fn average_after_idling(&self, now: Time) -> f64 {
        let packets = now.since(self.idle_since).as_f64() / self.settings.packet_time.as_f64();
        self.average * (1.0 - self.settings.weight).powf(packets)
    }

    fn detect(&mut self, share: f64) -> Verdict {
        let probability = match self.zone() {
            Zone::Below => {
                self.count = None;
                return Verdict::Pass;
            }
            Zone::Above => {
                self.count = None;
                return Verdict::Forced;
            }
            Zone::Between(probability) => probability,
        };
        let Some(count) = self.count else {
            self.start_counting();
            return Verdict::Pass;
        };
        let count = count + share;
        if probability * count < self.draw {
            self.count = Some(count);
            return Verdict::Pass;
        }
        self.start_counting();
        Verdict::Early
    }

    /// Draw how far apart two drops are: uniform from 1 to 1/probability packets if that stays as it is; with `wait`
    /// 1/probability packets more.
    fn start_counting(&mut self) {
        self.count = Some(0.0);
        self.draw = f64::from(self.settings.wait) + unit_interval(self.random.next_u64());
    }

    /// Zone of the average; between the thresholds with `p_b` (figure 2).
    fn zone(&self) -> Zone {
        let Settings { min, max, .. } = self.settings;
        let top = self.settings.max_probability;
        if self.average < min {
            Zone::Below
        } else if self.average < max {
            Zone::Between(top * (self.average - min) / (max - min))
        } else if self.settings.gentle && self.average < 2.0 * max {
            Zone::Between(top + (1.0 - top) * (self.average - max) / max)
        } else {
            Zone::Above
        }
    }

    /// Apply the adaptations that are due.
    fn adapt(&mut self, now: Time) {
        let Some(interval) = self.settings.adaptation else {
            return;
        };
        while self.next_adaptation <= now {
            let idle = self.idle_since <= self.next_adaptation;
            let average = if idle {
                self.average_after_idling(self.next_adaptation)
            } else {
                self.average
            };
            self.settings.max_probability = self.adapted(average);
            self.next_adaptation += interval;
        }
    }

    /// The maximum probability for an average (Floyd 2001 section 4).
    fn adapted(&self, average: f64) -> f64 {
        let Settings { min, max, .. } = self.settings;
        let probability = self.settings.max_probability;
        let target = |part: f64| min + part * (max - min);
        if average > target(TARGET.1) && probability <= *ADAPTED.end() {
            probability + MAX_ALPHA.min(probability / 4.0)
        } else if average < target(TARGET.0) && probability >= *ADAPTED.start() {
            probability * BETA
        } else {
            probability
        }
    }
}

/// Largest result of [`weight_for_burst`].
pub const LARGEST_WEIGHT: f64 = 0.5;

/// The weight 1/2, 1/4, 1/8 … with which a burst of so many packets into an empty queue does not yet lift the
/// average over the lower threshold (Floyd and Jacobson 1993, section 6.1, as `tc` evaluates it). None if
/// even 2⁻³¹ is too large.
pub fn weight_for_burst(min_packets: f64, burst_packets: f64) -> Option<f64> {
    let excess = burst_packets + 1.0 - min_packets;
    if excess < 1.0 {
        return None;
    }
    (0..31)
        .map(|halvings| LARGEST_WEIGHT * 0.5_f64.powi(halvings))
        .find(|&weight| (1.0 - (1.0 - weight).powf(burst_packets)) / weight >= excess)
}

#[cfg(test)]
mod tests;
