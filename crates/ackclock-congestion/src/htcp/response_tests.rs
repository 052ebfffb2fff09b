//! The response function: the average window against the loss rate.

use super::super::window::testing::{ack, LOSS};
use super::tests::htcp;
use super::*;
use serde_json::json;

/// At this RTT the scaling is 1.
const RTT_S: f64 = 0.1;

/// Average window when each `1/p`-th segment is lost, over 15 losses after 15.
fn average_window(first: f64, p: f64, changes: &Value) -> f64 {
    let mut htcp = htcp(first, changes);
    let rtt = Some(Time::from_seconds(RTT_S));
    let (mut now_s, mut segments, mut start_s) = (10.0, 0.0, 0.0);
    for loss in 0..=30 {
        htcp.on_loss(&Loss {
            now: Time::from_seconds(now_s),
            ..LOSS
        });
        if loss == 15 {
            (segments, start_s) = (0.0, now_s);
        }
        for _ in 0..(1.0 / p) as u64 {
            now_s += RTT_S / htcp.cwnd();
            segments += 1.0;
            htcp.on_ack(&Ack {
                rtt,
                ..ack(Time::from_seconds(now_s), 1)
            });
        }
    }
    segments * RTT_S / (now_s - start_s)
}

/// ∫ α dΔ and ∫∫ α dΔ² from 0 to `t` > 1 s.
fn integrals(t: f64) -> (f64, f64) {
    let beyond = t - 1.0;
    let once = t + 5.0 * beyond.powi(2) + beyond.powi(3) / 12.0;
    let twice = t.powi(2) / 2.0 + 5.0 / 3.0 * beyond.powi(3) + beyond.powi(4) / 48.0;
    (once, twice)
}

/// The average window in the paper's model. Over the time T between losses the window grows by
/// 2 (1 − β) ∫α / RTT, which is (1 − β) of the largest; 1/p segments are ∫ window / RTT.
fn expected_window(p: f64, beta: f64) -> f64 {
    let segments = |t: f64| {
        let (once, twice) = integrals(t);
        let largest = 2.0 / RTT_S * once;
        t * beta * largest / RTT_S + 2.0 * (1.0 - beta) / RTT_S.powi(2) * twice
    };
    let (mut low, mut high) = (1.0, 1e3);
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if segments(middle) < 1.0 / p {
            low = middle;
        } else {
            high = middle;
        }
    }
    1.0 / p * RTT_S / low
}

#[test]
fn it_is_the_model_s() {
    // Without a queue the RTTs are all the same, and β is at its upper limit; or a half, if it does not adapt.
    for (beta, changes) in [
        (0.797, json!({ "tick_s": 0.004 })),
        (0.5, json!({ "tick_s": 0.004, "adaptive_backoff": false })),
    ] {
        for (p, tolerance) in [(1e-4, 0.04), (1e-5, 0.02), (1e-6, 0.01)] {
            let expected = expected_window(p, beta);
            let window = average_window(expected, p, &changes);
            assert!(
                (window / expected - 1.0).abs() < tolerance,
                "p = {p}: {window}, {expected}"
            );
        }
    }
}

#[test]
fn its_slope_is_seven_tenths() {
    // α(Δ) rises as Δ where it is linear, so the window as T² and a little more, and 1/p as T³.
    let average =
        |p: f64| average_window(expected_window(p, 0.797), p, &json!({ "tick_s": 0.004 }));
    let slope = (average(1e-6) / average(1e-5)).log10();
    assert!((slope / 0.705 - 1.0).abs() < 0.03, "{slope}");
}
