//! Limits of flows by the order of packets: application rates, windows and queues, on hand-made captures.

use crate::kit::{self, Trace};
use ackclock_analysis::tables::Vantage;
use ackclock_pcap::packet::{Flags, Segment};

/// Half a minute of a segment each 30 ms, or of as many each round trip as are acknowledged: where it was seen, and the
/// seconds that each limit took.
fn seconds_by_limit(flight: Option<u32>, window: u16) -> (&'static str, Vec<(&'static str, f64)>) {
    let mut trace = Trace::after_handshake(0, 100);
    for number in 0..1000 {
        let at_ms = match flight {
            None => 100 + 30 * i64::from(number),
            Some(flight) => 100 + 100 * i64::from(number / flight) + i64::from(number % flight),
        };
        respond(&mut trace, at_ms, number, window);
        if flight.is_some_and(|flight| number / flight > 300) {
            break;
        }
    }
    // Acknowledgements come before what they let out.
    let order = |one: &Segment| (one.time_ns, one.payload_bytes > 0);
    trace.segments.sort_by_key(order);
    let flows = trace.analysed().flows;
    let limited = [
        ("application", flows.limited_application_s[0]),
        ("receiver", flows.limited_receiver_s[0]),
        ("cwnd", flows.limited_cwnd_s[0]),
        ("send_buffer", flows.limited_send_buffer_s[0]),
    ];
    let vantage = Vantage::NAMES[usize::from(flows.vantage[0])];
    (vantage, limited.to_vec())
}

fn respond(trace: &mut Trace, at_ms: i64, number: u32, window: u16) {
    trace.data(at_ms, number).options.timestamps = Some((1000 + at_ms as u32, 900 + at_ms as u32));
    let ack = trace.ack(at_ms + 100, number + 1, &[]);
    ack.options.timestamps = Some((1000 + at_ms as u32, 1000 + at_ms as u32));
    ack.window = window;
}

fn mostly(limited: &[(&'static str, f64)]) -> &'static str {
    let most = limited.iter().find(|(_, spent_s)| *spent_s > 25.0);
    most.map_or("none", |(name, _)| name)
}

#[test]
fn a_rate_of_its_own_is_the_applications() {
    let (vantage, limited) = seconds_by_limit(None, 60_000);
    assert_eq!(mostly(&limited), "application", "{limited:?}");
    assert_eq!(vantage, "sender", "it waits, and is not behind a queue");
}

#[test]
fn a_pipe_that_stops_rising_without_a_loss_is_the_send_buffers() {
    let (_, limited) = seconds_by_limit(Some(3), 60_000);
    assert_eq!(mostly(&limited), "send_buffer", "{limited:?}");
}

#[test]
fn the_receiver_limits_if_its_window_is_full_at_acknowledgements() {
    let three_segments = (3 * kit::MSS).div_ceil(128) as u16; // shifted by 7
    let (_, limited) = seconds_by_limit(Some(3), three_segments);
    assert_eq!(mostly(&limited), "receiver", "{limited:?}");
}

/// At the receiver, slow start of which the capture ends amid a flight: the seconds that the application limited it.
fn application_s_at_the_end(closes: bool) -> f64 {
    let mut trace = Trace::after_handshake(100, 0);
    let flights = [(0..10, 200), (10..30, 300), (30..32, 400)];
    for (numbers, begin_ms) in flights {
        for (number, at_ms) in numbers.zip(begin_ms..) {
            trace.data(at_ms, number);
            trace.ack(at_ms, number + 1, &[]);
        }
    }
    if closes {
        trace.data(402, 32).flags = Flags(Flags::FIN | Flags::ACK);
    }
    trace.analysed().flows.limited_application_s[0]
}

#[test]
fn the_end_of_a_capture_is_not_the_applications() {
    assert_eq!(application_s_at_the_end(false), 0.0);
    assert!(application_s_at_the_end(true) > 0.0);
}

/// Behind a queue that sends a segment each 11 ms, in the middle of 100 ms: a window of so many segments, the
/// receiver's of four, two acknowledgements a round trip. What the first lets out has not all come when the second is
/// heard.
fn seconds_behind_a_queue(window: u32) -> Vec<(&'static str, f64)> {
    let mut trace = Trace::after_handshake(50, 50);
    let mut sent = 0;
    for round in 0..300 {
        let at_ms = 110 + 123 * i64::from(round);
        let spread = [0, 13, 24, 35];
        for (number, after_ms) in (0..window).zip(spread) {
            trace.data(at_ms + after_ms, sent + number);
        }
        for (acked, after_ms) in [(2, 63), (window, 85)] {
            let ack = trace.ack(at_ms + after_ms, sent + acked, &[]);
            ack.window = (4 * kit::MSS).div_ceil(128) as u16;
        }
        sent += window;
    }
    let flows = trace.analysed().flows;
    vec![
        ("receiver", flows.limited_receiver_s[0]),
        ("application", flows.limited_application_s[0]),
        ("cwnd", flows.limited_cwnd_s[0]),
    ]
}

#[test]
fn behind_a_queue_a_receive_window_is_full_when_its_data_has_arrived() {
    let limited = seconds_behind_a_queue(4);
    assert_eq!(mostly(&limited), "receiver", "{limited:?}");
    let limited = seconds_behind_a_queue(3);
    assert_eq!(limited[0].1, 0.0, "a segment less: {limited:?}");
}

/// At the receiver, of a round trip of 100 ms: flights of eight segments, each sent when the one before is acknowledged
/// and so many milliseconds after that, which wait in a queue as long as `queue_ms` says of each flight.
fn seconds_at_receiver(
    after_ms: i64,
    queue_ms: impl Fn(u32) -> i64,
) -> (&'static str, Vec<(&'static str, f64)>) {
    let mut trace = Trace::after_handshake(100, 0);
    let mut sent_ms = 200;
    let mut echo_ms = 100;
    for flight in 0..300 {
        let seen_ms = sent_ms + 50 + queue_ms(flight);
        for number in 8 * flight..8 * flight + 8 {
            let stamps = Some((sent_ms as u32, echo_ms as u32));
            trace.data(seen_ms, number).options.timestamps = stamps;
        }
        let ack = trace.ack(seen_ms, 8 * flight + 8, &[]);
        ack.options.timestamps = Some((seen_ms as u32, sent_ms as u32));
        echo_ms = seen_ms;
        sent_ms = seen_ms + 50 + after_ms;
    }
    let flows = trace.analysed().flows;
    let window_s = flows.limited_cwnd_s[0]
        + flows.limited_bottleneck_s[0]
        + flows.limited_shared_bottleneck_s[0];
    let limited = vec![
        ("application", flows.limited_application_s[0]),
        ("window", window_s),
    ];
    (Vantage::NAMES[usize::from(flows.vantage[0])], limited)
}

#[test]
fn before_the_receiver_a_queue_is_no_rest_of_the_sender() {
    let grows_and_falls = |flight: u32| i64::from(flight % 16) * 5;
    let (vantage, limited) = seconds_at_receiver(0, grows_and_falls);
    assert_eq!(vantage, "receiver");
    assert_eq!(mostly(&limited), "window", "{limited:?}");
}

#[test]
fn before_the_receiver_a_rest_of_the_sender_is_no_queue() {
    let (vantage, limited) = seconds_at_receiver(75, |_| 0);
    assert_eq!(vantage, "receiver");
    assert!(limited[0].1 > 20.0, "the rests alone: {limited:?}");
}

/// In the middle of 100 ms, without timestamps: for 30 s a segment each 30 ms, of which so many are lost behind the
/// vantage point, a hundred apart, and retransmitted in place of a new one. Seconds that the application is said to
/// limit.
fn seconds_at_one_rate(losses: u32) -> f64 {
    let mut trace = Trace::after_handshake(50, 50);
    let mut next = 0;
    let mut lost: Option<u32> = None;
    for slot in 0..1000 {
        let at_ms = 110 + 30 * i64::from(slot);
        let is_lost = slot % 100 == 50 && slot / 100 < losses;
        let again = lost.filter(|&number| next == number + 5);
        trace.data(at_ms, again.unwrap_or(next));
        match again {
            Some(_) => lost = None,
            None => next += 1,
        }
        match lost {
            Some(number) => trace.ack(at_ms + 50, number, &[(number + 1, next)]),
            None if is_lost => {
                lost = Some(next - 1);
                continue;
            }
            None => trace.ack(at_ms + 50, next, &[]),
        };
    }
    trace.segments.sort_by_key(|one| one.time_ns);
    trace.analysed().flows.limited_application_s[0]
}

#[test]
fn without_timestamps_a_rate_that_retransmissions_never_exceed_is_the_links() {
    let (few_s, many_s) = (seconds_at_one_rate(2), seconds_at_one_rate(10));
    assert!(few_s > 20.0, "{few_s}");
    assert!(many_s < 15.0, "{many_s}");
}

#[test]
fn a_segment_larger_than_the_window_does_not_make_it_full() {
    // Linux's loopback device: an MSS of 65,495 B, and a first window of 33,280 B.
    let mut trace = Trace::after_handshake(0, 100);
    for number in 0..300 {
        respond(&mut trace, 101 + 101 * i64::from(number), number, 260);
    }
    for segment in &mut trace.segments {
        if segment.flags.has(Flags::SYN) {
            segment.options.mss = Some(65_495);
            segment.options.window_scale = Some(7);
        }
    }
    let order = |one: &Segment| (one.time_ns, one.payload_bytes > 0);
    trace.segments.sort_by_key(order);
    let flows = trace.analysed().flows;
    assert_eq!(flows.limited_receiver_s[0], 0.0);
}
