//! Flow queues under PIE: a state for each queue, one limit for all.

use super::*;
use crate::packet::{Ecn, Flags};
use crate::queue::testing::{packet, CONTEXT};
use serde_json::json;

const MTU: u32 = 1514;

fn ms(milliseconds: u64) -> Time {
    Time::from_milliseconds(milliseconds)
}

fn right() -> Value {
    json!({
        "limit_packets": 10_240, "flows": 1024, "quantum_bytes": 1514, "target_s": 0.015,
        "tupdate_s": 0.015, "alpha": 2.0, "beta": 20.0, "ecn": false, "ecn_prob": 10.0,
        "bytemode": false, "dq_rate_estimator": false, "max_burst_s": 0.15, "derandomize": true,
        "mtu_bytes": 1514,
    })
}

fn with(changes: &Value) -> FqPie {
    let mut all = right();
    for (key, value) in changes.as_object().into_iter().flatten() {
        all[key] = value.clone();
    }
    let parameters = Parameters::deserialize(all).expect("valid parameters");
    FqPie::new(parameters, &CONTEXT).expect("valid parameters")
}

fn of(flow: u32, ecn: Ecn) -> Packet {
    Packet {
        flow,
        flags: Flags::of(ecn),
        ..packet(0, MTU)
    }
}

/// Ten packets of flow 0 and one of flow 1 for each two that leave, a millisecond apart: what was dropped and
/// marked, by flow.
fn overload(queue: &mut FqPie, seconds: u64, ecn: Ecn) -> ([usize; 2], [usize; 2]) {
    let mut drops = Drops::default();
    let (mut dropped, mut marked) = ([0; 2], [0; 2]);
    for step in 0..1000 * seconds {
        let now = ms(step);
        for flow in [0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0] {
            queue.enqueue(of(flow, ecn).entering(now), now, &mut drops);
        }
        for _ in 0..2 {
            assert!(queue.dequeue(now, &mut drops).is_some());
        }
        for packet in drops.drain() {
            dropped[packet.flow as usize] += 1;
        }
        for packet in drops.drain_marked() {
            marked[packet.flow as usize] += 1;
        }
    }
    (dropped, marked)
}

#[test]
fn only_the_excessive_flow_is_dropped() {
    let mut queue = with(&json!({ "limit_packets": 1_000_000 }));
    let (dropped, marked) = overload(&mut queue, 20, Ecn::Ect0);
    assert!(dropped[0] > 20_000, "{dropped:?}");
    assert_eq!((dropped[1], marked), (0, [0, 0]));
    let (fat, thin) = (
        queue.queues.queue_of(&of(0, Ecn::NotEct)),
        queue.queues.queue_of(&of(1, Ecn::NotEct)),
    );
    assert!(queue.controls[fat].probability() > 0.5);
    assert!(queue.controls[thin].probability() == 0.0);
}

#[test]
fn packets_are_marked_up_to_the_percentage() {
    let marks = |ecn_prob, ecn| {
        let all = json!({ "ecn": true, "ecn_prob": ecn_prob, "limit_packets": 1_000_000 });
        overload(&mut with(&all), 5, ecn)
    };
    let (dropped, marked) = marks(100.0, Ecn::Ect0);
    assert!(dropped[0] == 0 && marked[0] > 1000);
    let (dropped, few) = marks(10.0, Ecn::Ect0);
    assert!(dropped[0] > 1000 && (1..marked[0] / 4).contains(&few[0]));
    let (_, none) = marks(100.0, Ecn::NotEct);
    assert_eq!(none, [0, 0]);
}

#[test]
fn the_limit_counts_all_queues_and_the_arriving_packet_is_dropped() {
    let mut queue = with(&json!({ "limit_packets": 3 }));
    let mut drops = Drops::default();
    for flow in [0, 0, 0, 1] {
        queue.enqueue(of(flow, Ecn::NotEct), Time::ZERO, &mut drops);
    }
    let dropped: Vec<u32> = drops.drain().map(|packet| packet.flow).collect();
    assert_eq!(dropped, [1]);
    assert_eq!(queue.backlog().packets, 3);
}

#[test]
fn the_delay_is_that_of_the_flow_and_not_of_the_others() {
    let mut queue = with(&json!({ "tupdate_s": 1.99 }));
    assert_eq!(queue.updates.next(), ms(500));
    let mut drops = Drops::default();
    let (fat, thin) = (
        queue.queues.queue_of(&of(0, Ecn::NotEct)),
        queue.queues.queue_of(&of(1, Ecn::NotEct)),
    );
    assert_ne!(fat, thin);
    for _ in 0..10 {
        queue.enqueue(of(0, Ecn::NotEct), Time::ZERO, &mut drops);
    }
    queue.dequeue(ms(490), &mut drops);
    queue.enqueue(of(1, Ecn::NotEct).entering(ms(495)), ms(495), &mut drops);
    assert_eq!(
        queue.dequeue(ms(499), &mut drops).map(|packet| packet.flow),
        Some(1)
    );
    queue.catch_up(ms(500));
    // Its delay of 490 ms is a step of 0.125 × 475 ms + 1.25 × 490 ms, over 2048, and 2 % beyond 250 ms.
    let expected = (0.125 * 0.475 + 1.25 * 0.49) / 2048.0 + 0.02;
    assert!((queue.controls[fat].probability() - expected).abs() < 1e-12);
    assert!(queue.controls[thin].probability() == 0.0);
}

#[test]
fn idle_queues_are_skipped_and_resumed() {
    let mut queue = with(&json!({}));
    let mut drops = Drops::default();
    overload(&mut queue, 2, Ecn::NotEct);
    while queue.dequeue(ms(2001), &mut drops).is_some() {}
    queue.catch_up(ms(100_000));
    assert!(queue.stirred.is_empty());
    assert!(queue
        .controls
        .iter()
        .all(|control| control.probability() == 0.0));
    assert_eq!(queue.updates.next(), ms(10 + 15 * 6667));
    queue.enqueue(of(5, Ecn::NotEct), ms(100_001), &mut drops);
    assert_eq!(queue.stirred.len(), 1);
}

#[test]
fn wrong_parameters_are_rejected() {
    assert!(make(&right(), &CONTEXT).is_ok());
    for (key, value) in [
        ("limit_packets", json!(0)),
        ("flows", json!(0)),
        ("quantum_bytes", json!(0)),
        ("target_s", json!(0.0)),
        ("tupdate_s", json!(0.0)),
        ("alpha", json!(33.0)),
        ("ecn_prob", json!(101.0)),
        ("memory_limit_bytes", json!(1)),
    ] {
        let mut wrong = right();
        wrong[key] = value;
        assert!(make(&wrong, &CONTEXT).is_err(), "{wrong}");
    }
}
