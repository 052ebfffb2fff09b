//! The pace of slow start, and every loss-based controller under every detector.

use super::super::contract::run_trials;
use super::super::detector::{Growth, Steer};
use super::super::window::testing::{ack, LOSS};
use super::super::{make, Ack};
use ackclock_core::Time;
use proptest::prelude::*;
use serde_json::{json, Value};

/// The parameters of every controller with a `slow_start`, without it.
fn loss_based() -> Vec<(&'static str, Value)> {
    let cubic = json!({
        "c": 0.4, "beta": 0.7, "fast_convergence": true, "reno_friendly": true, "reno_catch_up": false,
        "delayed_ack_correction": true,
    });
    let with = |more: Value| {
        let mut parameters = cubic.clone();
        for (name, value) in more.as_object().expect("an object") {
            parameters[name] = value.clone();
        }
        parameters
    };
    vec![
        ("reno", json!({})),
        ("tahoe", json!({})),
        (
            "cubic",
            with(json!({ "whole_segments": true, "tick_s": 0.004 })),
        ),
        (
            "cubic",
            with(json!({ "whole_segments": false, "tick_s": 0.004 })),
        ),
        ("accucubic", with(json!({}))),
        ("lincubic", with(json!({ "tick_s": 0.004, "distance": 2 }))),
        (
            "bic",
            json!({ "beta": 0.8, "max_increment": 16, "low_window": 14, "smooth_part": 20, "fast_convergence": true,
                "ack_ratio": true }),
        ),
        (
            "htcp",
            json!({ "adaptive_backoff": true, "bandwidth_switch": true, "rtt_scaling": true, "tick_s": 0.004 }),
        ),
        ("highspeed", json!({ "whole_segments": true })),
        ("highspeed", json!({ "whole_segments": false })),
        ("scalable", json!({ "a": 0.01, "b": 0.125 })),
        (
            "illinois",
            json!({ "alpha_max": 10.0, "alpha_min": 0.3, "beta_min": 0.125, "beta_max": 0.5, "window_threshold": 15,
                "theta": 5 }),
        ),
        ("westwood", json!({ "tick_s": 0.004 })),
        (
            "aimd",
            json!({ "increase": 1.0, "beta": 0.5, "slow_start_step": 1.0 }),
        ),
        (
            "prague",
            json!({ "rtt_ref_s": 0.025, "rtt_ref_after": 500, "classic_ecn_fallback": true }),
        ),
        (
            "compound",
            json!({ "alpha": 0.125, "beta": 0.5, "k": 0.75, "eta": 1.0, "gamma": 30.0, "low_window": 38.0 }),
        ),
    ]
}

fn with_start(parameters: &Value, slow_start: &str) -> Value {
    let mut parameters = parameters.clone();
    parameters["slow_start"] = json!(slow_start);
    parameters
}

#[test]
fn every_controller_keeps_the_contract_with_every_slow_start() {
    for (kind, parameters) in loss_based() {
        for slow_start in ["standard", "hystart", "hystart++", "search"] {
            let parameters = with_start(&parameters, slow_start);
            assert_eq!(run_trials(kind, &parameters, 30), Ok(()), "{slow_start}");
        }
    }
}

#[test]
#[allow(clippy::float_cmp)] // windows are whole segments
fn every_controller_obeys_pace_and_exit() {
    for (kind, parameters) in loss_based() {
        let mut controller = make(kind, &with_start(&parameters, "standard"), 20).expect("valid");
        controller.steer_slow_start(Steer::Grow(Growth::new(8, 4)));
        controller.on_ack(&ack(Time::ZERO, 8));
        assert_eq!(controller.cwnd(), 22.0, "{kind}: 8 / 4");
        controller.on_ack(&ack(Time::ZERO, 16));
        assert_eq!(controller.cwnd(), 24.0, "{kind}: the limit of 8, / 4");
        controller.steer_slow_start(Steer::Exit(18.0));
        let shown = (controller.cwnd(), controller.ssthresh());
        assert_eq!(shown, (18.0, 18.0), "{kind}");
    }
}

#[test]
fn without_a_detector_a_loss_ends_slow_start() {
    let parameters = json!({ "slow_start": "standard" });
    let mut reno = make("reno", &parameters, 10).expect("valid");
    for _ in 0..1000 {
        reno.on_ack(&Ack {
            rtt: Some(Time::from_milliseconds(900)),
            ..ack(Time::ZERO, 1)
        });
    }
    assert!(reno.ssthresh().is_infinite());
    reno.on_loss(&LOSS);
    assert!(reno.ssthresh().is_finite());
}

proptest! {
    #[test]
    fn no_segment_is_lost_or_counted_twice_in_the_division(
        acks in proptest::collection::vec(0_u32..100, 0..200),
        limit in 1_u32..50,
        divisor in 1_u32..10,
    ) {
        let mut growth = Growth::new(limit, divisor);
        let counted: u32 = acks.iter().map(|acked| growth.count(*acked)).sum();
        let limited: u32 = acks.iter().map(|acked| acked.min(&limit)).sum();
        prop_assert_eq!(counted, limited / divisor);
    }
}
