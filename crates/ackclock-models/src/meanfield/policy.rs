//! Drop policies of a queue besides overflow: none, RED, CoDel or PIE.

use serde::Deserialize;

use super::codel::{Codel, State as CodelState};
use super::pie::{Pie, State as PieState};
use crate::red::{Red, EXPECTED};

/// Drop policy of a queue, besides overflow.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Policy {
    /// No drops besides overflow.
    Droptail {},
    /// Random early detection.
    Red(Red),
    /// Controlled delay.
    Codel(Codel),
    /// Proportional integral controller enhanced.
    Pie(Pie),
}

impl Policy {
    /// True if what it drops waited before: word of it comes earlier, by the time that others wait.
    pub fn drops_at_the_head(&self) -> bool {
        matches!(self, Policy::Codel(_))
    }

    /// Reject parameters that make no sense.
    ///
    /// # Errors
    /// Thresholds out of order, times that are not positive.
    pub fn check(&self) -> Result<(), String> {
        match self {
            Policy::Red(red) if !red.is_sound() => {
                Err(format!("policy: found {red:?}; expected {EXPECTED}"))
            }
            Policy::Codel(codel) if !codel.is_sound() => {
                Err(format!("policy: found {codel:?}; expected positive times"))
            }
            Policy::Pie(pie) if !pie.is_sound() => Err(format!(
                "policy: found {pie:?}; expected positive times and weights from 0 to 32"
            )),
            _ => Ok(()),
        }
    }
}

/// A policy at work.
#[derive(Clone, Copy, Debug)]
pub enum Dropper {
    /// Never.
    Droptail,
    /// With its average.
    Red(Red, f64),
    /// With its state.
    Codel(CodelState),
    /// With its state.
    Pie(PieState),
}

impl Dropper {
    /// Initial state.
    pub fn new(policy: Policy) -> Dropper {
        match policy {
            Policy::Droptail {} => Dropper::Droptail,
            Policy::Red(red) => Dropper::Red(red, 0.0),
            Policy::Codel(codel) => Dropper::Codel(CodelState::new(codel)),
            Policy::Pie(pie) => Dropper::Pie(PieState::new(pie)),
        }
    }
}
