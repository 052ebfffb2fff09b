//! HighSpeed TCP in fractions of segments, as RFC 3649 section 5 writes it: w + a(w)/w for each
//! acknowledged segment, (1 − b(w)) w at a loss.
//!
//! Deviation: a timeout in fast recovery does not lower ssthresh again, as in Linux.

use ackclock_core::Time;

use super::{a, b};
use crate::fractional_window::FractionalWindow;
use crate::window::delegate_to_window;
use crate::{Ack, Controller, Loss};

/// A HighSpeed sender's window in fractions of segments.
#[derive(Clone, Copy, Debug)]
pub struct Fractional {
    window: FractionalWindow,
}

impl Fractional {
    /// A window of `initial_window` segments.
    pub fn new(initial_window: f64) -> Fractional {
        Fractional {
            window: FractionalWindow::new(initial_window),
        }
    }

    fn reduced(&self) -> f64 {
        self.cwnd() * (1.0 - b(self.cwnd()))
    }
}

impl Controller for Fractional {
    fn on_ack(&mut self, ack: &Ack) {
        if !self.window.on_ack(ack) {
            return;
        }
        let acked = self.window.slow_start(ack.newly_acked.into(), 1.0);
        let w = self.cwnd();
        self.window.set(w + a(w) / w * acked);
    }

    fn on_loss(&mut self, _loss: &Loss) {
        self.window.reduce(self.reduced());
    }

    fn on_timeout(&mut self, _now: Time, _in_flight: u32) {
        self.window.restart(self.reduced());
    }

    delegate_to_window!();
}
