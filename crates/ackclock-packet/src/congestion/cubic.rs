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
//!   per segment of `W_est`, where the RFC's α asks for 1.889.
//! - α stays what it is when `W_est` has reached the window before the loss; the RFC makes it 1
//!   (section 4.3), and so does the parameter `reno_catch_up`.
//! - A timeout forgets the smallest RTT as well as `W_max` (the latter is section 4.8).
//! - RTT samples of an epoch's first second do not count for CUBIC's own smallest RTT.
//! - The curve pauses while the application is idle.
//!
//! Deviations from Linux: time is continuous, and a tick only limits how often `per_increment` is computed.
//! Spurious losses are not undone.

mod fractional;

use ackclock_units::Time;
use serde::de::Error as _;
use serde::Deserialize;
use serde_json::Value;

use fractional::Fractional;

use super::hystart::{HyStart, Path};
use super::window::Window;
use super::{Ack, Controller, Loss, Restart};

/// Time after which Linux looks at the curve though the window is the same: 1/32 s.
const STALE: Time = Time::from_microseconds(31_250);
/// RTT samples this soon after the start of an epoch still show the queue of the last one.
const SETTLING: Time = Time::from_milliseconds(1_000);
/// Most acknowledged segments per increment before the first loss: 5 % per round trip.
const MAX_PER_INCREMENT_UNKNOWN: u32 = 20;
/// Fewest acknowledged segments per increment: 50 % per round trip.
const MIN_PER_INCREMENT: u32 = 2;
/// The window's growth when the target is not above it: a segment per this many windows.
const PLATEAU_WINDOWS: u32 = 100;
/// Linux counts β in parts of this.
const BETA_SCALE: u32 = 1024;
/// Linux's pacing rate in slow start and later, in windows per smoothed RTT.
const PACING_RATIOS: (f64, f64) = (2.0, 1.2);

/// Parameters as on the card.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(clippy::struct_excessive_bools)]
struct Parameters {
    /// C, segments/s³.
    c: f64,
    /// β: the share of the window that is kept at a loss.
    beta: f64,
    /// Whether a loss below `W_max` lowers `W_max` further, to make room for new flows (section 4.7).
    fast_convergence: bool,
    /// Whether the window is at least Reno's (section 4.3).
    reno_friendly: bool,
    /// Whether `W_est` grows like Reno once it has reached the window before the loss.
    reno_catch_up: bool,
    /// Whether `HyStart` may end slow start.
    hystart: bool,
    /// Whether growth counts acknowledged segments; otherwise it counts ACKs.
    delayed_ack_correction: bool,
    /// Whether windows are whole segments, as in Linux; otherwise they are the RFC's fractions.
    whole_segments: bool,
    /// Least time between two looks at the curve; at 0 it is looked at with each ACK.
    #[serde(rename = "tick_s")]
    tick: Time,
}

/// A CUBIC sender's window.
#[derive(Clone, Debug)]
struct Cubic {
    parameters: Parameters,
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
    /// Window and time of the last look at the curve in this epoch.
    looked: Option<(u32, Time)>,
    hystart: Option<HyStart>,
}

/// The curve of one congestion avoidance phase.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: Time,
    /// The curve's flat point.
    origin: u32,
    /// K, seconds from the start to the flat point.
    k_s: f64,
    /// Reno's window, `W_est`.
    w_est: u32,
    /// Acknowledged segments that `W_est` has not grown by yet.
    w_est_credit: u32,
}

/// Makes the controller.
///
/// # Errors
/// Parameters other than the card's, C ≤ 0, or β outside (0, 1).
pub fn make(
    parameters: &Value,
    initial_window: f64,
) -> Result<Box<dyn Controller>, serde_json::Error> {
    let parameters = Parameters::deserialize(parameters)?;
    let beta_1024 = (parameters.beta * f64::from(BETA_SCALE)).round() as u32;
    if !(1..BETA_SCALE).contains(&beta_1024) {
        return Err(serde_json::Error::custom(
            "beta, the share of the window that is kept, must be between 0 and 1",
        ));
    }
    if !(parameters.c > 0.0 && parameters.c.is_finite()) {
        return Err(serde_json::Error::custom("c must be above 0"));
    }
    if parameters.whole_segments {
        Ok(Box::new(Cubic::new(parameters, beta_1024, initial_window)))
    } else {
        Ok(Box::new(Fractional::new(parameters, initial_window)))
    }
}

/// The rate that Linux keeps ready for pacing, which `HyStart` looks at even without pacing.
fn pacing_rate_bytes_per_s(cwnd: f64, ssthresh: f64, ack: &Ack) -> f64 {
    let (slow_start, later) = PACING_RATIOS;
    let ratio = if cwnd < ssthresh / 2.0 {
        slow_start
    } else {
        later
    };
    let segment_bytes = ack.newly_acked_bytes as f64 / f64::from(ack.newly_acked.max(1));
    ratio * cwnd * segment_bytes / ack.srtt.seconds()
}

/// K: seconds from the start of the epoch until the curve is flat.
fn k_s(w_max: u32, cwnd_epoch: u32, c: f64) -> f64 {
    (f64::from(w_max.saturating_sub(cwnd_epoch)) / c).cbrt()
}

/// `W_cubic`(t) in whole segments, rounded towards the flat point.
fn w_cubic(t_s: f64, epoch: &Epoch, c: f64) -> u32 {
    let distance = (c * (t_s - epoch.k_s).abs().powi(3)) as u32;
    if t_s < epoch.k_s {
        epoch.origin.saturating_sub(distance)
    } else {
        epoch.origin.saturating_add(distance)
    }
}

/// 1/α = (1 + β) / (3 (1 − β)) in whole eighths.
fn reno_windows_8(beta_1024: u32) -> u32 {
    8 * (BETA_SCALE + beta_1024) / (3 * (BETA_SCALE - beta_1024))
}

impl Cubic {
    fn new(parameters: Parameters, beta_1024: u32, initial_window: f64) -> Cubic {
        Cubic {
            parameters,
            beta_1024,
            reno_windows_8: reno_windows_8(beta_1024),
            window: Window::new(initial_window),
            w_max: 0,
            prior: 0,
            epoch: None,
            min_rtt: None,
            per_increment: MIN_PER_INCREMENT,
            looked: None,
            hystart: parameters.hystart.then(HyStart::from_start),
        }
    }

    /// Keeps the smallest RTT, and leaves slow start when `HyStart` says so.
    fn observe(&mut self, ack: &Ack, rtt: Time) {
        let settling = |epoch: Epoch| ack.now.since(epoch.start) < SETTLING;
        if self.epoch.is_some_and(settling) {
            return;
        }
        let min_rtt = self.min_rtt.map_or(rtt, |min_rtt| min_rtt.min(rtt));
        self.min_rtt = Some(min_rtt);
        if self.window.in_slow_start() {
            self.ask_hystart(ack, rtt, min_rtt);
        }
    }

    fn ask_hystart(&mut self, ack: &Ack, rtt: Time, min_rtt: Time) {
        let path = Path {
            cwnd: self.window.cwnd(),
            min_rtt,
            pacing_rate_bytes_per_s: pacing_rate_bytes_per_s(
                f64::from(self.window.cwnd()),
                self.window.ssthresh(),
                ack,
            ),
            paced: ack.paced,
        };
        if let Some(hystart) = &mut self.hystart {
            if hystart.should_exit(ack, rtt, &path) {
                self.window.end_slow_start();
            }
        }
    }

    /// Finds how many acknowledged segments the next increment takes.
    fn update(&mut self, now: Time, acked: u32) {
        if let Some(epoch) = &mut self.epoch {
            epoch.w_est_credit += acked;
            if self.has_looked(now) {
                return;
            }
        }
        let mut epoch = self.epoch.unwrap_or_else(|| self.begin_epoch(now, acked));
        self.look(now, &mut epoch);
        self.epoch = Some(epoch);
    }

    /// Whether the last look at the curve was at this window and is not stale.
    fn has_looked(&self, now: Time) -> bool {
        let cwnd = self.window.cwnd();
        let recent = |(looked_cwnd, at)| looked_cwnd == cwnd && now.since(at) <= STALE;
        self.parameters.tick > Time::ZERO && self.looked.is_some_and(recent)
    }

    fn look(&mut self, now: Time, epoch: &mut Epoch) {
        let cwnd = self.window.cwnd();
        let within_tick = |(_, at)| now.since(at) < self.parameters.tick;
        if !self.looked.is_some_and(within_tick) {
            self.per_increment = self.cubic_per_increment(now, epoch);
            self.looked = Some((cwnd, now));
        }
        if self.parameters.reno_friendly {
            self.grow_w_est(epoch);
            self.per_increment = self.per_increment.min(per_increment_to(epoch.w_est, cwnd));
        }
        self.per_increment = self.per_increment.max(MIN_PER_INCREMENT);
    }

    fn begin_epoch(&self, now: Time, acked: u32) -> Epoch {
        let cwnd = self.window.cwnd();
        Epoch {
            start: now,
            origin: self.w_max.max(cwnd),
            k_s: k_s(self.w_max, cwnd, self.parameters.c),
            w_est: cwnd,
            w_est_credit: acked,
        }
    }

    /// Acknowledged segments per increment to be on the curve one round trip from now.
    fn cubic_per_increment(&self, now: Time, epoch: &Epoch) -> u32 {
        let cwnd = self.window.cwnd();
        let t = now.since(epoch.start) + self.min_rtt.unwrap_or(Time::ZERO);
        let target = w_cubic(t.seconds(), epoch, self.parameters.c);
        let per_increment =
            per_increment_to(target, cwnd).min(cwnd.saturating_mul(PLATEAU_WINDOWS));
        if self.w_max == 0 {
            per_increment.min(MAX_PER_INCREMENT_UNKNOWN)
        } else {
            per_increment
        }
    }

    /// Lets Reno's window grow with what has been acknowledged (figure 4).
    fn grow_w_est(&self, epoch: &mut Epoch) {
        let cwnd = self.window.cwnd();
        loop {
            let caught_up = self.parameters.reno_catch_up && epoch.w_est >= self.prior;
            let windows_8 = if caught_up { 8 } else { self.reno_windows_8 };
            let per_increment = (cwnd.saturating_mul(windows_8) / 8).max(1);
            if epoch.w_est_credit <= per_increment {
                return;
            }
            epoch.w_est_credit -= per_increment;
            epoch.w_est += 1;
        }
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

/// Acknowledged segments per increment that raise `cwnd` to `target` within one window; without end if
/// the target is not above it.
fn per_increment_to(target: u32, cwnd: u32) -> u32 {
    cwnd.checked_div(target.saturating_sub(cwnd))
        .unwrap_or(u32::MAX)
}

impl Controller for Cubic {
    fn on_ack(&mut self, ack: &Ack) {
        if let Some(rtt) = ack.rtt {
            self.observe(ack, rtt);
        }
        if !self.window.may_grow(ack) {
            return;
        }
        let most = if self.parameters.delayed_ack_correction {
            u32::MAX
        } else {
            1
        };
        let mut acked = ack.newly_acked.min(most);
        if self.window.in_slow_start() {
            acked = self.window.slow_start(acked);
        }
        if acked > 0 {
            self.update(ack.now, acked);
            self.window.additive_increase(self.per_increment, acked);
        }
    }

    fn on_loss(&mut self, _loss: &Loss) {
        self.w_max = self.next_w_max();
        self.prior = self.window.cwnd();
        self.epoch = None;
        self.looked = None;
        self.window.reduce(self.reduced());
    }

    fn on_timeout(&mut self, now: Time, _in_flight: u32) {
        if !self.window.in_fast_recovery() {
            self.prior = self.window.cwnd();
        }
        self.w_max = 0;
        self.epoch = None;
        self.looked = None;
        self.min_rtt = None;
        self.window.restart(self.reduced());
        if let Some(hystart) = &mut self.hystart {
            hystart.restart(now);
        }
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
