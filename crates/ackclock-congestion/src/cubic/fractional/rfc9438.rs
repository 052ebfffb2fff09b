//! RFC 9438, equation by equation, with numbers computed by hand: β = 0.7, C = 0.4, a loss at 100 segments.

use super::super::tests::parameters;
use super::super::Parameters;
use super::*;
use crate::window::testing::{ack, LOSS};
use serde::Deserialize;
use serde_json::{json, Value};

fn cubic(cwnd: f64, changes: &Value) -> Fractional {
    let read = Parameters::deserialize(parameters(changes)).expect("the spec's parameters");
    Fractional::new(read.common, cwnd)
}

fn after_a_loss(changes: &Value) -> Fractional {
    let mut cubic = cubic(100.0, changes);
    cubic.on_loss(&LOSS);
    cubic
}

fn near(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-3, "{found}, {expected}");
}

fn at(seconds: f64) -> Ack {
    Ack {
        srtt: Time::from_milliseconds(100),
        ..ack(Time::from_seconds(seconds), 1)
    }
}

#[test]
fn figure_2_k_is_the_cube_root_of_the_distance_over_c() {
    let epoch = after_a_loss(&json!({})).begin_epoch(Time::ZERO);
    near(epoch.k_s, 4.217_163); // ∛((100 − 70) / 0.4) = ∛75
}

#[test]
fn figure_1_the_curve() {
    let epoch = after_a_loss(&json!({})).begin_epoch(Time::ZERO);
    for (t_s, expected) in [
        (0.0, 70.0),
        (2.217_163, 96.8),  // 2 s before K: 100 − 0.4 × 8
        (3.217_163, 99.6),  // 1 s before it
        (4.217_163, 100.0), // W_max
        (5.217_163, 100.4),
        (7.217_163, 110.8), // 3 s after it: 0.4 × 27
    ] {
        near(epoch.w_cubic(t_s, 0.4), expected);
    }
}

#[test]
fn sections_4_4_and_4_5_an_ack_adds_the_distance_to_the_target_over_cwnd() {
    let mut cubic = after_a_loss(&json!({ "reno_friendly": false }));
    cubic.on_ack(&at(1.0)); // the epoch begins; the target is W_cubic(0.1): 100 − 0.4 × 4.117163³ = 72.0843
    near(cubic.cwnd, 70.0 + 2.084_3 / 70.0);
}

#[test]
fn section_4_2_the_target_is_no_more_than_half_a_window_ahead() {
    let mut cubic = after_a_loss(&json!({ "reno_friendly": false }));
    cubic.on_ack(&at(1.0));
    let before = cubic.cwnd;
    cubic.on_ack(&at(60.0)); // far beyond: the bound of 1.5 cwnd adds 0.5 segments per segment
    near(cubic.cwnd, before + 0.5);
}

#[test]
fn figure_4_w_est_grows_by_alpha_over_cwnd() {
    // α = 3 (1 − 0.7) / (1 + 0.7) = 0.529412
    let mut cubic = after_a_loss(&json!({}));
    near(cubic.alpha(70.0), 0.529_412);
    cubic.on_ack(&at(1.0));
    near(cubic.epoch.expect("begun").w_est, 70.0 + 0.529_412 / 70.0);
}

#[test]
fn section_4_3_alpha_is_one_from_the_prior_window_on() {
    let cubic = after_a_loss(&json!({ "reno_catch_up": true }));
    near(cubic.alpha(99.9), 0.529_412);
    near(cubic.alpha(100.0), 1.0);
}

#[test]
fn section_4_6_a_loss_keeps_beta_but_not_less_than_two_segments() {
    let cubic = after_a_loss(&json!({}));
    near(cubic.cwnd, 70.0);
    near(cubic.ssthresh, 70.0);
    let mut small = self::cubic(2.5, &json!({}));
    small.on_loss(&LOSS);
    near(small.cwnd, 2.0);
}

#[test]
fn section_4_7_fast_convergence() {
    let mut cubic = after_a_loss(&json!({}));
    near(cubic.w_max.expect("a loss"), 100.0);
    cubic.on_loss(&LOSS);
    near(cubic.w_max.expect("a loss"), 59.5); // 70 × (1 + 0.7) / 2
}

#[test]
fn section_4_8_after_a_timeout_the_curve_begins_at_its_plateau() {
    let mut cubic = cubic(100.0, &json!({}));
    cubic.on_timeout(Time::ZERO, 100);
    near(cubic.cwnd, 1.0);
    near(cubic.ssthresh, 70.0);
    cubic.cwnd = 70.0;
    let epoch = cubic.begin_epoch(Time::ZERO);
    near(epoch.k_s, 0.0);
    near(epoch.w_max, 70.0);
}

#[test]
fn section_4_10_slow_start_that_ends_without_a_loss_begins_at_the_plateau() {
    let mut cubic = cubic(50.0, &json!({}));
    cubic.steer_slow_start(Steer::Exit(50.0));
    let epoch = cubic.begin_epoch(Time::ZERO);
    near(epoch.k_s, 0.0);
    near(epoch.w_max, 50.0);
}
