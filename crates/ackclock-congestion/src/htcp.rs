//! H-TCP: the longer no loss has happened, the faster the window grows.
//!
//! R. Shorten, D. Leith: H-TCP: TCP for high-speed and long-distance networks, PFLDnet 2004, and
//! draft-leith-tcp-htcp-06, as Linux 6.1 behaves (`tcp_htcp.c`). With Δ the time since the last loss was
//! repaired,
//!
//! ```text
//!   α(Δ) = 1                                       Δ ≤ 1 s
//!        = 1 + 10 (Δ − 1 s) + ((Δ − 1 s) / 2)²      beyond (s)
//!   α    = 2 (1 − β) α(Δ) × RTT / 100 ms            segments more per round trip
//!   β    = RTT_min / RTT_max, within 0.5 … 0.8     share of the window that is kept at a loss
//! ```
//!
//! where RTT / 100 ms, the RTT scaling by the smallest RTT, lies within 0.1 … 2. β is 0.5 at a loss at which the
//! throughput was more than a fifth away from that at the loss before, and at the next one.
//!
//! Where Linux departs from the paper, and this file with it:
//! - Time and RTTs are whole ticks of the kernel's clock, a begun tick of an RTT counting.
//! - α(Δ) is a whole number, and remains one after the scaling, at least 1. β and α count in 1/128.
//! - α is computed when the window has grown by a segment, and at a loss with the Δ at that loss. The first
//!   segment after a loss is bought at that rate.
//! - An RTT more than 20 ms above `RTT_max` does not count for it, nor SACKs after the first one of a hole:
//!   the segments behind a drop, which met the longest queue. At each loss `RTT_max` loses 5 % of its
//!   distance to `RTT_min`.
//! - β is 0.5 where `RTT_min` is 10 ms or less.
//! - What slow start leaves over when it reaches ssthresh is not counted. What is left when the window grows by
//!   a segment is forgotten.

mod throughput;

use ackclock_core::jiffies::JiffyClock;
use ackclock_core::Time;
use serde::Deserialize;
use serde_json::Value;

use super::detector::Steer;
use super::slow_start::SlowStart;
use super::window::Window;
use super::{Ack, Controller, Loss, Made, PriorWindow, Restart};

use throughput::Throughput;

/// α and β count in parts of this.
const SCALE: u64 = 128;
/// α in 1/128 before it has been computed.
const ALPHA_BASE: u64 = SCALE;
/// Smallest β, 0.5 (section 2.3 of the draft), in 1/128.
const BETA_MIN: u64 = 64;
/// Largest β, 0.8, in 1/128.
const BETA_MAX: u64 = 102;
/// RTTs of this and less say nothing about the queue.
const SHORT_RTT: Time = Time::from_milliseconds(10);
/// The maximum step above the largest RTT for which a sample counts.
const MAX_RTT_STEP: Time = Time::from_milliseconds(20);
/// Share of its distance to the smallest RTT that the largest one keeps at a loss, percent.
const MAX_RTT_KEPT: u64 = 95;
/// Smallest RTTs after which the throughput has settled.
const WARMUP_RTTS: u64 = 4;
/// Linux counts the inverse of the RTT scaling, 100 ms / RTT, in eighths.
const SCALING: u64 = 8;
/// Its limits: 0.5 and 10.
const SCALING_LIMITS: (u64, u64) = (SCALING / 2, 10 * SCALING);

/// Parameters as in the algorithm spec.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    /// True if β adapts to the RTTs; else it is 0.5.
    adaptive_backoff: bool,
    /// True if a change of the throughput makes β 0.5 for two losses.
    bandwidth_switch: bool,
    /// True if the increase is in proportion to the RTT.
    rtt_scaling: bool,
    /// The kernel's clock.
    #[serde(rename = "tick_s")]
    tick: Time,
    slow_start: SlowStart,
}

/// An H-TCP sender's window.
#[derive(Clone, Copy, Debug)]
struct Htcp {
    parameters: Parameters,
    clock: JiffyClock,
    window: Window,
    /// α in 1/128.
    alpha_128: u64,
    /// β in 1/128.
    beta_128: u64,
    /// True if the loss before this one found a steady throughput.
    adapting: bool,
    /// Smallest RTT in ticks; 0 before the first sample.
    min_rtt: u64,
    /// Largest RTT in ticks, fading.
    max_rtt: u64,
    /// Tick from which Δ counts.
    epoch: u64,
    /// Its value before the last loss.
    epoch_before: u64,
    /// The previous ACK reported a hole.
    disordered: bool,
    /// A loss is being repaired: Δ will count from the end of that.
    in_loss: bool,
    throughput: Throughput,
}

/// Create the controller.
///
/// # Errors
/// Parameters other than the spec's, or a tick of no length.
pub fn make(parameters: &Value, initial_window: f64) -> Made {
    let parameters = Parameters::deserialize(parameters)?;
    let htcp = Htcp::new(parameters, initial_window)?;
    Ok(parameters.slow_start.control(htcp))
}

/// α(Δ) in whole segments, for `ticks` since the last loss at `hz` ticks per second.
fn alpha_of(ticks: u64, hz: u64) -> u64 {
    if ticks <= hz {
        return 1;
    }
    let beyond = ticks - hz;
    let half = beyond / 2;
    1 + (10 * beyond + half.saturating_mul(half) / hz) / hz
}

/// `alpha` times RTT / 100 ms, whole and at least 1.
fn scaled_by_rtt(alpha: u64, rtt: u64, hz: u64) -> u64 {
    let (least, most) = SCALING_LIMITS;
    let inverse = (SCALING * hz / (10 * rtt)).clamp(least, most);
    (SCALING * alpha / inverse).max(1)
}

impl Htcp {
    fn new(parameters: Parameters, initial_window: f64) -> Result<Htcp, serde_json::Error> {
        Ok(Htcp {
            parameters,
            clock: super::jiffy_clock(parameters.tick)?,
            window: Window::new(initial_window),
            alpha_128: ALPHA_BASE,
            beta_128: BETA_MIN,
            adapting: false,
            min_rtt: 0,
            max_rtt: 0,
            epoch: 0,
            epoch_before: 0,
            disordered: false,
            in_loss: false,
            throughput: Throughput::default(),
        })
    }

    /// Keep the smallest and the largest RTT.
    fn observe_rtt(&mut self, rtt: u64) {
        if self.min_rtt == 0 || rtt < self.min_rtt {
            self.min_rtt = rtt;
        }
        if self.window.is_open() && !self.disordered {
            self.max_rtt = self.max_rtt.max(self.min_rtt);
            if rtt <= self.max_rtt + self.clock.span(MAX_RTT_STEP) {
                self.max_rtt = self.max_rtt.max(rtt);
            }
        }
    }

    fn observe_throughput(&mut self, ack: &Ack, now: u64) {
        if !self.window.is_open() {
            self.throughput.begin(now);
            return;
        }
        let settled = now.saturating_sub(self.epoch) >= WARMUP_RTTS * self.min_rtt;
        let step = u64::from(self.window.cwnd()).checked_sub((self.alpha_128 / SCALE).max(1));
        self.throughput.count(u64::from(ack.cumulatively_acked));
        if let (Some(enough), true) = (step, self.min_rtt > 0) {
            let hz = self.clock.per_second();
            self.throughput
                .sample(now, enough, self.min_rtt, hz, settled);
        }
    }

    /// At a loss: β, α, and a fading memory of the largest RTT.
    fn update_parameters(&mut self, now: u64) {
        self.beta_128 = self.next_beta();
        self.update_alpha(now);
        if self.max_rtt > self.min_rtt {
            let distance = self.max_rtt - self.min_rtt;
            self.max_rtt = self.min_rtt + distance * MAX_RTT_KEPT / 100;
        }
    }

    fn next_beta(&mut self) -> u64 {
        if !self.parameters.adaptive_backoff {
            return BETA_MIN;
        }
        if self.parameters.bandwidth_switch && !self.throughput.is_steady() {
            self.adapting = false;
            return BETA_MIN;
        }
        let telling = self.min_rtt > self.clock.span(SHORT_RTT) && self.max_rtt > 0;
        if self.adapting && telling {
            (SCALE * self.min_rtt / self.max_rtt).clamp(BETA_MIN, BETA_MAX)
        } else {
            self.adapting = true;
            BETA_MIN
        }
    }

    /// 2 (1 − β) α(Δ), scaled by the RTT.
    fn update_alpha(&mut self, now: u64) {
        let hz = self.clock.per_second();
        let mut alpha = alpha_of(now.saturating_sub(self.epoch), hz);
        if self.parameters.rtt_scaling && self.min_rtt > 0 {
            alpha = scaled_by_rtt(alpha, self.min_rtt, hz);
        }
        self.alpha_128 = 2 * alpha * (SCALE - self.beta_128);
    }

    /// One segment more when α times what has been acknowledged has come to a window.
    fn avoid_congestion(&mut self, acked: u32, now: u64) {
        let credit = self.window.credit();
        let earned = u64::from(credit).saturating_mul(self.alpha_128) / SCALE;
        if earned >= u64::from(self.window.cwnd()) {
            self.window.buy(1, credit);
            self.update_alpha(now);
        } else {
            self.window.earn(acked);
        }
    }

    fn reduced(&self) -> u32 {
        (u64::from(self.window.cwnd()) * self.beta_128 / SCALE) as u32
    }

    fn begin_epoch(&mut self, now: u64) {
        self.epoch_before = self.epoch;
        self.epoch = now;
    }
}

impl Controller for Htcp {
    fn on_ack(&mut self, ack: &Ack) {
        let now = self.clock.at(ack.now);
        if let Some(rtt) = ack.rtt {
            self.observe_rtt(self.clock.span(rtt));
        }
        self.disordered = ack.has_sack;
        self.observe_throughput(ack, now);
        // The segments of the ACK that ends a repair count as one.
        let was_open = self.window.is_open();
        let may_grow = self.window.on_ack(ack);
        if self.in_loss && self.window.is_open() {
            self.in_loss = false;
            self.epoch = now;
        }
        if !may_grow {
            return;
        }
        if self.window.in_slow_start() {
            let _ = self.window.slow_start(ack.newly_acked);
        } else {
            let acked = if was_open { ack.cumulatively_acked } else { 1 };
            self.avoid_congestion(acked, now);
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        let now = self.clock.at(loss.now);
        self.update_parameters(now);
        self.window.reduce(self.reduced());
        self.begin_epoch(now);
        self.in_loss = true;
    }

    fn undo(&mut self, before: &PriorWindow) {
        self.window.undo(before);
        self.epoch = self.epoch_before;
        self.in_loss = false;
    }

    fn on_timeout(&mut self, now: Time, _in_flight: u32) {
        let now = self.clock.at(now);
        if !self.window.in_fast_recovery() {
            self.update_parameters(now);
        }
        self.window.restart(self.reduced());
        self.begin_epoch(now);
        self.in_loss = true;
    }

    fn on_restart(&mut self, restart: &Restart) {
        self.window.restart_after_idle(restart);
    }

    fn steer_slow_start(&mut self, steer: Steer) {
        self.window.steer_slow_start(steer);
    }

    fn cwnd(&self) -> f64 {
        self.window.cwnd().into()
    }

    fn ssthresh(&self) -> f64 {
        self.window.ssthresh()
    }
}

#[cfg(test)]
mod response_tests;
#[cfg(test)]
mod tests;
