//! CUBIC: a cubic function of the time since the last loss, and never less than Reno's place.
//!
//! RFC 9438. With Δ the time since the loss, W_max the window aimed at and W_0 the window it left,
//!
//! ```text
//!   W_c(Δ) = c (Δ − K)³ + W_max        K = ∛((W_max − W_0) / c)        (figures 1 and 2)
//!   a = W_c(Δ + R) − W, within 0 … W/2                                 (section 4.2)
//!   a ≥ W_est(Δ + R) − W                                               (section 4.3, Reno-friendly region)
//! ```
//!
//! Deviation from Kumar et al. 2010: they bound the growth by S_max packets/s, as the code of 2008 did; the
//! RFC, and this file, by half the window in a round trip. HyStart: the increase of the delay only.

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::{Growth, Moment};

/// HyStart: how far the RTT may rise above the smallest, as a share of it, and within these bounds (s).
/// S. Ha, I. Rhee, Computer Networks 55(9), 2011; Linux's bounds.
const HYSTART_SHARE: f64 = 0.125;
const HYSTART_BOUNDS_S: (f64, f64) = (0.004, 0.016);
/// Largest target relative to the window (section 4.2).
const MAX_TARGET: f64 = 1.5;

/// The switches are those of the algorithm spec.
#[derive(Clone, Copy, Deserialize)]
#[allow(clippy::struct_excessive_bools)]
struct Parameters {
    /// Steepness, packets/s³.
    c: f64,
    /// Share kept at a loss.
    beta: f64,
    fast_convergence: bool,
    reno_friendly: bool,
    reno_catch_up: bool,
    #[serde(rename = "slow_start", deserialize_with = "is_hystart")]
    hystart: bool,
}

/// The engine rejects other slow starts than `HyStart` and the standard one.
fn is_hystart<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Ok(String::deserialize(deserializer)? == "hystart")
}

/// The growth since a loss, or since the end of slow start.
#[derive(Clone, Copy)]
struct Epoch {
    start_s: f64,
    /// W_max.
    origin_p: f64,
    /// K.
    rise_s: f64,
    /// W_est and when it was computed.
    estimate_p: f64,
    estimated_s: f64,
    /// Window before the loss.
    prior_p: f64,
}

struct Cubic {
    parameters: Parameters,
    epoch: Epoch,
    /// W_max of the loss before.
    last_origin_p: f64,
}

/// Make the law.
///
/// # Errors
/// A parameter is missing.
pub fn make(parameters: &Value) -> Result<Box<dyn Growth>, serde_json::Error> {
    let parameters = Parameters::deserialize(parameters)?;
    Ok(Box::new(Cubic {
        parameters,
        epoch: Epoch::new(0.0, 1.0, 1.0, 1.0, parameters.c),
        last_origin_p: 0.0,
    }))
}

impl Epoch {
    fn new(start_s: f64, origin_p: f64, window_p: f64, prior_p: f64, c: f64) -> Epoch {
        Epoch {
            start_s,
            origin_p,
            rise_s: ((origin_p - window_p).max(0.0) / c).cbrt(),
            estimate_p: window_p,
            estimated_s: start_s,
            prior_p,
        }
    }

    /// W_c (equation 1).
    fn w_cubic(&self, at_s: f64, c: f64) -> f64 {
        let beyond_s = at_s - self.start_s - self.rise_s;
        c * beyond_s * beyond_s * beyond_s + self.origin_p
    }
}

impl Cubic {
    /// α_cubic: what W_est grows by in a round trip (section 4.3).
    fn estimate_growth(&self) -> f64 {
        let Parameters { beta, .. } = self.parameters;
        if self.parameters.reno_catch_up && self.epoch.estimate_p >= self.epoch.prior_p {
            1.0
        } else {
            3.0 * (1.0 - beta) / (1.0 + beta)
        }
    }

    /// W_est at an instant.
    fn w_est(&self, at: &Moment) -> f64 {
        let round_trips = (at.now_s - self.epoch.estimated_s) / at.rtt_s;
        self.epoch.estimate_p + self.estimate_growth() * round_trips
    }
}

impl Growth for Cubic {
    fn increase(&self, at: &Moment) -> f64 {
        let target_p = self
            .epoch
            .w_cubic(at.now_s + at.rtt_s, self.parameters.c)
            .min(MAX_TARGET * at.window_p);
        let cubic = (target_p - at.window_p).max(0.0);
        if self.parameters.reno_friendly {
            cubic.max(self.w_est(at) + self.estimate_growth() - at.window_p)
        } else {
            cubic
        }
    }

    fn share_removed(&self, _at: &Moment) -> f64 {
        1.0 - self.parameters.beta
    }

    fn lose(&mut self, at: &Moment, left_p: f64) {
        let Parameters { beta, c, .. } = self.parameters;
        let lower = self.parameters.fast_convergence && at.window_p < self.last_origin_p;
        let origin_p = if lower {
            at.window_p * (1.0 + beta) / 2.0
        } else {
            at.window_p
        };
        self.last_origin_p = origin_p;
        self.epoch = Epoch::new(at.now_s, origin_p, left_p, at.window_p, c);
    }

    fn avoid(&mut self, at: &Moment) {
        let window_p = at.window_p;
        self.epoch = Epoch::new(at.now_s, window_p, window_p, window_p, self.parameters.c);
    }

    fn observe(&mut self, at: &Moment, _step_s: f64) {
        self.epoch.estimate_p = self.w_est(at);
        self.epoch.estimated_s = at.now_s;
    }

    fn leaves_slow_start(&self, at: &Moment) -> bool {
        let (low_s, high_s) = HYSTART_BOUNDS_S;
        let rise_s = (HYSTART_SHARE * at.base_rtt_s).clamp(low_s, high_s);
        self.parameters.hystart && at.rtt_s >= at.base_rtt_s + rise_s
    }
}
