//! Against Linux: windows of a Linux 6.1 sender (one flow, 20 Mbit/s, base RTT 50 ms, one ACK for two
//! segments of 1514 wire bytes), sampled each 50 ms in a run in virtual time with `HZ=100`.
//!
//! The controller gets ACKs as the sender did: one each 1.2112 ms, the bottleneck's time for two packets, or
//! less often where the window does not fill the pipe. The only thing fitted is when the epoch began.

use super::super::window::testing::ack;
use super::tests::{cubic, LOSS};
use super::*;
use serde_json::json;

/// Time in which the bottleneck sends the two packets that an ACK acknowledges.
const ACK_SPACING_S: f64 = 2.0 * 1514.0 * 8.0 / 20e6;

/// Queue of 83 packets, after a loss at 173 segments: seconds, segments. The curve rules.
const FULL_PIPE: [(f64, f64); 48] = [
    (1.1500, 122.0),
    (1.2005, 123.0),
    (1.2510, 125.0),
    (1.3014, 126.0),
    (1.3519, 128.0),
    (1.4024, 129.0),
    (1.4528, 131.0),
    (1.5033, 132.0),
    (1.5538, 133.0),
    (1.6042, 134.0),
    (1.6546, 136.0),
    (1.7001, 137.0),
    (1.7506, 138.0),
    (1.8011, 139.0),
    (1.8515, 141.0),
    (1.9020, 142.0),
    (1.9525, 143.0),
    (2.0029, 144.0),
    (2.0534, 145.0),
    (2.1039, 146.0),
    (2.1543, 147.0),
    (2.2048, 148.0),
    (2.2502, 149.0),
    (2.3007, 150.0),
    (2.3511, 151.0),
    (2.4016, 152.0),
    (2.4521, 153.0),
    (2.5025, 154.0),
    (2.5530, 155.0),
    (2.6035, 156.0),
    (2.6539, 156.0),
    (2.7044, 157.0),
    (2.7549, 158.0),
    (2.8003, 158.0),
    (2.8508, 159.0),
    (2.9012, 159.0),
    (2.9517, 160.0),
    (3.0022, 161.0),
    (3.0526, 161.0),
    (3.1031, 162.0),
    (3.1536, 163.0),
    (3.2040, 163.0),
    (3.2544, 164.0),
    (3.3050, 164.0),
    (3.3504, 165.0),
    (3.4008, 165.0),
    (3.4513, 166.0),
    (3.5018, 166.0),
];

/// Queue of 8 packets, after a loss at 36 segments: seconds, segments. First `W_est` rules, then the curve.
const SHORT_QUEUE: [(f64, f64); 32] = [
    (0.3527, 25.0),
    (0.5547, 28.0),
    (0.7518, 30.0),
    (0.9539, 31.0),
    (1.1509, 33.0),
    (1.3531, 35.0),
    (1.5501, 37.0),
    (1.7522, 39.0),
    (1.9543, 41.0),
    (2.1514, 43.0),
    (2.3534, 46.0),
    (2.5504, 47.0),
    (2.7525, 50.0),
    (2.9546, 52.0),
    (3.1516, 54.0),
    (3.3537, 56.0),
    (3.5507, 58.0),
    (3.7528, 60.0),
    (3.9548, 62.0),
    (4.1519, 64.0),
    (4.3540, 66.0),
    (4.5509, 69.0),
    (4.7529, 71.0),
    (4.9549, 73.0),
    (5.1520, 75.0),
    (5.3540, 77.0),
    (5.5510, 79.0),
    (5.7532, 81.0),
    (5.9501, 83.0),
    (6.1520, 86.0),
    (6.3539, 87.0),
    (6.5507, 90.0),
];

/// The largest difference in segments when the epoch begins with the ACK at `start_s`.
fn worst(observed: &[(f64, f64)], w_max: f64, rtt_s: f64, start_s: f64) -> f64 {
    let mut cubic = cubic(w_max, &json!({ "tick_s": 0.01 }));
    cubic.min_rtt = Some(Time::from_seconds(rtt_s));
    cubic.on_loss(&LOSS);
    let (mut now_s, mut worst) = (start_s, 0.0_f64);
    for (at_s, segments) in observed {
        while now_s < *at_s {
            cubic.on_ack(&ack(Time::from_seconds(now_s), 2));
            now_s += f64::max(2.0 * rtt_s / cubic.cwnd(), ACK_SPACING_S);
        }
        worst = worst.max((cubic.cwnd() - segments).abs());
    }
    worst
}

/// The smallest of the largest differences over the possible beginnings of the epoch.
fn best_fit(observed: &[(f64, f64)], w_max: f64, rtt_s: f64) -> f64 {
    let first_s = observed[0].0;
    (0..50)
        .map(|step| {
            worst(
                observed,
                w_max,
                rtt_s,
                first_s - 0.05 + 0.002 * f64::from(step),
            )
        })
        .fold(f64::INFINITY, f64::min)
}

#[test]
fn with_a_full_pipe_the_window_is_that_of_linux_within_a_segment() {
    assert!(best_fit(&FULL_PIPE, 173.0, 0.0506) <= 1.0);
}

#[test]
fn with_a_short_queue_the_window_is_that_of_linux_within_a_segment() {
    assert!(best_fit(&SHORT_QUEUE, 36.0, 0.0505) <= 1.0);
}
