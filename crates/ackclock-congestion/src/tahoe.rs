//! Tahoe: any loss is answered by slow start from one segment.
//!
//! V. Jacobson: Congestion avoidance and control, SIGCOMM 1988, section 3 and appendix B; fast retransmit came
//! with the code of 4.3BSD-Tahoe. The third duplicate ACK does what the timeout does: half the window
//! becomes the threshold, and everything outstanding is retransmitted in slow start. Fast recovery came later, with
//! Reno.
//!
//! ```text
//!              cwnd = ssthresh
//!   slow start ───────────────▶ congestion avoidance
//!      ▲ ▲ │ loss or timeout        │ loss or timeout
//!      │ └─┘                        │
//!      └────────────────────────────┘   ssthresh = cwnd/2, cwnd = 1
//! ```
//!
//! Deviations: windows are whole segments and growth counts acknowledged ones, as for Reno; the threshold is
//! half the congestion window, where the code took the smaller of it and the receiver's window. An
//! ECN mark, which came later, halves the window and no more (RFC 3168 section 6.1.2).

use ackclock_core::Time;
use serde::Deserialize;
use serde_json::Value;

use super::slow_start::SlowStart;
use super::window::{delegate_to_window, Window};
use super::{Ack, Controller, Loss, Made, RecoveryPolicy};

/// Parameters as in the algorithm spec.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    slow_start: SlowStart,
}

/// A Tahoe sender's window.
#[derive(Clone, Copy, Debug)]
struct Tahoe {
    window: Window,
}

/// Create the controller.
///
/// # Errors
/// Parameters other than the spec's.
pub fn make(parameters: &Value, initial_window: f64) -> Made {
    let Parameters { slow_start } = Parameters::deserialize(parameters)?;
    Ok(slow_start.control(Tahoe {
        window: Window::new(initial_window),
    }))
}

impl Controller for Tahoe {
    fn on_ack(&mut self, ack: &Ack) {
        if self.window.on_ack(ack) {
            self.window.grow_as_reno(ack.newly_acked);
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        let half = self.window.cwnd() / 2;
        if loss.marked {
            self.window.reduce(half);
        } else {
            self.window.restart(half);
        }
    }

    fn on_timeout(&mut self, _now: Time, _in_flight: u32) {
        self.window.restart(self.window.cwnd() / 2);
    }

    fn recovery_policy(&self) -> RecoveryPolicy {
        RecoveryPolicy::SlowStart
    }

    delegate_to_window!();
}

#[cfg(test)]
#[allow(clippy::float_cmp)] // windows are whole segments
mod tests {
    use super::super::window::testing::{ack, LOSS};
    use super::*;
    use serde_json::json;

    fn tahoe(initial_window: f64) -> Box<dyn Controller> {
        make(&json!({ "slow_start": "standard" }), initial_window).expect("the spec's parameters")
    }

    /// Acknowledge a whole window, segment by segment.
    fn round(controller: &mut dyn Controller) -> f64 {
        for _ in 0..controller.cwnd() as u32 {
            controller.on_ack(&Ack {
                in_loss: true,
                ..ack(Time::ZERO, 1)
            });
        }
        controller.cwnd()
    }

    #[test]
    fn a_loss_and_a_timeout_both_start_from_one_towards_half_the_window() {
        for timeout in [false, true] {
            let mut tahoe = tahoe(16.0);
            if timeout {
                tahoe.on_timeout(Time::ZERO, 16);
            } else {
                tahoe.on_loss(&LOSS);
            }
            assert_eq!((tahoe.cwnd(), tahoe.ssthresh()), (1.0, 8.0));
            for expected in [2.0, 4.0, 8.0, 9.0, 10.0] {
                assert_eq!(round(tahoe.as_mut()), expected);
            }
        }
    }

    #[test]
    fn a_loss_restarts_from_slow_start() {
        assert_eq!(tahoe(10.0).recovery_policy(), RecoveryPolicy::SlowStart);
    }

    #[test]
    fn a_second_loss_halves_the_threshold() {
        let mut tahoe = tahoe(16.0);
        tahoe.on_loss(&LOSS);
        round(tahoe.as_mut());
        assert_eq!(round(tahoe.as_mut()), 4.0);
        tahoe.on_loss(&LOSS);
        assert_eq!((tahoe.cwnd(), tahoe.ssthresh()), (1.0, 2.0));
    }

    #[test]
    fn a_mark_halves_only() {
        let mut tahoe = tahoe(16.0);
        tahoe.on_loss(&Loss {
            marked: true,
            ..LOSS
        });
        assert_eq!((tahoe.cwnd(), tahoe.ssthresh()), (8.0, 8.0));
    }

    #[test]
    fn parameters_are_rejected() {
        assert!(make(&json!({ "slow_start": "standard", "beta": 0.5 }), 10.0).is_err());
    }
}
