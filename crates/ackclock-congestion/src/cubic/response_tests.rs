//! The response function: average window against loss rate.

use super::tests::{cubic, AckClock, LOSS};
use super::*;
use serde_json::json;

/// Average window when each `1/p`-th segment is lost, over 20 losses after ten, before which the window was
/// `first`.
fn average_window(first: f64, rtt_s: f64, p: f64, changes: &Value) -> f64 {
    let mut cubic = cubic(first, changes);
    cubic.on_loss(&LOSS);
    let mut clock = AckClock::new(rtt_s);
    let (mut segments, mut start_s) = (0.0, 0.0);
    for loss in 0..30 {
        if loss == 10 {
            (segments, start_s) = (0.0, clock.now_s);
        }
        for _ in 0..(1.0 / p) as u64 {
            clock.tick(&mut cubic);
            segments += 1.0;
        }
        cubic.on_loss(&LOSS);
    }
    segments * rtt_s / (clock.now_s - start_s)
}

#[test]
fn average_windows_of_the_rfc() {
    // RFC 9438 section 5: (C (3 + β) / (4 (1 − β)))^¼ · (RTT / p)^¾, as in table 1 for 0.1 s. Where
    // losses come at regular intervals, the plateau holds the window where it came from: the average that
    // is approached from below and the one approached from above enclose the RFC's.
    for (p, expected) in [(1e-4, 187.0), (1e-5, 1054.0)] {
        let below = average_window(0.5 * expected, 0.1, p, &json!({}));
        let above = average_window(2.0 * expected, 0.1, p, &json!({}));
        assert!(
            0.84 * expected < below && below < expected,
            "p = {p}: {below}"
        );
        assert!(
            expected < above && above < 1.08 * expected,
            "p = {p}: {above}"
        );
    }
}

#[test]
fn where_reno_is_faster_the_average_window_is_renos() {
    for (p, tolerance) in [(1e-3, 0.06), (1e-4, 0.02), (1e-5, 0.01)] {
        let reno = f64::sqrt(1.5 / p);
        let average = average_window(reno, 0.01, p, &json!({ "tick_s": 0.0 }));
        assert!(
            (average / reno - 1.0).abs() < tolerance,
            "{average} against {reno}"
        );
    }
}

#[test]
fn on_short_paths_the_tick_makes_the_window_lag_behind_renos() {
    let with_tick = |tick_s: f64| average_window(40.0, 0.01, 1e-3, &json!({ "tick_s": tick_s }));
    assert!(
        with_tick(0.004) < 0.95 * with_tick(0.0),
        "{}",
        with_tick(0.004)
    );
}
