//! The receiver against a naive one that keeps every segment it has seen.

use std::sync::Arc;

use std::collections::BTreeSet;

use ackclock_plan::{
    CongestionPlan, EcnMode, LossDetection, PathPlan, Reduction, RttSampling, TcpPlan,
};

use super::*;
use crate::options::Block;
use crate::packet::NO_PACKET;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

fn plan(timestamps: bool, delayed_ack: DelayedAck) -> FlowPlan {
    let path = PathPlan {
        hops: vec![],
        delay: Time::ZERO,
    };
    FlowPlan {
        group: 0,
        start: Time::ZERO,
        start_jitter: Time::ZERO,
        stop: None,
        size_bytes: None,
        request_bytes: None,
        application_rate: None,
        slow_reader: None,
        writes: None,
        misbehaviour: None,
        priority: 0,
        congestion: Arc::new(CongestionPlan {
            kind: "reno".to_owned(),
            parameters: serde_json::json!({}),
        }),
        tcp: tcp(timestamps, delayed_ack),
        ends: None,
        forward: path.clone(),
        reverse: path,
    }
}

/// A receiver of segments of 1000 bytes.
pub fn receiver(delayed_ack: DelayedAck) -> Receiver {
    Receiver::new(&plan(true, delayed_ack))
}

fn tcp(timestamps: bool, delayed_ack: DelayedAck) -> TcpPlan {
    TcpPlan {
        mss_bytes: 1000,
        header_bytes: 40,
        sack: true,
        timestamps,
        delayed_ack,
        delayed_ack_timeout: Time::from_milliseconds(40),
        initial_window: 10,
        initial_rto: Time::from_milliseconds(1000),
        min_rto: Time::from_milliseconds(200),
        max_rto: Time::from_milliseconds(120_000),
        rto_floor_on_variance: true,
        rto_slop: Time::ZERO,
        timer_tick: Time::ZERO,
        rtt_sampling: RttSampling::EachAck,
        rtt_tick: Time::ZERO,
        impatient: false,
        receive_window_bytes: None,
        send_buffer_bytes: None,
        loss_detection: LossDetection::Rack,
        tail_loss_probe: true,
        undo_spurious: true,
        frto: true,
        adaptive_reordering: true,
        limited_transmit: true,
        recovery_reduction: Reduction::Prr,
        pacing: false,
        tso_batching: false,
        window_validation: true,
        byte_counting: true,
        ecn: EcnMode::Off,
        processing: None,
    }
}

fn packet(kind: Kind, sequence: u64) -> Packet {
    Packet {
        sequence,
        timestamp: Time::ZERO,
        enqueued: Time::ZERO,
        flow: 0,
        wire_bytes: 1040,
        kind,
        ..NO_PACKET
    }
}

fn connected(timestamps: bool, delayed_ack: DelayedAck) -> Receiver {
    let mut receiver = Receiver::new(&plan(timestamps, delayed_ack));
    receiver.on_packet(&packet(Kind::Syn, 0), Time::ZERO);
    receiver.on_packet(&packet(Kind::LastAck, 0), Time::ZERO);
    receiver
}

/// The first segment that is missing.
fn expected(seen: &BTreeSet<u64>) -> u64 {
    around(seen, 0).1
}

/// The range of segments around this one, whether it is there or not.
fn around(seen: &BTreeSet<u64>, segment: u64) -> Block {
    let (mut start, mut end) = (segment, segment);
    while seen.contains(&end) {
        end += 1;
    }
    while start > 0 && seen.contains(&(start - 1)) {
        start -= 1;
    }
    (start, end)
}

/// RFC 2018 section 4 and RFC 2883 section 4.
fn check_blocks(
    seen: &BTreeSet<u64>,
    segment: u64,
    reply: &Reply,
    limit: usize,
) -> Result<(), TestCaseError> {
    let blocks = reply.blocks.unwrap_or_default();
    let mut blocks = blocks.as_slice();
    prop_assert!(blocks.len() <= limit);
    if reply.flags.has_dsack() {
        prop_assert_eq!(blocks[0], (segment, segment + 1));
        blocks = &blocks[1..];
    }
    if segment >= reply.ack {
        prop_assert_eq!(
            blocks.first(),
            Some(&around(seen, segment)),
            "that of the segment first"
        );
    }
    for (index, &(start, end)) in blocks.iter().enumerate() {
        prop_assert!(start > reply.ack && start < end);
        prop_assert_eq!(
            (start, end),
            around(seen, start),
            "a range is reported whole"
        );
        prop_assert!(!blocks[..index].contains(&(start, end)), "and once");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn replies_with_the_held_ranges_and_the_next_segment(
        steps in prop::collection::vec((0_u64..12, 0_usize..40), 1..150),
        timestamps in any::<bool>(),
    ) {
        let mut receiver = connected(timestamps, DelayedAck::Off);
        let limit = if timestamps { 3 } else { 4 };
        let mut seen = BTreeSet::new();
        let mut duplicates = 0;
        for (ahead, back) in steps {
            // Mostly what is expected or a little beyond it, sometimes something seen before.
            let next = expected(&seen);
            let segment = if back < 36 { next + ahead } else { next.saturating_sub(ahead) };
            let is_duplicate = !seen.insert(segment);
            duplicates += u64::from(is_duplicate);
            let reply = receiver.on_packet(&packet(Kind::Data, segment), Time::ZERO);
            let reply = reply.expect("every segment is acknowledged");
            prop_assert_eq!(reply.ack, expected(&seen));
            prop_assert_eq!(reply.flags.has_dsack(), is_duplicate);
            check_blocks(&seen, segment, &reply, limit)?;
        }
        prop_assert_eq!(receiver.delivered_bytes(), 1000 * expected(&seen));
        prop_assert_eq!(receiver.duplicates, duplicates);
    }

    #[test]
    fn no_more_than_two_segments_and_the_timer_pass_without_an_ack(
        gaps_ms in prop::collection::vec(0_u64..60, 1..100),
        quick in any::<bool>(),
    ) {
        let policy = if quick { DelayedAck::Quick } else { DelayedAck::On };
        let mut receiver = connected(true, policy);
        let mut now = Time::ZERO;
        let mut waiting: Vec<Time> = Vec::new();
        for (segment, gap_ms) in (0..).zip(gaps_ms) {
            now += Time::from_milliseconds(gap_ms);
            if receiver.wake() <= now {
                let due = receiver.wake();
                prop_assert_eq!(due, waiting[0] + Time::from_milliseconds(40));
                let reply = receiver.on_timer(due).expect("a segment waits");
                prop_assert_eq!(reply.ack, segment);
                waiting.clear();
            }
            waiting.push(now);
            if let Some(reply) = receiver.on_packet(&packet(Kind::Data, segment), now) {
                prop_assert_eq!(reply.ack, segment + 1);
                waiting.clear();
            }
            prop_assert!(waiting.len() < 2);
            prop_assert_eq!(receiver.wake().is_never(), waiting.is_empty());
        }
    }
}

#[test]
fn retransmits_its_syn_ack_with_backoff_up_to_the_ceiling() {
    let mut receiver = Receiver::new(&plan(true, DelayedAck::Off));
    receiver.on_packet(&packet(Kind::Syn, 0), Time::ZERO);
    let mut times_s = Vec::new();
    for _ in 0..9 {
        let due = receiver.wake();
        times_s.push(due.seconds());
        let reply = receiver.on_timer(due).expect("a SYN/ACK");
        assert_eq!(reply.kind, Kind::SynAck);
    }
    assert_eq!(
        times_s,
        [1.0, 3.0, 7.0, 15.0, 31.0, 63.0, 127.0, 247.0, 367.0]
    );
}

#[test]
fn a_duplicate_of_an_acknowledged_segment_advances_the_echo() {
    // RFC 7323 section 4.3, step 2: a segment that begins at or before the last ACK, with a later timestamp.
    let mut receiver = connected(true, DelayedAck::Off);
    let at = |sequence, milliseconds| Packet {
        timestamp: Time::from_milliseconds(milliseconds),
        ..packet(Kind::Data, sequence)
    };
    receiver.on_packet(&at(0, 10), Time::ZERO);
    let reply = receiver.on_packet(&at(0, 30), Time::ZERO);
    assert_eq!(
        reply.map(|reply| reply.echo),
        Some(Time::from_milliseconds(30))
    );
}

#[test]
fn segments_behind_a_hole_get_three_acks_and_then_compressed_ones() {
    let mut receiver = Receiver::new(&plan(true, DelayedAck::Quick));
    let mut now = Time::ZERO;
    receiver.on_packet(&packet(Kind::Syn, 0), now);
    now += Time::from_milliseconds(50);
    receiver.on_packet(&packet(Kind::LastAck, 0), now);
    let data = |receiver: &mut Receiver, segment, now| {
        receiver.on_packet(&packet(Kind::Data, segment), now)
    };
    // Until the quick ACKs of the connection's start are used up.
    let first_lost = (0..100)
        .find(|&segment| data(&mut receiver, segment, now).is_none())
        .map_or(0, |waiting| waiting + 1);
    let replies: Vec<_> = (1..=8)
        .map(|behind| data(&mut receiver, first_lost + behind, now))
        .collect();
    let at_once: Vec<bool> = replies.iter().map(Option::is_some).collect();
    assert_eq!(
        at_once,
        [true, true, true, false, false, false, false, false]
    );
    let due = receiver.wake();
    assert_eq!(due, now + Time::from_microseconds(1100));
    let reply = receiver.on_timer(due).expect("an ACK for the rest");
    let blocks = reply.blocks.expect("it is selective");
    assert_eq!(blocks.as_slice(), [(first_lost + 1, first_lost + 9)]);
    assert!(receiver.wake().is_never());
    let reply = data(&mut receiver, first_lost, due).expect("a filled hole is told at once");
    assert_eq!((reply.ack, reply.blocks), (first_lost + 9, None));
}

#[test]
fn a_waiting_ack_precedes_a_third_range() {
    let mut receiver = Receiver::new(&plan(true, DelayedAck::Quick));
    receiver.on_packet(&packet(Kind::Syn, 0), Time::ZERO);
    let now = Time::from_milliseconds(50);
    receiver.on_packet(&packet(Kind::LastAck, 0), now);
    let mut data = |segment| receiver.on_packet(&packet(Kind::Data, segment), now);
    // Until the quick ACKs of the connection's start are used up.
    let lost = (0..100)
        .find(|&segment| data(segment).is_none())
        .map_or(0, |waiting| waiting + 1);
    // The first range, reported three times; then it grows, and a second begins: these wait.
    let told: Vec<bool> = [1, 2, 3, 4, 6]
        .map(|behind| data(lost + behind).is_some())
        .to_vec();
    assert_eq!(told, [true, true, true, false, false]);
    // A third one: the two that wait are reported without it, and it waits.
    let first = data(lost + 8).expect("the ACK that waits");
    let blocks = |reply: &Reply| reply.blocks.expect("it is selective").as_slice().to_vec();
    assert_eq!(blocks(&first), [(lost + 6, lost + 7), (lost + 1, lost + 5)]);
    // What joins the latest range, or closes the gap to another, waits.
    assert!([7, 5].iter().all(|behind| data(lost + behind).is_none()));
    let replies = [10, 12].map(|behind| data(lost + behind));
    assert!(replies[0].is_none(), "a second range");
    assert!(replies[1].is_some(), "a third");
}

#[test]
fn without_sack_acks_of_segments_out_of_order_are_duplicates() {
    let mut flow = plan(true, DelayedAck::Quick);
    flow.tcp.sack = false;
    let mut receiver = Receiver::new(&flow);
    receiver.on_packet(&packet(Kind::Syn, 0), Time::ZERO);
    receiver.on_packet(&packet(Kind::LastAck, 0), Time::ZERO);
    let edges = [0, 2, 3, 4].map(|segment| {
        let reply = receiver.on_packet(&packet(Kind::Data, segment), Time::ZERO);
        reply.map(|reply| (reply.ack, reply.ack + reply.window))
    });
    assert!(edges[0].is_some());
    assert!(edges.iter().all(|edge| *edge == edges[0]), "{edges:?}");
}
