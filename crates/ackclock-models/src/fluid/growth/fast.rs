//! FAST: towards the window at which alpha packets of the flow wait in the queue.
//!
//! D. X. Wei, C. Jin, S. H. Low, S. Hegde, IEEE/ACM Transactions on Networking 14(6), 2006. Equation 10,
//! W ← min(2 W, (1 − γ) W + γ (T W / R + α)), is a = min(W, γ (α − W (R − T) / R)); it may be negative. A loss halves
//! the window. Slow start ends when more than alpha packets wait.

use serde::Deserialize;
use serde_json::Value;

use super::{Growth, Moment};

#[derive(Deserialize)]
struct Fast {
    /// Packets to keep in the queue.
    alpha: f64,
    /// Share of the way to the target in a round trip.
    gamma: f64,
}

/// Make the law.
///
/// # Errors
/// A parameter is missing.
pub fn make(parameters: &Value) -> Result<Box<dyn Growth>, serde_json::Error> {
    Ok(Box::new(Fast::deserialize(parameters)?))
}

impl Growth for Fast {
    fn increase(&self, at: &Moment) -> f64 {
        at.window_p.min(self.gamma * (self.alpha - at.waiting_p()))
    }

    fn share_removed(&self, _at: &Moment) -> f64 {
        0.5
    }

    fn lose(&mut self, _at: &Moment, _left_p: f64) {}

    fn leaves_slow_start(&self, at: &Moment) -> bool {
        at.waiting_p() > self.alpha
    }
}
