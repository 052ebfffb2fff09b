//! DCTCP: the window comes down in proportion to the extent of marking.
//!
//! RFC 8257 section 3.3. α estimates the share of marked segments, over one window of data at a time, and marks
//! take α/2 of the window where a loss takes half of it:
//!
//! ```text
//! α   ← (1 − g) α + g F          F: the marked share of what the last window's ACKs delivered
//! cwnd ← (1 − α/2) cwnd          at marks, once per window of data
//! cwnd ← cwnd/2                  at a loss (section 3.5), a loss during the reaction to marks included
//! ```
//!
//! Growth is Reno's. The paper: M. Alizadeh et al.: Data Center TCP (DCTCP), SIGCOMM 2010, section 3.1.
//!
//! Deviations, all as Linux 6.1 does it (`tcp_dctcp.c`):
//! - α is counted in 1/1024 and shares are of segments, not of bytes; g is a power of two. An α below 1/g of
//!   these units falls to zero in one window.
//! - Windows are whole segments; ssthresh is at least 2.
//! - A loss during the reaction to marks halves what is in flight, the window that the reduction has reached.

use ackclock_core::Time;
use serde::Deserialize;
use serde_json::Value;

use super::window::{delegate_to_window, Window};
use super::{require, Ack, Controller, EcnFeedback, Loss, Made};

/// α = 1: everything is marked. Fine enough for windows of a thousand segments.
const ALPHA_MAX: u32 = 1024;
/// α/2 of a window is α × window, shifted by this.
const HALF_ALPHA_SHIFT: u32 = 11;
/// The greatest `shift_g`: g F of a fully marked window is then still one unit.
const SHIFT_G_MAX: u32 = 10;

/// Parameters as in the algorithm spec.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    /// g = 1/2^`shift_g`.
    shift_g: u32,
    /// α before anything is known.
    initial_alpha: f64,
    /// A timeout sets α to 1.
    clamp_alpha_on_loss: bool,
}

/// A DCTCP sender's window.
#[derive(Clone, Copy, Debug)]
struct Dctcp {
    parameters: Parameters,
    window: Window,
    /// α, of [`ALPHA_MAX`].
    alpha: u32,
    /// The observation window ends when everything below is acknowledged.
    window_end: u64,
    /// Segments delivered in it, and how many of them marked.
    delivered: u32,
    marked: u32,
}

/// Create the controller.
///
/// # Errors
/// Parameters other than those of the algorithm spec, a `shift_g` above 10, or an α outside 0 to 1.
pub fn make(parameters: &Value, initial_window: f64) -> Made {
    Ok(Box::new(Dctcp::new(parameters, initial_window)?))
}

impl Dctcp {
    fn new(parameters: &Value, initial_window: f64) -> Result<Dctcp, serde_json::Error> {
        let parameters = Parameters::deserialize(parameters)?;
        require(
            parameters.shift_g <= SHIFT_G_MAX,
            "shift_g must be at most 10",
        )?;
        require(
            (0.0..=1.0).contains(&parameters.initial_alpha),
            "initial_alpha must be 0 to 1",
        )?;
        Ok(Dctcp {
            parameters,
            window: Window::new(initial_window),
            alpha: (parameters.initial_alpha * f64::from(ALPHA_MAX)).round() as u32,
            window_end: 0,
            delivered: 0,
            marked: 0,
        })
    }

    /// RFC 8257 section 3.3, equation for DCTCP.Alpha, at the end of an observation window.
    fn update_alpha(&mut self) {
        let shift = self.parameters.shift_g;
        let decay = self.alpha >> shift;
        // What is too small to decay in units is forgotten.
        self.alpha -= if decay > 0 { decay } else { self.alpha };
        let g_f =
            (u64::from(self.marked) << (SHIFT_G_MAX - shift)) / u64::from(self.delivered.max(1));
        self.alpha = (self.alpha + g_f as u32).min(ALPHA_MAX);
    }

    /// cwnd × (1 − α/2).
    fn after_marks(&self) -> u32 {
        let cwnd = u64::from(self.window.cwnd());
        let cut = (cwnd * u64::from(self.alpha)) >> HALF_ALPHA_SHIFT;
        (cwnd - cut) as u32
    }
}

impl Controller for Dctcp {
    fn on_ecn_feedback(&mut self, feedback: &EcnFeedback) {
        self.delivered += feedback.delivered;
        self.marked += feedback.marked;
        if feedback.unacknowledged >= self.window_end {
            self.update_alpha();
            self.window_end = feedback.next;
            self.delivered = 0;
            self.marked = 0;
        }
    }

    fn on_ack(&mut self, ack: &Ack) {
        if self.window.on_ack(ack) {
            self.window.grow_as_reno(ack.newly_acked);
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        let reduced = if loss.marked {
            self.after_marks()
        } else {
            self.window.cwnd() / 2
        };
        self.window.reduce(reduced);
    }

    fn on_loss_after_mark(&mut self, loss: &Loss) {
        self.window
            .reduce((loss.in_flight / 2).min(self.window.cwnd()));
    }

    fn on_timeout(&mut self, _now: Time, _in_flight: u32) {
        self.window.restart(self.window.cwnd() / 2);
        if self.parameters.clamp_alpha_on_loss {
            self.alpha = ALPHA_MAX;
        }
    }

    delegate_to_window!();
}

#[cfg(test)]
mod tests;
