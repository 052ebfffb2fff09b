//! HighSpeed TCP in fractions of segments, as RFC 3649 section 5 writes it: w + a(w)/w for each
//! acknowledged segment, (1 − b(w)) w at a loss.
//!
//! Deviation: slow start and the restart after an idle time are RFC 5681's; a timeout in fast recovery
//! does not lower ssthresh again, as in Linux.

use ackclock_units::Time;

use super::{a, b};
use crate::congestion::{Ack, Controller, Loss, Restart};

/// Smallest ssthresh in segments (RFC 5681 equation 4).
const MIN_SSTHRESH: f64 = 2.0;

/// A HighSpeed sender's window in fractions of segments.
#[derive(Clone, Copy, Debug)]
pub struct Fractional {
    cwnd: f64,
    ssthresh: f64,
    reduced_this_episode: bool,
}

impl Fractional {
    /// A window of `initial_window` segments.
    pub fn new(initial_window: f64) -> Fractional {
        Fractional {
            cwnd: initial_window.max(1.0),
            ssthresh: f64::INFINITY,
            reduced_this_episode: false,
        }
    }

    fn reduced(&self) -> f64 {
        (self.cwnd * (1.0 - b(self.cwnd))).max(MIN_SSTHRESH)
    }
}

impl Controller for Fractional {
    fn on_ack(&mut self, ack: &Ack) {
        self.reduced_this_episode &= ack.recovering;
        if ack.recovering || !ack.advanced || !ack.window_limited {
            return;
        }
        let acked = f64::from(ack.newly_acked);
        if self.cwnd < self.ssthresh {
            self.cwnd = (self.cwnd + acked).min(self.ssthresh);
        } else {
            self.cwnd += a(self.cwnd) / self.cwnd * acked;
        }
    }

    fn on_loss(&mut self, _loss: &Loss) {
        self.ssthresh = self.reduced();
        self.cwnd = self.ssthresh;
        self.reduced_this_episode = true;
    }

    fn on_timeout(&mut self, _now: Time, _in_flight: u32) {
        if !self.reduced_this_episode {
            self.ssthresh = self.reduced();
        }
        self.reduced_this_episode = false;
        self.cwnd = 1.0;
    }

    fn on_restart(&mut self, restart: &Restart) {
        let idle = restart.now.since(restart.idle_since);
        let initial = f64::from(restart.initial_window.max(1));
        if idle > restart.rto && self.cwnd > initial {
            self.ssthresh = self.ssthresh.max(0.75 * self.cwnd);
            self.cwnd = initial;
        }
    }

    fn cwnd(&self) -> f64 {
        self.cwnd
    }

    fn ssthresh(&self) -> f64 {
        self.ssthresh
    }
}
