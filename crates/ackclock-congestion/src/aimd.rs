//! AIMD: so many segments more per round trip, a share of the window kept at a loss.
//!
//! D.-M. Chiu, R. Jain: Analysis of the increase and decrease algorithms for congestion avoidance in computer
//! networks, Computer Networks and ISDN Systems 17(1), 1989, section 3. With RFC 5681's notation:
//!
//! ```text
//!   per acknowledged segment:  cwnd + step            in slow start
//!                              cwnd + increase/cwnd   else: `increase` per round trip
//!   per loss:                  β · cwnd
//! ```
//!
//! Reno is AIMD(1, 0.5) with a step of 1. A step of 32 is the AIMD of table 2.2 in Le Thi Lan Huong: Congestion
//! control in cloud datacenter by bandwidth adaptation, thesis, National Chiao Tung University, 2011, whose slow
//! start reads cwnd = cwnd + 32; the table's first row, TCP's cwnd = cwnd + 1, tells that this is per ACK. Its row
//! STCP (cwnd + 0.01 cwnd, and 7/8 kept) has Scalable TCP's growth by a hundredth of the window per round
//! trip, that is a step of 0.01 per ACK; the table gives it in slow start, and Reno's increase after that.
//!
//! Deviations: slow start before the first loss and after a timeout, which Chiu and Jain do not have.
//! Growth counts acknowledged segments and not ACKs (RFC 3465), so delayed ACKs do not slow it down.

use ackclock_core::Time;
use serde::Deserialize;
use serde_json::Value;

use super::fractional_window::FractionalWindow;
use super::slow_start::SlowStart;
use super::window::delegate_to_window;
use super::{require, Ack, Controller, Loss, Made};

/// Parameters as in the algorithm spec.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    /// Segments more per round trip.
    increase: f64,
    /// The share of the window that is kept at a loss.
    beta: f64,
    /// Segments more per acknowledged segment in slow start.
    slow_start_step: f64,
    slow_start: SlowStart,
}

/// The window of an AIMD sender.
#[derive(Clone, Copy, Debug)]
struct Aimd {
    parameters: Parameters,
    window: FractionalWindow,
}

/// Create the controller.
///
/// # Errors
/// Parameters other than the spec's, an increase or a step ≤ 0, or β outside (0, 1).
pub fn make(parameters: &Value, initial_window: f64) -> Made {
    let parameters = Parameters::deserialize(parameters)?;
    let above_zero = |value: f64| value > 0.0 && value.is_finite();
    require(
        above_zero(parameters.increase) && above_zero(parameters.slow_start_step),
        "increase and slow_start_step must be above 0: the window would never grow",
    )?;
    require(
        parameters.beta > 0.0 && parameters.beta < 1.0,
        "beta, the share of the window that is kept, must be between 0 and 1",
    )?;
    Ok(parameters.slow_start.control(Aimd {
        parameters,
        window: FractionalWindow::new(initial_window),
    }))
}

impl Aimd {
    /// The window that is left after a loss.
    fn decreased(&self) -> f64 {
        self.parameters.beta * self.window.cwnd()
    }
}

impl Controller for Aimd {
    fn on_ack(&mut self, ack: &Ack) {
        if !self.window.on_ack(ack) {
            return;
        }
        let Parameters {
            increase,
            slow_start_step,
            ..
        } = self.parameters;
        let acked = self
            .window
            .slow_start(ack.newly_acked.into(), slow_start_step);
        let cwnd = self.window.cwnd();
        self.window.set(cwnd + increase * acked / cwnd);
    }

    fn on_loss(&mut self, _loss: &Loss) {
        self.window.reduce(self.decreased());
    }

    fn on_timeout(&mut self, _now: Time, _in_flight: u32) {
        self.window.restart(self.decreased());
    }

    delegate_to_window!();
}

#[cfg(test)]
#[allow(clippy::float_cmp)] // sums of binary fractions
mod tests {
    use super::super::window::testing::{ack, recovering, LOSS};
    use super::*;
    use serde_json::json;

    fn aimd(increase: f64, beta: f64, slow_start_step: f64) -> Box<dyn Controller> {
        let card = json!({ "increase": increase, "beta": beta, "slow_start_step": slow_start_step, "slow_start": "standard" });
        make(&card, 16.0).expect("the card's parameters")
    }

    #[test]
    fn slow_start_adds_the_step_for_each_acknowledged_segment() {
        for (step, expected) in [(1.0, 19.0), (32.0, 112.0), (0.25, 16.75)] {
            let mut aimd = aimd(1.0, 0.5, step);
            aimd.on_ack(&ack(Time::ZERO, 3));
            assert_eq!(aimd.cwnd(), expected);
        }
    }

    #[test]
    fn a_loss_keeps_beta_and_an_ack_adds_increase_over_cwnd() {
        let mut aimd = aimd(2.0, 0.75, 1.0);
        aimd.on_loss(&LOSS);
        assert_eq!((aimd.cwnd(), aimd.ssthresh()), (12.0, 12.0));
        aimd.on_ack(&recovering(Time::ZERO, 6));
        assert_eq!(aimd.cwnd(), 12.0);
        aimd.on_ack(&ack(Time::ZERO, 3));
        assert_eq!(aimd.cwnd(), 12.5);
        aimd.on_ack(&ack(Time::ZERO, 5));
        assert_eq!(aimd.cwnd(), 13.3, "12.5 + 2 · 5 / 12.5");
    }

    #[test]
    fn chiu_and_jain_many_losses_lead_to_increase_over_one_minus_beta() {
        // One loss each n rounds: w = β (w + n · increase), whatever it starts from.
        let mut aimd = aimd(3.0, 0.8, 1.0);
        aimd.on_loss(&LOSS);
        for _ in 0..60 {
            for _ in 0..10 {
                let cwnd = aimd.cwnd();
                aimd.on_ack(&ack(Time::ZERO, cwnd as u32));
            }
            aimd.on_loss(&LOSS);
        }
        let expected = 0.8 * 10.0 * 3.0 / (1.0 - 0.8);
        assert!(
            (aimd.cwnd() / expected - 1.0).abs() < 0.01,
            "{}",
            aimd.cwnd()
        );
    }

    #[test]
    fn the_response_function() {
        // A segment of each 1/p is lost: the window goes from β w to w in (1 − β) w / increase rounds, in which
        // 1/p segments are sent. Its mean is √(increase (1 + β) / (2 (1 − β) p)).
        for (increase, beta) in [(1.0, 0.5), (0.2, 0.875), (2.0, 0.8)] {
            for p in [1e-3, 1e-4] {
                let mut aimd = aimd(increase, beta, 1.0);
                let (mut segments, mut rounds) = (0.0, 0.0);
                for loss in 0..60 {
                    aimd.on_loss(&LOSS);
                    for _ in 0..(1.0 / p) as u32 {
                        aimd.on_ack(&ack(Time::ZERO, 1));
                        if loss >= 30 {
                            segments += 1.0;
                            rounds += 1.0 / aimd.cwnd();
                        }
                    }
                }
                let expected = (increase * (1.0 + beta) / (2.0 * (1.0 - beta) * p)).sqrt();
                let mean: f64 = segments / rounds;
                assert!((mean / expected - 1.0).abs() < 0.02, "{mean} {expected}");
            }
        }
    }

    #[test]
    fn a_timeout_restarts_from_one_and_the_slow_start_remainder_counts() {
        let mut aimd = aimd(1.0, 0.5, 1.0);
        aimd.on_timeout(Time::ZERO, 16);
        assert_eq!((aimd.cwnd(), aimd.ssthresh()), (1.0, 8.0));
        aimd.on_ack(&ack(Time::ZERO, 7 + 4));
        assert_eq!(aimd.cwnd(), 8.5);
    }

    #[test]
    fn invalid_parameters_are_rejected() {
        for (increase, beta, step) in [
            (0.0, 0.5, 1.0),
            (1.0, 1.0, 1.0),
            (1.0, 0.0, 1.0),
            (1.0, 0.5, 0.0),
        ] {
            let card = json!({ "increase": increase, "beta": beta, "slow_start_step": step, "slow_start": "standard" });
            assert!(make(&card, 10.0).is_err());
        }
        assert!(make(
            &json!({ "increase": 1.0, "beta": 0.5, "slow_start": "standard" }),
            10.0
        )
        .is_err());
    }
}
