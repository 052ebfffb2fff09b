//! CoDel against the pseudo-code of RFC 8289, worked by hand.

use super::*;
use crate::packet::Flags;
use crate::queue::testing::{packet, CONTEXT};
use serde_json::json;

fn parameters() -> Value {
    json!({
        "limit_packets": 1000,
        "target_s": 0.005,
        "interval_s": 0.1,
        "ecn": false,
        "ce_threshold_s": null,
        "newton": false,
    })
}

fn codel(changes: &Value) -> Queue {
    let mut all = parameters();
    for (name, value) in changes.as_object().expect("a table") {
        all[name] = value.clone();
    }
    make(&all, &CONTEXT).expect("valid parameters")
}

const MS: fn(u64) -> Time = Time::from_milliseconds;

/// Packets of 1514 bytes that enter at `now`.
fn fill(queue: &mut Queue, packets: u64, now: Time, ecn: Ecn) {
    let mut drops = Drops::default();
    for sequence in 0..packets {
        let offered = Packet {
            flags: Flags::of(ecn),
            ..packet(sequence, 1514)
        };
        queue.enqueue(offered, now, &mut drops);
    }
    assert!(drops.is_empty());
}

/// One packet is taken each millisecond of `from..to`; the milliseconds in which packets were dropped.
fn drop_times(queue: &mut Queue, from: u64, to: u64) -> Vec<u64> {
    let mut drops = Drops::default();
    let mut times = Vec::new();
    for millisecond in from..to {
        queue.dequeue(MS(millisecond), &mut drops);
        times.extend(drops.drain().map(|_| millisecond));
    }
    times
}

/// Above the target from 10 ms on: the first drop after an interval at 110 ms, the second at 210 ms; then
/// 100 ms/√2 = 70.7, 100/√3 = 57.7, 50 and 100/√5 = 44.7 ms later, so at 280.7, 338.4, 388.4 and 433.2 ms.
#[test]
fn the_control_law_sets_the_times_of_drops() {
    let mut queue = codel(&json!({}));
    fill(&mut queue, 900, MS(0), Ecn::NotEct);
    let times = drop_times(&mut queue, 10, 440);
    assert_eq!(times, [110, 210, 281, 339, 389, 434]);
}

/// The same with Newton steps from 1: 0.5, 0.5625, 0.48779 and 0.44151 of the interval, so drops at 260,
/// 316.25, 365.03 and 409.18 ms.
#[test]
fn newton_steps_lag_behind_the_square_root() {
    let mut queue = codel(&json!({ "newton": true }));
    fill(&mut queue, 900, MS(0), Ecn::NotEct);
    let times = drop_times(&mut queue, 10, 415);
    assert_eq!(times, [110, 210, 260, 317, 366, 410]);
}

/// The second filling is at the head from 129 ms on, 2 ms old: the dropping state is left (210 ms would have been
/// the time of the next drop). It is 5 ms old at 132 ms, and an interval later the first packet is dropped.
#[test]
fn below_the_target_nothing_is_dropped_and_the_interval_restarts() {
    let mut queue = codel(&json!({}));
    fill(&mut queue, 120, MS(0), Ecn::NotEct);
    assert_eq!(drop_times(&mut queue, 10, 127), [110]);
    fill(&mut queue, 400, MS(127), Ecn::NotEct);
    assert_eq!(drop_times(&mut queue, 127, 240), [232]);
}

/// The state of [`Control`] is followed through two dropping phases: what happened in the first phase decides
/// where the second begins.
#[test]
fn the_count_is_carried_over_if_the_last_drop_is_recent() {
    for (pause_ms, expected) in [(100, 4), (2000, 1)] {
        let law = Law::new(0.005, 0.1).expect("valid");
        let (mut control, mut queue, mut drops) =
            (Control::default(), Fifo::default(), Drops::default());
        for sequence in 0..900 {
            queue.push(packet(sequence, 1514));
        }
        for millisecond in 10..=434 {
            control.dequeue(&law, &mut queue, MS(millisecond), &mut drops);
        }
        // Drops at 110 to 434 ms as above, of which the first entered with count 1.
        assert_eq!((control.count, control.lastcount), (6, 1));
        control.count = 5;
        while queue.pop().is_some() {}
        control.dequeue(&law, &mut queue, MS(435), &mut drops);
        assert!(!control.dropping);
        let again = 435 + pause_ms;
        for sequence in 0..900 {
            let waiting = Packet {
                enqueued: MS(435),
                ..packet(sequence, 1514)
            };
            queue.push(waiting);
        }
        control.dequeue(&law, &mut queue, MS(again), &mut drops);
        control.dequeue(&law, &mut queue, MS(again + 100), &mut drops);
        assert!(control.dropping);
        assert_eq!((control.count, control.lastcount), (expected, expected));
        let next = MS(again + 100) + MS(100).scaled(1.0 / f64::from(expected).sqrt());
        assert_eq!(control.drop_next, next);
    }
}

/// A drop rate beyond the packet rate: several drops in one dequeue.
#[test]
fn overdue_drops_are_applied() {
    let mut queue = codel(&json!({}));
    fill(&mut queue, 900, MS(0), Ecn::NotEct);
    assert!(drop_times(&mut queue, 10, 11).is_empty());
    assert_eq!(drop_times(&mut queue, 110, 111), [110]);
    // Due at 210, 280.7, 338.4, 388.4: four drops at 400 ms; the next is due at 433.2 ms.
    assert_eq!(drop_times(&mut queue, 400, 401), [400; 4]);
    assert_eq!(drop_times(&mut queue, 433, 435), [434]);
}

#[test]
fn a_queue_of_one_packet_is_never_too_long() {
    let mut queue = codel(&json!({}));
    let mut drops = Drops::default();
    for second in 1..20_u64 {
        // Two packets a second wait a second each: when the first leaves, one is left behind it.
        fill(&mut queue, 2, MS(1000 * (second - 1)), Ecn::NotEct);
        assert!(queue.dequeue(MS(1000 * second), &mut drops).is_some());
        assert!(queue.dequeue(MS(1000 * second), &mut drops).is_some());
    }
    assert!(drops.is_empty());
}

/// An ACK leaves each millisecond, and 1514 bytes are left behind it: a full packet, so the queue is not too long
/// even though no full packet was at its head. With one ACK more it is.
#[test]
fn a_full_packets_worth_of_bytes_is_never_too_long() {
    let law = Law::new(0.005, 0.1).expect("valid");
    for (behind, drop) in [(&[1514][..], false), (&[1514, 66], true)] {
        let (mut control, mut drops) = (Control::default(), Drops::default());
        for millisecond in 10..200 {
            let mut queue = Fifo::default();
            queue.push(packet(0, 66));
            for &wire_bytes in behind {
                queue.push(packet(1, wire_bytes));
            }
            control.dequeue(&law, &mut queue, MS(millisecond), &mut drops);
        }
        assert_eq!(!drops.is_empty(), drop);
    }
}

#[test]
fn marks_replace_drops_for_ecn_capable_transports() {
    let mut queue = codel(&json!({ "ecn": true }));
    fill(&mut queue, 900, MS(0), Ecn::Ect0);
    let mut drops = Drops::default();
    let mut times = Vec::new();
    for millisecond in 10..440 {
        let left = queue.dequeue(MS(millisecond), &mut drops).expect("queued");
        assert_eq!(left.ecn() == Ecn::Ce, drops.drain_marked().count() == 1);
        if left.ecn() == Ecn::Ce {
            times.push(millisecond);
        }
    }
    assert_eq!(times, [110, 210, 281, 339, 389, 434]);
    assert_eq!(drops.drain().count(), 0);
}

#[test]
fn above_the_ce_threshold_every_capable_packet_is_marked() {
    let mut queue = codel(&json!({ "ce_threshold_s": 0.001 }));
    fill(&mut queue, 4, MS(0), Ecn::Ect0);
    let mut drops = Drops::default();
    let marked: Vec<bool> = [MS(1), Time::from_microseconds(1001), MS(2)]
        .into_iter()
        .map(|now| queue.dequeue(now, &mut drops).expect("queued").ecn() == Ecn::Ce)
        .collect();
    assert_eq!(marked, [false, true, true]);
}

#[test]
fn a_packet_above_the_limit_is_dropped() {
    let mut queue = codel(&json!({ "limit_packets": 2 }));
    let mut drops = Drops::default();
    for sequence in 0..3 {
        queue.enqueue(packet(sequence, 1514), MS(0), &mut drops);
    }
    let dropped: Vec<u64> = drops.drain().map(|packet| packet.sequence).collect();
    assert_eq!(dropped, [2]);
    assert_eq!(queue.backlog().packets, 2);
}

#[test]
fn parameters_out_of_range_are_rejected() {
    for (name, value) in [
        ("limit_packets", json!(0)),
        ("target_s", json!(0.0)),
        ("target_s", json!(-0.005)),
        ("interval_s", json!(0.0)),
        ("ce_threshold_s", json!(0.0)),
        ("ecn", json!(1)),
        ("limit_bytes", json!(1000)),
    ] {
        let mut all = parameters();
        all[name] = value;
        assert!(make(&all, &CONTEXT).is_err(), "{all}");
    }
}
