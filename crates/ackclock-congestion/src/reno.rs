//! Reno: additive increase by one segment per round trip, halving at a loss.
//!
//! RFC 5681: slow start and congestion avoidance (section 3.1). Fast retransmit, fast recovery and
//! RFC 6582's partial ACKs are the sender's.
//!
//! Deviations, all as Linux does it (`tcp_cong.c`):
//! - Windows are whole segments; congestion avoidance counts acknowledged segments and adds one to the
//!   window when it has been acknowledged once (equation 3 adds 1/cwnd per ACK).
//! - Slow start grows by the number of segments that an ACK acknowledges, without RFC 5681's limit of
//!   one per ACK (equation 2); what exceeds ssthresh counts for congestion avoidance.
//! - ssthresh at a loss is half the window; equation 4 takes half the data in flight. They differ
//!   for a sender that did not fill its window.
//! - A timeout in fast recovery does not lower ssthresh again.

use ackclock_core::Time;
use serde::Deserialize;
use serde_json::Value;

use super::slow_start::SlowStart;
use super::window::{delegate_to_window, Window};
use super::{Ack, Controller, Loss, Made};

/// Parameters as in the algorithm spec.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    slow_start: SlowStart,
}

/// A Reno sender's window.
#[derive(Clone, Copy, Debug)]
struct Reno {
    window: Window,
}

/// Create the controller.
///
/// # Errors
/// Parameters other than the spec's.
pub fn make(parameters: &Value, initial_window: f64) -> Made {
    let Parameters { slow_start } = Parameters::deserialize(parameters)?;
    Ok(slow_start.control(Reno {
        window: Window::new(initial_window),
    }))
}

impl Controller for Reno {
    fn on_ack(&mut self, ack: &Ack) {
        if self.window.on_ack(ack) {
            self.window.grow_as_reno(ack.newly_acked);
        }
    }

    fn on_loss(&mut self, _loss: &Loss) {
        self.window.reduce(self.window.cwnd() / 2);
    }

    fn on_timeout(&mut self, _now: Time, _in_flight: u32) {
        self.window.restart(self.window.cwnd() / 2);
    }

    delegate_to_window!();
}

#[cfg(test)]
#[allow(clippy::float_cmp)] // windows are whole segments
mod tests {
    use super::super::window::testing::{ack, recovering, round, LOSS};
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn reno(initial_window: f64) -> Box<dyn Controller> {
        make(&json!({ "slow_start": "standard" }), initial_window).expect("the spec's parameters")
    }

    #[test]
    fn slow_start_doubles_each_round_however_the_receiver_acknowledges() {
        for per_ack in 1..=3 {
            let mut reno = reno(10.0);
            for expected in [20.0, 40.0, 80.0] {
                round(reno.as_mut(), per_ack);
                assert_eq!(reno.cwnd(), expected);
            }
            assert_eq!(reno.ssthresh(), f64::INFINITY);
        }
    }

    #[test]
    fn a_loss_halves_and_each_round_adds_one() {
        let mut reno = reno(21.0);
        reno.on_loss(&LOSS);
        assert_eq!((reno.cwnd(), reno.ssthresh()), (10.0, 10.0));
        reno.on_ack(&recovering(Time::ZERO, 5));
        assert_eq!(reno.cwnd(), 10.0);
        for expected in [11.0, 12.0, 13.0] {
            round(reno.as_mut(), 2);
            assert_eq!(reno.cwnd(), expected);
        }
    }

    #[test]
    fn a_timeout_starts_from_one_and_slow_start_ends_at_half() {
        let mut reno = reno(16.0);
        reno.on_timeout(Time::ZERO, 16);
        assert_eq!((reno.cwnd(), reno.ssthresh()), (1.0, 8.0));
        for expected in [2.0, 4.0, 8.0, 9.0, 10.0] {
            round(reno.as_mut(), 1);
            assert_eq!(reno.cwnd(), expected);
        }
    }

    #[test]
    fn the_slow_start_remainder_counts_in_congestion_avoidance() {
        let mut reno = reno(16.0);
        reno.on_timeout(Time::ZERO, 16);
        reno.on_ack(&ack(Time::ZERO, 7 + 5));
        assert_eq!(reno.cwnd(), 8.0);
        reno.on_ack(&ack(Time::ZERO, 3));
        assert_eq!(reno.cwnd(), 9.0);
    }

    #[test]
    fn parameters_are_rejected() {
        assert!(make(&json!({ "slow_start": "standard", "beta": 0.5 }), 10.0).is_err());
    }

    /// A step of a random history.
    #[derive(Clone, Copy, Debug)]
    enum Step {
        Ack(u32, bool, bool),
        Loss,
        Timeout,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            10 => (0_u32..50, any::<bool>(), any::<bool>()).prop_map(|(n, l, r)| Step::Ack(n, l, r)),
            1 => Just(Step::Loss),
            1 => Just(Step::Timeout),
        ]
    }

    proptest! {
        #[test]
        fn the_window_is_between_one_and_the_acknowledged_segments(
            steps in proptest::collection::vec(step(), 0..300),
        ) {
            let mut reno = reno(10.0);
            let mut acked = 0;
            for step in steps {
                match step {
                    Step::Ack(newly_acked, window_limited, recovering) => {
                        acked += newly_acked;
                        reno.on_ack(&Ack {
                            window_limited,
                            recovering,
                            ..ack(Time::ZERO, newly_acked)
                        });
                    }
                    Step::Loss => reno.on_loss(&LOSS),
                    Step::Timeout => reno.on_timeout(Time::ZERO, 10),
                }
                prop_assert!(reno.cwnd() >= 1.0 && reno.cwnd() <= f64::from(10 + acked));
                prop_assert!(reno.ssthresh() >= 2.0);
            }
        }
    }
}
