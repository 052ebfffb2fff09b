//! $title: $summary
//!
//! After the prototype $file. (The paper or RFC that yours is written from belongs here.)
//!
//! Deviations: none yet. Until the formulas of the prototype are here, this is Reno (RFC 5681).

use ackclock_core::Time;
use serde::Deserialize;
use serde_json::Value;

use super::window::{delegate_to_window, Window};
use super::{Ack, Controller, Loss, Made};

/// Parameters as in the algorithm spec.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(dead_code)] // until the formulas are here
struct Parameters {
$fields}

/// A sender's window.
#[derive(Clone, Copy, Debug)]
#[allow(dead_code)] // until the formulas are here
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

$others
impl Controller for Control {
$on_ack
    fn on_ack(&mut self, ack: &Ack) {
        if self.window.on_ack(ack) {
            self.window.grow_as_reno(ack.newly_acked);
        }
    }

$on_loss
    fn on_loss(&mut self, _loss: &Loss) {
        self.window.reduce(self.window.cwnd() / 2);
    }

$on_timeout
    fn on_timeout(&mut self, _now: Time, _in_flight: u32) {
        self.window.restart(self.window.cwnd() / 2);
    }

    delegate_to_window!();
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_parameters_are_the_specs() {
        assert!(make(&json!($parameters), 10.0).is_ok());
        assert!(make(&json!({ "no_such_parameter": 1 }), 10.0).is_err());
    }
}
