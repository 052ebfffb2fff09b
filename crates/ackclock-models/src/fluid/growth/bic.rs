//! BIC: a binary search for the window at which losses begin.
//!
//! L. Xu, K. Harfoush, I. Rhee, INFOCOM 2004, with the increments of Linux 6.1. Per round trip, below W_max:
//! `max_increment` packets while a quarter of the distance is more than that, then a quarter of the distance,
//! and `4 / smooth_part` at the plateau around W_max; beyond it a third of the distance, at most
//! `max_increment`. Windows of `low_window` and less are Reno's. With `ack_ratio`, increments are 31/16 times as
//! large: the mean number of segments per ACK that Linux counts where every segment is acknowledged or
//! every other one.

use serde::Deserialize;
use serde_json::Value;

use super::{Growth, Moment};

/// The search steps to this part of the distance; the plateau has this height, in packets.
const SEARCH_PART: f64 = 4.0;
/// Smallest relative growth of the window without a known maximum: 1/20 (Linux).
const UNKNOWN_SHARE: f64 = 0.05;
/// Segments per ACK as Linux's moving average in whole sixteenths has them.
const ACK_RATIO: f64 = 31.0 / 16.0;

#[derive(Clone, Copy, Deserialize)]
struct Parameters {
    /// Share kept at a loss.
    beta: f64,
    max_increment: f64,
    low_window: f64,
    smooth_part: f64,
    fast_convergence: bool,
    ack_ratio: bool,
}

struct Bic {
    parameters: Parameters,
    /// W_max; none before the first loss.
    maximum_p: Option<f64>,
}

/// Make the law.
///
/// # Errors
/// A parameter is missing.
pub fn make(parameters: &Value) -> Result<Box<dyn Growth>, serde_json::Error> {
    Ok(Box::new(Bic {
        parameters: Parameters::deserialize(parameters)?,
        maximum_p: None,
    }))
}

impl Bic {
    /// Packets per round trip by which the search grows.
    fn search(&self, window_p: f64) -> f64 {
        let Parameters {
            max_increment,
            smooth_part,
            ..
        } = self.parameters;
        let plateau = SEARCH_PART / smooth_part;
        let maximum_p = self.maximum_p.unwrap_or(0.0);
        let found = if window_p < maximum_p {
            let step = (maximum_p - window_p) / SEARCH_PART;
            if step > 1.0 {
                step.min(max_increment)
            } else {
                plateau
            }
        } else if window_p < maximum_p + SEARCH_PART {
            plateau
        } else {
            ((window_p - maximum_p) / (SEARCH_PART - 1.0)).min(max_increment)
        };
        match self.maximum_p {
            Some(_) => found,
            None => found.max(UNKNOWN_SHARE * window_p),
        }
    }
}

impl Growth for Bic {
    fn increase(&self, at: &Moment) -> f64 {
        if at.window_p <= self.parameters.low_window {
            return 1.0;
        }
        let ratio = if self.parameters.ack_ratio {
            ACK_RATIO
        } else {
            1.0
        };
        ratio * self.search(at.window_p)
    }

    fn share_removed(&self, at: &Moment) -> f64 {
        if at.window_p <= self.parameters.low_window {
            0.5
        } else {
            1.0 - self.parameters.beta
        }
    }

    fn lose(&mut self, at: &Moment, _left_p: f64) {
        let known_p = self.maximum_p.unwrap_or(0.0);
        let lower = self.parameters.fast_convergence && at.window_p < known_p;
        self.maximum_p = Some(if lower {
            at.window_p * (1.0 + self.parameters.beta) / 2.0
        } else {
            at.window_p
        });
    }
}
