//! The ends of a flow over UDP: a schedule of datagrams, real-time media, or QUIC.

use ackclock_core::{Rate, Time};
use ackclock_traffic::DatagramSource;
use serde::Deserialize;

use crate::error::Error;
use crate::quic::{QuicPlan, StackPlan};
use crate::tcp::{CongestionPlan, EcnMode};

/// The source of a flow over UDP.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum SourcePlan {
    /// Real-time media.
    Media(MediaPlan),
    /// A QUIC connection.
    Quic(QuicPlan),
    /// Packets of programs, which come from outside the simulation: `ackclock shell`.
    External,
    /// A connection of a user's stack.
    Stack(StackPlan),
    /// Datagrams by a schedule.
    #[serde(untagged)]
    Scheduled(DatagramSource),
}

/// A video over RTP whose rate follows a congestion control algorithm.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MediaPlan {
    /// The congestion control algorithm, one of those for real-time media.
    pub congestion: CongestionPlan,
    /// Lowest rate of IP packets.
    #[serde(rename = "min_rate_bps")]
    pub min_rate: Rate,
    /// Rate at the start.
    #[serde(rename = "start_rate_bps")]
    pub start_rate: Rate,
    /// Highest rate.
    #[serde(rename = "max_rate_bps")]
    pub max_rate: Rate,
    /// Frames in a second.
    pub frames_per_s: f64,
    /// Scale of the Laplace distribution of frame sizes, relative to their mean (RFC 8593).
    pub size_variation: f64,
    /// After a change of its rate the encoder does not react for so long (RFC 8593).
    #[serde(rename = "reaction_s")]
    pub reaction: Time,
    /// Interval of the receiver's reports.
    #[serde(rename = "feedback_interval_s")]
    pub feedback_interval: Time,
    /// Events at which the receiver reports.
    pub feedback: FeedbackTrigger,
    /// True if the sender ceases by the rules of RFC 8083, and the receiver reports when nothing arrives as well.
    pub circuit_breaker: bool,
    /// ECN bits of the packets: `off`, `classic` or `l4s`.
    pub ecn: EcnMode,
}

/// Events at which the receiver of a video reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FeedbackTrigger {
    /// The interval.
    Interval,
    /// The last packet of a frame, and each 16th; at the latest the interval.
    Frame,
}

impl SourcePlan {
    /// The schedule of the datagrams, for an engine without other sources; `index` is the flow's in the plan.
    ///
    /// # Errors
    /// The source is real-time media or QUIC.
    pub fn schedule(&self, index: usize) -> Result<&DatagramSource, Error> {
        match self {
            SourcePlan::Scheduled(source) => Ok(source),
            SourcePlan::Media(_) => Err(Error::Datagrams {
                index,
                reason: "real-time media has no schedule".to_owned(),
            }),
            SourcePlan::Quic(_) | SourcePlan::Stack(_) => Err(Error::Datagrams {
                index,
                reason: "QUIC has no schedule".to_owned(),
            }),
            SourcePlan::External => Err(Error::Datagrams {
                index,
                reason: "programs' packets have no schedule".to_owned(),
            }),
        }
    }

    /// Jitter of the start; none if it is not drawn.
    pub fn start_jitter(&self) -> Option<Time> {
        match self {
            SourcePlan::Quic(quic) => Some(quic.start_jitter),
            SourcePlan::Stack(stack) => Some(stack.start_jitter),
            SourcePlan::Media(_) | SourcePlan::Scheduled(_) | SourcePlan::External => None,
        }
    }

    /// Bytes to transfer; none if there is no end.
    pub fn size_bytes(&self) -> Option<u64> {
        match self {
            SourcePlan::Quic(quic) => quic.size_bytes,
            SourcePlan::Stack(stack) => stack.size_bytes,
            SourcePlan::Media(_) | SourcePlan::Scheduled(_) | SourcePlan::External => None,
        }
    }

    /// Return the reason why nothing can be sent, if there is one.
    pub fn fault(&self) -> Option<String> {
        match self {
            SourcePlan::Scheduled(source) => source.fault(),
            SourcePlan::Media(media) => media.fault(),
            SourcePlan::Quic(quic) => quic.fault(),
            SourcePlan::External => None,
            SourcePlan::Stack(stack) => stack.fault(),
        }
    }
}

impl MediaPlan {
    fn fault(&self) -> Option<String> {
        let rates = [self.min_rate, self.start_rate, self.max_rate].map(Rate::bits_per_second);
        let positive = rates.iter().all(|&rate| rate > 0.0 && rate.is_finite());
        if !positive || rates[0] > rates[1] || rates[1] > rates[2] {
            return Some(format!(
                "min_rate_bps, start_rate_bps, max_rate_bps are {rates:?}; expected them to rise from above 0"
            ));
        }
        if !(self.frames_per_s > 0.0 && self.frames_per_s <= 1e6) {
            let found = self.frames_per_s;
            return Some(format!(
                "frames_per_s is {found}; expected more than 0, at most 1e6"
            ));
        }
        if !(self.size_variation >= 0.0 && self.size_variation <= 1.0) {
            let found = self.size_variation;
            return Some(format!("size_variation is {found}; expected 0 to 1"));
        }
        (self.feedback_interval == Time::ZERO)
            .then(|| "feedback_interval_s must be positive".to_owned())
    }
}
