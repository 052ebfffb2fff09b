//! Losses of packets that were not captured: IP identifications and times reveal them, so that the losses of the
//! capture are told apart from those of the network.

use crate::kit::{self, fates, Trace};
use ackclock_analysis::tables::{Fate, RetransmitCause, Tables};

const LOST: (Fate, RetransmitCause) = (Fate::Lost, RetransmitCause::Unknown);
const DELIVERED: (Fate, RetransmitCause) = (Fate::Delivered, RetransmitCause::Unknown);
const MISSED: (Fate, RetransmitCause) = (Fate::NotCaptured, RetransmitCause::Unknown);
const BEFORE: (Fate, RetransmitCause) = (Fate::LostBefore, RetransmitCause::Unknown);

/// The sixth of the ten segments.
const SIXTH: u32 = 15;

const fn retransmission(fate: Fate) -> (Fate, RetransmitCause) {
    (fate, RetransmitCause::Fast)
}

/// Data with the identifications that a sender counts.
fn numbered(trace: &mut Trace, at_ms: i64, number: u32, identification: u32) {
    trace.data(at_ms, number).identification = Some(identification);
}

/// Ten segments, 0 to 9 at 100 ms, that all come, and then ten, 10 to 19 from 1000 to 1009 ms with the identifications
/// 11 to 20, of which the sixth does not. Those named are not in the capture.
fn sixth_lost((to_sender_ms, to_receiver_ms): (i64, i64), missed: &[u32]) -> Trace {
    let mut trace = Trace::after_handshake(to_sender_ms, to_receiver_ms);
    for number in (0..20).filter(|number| !missed.contains(number)) {
        let begin_ms = if number < 10 { 100 } else { 990 };
        if number == 10 {
            trace.ack(110 + to_receiver_ms, 10, &[]);
        }
        numbered(&mut trace, begin_ms + i64::from(number), number, number + 1);
    }
    trace.ack(1000 + to_receiver_ms, SIXTH, &[]);
    trace.ack(1009 + to_receiver_ms, SIXTH, &[(16, 20)]);
    trace
}

const AT_SENDER: (i64, i64) = (0, 100);
const IN_THE_MIDDLE: (i64, i64) = (50, 50);
const AT_RECEIVER: (i64, i64) = (100, 0);

/// When the copies of a segment were sent, in milliseconds.
fn sent_ms(found: &Tables, number: u32) -> Vec<i64> {
    let rows = &found.segments;
    let mut all: Vec<i64> = (0..rows.flow.len())
        .filter(|&row| rows.offset_bytes[row] == u64::from(number * kit::MSS))
        .map(|row| (rows.time_s[row] * 1000.0).round() as i64)
        .collect();
    all.sort_unstable();
    all
}

#[test]
fn at_the_sender_an_uncaptured_retransmission_was_lost_if_the_next_follows_a_round_trip_later() {
    let repaired_by = |identification: u32, missed: &[u32]| {
        let mut trace = sixth_lost(AT_SENDER, missed);
        numbered(&mut trace, 1111, 20, identification - 1);
        trace.ack(1211, SIXTH, &[(16, 21)]);
        numbered(&mut trace, 1230, SIXTH, identification);
        trace.ack(1330, 21, &[]);
        fates(&trace.analysed(), SIXTH)
    };
    let once = [LOST, retransmission(Fate::Delivered)];
    let twice = [
        LOST,
        retransmission(Fate::Lost),
        retransmission(Fate::Delivered),
    ];
    assert_eq!(repaired_by(22, &[2]), once);
    assert_eq!(repaired_by(23, &[2]), twice);
    assert_eq!(repaired_by(23, &[]), once, "the capture misses nothing");
}

#[test]
fn at_the_sender_an_uncaptured_retransmission_counts_from_its_loss_detection() {
    let outcome = |acked_ms: i64| {
        let mut trace = sixth_lost(AT_SENDER, &[2]);
        // The retransmission has the number 21, and passes at 1110 ms; the next data waits.
        numbered(&mut trace, 1140, 20, 22);
        trace.ack(acked_ms, 20, &[]);
        trace.ack(1240, 21, &[]);
        let found = trace.analysed();
        (fates(&found, SIXTH), sent_ms(&found, SIXTH))
    };
    let sent = vec![1005, 1109];
    let repaired = vec![LOST, retransmission(Fate::NotCaptured)];
    assert_eq!(outcome(1211), (repaired, sent.clone()));
    let needless = vec![DELIVERED, retransmission(Fate::Spurious)];
    assert_eq!(outcome(1150), (needless, sent));
}

#[test]
fn an_ip_id_gap_is_no_retransmission_if_an_acknowledgement_reveals_new_data() {
    let mut trace = sixth_lost(AT_SENDER, &[2]);
    numbered(&mut trace, 1110, SIXTH, 21);
    // New data with the number 22 is not there; it is acknowledged before more is seen.
    trace.ack(1210, 21, &[]);
    numbered(&mut trace, 1211, 21, 23);
    numbered(&mut trace, 1212, 22, 24);
    trace.ack(1311, 22, &[]);
    trace.ack(1312, 23, &[]);
    let found = trace.analysed();
    assert_eq!(fates(&found, 20), [MISSED]);
    for number in [16, 21, 22] {
        assert_eq!(fates(&found, number), [DELIVERED], "{number}");
    }
}

#[test]
fn at_the_sender_a_gap_before_new_data_can_have_been_no_data() {
    let mut trace = sixth_lost(AT_SENDER, &[2]);
    numbered(&mut trace, 1110, SIXTH, 21);
    trace.ack(1210, 20, &[]);
    // What has the number 22 is not there.
    numbered(&mut trace, 1900, 20, 23);
    trace.ack(2000, 21, &[]);
    let found = trace.analysed();
    assert_eq!(fates(&found, 20), [DELIVERED]);
    assert_eq!(found.flows.timeouts[0], 0);
}

#[test]
fn an_uncaptured_segment_sacked_a_round_trip_after_its_loss_was_retransmitted() {
    let arrives_at = |at_ms: i64, to_ms: (i64, i64)| {
        let mut trace = sixth_lost(to_ms, &[SIXTH]);
        trace.ack(at_ms, 20, &[]);
        fates(&trace.analysed(), SIXTH)
    };
    let outcome = arrives_at(1210, AT_SENDER);
    assert_eq!(outcome, [LOST, retransmission(Fate::NotCaptured)]);
    for to_ms in [IN_THE_MIDDLE, AT_RECEIVER] {
        let outcome = arrives_at(1110 + to_ms.1, to_ms);
        assert_eq!(
            outcome,
            [BEFORE, retransmission(Fate::NotCaptured)],
            "{to_ms:?}"
        );
    }
    assert_eq!(arrives_at(1130, AT_SENDER), [MISSED], "it came late");
}

/// In the middle, without SACK: the third of four is not there, and comes; of the next four neither does the first come
/// nor the third, as far as the capture goes.
fn without_sack(third_comes: bool) -> Trace {
    let mut trace = Trace::after_handshake(50, 50);
    for number in [0, 1, 3] {
        trace.data(100, number);
    }
    if third_comes {
        trace.ack(150, 4, &[]);
    } else {
        trace.ack(150, 2, &[]);
        trace.ack(151, 2, &[]);
        trace.data(500, 2);
        trace.ack(550, 4, &[]);
    }
    for number in [5, 7] {
        trace.data(601, number);
    }
    trace
}

#[test]
fn uncaptured_data_at_the_end_is_not_reported_if_capture_losses_dominate() {
    assert_eq!(fates(&without_sack(true).analysed(), 6), []);
    assert_eq!(fates(&without_sack(false).analysed(), 6), [BEFORE]);
}

#[test]
fn mid_path_an_early_arrival_implies_another_copy_only_after_capture_losses() {
    let sixth = |missed: &[u32]| {
        let mut trace = sixth_lost(IN_THE_MIDDLE, missed);
        // The retransmission has the number 21.
        numbered(&mut trace, 1110, 20, 22);
        trace.ack(1160, SIXTH, &[(16, 21)]);
        numbered(&mut trace, 1220, SIXTH, 23);
        trace.ack(1225, 21, &[]);
        fates(&trace.analysed(), SIXTH)
    };
    let whole = [
        BEFORE,
        retransmission(Fate::LostBefore),
        retransmission(Fate::Delivered),
    ];
    assert_eq!(sixth(&[SIXTH]), whole);
    let missing = [
        BEFORE,
        retransmission(Fate::NotCaptured),
        retransmission(Fate::Spurious),
    ];
    assert_eq!(sixth(&[2, SIXTH]), missing);
}
