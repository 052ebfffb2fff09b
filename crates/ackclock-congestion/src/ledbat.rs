//! LEDBAT: a background transfer that keeps the queueing delay at a target and gives way to others.
//!
//! RFC 6817, section 2.4.2. Per ACK:
//!
//! ```text
//!   queueing delay = filter(last delays) − min(base delays)
//!   off_target     = (TARGET − queueing delay) / TARGET
//!   cwnd          += GAIN · off_target · acked / cwnd
//!   cwnd           = max(MIN_CWND, min(cwnd, flight size + ALLOWED_INCREASE))
//! ```
//!
//! The base delays are the smallest of each of the last minutes, so that a path that became longer is
//! noticed after so many minutes. The filter is the smallest of the last few delays. A loss halves
//! the window; a timeout makes it one segment. There is no slow start.
//!
//! Deviations: the delay is the RTT, where the RFC measures one way by timestamps: what waits on the way
//! of the ACKs counts too, and so may a delayed ACK. The initial window is the stack's, where the RFC
//! recommends two segments. The filter holds as many delays whatever the window, the RFC none older than an
//! RTT. The window does not change in fast recovery. After an idle time it comes down as
//! Reno's does.

use std::collections::VecDeque;

use ackclock_core::Time;
use serde::Deserialize;
use serde_json::Value;

use super::base_delay::BaseDelay;
use super::fractional_window::FractionalWindow;
use super::{require, Ack, Controller, Loss, Made, PriorWindow, Restart};

/// Most samples and minutes that are kept, whatever the parameters.
const MAX_WINDOW: u32 = 10_000;

/// Parameters as in the algorithm spec.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    /// TARGET: the queueing delay to keep.
    #[serde(rename = "target_s")]
    target: Time,
    /// GAIN: segments per round trip when there is no queue.
    gain: f64,
    /// `ALLOWED_INCREASE`: how far the window may be above what is in flight, in segments.
    allowed_increase: f64,
    /// `BASE_HISTORY`, in minutes.
    base_history: u32,
    /// `CURRENT_FILTER`, in samples.
    current_filter: u32,
    /// `MIN_CWND`, in segments.
    min_window: u32,
}

/// A LEDBAT sender's window.
#[derive(Clone, Debug)]
struct Ledbat {
    parameters: Parameters,
    window: FractionalWindow,
    base_delay: BaseDelay,
    /// The last delays.
    current_delays: VecDeque<Time>,
}

/// Create the controller.
///
/// # Errors
/// Parameters other than the spec's, or out of the range in which they make sense.
pub fn make(parameters: &Value, initial_window: f64) -> Made {
    let parameters = Parameters::deserialize(parameters)?;
    let Parameters {
        gain,
        allowed_increase,
        ..
    } = parameters;
    require(
        parameters.target > Time::ZERO && !parameters.target.is_never(),
        "target must be above 0",
    )?;
    require(
        gain > 0.0 && gain.is_finite() && allowed_increase > 0.0 && allowed_increase.is_finite(),
        "gain and allowed_increase must be above 0: the window would never grow",
    )?;
    let counts = [
        parameters.base_history,
        parameters.current_filter,
        parameters.min_window,
    ];
    require(
        counts.iter().all(|n| (1..=MAX_WINDOW).contains(n)),
        "base_history, current_filter and min_window must be between 1 and 10000",
    )?;
    Ok(Box::new(Ledbat {
        parameters,
        window: FractionalWindow::new(initial_window),
        base_delay: BaseDelay::new(parameters.base_history),
        current_delays: VecDeque::new(),
    }))
}

impl Ledbat {
    fn observe(&mut self, delay: Time, now: Time) {
        self.base_delay.update(delay, now);
        self.current_delays.push_back(delay);
        if self.current_delays.len() > self.parameters.current_filter as usize {
            self.current_delays.pop_front();
        }
    }

    /// Without a delay there is no queue known.
    fn queueing_delay(&self) -> Time {
        match (self.current_delays.iter().min(), self.base_delay.min()) {
            (Some(current), Some(base)) => current.since(base),
            _ => Time::ZERO,
        }
    }

    /// 1 without queue, 0 at the target, below it beyond.
    fn off_target(&self) -> f64 {
        1.0 - self.queueing_delay().seconds() / self.parameters.target.seconds()
    }

    fn min_delay(&self) -> f64 {
        f64::from(self.parameters.min_window)
    }
}

impl Controller for Ledbat {
    fn on_ack(&mut self, ack: &Ack) {
        if let Some(rtt) = ack.rtt {
            self.observe(rtt, ack.now);
        }
        let _ = self.window.on_ack(ack);
        if self.window.in_fast_recovery() || ack.newly_acked == 0 {
            return;
        }
        let cwnd = self.window.cwnd();
        let acked = f64::from(ack.newly_acked);
        let changed = cwnd + self.parameters.gain * self.off_target() * acked / cwnd;
        let most = f64::from(ack.prior_in_flight) + self.parameters.allowed_increase;
        self.window.set(changed.min(most).max(self.min_delay()));
    }

    fn on_loss(&mut self, _loss: &Loss) {
        let half = (self.window.cwnd() / 2.0).max(self.min_delay());
        self.window.reduce(half.min(self.window.cwnd()));
    }

    fn on_timeout(&mut self, _now: Time, _in_flight: u32) {
        self.window.restart(self.window.cwnd() / 2.0);
    }

    fn undo(&mut self, before: &PriorWindow) {
        self.window.undo(before);
    }

    fn on_restart(&mut self, restart: &Restart) {
        self.window.restart_after_idle(restart);
    }

    fn cwnd(&self) -> f64 {
        self.window.cwnd()
    }

    /// Return the window: there is no slow start.
    fn ssthresh(&self) -> f64 {
        self.window.cwnd().max(2.0)
    }
}

#[cfg(test)]
#[allow(clippy::float_cmp)] // sums of binary fractions
mod tests {
    use super::super::window::testing::{ack, recovering, LOSS};
    use super::*;
    use serde_json::json;

    fn card() -> Value {
        json!({
            "target_s": 0.1, "gain": 1.0, "allowed_increase": 1.0, "base_history": 3,
            "current_filter": 2, "min_window": 2,
        })
    }

    fn ledbat(initial_window: f64) -> Box<dyn Controller> {
        make(&card(), initial_window).expect("the card's parameters")
    }

    fn delayed(at_s: u64, rtt_ms: u64, acked: u32) -> Ack {
        Ack {
            rtt: Some(Time::from_milliseconds(rtt_ms)),
            prior_in_flight: 1000,
            ..ack(Time::from_milliseconds(1000 * at_s), acked)
        }
    }

    #[test]
    fn the_window_moves_by_how_far_the_delay_is_from_the_target() {
        // 16 + off_target · 8 / 16 with off_target = 1, ½, 0, −1.
        for (rtt_ms, expected) in [(50, 16.5), (100, 16.25), (150, 16.0), (250, 15.5)] {
            let mut ledbat = ledbat(16.0);
            ledbat.on_ack(&delayed(0, 50, 0));
            ledbat.on_ack(&delayed(0, rtt_ms, 0));
            ledbat.on_ack(&delayed(0, rtt_ms, 8));
            assert!((ledbat.cwnd() - expected).abs() < 1e-9, "{rtt_ms} ms");
        }
    }

    #[test]
    fn the_smallest_of_the_last_delays_counts() {
        let mut ledbat = ledbat(16.0);
        ledbat.on_ack(&delayed(0, 50, 0));
        ledbat.on_ack(&delayed(0, 150, 0));
        ledbat.on_ack(&delayed(0, 950, 8));
        assert!((ledbat.cwnd() - 16.0).abs() < 1e-9);
    }

    #[test]
    fn a_longer_path_is_the_base_after_the_history() {
        let mut ledbat = ledbat(16.0);
        ledbat.on_ack(&delayed(0, 50, 0));
        for at_s in [59, 60, 90, 119, 120] {
            ledbat.on_ack(&delayed(at_s, 150, 0));
        }
        ledbat.on_ack(&delayed(179, 150, 8));
        assert!((ledbat.cwnd() - 16.0).abs() < 1e-9, "50 ms are remembered");
        ledbat.on_ack(&delayed(180, 150, 8));
        assert!((ledbat.cwnd() - 16.5).abs() < 1e-9, "and forgotten");
    }

    #[test]
    fn a_shorter_path_updates_the_base_immediately() {
        let mut ledbat = ledbat(16.0);
        ledbat.on_ack(&delayed(0, 150, 0));
        ledbat.on_ack(&delayed(0, 50, 8));
        assert!((ledbat.cwnd() - 16.5).abs() < 1e-9);
        ledbat.on_ack(&delayed(0, 150, 0));
        ledbat.on_ack(&delayed(0, 150, 8));
        assert!(
            (ledbat.cwnd() - 16.5).abs() < 1e-9,
            "150 ms are 100 too many"
        );
    }

    #[test]
    fn the_window_is_between_two_and_one_above_the_flight() {
        let mut ledbat = ledbat(16.0);
        ledbat.on_ack(&Ack {
            prior_in_flight: 9,
            ..delayed(0, 50, 1)
        });
        assert_eq!(ledbat.cwnd(), 10.0);
        for _ in 0..20 {
            ledbat.on_ack(&delayed(0, 950, 8));
        }
        assert_eq!(ledbat.cwnd(), 2.0);
    }

    #[test]
    fn a_loss_halves_and_a_timeout_leaves_one() {
        let mut ledbat = ledbat(16.0);
        ledbat.on_loss(&LOSS);
        ledbat.on_ack(&recovering(Time::ZERO, 8));
        assert_eq!(ledbat.cwnd(), 8.0);
        ledbat.on_timeout(Time::ZERO, 8);
        assert_eq!(ledbat.cwnd(), 1.0);
    }

    #[test]
    fn invalid_parameters_are_rejected() {
        let with = |name: &str, value: Value| {
            let mut card = card();
            card[name] = value;
            make(&card, 10.0)
        };
        assert!(with("gain", json!(0.5)).is_ok());
        for (name, value) in [
            ("target_s", json!(0.0)),
            ("gain", json!(0.0)),
            ("allowed_increase", json!(-1.0)),
            ("base_history", json!(0)),
            ("current_filter", json!(0)),
            ("slow_start", json!(true)),
        ] {
            assert!(with(name, value).is_err(), "{name}");
        }
    }
}
