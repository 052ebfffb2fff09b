//! Compound TCP: Reno's window plus a second one that delay takes back.
//!
//! M. Sridharan, K. Tan, D. Bansal, D. Thaler: Compound TCP: a new TCP CCA for high-speed and
//! long distance networks, draft-sridharan-tcpm-ctcp-02, 2008; K. Tan, J. Song, Q. Zhang, M. Sridharan: A
//! Compound TCP approach for high-speed and long distance networks, INFOCOM 2006.
//! The window is win = cwnd + dwnd. cwnd is Reno's, but grows by 1/win per acknowledged segment, so by one
//! segment per round trip at most. dwnd changes once per round trip:
//!
//! ```text
//!   diff = win · (1 − baseRTT/RTT)                the packets of the flow that wait in the queue
//!   dwnd + (α win^k − 1)⁺                         diff < γ
//!   (dwnd − η diff)⁺                              diff ≥ γ
//!   (win (1 − β) − cwnd/2)⁺                       at a loss
//! ```
//!
//! so that win grows by α win^k in a round trip without queue, and keeps 1 − β at a loss.
//!
//! Our reading where the draft leaves it open: RTT is the smallest of the round, so that delayed ACKs do not
//! count as queue; below the low window dwnd does not grow, but shrinks with the queue; γ is not tuned (the
//! tuning by emulation of the draft's appendix is left out). dwnd is zero in slow start, and a timeout
//! makes it zero. Windows are fractions of segments; growth counts acknowledged segments.

use ackclock_core::Time;
use serde::Deserialize;
use serde_json::Value;

use super::detector::Steer;
use super::fractional_window::FractionalWindow;
use super::round::Round;
use super::slow_start::SlowStart;
use super::{require, Ack, Controller, Loss, Made, PriorWindow, Restart};

/// Parameters as in the algorithm spec.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    /// α: growth of the window in a round trip is α win^k.
    alpha: f64,
    /// β: the share of the window that a loss takes.
    beta: f64,
    /// k.
    k: f64,
    /// η: how much of the queue dwnd gives up in a round trip.
    eta: f64,
    /// γ: packets in the queue from which on dwnd shrinks.
    gamma: f64,
    /// Window from which on dwnd may grow, in segments.
    low_window: f64,
    slow_start: SlowStart,
}

/// A Compound sender's windows.
#[derive(Clone, Copy, Debug)]
struct Compound {
    parameters: Parameters,
    /// Reno's part.
    window: FractionalWindow,
    /// The delay's part.
    dwnd: f64,
    base_rtt: Time,
    /// The round being measured; none in fast recovery.
    round: Option<Round>,
}

/// Create the controller.
///
/// # Errors
/// Parameters other than the spec's, or out of the range in which they make sense.
pub fn make(parameters: &Value, initial_window: f64) -> Made {
    let parameters = Parameters::deserialize(parameters)?;
    let Parameters { alpha, beta, k, .. } = parameters;
    let Parameters {
        eta,
        gamma,
        low_window,
        ..
    } = parameters;
    let not_negative = |value: f64| value >= 0.0 && value.is_finite();
    require(
        [alpha, eta, gamma, low_window]
            .into_iter()
            .all(not_negative),
        "alpha, eta, gamma and low_window must not be negative",
    )?;
    require(
        beta > 0.0 && beta < 1.0 && k > 0.0 && k < 1.0,
        "beta and k must be between 0 and 1",
    )?;
    Ok(parameters.slow_start.control(Compound {
        parameters,
        window: FractionalWindow::new(initial_window),
        dwnd: 0.0,
        base_rtt: Time::NEVER,
        round: None,
    }))
}

impl Compound {
    fn win(&self) -> f64 {
        self.window.cwnd() + self.dwnd
    }

    fn observe(&mut self, rtt: Time) {
        self.base_rtt = self.base_rtt.min(rtt);
        if let Some(round) = &mut self.round {
            round.sample(rtt);
        }
    }

    /// Once per round trip in congestion avoidance.
    fn adjust_dwnd(&mut self, rtt: Time) {
        let Parameters {
            alpha,
            k,
            eta,
            gamma,
            low_window,
            ..
        } = self.parameters;
        let win = self.win();
        let diff = win * (1.0 - self.base_rtt.seconds() / rtt.seconds());
        if diff >= gamma {
            self.dwnd = (self.dwnd - eta * diff).max(0.0);
        } else if win >= low_window {
            self.dwnd += (alpha * win.powf(k) - 1.0).max(0.0);
        }
    }

    fn grow(&mut self, acked: u32) {
        let acked = self.window.slow_start(acked.into(), 1.0);
        self.window.set(self.window.cwnd() + acked / self.win());
    }
}

impl Controller for Compound {
    fn on_ack(&mut self, ack: &Ack) {
        if let Some(rtt) = ack.rtt {
            self.observe(rtt);
        }
        let may_grow = self.window.on_ack(ack);
        if self.window.in_fast_recovery() {
            self.round = None;
            return;
        }
        let round = *self.round.get_or_insert(Round::after(ack));
        if may_grow {
            self.grow(ack.newly_acked);
        }
        if round.is_over(ack) {
            self.round = Some(Round::after(ack));
            if may_grow && round.samples() > 0 && !self.window.in_slow_start() {
                self.adjust_dwnd(round.min_rtt());
            }
        }
    }

    fn on_loss(&mut self, _loss: &Loss) {
        let kept = self.win() * (1.0 - self.parameters.beta);
        let half = self.window.cwnd() / 2.0;
        self.window.reduce(half);
        self.dwnd = (kept - half).max(0.0);
        self.round = None;
    }

    fn on_timeout(&mut self, _now: Time, _in_flight: u32) {
        self.window.restart(self.win() / 2.0);
        self.dwnd = 0.0;
        self.round = None;
    }

    /// Undo a reduction: Reno's part takes the whole restored window.
    fn undo(&mut self, before: &PriorWindow) {
        self.dwnd = 0.0;
        self.window.undo(before);
    }

    fn on_restart(&mut self, restart: &Restart) {
        self.window.restart_after_idle(restart);
        if restart.now.since(restart.idle_since) > restart.rto {
            self.dwnd = 0.0;
        }
    }

    /// Without a loss the delay's part is still 0.
    fn steer_slow_start(&mut self, steer: Steer) {
        self.window.steer_slow_start(steer);
    }

    fn cwnd(&self) -> f64 {
        self.win()
    }

    /// Reno's threshold with the delay's part on top, as the window has it.
    fn ssthresh(&self) -> f64 {
        self.window.ssthresh() + self.dwnd
    }
}

#[cfg(test)]
#[allow(clippy::float_cmp)] // powers of two
mod tests {
    use super::super::window::testing::{ack, recovering, LOSS};
    use super::*;
    use serde_json::json;

    fn compound(cwnd: f64, dwnd: f64) -> Compound {
        let card = json!({
            "slow_start": "standard", "alpha": 0.125, "beta": 0.5, "k": 0.75, "eta": 1.0, "gamma": 30.0, "low_window": 38.0,
        });
        let mut window = FractionalWindow::new(cwnd);
        window.end_slow_start();
        Compound {
            parameters: Parameters::deserialize(card).expect("the card's parameters"),
            window,
            dwnd,
            base_rtt: Time::from_milliseconds(100),
            round: None,
        }
    }

    /// A round of the whole window without growth of cwnd, then the evaluation of the RTT.
    fn update_delay_window(compound: &mut Compound, rtt_ms: u64) {
        compound.round = Some(Round::until(10));
        compound.on_ack(&Ack {
            rtt: Some(Time::from_milliseconds(rtt_ms)),
            unacknowledged: 11,
            next: 300,
            ..ack(Time::ZERO, 0)
        });
    }

    #[test]
    fn without_queue_the_window_grows_by_alpha_win_to_the_k() {
        // 256^¾ / 8 = 8: one of them is Reno's.
        let mut growing = compound(200.0, 56.0);
        update_delay_window(&mut growing, 100);
        assert_eq!(growing.dwnd, 56.0 + 7.0);
        growing.on_ack(&Ack {
            unacknowledged: 12,
            ..ack(Time::ZERO, 263)
        });
        assert_eq!(growing.window.cwnd(), 201.0, "one segment per round trip");
        assert_eq!(growing.cwnd(), 264.0);
    }

    #[test]
    fn with_gamma_packets_in_the_queue_dwnd_gives_them_up() {
        // 160 · (1 − 100/128) = 35 ≥ 30.
        let mut shrinking = compound(100.0, 60.0);
        update_delay_window(&mut shrinking, 128);
        assert_eq!(shrinking.dwnd, 25.0);
        // 125 · (1 − 100/125) = 25 < 30: it grows.
        let mut growing = compound(100.0, 25.0);
        update_delay_window(&mut growing, 125);
        assert!(growing.dwnd > 25.0);
        let mut empty = compound(157.0, 3.0);
        update_delay_window(&mut empty, 128);
        assert_eq!(empty.dwnd, 0.0, "never below zero");
    }

    #[test]
    fn below_the_low_window_dwnd_does_not_grow() {
        let mut low = compound(37.9, 0.0);
        update_delay_window(&mut low, 100);
        assert_eq!(low.dwnd, 0.0);
        let mut high = compound(38.0, 0.0);
        update_delay_window(&mut high, 100);
        assert!((high.dwnd - (38.0_f64.powf(0.75) / 8.0 - 1.0)).abs() < 1e-12);
    }

    #[test]
    fn a_loss_halves_both() {
        let mut compound = compound(100.0, 156.0);
        compound.on_loss(&LOSS);
        assert_eq!((compound.window.cwnd(), compound.dwnd), (50.0, 78.0));
        compound.on_ack(&recovering(Time::ZERO, 9));
        assert_eq!((compound.cwnd(), compound.ssthresh()), (128.0, 128.0));
    }

    #[test]
    fn a_timeout_leaves_slow_start_of_reno() {
        let mut compound = compound(20.0, 44.0);
        compound.on_timeout(Time::ZERO, 64);
        assert_eq!((compound.cwnd(), compound.ssthresh()), (1.0, 32.0));
        compound.on_ack(&ack(Time::ZERO, 15));
        assert_eq!(compound.cwnd(), 16.0);
    }

    #[test]
    fn slow_start_has_no_delay_window() {
        let mut compound = compound(100.0, 0.0);
        compound.window = FractionalWindow::new(100.0);
        update_delay_window(&mut compound, 100);
        assert_eq!(compound.dwnd, 0.0);
    }

    #[test]
    fn invalid_parameters_are_rejected() {
        let card = |name: &str, value: f64| {
            let mut card = json!({ "slow_start": "standard",
                "alpha": 0.125, "beta": 0.5, "k": 0.75, "eta": 1.0, "gamma": 30.0, "low_window": 38.0,
            });
            card[name] = json!(value);
            make(&card, 10.0)
        };
        assert!(card("k", 0.8).is_ok());
        for (name, value) in [("beta", 1.0), ("k", 1.5), ("gamma", -1.0), ("zeta", 1.0)] {
            assert!(card(name, value).is_err(), "{name}");
        }
    }
}
