//! Vegas: between alpha and beta packets of the flow in the queue.
//!
//! L. S. Brakmo, L. L. Peterson, IEEE Journal on Selected Areas in Communications 13(8), 1995, with the estimate of
//! Linux 6.1: W (R − T) / T. Below alpha one packet more in a round trip, above beta one less. A loss halves the
//! window. Slow start ends when more than gamma packets wait.

use serde::Deserialize;
use serde_json::Value;

use super::{Growth, Moment};

#[derive(Deserialize)]
struct Vegas {
    alpha: f64,
    beta: f64,
    gamma: f64,
}

/// Make the law.
///
/// # Errors
/// A parameter is missing.
pub fn make(parameters: &Value) -> Result<Box<dyn Growth>, serde_json::Error> {
    Ok(Box::new(Vegas::deserialize(parameters)?))
}

/// Linux's estimate of what waits, packets.
fn waiting_p(at: &Moment) -> f64 {
    at.window_p * (at.rtt_s - at.base_rtt_s) / at.base_rtt_s
}

impl Growth for Vegas {
    fn increase(&self, at: &Moment) -> f64 {
        let waiting_p = waiting_p(at);
        if waiting_p < self.alpha {
            1.0
        } else if waiting_p > self.beta {
            -1.0
        } else {
            0.0
        }
    }

    fn share_removed(&self, _at: &Moment) -> f64 {
        0.5
    }

    fn lose(&mut self, _at: &Moment, _left_p: f64) {}

    fn leaves_slow_start(&self, at: &Moment) -> bool {
        waiting_p(at) > self.gamma
    }
}
