//! General AIMD: `increase` segments more per round trip, the share `beta` of the window kept at a loss.
//!
//! D.-M. Chiu, R. Jain: Analysis of the increase and decrease algorithms for congestion avoidance in
//! computer networks, Computer Networks and ISDN Systems 17(1), 1989. Reno is AIMD(1, 0.5).
//!
//! Deviations: slow start before the first loss and after a timeout, as RFC 5681 has it; the paper
//! has none. Windows are whole segments.

use ackclock_core::Time;
use serde::Deserialize;
use serde_json::Value;

use super::window::{delegate_to_window, Window};
use super::{Ack, Controller, Loss, Made};

/// Parameters as in the algorithm spec.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    /// Segments more per round trip.
    increase: f64,
    /// The share of the window that is kept at a loss.
    beta: f64,
}

/// The window of a GAIMD sender.
#[derive(Clone, Copy, Debug)]
struct Gaimd {
    parameters: Parameters,
    window: Window,
}

/// Makes the controller.
///
/// # Errors
/// Parameters other than those of the algorithm spec.
pub fn make(parameters: &Value, initial_window: f64) -> Made {
    Ok(Box::new(Gaimd {
        parameters: Parameters::deserialize(parameters)?,
        window: Window::new(initial_window),
    }))
}

impl Gaimd {
    /// The window that is left after a loss.
    fn decreased(&self) -> u32 {
        (self.cwnd() * self.parameters.beta) as u32
    }

    /// Acknowledged segments that buy one segment more.
    fn per_increment(&self) -> u32 {
        ((self.cwnd() / self.parameters.increase) as u32).max(1)
    }
}

impl Controller for Gaimd {
    fn on_ack(&mut self, ack: &Ack) {
        if !self.window.on_ack(ack) {
            return;
        }
        let left = self.window.slow_start(ack.newly_acked);
        if left > 0 {
            self.window.additive_increase(self.per_increment(), left);
        }
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
#[allow(clippy::float_cmp)] // windows are whole segments
mod tests {
    use super::super::window::testing::{ack, LOSS};
    use super::*;
    use serde_json::json;

    fn gaimd(increase: f64, beta: f64) -> Box<dyn Controller> {
        make(&json!({ "increase": increase, "beta": beta }), 20.0).expect("the spec's parameters")
    }

    #[test]
    fn a_loss_keeps_beta_and_a_round_adds_the_increase() {
        let mut gaimd = gaimd(2.0, 0.8);
        gaimd.on_loss(&LOSS);
        assert_eq!(gaimd.cwnd(), 16.0);
        gaimd.on_ack(&ack(Time::ZERO, 16));
        assert_eq!(gaimd.cwnd(), 18.0);
    }

    #[test]
    fn other_parameters_are_rejected() {
        assert!(make(&json!({ "increase": 1.0 }), 10.0).is_err());
    }
}
