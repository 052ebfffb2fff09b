//! Queue disciplines as a fluid sees them: a size, and for RED a share of early drops.
//!
//! RED in a fluid is as in Misra, Gong and Towsley 2000: the average follows the backlog at each arrival.

use serde::Deserialize;

use super::checks::{positive, PlanError};
use crate::red::{Policy, EXPECTED};

/// A queue discipline, in packets.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Queue {
    /// B; what finds it full is dropped.
    pub limit_p: f64,
    /// Policy of drops while there is room.
    #[serde(flatten)]
    pub policy: Policy,
}

impl Queue {
    /// The average after `arrived_p` packets that found the backlog `backlog_p`, in a time for `sendable_p`.
    pub fn averaged(&self, average_p: f64, backlog_p: f64, arrived_p: f64, sendable_p: f64) -> f64 {
        match self.policy {
            Policy::Droptail {} => backlog_p,
            Policy::Red(red) => red.averaged(average_p, backlog_p, arrived_p, sendable_p),
        }
    }

    /// The share of arriving packets that is dropped though there is room.
    pub fn early(&self, average_p: f64) -> f64 {
        match self.policy {
            Policy::Droptail {} => 0.0,
            Policy::Red(red) => red.dropped(average_p),
        }
    }

    /// Reject numbers without meaning.
    ///
    /// # Errors
    /// The first such number.
    pub fn check(&self) -> Result<(), PlanError> {
        positive("limit_p", self.limit_p)?;
        match self.policy {
            Policy::Red(red) if !red.is_sound() => Err(PlanError::Value(format!(
                "queue: found {red:?}; expected {EXPECTED}"
            ))),
            _ => Ok(()),
        }
    }
}
