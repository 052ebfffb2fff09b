//! Vegas: keeps a few packets in the queue, estimated from the excess of the RTT over its minimum.
//!
//! L. S. Brakmo, L. L. Peterson: TCP Vegas: End to End Congestion Avoidance on a Global Internet, IEEE
//! JSAC 13(8), 1995, section III.B, as Linux 6.1 behaves (`tcp_vegas.c`). Once per round trip
//!
//! ```text
//!   diff = cwnd · (RTT − BaseRTT) / BaseRTT
//!   diff < α: cwnd + 1;    α ≤ diff ≤ β: as it is;    diff > β: cwnd − 1
//!   in slow start, diff > γ: cwnd = cwnd · BaseRTT / RTT + 1, and slow start is over
//! ```
//!
//! where RTT is the smallest of the round (so that delayed ACKs do not count) and `BaseRTT` the smallest
//! ever.
//!
//! Where Linux departs from the paper, and this file with it:
//! - diff is the packets in the queue, cwnd · (RTT − `BaseRTT`) / RTT, times `RTT/BaseRTT`; the paper
//!   compares the packets. The two differ where the queue is not short against the path.
//! - Slow start doubles each round trip, not each other one.
//! - Loss is found and repaired as for Reno, and halves the window; the paper's own check of the first
//!   ACKs after a retransmission, and its decrease by a quarter, are left out.
//! - A round with two RTT samples or fewer is not evaluated (they may all be of delayed ACKs): its last ACK
//!   counts as for Reno.
//! - Rounds are not measured in fast recovery; the first begins when it ends, as one does at the end of the
//!   repair after a timeout. A timeout and an idle time forget `BaseRTT`.
//! - The window grows whether or not the sender filled it, but in Reno's rounds.
//!
//! Deviations from Linux: RTTs are not rounded to microseconds; a single reordered segment does not
//! interrupt the round.

use ackclock_core::Time;
use serde::Deserialize;
use serde_json::Value;

use super::round::Round;
use super::window::Window;
use super::{require, Ack, Controller, Loss, Made, PriorWindow, Restart};

/// Minimum RTT samples of a round: two may both be of delayed ACKs.
const MIN_SAMPLES: u32 = 3;
/// Smallest window, so that a delayed ACK does not stop the clock.
const MIN_CWND: u32 = 2;

/// Parameters as in the algorithm spec, in packets.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    /// Fewer than these in the queue: the window grows.
    alpha: u32,
    /// More than these: it shrinks.
    beta: u32,
    /// More than these: slow start ends.
    gamma: u32,
}

/// A Vegas sender's window.
#[derive(Clone, Copy, Debug)]
struct Vegas {
    parameters: Parameters,
    window: Window,
    /// The path's RTT without queue, as far as it is known.
    base_rtt: Option<Time>,
    /// The round being measured; none in fast recovery.
    round: Option<Round>,
    /// True if the last ACK came in the repair after a timeout.
    in_loss: bool,
}

/// Create the controller.
///
/// # Errors
/// Parameters other than the spec's, α = 0, or α > β.
pub fn make(parameters: &Value, initial_window: f64) -> Made {
    let parameters = Parameters::deserialize(parameters)?;
    require(
        parameters.alpha > 0,
        "alpha must be at least 1: with 0 the window never grows",
    )?;
    require(
        parameters.alpha <= parameters.beta,
        "alpha, the least number of packets in the queue, must not be above beta, the largest",
    )?;
    Ok(Box::new(Vegas {
        parameters,
        window: Window::new(initial_window),
        base_rtt: None,
        round: Some(Round::until(0)),
        in_loss: false,
    }))
}

/// ⌊cwnd (RTT − `BaseRTT`) / `BaseRTT`⌋.
fn diff(cwnd: u32, rtt: Time, base_rtt: Time) -> u32 {
    let queueing = rtt.since(base_rtt).picoseconds();
    let base = base_rtt.picoseconds().max(1);
    (u128::from(cwnd) * u128::from(queueing) / u128::from(base)) as u32
}

/// ⌊cwnd · `BaseRTT` / RTT⌋: the window that the path holds without queue.
fn without_queue(cwnd: u32, rtt: Time, base_rtt: Time) -> u32 {
    let rtt = rtt.picoseconds().max(1);
    (u128::from(cwnd) * u128::from(base_rtt.picoseconds()) / u128::from(rtt)) as u32
}

impl Vegas {
    fn observe(&mut self, rtt: Time) {
        self.base_rtt = Some(self.base_rtt.map_or(rtt, |base_rtt| base_rtt.min(rtt)));
        if let Some(round) = &mut self.round {
            round.sample(rtt);
        }
    }

    /// End a round: evaluate the queue, or grow like Reno without enough samples.
    fn end_round(&mut self, round: &Round, ack: &Ack, filled: bool) {
        match self.base_rtt {
            Some(base_rtt) if round.samples() >= MIN_SAMPLES => {
                self.adjust(round.min_rtt(), base_rtt, ack.newly_acked);
                self.window.set(self.window.cwnd().max(MIN_CWND));
                self.window.remember();
            }
            _ if filled => self.window.grow_as_reno(ack.newly_acked),
            _ => {}
        }
    }

    fn adjust(&mut self, rtt: Time, base_rtt: Time, acked: u32) {
        let cwnd = self.window.cwnd();
        let diff = diff(cwnd, rtt, base_rtt);
        if self.window.in_slow_start() {
            if diff > self.parameters.gamma {
                let target = without_queue(cwnd, rtt, base_rtt).saturating_add(1);
                self.window.set(cwnd.min(target));
                self.window.lower_threshold();
            } else {
                let _ = self.window.slow_start(acked);
            }
        } else if diff > self.parameters.beta {
            self.window.set(cwnd - 1);
            self.window.lower_threshold();
        } else if diff < self.parameters.alpha {
            self.window.set(cwnd.saturating_add(1));
        }
    }
}

impl Controller for Vegas {
    fn on_ack(&mut self, ack: &Ack) {
        if let Some(rtt) = ack.rtt {
            self.observe(rtt);
        }
        let filled = self.window.on_ack(ack);
        let repaired = self.in_loss && !ack.in_loss;
        self.in_loss = ack.in_loss;
        if repaired || self.window.in_fast_recovery() {
            self.round = None;
        }
        if self.window.in_fast_recovery() {
            return;
        }
        let round = *self.round.get_or_insert(Round::after(ack));
        if !ack.may_raise_cwnd {
            return;
        }
        if round.is_over(ack) {
            self.round = Some(Round::after(ack));
            self.end_round(&round, ack, filled);
        } else if self.window.in_slow_start() {
            let _ = self.window.slow_start(ack.newly_acked);
        }
    }

    fn on_loss(&mut self, _loss: &Loss) {
        self.round = None;
        self.window.reduce(self.window.cwnd() / 2);
    }

    fn on_timeout(&mut self, _now: Time, _in_flight: u32) {
        self.round = None;
        self.base_rtt = None;
        self.window.restart(self.window.cwnd() / 2);
    }

    fn undo(&mut self, before: &PriorWindow) {
        self.window.undo(before);
    }

    fn on_restart(&mut self, restart: &Restart) {
        self.round = Some(Round::until(0));
        self.base_rtt = None;
        self.window.restart_after_idle(restart);
    }

    fn cwnd(&self) -> f64 {
        f64::from(self.window.cwnd())
    }

    fn ssthresh(&self) -> f64 {
        self.window.ssthresh()
    }
}

#[cfg(test)]
mod tests;
