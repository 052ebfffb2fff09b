//! The curves at their corners, and what a window makes of them.

#![allow(clippy::float_cmp)] // windows are whole segments

use super::super::window::testing::{ack, recovering, LOSS};
use super::*;
use serde_json::json;

/// The algorithm spec's defaults with some parameters changed.
fn parameters(changes: &Value) -> Value {
    let mut parameters = json!({
        "slow_start": "standard", "alpha_max": 10.0, "alpha_min": 0.3, "beta_min": 0.125, "beta_max": 0.5,
        "window_threshold": 15, "theta": 5,
    });
    for (name, value) in changes.as_object().expect("an object") {
        parameters[name] = value.clone();
    }
    parameters
}

fn illinois(initial_window: f64) -> Illinois {
    let parameters = Parameters::deserialize(parameters(&json!({}))).expect("valid parameters");
    let curves = Curves::new(&parameters).expect("limits in order");
    Illinois::new(curves, &parameters, initial_window)
}

/// Acknowledge what had been sent up to the round's end and some, with a queueing delay over a base of 50 ms.
fn round(illinois: &mut Illinois, delay_us: u64) {
    let end = illinois.round_end.unwrap_or(0);
    illinois.on_ack(&Ack {
        rtt: Some(Time::from_microseconds(50_000 + delay_us)),
        unacknowledged: end + 1,
        next: end + 100,
        window_limited: false,
        ..ack(Time::ZERO, 1)
    });
}

/// After rounds with no delay and with 100 ms of it, so that the largest is 100 ms.
fn with_a_largest_delay_of_100_ms() -> Illinois {
    let mut illinois = illinois(100.0);
    round(&mut illinois, 0);
    round(&mut illinois, 100_000);
    illinois
}

#[test]
fn the_increase_at_the_corners() {
    let mut illinois = with_a_largest_delay_of_100_ms();
    // At d_m: (99,000 × 1280) / (99,000 + 99,000 × 1242 / 38) = 38, the least.
    round(&mut illinois, 100_000);
    assert_eq!(illinois.alpha, 38);
    // Half way between d_1 and d_m: 49,500 × 1242 / 38 = 1,617,868; 99,000 × 1280 / 1,716,868 = 73.8.
    round(&mut illinois, 50_500);
    assert_eq!(illinois.alpha, 73);
    // Just beyond d_1: 10 × µs × 1242 / 38 = 326; 99,000 × 1280 / 99,326 = 1275.8.
    round(&mut illinois, 1010);
    assert_eq!(illinois.alpha, 1275);
}

#[test]
fn alpha_returns_to_its_maximum_after_five_rounds_without_a_queue() {
    let mut illinois = illinois(100.0);
    round(&mut illinois, 0);
    round(&mut illinois, 0);
    assert_eq!(illinois.alpha, 1280, "never a queue");
    round(&mut illinois, 100_000);
    round(&mut illinois, 50_500);
    let alphas: Vec<u64> = (0..6)
        .map(|_| {
            round(&mut illinois, 1000);
            illinois.alpha
        })
        .collect();
    assert_eq!(alphas, [73, 73, 73, 73, 1280, 1280]);
}

#[test]
fn the_decrease_at_the_corners() {
    let curves = illinois(10.0).curves;
    // In 1/64: an eighth up to a tenth of the largest, a half from eight tenths on, straight between:
    // 45 % is the middle, 8 + 12.
    for (delay, expected) in [
        (0, 8),
        (10_000, 8),
        (45_000, 20),
        (62_500, 26),
        (80_000, 32),
        (100_000, 32),
    ] {
        assert_eq!(curves.beta(delay, 100_000), expected, "{delay}");
    }
    assert_eq!(curves.beta(0, 0), 8, "no delay ever");
}

#[test]
fn a_loss_gives_up_beta() {
    for (delay, expected) in [(5_000, 88.0), (45_000, 69.0), (90_000, 50.0)] {
        let mut illinois = with_a_largest_delay_of_100_ms();
        round(&mut illinois, delay);
        illinois.on_loss(&LOSS);
        // 100 less 12.5, 31.25 or 50, whole.
        assert_eq!(illinois.cwnd(), expected);
    }
}

#[test]
fn small_windows_are_renos() {
    let mut illinois = illinois(14.0);
    assert_eq!((illinois.alpha, illinois.beta), (1280, 32));
    round(&mut illinois, 0);
    round(&mut illinois, 0);
    assert_eq!((illinois.alpha, illinois.beta), (128, 32));
    illinois.on_loss(&LOSS);
    assert_eq!(illinois.cwnd(), 7.0);
}

#[test]
fn a_window_earns_alpha() {
    let mut illinois = illinois(200.0);
    illinois.alpha = 256;
    illinois.beta = 32;
    illinois.on_loss(&LOSS);
    let free = Ack {
        unacknowledged: 0,
        ..ack(Time::ZERO, 1)
    };
    illinois.round_end = Some(1);
    for _ in 0..49 {
        illinois.on_ack(&free);
    }
    assert_eq!(illinois.cwnd(), 100.0);
    illinois.on_ack(&free);
    assert_eq!(
        (illinois.cwnd(), illinois.window.credit()),
        (101.0, 0),
        "α = 2: 50 segments"
    );
    // The ACK that ends a recovery brings a window at once: 2 × 400 / 101.
    illinois.on_ack(&Ack {
        cumulatively_acked: 400,
        ..free
    });
    assert_eq!((illinois.cwnd(), illinois.window.credit()), (108.0, 0));
}

#[test]
fn rounds_do_not_end_in_recovery() {
    let mut illinois = with_a_largest_delay_of_100_ms();
    round(&mut illinois, 100_000);
    illinois.on_loss(&LOSS);
    illinois.on_ack(&Ack {
        rtt: Some(Time::from_milliseconds(50)),
        unacknowledged: 100_000,
        ..recovering(Time::ZERO, 1)
    });
    assert_eq!(illinois.alpha, 38);
}

#[test]
fn a_timeout_makes_it_reno_until_the_next_round() {
    let mut illinois = with_a_largest_delay_of_100_ms();
    round(&mut illinois, 0);
    assert_eq!(illinois.beta, 8);
    illinois.on_timeout(Time::ZERO, 100);
    assert_eq!((illinois.cwnd(), illinois.ssthresh()), (1.0, 88.0));
    assert_eq!((illinois.alpha, illinois.beta), (128, 32));
}

#[test]
fn invalid_parameters_are_rejected() {
    for changes in [
        json!({ "alpha_min": 0.0 }),
        json!({ "alpha_min": 11.0 }),
        json!({ "alpha_max": 1e300 }),
        json!({ "beta_min": 0.6 }),
        json!({ "beta_min": -0.1 }),
        json!({ "beta_max": 1.0 }),
        json!({ "theta": -1 }),
        json!({ "gamma": 1 }),
    ] {
        assert!(make(&parameters(&changes), 10.0).is_err(), "{changes}");
    }
}
