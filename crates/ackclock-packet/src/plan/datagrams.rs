//! UDP sources.

use ackclock_traffic::Duration;
use ackclock_units::Time;
use serde::Deserialize;

use super::{EndsPlan, PathPlan};

/// A UDP source; its group has neither a congestion control nor a TCP.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DatagramPlan {
    /// Index into the plan's groups.
    pub group: u32,
    /// When the first datagram is sent.
    #[serde(rename = "start_s")]
    pub start: Time,
    /// No datagram is sent at or after this; `null` is never.
    #[serde(rename = "stop_s", deserialize_with = "Option::deserialize")]
    pub stop: Option<Time>,
    /// Priority of the packets, both ways, 0 to 15.
    pub priority: u8,
    /// The hosts between which the engine finds the ways; `null`: they are the two paths that follow.
    #[serde(deserialize_with = "Option::deserialize")]
    pub ends: Option<EndsPlan>,
    /// Way of the datagrams.
    pub forward: PathPlan,
    /// Way of the echoes.
    pub reverse: PathPlan,
    /// Payload of a datagram.
    pub payload_bytes: u32,
    /// IPv4 and UDP headers (28).
    pub header_bytes: u32,
    /// When datagrams leave.
    pub source: DatagramSource,
}

/// When datagrams leave.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum DatagramSource {
    /// At a constant rate.
    Constant {
        /// Datagrams in a second.
        per_s: f64,
    },
    /// In bursts at a constant rate, at equal distances.
    Bursts {
        /// Datagrams in a second, during a burst.
        per_s: f64,
        /// Datagrams of a burst.
        packets: u64,
        /// From the start of a burst to that of the next.
        #[serde(rename = "every_s")]
        every: Time,
    },
    /// At a constant rate for a while, then not at all for a while.
    OnOff {
        /// Datagrams in a second while it is on.
        per_s: f64,
        /// How long it is on.
        on: Duration,
        /// How long it is off.
        off: Duration,
    },
    /// At a rate that follows the measured delay; the receiver answers each datagram.
    Adaptive {
        /// The queueing delay to hold.
        #[serde(rename = "target_s")]
        target: Time,
        /// The lowest rate, in datagrams a second.
        least_per_s: f64,
        /// The highest.
        most_per_s: f64,
    },
}

/// Highest rate: one datagram a picosecond.
const MOST_PER_S: f64 = 1e12;

impl DatagramPlan {
    /// Bytes of a datagram with its headers.
    pub fn packet_bytes(&self) -> u64 {
        u64::from(self.payload_bytes) + u64::from(self.header_bytes)
    }
}

impl DatagramSource {
    /// What cannot be sent, if it cannot.
    pub(crate) fn fault(&self) -> Option<String> {
        match *self {
            DatagramSource::Constant { per_s } => rate_fault("per_s", per_s),
            DatagramSource::Bursts {
                per_s,
                packets,
                every,
            } => rate_fault("per_s", per_s).or_else(|| burst_fault(per_s, packets, every)),
            DatagramSource::OnOff { per_s, on, off } => rate_fault("per_s", per_s)
                .or_else(|| on.check().err().map(|error| format!("on: {error}")))
                .or_else(|| off.check().err().map(|error| format!("off: {error}")))
                .or_else(|| (on.mean_s() <= 0.0).then(|| "on takes no time".to_owned())),
            DatagramSource::Adaptive {
                target,
                least_per_s,
                most_per_s,
            } => rate_fault("least_per_s", least_per_s)
                .or_else(|| rate_fault("most_per_s", most_per_s))
                .or_else(|| (target == Time::ZERO).then(|| "target_s must be positive".to_owned()))
                .or_else(|| {
                    (least_per_s > most_per_s).then(|| {
                        format!("least_per_s is {least_per_s}, more than most_per_s, {most_per_s}")
                    })
                }),
        }
    }
}

fn rate_fault(name: &str, per_s: f64) -> Option<String> {
    let possible = per_s > 0.0 && per_s <= MOST_PER_S;
    (!possible).then(|| format!("{name} is {per_s}; expected more than 0, at most {MOST_PER_S}"))
}

fn burst_fault(per_s: f64, packets: u64, every: Time) -> Option<String> {
    if packets == 0 {
        return Some("packets must be at least 1".to_owned());
    }
    let takes_s = packets as f64 / per_s;
    (takes_s > every.seconds()).then(|| {
        let every_s = every.seconds();
        format!("a burst takes {takes_s} s, but the next one follows after every_s = {every_s}")
    })
}
