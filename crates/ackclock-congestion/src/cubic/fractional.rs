//! CUBIC in fractions of segments, as RFC 9438 writes it.
//!
//! The whole-segment arithmetic of Linux (the parent module) has no single equilibrium under periodic
//! loss: within half a segment of `W_max` the curve counts as flat, so the window stays where it came
//! from. This form moves towards the equilibrium that the RFC's model assumes (section 5.1), with an
//! error that falls as one over the number of losses.
//!
//! Deviations from the RFC: ssthresh is β × cwnd, where section 4.6 takes the data in flight; slow start
//! may end before a loss ([`crate::slow_start`]); where the window has to come up to `W_est` it does so by no more than what is
//! acknowledged (section 4.3 sets it at once); a spurious loss
//! gives back window and threshold, and no curve (section 4.9).

use ackclock_core::Time;

use super::Common;
use crate::detector::{Growth, Steer};
use crate::{Ack, Controller, CubicState, Loss, PriorWindow, Restart};

/// Smallest ssthresh in segments (RFC 5681 equation 4, RFC 9438 section 4.6).
const MIN_SSTHRESH: f64 = 2.0;
/// The target is at most this many windows ahead (section 4.2).
const MAX_GROWTH: f64 = 1.5;

/// A CUBIC sender's window in fractions of segments.
#[derive(Clone, Debug)]
pub struct Fractional {
    parameters: Common,
    cwnd: f64,
    ssthresh: f64,
    /// Window at the last loss, or less by fast convergence; none before a loss and after a timeout.
    w_max: Option<f64>,
    /// Window before the last reduction (`cwnd_prior`).
    prior: f64,
    epoch: Option<Epoch>,
    reduced_this_episode: bool,
    /// The pace of slow start before the first loss.
    growth: Growth,
}

/// The curve of one congestion avoidance phase.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: Time,
    w_max: f64,
    k_s: f64,
    w_est: f64,
}

impl Epoch {
    /// Equation in figure 1.
    fn w_cubic(&self, t_s: f64, c: f64) -> f64 {
        c * (t_s - self.k_s).powi(3) + self.w_max
    }
}

impl Fractional {
    /// A window of `initial_window` segments.
    pub fn new(parameters: Common, initial_window: f64) -> Fractional {
        Fractional {
            parameters,
            cwnd: initial_window.max(1.0),
            ssthresh: f64::INFINITY,
            w_max: None,
            prior: 0.0,
            epoch: None,
            reduced_this_episode: false,
            growth: Growth::FULL,
        }
    }

    /// Equations in figures 2 and 3. Without a loss behind it (the end of slow start, or the repair
    /// after a timeout), the curve begins at its flat point (sections 4.8 and 4.10).
    fn begin_epoch(&self, now: Time) -> Epoch {
        let w_max = self.w_max.unwrap_or(self.cwnd).max(self.cwnd);
        Epoch {
            start: now,
            w_max,
            k_s: ((w_max - self.cwnd) / self.parameters.c).cbrt(),
            w_est: self.cwnd,
        }
    }

    fn avoid_congestion(&mut self, ack: &Ack, acked: f64) {
        let mut epoch = self.epoch.unwrap_or_else(|| self.begin_epoch(ack.now));
        let t_s = ack.now.since(epoch.start).seconds();
        epoch.w_est += self.alpha(epoch.w_est) * acked / self.cwnd;
        self.epoch = Some(epoch);
        let c = self.parameters.c;
        if self.parameters.reno_friendly && epoch.w_cubic(t_s, c) < epoch.w_est {
            self.cwnd = epoch.w_est.clamp(self.cwnd, self.cwnd + acked);
        } else {
            let ahead = epoch.w_cubic(t_s + ack.srtt.seconds(), c);
            let target = ahead.clamp(self.cwnd, MAX_GROWTH * self.cwnd);
            self.cwnd += (target - self.cwnd) * acked / self.cwnd;
        }
    }

    /// α of section 4.3.
    fn alpha(&self, w_est: f64) -> f64 {
        let beta = self.parameters.beta;
        if self.parameters.reno_catch_up && w_est >= self.prior {
            1.0
        } else {
            3.0 * (1.0 - beta) / (1.0 + beta)
        }
    }

    fn slow_start(&mut self, acked: f64) {
        let counted = if self.ssthresh.is_infinite() {
            self.growth.share(acked)
        } else {
            acked
        };
        self.cwnd = (self.cwnd + counted).min(self.ssthresh);
    }

    /// Sections 4.6 and 4.7.
    fn reduce(&mut self) {
        let beta = self.parameters.beta;
        let below = self.w_max.is_some_and(|w_max| self.cwnd < w_max);
        self.w_max = Some(if self.parameters.fast_convergence && below {
            self.cwnd * (1.0 + beta) / 2.0
        } else {
            self.cwnd
        });
        self.prior = self.cwnd;
        self.ssthresh = (self.cwnd * beta).max(MIN_SSTHRESH);
        self.cwnd = self.ssthresh;
        self.epoch = None;
    }
}

impl Controller for Fractional {
    fn on_ack(&mut self, ack: &Ack) {
        self.reduced_this_episode &= ack.recovering;
        if ack.recovering || !ack.may_raise_cwnd || !ack.window_limited {
            return;
        }
        let acked = if self.parameters.delayed_ack_correction {
            f64::from(ack.newly_acked)
        } else {
            1.0
        };
        if self.cwnd < self.ssthresh {
            self.slow_start(acked);
        } else {
            self.avoid_congestion(ack, acked);
        }
    }

    fn on_loss(&mut self, _loss: &Loss) {
        self.reduce();
        self.reduced_this_episode = true;
    }

    /// Section 4.8.
    fn on_timeout(&mut self, _now: Time, _in_flight: u32) {
        if !self.reduced_this_episode {
            self.reduce();
        }
        self.reduced_this_episode = false;
        self.w_max = None;
        self.epoch = None;
        self.cwnd = 1.0;
    }

    fn steer_slow_start(&mut self, steer: Steer) {
        match steer {
            Steer::Grow(growth) => self.growth = growth,
            Steer::Exit(cwnd) => {
                self.cwnd = cwnd.max(MIN_SSTHRESH);
                self.ssthresh = self.cwnd;
            }
        }
    }

    /// Section 4.9.1, but for the curve, which begins anew where the window is.
    fn undo(&mut self, before: &PriorWindow) {
        self.cwnd = self.cwnd.max(before.cwnd);
        self.ssthresh = self.ssthresh.max(before.ssthresh);
        self.epoch = None;
        self.reduced_this_episode = false;
    }

    /// Section 5.8: the curve pauses while the application is idle. After more than a timeout the sender
    /// starts from the initial window (RFC 5681 section 4.1) towards three quarters of the last one.
    fn on_restart(&mut self, restart: &Restart) {
        let idle = restart.now.since(restart.idle_since);
        let initial = f64::from(restart.initial_window.max(1));
        if idle > restart.rto && self.cwnd > initial {
            self.ssthresh = self.ssthresh.max(0.75 * self.cwnd);
            self.cwnd = initial;
            self.epoch = None;
        } else if let Some(epoch) = &mut self.epoch {
            epoch.start = (epoch.start + idle).min(restart.now);
        }
    }

    fn cwnd(&self) -> f64 {
        self.cwnd
    }

    fn ssthresh(&self) -> f64 {
        self.ssthresh
    }

    fn cubic_state(&self, now: Time) -> Option<CubicState> {
        let epoch = self.epoch?;
        let (t_s, c) = (now.since(epoch.start).seconds(), self.parameters.c);
        Some(CubicState {
            target: epoch.w_cubic(t_s, c),
            w_cubic: epoch.w_cubic(t_s, c),
            w_max: self.w_max,
            origin: epoch.w_max,
            k_s: epoch.k_s,
            w_est: epoch.w_est,
            count: None,
            min_rtt: None,
        })
    }
}

#[cfg(test)]
mod rfc9438;
