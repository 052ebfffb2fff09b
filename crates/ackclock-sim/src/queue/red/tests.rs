//! RED as a queue; its average and verdicts have tests of their own.

use super::*;
use crate::packet::{Ecn, Flags};
use crate::queue::testing::{packet, CONTEXT};
use serde_json::json;

pub fn parameters() -> Value {
    json!({
        "limit_bytes": 100_000,
        "min_bytes": 10_000,
        "max_bytes": 30_000,
        "avpkt_bytes": 1000,
        "burst_packets": null,
        "weight": 1.0,
        "probability": 0.1,
        "bandwidth_bps": null,
        "ecn": false,
        "harddrop": false,
        "nodrop": false,
        "adaptive": false,
        "gentle": false,
        "wait": false,
        "spare_empty": false,
        "bytes": true,
        "weighted": false,
    })
}

fn changed(changes: &Value) -> Value {
    let mut all = parameters();
    for (name, value) in changes.as_object().expect("a table") {
        all[name] = value.clone();
    }
    all
}

fn red(changes: &Value) -> Queue {
    make(&changed(changes), &CONTEXT).expect("valid parameters")
}

/// Offer packets of 1000 bytes at time 0; which of them were dropped.
fn offer(queue: &mut Queue, packets: u64, ecn: Ecn, drops: &mut Drops) -> Vec<u64> {
    for sequence in 0..packets {
        let offered = Packet {
            flags: Flags::of(ecn),
            ..packet(sequence, 1000)
        };
        queue.enqueue(offered, Time::ZERO, drops);
    }
    drops.drain().map(|packet| packet.sequence).collect()
}

/// With a weight of 1 the average is the queue: from 30 packets on each one is dropped, between 10 and 30 some.
#[test]
fn above_the_upper_threshold_each_packet_is_dropped() {
    let mut queue = red(&json!({}));
    let mut drops = Drops::default();
    let dropped = offer(&mut queue, 200, Ecn::NotEct, &mut drops);
    assert_eq!(queue.backlog().packets, 30);
    assert!(dropped.iter().all(|&sequence| sequence > 10));
    assert_eq!(dropped.len(), 170);
    assert!(dropped.ends_with(&[198, 199]));
}

#[test]
fn marks_take_the_place_of_drops_unless_forced_drops_are_hard() {
    for (changes, ecn, queued, marks) in [
        (json!({ "ecn": true }), Ecn::Ect0, 100, true),
        (
            json!({ "ecn": true, "harddrop": true }),
            Ecn::Ect0,
            30,
            false,
        ),
        (json!({ "ecn": true }), Ecn::NotEct, 30, false),
        (
            json!({ "ecn": true, "nodrop": true }),
            Ecn::NotEct,
            100,
            false,
        ),
        (json!({}), Ecn::Ect0, 30, false),
    ] {
        let mut queue = red(&changes);
        let mut drops = Drops::default();
        offer(&mut queue, 200, ecn, &mut drops);
        assert_eq!(queue.backlog().packets, queued, "{changes} {ecn:?}");
        assert_eq!(
            drops.drain_marked().count() >= 70,
            marks,
            "{changes} {ecn:?}"
        );
    }
}

#[test]
fn the_limit_holds_for_any_average() {
    let mut queue = red(&json!({ "weight": 0.000_001 }));
    let mut drops = Drops::default();
    let dropped = offer(&mut queue, 103, Ecn::NotEct, &mut drops);
    assert_eq!(dropped, [100, 101, 102]);
    assert_eq!(queue.backlog().bytes, 100_000);
}

/// Counted in packets, ACKs of 100 bytes fill the queue as full packets do.
#[test]
fn in_packets_a_short_packet_counts_as_an_average_one() {
    for (bytes, queued) in [(true, 200), (false, 30)] {
        let mut queue = red(&json!({ "bytes": bytes, "probability": 1e-9 }));
        let mut drops = Drops::default();
        for sequence in 0..200 {
            queue.enqueue(packet(sequence, 100), Time::ZERO, &mut drops);
        }
        assert_eq!(queue.backlog().packets, queued);
    }
}

/// The link (1 Gb/s) is idle for the time of 100 packets after the last one has left.
#[test]
fn an_idle_link_lets_the_average_decay() {
    let parameters: Parameters =
        serde_json::from_value(changed(&json!({ "weight": 0.01 }))).expect("valid");
    let mut queue = parameters.queue(&CONTEXT).expect("valid");
    let mut drops = Drops::default();
    for sequence in 0..20 {
        queue.enqueue(packet(sequence, 1000), Time::ZERO, &mut drops);
    }
    for _ in 0..20 {
        queue.dequeue(Time::ZERO, &mut drops);
    }
    let average = queue.early.average();
    // 8 µs for the last packet, and 800 µs for 100 of them.
    queue.enqueue(packet(20, 1000), Time::from_microseconds(808), &mut drops);
    assert!((queue.early.average() / average - 0.99_f64.powi(100)).abs() < 1e-9);
}

/// Defaults as in `tc`: max is a quarter of the limit, min a third of max, and a burst of (2 min + max) / (3 avpkt)
/// packets passes: here 40,000 B, 13,333 B and 22 packets, so 9.67 ≤ (1 − (1−W)²²)/W, which 1/16 fulfils.
#[test]
fn omitted_parameters_get_defaults() {
    let bare = json!({
        "limit_bytes": 160_000,
        "min_bytes": null,
        "max_bytes": null,
        "weight": null,
    });
    let parameters: Parameters = serde_json::from_value(changed(&bare)).expect("valid");
    let (min, max) = parameters.thresholds();
    assert!((min - 13_333.3).abs() < 1.0 && (max - 40_000.0).abs() < 1e-9);
    let weight = parameters.weight_or_burst(min, max).expect("a weight");
    assert!((weight - 0.0625).abs() < 1e-12);
}

/// `tc` has no weight for thresholds of a packet or less, and gives up; we say that any burst lifts the average.
#[test]
fn a_threshold_below_a_packet_has_a_weight() {
    for limit_bytes in [1500, 3000, 12_000] {
        let small = json!({
            "limit_bytes": limit_bytes,
            "min_bytes": null,
            "max_bytes": null,
            "weight": null,
        });
        let parameters: Parameters = serde_json::from_value(changed(&small)).expect("valid");
        let (min, max) = parameters.thresholds();
        let weight = parameters.weight_or_burst(min, max).expect("a weight");
        assert!((weight - 0.5).abs() < 1e-12, "{limit_bytes}: {weight}");
    }
}

#[test]
fn parameters_out_of_range_are_rejected() {
    for changes in [
        json!({ "limit_bytes": 0 }),
        json!({ "min_bytes": 30_000 }),
        json!({ "min_bytes": 0 }),
        json!({ "avpkt_bytes": 0 }),
        json!({ "weight": 0.0 }),
        json!({ "weight": 1.5 }),
        json!({ "weight": null, "burst_packets": 5 }),
        json!({ "probability": 0.0 }),
        json!({ "probability": 1.01 }),
        json!({ "bandwidth_bps": 0.0 }),
        json!({ "target_s": 0.005 }),
    ] {
        assert!(make(&changed(&changes), &CONTEXT).is_err(), "{changes}");
    }
}

/// The average is above the upper threshold when the queue has drained, and every packet would be dropped: only one that
/// finds no packet passes, or where packets are counted at most one.
#[test]
fn a_packet_that_finds_the_queue_empty_is_spared() {
    for (spare_empty, bytes, queued) in [(false, true, 0), (true, true, 1), (true, false, 2)] {
        let mut queue = red(&json!({
            "min_bytes": 100, "max_bytes": 500, "weight": 0.2, "spare_empty": spare_empty, "bytes": bytes,
        }));
        let mut drops = Drops::default();
        offer(&mut queue, 20, Ecn::NotEct, &mut drops);
        while queue.dequeue(Time::ZERO, &mut drops).is_some() {}
        offer(&mut queue, 3, Ecn::NotEct, &mut drops);
        assert_eq!(queue.backlog().packets, queued, "{spare_empty} {bytes}");
    }
}
