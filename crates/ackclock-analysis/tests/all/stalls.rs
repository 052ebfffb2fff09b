//! Why a connection was silent, told by what came before and behind.

use crate::kit::{segment, stalls, Trace, MSS};
use ackclock_pcap::packet::{Flags, Segment};

/// The receiver's clock ahead of the capture's, in milliseconds: timestamps count them.
const RECEIVER_MS: i64 = 5000;

/// A capture at the sender, 100 ms from the receiver: a segment and its acknowledgement each 100 ms until 1,500 ms, one
/// more segment at 1,600 ms.
fn working() -> Trace {
    let mut trace = Trace::after_handshake(0, 100);
    trace.timestamps = true;
    for number in 0..15 {
        let at_ms = 100 * i64::from(number) + 100;
        trace.data(at_ms, number);
        acknowledged(&mut trace, at_ms + 99, number + 1, at_ms + 50);
    }
    trace.data(1600, 15);
    trace
}

/// An acknowledgement that was sent at another time than it is seen.
fn acknowledged(trace: &mut Trace, seen_ms: i64, number: u32, sent_ms: i64) {
    let ack = trace.ack(seen_ms, number, &[]);
    ack.options.timestamps = Some(((RECEIVER_MS + sent_ms) as u32, 0));
}

/// A segment with a timestamp of another time than it is seen.
fn stamped(trace: &mut Trace, seen_ms: i64, number: u32, clock_ms: i64) {
    trace.data(seen_ms, number).options.timestamps = Some((1000 + clock_ms as u32, 0));
}

fn classes(trace: &Trace) -> Vec<&'static str> {
    stalls(&trace.analysed())
}

#[test]
fn held_up_packets_reveal_a_stopped_host_and_its_clock_a_stopped_machine() {
    for (clock_ms, class) in [(3001, "host"), (1602, "machine")] {
        let mut trace = working();
        acknowledged(&mut trace, 3000, 16, 1650);
        stamped(&mut trace, 3001, 16, clock_ms);
        assert_eq!(classes(&trace), [class]);
    }
}

#[test]
fn an_acknowledgement_that_was_sent_late_is_late() {
    let mut trace = working();
    acknowledged(&mut trace, 3000, 16, 2950);
    stamped(&mut trace, 3001, 16, 3001);
    assert_eq!(classes(&trace), ["ack_delay"]);
}

#[test]
fn a_timer_that_expires_as_the_host_wakes_up_is_no_loss() {
    for (sent_ms, class) in [(1650, "host"), (3050, "small_window")] {
        let mut trace = working();
        stamped(&mut trace, 3000, 15, 3000);
        acknowledged(&mut trace, sent_ms.max(3000) + 50, 16, sent_ms);
        stamped(&mut trace, 3200, 16, 3200);
        assert_eq!(classes(&trace), [class]);
    }
}

#[test]
fn acknowledgements_of_uncaptured_data_reveal_a_capture_stall() {
    let mut trace = working();
    acknowledged(&mut trace, 3000, 30, 2950);
    stamped(&mut trace, 3001, 30, 3001);
    assert_eq!(classes(&trace), ["capture_loss"]);
}

#[test]
fn a_probe_may_be_of_new_data() {
    let mut trace = working();
    stamped(&mut trace, 3000, 16, 3000);
    let ack = trace.ack(3100, 15, &[(16, 17)]);
    ack.options.timestamps = Some(((RECEIVER_MS + 3050) as u32, 0));
    stamped(&mut trace, 3101, 15, 3101);
    assert_eq!(classes(&trace), ["tail_loss"]);
}

#[test]
fn a_window_that_is_full_is_not_shut() {
    let mut trace = working();
    for one in &mut trace.segments {
        one.window = 8; // 1,024 bytes: one segment, and that is in flight
    }
    stamped(&mut trace, 3000, 15, 3000);
    acknowledged(&mut trace, 3100, 16, 3050);
    assert_eq!(classes(&trace), ["small_window"]);
}

#[test]
fn a_zero_window_probe_without_response_is_classified() {
    let mut trace = working();
    let ack = trace.ack(1700, 16, &[]);
    ack.window = 0;
    ack.options.timestamps = Some(((RECEIVER_MS + 1650) as u32, 0));
    let mut probe = trace.segments[trace.segments.len() - 2];
    probe.time_ns = Some(2_300_000_000);
    probe.payload_bytes = 0;
    trace.segments.push(probe);
    acknowledged(&mut trace, 3000, 16, 2950);
    assert_eq!(classes(&trace), ["receiver"]);
}

/// A window that is shut at 1.7 s; probes and answers, each sooner than four round trips behind the last packet.
fn probe_window() -> Trace {
    let mut trace = working();
    let shut = *trace.ack(1700, 16, &[]);
    trace.segments.pop();
    let stamped_at = |mut one: Segment, at_ms: i64| {
        one.time_ns = Some(at_ms * 1_000_000);
        one.options.timestamps = Some(((RECEIVER_MS + at_ms - 50) as u32, 0));
        one.window = 0;
        one
    };
    let mut probe = trace.segments[trace.segments.len() - 1];
    probe.payload_bytes = 0;
    trace.segments.push(stamped_at(shut, 1700));
    for at_ms in [1940, 2180, 2420, 2660] {
        probe.time_ns = Some(at_ms * 1_000_000);
        trace.segments.push(probe);
        trace.segments.push(stamped_at(shut, at_ms + 100));
    }
    trace
}

#[test]
fn a_zero_window_is_one_stall_however_often_it_is_probed() {
    let mut trace = probe_window();
    acknowledged(&mut trace, 3000, 16, 2950);
    let found = trace.analysed();
    assert_eq!(stalls(&found), ["receiver"]);
    let longest_s = found.events.duration_s.iter().copied().fold(0.0, f64::max);
    assert!((longest_s - 1.3).abs() < 1e-9, "{longest_s}");
}

#[test]
fn a_window_closed_until_the_end_of_the_capture_is_reported() {
    assert_eq!(classes(&probe_window()), ["receiver"]);
}

#[test]
fn a_stopped_host_also_stops_connections_without_outstanding_data() {
    let mut waiting = working();
    acknowledged(&mut waiting, 3000, 16, 1650);
    stamped(&mut waiting, 3001, 16, 3001);
    let mut idle = working();
    acknowledged(&mut idle, 1690, 16, 1650);
    stamped(&mut idle, 3001, 16, 3001);
    assert_eq!(classes(&idle), ["application"]);
    for one in &mut idle.segments {
        for end in [&mut one.source, &mut one.destination] {
            end.port += u16::from(end.port > 1000);
        }
    }
    waiting.segments.extend(idle.segments);
    waiting.segments.sort_by_key(|one| one.time_ns);
    let found = waiting.analysed();
    assert_eq!(stalls(&found), ["host", "host"]);
    assert!(found.events.confidence.contains(&0.6), "the idle one's");
}

#[test]
fn a_stall_that_never_ends_is_reported_at_the_end_of_the_capture() {
    let mut trace = working();
    stamped(&mut trace, 3000, 15, 3000);
    let found = trace.analysed();
    assert_eq!(stalls(&found), ["small_window"]);
    let sure = found.events.confidence.iter().copied();
    assert!(sure.fold(f64::INFINITY, f64::min) < 0.9);
}

#[test]
fn at_the_receiver_ip_ids_reveal_lost_data() {
    for (next, class) in [
        (16, "application"),
        (20, "timeout"),
        (60, "timeout"),
        (316, "application"),
    ] {
        let mut trace = Trace::after_handshake(100, 0);
        for number in 0..15 {
            let at_ms = 100 * i64::from(number) + 200;
            trace.data(at_ms, number).identification = Some(1 + number);
            trace.ack(at_ms, number + 1, &[]);
        }
        trace.data(3000, 15).identification = Some(next);
        trace.ack(3000, 16, &[]);
        assert_eq!(classes(&trace), [class]);
    }
}

#[test]
fn without_ip_ids_a_stall_behind_a_full_segment_may_be_an_outage() {
    for (missing, class) in [(0, "unknown"), (1, "application")] {
        let mut trace = Trace::after_handshake(100, 0);
        for number in 0..15 {
            let at_ms = 100 * i64::from(number) + 200;
            trace.data(at_ms, number);
            trace.ack(at_ms, number + 1, &[]);
        }
        trace.data(1700, 15).payload_bytes -= missing;
        trace.ack(1700, 16, &[]).acknowledgement -= missing;
        trace.data(3000, 16).sequence -= missing;
        trace.ack(3000, 17, &[]).acknowledgement -= missing;
        assert_eq!(classes(&trace), [class]);
    }
}

#[test]
fn at_the_receiver_the_first_data_may_be_a_retransmission() {
    for (next, class) in [(8, "application"), (20, "unknown"), (900, "application")] {
        let mut trace = Trace::after_handshake(100, 0);
        for (one, number) in trace.segments.iter_mut().zip(5..) {
            one.identification = Some(number);
        }
        trace.data(3000, 0).identification = Some(next);
        trace.ack(3000, 1, &[]);
        assert_eq!(classes(&trace), [class]);
    }
}

/// A segment of the server's data, which acknowledges all before a segment of the client's.
fn respond(trace: &mut Trace, at_ms: i64, number: u32, acknowledged: u32) {
    let mut data = segment(at_ms, false);
    data.sequence = 1 + number * MSS;
    data.acknowledgement = 1 + acknowledged * MSS;
    data.payload_bytes = MSS;
    trace.segments.push(data);
}

/// The client closes.
fn fin(trace: &mut Trace, at_ms: i64, number: u32, acknowledged: u32) {
    let mut fin = segment(at_ms, true);
    fin.flags = Flags(Flags::FIN | Flags::ACK);
    fin.sequence = 1 + number * MSS;
    fin.acknowledgement = 1 + acknowledged * MSS;
    trace.segments.push(fin);
}

#[test]
fn an_idle_open_connection_is_not_stalled() {
    let closes_after = |asks_again: bool| {
        let mut trace = Trace::after_handshake(0, 100);
        trace.data(100, 0);
        respond(&mut trace, 200, 0, 1);
        let mut heard = segment(201, true);
        heard.sequence = 1 + MSS;
        heard.acknowledgement = 1 + MSS;
        trace.segments.push(heard);
        let mut probe_window = 1;
        if asks_again {
            trace.data(210, 1).acknowledgement = 1 + MSS;
            probe_window = 2;
        }
        let ack = trace.ack(310, probe_window, &[]);
        ack.sequence = 1 + MSS;
        fin(&mut trace, 60_000, probe_window, 1);
        classes(&trace)
    };
    assert_eq!(closes_after(false), [""; 0]);
    assert_eq!(closes_after(true), ["application"]);
}

#[test]
fn before_data_has_a_round_trip_the_handshake_has_one() {
    let acknowledged_after = |round_trip_ms: i64| {
        let mut trace = Trace::after_handshake(0, 300);
        trace.data(310, 0);
        trace.ack(310 + round_trip_ms, 1, &[]);
        classes(&trace)
    };
    assert_eq!(acknowledged_after(1000), [""; 0]);
    assert_eq!(acknowledged_after(1300), ["ack_delay"]);
}

#[test]
fn a_handshake_stalls_if_a_syn_is_retransmitted() {
    let answered_after = |round_trip_ms: i64, again: bool| {
        let mut trace = Trace::after_handshake(0, round_trip_ms);
        if again {
            trace.syn(round_trip_ms - 100);
            trace.segments.sort_by_key(|one| one.time_ns);
        }
        classes(&trace)
    };
    assert_eq!(answered_after(900, false), [""; 0]);
    assert_eq!(answered_after(900, true), ["handshake"]);
    assert_eq!(answered_after(1100, true), ["handshake"]);
    assert_eq!(answered_after(1100, false), [""; 0], "a long path");
}

#[test]
fn one_way_captures_have_unknown_stall_classes() {
    let mut trace = working();
    stamped(&mut trace, 3000, 16, 3000);
    assert_eq!(classes(&trace).len(), 1);
    trace.segments.retain(|one| one.source.port == 40_000);
    assert_eq!(classes(&trace), [""; 0]);
}

#[test]
fn timestamps_of_the_syn_give_no_clock() {
    let idle_after = |timestamps: bool| {
        let mut trace = working();
        acknowledged(&mut trace, 1690, 16, 1650);
        stamped(&mut trace, 9000, 16, 1602);
        trace.segments[0].options.timestamps = Some((1000, 0));
        for one in trace.segments.iter_mut().skip(1).filter(|_| !timestamps) {
            one.options.timestamps = None;
        }
        classes(&trace)
    };
    assert_eq!(idle_after(true), ["machine"]);
    assert_eq!(idle_after(false), ["application"]);
}

#[test]
fn new_data_for_seconds_without_acknowledgements_is_not_a_probe() {
    let mut trace = working();
    for number in 16..20 {
        let at_ms = 2600 + 1000 * i64::from(number - 16);
        stamped(&mut trace, at_ms, number, at_ms);
    }
    // The retransmission timer expires within seconds: acknowledgements are missing from the capture.
    assert_eq!(
        classes(&trace),
        ["tail_loss", "tail_loss", "application", "application"]
    );
}

#[test]
fn new_data_long_after_old_is_a_probe_if_the_old_is_retransmitted() {
    // All is lost in an outage, and the timer backs off; its last retransmission is acknowledged, and what is still
    // outstanding waits for the timer again, which sends new data first (F-RTO, RFC 5682).
    let mut trace = working();
    for number in 16..20 {
        stamped(&mut trace, 1600, number, 1600);
    }
    for at_ms in [2000, 2800, 4400] {
        stamped(&mut trace, at_ms, 16, at_ms);
    }
    let ack = trace.ack(4500, 17, &[]);
    ack.options.timestamps = Some(((RECEIVER_MS + 4450) as u32, 0));
    stamped(&mut trace, 7000, 20, 7000);
    let ack = trace.ack(7100, 17, &[(20, 21)]);
    ack.options.timestamps = Some(((RECEIVER_MS + 7050) as u32, 0));
    stamped(&mut trace, 7101, 17, 7101);
    let found = classes(&trace);
    assert_eq!(found.last(), Some(&"tail_loss"), "{found:?}");
}

#[test]
fn a_delayed_acknowledgement_costs_only_who_waits_for_it() {
    // 201 ms, as Windows delays; the sender's next data come at once or not.
    for (next_ms, class) in [(1916, "ack_delay"), (2100, "application")] {
        let mut trace = Trace::after_handshake(0, 10);
        for number in 0..15 {
            let at_ms = 100 * i64::from(number) + 100;
            trace.data(at_ms, number);
            trace.ack(at_ms + 10, number + 1, &[]);
        }
        trace.data(1700, 15);
        trace.ack(1911, 16, &[]);
        trace.data(next_ms, 16);
        trace.ack(next_ms + 10, 17, &[]);
        assert_eq!(classes(&trace), [class]);
    }
}

#[test]
fn a_small_segment_that_waits_for_a_delayed_acknowledgement_is_nagles() {
    let mut trace = Trace::after_handshake(0, 10);
    for number in 0..15 {
        let at_ms = 100 * i64::from(number) + 100;
        trace.data(at_ms, number);
        trace.ack(at_ms + 10, number + 1, &[]);
    }
    trace.data(1700, 15).payload_bytes = 100;
    let end = 1 + 15 * MSS + 100;
    trace.ack(1911, 0, &[]).acknowledgement = end;
    let second = trace.data(1912, 0);
    (second.sequence, second.payload_bytes) = (end, 100);
    trace.ack(1922, 0, &[]).acknowledgement = end + 100;
    assert_eq!(classes(&trace), ["nagle"]);
}

#[test]
fn a_sender_that_closes_without_retransmission_was_acknowledged() {
    let mut trace = Trace::after_handshake(0, 10);
    trace.data(100, 0);
    trace.ack(110, 1, &[]);
    trace.data(120, 1);
    fin(&mut trace, 1100, 2, 0);
    let ack = trace.ack(1110, 2, &[]);
    ack.acknowledgement += 1;
    assert_eq!(classes(&trace), ["application"]);
}
