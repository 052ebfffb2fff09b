//! CUBIC: the window is a cubic function of the time since the last loss.
//!
//! RFC 9438, as Linux 6.1 behaves (`tcp_cubic.c`). The curve starts at β W after a loss at window W, is
//! flat where the last loss was, and accelerates beyond:
//!
//! ```text
//!   W_cubic(t) = C (t − K)³ + W_max                        (figure 1 of the RFC)
//!   K          = ∛((W_max − cwnd_epoch) / C)               (figure 2)
//!   W_est      = W_est + α · acked / cwnd,  α = 3 (1 − β) / (1 + β)      (figure 4)
//! ```
//!
//! and the window is never below `W_est`, what a Reno sender with the same average would have.
//!
//! Where Linux departs from the RFC, and this file with it:
//! - Windows, targets and increments are whole segments: the window grows by one each time
//!   `per_increment` = ⌊cwnd / (target − cwnd)⌋ segments have been acknowledged, where `target` is the
//!   curve one smallest RTT ahead; by 1/100 of a Reno step when the target is not above the window.
//! - It grows at most by half per round trip (`per_increment` ≥ 2). The RFC has the same bound,
//!   target ≤ 1.5 cwnd. Before the first loss, by at least 5 % (`per_increment` ≤ 20).
//! - `per_increment` is computed anew when the window has changed, but at most once per tick of the kernel's
//!   clock, or after 1/32 s. Where the RTT is not long against that, the window lags behind `W_est`. With
//!   the parameter `tick_s` = 0 it is computed with each ACK.
//! - β counts in 1/1024, α in whole eighths of acknowledged windows: for β = 0.7, 1.875 windows of ACKs
//!   per segment of `W_est`, where the RFC's α gives 1.889.
//! - α stays what it is when `W_est` has reached the window before the loss; the RFC makes it 1
//!   (section 4.3), and so does the parameter `reno_catch_up`.
//! - A timeout forgets the smallest RTT as well as `W_max` (the latter is section 4.8).
//! - RTT samples of an epoch's first second do not count for CUBIC's own smallest RTT.
//! - The curve pauses while the application is idle.
//! - A spurious loss gives back window and threshold; the curve begins anew there, flat where that loss was (section
//!   4.9 brings back all of its state).
//!
//! Deviations from Linux: time is continuous, and a tick only limits how often `per_increment` is computed.

mod curve;
mod fractional;
mod parameters;

use ackclock_core::Time;
use serde::Deserialize;
use serde_json::Value;

use curve::per_increment_to;
pub use curve::Epoch;
use fractional::Fractional;
pub use parameters::Common;
use parameters::{Parameters, BETA_SCALE};

use super::detector::Steer;
use super::window::Window;
use super::{Ack, Controller, CubicState, Loss, Made, PriorWindow, Restart};

/// Time after which Linux updates from the curve though the window is the same: 1/32 s.
const STALE: Time = Time::from_microseconds(31_250);
/// RTT samples this soon after the start of an epoch still show the queue of the last one.
const MIN_RTTS: Time = Time::from_milliseconds(1_000);
/// Most acknowledged segments per increment before the first loss: 5 % per round trip.
const MAX_PER_INCREMENT_UNKNOWN: u32 = 20;
/// Fewest acknowledged segments per increment: 50 % per round trip.
const MIN_PER_INCREMENT: u32 = 2;
/// The window's growth when the target is not above it: a segment per this many windows.
const PLATEAU_WINDOWS: u32 = 100;

/// The tracking of the curve by the window, in which CUBIC's variants in whole segments differ.
pub trait Tracking: Copy + Send + Sync + 'static {
    /// Acknowledged segments per increment at `cwnd` after a loss at `w_max` (0 before the first one),
    /// where the curve gives `curve`.
    fn per_increment(&self, curve: u32, cwnd: u32, w_max: u32) -> u32 {
        let _ = (cwnd, w_max);
        curve
    }

    /// The window that is aimed at so long after the start of the epoch.
    fn target(epoch: &Epoch, t: Time, min_rtt: Time) -> f64 {
        f64::from(epoch.w_cubic_towards_flat(t + min_rtt))
    }

    /// Let the window follow the curve when segments have been acknowledged.
    fn follow(cubic: &mut Cubic<Self>, now: Time, acked: u32) {
        cubic.step(now, acked);
    }
}

/// Linux's way: increments so spread that the window is on the curve one round trip later.
#[derive(Clone, Copy, Debug)]
pub struct Stepwise;

impl Tracking for Stepwise {}

/// A CUBIC sender's window.
#[derive(Clone, Debug)]
pub struct Cubic<T = Stepwise> {
    parameters: Common,
    /// Minimum time between two updates from the curve.
    tick: Time,
    tracking: T,
    /// β in 1/1024.
    beta_1024: u32,
    /// (1 + β) / (3 (1 − β)), that is 1/α, in whole eighths.
    reno_windows_8: u32,
    window: Window,
    /// Window at the last loss, or less by fast convergence; 0 before the first loss.
    w_max: u32,
    /// Window when ssthresh was last set by a loss (`cwnd_prior`); 0 before the first loss.
    prior: u32,
    /// The present congestion avoidance; none before it starts.
    epoch: Option<Epoch>,
    /// Smallest RTT since the last timeout, without those of settling epochs.
    min_rtt: Option<Time>,
    /// Acknowledged segments per increment.
    per_increment: u32,
    /// Window and time of the last update from the curve in this epoch.
    updated: Option<(u32, Time)>,
}

/// Create the controller.
///
/// # Errors
/// Parameters other than the spec's, C ≤ 0, or β outside (0, 1).
pub fn make(parameters: &Value, initial_window: f64) -> Made {
    let Parameters {
        common,
        whole_segments,
        tick,
    } = Parameters::deserialize(parameters)?;
    if whole_segments {
        let cubic = Cubic::new(common, tick, initial_window, Stepwise)?;
        return Ok(common.slow_start.control(cubic));
    }
    common.beta_1024()?;
    let cubic = Fractional::new(common, initial_window);
    Ok(common.slow_start.control(cubic))
}

/// 1/α = (1 + β) / (3 (1 − β)) in whole eighths.
fn reno_windows_8(beta_1024: u32) -> u32 {
    8 * (BETA_SCALE + beta_1024) / (3 * (BETA_SCALE - beta_1024))
}

impl<T: Tracking> Cubic<T> {
    /// A window of `initial_window` segments that is updated from the curve once a `tick`.
    ///
    /// # Errors
    /// C ≤ 0, or β outside (0, 1).
    pub fn new(
        parameters: Common,
        tick: Time,
        initial_window: f64,
        tracking: T,
    ) -> Result<Cubic<T>, serde_json::Error> {
        let beta_1024 = parameters.beta_1024()?;
        Ok(Cubic {
            parameters,
            tick,
            tracking,
            beta_1024,
            reno_windows_8: reno_windows_8(beta_1024),
            window: Window::new(initial_window),
            w_max: 0,
            prior: 0,
            epoch: None,
            min_rtt: None,
            per_increment: MIN_PER_INCREMENT,
            updated: None,
        })
    }

    /// Keep the smallest RTT.
    fn observe(&mut self, ack: &Ack, rtt: Time) {
        if !self.discards_rtt(ack.now) {
            self.min_rtt = Some(self.min_rtt.map_or(rtt, |min_rtt| min_rtt.min(rtt)));
        }
    }

    /// Raise the window by a segment each time enough have been acknowledged.
    fn step(&mut self, now: Time, acked: u32) {
        let mut epoch = self.epoch_at(now, acked);
        if !self.is_fresh(now) {
            self.update(now, &mut epoch);
        }
        self.epoch = Some(epoch);
        self.window.additive_increase(self.per_increment, acked);
    }

    /// Raise the window to `target`, but by no more than what has been acknowledged.
    pub fn rise_to(&mut self, target: u32, acked: u32) {
        let cwnd = self.window.cwnd();
        self.window
            .set(target.clamp(cwnd, cwnd.saturating_add(acked)));
    }

    /// The present epoch, or a new one, with what has been acknowledged put to Reno's account.
    fn epoch_at(&self, now: Time, acked: u32) -> Epoch {
        let begin = || Epoch::begin(now, self.window.cwnd(), self.w_max, self.parameters.c);
        let mut epoch = self.epoch.unwrap_or_else(begin);
        epoch.w_est_credit += acked;
        epoch
    }

    /// The window on the curve at this moment, as it is and not one round trip ahead; at
    /// least Reno's.
    pub fn on_curve(&mut self, now: Time, acked: u32) -> f64 {
        let mut epoch = self.epoch_at(now, acked);
        let mut w_cubic = epoch.w_cubic(now.since(epoch.start));
        if self.parameters.reno_friendly {
            self.grow_w_est(&mut epoch);
            w_cubic = w_cubic.max(f64::from(epoch.w_est));
        }
        self.epoch = Some(epoch);
        w_cubic
    }

    /// Return true if the last update was at this window and is not stale.
    fn is_fresh(&self, now: Time) -> bool {
        let cwnd = self.window.cwnd();
        let recent = |(looked_cwnd, at)| looked_cwnd == cwnd && now.since(at) <= STALE;
        self.tick > Time::ZERO && self.updated.is_some_and(recent)
    }

    fn update(&mut self, now: Time, epoch: &mut Epoch) {
        let cwnd = self.window.cwnd();
        let within_tick = |(_, at)| now.since(at) < self.tick;
        if !self.updated.is_some_and(within_tick) {
            self.per_increment = self.cubic_per_increment(now, epoch);
            self.updated = Some((cwnd, now));
        }
        if self.parameters.reno_friendly {
            self.grow_w_est(epoch);
            self.per_increment = self.per_increment.min(per_increment_to(epoch.w_est, cwnd));
        }
        self.per_increment = self.per_increment.max(MIN_PER_INCREMENT);
    }

    /// Acknowledged segments per increment to be on the curve one round trip from now.
    fn cubic_per_increment(&self, now: Time, epoch: &Epoch) -> u32 {
        let cwnd = self.window.cwnd();
        let t = now.since(epoch.start) + self.min_rtt.unwrap_or(Time::ZERO);
        let target = epoch.w_cubic_towards_flat(t);
        let curve = per_increment_to(target, cwnd).min(cwnd.saturating_mul(PLATEAU_WINDOWS));
        let per_increment = self.tracking.per_increment(curve, cwnd, self.w_max);
        if self.w_max == 0 {
            per_increment.min(MAX_PER_INCREMENT_UNKNOWN)
        } else {
            per_increment
        }
    }

    fn grow_w_est(&self, epoch: &mut Epoch) {
        let catches_up = |w_est| self.parameters.reno_catch_up && w_est >= self.prior;
        let windows_8 = |w_est| {
            if catches_up(w_est) {
                8
            } else {
                self.reno_windows_8
            }
        };
        epoch.grow_w_est(self.window.cwnd(), windows_8);
    }

    /// β × window.
    fn reduced(&self) -> u32 {
        (u64::from(self.window.cwnd()) * u64::from(self.beta_1024) / u64::from(BETA_SCALE)) as u32
    }

    /// `W_max` after a loss at the present window, with fast convergence (section 4.7).
    fn next_w_max(&self) -> u32 {
        let cwnd = self.window.cwnd();
        if self.parameters.fast_convergence && cwnd < self.w_max {
            let share_2048 = u64::from(BETA_SCALE + self.beta_1024);
            (u64::from(cwnd) * share_2048 / u64::from(2 * BETA_SCALE)) as u32
        } else {
            cwnd
        }
    }
}

impl<T: Tracking> Controller for Cubic<T> {
    fn on_ack(&mut self, ack: &Ack) {
        if let Some(rtt) = ack.rtt {
            self.observe(ack, rtt);
        }
        if !self.window.on_ack(ack) {
            return;
        }
        let most = if self.parameters.delayed_ack_correction {
            u32::MAX
        } else {
            1
        };
        let acked = self.window.slow_start(ack.newly_acked.min(most));
        if acked > 0 {
            T::follow(self, ack.now, acked);
        }
    }

    fn on_loss(&mut self, _loss: &Loss) {
        self.w_max = self.next_w_max();
        self.prior = self.window.cwnd();
        self.epoch = None;
        self.updated = None;
        self.window.reduce(self.reduced());
    }

    fn on_timeout(&mut self, _now: Time, _in_flight: u32) {
        if !self.window.in_fast_recovery() {
            self.prior = self.window.cwnd();
        }
        self.w_max = 0;
        self.epoch = None;
        self.updated = None;
        self.min_rtt = None;
        self.window.restart(self.reduced());
    }

    fn steer_slow_start(&mut self, steer: Steer) {
        self.window.steer_slow_start(steer);
    }

    fn discards_rtt(&self, now: Time) -> bool {
        self.epoch
            .is_some_and(|epoch| now.since(epoch.start) < MIN_RTTS)
    }

    fn undo(&mut self, before: &PriorWindow) {
        self.window.undo(before);
    }

    fn on_restart(&mut self, restart: &Restart) {
        self.window.restart_after_idle(restart);
        if let Some(epoch) = &mut self.epoch {
            let idle = restart.now.since(restart.idle_since);
            epoch.start = (epoch.start + idle).min(restart.now);
        }
    }

    fn cwnd(&self) -> f64 {
        f64::from(self.window.cwnd())
    }

    fn ssthresh(&self) -> f64 {
        self.window.ssthresh()
    }

    fn cubic_state(&self, now: Time) -> Option<CubicState> {
        let epoch = self.epoch?;
        let t = now.since(epoch.start);
        Some(CubicState {
            target: T::target(&epoch, t, self.min_rtt.unwrap_or(Time::ZERO)),
            w_cubic: epoch.w_cubic(t),
            w_max: (self.w_max > 0).then(|| f64::from(self.w_max)),
            origin: f64::from(epoch.origin),
            k_s: epoch.k_s,
            w_est: f64::from(epoch.w_est),
            count: Some(f64::from(self.per_increment)),
            min_rtt: self.min_rtt,
        })
    }
}

#[cfg(test)]
mod exit_tests;
#[cfg(test)]
mod linux_tests;
#[cfg(test)]
mod property_tests;
#[cfg(test)]
mod response_tests;
#[cfg(test)]
mod tests;
