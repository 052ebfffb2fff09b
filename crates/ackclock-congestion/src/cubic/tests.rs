//! The curve, its regions and its parameters.

// Windows are whole segments, so comparing them exactly is meant.
#![allow(clippy::float_cmp)]

pub use super::super::window::testing::LOSS;
use super::super::window::testing::{ack, recovering};
use super::*;
use serde_json::json;

/// The algorithm spec's defaults with some parameters changed, and no `HyStart` unless asked for.
pub fn parameters(changes: &Value) -> Value {
    let mut parameters = json!({
        "c": 0.4, "beta": 0.7, "fast_convergence": true, "reno_friendly": true,
        "reno_catch_up": false, "slow_start": "standard", "delayed_ack_correction": true, "whole_segments": true, "tick_s": 0.004,
    });
    for (name, value) in changes.as_object().expect("an object") {
        parameters[name] = value.clone();
    }
    parameters
}

pub fn cubic(initial_window: f64, changes: &Value) -> Cubic {
    let read = Parameters::deserialize(parameters(changes)).expect("the card's parameters");
    Cubic::new(read.common, read.tick, initial_window, Stepwise).expect("valid parameters")
}

/// A path without queue: a window's ACKs are spread evenly over each round trip.
pub struct AckClock {
    pub now_s: f64,
    rtt_s: f64,
    per_ack: u32,
}

impl AckClock {
    pub fn new(rtt_s: f64) -> AckClock {
        AckClock {
            now_s: 1.0,
            rtt_s,
            per_ack: 1,
        }
    }

    fn now(&self) -> Time {
        Time::from_seconds(self.now_s)
    }

    /// The next ACK.
    pub fn tick(&mut self, cubic: &mut Cubic) {
        self.now_s += self.rtt_s * f64::from(self.per_ack) / cubic.cwnd();
        cubic.on_ack(&Ack {
            rtt: Some(Time::from_seconds(self.rtt_s)),
            srtt: Time::from_seconds(self.rtt_s),
            ..ack(self.now(), self.per_ack)
        });
    }

    fn run_until(&mut self, cubic: &mut Cubic, end_s: f64) {
        while self.now_s < end_s {
            self.tick(cubic);
        }
    }
}

#[test]
fn a_loss_keeps_beta_rounded_to_segments_min_two() {
    for (beta, cwnd, kept) in [
        (0.7, 100, 70),
        (0.7, 90, 63),
        (0.7, 123, 86),
        (0.8, 100, 79),
        (0.7, 2, 2),
    ] {
        let mut cubic = cubic(f64::from(cwnd), &json!({ "beta": beta }));
        cubic.on_loss(&LOSS);
        assert_eq!(
            (cubic.cwnd(), cubic.ssthresh()),
            (f64::from(kept), f64::from(kept)),
            "{cwnd}"
        );
    }
}

#[test]
fn the_window_follows_the_curve_within_a_segment() {
    let rtt_s = 0.1;
    let mut cubic = cubic(1000.0, &json!({ "reno_friendly": false }));
    let mut clock = AckClock::new(rtt_s);
    cubic.on_loss(&LOSS);
    let k_s = f64::cbrt(300.0 / 0.4);
    clock.tick(&mut cubic);
    let start_s = clock.now_s;
    while clock.now_s < start_s + 1.5 * k_s {
        clock.tick(&mut cubic);
        let curve = |t_s: f64| 1000.0 + 0.4 * (t_s - k_s).powi(3);
        let t_s = clock.now_s - start_s;
        let (below, above) = (curve(t_s) - 1.0, curve(t_s + rtt_s) + 1.0);
        let cwnd = cubic.cwnd();
        assert!(
            below <= cwnd && cwnd <= above,
            "at {t_s} s: {cwnd} not in {below} to {above}"
        );
    }
}

#[test]
fn the_window_is_back_at_w_max_after_k() {
    for w_max in [300.0, 1000.0, 5000.0] {
        let mut cubic = cubic(w_max, &json!({ "reno_friendly": false }));
        let mut clock = AckClock::new(0.05);
        cubic.on_loss(&LOSS);
        clock.tick(&mut cubic);
        let start_s = clock.now_s;
        // The target is one segment short of the plateau from a distance of less than two on.
        let reached_s = f64::cbrt((w_max - cubic.cwnd()) / 0.4) - f64::cbrt(2.0 / 0.4);
        while cubic.cwnd() < w_max - 1.0 {
            clock.tick(&mut cubic);
        }
        assert!(
            (clock.now_s - start_s - reached_s).abs() < 0.15,
            "{w_max}: {}",
            clock.now_s - start_s
        );
    }
}

#[test]
fn at_small_windows_it_grows_like_a_reno_of_the_same_average() {
    let mut cubic = cubic(60.0, &json!({}));
    let mut clock = AckClock::new(0.01);
    cubic.on_loss(&LOSS);
    clock.tick(&mut cubic);
    let start_s = clock.now_s;
    clock.run_until(&mut cubic, start_s + 0.6);
    // 60 round trips at one segment per 1.875 of them, from 42.
    assert!(
        (cubic.cwnd() - (42.0 + 60.0 / 1.875)).abs() <= 2.0,
        "{}",
        cubic.cwnd()
    );
}

#[test]
fn with_catch_up_w_est_grows_like_reno_above_the_prior_window() {
    let grown = |reno_catch_up: bool| {
        let mut cubic = cubic(60.0, &json!({ "reno_catch_up": reno_catch_up }));
        let mut clock = AckClock::new(0.01);
        cubic.on_loss(&LOSS);
        while cubic.cwnd() < 61.0 {
            clock.tick(&mut cubic);
        }
        let start_s = clock.now_s;
        clock.run_until(&mut cubic, start_s + 0.3);
        cubic.cwnd() - 61.0
    };
    assert!((grown(true) - 30.0).abs() <= 1.0, "{}", grown(true));
    assert!((grown(false) - 16.0).abs() <= 1.0, "{}", grown(false));
}

#[test]
fn fast_convergence_gives_way_after_a_loss_below_the_last_one() {
    let w_max = |fast_convergence: bool| {
        let mut cubic = cubic(100.0, &json!({ "fast_convergence": fast_convergence }));
        cubic.on_loss(&LOSS);
        assert_eq!(cubic.w_max, 100);
        cubic.on_loss(&LOSS);
        cubic.w_max
    };
    assert_eq!(w_max(true), 59, "70 × (1 + 0.7) / 2");
    assert_eq!(w_max(false), 70);
}

#[test]
fn before_the_first_loss_it_grows_by_5_percent_per_round_trip() {
    let mut cubic = cubic(1000.0, &json!({}));
    cubic.window.end_slow_start();
    let mut clock = AckClock::new(0.1);
    clock.run_until(&mut cubic, 1.1);
    assert!((cubic.cwnd() - 1050.0).abs() <= 2.0, "{}", cubic.cwnd());
}

#[test]
fn it_never_grows_by_more_than_half_per_round_trip() {
    let mut cubic = cubic(10.0, &json!({}));
    cubic.on_loss(&LOSS);
    cubic.w_max = 10_000;
    let mut clock = AckClock::new(1.0);
    for _ in 0..5 {
        let (cwnd, start_s) = (cubic.cwnd(), clock.now_s);
        clock.run_until(&mut cubic, start_s + 1.0);
        assert!(
            cubic.cwnd() <= 1.65 * cwnd + 1.0,
            "{} after {cwnd}",
            cubic.cwnd()
        );
    }
    assert!(
        cubic.cwnd() > 40.0,
        "and it does use that: {}",
        cubic.cwnd()
    );
}

#[test]
fn without_correction_an_ack_of_two_segments_counts_as_one() {
    let grown = |delayed_ack_correction: bool, per_ack: u32| {
        let mut cubic = cubic(
            60.0,
            &json!({ "delayed_ack_correction": delayed_ack_correction }),
        );
        let mut clock = AckClock {
            per_ack,
            ..AckClock::new(0.01)
        };
        cubic.on_loss(&LOSS);
        clock.run_until(&mut cubic, 1.6);
        cubic.cwnd() - 42.0
    };
    assert!((grown(true, 2) - grown(true, 1)).abs() <= 1.0);
    assert!((grown(false, 1) - grown(true, 1)).abs() <= 1.0);
    assert!(
        (2.0 * grown(false, 2) - grown(true, 2)).abs() <= 2.0,
        "{}",
        grown(false, 2)
    );
}

#[test]
fn without_correction_slow_start_grows_by_one_per_ack() {
    let mut cubic = cubic(10.0, &json!({ "delayed_ack_correction": false }));
    cubic.on_ack(&ack(Time::ZERO, 2));
    assert_eq!(cubic.cwnd(), 11.0);
}

#[test]
fn recovery_does_not_grow_the_window() {
    let mut cubic = cubic(100.0, &json!({}));
    cubic.on_loss(&LOSS);
    for milliseconds in 0..1000 {
        cubic.on_ack(&recovering(Time::from_milliseconds(milliseconds), 10));
    }
    assert_eq!(cubic.cwnd(), 70.0);
    assert!(cubic.epoch.is_none(), "the epoch starts after recovery");
}

#[test]
fn a_timeout_starts_from_one_segment_and_forgets_the_curve() {
    let mut cubic = cubic(100.0, &json!({}));
    cubic.on_loss(&LOSS);
    let mut clock = AckClock::new(0.1);
    clock.run_until(&mut cubic, 2.0);
    cubic.on_timeout(clock.now(), 50);
    assert_eq!(cubic.cwnd(), 1.0);
    assert!(
        cubic.ssthresh() >= 49.0 && cubic.ssthresh() < 70.0,
        "{}",
        cubic.ssthresh()
    );
    assert_eq!((cubic.w_max, cubic.min_rtt), (0, None));
    assert!(cubic.epoch.is_none());
}

#[test]
fn the_curve_pauses_while_the_application_is_idle() {
    let after_idle = |idle_s: f64| {
        let mut cubic = cubic(1000.0, &json!({ "reno_friendly": false }));
        let mut clock = AckClock::new(0.1);
        cubic.on_loss(&LOSS);
        clock.run_until(&mut cubic, 2.0);
        let idle_since = clock.now();
        clock.now_s += idle_s;
        cubic.on_restart(&Restart {
            now: clock.now(),
            idle_since,
            rto: Time::NEVER,
            initial_window: 10,
        });
        let end_s = clock.now_s + 3.0;
        clock.run_until(&mut cubic, end_s);
        cubic.cwnd()
    };
    assert!(
        (after_idle(30.0) - after_idle(0.0)).abs() <= 1.0,
        "{}",
        after_idle(30.0)
    );
}

#[test]
fn rtts_of_an_epochs_first_second_do_not_count() {
    let mut cubic = cubic(100.0, &json!({}));
    let sample = |cubic: &mut Cubic, at_ms: u64, rtt_ms: u64| {
        cubic.on_ack(&Ack {
            rtt: Some(Time::from_milliseconds(rtt_ms)),
            ..ack(Time::from_milliseconds(at_ms), 1)
        });
        cubic.min_rtt
    };
    assert_eq!(sample(&mut cubic, 0, 80), Some(Time::from_milliseconds(80)));
    cubic.on_loss(&LOSS);
    // The first sample still comes before the epoch.
    assert_eq!(
        sample(&mut cubic, 10, 70),
        Some(Time::from_milliseconds(70))
    );
    assert_eq!(
        sample(&mut cubic, 1009, 60),
        Some(Time::from_milliseconds(70))
    );
    assert_eq!(
        sample(&mut cubic, 1010, 50),
        Some(Time::from_milliseconds(50))
    );
}

#[test]
fn wrong_parameters_are_rejected() {
    for changes in [
        json!({ "beta": 0.0 }),
        json!({ "beta": 1.0 }),
        json!({ "beta": 717 }),
        json!({ "beta": -0.2 }),
        json!({ "c": 0.0 }),
        json!({ "c": -0.4 }),
        json!({ "slow_start": 1 }),
        json!({ "gamma": 1.0 }),
        json!({ "tick_s": "4ms" }),
    ] {
        assert!(make(&parameters(&changes), 10.0).is_err(), "{changes}");
    }
    assert!(
        make(&json!({ "c": 0.4, "beta": 0.7 }), 10.0).is_err(),
        "incomplete"
    );
    assert!(make(&parameters(&json!({})), 10.0).is_ok());
}
