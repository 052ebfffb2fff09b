//! Fates of segments and causes of retransmissions, on hand-made captures.

use crate::kit::{self, analysed, count, fates, segment, Trace, MSS};
use ackclock_analysis::tables::{Fate, RetransmitCause, Vantage};
use ackclock_core::tables::EventKind;

const DELIVERED: (Fate, RetransmitCause) = (Fate::Delivered, RetransmitCause::Unknown);
const LOST: (Fate, RetransmitCause) = (Fate::Lost, RetransmitCause::Unknown);

/// At the sender, 100 ms from the receiver.
fn at_sender() -> Trace {
    Trace::after_handshake(0, 100)
}

fn flight(trace: &mut Trace, at_ms: i64, numbers: std::ops::Range<u32>) {
    for number in numbers {
        trace.data(at_ms, number);
    }
}

#[test]
fn acknowledged_data_is_delivered() {
    let mut trace = at_sender();
    flight(&mut trace, 100, 0..4);
    trace.ack(200, 2, &[]);
    trace.ack(201, 4, &[]);
    let found = trace.analysed();
    for number in 0..4 {
        assert_eq!(fates(&found, number), [DELIVERED]);
    }
    let flows = &found.flows;
    assert_eq!(flows.flow, [0]);
    assert_eq!(Vantage::NAMES[usize::from(flows.vantage[0])], "sender");
    assert_eq!(
        (flows.delivered_bytes[0], flows.initial_window[0]),
        (4000, 4)
    );
    assert!((flows.rtt_min_s[0] - 0.1).abs() < 1e-9);
    assert!((flows.handshake_s[0] - 0.1).abs() < 1e-9);
    assert!((flows.goodput_bps[0] - 4000.0 * 8.0 / 0.101).abs() < 1.0);
}

#[test]
fn fast_retransmit_follows_sack_blocks() {
    let mut trace = at_sender();
    flight(&mut trace, 100, 0..6);
    trace.ack(200, 1, &[]);
    for (at_ms, end) in [(201, 3), (202, 4), (203, 5), (204, 6)] {
        trace.ack(at_ms, 1, &[(2, end)]);
    }
    trace.data(204, 1);
    trace.ack(304, 6, &[]);
    let found = trace.analysed();
    assert_eq!(
        fates(&found, 1),
        [LOST, (Fate::Delivered, RetransmitCause::Fast)]
    );
    assert_eq!(count(&found, EventKind::Recovery), 1);
    assert_eq!(count(&found, EventKind::Loss), 1);
    assert_eq!(found.flows.retransmissions_fast, [1]);
}

#[test]
fn fast_retransmit_follows_duplicate_acks_without_sack() {
    let mut trace = at_sender();
    flight(&mut trace, 100, 0..6);
    for at_ms in 200..204 {
        trace.ack(at_ms, 1, &[]);
    }
    trace.data(204, 1);
    trace.ack(304, 6, &[]);
    let found = trace.analysed();
    assert_eq!(
        fates(&found, 1),
        [LOST, (Fate::Delivered, RetransmitCause::Fast)]
    );
}

#[test]
fn the_timer_retransmits_without_loss_reports() {
    let mut trace = at_sender();
    flight(&mut trace, 100, 0..3);
    trace.ack(200, 1, &[]);
    flight(&mut trace, 200, 3..5);
    trace.data(700, 1);
    trace.ack(800, 2, &[]);
    trace.data(800, 2);
    trace.data(800, 3);
    trace.ack(900, 4, &[]);
    trace.data(900, 4);
    trace.ack(1000, 5, &[]);
    let found = trace.analysed();
    for number in 1..5 {
        let fates = fates(&found, number);
        assert_eq!(
            fates,
            [LOST, (Fate::Delivered, RetransmitCause::Timeout)],
            "{number}"
        );
    }
    assert_eq!(count(&found, EventKind::Timeout), 1);
    assert_eq!(kit::stalls(&found), ["continuous_loss"]);
}

#[test]
fn the_end_of_a_flight_is_probed() {
    let mut trace = at_sender();
    flight(&mut trace, 100, 0..4);
    trace.ack(200, 3, &[]);
    trace.segments.last_mut().unwrap().options.sack_permitted = true;
    flight(&mut trace, 200, 4..8);
    trace.data(500, 7);
    trace.ack(600, 3, &[(7, 8)]);
    let found = trace.analysed();
    let probe = fates(&found, 7)[1];
    assert_eq!(probe, (Fate::Delivered, RetransmitCause::TailProbe));
    assert_eq!(count(&found, EventKind::TailProbe), 1);
}

#[test]
fn a_dsack_reports_a_spurious_retransmission() {
    let mut trace = at_sender();
    flight(&mut trace, 100, 0..6);
    for (at_ms, end) in [(201, 3), (202, 4), (203, 5), (204, 6)] {
        trace.ack(at_ms, 1, &[(2, end)]);
    }
    trace.data(204, 1);
    trace.ack(206, 6, &[]);
    trace.ack(304, 6, &[(1, 2)]);
    let found = trace.analysed();
    assert_eq!(
        fates(&found, 1),
        [DELIVERED, (Fate::Spurious, RetransmitCause::Fast)]
    );
    assert_eq!(found.flows.retransmissions_spurious, [1]);
    assert_eq!(
        (found.flows.lost[0], found.flows.retransmissions_fast[0]),
        (0, 0)
    );
}

#[test]
fn a_timestamp_echo_identifies_the_copy_that_arrived() {
    let mut trace = at_sender();
    trace.timestamps = true;
    flight(&mut trace, 100, 0..4);
    trace.data(500, 0);
    // So late that time alone would speak for the second copy.
    trace.ack(650, 4, &[]).options.timestamps = Some((1, 1100));
    let found = trace.analysed();
    assert_eq!(fates(&found, 0)[0], DELIVERED);
    assert_eq!(fates(&found, 0)[1].0, Fate::Spurious);
}

#[test]
fn at_the_sender_no_data_is_reordered() {
    let mut trace = at_sender();
    for number in [0, 2, 3, 4] {
        trace.data(100, number);
    }
    trace.data(150, 1);
    trace.ack(250, 5, &[]);
    for segment in &mut trace.segments {
        segment.outbound = Some(segment.source.port == 40_000);
    }
    let found = trace.analysed();
    assert_eq!(found.flows.reordered, [0]);
    assert_eq!(fates(&found, 1).len(), 2);
    // The first copy is missing in the capture, and did not arrive.
    assert_eq!((found.flows.lost[0], found.flows.not_captured[0]), (1, 1));
}

#[test]
fn late_data_mid_path_is_reordered() {
    for (identification, fate) in [
        (7, (Fate::Reordered, RetransmitCause::Unknown)),
        (12, (Fate::Delivered, RetransmitCause::Fast)),
    ] {
        let mut trace = Trace::after_handshake(50, 50);
        for (number, identification) in [(0, 6), (2, 8), (3, 9), (4, 10)] {
            trace.data(100, number).identification = Some(identification);
        }
        for (at_ms, end) in [(150, 3), (151, 4), (152, 5)] {
            trace.ack(at_ms, 1, &[(2, end)]);
        }
        trace.data(203, 1).identification = Some(identification);
        trace.ack(254, 5, &[]);
        let found = trace.analysed();
        assert_eq!(fates(&found, 1).last(), Some(&fate));
    }
}

/// At the receiver: every tenth packet overtakes nine, which came 9 ms later than it.
fn overtaken(packets: u32) -> Trace {
    let mut trace = Trace::after_handshake(40, 0);
    for number in 0..packets {
        let (block, place) = (number / 10 * 10, number % 10);
        let sent = block + if place == 0 { 9 } else { place - 1 };
        let at_ms = 100 + i64::from(number);
        trace.data(at_ms, sent).identification = Some(1 + sent);
        if place == 0 {
            trace.ack(at_ms, block, &[(block + 9, block + 10)]);
        } else if place < 9 {
            trace.ack(at_ms, sent + 1, &[(block + 9, block + 10)]);
        } else {
            trace.ack(at_ms, block + 10, &[]);
        }
    }
    trace
}

#[test]
fn late_packets_at_the_receiver_are_reordered_and_none_is_lost() {
    let flows = overtaken(500).analysed().flows;
    assert_eq!((flows.lost[0], flows.lost_upstream[0]), (0, 0));
    assert_eq!((flows.retransmissions[0], flows.reordered[0]), (0, 450));
}

#[test]
fn what_may_still_be_on_its_way_at_the_end_is_not_lost() {
    // The capture ends behind a packet that overtook nine, sooner than any retransmission can come.
    let flows = overtaken(491).analysed().flows;
    assert_eq!((flows.lost_upstream[0], flows.reordered[0]), (0, 441));
}

#[test]
fn losses_before_a_mid_path_vantage_are_not_captured() {
    let mut trace = Trace::after_handshake(50, 50);
    for number in [0, 2, 3, 4] {
        trace.data(100, number);
    }
    for (at_ms, end) in [(150, 3), (151, 4), (152, 5)] {
        trace.ack(at_ms, 1, &[(2, end)]);
    }
    trace.data(203, 1);
    trace.ack(254, 5, &[]);
    let found = trace.analysed();
    let before = (Fate::LostBefore, RetransmitCause::Unknown);
    assert_eq!(
        fates(&found, 1),
        [before, (Fate::Delivered, RetransmitCause::Fast)]
    );
    assert_eq!(
        (found.flows.lost_upstream[0], found.flows.not_captured[0]),
        (1, 0)
    );
}

#[test]
fn the_same_packet_twice_is_the_network_s_work() {
    let mut trace = Trace::after_handshake(50, 50);
    trace.data(100, 0).identification = Some(5);
    trace.data(101, 0).identification = Some(5);
    trace.ack(150, 1, &[]);
    let found = trace.analysed();
    assert_eq!(found.flows.duplicates, [1]);
    assert_eq!(found.flows.retransmissions, [0]);
}

#[test]
fn acknowledged_but_uncaptured_data_is_a_capture_loss() {
    let mut trace = at_sender();
    for number in [0, 1, 4] {
        trace.data(100, number);
    }
    trace.ack(200, 5, &[]);
    trace.data(300, 5);
    trace.ack(400, 8, &[]);
    let found = trace.analysed();
    assert_eq!(
        fates(&found, 2),
        [(Fate::NotCaptured, RetransmitCause::Unknown)]
    );
    assert_eq!(found.flows.not_captured, [4]);
    assert_eq!(found.flows.lost, [0]);
}

#[test]
fn an_acknowledgement_before_its_data_is_disorder_of_the_capture() {
    let mut trace = at_sender();
    trace.data(100, 0);
    trace.ack(200, 3, &[]);
    trace.data(200, 1);
    trace.data(201, 2);
    let found = trace.analysed();
    assert_eq!(found.flows.not_captured, [0]);
    assert_eq!(fates(&found, 2), [DELIVERED]);
}

#[test]
fn super_segments_count_as_the_segments_in_them() {
    let mut trace = at_sender();
    trace.data(100, 0).payload_bytes = 10 * MSS;
    trace.ack(200, 10, &[]);
    let found = trace.analysed();
    let flows = &found.flows;
    assert_eq!((flows.data_packets[0], flows.data_segments[0]), (1, 10));
    assert_eq!((flows.super_segments[0], flows.delivered[0]), (1, 10));
}

#[test]
fn a_part_of_a_super_segment_is_retransmitted() {
    let mut trace = at_sender();
    trace.data(100, 0).payload_bytes = 8 * MSS;
    for (at_ms, end) in [(201, 4), (202, 6), (203, 8)] {
        trace.ack(at_ms, 2, &[(3, end)]);
    }
    trace.data(203, 2);
    trace.ack(303, 8, &[]);
    let found = trace.analysed();
    assert_eq!(
        fates(&found, 2),
        [LOST, (Fate::Delivered, RetransmitCause::Fast)]
    );
    assert_eq!((found.flows.delivered[0], found.flows.lost[0]), (8, 1));
}

#[test]
fn syns_are_counted_by_their_number() {
    let mut trace = Trace::after_handshake(0, 100);
    let mut segments = trace.segments.split_off(0);
    segments.insert(1, segments[0]);
    segments[1].time_ns = Some(50_000_000);
    let mut other = segments[0];
    other.time_ns = Some(5_000_000_000);
    other.sequence = 77;
    segments.push(other);
    let found = analysed(&segments);
    assert_eq!(found.flows.flow, [0, 2]);
    assert_eq!(found.flows.syn_retransmissions, [1, 0]);
    assert_eq!(count(&found, EventKind::SynRetransmission), 1);
}

#[test]
fn sequence_numbers_wrap() {
    let shift = u32::MAX - 2500;
    let mut trace = at_sender();
    flight(&mut trace, 100, 0..6);
    trace.ack(200, 6, &[]);
    for segment in &mut trace.segments {
        let client = segment.source.port == 40_000;
        let field = if client {
            &mut segment.sequence
        } else {
            &mut segment.acknowledgement
        };
        *field = field.wrapping_add(shift);
    }
    let found = trace.analysed();
    assert_eq!(found.flows.delivered, [6]);
    assert_eq!(found.flows.delivered_bytes, [6000]);
}

#[test]
fn a_capture_may_begin_in_the_middle() {
    let mut trace = at_sender();
    flight(&mut trace, 100, 3..6);
    trace.ack(200, 6, &[]);
    let found = analysed(&trace.segments[3..]);
    assert_eq!(
        (found.flows.delivered[0], found.flows.delivered_bytes[0]),
        (3, 3000)
    );
    assert!(!found.flows.opened[0] && found.flows.handshake_s[0].is_nan());
}

#[test]
fn one_way_captures_yield_retransmissions_but_no_fates() {
    let mut trace = at_sender();
    flight(&mut trace, 100, 0..4);
    trace.data(400, 1);
    trace
        .segments
        .retain(|one| one.source == segment(0, true).source);
    let found = trace.analysed();
    assert_eq!(found.flows.unresolved, [4]);
    assert_eq!(found.flows.retransmissions, [1]);
    assert!(found.flows.rtt_min_s[0].is_nan());
}

#[test]
fn stalls_are_classified() {
    // Nothing outstanding.
    let mut idle = at_sender();
    idle.data(100, 0);
    idle.ack(200, 1, &[]);
    idle.data(2000, 1);
    assert_eq!(kit::stalls(&idle.analysed()), ["application"]);
    // The window is shut until an update.
    let mut shut = at_sender();
    shut.data(100, 0);
    shut.ack(200, 1, &[]).window = 0;
    shut.ack(2000, 1, &[]);
    assert_eq!(kit::stalls(&shut.analysed()), ["receiver"]);
    // Acknowledgements that come late, of which nobody made anything.
    let mut late = at_sender();
    flight(&mut late, 100, 0..2);
    late.ack(200, 1, &[]);
    late.ack(2000, 2, &[]);
    assert_eq!(kit::stalls(&late.analysed()), ["ack_delay"]);
}

/// Data 15 ms after each acknowledgement, which it echoes, or one that is older.
fn echoing(behind: i64) -> Trace {
    let mut trace = at_sender();
    for number in 0..60_i64 {
        let at_ms = 125 + 30 * number;
        let heard = (at_ms - 200).div_euclid(30) - behind;
        let echo = (10_000 + 30 * heard.max(-2)) as u32;
        trace.data(at_ms, number as u32).options.timestamps = Some((at_ms as u32, echo));
    }
    for number in 0..57_i64 {
        let at_ms = 200 + 30 * number;
        let tsval = (10_000 + 30 * number) as u32;
        let ack = trace.ack(at_ms, number as u32 + 1, &[]);
        ack.options.timestamps = Some((tsval, at_ms as u32 - 75));
    }
    trace.segments.sort_by_key(|segment| segment.time_ns);
    trace
}

#[test]
fn a_paced_sender_has_received_all_acks_and_one_behind_a_queue_has_not() {
    for (behind, vantage) in [(0, Vantage::Sender), (1, Vantage::Middle)] {
        let found = echoing(behind).analysed();
        assert_eq!(found.flows.vantage, [vantage as u8], "{behind} behind");
    }
}
