//! Illinois: loss triggers reductions, delay sets the speed of growth and the size of reductions.
//!
//! S. Liu, T. Başar, R. Srikant: TCP-Illinois: a loss- and delay-based congestion control algorithm for high-speed
//! networks, Performance Evaluation 65(6–7), 2008, as Linux 6.1 behaves (`tcp_illinois.c`). With d the mean
//! queueing delay over an RTT, and `d_m` the largest one ever seen,
//!
//! ```text
//!   α(d) = 10                          d ≤ d_1 = 0.01 d_m
//!        = κ1 / (κ2 + d)               beyond, down to 0.3 at d_m      (segments more per round trip)
//!   β(d) = 1/8                         d ≤ d_2 = 0.1 d_m               (share given up at a loss)
//!        = κ3 + κ4 d                   between
//!        = 1/2                         d ≥ d_3 = 0.8 d_m
//! ```
//!
//! κ1 … κ4 make both continuous (section 3.2). Below a window of 15 segments α is 1 and β 1/2, Reno's. Once d
//! was above d_1, α goes back to 10 only after five RTTs in a row below.
//!
//! As in Linux:
//! - α counts in 1/128 and β in 1/64, so that the smallest α is 38/128; d is whole microseconds.
//! - α is 10 from the start; after a timeout α is 1 and β 1/2 until the next RTT has been measured.
//! - Both are computed when an ACK goes beyond what had been sent when they were computed last, but not in fast
//!   recovery.
//! - α counts the segments of an ACK that are cumulatively acknowledged. That is all of a window for the ACK that
//!   ends a recovery. What is left when the window grows is forgotten.
//! - RTTs above 3.4 s count as 3.4 s.

mod delay;

use ackclock_core::Time;
use serde::Deserialize;
use serde_json::Value;

use super::slow_start::SlowStart;
use super::window::{delegate_to_window, Window};
use super::{require, Ack, Controller, Loss, Made};

use delay::Delay;

/// α counts in parts of this.
const ALPHA_SCALE: u64 = 128;
/// Reno's α, for small windows.
const ALPHA_RENO: u64 = ALPHA_SCALE;
/// β counts in parts of this.
const BETA_SCALE: u64 = 64;
/// Reno's β.
const BETA_RENO: u64 = BETA_SCALE / 2;

/// Parameters as in the algorithm spec.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    /// α without a queue.
    alpha_max: f64,
    /// α with the longest queue.
    alpha_min: f64,
    /// β with a short queue.
    beta_min: f64,
    /// β with a long queue.
    beta_max: f64,
    /// Windows below this are Reno's.
    window_threshold: u32,
    /// RTTs without a queue before α is `alpha_max` again.
    theta: u32,
    slow_start: SlowStart,
}

/// The two functions of the delay, in whole parts.
#[derive(Clone, Copy, Debug)]
struct Curves {
    alpha_max: u64,
    alpha_min: u64,
    beta_max: u64,
    beta_min: u64,
}

/// An Illinois sender's window.
#[derive(Clone, Copy, Debug)]
struct Illinois {
    curves: Curves,
    window_threshold: u32,
    theta: u32,
    window: Window,
    delay: Delay,
    /// α in 1/128.
    alpha: u64,
    /// β in 1/64.
    beta: u64,
    /// True if there was a queue since α was last at its largest.
    had_queue: bool,
    /// RTTs without a queue since.
    without_queue: u32,
    /// The parameters are computed anew when this segment is acknowledged.
    round_end: Option<u64>,
}

/// Create the controller.
///
/// # Errors
/// Parameters other than the spec's, or limits in the wrong order.
pub fn make(parameters: &Value, initial_window: f64) -> Made {
    let parameters = Parameters::deserialize(parameters)?;
    let illinois = Illinois::new(Curves::new(&parameters)?, &parameters, initial_window);
    Ok(parameters.slow_start.control(illinois))
}

impl Curves {
    fn new(parameters: &Parameters) -> Result<Curves, serde_json::Error> {
        let parts = |value: f64, scale: u64| (value * scale as f64) as u64;
        let curves = Curves {
            alpha_max: parts(parameters.alpha_max, ALPHA_SCALE),
            alpha_min: parts(parameters.alpha_min, ALPHA_SCALE),
            beta_max: parts(parameters.beta_max, BETA_SCALE),
            beta_min: parts(parameters.beta_min, BETA_SCALE),
        };
        let alphas = 0 < curves.alpha_min && curves.alpha_min <= curves.alpha_max;
        let betas = curves.beta_min <= curves.beta_max && curves.beta_max < BETA_SCALE;
        require(
            alphas && parameters.alpha_max <= 1e6,
            "alpha_min must be at least 1/128 and at most alpha_max, and that at most a million",
        )?;
        require(
            betas && parameters.beta_min >= 0.0,
            "beta_min must be at least 0 and at most beta_max, and that below 1",
        )?;
        Ok(curves)
    }

    /// α beyond d_1, by how far `delay` and the `largest` one are beyond it: the hyperbola κ1 / (κ2 + d).
    fn alpha(&self, delay: u64, largest: u64) -> u64 {
        let steepness = self.alpha_max - self.alpha_min;
        largest * self.alpha_max / (largest + delay * steepness / self.alpha_min).max(1)
    }

    /// β: a straight line between d_2 and d_3.
    fn beta(&self, delay: u64, largest: u64) -> u64 {
        let (low, high) = (largest / 10, 8 * largest / 10);
        if delay <= low {
            return self.beta_min;
        }
        if delay >= high {
            return self.beta_max;
        }
        (self.beta_min * (high - delay) + self.beta_max * (delay - low)) / (high - low)
    }
}

impl Illinois {
    fn new(curves: Curves, parameters: &Parameters, initial_window: f64) -> Illinois {
        Illinois {
            curves,
            window_threshold: parameters.window_threshold,
            theta: parameters.theta,
            window: Window::new(initial_window),
            delay: Delay::default(),
            alpha: curves.alpha_max,
            beta: BETA_RENO,
            had_queue: false,
            without_queue: 0,
            round_end: None,
        }
    }

    /// Once per RTT: α and β from the mean delay.
    fn follow_rounds(&mut self, ack: &Ack) {
        if self.round_end.is_some_and(|end| ack.unacknowledged <= end) {
            return;
        }
        if self.round_end.is_some() {
            self.update_parameters();
        }
        self.begin_round(ack.next);
    }

    fn begin_round(&mut self, next: u64) {
        self.round_end = Some(next);
        self.delay.begin_round();
    }

    fn update_parameters(&mut self) {
        if self.window.cwnd() < self.window_threshold {
            self.alpha = ALPHA_RENO;
            self.beta = BETA_RENO;
        } else if let Some((mean, largest)) = self.delay.mean_and_largest() {
            self.alpha = self.next_alpha(mean, largest);
            self.beta = self.curves.beta(mean, largest);
        }
    }

    fn next_alpha(&mut self, mean: u64, largest: u64) -> u64 {
        let low = largest / 100;
        if mean > low {
            self.had_queue = true;
            return self.curves.alpha(mean - low, largest - low);
        }
        if !self.had_queue {
            return self.curves.alpha_max;
        }
        self.without_queue += 1;
        if self.without_queue < self.theta {
            return self.alpha;
        }
        self.had_queue = false;
        self.without_queue = 0;
        self.curves.alpha_max
    }

    /// α / cwnd for each acknowledged segment.
    fn avoid_congestion(&mut self, acked: u32) {
        self.window.earn(acked);
        let credit = self.window.credit();
        let earned = u64::from(credit) * self.alpha / ALPHA_SCALE;
        let segments = earned / u64::from(self.window.cwnd());
        if segments > 0 {
            self.window.buy(segments as u32, credit);
        }
    }

    fn reduced(&self) -> u32 {
        let cwnd = u64::from(self.window.cwnd());
        (cwnd - cwnd * self.beta / BETA_SCALE) as u32
    }
}

impl Controller for Illinois {
    fn on_ack(&mut self, ack: &Ack) {
        if let Some(rtt) = ack.rtt {
            self.delay.observe(rtt);
        }
        let may_grow = self.window.on_ack(ack);
        if ack.may_raise_cwnd && !self.window.in_fast_recovery() {
            self.follow_rounds(ack);
        }
        if !may_grow {
            return;
        }
        if self.window.in_slow_start() {
            let _ = self.window.slow_start(ack.newly_acked);
        } else {
            self.avoid_congestion(ack.cumulatively_acked);
        }
    }

    fn on_loss(&mut self, _loss: &Loss) {
        self.window.reduce(self.reduced());
    }

    fn on_timeout(&mut self, _now: Time, _in_flight: u32) {
        self.window.restart(self.reduced());
        self.alpha = ALPHA_RENO;
        self.beta = BETA_RENO;
        self.had_queue = false;
        self.without_queue = 0;
        self.round_end = None;
        self.delay.begin_round();
    }

    delegate_to_window!();
}

#[cfg(test)]
mod tests;
