//! Links that follow a trace.

use ackclock_core::Time;
use serde::Deserialize;

/// Periodic trace of a link.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TracePlan {
    /// The name of the file that it was read from.
    pub file: String,
    /// The SHA-256 of its content.
    pub sha256: String,
    /// After how long it begins anew.
    #[serde(rename = "period_s")]
    pub period: Time,
    /// Course of the trace.
    pub course: CoursePlan,
}

/// Course of a trace.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum CoursePlan {
    /// Each has a rate from its time on, until the next.
    Rates {
        /// Start of each step in order, the first 0.
        at_s: Vec<Time>,
        /// Rate of each step.
        rate_bps: Vec<f64>,
    },
    /// At each of these times so many bytes may leave, headers of frames not counted.
    Opportunities {
        /// Times of opportunities in order, up to the period.
        at_ms: Vec<u64>,
        /// Bytes of IP packets for each.
        bytes: u32,
    },
}

impl TracePlan {
    /// Return the name of a quantity that must be positive and is not.
    pub(crate) fn fault(&self) -> Option<&'static str> {
        if self.period == Time::ZERO {
            return Some("trace.period_s");
        }
        match &self.course {
            CoursePlan::Rates { at_s, rate_bps } => {
                let is_ordered = at_s.windows(2).all(|pair| pair[0] < pair[1]);
                let begins = at_s.first() == Some(&Time::ZERO);
                let ends = at_s.last().is_some_and(|&last| last < self.period);
                let are_rates = rate_bps.iter().all(|&rate| rate >= 0.0 && rate.is_finite());
                let flows = rate_bps.iter().any(|&rate| rate > 0.0);
                let is_sound = begins && ends && is_ordered && are_rates && flows;
                (!is_sound || at_s.len() != rate_bps.len()).then_some("trace.course")
            }
            CoursePlan::Opportunities { at_ms, bytes } => {
                let is_ordered = at_ms.windows(2).all(|pair| pair[0] <= pair[1]);
                let last = at_ms.last().map(|&ms| Time::from_milliseconds(ms));
                let ends = last.is_some_and(|last| last <= self.period);
                (!is_ordered || !ends || *bytes == 0).then_some("trace.course")
            }
        }
    }
}
