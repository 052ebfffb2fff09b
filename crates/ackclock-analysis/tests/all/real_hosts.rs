//! Captures of real hosts: merged segments, keep-alives, closed windows, ports that are used again.

use crate::kit::{segment, stalls, Trace, MSS};
use ackclock_analysis::analysis::Analysis;
use ackclock_analysis::output::Options;
use ackclock_pcap::packet::{Flags, Segment};

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
fn zero_windows_are_counted_and_timed() {
    let mut trace = working(3);
    // Closed twice: for 40 ms, and until the capture ends; resets advertise nothing.
    for (at_ms, window) in [(450, 0), (470, 0), (490, 64), (600, 0)] {
        trace.ack(at_ms, 3, &[]).window = window;
    }
    let reset = trace.ack(630, 3, &[]);
    (reset.window, reset.flags) = (0, Flags(Flags::RST | Flags::ACK));
    let flows = trace.analysed().flows;
    assert_eq!(flows.zero_windows[0], 2);
    assert!((flows.zero_window_s[0] - 0.07).abs() < 1e-6);
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

/// A connection whose server sends a segment and closes, and the SYN/ACK with which its ports are used again.
fn behind_a_request(with_fin: bool) -> Trace {
    let mut trace = Trace::after_handshake(0, 2);
    for (base, at_ms) in [(0, 10), (1_300_000_000, 60_002)] {
        if base > 0 {
            trace.synack(60_000);
            let synack = trace.segments.last_mut().expect("it was pushed");
            (synack.sequence, synack.acknowledgement) = (base, 600_000_000);
        }
        let next = if base > 0 { 600_000_000 } else { 1 };
        let response = trace.ack(at_ms, 0, &[]);
        (response.sequence, response.acknowledgement) = (base + 1, next);
        (response.payload_bytes, response.packet_bytes) = (MSS, MSS + 52);
        if with_fin {
            response.flags.0 |= Flags::FIN;
        }
        let ack = trace.data(at_ms + 5, 0);
        (ack.sequence, ack.acknowledgement) = (next, base + 1 + MSS + u32::from(with_fin));
        (ack.payload_bytes, ack.packet_bytes) = (0, 52);
    }
    trace
}

#[test]
fn a_synack_with_unrelated_numbers_begins_a_connection() {
    for with_fin in [true, false] {
        let mut trace = behind_a_request(with_fin);
        trace.segments.remove(1); // the first SYN/ACK, so that its number is unknown
        let bytes = u64::from(MSS);
        let flows = trace.analysed().flows;
        assert_eq!(flows.delivered_bytes, [bytes, bytes]);
    }
}

#[test]
fn a_synack_behind_the_servers_fin_begins_a_connection() {
    let mut trace = behind_a_request(true);
    trace.segments.retain(|one| one.source.port == 80); // without the client's packets
    let flows = trace.analysed().flows;
    assert_eq!(flows.flow, [1, 3]);
    assert_eq!(flows.opened, [true, true]);
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
fn segments_are_stuck_where_none_was_ever_acknowledged() {
    let mut trace = Trace::after_handshake(0, 100);
    for at_ms in [101, 401, 1_001, 2_201] {
        trace.data(at_ms, 0);
    }
    assert_eq!(trace.analysed().flows.smallest_stuck_bytes[0], MSS);
}

#[test]
fn a_clock_that_is_set_back_goes_on_and_is_counted() {
    let mut trace = working(20);
    for one in trace.segments.iter_mut().skip(21) {
        one.time_ns = one.time_ns.map(|time_ns| time_ns - 500_000_000);
    }
    let analysis = taken(&trace.segments);
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

fn taken(segments: &[Segment]) -> Analysis {
    let mut analysis = Analysis::new(Options::default());
    for one in segments {
        analysis.take(one);
    }
    analysis.finish();
    analysis
}

#[test]
fn blocks_of_another_interface_are_late_and_no_step_of_the_clock() {
    let mut segments = Vec::new();
    for (number, one) in working(100).segments.into_iter().enumerate() {
        segments.push(one);
        if number % 40 == 39 {
            let mut other = one;
            other.time_ns = one.time_ns.map(|time_ns| time_ns - 200_000_000);
            (other.interface, other.place, other.source.port) = (1, 1, 5);
            segments.push(other);
        }
    }
    let analysis = taken(&segments);
    assert_eq!(analysis.clock_steps().0, 0);
    assert!(stalls(&analysis.output.tables).is_empty());
}

#[test]
fn times_at_the_ends_of_what_is_possible_are_no_error() {
    let mut segments = Vec::new();
    for number in 0..400 {
        let mut one = segment(0, number % 4 < 2);
        (one.sequence, one.payload_bytes, one.acknowledgement) = (1 + number * 10, 10, 1);
        one.time_ns = Some(if number % 2 == 0 {
            i64::MAX
        } else {
            i64::MIN / 2
        });
        segments.push(one);
    }
    assert!(taken(&segments).duration_s().is_finite());
}

#[test]
fn a_segment_size_of_one_byte_is_not_believed() {
    let mut trace = Trace::after_handshake(0, 100);
    for one in &mut trace.segments {
        one.options.mss = one.options.mss.map(|_| 1);
    }
    trace.data(200, 0).payload_bytes = 48_000;
    trace.ack(300, 48, &[]);
    let analysis = taken(&trace.segments);
    assert_eq!(analysis.output.tables.flows.data_segments, [1000]);
}

#[test]
fn slow_responses_are_not_delayed_acks() {
    let mut trace = Trace::after_handshake(0, 2);
    for round in 0..10_u32 {
        let at_ms = 10 + 42 * i64::from(round);
        let request = trace.data(at_ms, 0);
        (request.sequence, request.payload_bytes) = (1 + 100 * round, 100);
        request.acknowledgement = 1 + 300 * round;
        let answer = trace.ack(at_ms + 42, 0, &[]);
        answer.acknowledgement = 1 + 100 * (round + 1);
        (answer.sequence, answer.payload_bytes) = (1 + 300 * round, 300);
    }
    assert_eq!(trace.analysed().flows.nagle_waits[0], 0);
}

#[test]
fn a_closed_window_is_closed_whatever_its_scale() {
    let mut trace = Trace::after_handshake(0, 10);
    trace.segments.clear(); // the capture begins later
    for round in 0..40 {
        let at_ms = 100 + 60 * i64::from(round);
        for number in 4 * round..4 * round + 4 {
            trace.data(at_ms, number);
        }
        trace.ack(at_ms + 10, 4 * round + 4, &[]).window = 0;
        trace.ack(at_ms + 60, 4 * round + 4, &[]).window = 32;
    }
    let flows = trace.analysed().flows;
    assert!(flows.limited_receiver_s[0] > 2.0 && flows.limited_application_s[0] < 0.1);
}

#[test]
fn keep_alives_in_the_middle_of_a_path_are_no_data() {
    let mut trace = Trace::after_handshake(50, 50);
    for number in 0..3 {
        let at_ms = 100 + 100 * i64::from(number);
        trace.data(at_ms, number);
        trace.ack(at_ms + 50, number + 1, &[]);
    }
    for minute in 1..4 {
        let probe = trace.data(60_000 * minute, 0);
        (probe.sequence, probe.payload_bytes) = (3 * MSS, 1);
        trace.ack(60_000 * minute + 50, 3, &[]);
    }
    let tables = trace.analysed();
    assert_eq!(tables.flows.retransmissions[0], 0);
    assert!(stalls(&tables).iter().all(|&class| class == "application"));
}

#[test]
fn each_segment_has_one_fate_though_it_is_a_little_longer() {
    let mut trace = Trace::after_handshake(0, 100);
    for number in 0..4 {
        let data = trace.data(100 + i64::from(number), 0);
        data.sequence = 1 + number * (4 * MSS + 5);
        data.payload_bytes = 4 * MSS + 5;
        let ack = trace.ack(200 + i64::from(number), 0, &[]);
        ack.acknowledgement = 1 + (number + 1) * (4 * MSS + 5);
    }
    trace.segments.sort_by_key(|one| one.time_ns);
    let flows = trace.analysed().flows;
    assert_eq!(flows.data_segments, flows.delivered);
}

#[test]
fn an_identification_of_32_bits_wraps() {
    let mut trace = Trace::after_handshake(0, 100);
    let data = trace.data(100, 0);
    (data.identification, data.payload_bytes) = (Some(u32::MAX), 4 * MSS);
    trace.ack(200, 4, &[]);
    assert_eq!(trace.analysed().flows.delivered, [4]);
}

/// Flights of so many segments, of which one is larger, without the handshake; the window has the scale 7.
fn without_handshake(window: u16, flight: u32, largest: u32) -> Trace {
    let mut trace = Trace::after_handshake(0, 100);
    trace.segments.clear();
    let mut number = 0;
    for round in 0..40 {
        let at_ms = 100 + 100 * round;
        let size = if round == 20 { largest } else { flight };
        for place in 0..i64::from(size) {
            let at_ms = at_ms + place;
            trace.data(at_ms, number).options.timestamps = Some((at_ms as u32, at_ms as u32 - 100));
            let ack = trace.ack(at_ms + 100, number + 1, &[]);
            ack.options.timestamps = Some((at_ms as u32 + 50, at_ms as u32));
            ack.window = window;
            number += 1;
        }
    }
    let order = |one: &Segment| (one.time_ns, one.payload_bytes > 0);
    trace.segments.sort_by_key(order);
    trace
}

#[test]
fn a_full_window_of_unknown_scale_may_be_the_limit() {
    // 64 << 7 bytes have room for eight segments, and no window of another scale is full with them.
    for (flight, largest, is_full) in [(8, 8, true), (5, 30, false)] {
        let flows = without_handshake(64, flight, largest).analysed().flows;
        let unknown_s = flows.limited_unknown_window_s[0];
        assert_eq!(unknown_s > 3.0, is_full, "{flight}: {unknown_s}");
        assert_eq!(unknown_s < 0.5, !is_full, "{flight}: {unknown_s}");
    }
}

#[test]
fn what_was_in_flight_when_a_capture_began_was_not_missed() {
    let mut trace = Trace::after_handshake(0, 100);
    trace.segments.clear();
    // The first packet is a retransmission; 20 to 39 were in flight.
    trace.ack(90, 19, &[(20, 25)]);
    trace.data(100, 19);
    for number in 40..60 {
        trace.ack(61 + i64::from(number), 19, &[(20, 40.min(number - 14))]);
        trace.data(61 + i64::from(number), number);
    }
    trace.ack(200, 40, &[]);
    trace.ack(220, 60, &[]);
    let flows = trace.analysed().flows;
    assert_eq!(flows.not_captured, [0]);
}

#[test]
fn retransmission_in_pieces_is_a_single_loss() {
    let mut trace = working(12);
    for number in 12..16 {
        trace.data(1300, number);
    }
    for (at_ms, blocks) in [(1400, (13, 14)), (1401, (13, 15)), (1402, (13, 16))] {
        trace.ack(at_ms, 12, &[blocks]);
    }
    for half in 0..2 {
        let piece = trace.data(1403 + i64::from(half), 0);
        piece.sequence = 1 + 12 * MSS + half * MSS / 2;
        piece.payload_bytes = MSS / 2;
    }
    trace.ack(1504, 16, &[]);
    let flows = trace.analysed().flows;
    assert_eq!((flows.lost[0], flows.retransmissions_fast[0]), (1, 2));
    let fates = flows.delivered[0] + flows.lost[0] + flows.spurious[0];
    assert_eq!(fates, flows.data_segments[0]);
}

#[test]
fn a_retransmission_that_is_lost_as_well_is_counted_by_the_senders_own_numbers() {
    let mut trace = Trace::after_handshake(100, 0);
    let mut number = 1000;
    for segment in 0..300_u32 {
        // Segment 200 is lost, two retransmissions of it before 220 are, and the third comes behind 269.
        number += if segment == 220 { 3 } else { 1 };
        if segment == 200 {
            continue;
        }
        let at_ms = 200 + 5 * i64::from(segment);
        trace.data(at_ms, segment).identification = Some(number);
        match segment {
            201..270 => trace.ack(at_ms, 200, &[(201, segment + 1)]),
            _ => trace.ack(at_ms, segment + 1, &[]),
        };
        if segment == 269 {
            number += 1;
            trace.data(at_ms + 1, 200).identification = Some(number);
            trace.ack(at_ms + 1, 270, &[]);
        }
    }
    let flows = trace.analysed().flows;
    assert_eq!(flows.lost_upstream, [3]);
}

#[test]
fn a_host_that_gives_all_packets_one_number_retransmits() {
    let mut trace = working(20);
    for (at_ms, number) in [(2300, 20), (2301, 21), (3300, 20)] {
        trace.data(at_ms, number);
    }
    trace.ack(3400, 22, &[]);
    for one in trace
        .segments
        .iter_mut()
        .filter(|one| one.payload_bytes > 0)
    {
        one.identification = Some(1);
    }
    let flows = trace.analysed().flows;
    assert_eq!((flows.duplicates[0], flows.retransmissions[0]), (0, 1));
}
