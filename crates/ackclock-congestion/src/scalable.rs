//! Scalable TCP: the window grows by a share of itself per round trip and comes down by another.
//!
//! T. Kelly: Scalable TCP: improving performance in highspeed wide area networks, ACM SIGCOMM Computer
//! Communication Review 33(2), 2003, as Linux 6.1 behaves (`tcp_scalable.c`):
//!
//! ```text
//!   for each acknowledged segment   cwnd ← cwnd + a        a = 0.01
//!   at a loss                       cwnd ← cwnd − b cwnd   b = 0.125
//! ```
//!
//! So a round trip multiplies the window by 1 + a, and the time between two losses, −log(1 − b)/log(1 + a)
//! round trips, is the same at any window: 13.4 of them.
//!
//! Where Linux departs from the paper, and this file with it:
//! - Windows are whole segments: one more for each 1/a acknowledged ones.
//! - A window below 1/a segments is Reno's in its increase, at least a segment per round trip; the decrease is
//!   b all the same. The paper has a `legacy window` below which Reno's decrease applies, too.
//! - b of the window is rounded down to whole segments.

use ackclock_core::Time;
use serde::Deserialize;
use serde_json::Value;

use super::slow_start::SlowStart;
use super::window::{delegate_to_window, Window};
use super::{require, Ack, Controller, Loss, Made};

/// Parameters as in the algorithm spec.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    /// a: segments per acknowledged segment.
    a: f64,
    /// b: the share of the window that is given up at a loss.
    b: f64,
    slow_start: SlowStart,
}

/// A Scalable sender's window.
#[derive(Clone, Copy, Debug)]
struct Scalable {
    /// 1/a: acknowledged segments per increment at most.
    per_increment: u32,
    b: f64,
    window: Window,
}

/// Create the controller.
///
/// # Errors
/// Parameters other than the spec's, a outside (0, 1], or b outside (0, 1).
pub fn make(parameters: &Value, initial_window: f64) -> Made {
    let Parameters { a, b, slow_start } = Parameters::deserialize(parameters)?;
    require(
        a > 0.0 && a <= 1.0,
        "a, the segments that an acknowledged segment adds, must be above 0 and at most 1",
    )?;
    require(
        b > 0.0 && b < 1.0,
        "b, the share of the window that is given up, must be between 0 and 1",
    )?;
    Ok(slow_start.control(Scalable {
        per_increment: (1.0 / a).round() as u32,
        b,
        window: Window::new(initial_window),
    }))
}

impl Scalable {
    fn reduced(&self) -> u32 {
        let cwnd = self.window.cwnd();
        cwnd - (self.b * f64::from(cwnd)) as u32
    }
}

impl Controller for Scalable {
    fn on_ack(&mut self, ack: &Ack) {
        if !self.window.on_ack(ack) {
            return;
        }
        let left = self.window.slow_start(ack.newly_acked);
        if left > 0 {
            let per_increment = self.per_increment.min(self.window.cwnd());
            self.window.additive_increase(per_increment, left);
        }
    }

    fn on_loss(&mut self, _loss: &Loss) {
        self.window.reduce(self.reduced());
    }

    fn on_timeout(&mut self, _now: Time, _in_flight: u32) {
        self.window.restart(self.reduced());
    }

    delegate_to_window!();
}

#[cfg(test)]
#[allow(clippy::float_cmp)] // windows are whole segments
mod tests {
    use super::super::window::testing::{ack, LOSS};
    use super::*;
    use serde_json::json;

    fn scalable(initial_window: f64) -> Box<dyn Controller> {
        make(
            &json!({ "a": 0.01, "b": 0.125, "slow_start": "standard" }),
            initial_window,
        )
        .expect("the card's parameters")
    }

    fn acknowledge(controller: &mut dyn Controller, segments: u32) {
        for _ in 0..segments {
            controller.on_ack(&ack(Time::ZERO, 1));
        }
    }

    #[test]
    fn a_loss_gives_up_an_eighth_and_each_hundred_segments_add_one() {
        let mut scalable = scalable(1000.0);
        scalable.on_loss(&LOSS);
        assert_eq!((scalable.cwnd(), scalable.ssthresh()), (875.0, 875.0));
        acknowledge(scalable.as_mut(), 99);
        assert_eq!(scalable.cwnd(), 875.0);
        acknowledge(scalable.as_mut(), 1);
        assert_eq!(scalable.cwnd(), 876.0);
        acknowledge(scalable.as_mut(), 800);
        assert_eq!(scalable.cwnd(), 884.0);
    }

    #[test]
    fn a_window_below_a_hundred_grows_by_a_segment_per_round_trip() {
        let mut scalable = scalable(30.0);
        scalable.on_loss(&LOSS);
        assert_eq!(scalable.cwnd(), 27.0, "30 less 3: an eighth, rounded down");
        for expected in [28.0, 29.0, 30.0] {
            let window = scalable.cwnd() as u32;
            acknowledge(scalable.as_mut(), window);
            assert_eq!(scalable.cwnd(), expected);
        }
    }

    #[test]
    fn a_timeout_starts_from_one_and_remembers_seven_eighths() {
        let mut scalable = scalable(800.0);
        scalable.on_timeout(Time::ZERO, 800);
        assert_eq!((scalable.cwnd(), scalable.ssthresh()), (1.0, 700.0));
        scalable.on_ack(&ack(Time::ZERO, 699 + 100));
        assert_eq!(scalable.cwnd(), 701.0, "what slow start leaves over counts");
    }

    /// Average window and round trips per loss when each `1/p`-th segment is lost.
    fn periodic_loss(p: f64) -> (f64, f64) {
        let mut scalable = scalable(0.08 / p);
        scalable.on_loss(&LOSS);
        let (mut segments, mut rounds) = (0.0, 0.0);
        for loss in 0..100 {
            if loss == 50 {
                (segments, rounds) = (0.0, 0.0);
            }
            for _ in 0..(1.0 / p) as u64 {
                rounds += 1.0 / scalable.cwnd();
                segments += 1.0;
                scalable.on_ack(&ack(Time::ZERO, 1));
            }
            scalable.on_loss(&LOSS);
        }
        (segments / rounds, rounds / 50.0)
    }

    #[test]
    fn the_window_is_as_the_inverse_of_the_loss_rate() {
        // Between two losses 1/p segments bring a/p segments of window, which are b of the largest one:
        // W = a / (b p), its time 1/a × ln(1 / (1 − b)) = 13.35 round trips, so the average is
        // a / (p ln(1 / (1 − b))) = 0.0749 / p. (The paper's section 3 has 0.08 / p, from the largest.)
        for p in [1e-4, 1e-5] {
            let (window, rounds) = periodic_loss(p);
            assert!(
                (window * p / 0.0749 - 1.0).abs() < 0.01,
                "p = {p}: {window}"
            );
            assert!((rounds / 13.35 - 1.0).abs() < 0.01, "{rounds}");
        }
    }

    #[test]
    fn invalid_parameters_are_rejected() {
        for (a, b) in [
            (0.0, 0.1),
            (2.0, 0.1),
            (0.01, 0.0),
            (0.01, 1.0),
            (-1.0, 0.5),
        ] {
            assert!(
                make(&json!({ "a": a, "b": b, "slow_start": "standard" }), 10.0).is_err(),
                "{a} {b}"
            );
        }
        assert!(make(&json!({ "a": 0.01, "slow_start": "standard" }), 10.0).is_err());
    }
}
