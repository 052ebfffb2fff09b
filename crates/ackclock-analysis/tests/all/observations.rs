//! Fast Open, ECN, keep-alives, reneging, routes and the path of the acknowledgements.

use crate::kit::{Trace, MSS};
use ackclock_core::tables::NONE;
use ackclock_pcap::packet::Flags;

/// A handshake with this much data in the SYN, of which the SYN/ACK acknowledges so much.
fn fast_open(bytes: u32, accepted: u32) -> Trace {
    let mut trace = Trace::after_handshake(0, 100);
    trace.segments[0].payload_bytes = bytes;
    trace.segments[1].acknowledgement = 1 + accepted;
    let ack = &mut trace.segments[2];
    ack.sequence = 1 + accepted;
    trace
}

#[test]
fn data_in_the_syn_is_lost_only_if_the_server_took_it() {
    let mut accepted = fast_open(500, 500);
    let data = accepted.data(101, 0);
    (data.sequence, data.payload_bytes) = (501, 500);
    accepted.ack(201, 1, &[]);
    let flows = accepted.analysed().flows;
    assert_eq!(
        (flows.fast_open_bytes[0], flows.fast_open_accepted_bytes[0]),
        (500, 500)
    );
    assert_eq!((flows.delivered[0], flows.retransmissions[0]), (2, 0));

    let mut ignored = fast_open(500, 0);
    ignored.data(101, 0).payload_bytes = 500;
    ignored.ack(201, 0, &[]).acknowledgement = 501;
    let flows = ignored.analysed().flows;
    assert_eq!(
        (flows.fast_open_bytes[0], flows.fast_open_accepted_bytes[0]),
        (500, 0)
    );
    assert_eq!(
        (flows.delivered[0], flows.lost[0], flows.retransmissions[0]),
        (1, 0, 0)
    );
}

#[test]
fn marks_and_their_echoes_are_counted_unless_they_are_a_counter() {
    let trace = |syn: u16, synack: u16, echo: u16| {
        let mut trace = Trace::after_handshake(0, 100);
        trace.segments[0].flags.0 |= syn;
        trace.segments[1].flags.0 |= synack;
        trace.segments[2].flags.0 |= Flags::CWR & synack;
        for number in 0..6 {
            let data = trace.data(200 + i64::from(number), number);
            data.ecn = if number < 2 { 3 } else { 1 };
            data.flags.0 |= if number == 4 { Flags::CWR } else { 0 };
        }
        for number in 1..=6 {
            trace.ack(300 + i64::from(number), number, &[]).flags.0 |= echo;
        }
        trace.analysed().flows
    };
    let classic = trace(Flags::ECE | Flags::CWR, Flags::ECE, Flags::ECE);
    assert_eq!(
        (classic.congestion_marks[0], classic.ect1_packets[0]),
        (2, 4)
    );
    assert_eq!((classic.ece_packets[0], classic.cwr_packets[0]), (6, 1));
    assert_eq!(classic.reported_marks[0], NONE);
    // The counter begins at 5; all acknowledgements report 7.
    let accurate = trace(Flags::ACE, Flags::CWR, Flags::ACE);
    assert_eq!(
        (accurate.ece_packets[0], accurate.cwr_packets[0]),
        (NONE, NONE)
    );
    assert_eq!(
        (accurate.congestion_marks[0], accurate.reported_marks[0]),
        (2, 2)
    );
}

/// Some data, and then keep-alives of so many bytes each minute, answered or not.
fn keep_alives(bytes: u32, answered: bool) -> Trace {
    let mut trace = Trace::after_handshake(0, 100);
    trace.data(200, 0);
    trace.ack(300, 1, &[]);
    for minute in 1..=5 {
        let probe = trace.data(60_000 * minute, 0);
        (probe.sequence, probe.payload_bytes) = (MSS, bytes);
        if answered {
            trace.ack(60_000 * minute + 100, 1, &[]);
        }
    }
    trace
}

#[test]
fn keep_alives_of_no_byte_or_one_count_as_probes() {
    for bytes in [0, 1] {
        let flows = keep_alives(bytes, true).analysed().flows;
        assert_eq!(
            (flows.keep_alives[0], flows.keep_alives_unanswered[0]),
            (5, 1)
        );
        assert_eq!(flows.retransmissions[0], 0);
        let flows = keep_alives(bytes, false).analysed().flows;
        assert_eq!(
            (flows.keep_alives[0], flows.keep_alives_unanswered[0]),
            (5, 5)
        );
    }
}

#[test]
fn probes_of_a_closed_window_are_no_keep_alives() {
    let mut trace = Trace::after_handshake(0, 100);
    trace.data(200, 0);
    trace.ack(300, 1, &[]).window = 0;
    for second in 1..=5 {
        let probe = trace.data(1000 * second, 0);
        (probe.sequence, probe.payload_bytes) = (MSS, 0);
        trace.ack(1000 * second + 100, 1, &[]).window = 0;
    }
    assert_eq!(trace.analysed().flows.keep_alives[0], 0);
}

/// Eight segments of which the first is lost and the others are sacked; it is retransmitted, and acknowledged up to here.
fn sacked(acknowledged: u32) -> Trace {
    let mut trace = Trace::after_handshake(0, 100);
    for number in 0..8 {
        trace.data(200 + i64::from(number), number);
    }
    for number in 1..8 {
        trace.ack(301 + i64::from(number), 0, &[(1, number + 1)]);
    }
    trace.data(310, 0);
    trace.ack(410, acknowledged, &[]);
    trace
}

#[test]
fn a_receiver_that_discards_what_it_sacked_has_reneged() {
    let mut reneged = sacked(1);
    for number in 1..8 {
        let at_ms = 700 + 100 * i64::from(number);
        reneged.data(at_ms, number);
        reneged.ack(at_ms + 100, number + 1, &[]);
    }
    assert_eq!(reneged.analysed().flows.sack_reneged[0], 7);
}

#[test]
fn retransmissions_of_what_the_receiver_kept_are_no_reneging() {
    assert_eq!(sacked(8).analysed().flows.sack_reneged[0], 0);
    // A timeout sends all again though it was sacked: the acknowledgement never stopped before that.
    let mut spurious = sacked(0);
    for number in 0..8 {
        spurious.data(900 + i64::from(number), number);
    }
    spurious.ack(1000, 8, &[]);
    assert_eq!(spurious.analysed().flows.sack_reneged[0], 0);
}

/// A sender at the vantage point whose segments, or their acknowledgements, wait ever longer.
fn waiting(data_waits: bool) -> Trace {
    let mut trace = Trace::after_handshake(0, 100);
    trace.timestamps = true;
    for number in 0..200 {
        let (sent_ms, waited_ms) = (200 + 20 * i64::from(number), i64::from(number));
        trace.data(sent_ms, number);
        let arrived_ms = sent_ms + 50 + if data_waits { waited_ms } else { 0 };
        let ack = trace.ack(sent_ms + 100 + waited_ms, number + 1, &[]);
        ack.options.timestamps = Some((5_000 + arrived_ms as u32, 1_000 + sent_ms as u32));
    }
    trace.segments.sort_by_key(|segment| segment.time_ns);
    trace
}

#[test]
fn tsvals_of_the_receiver_separate_both_directions() {
    let flows = waiting(false).analysed().flows;
    assert!(
        (flows.ack_wait_s[0] - 0.1).abs() < 0.02,
        "{}",
        flows.ack_wait_s[0]
    );
    let flows = waiting(true).analysed().flows;
    assert!(flows.ack_wait_s[0] < 0.002, "{}", flows.ack_wait_s[0]);
}

#[test]
fn a_ttl_that_becomes_another_is_a_change_of_the_route() {
    let mut trace = Trace::after_handshake(0, 100);
    for number in 0..40 {
        trace.data(200 + 100 * i64::from(number), number).hops = if number < 20 { 60 } else { 57 };
        trace.ack(300 + 100 * i64::from(number), number + 1, &[]);
    }
    assert_eq!(trace.analysed().flows.hop_changes[0], 1);
}
