//! PIE's control law, which `pie` has once and `fq_pie` once per queue.
//!
//! Every `tupdate` the drop probability p changes by α (delay − target) + β (delay − previous delay)
//! (RFC 8033 section 4.2), scaled down while p is small. A packet that arrives is dropped with probability
//! p, spread out over the packets by the derandomisation of section 5.4.

use ackclock_core::pie::{ControlLaw, DECAY, FREE_PACKETS, HARMLESS, TOO_EARLY};
use ackclock_core::random::unit_interval;
use ackclock_core::Time;
use rand_core::RngCore;
use serde::Deserialize;

use crate::packet::Packet;
use crate::queue::periodic::{is_period, Updates};
use crate::queue::require;

/// Settings of the control law: parameters in the specifications of both.
#[derive(Clone, Copy, Debug, Deserialize)]
#[allow(clippy::struct_excessive_bools)]
pub struct Settings {
    /// Target delay.
    #[serde(rename = "target_s")]
    pub target: Time,
    /// Period of the updates.
    #[serde(rename = "tupdate_s")]
    pub tupdate: Time,
    /// Weight of the delay's deviation from the target, in sixteenths of a hertz as `tc` has it.
    pub alpha: f64,
    /// Weight of the delay's change since the last update, in sixteenths of a hertz.
    pub beta: f64,
    /// True if p is smaller for small packets.
    pub bytemode: bool,
    /// True if the delay is estimated from the backlog and the departure rate, not from timestamps.
    pub dq_rate_estimator: bool,
    /// Time without drops when congestion begins.
    #[serde(rename = "max_burst_s")]
    pub max_burst: Time,
    /// True if drops are kept from being too close together or too late.
    pub derandomize: bool,
    /// A full packet's wire bytes.
    pub mtu_bytes: u32,
}

impl Settings {
    /// Reject values out of range.
    pub fn check(&self) -> Result<(), serde_json::Error> {
        let is_weight = |weight: f64| (0.0..=32.0).contains(&weight);
        require(is_period(self.tupdate), "tupdate_s must be greater than 0")?;
        require(self.target > Time::ZERO, "target_s must be greater than 0")?;
        require(is_weight(self.alpha), "alpha must be from 0 to 32")?;
        require(is_weight(self.beta), "beta must be from 0 to 32")?;
        require(self.mtu_bytes > 0, "mtu_bytes must be at least 1")
    }

    /// The updates from time 0 on. They have been going on before, since a queue is older than the flows through it: in
    /// which phase they are then decides what a single flow loses at the end of its slow start.
    pub fn updates(&self) -> Updates {
        let passed = RUNNING_FOR.picoseconds() % self.tupdate.picoseconds();
        let first = self.tupdate - Time::from_picoseconds(passed);
        Updates::new(first, self.tupdate)
    }
}

/// Time for which p has been updated at time 0. A guest of the engine `linux` sets its queues up two seconds before;
/// the first update comes half a second and a tick of its clock later.
const RUNNING_FOR: Time = Time::from_milliseconds(2000 - 510);
/// At this sum the packet is dropped without a draw (section 5.4).
const OVERDUE: f64 = 8.5;
/// Bytes over which a departure rate is measured, and the backlog that it takes (section 5.2).
const RATE_BYTES: u64 = 1 << 14;
/// Weight of a new measurement of the departure rate.
const RATE_WEIGHT: f64 = 1.0 / 8.0;

/// State of the control law.
#[derive(Clone, Debug)]
pub struct Control {
    settings: Settings,
    probability: f64,
    /// Sum of p over the packets since the last drop.
    accumulated: f64,
    /// Delay of the last packet that left, or by the last update's estimate.
    delay_s: f64,
    /// Delay at the update before.
    delay_old_s: f64,
    /// Remaining burst allowance.
    burst: Time,
    last_departure: Option<Time>,
    departures: Departures,
}

impl Control {
    /// A queue that has seen no packet.
    pub fn new(settings: Settings) -> Control {
        Control {
            settings,
            probability: 0.0,
            accumulated: 0.0,
            delay_s: 0.0,
            delay_old_s: 0.0,
            burst: settings.max_burst,
            last_departure: None,
            departures: Departures::default(),
        }
    }

    /// The drop probability.
    pub fn probability(&self) -> f64 {
        self.probability
    }

    /// The same at another probability, for tests.
    #[cfg(test)]
    #[must_use]
    pub fn with_probability(mut self, probability: f64) -> Control {
        self.probability = probability;
        self
    }

    /// Decide whether to drop or mark a packet that finds `backlog` bytes queued.
    pub fn hits(&mut self, packet: &Packet, backlog: u64, random: &mut impl RngCore) -> bool {
        let is_harmless =
            self.delay_s < self.settings.target.seconds() / 2.0 && self.probability < HARMLESS;
        if self.burst > Time::ZERO || is_harmless || backlog < self.free_bytes() {
            return false;
        }
        let probability = self.probability_for(packet.wire_bytes);
        if !self.settings.derandomize {
            return unit_interval(random.next_u64()) < probability;
        }
        self.accumulated = if probability > 0.0 {
            self.accumulated + probability
        } else {
            0.0
        };
        self.accumulated >= OVERDUE
            || self.accumulated >= TOO_EARLY && unit_interval(random.next_u64()) < probability
    }

    /// Reset the sum of p after a drop or mark.
    pub fn on_hit(&mut self) {
        self.accumulated = 0.0;
    }

    /// A packet leaves; so many bytes stay.
    pub fn on_departure(&mut self, packet: &Packet, now: Time, backlog: u64) {
        if self.settings.dq_rate_estimator {
            let measured = self
                .departures
                .on_departure(packet.wire_bytes, now, backlog);
            self.use_burst(measured);
            return;
        }
        self.delay_s = if backlog > 0 {
            now.since(packet.enqueued).seconds()
        } else {
            0.0
        };
        let since = self.last_departure.map(|last| now.since(last));
        self.last_departure = Some(now);
        self.use_burst(since.unwrap_or_default());
    }

    /// The update that is due every `tupdate`. Returns whether anything changed.
    pub fn update(&mut self, backlog: u64) -> bool {
        let before = (self.probability, self.delay_s, self.delay_old_s, self.burst);
        if self.settings.dq_rate_estimator {
            self.delay_old_s = self.delay_s;
            self.delay_s = self.departures.delay_s(backlog);
        }
        let (delay_s, delay_old_s) = (self.delay_s, self.delay_old_s);
        let exceeds = self.probability + self.step() > 1.0;
        self.probability = (self.probability + self.step()).clamp(0.0, 1.0);
        if delay_s == 0.0 && delay_old_s == 0.0 && backlog == 0 && !exceeds {
            self.probability *= DECAY;
        }
        if self.is_quiet() {
            self.begin_anew();
        }
        if !self.settings.dq_rate_estimator {
            self.delay_old_s = delay_s;
        }
        before != (self.probability, self.delay_s, self.delay_old_s, self.burst)
    }

    /// Change of p at an update.
    fn step(&self) -> f64 {
        let settings = &self.settings;
        let law = ControlLaw {
            target_s: settings.target.seconds(),
            alpha: settings.alpha,
            beta: settings.beta,
        };
        law.step(self.probability, self.delay_s, self.delay_old_s)
    }

    /// No congestion: a short delay at two updates, and nothing to drop.
    fn is_quiet(&self) -> bool {
        let half_s = self.settings.target.seconds() / 2.0;
        self.probability == 0.0
            && self.delay_s < half_s
            && self.delay_old_s < half_s
            && (!self.settings.dq_rate_estimator || self.departures.rate > 0.0)
    }

    fn begin_anew(&mut self) {
        self.burst = self.settings.max_burst;
        self.accumulated = 0.0;
        self.last_departure = None;
        self.departures = Departures::default();
    }

    fn use_burst(&mut self, time: Time) {
        self.burst = self.burst.since(time);
    }

    fn free_bytes(&self) -> u64 {
        u64::from(FREE_PACKETS) * u64::from(self.settings.mtu_bytes)
    }

    fn probability_for(&self, wire_bytes: u32) -> f64 {
        if self.settings.bytemode && wire_bytes <= self.settings.mtu_bytes {
            self.probability * f64::from(wire_bytes) / f64::from(self.settings.mtu_bytes)
        } else {
            self.probability
        }
    }
}

/// Measurement of the departure rate over stretches in which the queue is long (section 5.2).
#[derive(Clone, Copy, Debug, Default)]
struct Departures {
    /// Start of the measurement, and the bytes counted since.
    running: Option<(Time, u64)>,
    /// Average rate in bytes per second; 0 before the first measurement.
    rate: f64,
}

impl Departures {
    /// A packet leaves. Returns the time over which a measurement was completed with it, or zero.
    fn on_departure(&mut self, wire_bytes: u32, now: Time, backlog: u64) -> Time {
        if self.running.is_none() && backlog >= RATE_BYTES {
            self.running = Some((now, 0));
        }
        let Some((since, bytes)) = self.running else {
            return Time::ZERO;
        };
        let bytes = bytes + u64::from(wire_bytes);
        let taken = now.since(since);
        self.running = Some((since, bytes));
        if bytes < RATE_BYTES || taken == Time::ZERO {
            return Time::ZERO;
        }
        self.include(bytes as f64 / taken.seconds());
        self.running = (backlog >= RATE_BYTES).then_some((now, 0));
        taken
    }

    fn include(&mut self, rate: f64) {
        self.rate = if self.rate == 0.0 {
            rate
        } else {
            self.rate + RATE_WEIGHT * (rate - self.rate)
        };
    }

    /// Little's law; no delay before the first measurement.
    fn delay_s(&self, backlog: u64) -> f64 {
        if self.rate > 0.0 {
            backlog as f64 / self.rate
        } else {
            0.0
        }
    }
}
