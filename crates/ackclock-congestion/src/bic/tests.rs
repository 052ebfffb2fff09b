//! The search, step by step, and what it makes of periodic loss.

#![allow(clippy::float_cmp)] // windows are whole segments

use super::super::window::testing::{ack, recovering, round, LOSS};
use super::*;
use serde_json::json;

/// The algorithm spec's defaults with some parameters changed; increments without the segments per ACK.
fn parameters(changes: &Value) -> Value {
    let mut parameters = json!({
        "slow_start": "standard", "beta": 0.8, "max_increment": 16, "low_window": 14, "smooth_part": 20,
        "fast_convergence": true, "ack_ratio": false,
    });
    for (name, value) in changes.as_object().expect("an object") {
        parameters[name] = value.clone();
    }
    parameters
}

pub fn bic(initial_window: f64, changes: &Value) -> Box<dyn Controller> {
    make(&parameters(changes), initial_window).expect("the card's parameters")
}

/// A BIC at `cwnd` with the maximum at `w_max`.
fn between(cwnd: u32, w_max: u32) -> Bic {
    Bic {
        parameters: Parameters::deserialize(parameters(&json!({}))).expect("valid"),
        beta_1024: 819,
        window: Window::new(f64::from(cwnd)),
        w_max,
        ratio_16: INITIAL_RATIO,
        disordered: false,
        per_increment: 1,
        updated: None,
    }
}

#[test]
fn acknowledged_segments_per_increment_in_each_region() {
    // Window, maximum, segments per increment: (w_max − cwnd) / 4 = 25 > 16 → 400 / 16 = 25;
    // 64 / 4 = 16 → 436 / 16 = 27; 8 / 4 = 2 → 492 / 2; 7 / 4 = 1 → 493 × 20 / 4; three beyond → 503 × 5;
    // four beyond → 504 × 3 / 4; 47 beyond → 547 × 3 / 47 = 34; 48 beyond → 548 / 16 = 34.
    for (cwnd, w_max, expected) in [
        (400, 500, 25),
        (436, 500, 27),
        (492, 500, 246),
        (493, 500, 2465),
        (499, 500, 2495),
        (503, 500, 2515),
        (504, 500, 378),
        (547, 500, 34),
        (548, 500, 34),
        (900, 500, 56),
    ] {
        assert_eq!(between(cwnd, w_max).search(cwnd), expected, "{cwnd}");
    }
}

#[test]
fn without_a_maximum_growth_is_min_a_twentieth() {
    // 16 × 3 / 16 = 3 and 40 × 3 / 40 = 3; from 48 segments on a sixteenth of the window, at most 20.
    for (cwnd, expected) in [(16, 3), (40, 3), (160, 10), (320, 20), (3200, 20)] {
        assert_eq!(between(cwnd, 0).search(cwnd), expected, "{cwnd}");
    }
}

#[test]
fn a_loss_keeps_four_fifths_and_the_search_goes_back_to_the_maximum() {
    let mut bic = bic(300.0, &json!({}));
    bic.on_loss(&LOSS);
    // 300 × 819 / 1024 = 239.9.
    assert_eq!((bic.cwnd(), bic.ssthresh()), (239.0, 239.0));
    // 61 / 4 = 15 → 239 / 15 = 15 acknowledged segments per increment, in each window less.
    bic.on_ack(&ack(Time::ZERO, 15));
    assert_eq!(bic.cwnd(), 240.0);
    for _ in 0..20 {
        round(bic.as_mut(), 1);
    }
    assert!(bic.cwnd() > 290.0 && bic.cwnd() <= 300.0, "{}", bic.cwnd());
    let before = bic.cwnd();
    for _ in 0..5 {
        round(bic.as_mut(), 1);
    }
    assert_eq!(bic.cwnd(), before + 1.0, "on the plateau: 5 round trips");
}

#[test]
fn small_windows_are_renos() {
    let mut bic = bic(14.0, &json!({}));
    bic.on_loss(&LOSS);
    assert_eq!(bic.cwnd(), 7.0);
    for expected in [8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0] {
        round(bic.as_mut(), 1);
        assert_eq!(bic.cwnd(), expected);
    }
    bic.on_loss(&LOSS);
    assert_eq!(bic.cwnd(), 11.0, "15 × 819 / 1024 = 11.997");
}

#[test]
fn fast_convergence_aims_below_a_loss_below_the_maximum() {
    let after = |fast_convergence: bool| {
        let mut bic = between(400, 500);
        bic.parameters.fast_convergence = fast_convergence;
        bic.on_loss(&LOSS);
        (bic.w_max, bic.cwnd())
    };
    // 400 × (1024 + 819) / 2048 = 359.96.
    assert_eq!(after(true), (359, 319.0));
    assert_eq!(after(false), (400, 319.0));
}

#[test]
fn delayed_acks_double_the_increments() {
    let mut bic = between(240, 300);
    assert_eq!(bic.corrected(24), 24);
    bic.parameters.ack_ratio = true;
    assert_eq!(bic.corrected(24), 12, "two segments per ACK to begin with");
    for _ in 0..200 {
        bic.observe_ratio(&ack(Time::ZERO, 1));
    }
    // The average, in whole sixteenths, comes down by a sixteenth of itself, whole, until that is 1.
    assert_eq!(bic.ratio_16, 31);
    assert_eq!(bic.corrected(1), 1, "never nothing");
}

#[test]
fn segments_per_ack_are_not_counted_in_recovery() {
    let mut bic = between(240, 300);
    bic.on_loss(&LOSS);
    bic.on_ack(&recovering(Time::ZERO, 100));
    bic.on_ack(&ack(Time::ZERO, 100));
    assert_eq!(bic.ratio_16, INITIAL_RATIO, "the last one ends recovery");
    bic.on_ack(&ack(Time::ZERO, 18));
    assert_eq!(bic.ratio_16, INITIAL_RATIO - 2 + 18);
}

/// A kernel module printed these windows (10 Mb/s, 200 ms): the plateau at 66 segments took 176 = 330 × 16 / 30 of
/// them after a loss with many SACKs.
#[test]
fn only_the_first_ack_of_a_hole_counts_as_zero_segments() {
    let mut bic = between(72, 0);
    bic.observe_ratio(&ack(Time::ZERO, 1));
    let sack = Ack {
        cumulatively_acked: 0,
        has_sack: true,
        ..ack(Time::ZERO, 1)
    };
    bic.observe_ratio(&sack);
    bic.observe_ratio(&sack);
    bic.observe_ratio(&ack(Time::ZERO, 9));
    assert_eq!(bic.ratio_16, 30);
    bic.observe_ratio(&ack(Time::ZERO, 2));
    assert_eq!(bic.ratio_16, 31, "all is in order again");
}

#[test]
fn a_timeout_forgets_the_maximum() {
    let mut bic = between(300, 400);
    bic.on_timeout(Time::ZERO, 300);
    assert_eq!((bic.cwnd(), bic.ssthresh()), (1.0, 239.0));
    assert_eq!((bic.w_max, bic.ratio_16), (0, INITIAL_RATIO));
}

#[test]
fn the_increment_is_updated_when_the_window_changes_or_is_stale() {
    let mut bic = between(240, 300);
    bic.update(Time::ZERO);
    assert_eq!(bic.per_increment, 16);
    bic.w_max = 250;
    bic.update(STALE);
    assert_eq!(bic.per_increment, 16);
    bic.update(STALE + Time::from_microseconds(1));
    assert_eq!(bic.per_increment, 120);
}

#[test]
fn invalid_parameters_are_rejected() {
    for changes in [
        json!({ "beta": 1.0 }),
        json!({ "beta": 0.0 }),
        json!({ "beta": "much" }),
        json!({ "max_increment": 0 }),
        json!({ "smooth_part": 0 }),
        json!({ "gamma": 1 }),
    ] {
        assert!(make(&parameters(&changes), 10.0).is_err(), "{changes}");
    }
}
