//! HighSpeed TCP: beyond 38 packets, the larger the window the larger the increase and the smaller the decrease.
//!
//! RFC 3649 section 5. Its functions are followed, not the rows of its table.

use serde::Deserialize;
use serde_json::Value;

use super::{Growth, Moment};

/// Up to this window it is Reno (section 5, Low_Window).
const LOW_WINDOW: f64 = 38.0;
/// The window of a loss rate of 1e-7 (section 5, High_Window).
const HIGH_WINDOW: f64 = 83_000.0;
/// b at the high window (section 5, High_Decrease).
const HIGH_DECREASE: f64 = 0.1;
/// w² p(w) = 0.156/2 w^0.8, from p(w) = 0.078 / w^1.2 (section 5).
const SQUARE_TIMES_LOSS: f64 = 0.078;

#[derive(Deserialize)]
struct HighSpeed {}

/// Make the law.
///
/// # Errors
/// The parameters are no table.
pub fn make(parameters: &Value) -> Result<Box<dyn Growth>, serde_json::Error> {
    Ok(Box::new(HighSpeed::deserialize(parameters)?))
}

/// b(w): falls with the logarithm of the window.
fn decrease(window_p: f64) -> f64 {
    if window_p <= LOW_WINDOW {
        return 0.5;
    }
    let share = (window_p / LOW_WINDOW).ln() / (HIGH_WINDOW / LOW_WINDOW).ln();
    (0.5 + (HIGH_DECREASE - 0.5) * share).max(HIGH_DECREASE)
}

/// a(w) = w² p(w) 2 b(w) / (2 − b(w)).
fn increase(window_p: f64) -> f64 {
    if window_p <= LOW_WINDOW {
        return 1.0;
    }
    let b = decrease(window_p);
    SQUARE_TIMES_LOSS * window_p.powf(0.8) * 2.0 * b / (2.0 - b)
}

impl Growth for HighSpeed {
    fn increase(&self, at: &Moment) -> f64 {
        increase(at.window_p)
    }

    fn share_removed(&self, at: &Moment) -> f64 {
        decrease(at.window_p)
    }

    fn lose(&mut self, _at: &Moment, _left_p: f64) {}
}
