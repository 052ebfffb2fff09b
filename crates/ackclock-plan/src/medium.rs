//! What becomes of packets behind a link's transmitter.

use ackclock_core::Time;
use serde::Deserialize;

/// What a link's medium does to packets that have left the transmitter. Each is drawn from a stream of its own.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MediumPlan {
    /// The propagation delay varies.
    #[serde(deserialize_with = "Option::deserialize")]
    pub jitter: Option<JitterPlan>,
    /// Chance of a packet to arrive without the propagation delay, before others.
    pub reorder: f64,
    /// Chance of a packet to arrive twice.
    pub duplicate: f64,
    /// Chance of a packet to be damaged: the end that it comes to discards it for its checksum.
    pub corrupt: f64,
}

impl MediumPlan {
    /// One that does nothing.
    pub const PLAIN: MediumPlan = MediumPlan {
        jitter: None,
        reorder: 0.0,
        duplicate: 0.0,
        corrupt: 0.0,
    };
}

/// How a propagation delay varies: each packet's is drawn, and is not below zero.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JitterPlan {
    /// Half the width of a uniform distribution, the standard deviation of a normal one.
    #[serde(rename = "deviation_s")]
    pub deviation: Time,
    /// Of the differences from the link's delay.
    pub distribution: Distribution,
    /// Whether no packet overtakes another.
    pub in_order: bool,
}

/// A distribution of differences, as `tc` names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Distribution {
    /// Evenly from −1 to 1 deviation.
    Uniform,
    /// Gaussian.
    Normal,
}
