//! H-TCP: the longer no loss has happened, the faster the window grows.
//!
//! R. Shorten, D. Leith: H-TCP, PFLDnet 2004, and draft-leith-tcp-htcp-06. With Δ the time since the last loss,
//!
//! ```text
//!   a(Δ) = 2 b                                              Δ ≤ 1 s
//!        = 2 b (1 + 10 (Δ − 1 s) + ((Δ − 1 s) / 2)²)        beyond
//!   b    = 1 − R_min / R_max, within 0.2 … 0.5
//! ```
//!
//! b is 0.5 where the throughput at a loss is more than a fifth away from that at the loss before. With RTT
//! scaling a is multiplied by T / 100 ms, within 0.1 … 2. R_max is the largest RTT since the last loss.

use serde::Deserialize;
use serde_json::Value;

use super::{Growth, Moment};

/// Time after a loss in which it is Reno (Δ_L).
const SLOW_S: f64 = 1.0;
/// The bounds of b.
const SHARES: (f64, f64) = (0.2, 0.5);
/// A change of the throughput by this share of it is a new situation.
const CHANGE: f64 = 0.2;
/// RTT scaling: the RTT at which it is 1, and its bounds.
const SCALE_S: f64 = 0.1;
const SCALES: (f64, f64) = (0.1, 2.0);

#[derive(Clone, Copy, Deserialize)]
struct Parameters {
    adaptive_backoff: bool,
    bandwidth_switch: bool,
    rtt_scaling: bool,
}

struct Htcp {
    parameters: Parameters,
    last_loss_s: f64,
    max_rtt_s: f64,
    /// b at the last loss.
    share: f64,
    /// Throughput at the last loss, packets/s; 0 before the first.
    throughput_p_s: f64,
}

/// Make the law.
///
/// # Errors
/// A parameter is missing.
pub fn make(parameters: &Value) -> Result<Box<dyn Growth>, serde_json::Error> {
    Ok(Box::new(Htcp {
        parameters: Parameters::deserialize(parameters)?,
        last_loss_s: 0.0,
        max_rtt_s: 0.0,
        share: SHARES.1,
        throughput_p_s: 0.0,
    }))
}

/// α(Δ) of the draft, section 2.2.
fn alpha(since_loss_s: f64) -> f64 {
    let beyond_s = (since_loss_s - SLOW_S).max(0.0);
    1.0 + 10.0 * beyond_s + (beyond_s / 2.0).powi(2)
}

impl Htcp {
    fn scale(&self, at: &Moment) -> f64 {
        if self.parameters.rtt_scaling {
            (at.base_rtt_s / SCALE_S).clamp(SCALES.0, SCALES.1)
        } else {
            1.0
        }
    }

    /// True if the throughput is far from that at the last loss.
    fn has_changed(&self, at: &Moment) -> bool {
        let throughput_p_s = at.window_p / at.rtt_s;
        (throughput_p_s - self.throughput_p_s).abs() > CHANGE * self.throughput_p_s
    }
}

impl Growth for Htcp {
    fn increase(&self, at: &Moment) -> f64 {
        2.0 * self.share * alpha(at.now_s - self.last_loss_s) * self.scale(at)
    }

    fn share_removed(&self, at: &Moment) -> f64 {
        let switch = self.parameters.bandwidth_switch && self.has_changed(at);
        if switch || !self.parameters.adaptive_backoff {
            return SHARES.1;
        }
        (1.0 - at.base_rtt_s / self.max_rtt_s.max(at.rtt_s)).clamp(SHARES.0, SHARES.1)
    }

    fn lose(&mut self, at: &Moment, _left_p: f64) {
        self.share = self.share_removed(at);
        self.throughput_p_s = at.window_p / at.rtt_s;
        self.last_loss_s = at.now_s;
        self.max_rtt_s = 0.0;
    }

    fn avoid(&mut self, at: &Moment) {
        self.last_loss_s = at.now_s;
    }

    fn observe(&mut self, at: &Moment, _step_s: f64) {
        self.max_rtt_s = self.max_rtt_s.max(at.rtt_s);
    }
}
