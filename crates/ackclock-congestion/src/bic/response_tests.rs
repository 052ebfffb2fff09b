//! The response function: the average window against the loss rate.

use super::super::window::testing::{ack, LOSS};
use super::tests::bic;
use super::*;
use serde_json::json;

/// Average window when each `1/p`-th segment is lost, over 10 losses after 10.
fn average_window(first: f64, p: f64) -> f64 {
    let mut bic = bic(first, &json!({}));
    bic.on_loss(&LOSS);
    let (mut segments, mut rounds) = (0.0, 0.0);
    for loss in 0..20 {
        if loss == 10 {
            (segments, rounds) = (0.0, 0.0);
        }
        for _ in 0..(1.0 / p) as u64 {
            rounds += 1.0 / bic.cwnd();
            segments += 1.0;
            bic.on_ack(&ack(Time::ZERO, 1));
        }
        bic.on_loss(&LOSS);
    }
    segments / rounds
}

/// Segments and round trips from a loss at `w_max` to the next, which comes `beyond` round trips after the maximum
/// is reached again: 16 per round trip until 64 are missing, a quarter of what is missing per round trip until
/// that is 8, 7 segments of 5 round trips each, and 5 for each segment beyond.
fn epoch(w_max: f64, beyond: f64) -> (f64, f64) {
    let missing = 0.2 * w_max;
    let near = missing.min(64.0);
    let linear = (missing - near) / 16.0;
    let search = 4.0 * (near / 8.0).ln();
    let segments = linear * (w_max - f64::midpoint(missing, near)) + search * w_max
        - 4.0 * (near - 8.0)
        + 35.0 * (w_max - 3.5)
        + beyond * (w_max + 2.0);
    (segments, linear + search + 35.0 + beyond)
}

/// Average window of the epoch that takes 1/p segments.
fn expected_window(p: f64, beyond: f64) -> f64 {
    let (mut low, mut high) = (50.0, 1e6);
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if epoch(middle, beyond).0 < 1.0 / p {
            low = middle;
        } else {
            high = middle;
        }
    }
    1.0 / p / epoch(low, beyond).1
}

#[test]
fn it_lies_between_losses_at_the_maximum_and_losses_at_the_end_of_the_plateau() {
    for p in [1e-4, 3e-5, 1e-5, 3e-6] {
        let (most, least) = (expected_window(p, 0.0), expected_window(p, 20.0));
        for first in [0.5, 1.0, 2.0] {
            let window = average_window(first * most, p);
            assert!(
                0.98 * least < window && window < 1.02 * most,
                "p = {p}: {window} in {least} to {most}"
            );
        }
    }
}

#[test]
fn its_slope_goes_from_one_towards_a_half() {
    // Most of an epoch are the 40-odd round trips around the maximum while those of the linear part, w_max / 80,
    // are few: the window is as 1/p. Once they are many, it is as the root of it.
    let slope = |p: f64| {
        let average = |p: f64| average_window(expected_window(p, 10.0), p);
        (average(p / 10.0) / average(p)).log10()
    };
    let (small, large) = (slope(3e-4), slope(3e-6));
    assert!((0.82..1.0).contains(&small), "{small}");
    assert!((0.55..0.72).contains(&large), "{large}");
}
