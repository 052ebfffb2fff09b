//! Impairments behind a link's transmitter.

use ackclock_core::Time;
use serde::Deserialize;

/// Impairments of packets behind a link's transmitter. Each has a separate stream of random numbers.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImpairmentPlan {
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

impl ImpairmentPlan {
    /// One that does nothing.
    pub const PLAIN: ImpairmentPlan = ImpairmentPlan {
        jitter: None,
        reorder: 0.0,
        duplicate: 0.0,
        corrupt: 0.0,
    };
}

/// Jitter of the propagation delay: drawn for each packet, not below zero.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JitterPlan {
    /// Half the width of a uniform distribution, the standard deviation of a normal one.
    #[serde(rename = "deviation_s")]
    pub deviation: Time,
    /// Distribution of the deviation from the link's delay.
    pub distribution: Distribution,
    /// True if no packet overtakes another.
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
