//! SFQ as `tc-sfq(8)` describes it.

use super::*;
use crate::queue::testing::{packet, CONTEXT};
use serde_json::json;

fn parameters() -> Value {
    json!({
        "limit_packets": 127,
        "depth_packets": 127,
        "flows": 128,
        "divisor": 1024,
        "quantum_bytes": 1514,
        "perturb_s": 0.0,
        "headdrop": false,
    })
}

fn sfq(changes: &Value) -> Queue {
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

fn fill(queue: &mut Queue, flow: u32, packets: u64, wire_bytes: u32) -> Vec<(u32, u64)> {
    let mut drops = Drops::default();
    for sequence in 0..packets {
        queue.enqueue(of(flow, sequence, wire_bytes), Time::ZERO, &mut drops);
    }
    drops
        .drain()
        .map(|packet| (packet.flow, packet.sequence))
        .collect()
}

fn sent(queue: &mut Queue, now: Time) -> Vec<u32> {
    let mut drops = Drops::default();
    std::iter::from_fn(|| queue.dequeue(now, &mut drops))
        .map(|packet| packet.flow)
        .collect()
}

#[test]
fn flows_take_turns_and_a_new_one_is_last() {
    let mut queue = sfq(&json!({}));
    fill(&mut queue, 0, 4, 1514);
    fill(&mut queue, 1, 2, 1514);
    fill(&mut queue, 2, 1, 1514);
    assert_eq!(sent(&mut queue, Time::ZERO), [0, 1, 2, 0, 1, 0, 0]);
}

/// 1514 bytes a turn: two packets of 1000 overdraw it by 486, which leaves 1028 for the next, and so two again.
#[test]
fn turns_are_counted_in_bytes() {
    let mut queue = sfq(&json!({}));
    fill(&mut queue, 0, 5, 1000);
    fill(&mut queue, 1, 4, 1514);
    assert_eq!(sent(&mut queue, Time::ZERO), [0, 0, 1, 0, 0, 1, 0, 1, 1]);
}

/// The limit of 10: flow 0 has eight packets, flow 1 gets its two and flow 0 loses its newest (or oldest) one
/// for each further packet of flow 1, until both have five; then flow 1, which came to its length last.
#[test]
fn the_longest_queue_loses_a_packet() {
    for (headdrop, expected) in [
        (false, [(0, 7), (0, 6), (0, 5), (1, 5)]),
        (true, [(0, 0), (0, 1), (0, 2), (1, 0)]),
    ] {
        let mut queue = sfq(&json!({ "limit_packets": 10, "headdrop": headdrop }));
        assert!(fill(&mut queue, 0, 8, 1514).is_empty());
        assert_eq!(fill(&mut queue, 1, 6, 1514), expected);
        assert_eq!(queue.backlog().packets, 10);
    }
}

/// Five packets each, and a third flow's first: the flow that came to five last loses one.
#[test]
fn the_equal_queue_that_grew_last_drops() {
    for (first, second) in [(0, 1), (1, 0)] {
        let mut queue = sfq(&json!({ "limit_packets": 10 }));
        fill(&mut queue, first, 5, 1514);
        fill(&mut queue, second, 5, 1514);
        assert_eq!(fill(&mut queue, 2, 1, 1514), [(second, 4)]);
    }
}

#[test]
fn with_single_packet_queues_the_first_in_turn_drops() {
    let mut queue = sfq(&json!({ "limit_packets": 3 }));
    for flow in 0..3 {
        assert!(fill(&mut queue, flow, 1, 1514).is_empty());
    }
    assert_eq!(fill(&mut queue, 3, 1, 1514), [(0, 0)]);
    assert_eq!(sent(&mut queue, Time::ZERO), [1, 2, 3]);
}

#[test]
fn a_queue_is_no_longer_than_its_depth() {
    for (headdrop, expected) in [(false, [(0, 5), (0, 6)]), (true, [(0, 0), (0, 1)])] {
        let mut queue = sfq(&json!({ "depth_packets": 5, "headdrop": headdrop }));
        assert_eq!(fill(&mut queue, 0, 7, 1514), expected);
    }
}

#[test]
fn flows_above_the_number_of_queues_are_dropped() {
    let mut queue = sfq(&json!({ "flows": 2, "depth_packets": 60 }));
    fill(&mut queue, 0, 1, 1514);
    fill(&mut queue, 1, 1, 1514);
    assert_eq!(fill(&mut queue, 2, 1, 1514), [(2, 0)]);
}

/// With one bucket all flows share a queue; with many and perturbation, packets stay in order within a flow.
#[test]
fn perturbation_reorders_no_flow() {
    let mut queue = sfq(&json!({ "divisor": 4, "perturb_s": 1.0 }));
    for flow in 0..6 {
        fill(&mut queue, flow, 20, 1514);
    }
    let mut drops = Drops::default();
    let mut next = [0; 6];
    for second in 0..120 {
        let now = Time::from_seconds(f64::from(second));
        let packet = queue.dequeue(now, &mut drops).expect("queued");
        assert_eq!(packet.sequence, next[packet.flow as usize]);
        next[packet.flow as usize] += 1;
    }
    assert_eq!(next, [20; 6]);
    assert_eq!(queue.backlog(), Backlog::default());
}

/// Two flows that share a queue send its packets in the order of arrival; after a change of the hash they
/// are apart, sooner or later.
#[test]
fn perturbation_separates_flows_that_shared_a_queue() {
    let seeds = (0..200_u64).filter(|&seed| {
        let context = QueueContext { seed, ..CONTEXT };
        let mut all = parameters();
        all["divisor"] = json!(2);
        all["perturb_s"] = json!(1.0);
        let mut queue = make(&all, &context).expect("valid");
        fill(&mut queue, 0, 3, 1514);
        fill(&mut queue, 1, 3, 1514);
        sent(&mut queue, Time::from_seconds(1.5)) == [0, 0, 0, 1, 1, 1]
    });
    let shared = seeds.count();
    assert!((60..140).contains(&shared), "{shared}"); // half of 200, standard deviation 7
}

#[test]
fn parameters_out_of_range_are_rejected() {
    for (name, value) in [
        ("limit_packets", json!(0)),
        ("depth_packets", json!(0)),
        ("flows", json!(0)),
        ("flows", json!(65_409)),
        ("divisor", json!(1000)),
        ("divisor", json!(0)),
        ("quantum_bytes", json!(0)),
        ("perturb_s", json!(-1.0)),
        ("perturb_s", json!(1e-9)),
        ("target_s", json!(0.005)),
    ] {
        let mut all = parameters();
        all[name] = value;
        assert!(make(&all, &CONTEXT).is_err(), "{all}");
    }
}
