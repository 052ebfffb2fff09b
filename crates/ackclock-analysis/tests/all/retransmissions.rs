//! Inference from the order of packets alone: timers while acknowledgements arrive, data queued behind a hole, and
//! retransmissions that were lost before the vantage point.

use crate::kit::{fates, Trace};
use ackclock_analysis::tables::{Fate, RetransmitCause};

const LOST: (Fate, RetransmitCause) = (Fate::Lost, RetransmitCause::Unknown);
const NOT_CAPTURED: (Fate, RetransmitCause) = (Fate::LostBefore, RetransmitCause::Unknown);

/// Data with the identifications that a sender counts.
fn numbered(trace: &mut Trace, at_ms: i64, number: u32, identification: u32) {
    trace.data(at_ms, number).identification = Some(identification);
}

/// In the middle: ten segments with the identifications 1 to 10, the last at 109 ms, without those named.
fn ten_without(lost: &[u32]) -> Trace {
    let mut trace = Trace::after_handshake(50, 50);
    for number in (0..10).filter(|number| !lost.contains(number)) {
        numbered(&mut trace, 100 + i64::from(number), number, number + 1);
    }
    trace
}

#[test]
fn the_timer_may_expire_despite_acknowledgements() {
    let repaired_at = |at_ms: i64| {
        let mut trace = Trace::after_handshake(0, 100);
        for number in 0..3 {
            trace.data(100, number);
        }
        trace.ack(200, 1, &[]);
        trace.ack(201, 1, &[(2, 3)]);
        trace.data(at_ms - 150, 3);
        trace.ack(at_ms - 50, 1, &[(2, 4)]);
        trace.data(at_ms, 1);
        trace.ack(at_ms + 100, 4, &[]);
        fates(&trace.analysed(), 1)
    };
    assert_eq!(
        repaired_at(450),
        [LOST, (Fate::Delivered, RetransmitCause::Timeout)]
    );
    assert_eq!(
        repaired_at(370),
        [LOST, (Fate::Delivered, RetransmitCause::Fast)]
    );
}

#[test]
fn without_sack_filling_one_hole_uses_no_data_queued_behind_the_next() {
    let mut trace = Trace::after_handshake(0, 100);
    for number in 0..4 {
        trace.data(100, number);
    }
    trace.ack(200, 1, &[]);
    trace.ack(201, 1, &[]); // of the fourth
    for number in 1..4 {
        trace.data(500, number);
    }
    trace.ack(600, 2, &[]);
    trace.ack(601, 4, &[]);
    let found = trace.analysed();
    let repaired = [LOST, (Fate::Delivered, RetransmitCause::Timeout)];
    assert_eq!([fates(&found, 1), fates(&found, 2)], [repaired, repaired]);
    let waited = [
        (Fate::Delivered, RetransmitCause::Unknown),
        (Fate::Spurious, RetransmitCause::Timeout),
    ];
    assert_eq!(fates(&found, 3), waited);
}

#[test]
fn without_sack_data_queued_behind_a_hole_was_sent_before_its_retransmission() {
    let mut trace = Trace::after_handshake(0, 100);
    for number in 0..4 {
        trace.data(100, number);
    }
    trace.ack(200, 1, &[]);
    trace.ack(201, 1, &[]); // of the third
    trace.ack(202, 1, &[]); // of the fourth
    for number in 1..3 {
        trace.data(500, number);
    }
    trace.ack(600, 4, &[]);
    let found = trace.analysed();
    assert_eq!(
        fates(&found, 1),
        [LOST, (Fate::Delivered, RetransmitCause::Timeout)]
    );
    assert_eq!(
        fates(&found, 2),
        [
            (Fate::Delivered, RetransmitCause::Unknown),
            (Fate::Spurious, RetransmitCause::Timeout)
        ]
    );
    assert!((found.flows.rtt_max_s[0] - 0.1).abs() < 1e-9, "the fourth");
}

#[test]
fn ip_ids_reveal_retransmissions_lost_before_the_vantage_point() {
    let mut trace = ten_without(&[5]);
    trace.ack(150, 5, &[]);
    trace.ack(159, 5, &[(6, 10)]);
    // The retransmission has the number 11, and is lost too.
    numbered(&mut trace, 210, 10, 12);
    trace.ack(260, 5, &[(6, 11)]);
    numbered(&mut trace, 320, 5, 13);
    trace.ack(370, 11, &[]);
    let retransmission = |fate: Fate| (fate, RetransmitCause::Fast);
    assert_eq!(
        fates(&trace.analysed(), 5),
        [
            NOT_CAPTURED,
            retransmission(Fate::LostBefore),
            retransmission(Fate::Delivered)
        ]
    );
}

/// In the middle: of eleven segments 5, 7 and 8 are lost before the vantage point, as the sender hears at 210 ms; the
/// twelfth passes before that, with the identification 12.
fn three_lost() -> Trace {
    let mut trace = ten_without(&[5, 7, 8]);
    numbered(&mut trace, 110, 10, 11);
    trace.ack(150, 5, &[]);
    trace.ack(160, 5, &[(6, 7), (9, 11)]);
    numbered(&mut trace, 205, 11, 12);
    trace
}

#[test]
fn an_inferred_retransmission_is_retracted_if_new_data_is_missing() {
    let seven = |twelfth: bool| {
        let mut trace = three_lost();
        numbered(&mut trace, 211, 5, 13);
        // What has the number 14 is lost: between two repairs it seems to be one.
        numbered(&mut trace, 213, 8, 15);
        numbered(&mut trace, 215, if twelfth { 12 } else { 13 }, 16);
        numbered(&mut trace, 350, 7, 17);
        trace.ack(400, 12, &[]);
        fates(&trace.analysed(), 7)
    };
    let retransmission = |fate: Fate| (fate, RetransmitCause::Fast);
    assert_eq!(
        seven(true),
        [
            NOT_CAPTURED,
            retransmission(Fate::LostBefore),
            retransmission(Fate::Delivered)
        ]
    );
    assert_eq!(
        seven(false),
        [NOT_CAPTURED, retransmission(Fate::Delivered)]
    );
}

#[test]
fn no_data_is_retransmitted_twice_within_a_round_trip() {
    let seven = |at_ms: i64| {
        let mut trace = three_lost();
        numbered(&mut trace, 211, 5, 13);
        numbered(&mut trace, 213, 8, 15);
        numbered(&mut trace, at_ms, 7, 16);
        trace.ack(at_ms + 50, 12, &[]);
        fates(&trace.analysed(), 7)
    };
    let retransmission = |fate: Fate| (fate, RetransmitCause::Fast);
    assert_eq!(seven(214), [NOT_CAPTURED, retransmission(Fate::Delivered)]);
    assert_eq!(
        seven(314),
        [
            NOT_CAPTURED,
            retransmission(Fate::LostBefore),
            retransmission(Fate::Delivered)
        ]
    );
}

#[test]
fn a_retransmission_a_round_trip_late_is_the_second_if_a_packet_was_missing() {
    let seven = |missing: u32| {
        let mut trace = three_lost();
        numbered(&mut trace, 211, 5, 13 + missing); // before the first retransmission nothing explains it
        numbered(&mut trace, 212, 12, 14 + missing);
        numbered(&mut trace, 213, 8, 15 + missing);
        numbered(&mut trace, 314, 7, 16 + missing);
        trace.ack(364, 13, &[]);
        fates(&trace.analysed(), 7)
    };
    let retransmission = |fate: Fate| (fate, RetransmitCause::Fast);
    assert_eq!(
        seven(1),
        [
            NOT_CAPTURED,
            retransmission(Fate::LostBefore),
            retransmission(Fate::Delivered)
        ]
    );
    assert_eq!(seven(0), [NOT_CAPTURED, retransmission(Fate::Delivered)]);
}

/// Return the fates of the first of segments 5, 7 and 8, which is retransmitted at 530 ms. The sender has gone back to
/// 7 for a retransmission, with `missing` packets in the IP identifications before it.
fn first_of_three(missing: u32) -> Vec<(Fate, RetransmitCause)> {
    let mut trace = three_lost();
    numbered(&mut trace, 213, 8, 15); // behind retransmissions of 5 and 7
    for (number, identification) in [(12, 16), (14, 18), (16, 20), (17, 21)] {
        let at_ms = 230 + i64::from(number);
        numbered(&mut trace, at_ms, number, identification);
    }
    trace.ack(294, 5, &[(6, 7), (8, 13)]);
    trace.ack(299, 5, &[(6, 7), (8, 13), (14, 15), (16, 18)]);
    numbered(&mut trace, 352, 18, 22);
    for (number, identification) in [(7, 23), (13, 24), (15, 25)] {
        let at_ms = 330 + i64::from(identification);
        numbered(&mut trace, at_ms, number, identification + missing);
    }
    trace.ack(405, 5, &[(6, 19)]);
    numbered(&mut trace, 530, 5, 26 + missing);
    trace.ack(580, 19, &[]);
    fates(&trace.analysed(), 5)
}

#[test]
fn a_sender_that_resends_retransmissions_explains_a_missing_packet_without_a_timeout() {
    let lost = (Fate::LostBefore, RetransmitCause::Fast);
    let delivered = |cause: RetransmitCause| (Fate::Delivered, cause);
    let timeout = [NOT_CAPTURED, lost, delivered(RetransmitCause::Timeout)];
    assert_eq!(first_of_three(0), timeout);
    assert_eq!(
        first_of_three(1),
        [NOT_CAPTURED, lost, lost, delivered(RetransmitCause::Fast)]
    );
}

#[test]
fn without_an_ip_id_gap_late_data_is_reordered() {
    let five = |to_sender_ms: i64, identification: u32| {
        let mut trace = Trace::after_handshake(to_sender_ms, 50);
        for number in 0..10 {
            numbered(&mut trace, 100 + i64::from(number), number, number + 1);
        }
        trace.ack(150, 5, &[]);
        trace.ack(159, 5, &[(6, 10)]);
        numbered(&mut trace, 215, 10, identification);
        trace.ack(320, 11, &[]);
        fates(&trace.analysed(), 5)
    };
    for to_sender_ms in [0, 50] {
        assert_eq!(
            five(to_sender_ms, 11),
            [(Fate::Delivered, RetransmitCause::Unknown)]
        );
    }
    assert_eq!(
        five(0, 12),
        [LOST, (Fate::NotCaptured, RetransmitCause::Fast)]
    );
}

#[test]
fn ip_ids_reveal_a_tail_lost_before_the_vantage_point() {
    let mut trace = ten_without(&[]);
    trace.ack(159, 10, &[]);
    // 11 and 12 are lost, and retransmitted when the timer expires.
    numbered(&mut trace, 600, 10, 13);
    trace.ack(650, 11, &[]);
    numbered(&mut trace, 700, 11, 14);
    trace.ack(750, 12, &[]);
    numbered(&mut trace, 800, 12, 15);
    trace.ack(850, 13, &[]);
    let found = trace.analysed();
    for number in [10, 11] {
        let outcome = fates(&found, number);
        assert_eq!(
            outcome,
            [NOT_CAPTURED, (Fate::Delivered, RetransmitCause::Timeout)]
        );
    }
    assert_eq!(
        fates(&found, 12),
        [(Fate::Delivered, RetransmitCause::Unknown)]
    );
}

#[test]
fn a_retransmission_is_spurious_if_the_original_arrives_late() {
    let mut trace = ten_without(&[5]);
    trace.ack(150, 5, &[]);
    trace.ack(159, 5, &[(6, 10)]);
    numbered(&mut trace, 210, 5, 11);
    numbered(&mut trace, 212, 5, 6);
    trace.ack(260, 10, &[]);
    assert_eq!(
        fates(&trace.analysed(), 5),
        [
            (Fate::Reordered, RetransmitCause::Unknown),
            (Fate::Spurious, RetransmitCause::Fast)
        ]
    );
}

#[test]
fn a_late_retransmission_is_not_the_original() {
    let mut trace = ten_without(&[5, 6]);
    trace.ack(150, 5, &[]);
    trace.ack(159, 5, &[(7, 10)]);
    numbered(&mut trace, 210, 6, 12);
    numbered(&mut trace, 211, 5, 11);
    trace.ack(260, 10, &[]);
    let found = trace.analysed();
    for number in [5, 6] {
        let outcome = fates(&found, number);
        assert_eq!(
            outcome,
            [NOT_CAPTURED, (Fate::Delivered, RetransmitCause::Fast)],
            "{number}"
        );
    }
}

#[test]
fn arrived_data_was_not_retransmitted_uncaptured_unless_marked_lost() {
    let mut trace = ten_without(&[5, 6]);
    trace.ack(150, 5, &[]);
    trace.ack(159, 5, &[(7, 10)]);
    numbered(&mut trace, 210, 5, 11);
    // Of the retransmission of 6, number 12, nothing is seen; the first retransmission has arrived, though that is not
    // yet heard.
    trace.ack(260, 6, &[(7, 10)]);
    numbered(&mut trace, 305, 10, 13);
    trace.ack(355, 6, &[(7, 11)]);
    numbered(&mut trace, 410, 6, 14);
    trace.ack(460, 11, &[]);
    let found = trace.analysed();
    let retransmission = |fate: Fate| (fate, RetransmitCause::Fast);
    assert_eq!(
        fates(&found, 5),
        [NOT_CAPTURED, retransmission(Fate::Delivered)]
    );
    let twice = [
        NOT_CAPTURED,
        retransmission(Fate::LostBefore),
        retransmission(Fate::Delivered),
    ];
    assert_eq!(fates(&found, 6), twice);
}

#[test]
fn the_handshake_rtt_bounds_the_ack_delay_despite_delayed_acks() {
    let mut trace = Trace::after_handshake(0, 30);
    trace.data(100, 0);
    trace.data(100, 1);
    trace.ack(330, 1, &[]);
    for number in 2..5 {
        trace.data(330, number);
        trace.ack(358 + i64::from(number), 1, &[]);
    }
    trace.data(363, 1);
    trace.ack(393, 5, &[]);
    let outcome = fates(&trace.analysed(), 1);
    assert_eq!(outcome, [LOST, (Fate::Delivered, RetransmitCause::Fast)]);
}

#[test]
fn unresolved_data_at_the_end_is_reported() {
    let mut trace = ten_without(&[5]);
    trace.ack(159, 5, &[(6, 10)]);
    assert_eq!(fates(&trace.analysed(), 5), [NOT_CAPTURED]);
    let mut at_sender = Trace::after_handshake(0, 100);
    for number in 0..6 {
        at_sender.data(100, number);
    }
    at_sender.ack(200, 1, &[(2, 5)]);
    let found = at_sender.analysed();
    assert_eq!(fates(&found, 1), [LOST]);
    assert_eq!(
        fates(&found, 5),
        [(Fate::Unresolved, RetransmitCause::Unknown)]
    );
}

#[test]
fn the_first_round_trips_may_be_longer_than_the_path_is() {
    let repaired_after = |round_trips: u32| {
        let mut trace = Trace::after_handshake(0, 140);
        for number in 0..round_trips {
            let at_ms = 200 * i64::from(number + 1);
            trace.data(at_ms, number);
            trace.ack(at_ms + 140, number + 1, &[]);
        }
        let at_ms = 200 * i64::from(round_trips + 1);
        for number in round_trips..round_trips + 5 {
            trace.data(at_ms, number);
        }
        let sacked = (round_trips + 1, round_trips + 5);
        trace.ack(at_ms + 140, round_trips, &[sacked]);
        trace.data(at_ms + 141, round_trips);
        trace.ack(at_ms + 241, round_trips + 5, &[]);
        fates(&trace.analysed(), round_trips)
    };
    assert_eq!(
        repaired_after(8),
        [LOST, (Fate::Delivered, RetransmitCause::Fast)]
    );
    let late = [
        (Fate::Delivered, RetransmitCause::Unknown),
        (Fate::Spurious, RetransmitCause::Fast),
    ];
    assert_eq!(repaired_after(20), late);
}
