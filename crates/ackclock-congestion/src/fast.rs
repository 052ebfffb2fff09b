//! FAST TCP: the window at which α packets of the flow wait in the queue, approached from where it is.
//!
//! C. Jin, D. X. Wei, S. H. Low: FAST TCP: motivation, architecture, algorithms, performance, INFOCOM 2004,
//! equation 10:
//!
//! ```text
//!   w ← min( 2w, (1 − γ) w + γ (baseRTT/RTT · w + α) )
//! ```
//!
//! In equilibrium w (1 − baseRTT/RTT) = α. The window is changed in one round trip, bit by bit, and
//! frozen in the next, so that the RTTs show what the last change did. RTT is an average with the
//! weight min(3/w, 1/4) for a sample.
//!
//! Our reading where the paper is silent: RFC 5681's slow start before the first update; it ends when more than α
//! packets wait. A loss halves the window, as the paper's prototype did. Growth counts acknowledged segments.
//! Deviation: the change is spread over the round trip in proportion to what is acknowledged, not in
//! equal steps per time.

use ackclock_core::Time;
use serde::Deserialize;
use serde_json::Value;

use super::fractional_window::FractionalWindow;
use super::round::Round;
use super::{require, Ack, Controller, Loss, Made, PriorWindow, Restart};

/// Most weight of an RTT sample in the average.
const MAX_WEIGHT: f64 = 0.25;
/// The average's memory is a third of a window.
const SAMPLES_PER_WINDOW: f64 = 3.0;

/// Parameters as in the algorithm spec.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    /// α: packets to keep in the queue.
    alpha: f64,
    /// γ: the share of the way to the target that one update goes.
    gamma: f64,
}

/// A FAST sender's window.
#[derive(Clone, Copy, Debug)]
struct Fast {
    parameters: Parameters,
    window: FractionalWindow,
    base_rtt: Time,
    /// Seconds; none before the first sample.
    average_rtt_s: Option<f64>,
    /// The current round trip; none in fast recovery.
    round: Option<Round>,
    /// The change of this round trip, if it is one of change.
    change: Option<Change>,
}

/// A change of the window in progress.
#[derive(Clone, Copy, Debug)]
struct Change {
    from: f64,
    to: f64,
}

/// Create the controller.
///
/// # Errors
/// Parameters other than the spec's, α ≤ 0, or γ outside (0, 1].
pub fn make(parameters: &Value, initial_window: f64) -> Made {
    let parameters = Parameters::deserialize(parameters)?;
    require(
        parameters.alpha > 0.0 && parameters.alpha.is_finite(),
        "alpha, the packets to keep in the queue, must be above 0",
    )?;
    require(
        parameters.gamma > 0.0 && parameters.gamma <= 1.0,
        "gamma must be above 0 and at most 1",
    )?;
    Ok(Box::new(Fast::new(parameters, initial_window)))
}

impl Fast {
    fn new(parameters: Parameters, initial_window: f64) -> Fast {
        Fast {
            parameters,
            window: FractionalWindow::new(initial_window),
            base_rtt: Time::NEVER,
            average_rtt_s: None,
            round: None,
            change: None,
        }
    }

    fn observe(&mut self, rtt: Time) {
        self.base_rtt = self.base_rtt.min(rtt);
        let weight = (SAMPLES_PER_WINDOW / self.window.cwnd()).min(MAX_WEIGHT);
        let average_s = self.average_rtt_s.unwrap_or(rtt.seconds());
        self.average_rtt_s = Some(average_s + weight * (rtt.seconds() - average_s));
    }

    /// baseRTT/RTT, 1 without a sample.
    fn share_without_queue(&self) -> f64 {
        self.average_rtt_s
            .map_or(1.0, |rtt_s| self.base_rtt.seconds() / rtt_s)
    }

    /// Equation 10.
    fn target(&self) -> f64 {
        let Parameters { alpha, gamma } = self.parameters;
        let w = self.window.cwnd();
        let wanted = self.share_without_queue() * w + alpha;
        (2.0 * w).min((1.0 - gamma) * w + gamma * wanted)
    }

    /// A round trip ends: one of change follows one of rest.
    fn turn(&mut self) {
        self.change = match self.change {
            None => Some(Change {
                from: self.window.cwnd(),
                to: self.target(),
            }),
            Some(change) => {
                self.window.set(change.to);
                None
            }
        };
    }

    /// Continue the change, if there is one.
    fn approach(&mut self, acked: f64) {
        let Some(Change { from, to }) = self.change else {
            return;
        };
        let moved = self.window.cwnd() + (to - from) * acked / from;
        self.window.set(if to > from {
            moved.min(to)
        } else {
            moved.max(to)
        });
    }

    fn start_slowly(&mut self, acked: f64) {
        let _ = self.window.slow_start(acked, 1.0);
        let waiting = self.window.cwnd() * (1.0 - self.share_without_queue());
        if waiting > self.parameters.alpha {
            self.window.end_slow_start();
        }
    }
}

impl Controller for Fast {
    fn on_ack(&mut self, ack: &Ack) {
        if let Some(rtt) = ack.rtt {
            self.observe(rtt);
        }
        let may_grow = self.window.on_ack(ack);
        if self.window.in_fast_recovery() {
            self.round = None;
            return;
        }
        let acked = f64::from(ack.newly_acked);
        if self.window.in_slow_start() {
            if may_grow {
                self.start_slowly(acked);
            }
            return;
        }
        let round = *self.round.get_or_insert(Round::after(ack));
        if may_grow {
            self.approach(acked);
        }
        if round.is_over(ack) {
            self.round = Some(Round::after(ack));
            if may_grow {
                self.turn();
            }
        }
    }

    fn on_loss(&mut self, _loss: &Loss) {
        self.round = None;
        self.change = None;
        self.window.reduce(self.window.cwnd() / 2.0);
    }

    fn on_timeout(&mut self, _now: Time, _in_flight: u32) {
        self.round = None;
        self.change = None;
        self.window.restart(self.window.cwnd() / 2.0);
    }

    fn undo(&mut self, before: &PriorWindow) {
        self.window.undo(before);
    }

    fn on_restart(&mut self, restart: &Restart) {
        if restart.now.since(restart.idle_since) > restart.rto {
            // A window of two segments has nothing in flight for a moment in each round trip.
            self.round = None;
            self.change = None;
        }
        self.window.restart_after_idle(restart);
    }

    fn cwnd(&self) -> f64 {
        self.window.cwnd()
    }

    fn ssthresh(&self) -> f64 {
        self.window.ssthresh()
    }
}

#[cfg(test)]
#[allow(clippy::float_cmp)] // sums of binary fractions
mod tests {
    use super::super::window::testing::{ack, recovering, LOSS};
    use super::*;
    use serde_json::json;

    fn fast(alpha: f64, gamma: f64, cwnd: f64, base_ms: u64, average_s: f64) -> Fast {
        let mut fast = Fast::new(Parameters { alpha, gamma }, cwnd);
        fast.window.end_slow_start();
        fast.base_rtt = Time::from_milliseconds(base_ms);
        fast.average_rtt_s = Some(average_s);
        fast
    }

    /// An ACK that ends a round, without a sample.
    fn end_round(fast: &mut Fast, acked: u32) {
        fast.round = Some(Round::until(10));
        fast.on_ack(&Ack {
            unacknowledged: 11,
            next: 10,
            ..ack(Time::ZERO, acked)
        });
    }

    #[test]
    fn equation_10() {
        // Without queue: half of α more. With a quarter of the RTT in the queue: 75 of 100 fit, and α.
        assert_eq!(fast(20.0, 0.5, 100.0, 100, 0.1).target(), 110.0);
        assert!((fast(20.0, 0.5, 100.0, 75, 0.1).target() - 97.5).abs() < 1e-9);
        assert!((fast(20.0, 1.0, 100.0, 75, 0.1).target() - 95.0).abs() < 1e-9);
        assert_eq!(
            fast(200.0, 0.5, 40.0, 100, 0.1).target(),
            80.0,
            "at most double"
        );
        // α packets wait: nothing changes.
        assert!((fast(25.0, 0.5, 100.0, 75, 0.1).target() - 100.0).abs() < 1e-9);
    }

    #[test]
    fn the_window_changes_in_one_round_and_rests_in_the_next() {
        let mut fast = fast(20.0, 0.5, 100.0, 100, 0.1);
        end_round(&mut fast, 1);
        assert_eq!(fast.cwnd(), 100.0);
        for expected in [102.5, 105.0, 107.5, 110.0, 110.0] {
            fast.on_ack(&ack(Time::ZERO, 25));
            assert_eq!(fast.cwnd(), expected);
        }
        end_round(&mut fast, 1);
        for _ in 0..8 {
            fast.on_ack(&ack(Time::ZERO, 25));
        }
        assert_eq!(fast.cwnd(), 110.0, "at rest");
        end_round(&mut fast, 1);
        fast.on_ack(&ack(Time::ZERO, 200));
        assert_eq!(fast.cwnd(), 120.0);
    }

    #[test]
    fn only_an_idle_time_of_a_timeout_forgets_the_round() {
        for (idle_ms, expected) in [(1, 102.5), (1001, 100.0)] {
            let mut fast = fast(20.0, 0.5, 100.0, 100, 0.1);
            end_round(&mut fast, 1);
            fast.on_restart(&Restart {
                now: Time::from_milliseconds(2000),
                idle_since: Time::from_milliseconds(2000 - idle_ms),
                rto: Time::from_milliseconds(1000),
                initial_window: 200,
            });
            fast.on_ack(&ack(Time::ZERO, 25));
            assert_eq!(fast.cwnd(), expected, "idle for {idle_ms} ms");
        }
    }

    #[test]
    fn the_average_remembers_a_third_of_a_window() {
        let mut fast = fast(20.0, 0.5, 100.0, 100, 0.1);
        fast.observe(Time::from_milliseconds(200));
        assert!((fast.average_rtt_s.expect("a sample") - 0.103).abs() < 1e-12);
        fast.window.set(6.0);
        fast.average_rtt_s = Some(0.1);
        fast.observe(Time::from_milliseconds(200));
        assert!((fast.average_rtt_s.expect("a sample") - 0.125).abs() < 1e-12);
    }

    #[test]
    fn slow_start_ends_when_more_than_alpha_packets_wait() {
        let mut fast = Fast::new(
            Parameters {
                alpha: 10.0,
                gamma: 0.5,
            },
            10.0,
        );
        let rtt = |ms: u64, acked: u32| Ack {
            rtt: Some(Time::from_milliseconds(ms)),
            ..ack(Time::ZERO, acked)
        };
        fast.on_ack(&rtt(100, 10));
        fast.on_ack(&rtt(100, 20));
        assert_eq!((fast.cwnd(), fast.ssthresh()), (40.0, f64::INFINITY));
        for _ in 0..40 {
            fast.on_ack(&rtt(150, 1));
        }
        assert!(!fast.window.in_slow_start());
        assert!(fast.cwnd() < 60.0, "{}", fast.cwnd());
    }

    #[test]
    fn a_loss_halves() {
        let mut fast = fast(20.0, 0.5, 100.0, 100, 0.1);
        fast.on_loss(&LOSS);
        fast.on_ack(&recovering(Time::ZERO, 10));
        assert_eq!(fast.cwnd(), 50.0);
        fast.on_timeout(Time::ZERO, 50);
        assert_eq!((fast.cwnd(), fast.ssthresh()), (1.0, 50.0));
    }

    #[test]
    fn invalid_parameters_are_rejected() {
        for (alpha, gamma) in [(0.0, 0.5), (20.0, 0.0), (20.0, 1.5)] {
            assert!(make(&json!({ "alpha": alpha, "gamma": gamma }), 10.0).is_err());
        }
        assert!(make(&json!({ "alpha": 20.0 }), 10.0).is_err());
    }
}
