//! $title: additive increase by one segment per round trip; a loss leaves the share `beta` of the window.
//!
//! RFC 5681, section 3.1, with another `beta`. (The paper or RFC that yours is written from belongs here.)
//!
//! Deviations: windows are whole segments; a segment is added when a window has been acknowledged.

use ackclock_core::Time;
use serde::Deserialize;
use serde_json::Value;

use super::window::{delegate_to_window, Window};
use super::{Ack, Controller, Loss, Made};

/// Parameters as in the algorithm spec.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    /// The share of the window that a loss leaves.
    beta: f64,
}

/// A sender's window.
#[derive(Clone, Copy, Debug)]
struct Control {
    parameters: Parameters,
    window: Window,
}

/// Makes the controller.
///
/// # Errors
/// Parameters other than those of the algorithm spec.
pub fn make(parameters: &Value, initial_window: f64) -> Made {
    Ok(Box::new(Control {
        parameters: Parameters::deserialize(parameters)?,
        window: Window::new(initial_window),
    }))
}

impl Control {
    /// The window that is left after a loss.
    fn decreased(&self) -> u32 {
        (self.cwnd() * self.parameters.beta) as u32
    }
}

impl Controller for Control {
    fn on_ack(&mut self, ack: &Ack) {
        if self.window.on_ack(ack) {
            self.window.grow_as_reno(ack.newly_acked);
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
    use super::super::window::testing::{round, LOSS};
    use super::*;
    use serde_json::json;

    #[test]
    fn a_loss_leaves_beta_and_a_round_adds_a_segment() {
        let made = make(&json!({ "beta": 0.8 }), 20.0);
        let mut control = made.expect("the spec's parameters");
        control.on_loss(&LOSS);
        assert_eq!(control.cwnd(), 16.0);
        round(control.as_mut(), 2);
        assert_eq!(control.cwnd(), 17.0);
    }

    #[test]
    fn other_parameters_are_rejected() {
        assert!(make(&json!({}), 10.0).is_err());
    }
}
