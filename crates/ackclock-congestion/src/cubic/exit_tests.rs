//! Leaving slow start by `HyStart`.

// Windows are whole segments, so comparing them exactly is meant.
#![allow(clippy::float_cmp)]

use super::super::window::testing::ack;
use super::tests::parameters;
use super::*;
use serde_json::json;

/// Slow start from 10 segments over a bottleneck of `rate` segments/s, one ACK for two segments; the
/// queue of a round is that of its bursts. Returns the threshold that `HyStart` sets.
fn hystart_exit(slow_start: &str, rate: f64, standing_queue_s: f64) -> f64 {
    let parameters = parameters(&json!({ "slow_start": slow_start }));
    let mut cubic = make(&parameters, 10.0).expect("the spec's parameters");
    let (mut next, mut unacknowledged) = (10, 0);
    let (mut round_s, rtt_s) = (1.0, 0.05 + standing_queue_s);
    for round in 0..6 {
        let flight = next - unacknowledged;
        for pair in 0..flight / 2 {
            unacknowledged += 2;
            let rtt_s = if round == 0 { 0.05 } else { rtt_s };
            cubic.on_ack(&Ack {
                rtt: Some(Time::from_seconds(rtt_s)),
                srtt: Time::from_seconds(rtt_s),
                next,
                unacknowledged,
                ..ack(Time::from_seconds(round_s + 2.0 * pair as f64 / rate), 2)
            });
            next = unacknowledged + cubic.cwnd() as u64;
        }
        round_s += 1.0;
    }
    cubic.ssthresh()
}

#[test]
fn a_long_ack_train_ends_slow_start() {
    // 20 Mbit/s of 1514-byte packets: the train of the flight of 80 passes 25.5 ms at its 23rd ACK.
    assert_eq!(
        hystart_exit("hystart", 20e6 / (8.0 * 1514.0), 0.0),
        80.0 + 44.0
    );
    assert_eq!(
        hystart_exit("standard", 20e6 / (8.0 * 1514.0), 0.0),
        f64::INFINITY
    );
}

#[test]
fn a_persistent_queue_ends_slow_start() {
    // Below 16 segments the detector is off; the ninth sample of the next round decides.
    assert_eq!(hystart_exit("hystart", 500.0, 0.007), 40.0 - 4.0);
    assert_eq!(hystart_exit("hystart", 1e6, 0.006), f64::INFINITY);
}
