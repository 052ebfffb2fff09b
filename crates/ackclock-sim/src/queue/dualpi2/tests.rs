//! DualPI2, step by step, against sums done by hand from appendix A of RFC 9332.

use super::*;
use crate::packet::Flags;
use crate::queue::testing::{packet, CONTEXT};
use serde_json::json;

const MTU: u32 = 1500;

fn ms(milliseconds: u64) -> Time {
    Time::from_milliseconds(milliseconds)
}

fn us(microseconds: u64) -> Time {
    Time::from_microseconds(microseconds)
}

fn right() -> Value {
    json!({
        "limit_packets": 10_000, "target_s": 0.015, "tupdate_s": 0.016, "alpha": 0.16, "beta": 3.2,
        "coupling_factor": 2.0, "step_thresh_s": 0.001, "ramp_s": 0.0, "min_qlen_step_packets": 0,
        "scheduler": "wrr", "classic_protection": 10.0, "tshift_s": 0.03, "mtu_bytes": 1500,
        "any_ect": false, "drop_on_overload": true,
    })
}

fn with(changes: &Value) -> DualPi2 {
    let mut all = right();
    for (key, value) in changes.as_object().into_iter().flatten() {
        all[key] = value.clone();
    }
    DualPi2::new(Parameters::deserialize(&all).expect("valid parameters"))
}

/// A queue whose p' is this and stays so.
fn at(base: f64, changes: &Value) -> DualPi2 {
    let mut queue = with(changes);
    queue.base = base;
    queue.updates.stop();
    queue
}

fn of(ecn: Ecn) -> Packet {
    Packet {
        flags: Flags::of(ecn),
        ..packet(0, MTU)
    }
}

fn offer(queue: &mut DualPi2, ecn: Ecn, packets: u32, now: Time) {
    let mut drops = Drops::default();
    for _ in 0..packets {
        queue.enqueue(of(ecn).entering(now), now, &mut drops);
    }
    assert!(drops.is_empty());
}

/// Packets that left (kind, and whether marked, in order), marks and drops.
fn send(queue: &mut DualPi2, packets: usize, now: Time) -> (Vec<Ecn>, usize, usize) {
    let mut drops = Drops::default();
    let left = (0..packets)
        .filter_map(|_| queue.dequeue(now, &mut drops))
        .map(|packet| packet.ecn())
        .collect();
    let marks = drops.drain_marked().count();
    (left, marks, drops.drain().count())
}

fn assert_close(left: f64, right: f64) {
    assert!((left - right).abs() < 1e-12, "{left} is not {right}");
}

#[test]
fn packets_are_classified_by_their_ecn_bits() {
    let mut queue = with(&json!({}));
    for ecn in [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce] {
        offer(&mut queue, ecn, 1, Time::ZERO);
    }
    assert_eq!(queue.l4s.packets.len(), 2);
    assert_eq!(queue.classic.packets.len(), 2);
    let (left, ..) = send(&mut queue, 4, Time::ZERO);
    let expected = [Ecn::Ect1, Ecn::Ce, Ecn::NotEct, Ecn::Ect0];
    assert_eq!(left, expected);
}

#[test]
fn the_base_probability_follows_the_longer_delay() {
    let mut queue = with(&json!({}));
    offer(&mut queue, Ecn::NotEct, 1, ms(0));
    offer(&mut queue, Ecn::Ect1, 1, ms(11));
    queue.catch_up(ms(15));
    assert_close(queue.base, 0.0);
    queue.catch_up(ms(16)); // 0.16 × (16 − 15) ms + 3.2 × 16 ms
    assert_close(queue.base, 0.000_16 + 0.0512);
    queue.catch_up(ms(32)); // 0.16 × (32 − 15) ms + 3.2 × 16 ms
    assert_close(queue.base, 0.051_36 + 0.002_72 + 0.0512);
    assert_close(queue.classic_probability(), 0.105_28 * 0.105_28);
    assert_close(queue.coupled_probability(), 0.210_56);
    queue.classic.packets.pop();
    queue.catch_up(ms(48)); // the L packet has waited 37 ms: 0.16 × 22 ms + 3.2 × 5 ms
    assert_close(queue.base, 0.105_28 + 0.003_52 + 0.016);
}

#[test]
fn the_base_probability_stays_between_zero_and_one() {
    let mut queue = with(&json!({}));
    queue.catch_up(ms(100_000));
    assert_close(queue.base, 0.0);
    assert_eq!(queue.updates.next(), ms(100_000 + 16));
    offer(&mut queue, Ecn::NotEct, 1, ms(100_000));
    queue.catch_up(ms(200_000));
    assert_close(queue.base, 1.0);
}

#[test]
fn probabilities_are_spread_evenly_over_the_packets() {
    let mut half = SubQueue::default();
    let hits: Vec<u32> = (1..=20).filter(|_| half.recurs(0.25)).collect();
    // The sum has to exceed 1: with exact quarters it does at the 5th packet, and every 4th after it.
    assert_eq!(hits, [5, 9, 13, 17]);
}

#[test]
fn classic_packets_are_hit_with_the_square_and_l4s_packets_with_k_times_the_base() {
    // p' = 1/4: p_C = 1/16, p_CL = 1/2.
    let mut queue = at(0.25, &json!({}));
    offer(&mut queue, Ecn::NotEct, 161, Time::ZERO);
    let (left, marks, dropped) = send(&mut queue, 161, Time::ZERO);
    assert_eq!((left.len(), marks, dropped), (151, 0, 10));
    offer(&mut queue, Ecn::Ect1, 161, Time::ZERO);
    let (left, marks, dropped) = send(&mut queue, 161, Time::ZERO);
    assert_eq!((left.len(), marks, dropped), (161, 80, 0));
}

#[test]
fn a_classic_packet_that_can_be_marked_is_not_dropped() {
    let mut queue = at(0.25, &json!({}));
    offer(&mut queue, Ecn::Ect0, 161, Time::ZERO);
    let (left, marks, dropped) = send(&mut queue, 161, Time::ZERO);
    assert_eq!((left.len(), marks, dropped), (161, 10, 0));
}

#[test]
fn an_l4s_packet_is_marked_above_the_step() {
    let mut queue = at(0.0, &json!({}));
    let marks = |queue: &mut DualPi2, delay: Time| {
        offer(queue, Ecn::Ect1, 11, Time::ZERO);
        send(queue, 11, delay).1
    };
    assert_eq!(marks(&mut queue, us(1000)), 0);
    assert_eq!(marks(&mut queue, us(1001)), 10); // the sum must exceed 1 first
    assert_eq!(marks(&mut queue, us(1001)), 11);
}

#[test]
fn the_ramp_of_the_rfc_rises_from_800_to_1200_microseconds() {
    let queue = at(0.0, &json!({ "step_thresh_s": 0.0008, "ramp_s": 0.0004 }));
    assert_close(queue.native_probability(us(800), 9), 0.0);
    assert_close(queue.native_probability(us(900), 9), 0.25);
    assert_close(queue.native_probability(us(1000), 9), 0.5);
    assert_close(queue.native_probability(us(1200), 9), 1.0);
}

#[test]
fn a_short_l_queue_is_not_marked_for_its_delay() {
    let queue = at(0.0, &json!({ "min_qlen_step_packets": 1 }));
    assert_close(queue.native_probability(ms(20), 0), 0.0);
    assert_close(queue.native_probability(ms(20), 1), 1.0);
}

#[test]
fn the_greater_of_the_two_l4s_probabilities_counts() {
    let ramp = json!({ "step_thresh_s": 0.0008, "ramp_s": 0.0004 });
    let marks = |delay: Time| {
        let mut queue = at(0.25, &ramp);
        offer(&mut queue, Ecn::Ect1, 401, Time::ZERO);
        send(&mut queue, 401, delay).1
    };
    assert_eq!(marks(us(900)), 200); // 1/4 by the ramp, 1/2 by coupling
    assert_eq!(marks(us(1100)), 300); // 3/4 by the ramp
}

#[test]
fn an_overload_drops_l4s_packets_and_marks_the_rest() {
    // p' = 1/2: p_CL = 1, p_C = 1/4 = p_Cmax.
    let mut queue = at(0.5, &json!({}));
    offer(&mut queue, Ecn::Ect1, 401, Time::ZERO);
    let (left, marks, dropped) = send(&mut queue, 401, Time::ZERO);
    assert_eq!((left.len(), marks, dropped), (301, 301, 100));
    let mut classic = at(0.5, &json!({}));
    offer(&mut classic, Ecn::Ect0, 401, Time::ZERO);
    let (left, marks, dropped) = send(&mut classic, 401, Time::ZERO);
    assert_eq!((left.len(), marks, dropped), (301, 0, 100));
}

#[test]
fn an_overload_drops_exactly_the_square_of_the_base() {
    // p' = 3/4: p_CL = 3/2, p_C = 9/16; 9/16 of 161 is 90.6.
    let mut queue = at(0.75, &json!({}));
    offer(&mut queue, Ecn::Ect1, 161, Time::ZERO);
    let (left, marks, dropped) = send(&mut queue, 161, Time::ZERO);
    assert_eq!((left.len(), marks, dropped), (71, 71, 90));
}

#[test]
fn without_drops_on_overload_the_base_stays_at_one_over_k() {
    let change = json!({ "drop_on_overload": false });
    let mut queue = with(&change);
    offer(&mut queue, Ecn::NotEct, 1, Time::ZERO);
    queue.catch_up(ms(100_000));
    assert_close(queue.base, 0.5);
    let mut queue = at(0.5, &change);
    offer(&mut queue, Ecn::Ect1, 41, Time::ZERO);
    let (_, marks, dropped) = send(&mut queue, 41, Time::ZERO);
    assert_eq!((marks, dropped), (40, 0)); // the sum must exceed 1 first
    offer(&mut queue, Ecn::Ect0, 401, Time::ZERO);
    let (left, marks, dropped) = send(&mut queue, 401, Time::ZERO);
    assert_eq!((left.len(), marks, dropped), (401, 100, 0));
}

#[test]
fn any_ecn_capable_packet_may_go_into_the_l_queue() {
    let mut queue = with(&json!({ "any_ect": true }));
    offer(&mut queue, Ecn::NotEct, 1, Time::ZERO);
    offer(&mut queue, Ecn::Ect0, 1, Time::ZERO);
    offer(&mut queue, Ecn::Ect1, 1, Time::ZERO);
    offer(&mut queue, Ecn::Ce, 1, Time::ZERO);
    assert_eq!(queue.l4s.packets.len(), 3);
    assert_eq!(queue.classic.packets.len(), 1);
}

#[test]
fn while_both_have_packets_the_c_queue_gets_its_share() {
    let mut queue = at(0.0, &json!({ "step_thresh_s": 1.0 }));
    offer(&mut queue, Ecn::Ect1, 1100, Time::ZERO);
    offer(&mut queue, Ecn::NotEct, 1100, Time::ZERO);
    let (left, ..) = send(&mut queue, 1000, Time::ZERO);
    let classic: Vec<usize> = (0..1000)
        .filter(|index| left[*index] == Ecn::NotEct)
        .collect();
    // −80 packets' worth of credit at 10 for each L4S packet: 9 before it is positive, then one in ten.
    assert_eq!(classic[..3], [9, 19, 29]);
    assert_eq!(classic.len(), 100);
}

#[test]
fn a_time_shifted_fifo_takes_l4s_packets_as_older() {
    let mut queue = at(0.0, &json!({ "scheduler": "tsfifo" }));
    offer(&mut queue, Ecn::NotEct, 1, ms(100));
    offer(&mut queue, Ecn::NotEct, 1, ms(101));
    offer(&mut queue, Ecn::Ect1, 1, ms(130));
    offer(&mut queue, Ecn::Ect1, 1, ms(132));
    let (left, ..) = send(&mut queue, 4, ms(140));
    let kinds: Vec<bool> = left.iter().map(|ecn| *ecn == Ecn::NotEct).collect();
    // The L4S packets count as of 100 and 102 ms; at equal age they go first.
    assert_eq!(kinds, [false, true, true, false]);
}

#[test]
fn both_queues_share_the_limit() {
    let mut queue = with(&json!({ "limit_packets": 3 }));
    offer(&mut queue, Ecn::Ect1, 2, Time::ZERO);
    offer(&mut queue, Ecn::NotEct, 1, Time::ZERO);
    let mut drops = Drops::default();
    queue.enqueue(of(Ecn::Ect1), Time::ZERO, &mut drops);
    queue.enqueue(of(Ecn::NotEct), Time::ZERO, &mut drops);
    assert_eq!(drops.drain().count(), 2);
    let held = Backlog {
        packets: 3,
        bytes: 4500,
    };
    assert_eq!(queue.backlog(), held);
}

#[test]
fn wrong_parameters_are_rejected() {
    assert!(make(&right(), &CONTEXT).is_ok());
    for (key, value) in [
        ("limit_packets", json!(0)),
        ("target_s", json!(0.0)),
        ("tupdate_s", json!(0.0)),
        ("alpha", json!(-0.1)),
        ("beta", json!(-0.1)),
        ("coupling_factor", json!(-1.0)),
        ("classic_protection", json!(101.0)),
        ("scheduler", json!("fifo")),
        ("mtu_bytes", json!(0)),
        ("ecn", json!(true)),
    ] {
        let mut wrong = right();
        wrong[key] = value;
        assert!(make(&wrong, &CONTEXT).is_err(), "{wrong}");
    }
}
