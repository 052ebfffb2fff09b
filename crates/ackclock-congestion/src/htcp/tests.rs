//! The increase function, the back-off, and what makes it adapt.

#![allow(clippy::float_cmp)] // windows are whole segments

use super::super::window::testing::{ack, recovering, LOSS};
use super::*;
use serde_json::json;

/// The algorithm spec's defaults with a tick of 10 ms and some parameters changed.
fn parameters(changes: &Value) -> Value {
    let mut parameters = json!({
        "slow_start": "standard", "adaptive_backoff": true, "bandwidth_switch": true, "rtt_scaling": true, "tick_s": 0.01,
    });
    for (name, value) in changes.as_object().expect("an object") {
        parameters[name] = value.clone();
    }
    parameters
}

pub fn htcp(initial_window: f64, changes: &Value) -> Htcp {
    let parameters = Parameters::deserialize(parameters(changes)).expect("valid parameters");
    Htcp::new(parameters, initial_window).expect("a usual tick")
}

fn milliseconds(milliseconds: u64) -> Time {
    Time::from_milliseconds(milliseconds)
}

fn with_rtt(now_ms: u64, acked: u32, rtt_ms: u64) -> Ack {
    Ack {
        rtt: Some(milliseconds(rtt_ms)),
        ..ack(milliseconds(now_ms), acked)
    }
}

fn loss_at(now_ms: u64) -> Loss {
    Loss {
        now: milliseconds(now_ms),
        ..LOSS
    }
}

#[test]
fn the_increase_is_one_for_a_second_and_then_quadratic() {
    // 1 + 10 t + t²/4 at t beyond a second: 11.25, 22, 33.25, 46 (t = 4: 1 + 40 + 4 = 45), 126 (t = 10).
    for hz in [100, 250, 1000] {
        for (seconds, expected) in [
            (0, 1),
            (1, 1),
            (2, 11),
            (3, 22),
            (4, 33),
            (5, 45),
            (11, 126),
        ] {
            assert_eq!(alpha_of(seconds * hz, hz), expected, "{seconds} s at {hz}");
        }
    }
    assert_eq!(alpha_of(109, 100), 1, "1 + 0.9");
    assert_eq!(alpha_of(110, 100), 2);
}

#[test]
fn the_rtt_scales_it_within_a_tenth_and_two() {
    // Ticks of 10 ms: 100 ms leaves it, 200 ms doubles it, 400 ms as well; 50 ms halves it.
    for (rtt, expected) in [(10, 22), (20, 44), (40, 44), (5, 11), (1, 2)] {
        assert_eq!(scaled_by_rtt(22, rtt, 100), expected, "{rtt}");
    }
    // 60 ms: the inverse is 13 eighths (80 / 6 = 13.3).
    assert_eq!(scaled_by_rtt(22, 6, 100), 13);
    assert_eq!(scaled_by_rtt(1, 6, 100), 1, "at least one");
}

#[test]
fn the_increase_is_fair_to_the_back_off() {
    // 2 (1 − β) α(2 s) = 11 at β = 0.5; at β = 0.75 half of it.
    let mut htcp = htcp(100.0, &json!({ "rtt_scaling": false }));
    htcp.update_alpha(200);
    assert_eq!(htcp.alpha_128, 11 * 128);
    htcp.beta_128 = 96;
    htcp.update_alpha(200);
    assert_eq!(htcp.alpha_128, 11 * 64);
    htcp.parameters.rtt_scaling = true;
    htcp.min_rtt = 5;
    htcp.update_alpha(200);
    assert_eq!(htcp.alpha_128, 5 * 64, "11 / 2, whole");
}

#[test]
fn the_back_off_is_the_ratio_of_the_rtts_within_its_limits() {
    let beta = |min_rtt: u64, max_rtt: u64, changes: &Value| {
        let mut htcp = htcp(100.0, changes);
        (htcp.min_rtt, htcp.max_rtt, htcp.adapting) = (min_rtt, max_rtt, true);
        htcp.next_beta()
    };
    let any = json!({ "bandwidth_switch": false });
    assert_eq!(beta(6, 9, &any), 85, "128 × 6 / 9 = 85.3");
    assert_eq!(beta(6, 7, &any), 102, "0.8");
    assert_eq!(beta(6, 13, &any), 64, "0.5");
    assert_eq!(beta(1, 1, &any), 64, "10 ms and less");
    let fixed = json!({ "bandwidth_switch": false, "adaptive_backoff": false });
    assert_eq!(beta(6, 9, &fixed), 64);
}

#[test]
fn a_changed_throughput_makes_two_losses_halve() {
    let mut htcp = htcp(100.0, &json!({}));
    (htcp.min_rtt, htcp.max_rtt) = (6, 9);
    htcp.throughput.count(100);
    htcp.throughput.sample(10, 50, 6, 100, false);
    let betas: Vec<u64> = (0..4).map(|_| htcp.next_beta()).collect();
    assert_eq!(betas, [64, 64, 85, 85]);
    htcp.throughput.count(300);
    htcp.throughput.sample(20, 50, 6, 100, false);
    let betas: Vec<u64> = (0..3).map(|_| htcp.next_beta()).collect();
    assert_eq!(betas, [64, 64, 85]);
}

#[test]
fn the_rtts_are_ticks_begun_and_the_largest_rises_slowly_and_fades() {
    let mut htcp = htcp(10.0, &json!({}));
    htcp.on_ack(&with_rtt(100, 1, 51));
    assert_eq!((htcp.min_rtt, htcp.max_rtt), (6, 6));
    htcp.on_ack(&with_rtt(110, 1, 95));
    assert_eq!(htcp.max_rtt, 6, "40 ms more at once does not count");
    htcp.on_ack(&with_rtt(120, 1, 75));
    assert_eq!((htcp.min_rtt, htcp.max_rtt), (6, 8));
    let of_a_hole = |now_ms| Ack {
        may_raise_cwnd: false,
        cumulatively_acked: 0,
        has_sack: true,
        ..with_rtt(now_ms, 1, 81)
    };
    htcp.on_ack(&Ack {
        rtt: None,
        ..of_a_hole(130)
    });
    htcp.on_ack(&of_a_hole(131));
    assert_eq!(htcp.max_rtt, 8, "the second SACK of a hole does not count");
    htcp.max_rtt = 26;
    htcp.on_loss(&loss_at(200));
    assert_eq!(htcp.max_rtt, 25, "6 + 20 × 0.95");
    htcp.on_ack(&Ack {
        rtt: Some(milliseconds(260)),
        ..recovering(milliseconds(300), 1)
    });
    assert_eq!(htcp.max_rtt, 25, "not in recovery");
}

#[test]
fn time_counts_from_the_end_of_recovery() {
    let mut htcp = htcp(40.0, &json!({}));
    htcp.on_loss(&loss_at(1000));
    assert_eq!((htcp.cwnd(), htcp.ssthresh()), (20.0, 20.0));
    htcp.on_ack(&recovering(milliseconds(1050), 5));
    assert_eq!(htcp.epoch, 100);
    htcp.on_ack(&ack(milliseconds(1100), 5));
    assert_eq!(htcp.epoch, 110);
    htcp.on_ack(&ack(milliseconds(1200), 5));
    assert_eq!(htcp.epoch, 110);
}

#[test]
fn a_segment_costs_a_window_over_alpha() {
    let mut htcp = htcp(40.0, &json!({ "rtt_scaling": false }));
    htcp.on_loss(&loss_at(0));
    htcp.on_ack(&ack(Time::ZERO, 1));
    assert_eq!(
        (htcp.cwnd(), htcp.window.credit()),
        (20.0, 1),
        "ends the repair"
    );
    // α = 1: 20 segments buy one, which the next ACK takes; what it acknowledges is not counted.
    htcp.on_ack(&ack(Time::ZERO, 19));
    assert_eq!((htcp.cwnd(), htcp.window.credit()), (20.0, 20));
    htcp.on_ack(&ack(milliseconds(3000), 2));
    assert_eq!((htcp.cwnd(), htcp.window.credit()), (21.0, 0));
    // After three seconds α is 22: one segment is enough for 21.
    htcp.on_ack(&ack(milliseconds(3000), 1));
    htcp.on_ack(&ack(milliseconds(3000), 1));
    assert_eq!((htcp.cwnd(), htcp.window.credit()), (22.0, 0));
}

#[test]
fn a_timeout_starts_from_one_and_in_recovery_keeps_the_back_off() {
    let mut htcp = htcp(40.0, &json!({}));
    htcp.on_loss(&loss_at(1000));
    htcp.beta_128 = 100;
    htcp.on_timeout(milliseconds(1300), 20);
    assert_eq!((htcp.cwnd(), htcp.ssthresh()), (1.0, 20.0));
    assert_eq!((htcp.beta_128, htcp.epoch), (100, 130));
}

#[test]
fn invalid_parameters_are_rejected() {
    for changes in [
        json!({ "tick_s": 0.0 }),
        json!({ "tick_s": -1.0 }),
        json!({ "rtt_scaling": 2 }),
        json!({ "alpha": 2 }),
    ] {
        assert!(make(&parameters(&changes), 10.0).is_err(), "{changes}");
    }
}
