//! FQ-CoDel against RFC 8290; turns and the control law have tests of their own.

use super::*;
use crate::queue::testing::{packet, CONTEXT};
use serde_json::json;

fn parameters() -> Value {
    json!({
        "limit_packets": 10_240,
        "memory_limit_bytes": 32 << 20,
        "flows": 1024,
        "quantum_bytes": 1514,
        "target_s": 0.005,
        "interval_s": 0.1,
        "ecn": true,
        "ce_threshold_s": null,
        "drop_batch": 64,
        "newton": false,
    })
}

fn fq_codel(changes: &Value) -> Queue {
    let mut all = parameters();
    for (name, value) in changes.as_object().expect("a table") {
        all[name] = value.clone();
    }
    make(&all, &CONTEXT).expect("valid parameters")
}

fn of(flow: u32, sequence: u64, wire_bytes: u32) -> Packet {
    Packet {
        flow,
        ..packet(sequence, wire_bytes)
    }
}

/// A flow that sends a packet now and then waits for one packet of the others at most.
#[test]
fn a_sparse_flow_is_not_kept_waiting_by_a_long_queue() {
    let mut queue = fq_codel(&json!({}));
    let mut drops = Drops::default();
    for sequence in 0..500 {
        queue.enqueue(of(0, sequence, 1514), Time::ZERO, &mut drops);
    }
    for sequence in 0..20 {
        queue.enqueue(of(1, sequence, 100), Time::ZERO, &mut drops);
        let now = Time::from_milliseconds(sequence);
        let first = queue.dequeue(now, &mut drops).expect("queued");
        let second = queue.dequeue(now, &mut drops).expect("queued");
        assert!(first.flow == 1 || second.flow == 1);
        queue.dequeue(now, &mut drops).expect("queued");
    }
}

/// 101 packets for a limit of 100: half of the fattest queue's 80 packets go, the oldest first, and no others.
#[test]
fn above_the_limit_half_of_the_fattest_queue_is_dropped() {
    let mut queue = fq_codel(&json!({ "limit_packets": 100 }));
    let mut drops = Drops::default();
    for sequence in 0..80 {
        queue.enqueue(of(0, sequence, 1000), Time::ZERO, &mut drops);
    }
    for sequence in 0..21 {
        assert!(drops.is_empty());
        queue.enqueue(of(1, sequence, 1000), Time::ZERO, &mut drops);
    }
    let dropped: Vec<(u32, u64)> = drops
        .drain()
        .map(|packet| (packet.flow, packet.sequence))
        .collect();
    let expected: Vec<(u32, u64)> = (0..40).map(|sequence| (0, sequence)).collect();
    assert_eq!(dropped, expected);
    assert_eq!(queue.backlog().packets, 61);
}

#[test]
fn drop_batch_limits_the_packets_of_a_drop() {
    let mut queue = fq_codel(&json!({ "limit_packets": 1000 }));
    let mut drops = Drops::default();
    for sequence in 0..1001 {
        queue.enqueue(of(0, sequence, 1000), Time::ZERO, &mut drops);
    }
    assert_eq!(drops.drain().count(), 64);
}

#[test]
fn the_memory_limit_counts_bytes() {
    let mut queue = fq_codel(&json!({ "memory_limit_bytes": 10_000 }));
    let mut drops = Drops::default();
    for sequence in 0..10 {
        queue.enqueue(of(0, sequence, 1000), Time::ZERO, &mut drops);
    }
    assert!(drops.is_empty());
    queue.enqueue(of(0, 10, 1), Time::ZERO, &mut drops);
    assert_eq!(drops.drain().count(), 5); // half of 10,001 bytes
}

/// Two flows stand in their queues, and CoDel drops from both, each by its own clock.
#[test]
fn each_queue_has_its_own_control() {
    let mut queue = fq_codel(&json!({}));
    let mut drops = Drops::default();
    for sequence in 0..400 {
        queue.enqueue(of(0, sequence, 1514), Time::ZERO, &mut drops);
        queue.enqueue(of(1, sequence, 1514), Time::ZERO, &mut drops);
    }
    let mut dropped = Vec::new();
    for millisecond in 10..300 {
        queue.dequeue(Time::from_milliseconds(millisecond), &mut drops);
        dropped.extend(drops.drain().map(|packet| (millisecond, packet.flow)));
    }
    // Flow 0 leaves at 10 ms, flow 1 at 11 ms: the first drops an interval later, the second drops 100 ms
    // after these, the third due at 280.7 and 281.7 ms.
    let expected = [(110, 0), (111, 1), (210, 0), (211, 1), (282, 0), (283, 1)];
    assert_eq!(dropped, expected);
}

#[test]
fn parameters_out_of_range_are_rejected() {
    for (name, value) in [
        ("limit_packets", json!(0)),
        ("memory_limit_bytes", json!(0)),
        ("flows", json!(0)),
        ("flows", json!(65_537)),
        ("quantum_bytes", json!(0)),
        ("drop_batch", json!(0)),
        ("target_s", json!(0.0)),
        ("perturb_s", json!(10.0)),
    ] {
        let mut all = parameters();
        all[name] = value;
        assert!(make(&all, &CONTEXT).is_err(), "{all}");
    }
}
