//! The network loses what the capture has not: identifications and times tell of it, for the rest of the capture to be
//! no worse than the network was. Captures by hand.

use ackclock_capture::tables::{Cause, Fate};
use kit::{fates, Trace};

mod kit;

const LOST: (Fate, Cause) = (Fate::Lost, Cause::Unknown);
const DELIVERED: (Fate, Cause) = (Fate::Delivered, Cause::Unknown);
const MISSED: (Fate, Cause) = (Fate::CaptureLost, Cause::Unknown);

const fn repair(fate: Fate) -> (Fate, Cause) {
    (fate, Cause::Fast)
}

/// Data with the identifications that a sender counts.
fn numbered(trace: &mut Trace, at_ms: i64, number: u32, identification: u32) {
    trace.data(at_ms, number).identification = Some(identification);
}

/// Ten segments with the identifications 1 to 10, the last at 109 ms, and all but the sixth come; those named are not in
/// the capture.
fn sixth_lost(to_sender_ms: i64, to_receiver_ms: i64, missed: &[u32]) -> Trace {
    let mut trace = Trace::after_handshake(to_sender_ms, to_receiver_ms);
    for number in (0..10).filter(|number| !missed.contains(number)) {
        numbered(&mut trace, 100 + i64::from(number), number, number + 1);
    }
    trace.ack(100 + to_receiver_ms, 5, &[]);
    trace.ack(109 + to_receiver_ms, 5, &[(6, 10)]);
    trace
}

#[test]
fn at_the_sender_a_repair_that_is_not_there_was_lost_if_the_next_comes_a_round_trip_later() {
    let repaired_by = |identification: u32| {
        let mut trace = sixth_lost(0, 100, &[]);
        numbered(&mut trace, 210, 10, identification - 1);
        trace.ack(310, 5, &[(6, 11)]);
        numbered(&mut trace, 330, 5, identification);
        trace.ack(430, 11, &[]);
        fates(&trace.analysed(), 5)
    };
    assert_eq!(repaired_by(12), [LOST, repair(Fate::Delivered)]);
    let twice = [LOST, repair(Fate::Lost), repair(Fate::Delivered)];
    assert_eq!(repaired_by(13), twice);
}

#[test]
fn at_the_sender_a_repair_that_is_not_there_was_sent_before_what_shows_the_gap() {
    let mut trace = sixth_lost(0, 100, &[]);
    trace.ack(210, 5, &[(6, 10)]);
    // The repair has the number 11, and passes at 210 ms; the next data waits.
    numbered(&mut trace, 290, 10, 12);
    trace.ack(311, 10, &[]);
    trace.ack(390, 11, &[]);
    let told = fates(&trace.analysed(), 5);
    assert_eq!(told, [LOST, repair(Fate::CaptureLost)]);
}

#[test]
fn a_gap_in_the_numbers_is_no_repair_if_an_acknowledgement_told_what_is_missing() {
    let mut trace = sixth_lost(0, 100, &[]);
    numbered(&mut trace, 210, 5, 11);
    // New data with the number 12 is not there; it is acknowledged before more is seen.
    trace.ack(310, 11, &[]);
    numbered(&mut trace, 311, 11, 13);
    numbered(&mut trace, 312, 12, 14);
    trace.ack(411, 12, &[]);
    trace.ack(412, 13, &[]);
    let found = trace.analysed();
    assert_eq!(fates(&found, 10), [MISSED]);
    for number in [6, 11, 12] {
        assert_eq!(fates(&found, number), [DELIVERED], "{number}");
    }
}

#[test]
fn what_is_not_there_was_lost_and_repaired_if_it_arrives_a_round_trip_after_it_is_missed() {
    let arrives_at = |at_ms: i64, to_ms: (i64, i64)| {
        let mut trace = sixth_lost(to_ms.0, to_ms.1, &[5]);
        trace.ack(at_ms, 10, &[]);
        fates(&trace.analysed(), 5)
    };
    assert_eq!(arrives_at(310, (0, 100)), [LOST, repair(Fate::CaptureLost)]);
    for to_ms in [(50, 50), (100, 0)] {
        let at_ms = 210 + to_ms.1;
        let before = (Fate::LostBefore, Cause::Unknown);
        let told = arrives_at(at_ms, to_ms);
        assert_eq!(told, [before, repair(Fate::CaptureLost)], "{to_ms:?}");
    }
    assert_eq!(arrives_at(230, (0, 100)), [MISSED], "it came late");
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
fn what_is_not_there_at_the_end_is_not_told_if_nothing_tells_of_it_and_the_capture_misses_more_than_the_network(
) {
    assert_eq!(fates(&without_sack(true).analysed(), 6), []);
    let told = fates(&without_sack(false).analysed(), 6);
    assert_eq!(told, [(Fate::LostBefore, Cause::Unknown)]);
}

#[test]
fn on_the_way_what_arrives_too_soon_for_the_repair_that_was_seen_is_another_only_if_the_capture_is_known_to_miss_some(
) {
    let sixth = |missed: &[u32]| {
        let mut trace = sixth_lost(50, 50, missed);
        // The repair has the number 11.
        numbered(&mut trace, 210, 10, 12);
        trace.ack(260, 5, &[(6, 11)]);
        numbered(&mut trace, 320, 5, 13);
        trace.ack(325, 11, &[]);
        fates(&trace.analysed(), 5)
    };
    let before = (Fate::LostBefore, Cause::Unknown);
    let whole = [before, repair(Fate::LostBefore), repair(Fate::Delivered)];
    assert_eq!(sixth(&[5]), whole);
    let missing = [before, repair(Fate::CaptureLost), repair(Fate::Spurious)];
    assert_eq!(sixth(&[2, 5]), missing);
}
