//! Captures of real hosts: merged segments, keep-alives, closed windows, ports that are used again.

mod kit;

use ackclock_analysis::analysis::Analysis;
use ackclock_analysis::output::Options;
use ackclock_pcap::packet::Flags;
use kit::{segment, stalls, Trace, MSS};

/// A sender 100 ms from its receiver, which acknowledges each segment.
fn working(segments: u32) -> Trace {
    let mut trace = Trace::after_handshake(0, 100);
    for number in 0..segments {
        let at_ms = 100 + 100 * i64::from(number);
        trace.data(at_ms, number);
        trace.ack(at_ms + 100, number + 1, &[]);
    }
    trace
}

#[test]
fn merged_segments_are_as_many_as_the_network_had() {
    let mut trace = Trace::after_handshake(0, 100);
    trace.data(100, 0).payload_bytes = 4 * MSS;
    // The second of them is lost, and alone is sent again.
    trace.ack(200, 1, &[(2, 4)]);
    trace.data(201, 1);
    trace.ack(301, 4, &[]);
    let flows = trace.analysed().flows;
    assert_eq!((flows.data_packets[0], flows.data_segments[0]), (2, 5));
    assert_eq!((flows.delivered[0], flows.lost[0]), (4, 1));
}

#[test]
fn a_keep_alive_carries_no_data() {
    let mut trace = working(3);
    for minute in 1..4_u32 {
        let probe = trace.data(60_000 * i64::from(minute), 0);
        probe.sequence = 3 * MSS; // the byte before the next one
        probe.payload_bytes = 1;
        trace.ack(60_000 * i64::from(minute) + 100, 3, &[]);
    }
    let tables = trace.analysed();
    assert_eq!(tables.flows.retransmissions[0], 0);
    assert!(stalls(&tables).iter().all(|&class| class == "application"));
}

#[test]
fn window_updates_end_stalls_of_receivers() {
    let mut trace = working(3);
    // The receiver has sent data of its own once, so that it could be its turn.
    let greeting = trace.ack(450, 3, &[]);
    greeting.payload_bytes = 10;
    let mut answer = segment(460, true);
    (answer.sequence, answer.acknowledgement) = (1 + 3 * MSS, 11);
    trace.segments.push(answer);
    let shut = trace.ack(500, 3, &[]);
    (shut.window, shut.sequence) = (0, 11);
    trace.ack(4_500, 3, &[]).sequence = 11;
    trace.data(4_501, 3);
    trace.ack(4_601, 4, &[]);
    let tables = trace.analysed();
    assert_eq!(stalls(&tables), ["receiver"]);
}

#[test]
fn reused_ports_are_another_connection() {
    let mut trace = working(3);
    for (at_ms, number) in [(60_000, 0), (60_100, 1)] {
        let data = trace.data(at_ms, number);
        data.sequence = data.sequence.wrapping_add(600_000_000);
        data.acknowledgement = 900_000_000;
        let ack = trace.ack(at_ms + 50, number + 1, &[]);
        ack.acknowledgement = ack.acknowledgement.wrapping_add(600_000_000);
        ack.sequence = 900_000_000;
    }
    let flows = trace.analysed().flows;
    assert_eq!(
        flows.delivered_bytes,
        [3 * u64::from(MSS), 2 * u64::from(MSS)]
    );
}

#[test]
fn an_unknown_window_scale_is_no_evidence_against_the_receiver() {
    let mut trace = Trace::after_handshake(0, 100);
    trace.segments.clear(); // the capture begins later
    for number in 0..200_u32 {
        let at_ms = 100 + 100 * i64::from(number / 4) + i64::from(number % 4);
        trace.data(at_ms, number);
        trace.ack(at_ms + 100, number + 1, &[]).window = 30;
    }
    trace.segments.sort_by_key(|one| one.time_ns);
    let flows = trace.analysed().flows;
    assert!(flows.limited_receiver_s[0].abs() < 1e-9);
}

#[test]
fn a_small_segment_waits_for_a_delayed_acknowledgement() {
    let mut trace = Trace::after_handshake(0, 2);
    let (mut at_ms, mut sent) = (10, 0);
    let mut write = |trace: &mut Trace, at_ms: i64, bytes: u32, delay_ms: i64| {
        let data = trace.data(at_ms, 0);
        (data.sequence, data.payload_bytes) = (1 + sent, bytes);
        sent += bytes;
        let ack = trace.ack(at_ms + 2 + delay_ms, 0, &[]);
        ack.acknowledgement = 1 + sent;
    };
    for _ in 0..10 {
        write(&mut trace, at_ms, 100, 40);
        write(&mut trace, at_ms + 42, 100, 0);
        at_ms += 100;
    }
    let flows = trace.analysed().flows;
    assert_eq!(flows.nagle_waits[0], 10);
    assert!((flows.nagle_wait_s[0] - 0.4).abs() < 1e-6);
}

#[test]
fn sizes_of_stuck_segments_are_recorded() {
    let mut trace = Trace::after_handshake(0, 100);
    trace.data(100, 0).payload_bytes = 200;
    trace.ack(200, 0, &[]).acknowledgement = 201;
    for at_ms in [201, 601, 1_401, 3_001] {
        trace.data(at_ms, 0).sequence = 201;
    }
    let flows = trace.analysed().flows;
    assert_eq!(flows.largest_delivered_bytes[0], 200);
    assert_eq!(flows.smallest_stuck_bytes[0], MSS);
}

#[test]
fn a_clock_that_is_set_back_goes_on_and_is_counted() {
    let mut trace = working(20);
    for one in trace.segments.iter_mut().skip(21) {
        one.time_ns = one.time_ns.map(|time_ns| time_ns - 500_000_000);
    }
    let mut analysis = Analysis::new(Options::default());
    for one in &trace.segments {
        analysis.take(one);
    }
    analysis.finish();
    let (steps, seconds) = analysis.clock_steps();
    assert_eq!(steps, 1);
    assert!((0.4..0.61).contains(&seconds), "{seconds}");
    assert_eq!(analysis.output.tables.flows.lost[0], 0);
}

#[test]
fn a_connection_is_not_new_by_an_acknowledgement_of_what_was_missed() {
    let mut trace = working(3);
    let data = trace.data(60_000, 3);
    data.sequence = data.sequence.wrapping_add(30_000_000);
    assert!(!data.flags.has(Flags::SYN));
    assert_eq!(trace.analysed().flows.flow.len(), 1);
}
