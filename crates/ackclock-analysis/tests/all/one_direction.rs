//! Captures of one direction: what the packets that are not there would show is unknown, not zero.

use crate::kit::{analysed, segment, stalls, Trace, MSS};
use ackclock_analysis::tables::Vantage;
use ackclock_core::tables::{NONE, UNKNOWN};
use ackclock_pcap::packet::{Flags, Segment};

/// A transfer of four segments, of which the first is lost and sent again.
fn transfer() -> Trace {
    let mut trace = Trace::after_handshake(0, 100);
    for number in 0..4 {
        trace.data(101, number);
    }
    for number in 2..=4 {
        trace.ack(201, 0, &[(1, number)]);
    }
    trace.data(202, 0);
    trace.ack(302, 4, &[]);
    trace
}

fn only(trace: &Trace, is_wanted: impl Fn(&Segment) -> bool) -> ackclock_analysis::tables::Tables {
    let segments: Vec<Segment> = trace
        .segments
        .iter()
        .filter(|segment| is_wanted(segment))
        .copied()
        .collect();
    analysed(&segments)
}

#[test]
fn acks_show_delivered_bytes_but_no_losses() {
    let flows = only(&transfer(), |segment| segment.source.port == 80).flows;
    assert_eq!(flows.flow, [0]);
    assert_eq!(flows.delivered_bytes, [u64::from(4 * MSS)]);
    for count in [
        &flows.lost,
        &flows.lost_upstream,
        &flows.retransmissions,
        &flows.retransmissions_timeout,
        &flows.spurious,
        &flows.syn_retransmissions,
    ] {
        assert_eq!(count, &[UNKNOWN]);
    }
    assert_eq!(flows.synack_retransmissions, [0]);
    assert_eq!(flows.zero_windows, [0]);
    assert!(flows.limited_cwnd_s[0].is_nan());
}

#[test]
fn data_without_acks_show_retransmissions_but_no_causes() {
    let flows = only(&transfer(), |segment| segment.source.port != 80).flows;
    assert_eq!(
        (flows.retransmissions[0], flows.retransmissions_unknown[0]),
        (1, 1)
    );
    assert_eq!(
        (flows.retransmissions_fast[0], flows.spurious[0]),
        (UNKNOWN, UNKNOWN)
    );
    assert_eq!(flows.zero_windows, [NONE]);
}

#[test]
fn the_segments_that_open_and_close_a_connection_show_its_bytes() {
    let mut trace = transfer();
    let end = trace.data(303, 4);
    end.payload_bytes = 0;
    end.flags.0 |= Flags::FIN;
    let flows = only(&trace, |segment| segment.flags.has(Flags::SYN | Flags::FIN)).flows;
    assert_eq!(
        (flows.delivered_bytes[0], flows.lost[0]),
        (u64::from(4 * MSS), UNKNOWN)
    );
}

/// A download of 1,000 segments as a filter for SYN and FIN shows it: the server's FIN has the last of the data.
fn syn_and_fin(client_fin: u32) -> Vec<Segment> {
    let mut trace = Trace::after_handshake(0, 100);
    trace.segments.truncate(2);
    let fin = Segment {
        sequence: 1 + 999 * MSS,
        acknowledgement: client_fin,
        flags: Flags(Flags::FIN | Flags::ACK),
        payload_bytes: MSS,
        ..segment(9_000, false)
    };
    let answer = Segment {
        sequence: client_fin,
        acknowledgement: 2 + 1000 * MSS,
        flags: Flags(Flags::FIN | Flags::ACK),
        ..segment(9_001, true)
    };
    trace.segments.extend([fin, answer]);
    trace.segments
}

#[test]
fn a_fin_with_data_shows_the_bytes_but_neither_rate_nor_losses() {
    for client_fin in [1, 70] {
        let tables = analysed(&syn_and_fin(client_fin));
        let flows = &tables.flows;
        let row = flows
            .flow
            .iter()
            .position(|&flow| flow == 1)
            .expect("it sent data");
        assert_eq!(flows.delivered_bytes[row], u64::from(1000 * MSS));
        assert_eq!(flows.not_captured[row], 999);
        assert!(flows.goodput_bps[row].is_nan(), "a rate of one segment");
        assert!(flows.limited_application_s[row].is_nan());
        for count in [&flows.lost, &flows.retransmissions, &flows.timeouts] {
            assert_eq!(count[row], UNKNOWN);
        }
        assert_eq!(stalls(&tables), ["capture_loss"]);
    }
}

#[test]
fn a_fin_is_not_the_third_segment_of_the_handshake() {
    for client_fin in [1, 70] {
        let flows = analysed(&syn_and_fin(client_fin)).flows;
        let row = flows.flow.len() - 1;
        assert!(flows.handshake_s[row].is_nan());
        assert!(flows.established_s[row].is_finite());
        assert_eq!(flows.vantage[row], Vantage::Unknown as u8);
    }
}

#[test]
fn an_unanswered_handshake_is_a_stall_of_the_handshake() {
    let mut trace = Trace::after_handshake(0, 100);
    trace.segments.truncate(2);
    trace.synack(1_100);
    assert_eq!(stalls(&trace.analysed()), ["handshake"]);
}

#[test]
fn a_connection_without_data_lost_none() {
    let flows = Trace::after_handshake(0, 100).analysed().flows;
    assert_eq!((flows.delivered_bytes[0], flows.lost[0]), (0, 0));
    let mut unanswered = Trace::after_handshake(0, 100);
    unanswered.segments.truncate(1);
    let flows = unanswered.analysed().flows;
    assert_eq!((flows.lost[0], flows.syn_retransmissions[0]), (0, 0));
}

#[test]
fn options_that_were_cut_hide_losses_and_the_window_scale() {
    let mut trace = transfer();
    for segment in &mut trace.segments {
        segment.options = ackclock_pcap::packet::Options {
            cut: true,
            ..Default::default()
        };
    }
    let flows = trace.analysed().flows;
    assert_eq!((flows.lost[0], flows.spurious[0]), (UNKNOWN, UNKNOWN));
    assert_eq!(
        (flows.retransmissions[0], flows.retransmissions_unknown[0]),
        (1, 1)
    );
    assert_eq!(flows.window_scale, [NONE]);
}

/// Acknowledgements from `first` on, each of `step` bytes more.
fn acks(first: u32, step: u32, count: u32) -> Trace {
    let mut trace = Trace::after_handshake(0, 100);
    trace.segments.clear();
    for number in 0..count {
        let ack = trace.ack(i64::from(number), 0, &[]);
        ack.acknowledgement = first.wrapping_add(number * step);
    }
    trace
}

/// The sender's FIN, with the number behind its last byte.
fn close(trace: &mut Trace, number: u32) {
    let fin = trace.data(1000, 0);
    fin.sequence = number;
    fin.payload_bytes = 0;
    fin.flags.0 |= Flags::FIN;
}

#[test]
fn a_fin_far_from_the_first_ack_closes_what_was_acknowledged() {
    for first in [1, u32::MAX - 1_000_000] {
        let mut trace = acks(first, 500_000_000, 7);
        close(&mut trace, first.wrapping_add(3_000_000_000));
        let flows = trace.analysed().flows;
        assert_eq!(
            (flows.delivered_bytes[0], flows.lost[0]),
            (3_000_000_000, UNKNOWN)
        );
    }
}

#[test]
fn impossible_acks_are_ignored() {
    let mut trace = acks(1, 1000, 3);
    for number in [0, 1 << 31, (1 << 30) + 3000] {
        trace.ack(500, 0, &[]).acknowledgement = number;
    }
    assert_eq!(trace.analysed().flows.delivered_bytes, [2000]);
}

#[test]
fn an_ack_before_the_handshake_is_ignored() {
    let mut trace = Trace::after_handshake(0, 100);
    trace.segments.truncate(1);
    trace.ack(100, 0, &[]).acknowledgement = 900_000_000;
    let flows = trace.analysed().flows;
    assert_eq!((flows.delivered_bytes[0], flows.lost[0]), (0, 0));
}

#[test]
fn random_acks_are_no_stream() {
    let mut trace = acks(1_220_455_187, 0, 1);
    for number in [2_960_486_742, 1_924_288_516, 2_820_737_427, 1_468_985_770] {
        trace.ack(500, 0, &[]).acknowledgement = number;
    }
    for ack in &mut trace.segments {
        ack.window = 500;
    }
    assert_eq!(trace.analysed().flows.delivered_bytes, [UNKNOWN]);
}

#[test]
fn acks_that_go_on_behind_a_gap_in_the_capture_count() {
    let mut trace = acks(1, 1000, 3);
    for number in [1_500_000_000, 1_500_001_000] {
        trace.ack(500, 0, &[]).acknowledgement = number;
    }
    assert_eq!(trace.analysed().flows.delivered_bytes, [1_500_000_999]);
}

#[test]
fn a_single_ack_shows_no_data() {
    let flows = acks(900_000_000, 0, 1).analysed().flows;
    assert_eq!((flows.delivered_bytes[0], flows.lost[0]), (0, 0));
}

#[test]
fn window_reductions_of_data_that_were_not_captured_are_unknown() {
    let mut trace = transfer();
    for segment in &mut trace.segments {
        if segment.flags.has(Flags::SYN) {
            segment.flags.0 |= Flags::ECE;
        }
    }
    trace.segments[0].flags.0 |= Flags::CWR;
    let whole = trace.analysed().flows;
    assert_eq!((whole.ece_packets[0], whole.cwr_packets[0]), (0, 0));
    let acks = only(&trace, |segment| {
        segment.source.port == 80 || segment.payload_bytes == 0
    });
    assert_eq!(
        (acks.flows.ece_packets[0], acks.flows.cwr_packets[0]),
        (0, NONE)
    );
    let data = only(&trace, |segment| segment.source.port != 80);
    assert_eq!(
        (data.flows.ece_packets[0], data.flows.cwr_packets[0]),
        (NONE, 0)
    );
}
