//! Tests of the window after a loss.

#![allow(clippy::float_cmp)] // windows are whole segments

use super::super::window::testing::{ack, recovering, LOSS};
use super::*;
use serde_json::json;

fn westwood(initial_window: f64) -> Westwood {
    let clock = crate::jiffy_clock(Time::from_milliseconds(10)).expect("a usual tick");
    Westwood::new(clock, initial_window)
}

fn acked(now_ms: u64, segments: u32, rtt_ms: u64) -> Ack {
    Ack {
        rtt: Some(Time::from_milliseconds(rtt_ms)),
        ..ack(Time::from_milliseconds(now_ms), segments)
    }
}

/// One segment per millisecond, 14,480 bytes per tick, over an RTT of 51 ms: 6 ticks begun.
fn steady(westwood: &mut Westwood, milliseconds: std::ops::Range<u64>) {
    for now_ms in milliseconds {
        westwood.on_ack(&acked(now_ms, 1, 51));
    }
}

#[test]
fn a_recovery_halves_and_ends_at_bandwidth_times_smallest_rtt() {
    let mut westwood = westwood(100.0);
    westwood.window.end_slow_start();
    steady(&mut westwood, 51..5000);
    let half = (westwood.cwnd() / 2.0).floor();
    westwood.on_loss(&LOSS);
    assert_eq!(westwood.cwnd(), half);
    westwood.on_ack(&recovering(Time::from_milliseconds(5000), 1));
    assert_eq!(westwood.cwnd(), half);
    westwood.on_recovered(Time::from_milliseconds(5001), None);
    // 14,480 B per tick × 6 ticks / 1,448 B = 60 segments; the filter rounds down.
    assert_eq!((westwood.cwnd(), westwood.ssthresh()), (59.0, 59.0));
}

#[test]
fn the_filter_takes_tens_of_round_trips() {
    // Samples of 7 ticks. The first one holds an empty RTT: 19 segments in 7 ticks, 3,930 B per tick. The share
    // of it that is left after n more is (7/8)^n (1 + n/8): after 13, 0.46 of the 10,550 B that were missing.
    let mut westwood = westwood(100.0);
    steady(&mut westwood, 51..1000);
    let per_tick = f64::from(westwood.bandwidth.segments_in(1000)) * 1.448;
    assert!(
        (per_tick / (14_480.0 - 0.46 * 10_550.0) - 1.0).abs() < 0.01,
        "{per_tick}"
    );
}

#[test]
fn the_estimate_of_a_steady_flow_is_its_rate() {
    let mut westwood = westwood(100.0);
    steady(&mut westwood, 51..10_000);
    // In whole bytes, rounded down in each stage: 7 below at most.
    assert!(
        (59..=60).contains(&westwood.measured()),
        "{}",
        westwood.measured()
    );
    westwood.min_rtt = Some(3);
    assert!((29..=30).contains(&westwood.measured()));
}

#[test]
fn samples_span_an_rtt_min_fifty_milliseconds() {
    let mut westwood = westwood(10.0);
    westwood.on_ack(&acked(10, 1, 10));
    // Counted from the sending at 0: the sample closes at tick 6 (60 ms), of more than 5 ticks.
    for now_ms in [20, 30, 40, 50] {
        westwood.on_ack(&acked(now_ms, 1, 10));
        assert_eq!(westwood.bandwidth.segments_in(1000), 0);
    }
    westwood.on_ack(&acked(60, 1, 10));
    assert_eq!(
        westwood.bandwidth.segments_in(12),
        9,
        "5 × 1448 / 6 = 1206 B per tick"
    );
}

#[test]
fn a_timeout_starts_from_one_towards_the_measured_window_and_measures_the_rtt_anew() {
    let mut westwood = westwood(100.0);
    steady(&mut westwood, 51..5000);
    let measured = westwood.measured();
    westwood.on_timeout(Time::from_milliseconds(5200), 50);
    assert_eq!(
        (westwood.cwnd(), westwood.ssthresh()),
        (1.0, f64::from(measured))
    );
    westwood.on_ack(&acked(5300, 1, 90));
    assert_eq!(westwood.min_rtt, Some(9));
}

#[test]
fn a_timeout_in_recovery_keeps_half_the_window() {
    let mut westwood = westwood(100.0);
    steady(&mut westwood, 51..60);
    let half = (westwood.cwnd() / 2.0).floor();
    westwood.on_loss(&LOSS);
    westwood.on_timeout(Time::from_milliseconds(300), 50);
    assert_eq!((westwood.cwnd(), westwood.ssthresh()), (1.0, half));
    assert!(westwood.min_rtt.is_some());
}

#[test]
fn a_loss_before_the_first_sample_leaves_two_segments() {
    let mut westwood = westwood(10.0);
    westwood.on_ack(&acked(51, 1, 51));
    westwood.on_loss(&LOSS);
    westwood.on_recovered(Time::from_milliseconds(60), None);
    assert_eq!((westwood.cwnd(), westwood.ssthresh()), (2.0, 2.0));
}

#[test]
fn a_loss_at_the_end_of_a_recovery_halves_the_measured_window() {
    let mut westwood = westwood(100.0);
    steady(&mut westwood, 51..5000);
    let measured = f64::from(westwood.measured());
    westwood.on_loss(&LOSS);
    westwood.on_recovered(Time::from_milliseconds(5000), None);
    westwood.on_loss(&LOSS);
    assert_eq!(westwood.cwnd(), (measured / 2.0).floor());
}

/// The last sample is of 8 ticks and the RTT of 10: too short for it, unless the ACK that ends the recovery tells a
/// shorter one.
#[test]
fn the_ack_that_ends_a_recovery_ends_a_sample_by_its_own_rtt() {
    let ended = |rtt: Option<u64>| {
        let mut westwood = westwood(100.0);
        for now_ms in 100..5000 {
            westwood.on_ack(&acked(now_ms, 1, 100));
        }
        let since = 5000 - 80;
        westwood.bandwidth.begin(since / 10);
        let before = westwood.bandwidth.segments_in(1000);
        westwood.on_recovered(
            Time::from_milliseconds(5000),
            rtt.map(Time::from_milliseconds),
        );
        westwood.bandwidth.segments_in(1000) != before
    };
    assert!(!ended(None) && !ended(Some(91)) && ended(Some(60)));
}

#[test]
fn invalid_parameters_are_rejected() {
    assert!(make(&json!({ "tick_s": 0.0, "slow_start": "standard" }), 10.0).is_err());
    assert!(make(&json!({ "slow_start": "standard" }), 10.0).is_err());
    assert!(make(
        &json!({ "tick_s": 0.004, "k": 1, "slow_start": "standard" }),
        10.0
    )
    .is_err());
}
