//! Flow control: closed windows, their probes and updates, silly windows, and the send buffer.

use ackclock_core::{Rate, Time};
use ackclock_plan::{DelayedAck, FlowPlan, TcpPlan};
use ackclock_sim::packet::Kind;
use ackclock_traffic::{Pause, SlowReader};

use crate::kit::{
    assert_reads, data, flow, linux, ms, new_reno, nth, transfer, Conversation, Script, MSS_BYTES,
};

/// A receive buffer of `segments` segments.
fn buffer(segments: u64) -> TcpPlan {
    TcpPlan {
        receive_window_bytes: Some(segments * u64::from(MSS_BYTES)),
        ..linux()
    }
}

fn read_by(reader: SlowReader, flow: FlowPlan) -> FlowPlan {
    FlowPlan {
        slow_reader: Some(reader),
        ..flow
    }
}

/// An application that reads nothing before `end`, then all.
fn stopped_until(end: Time) -> SlowReader {
    SlowReader {
        rate: None,
        chunk_bytes: 1,
        pause: Some(Pause {
            at: Time::ZERO,
            length: end,
            every: None,
        }),
    }
}

/// An application that reads chunks at a rate.
fn reading(bytes_per_second: f64, chunk_bytes: u64) -> SlowReader {
    SlowReader {
        rate: Some(Rate::from_bytes_per_second(bytes_per_second)),
        chunk_bytes,
        pause: None,
    }
}

// ---- the closed window ----

#[test]
fn a_closed_window_is_probed_after_an_rto_and_then_at_doubled_intervals() {
    // RFC 9293 section 3.8.6.1. SRTT is 100 ms, and the variance has its floor of 200 ms (RFC 6298).
    let flow = read_by(stopped_until(ms(5000)), flow(buffer(4)));
    let mut tcp = Conversation::new(&flow, ms(50));
    assert_reads(
        &tcp.run(ms(5050)).text(),
        "  0 > syn
         100 < syn/ack
         100 > ack
         100 > data 0..4
         200 < ack 1
         200 < ack 2
         200 < ack 3
         200 < ack 4 closed
         500 > window probe      # 300 ms
         600 < ack 4 closed
         1100 > window probe     # 600 ms
         1200 < ack 4 closed
         2300 > window probe     # 1200 ms
         2400 < ack 4 closed
         4700 > window probe     # 2400 ms
         4800 < ack 4 closed
         5050 < ack 4            # the application has read
         5050 > data 4..8",
    );
}

#[test]
fn the_interval_between_probes_is_bounded_by_the_largest_rto() {
    let tcp = TcpPlan {
        max_rto: ms(1000),
        ..buffer(1)
    };
    let flow = read_by(stopped_until(ms(9000)), flow(tcp));
    let mut tcp = Conversation::new(&flow, ms(50));
    tcp.run(ms(5000));
    let text = tcp.sent();
    let probes = text.lines().filter(|line| line.ends_with("probe"));
    let times: Vec<_> = probes.filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(times, ["500", "1100", "2100", "3100", "4100"]);
}

#[test]
fn a_probe_replaces_a_lost_window_update() {
    // The update is the third ACK: those of the data and of the first probe are before it.
    let flow = read_by(stopped_until(ms(800)), flow(buffer(1)));
    let mut tcp = Conversation::new(&flow, ms(50)).losing([nth(Kind::Ack, 3)]);
    assert_reads(
        &tcp.run(ms(1250)).text(),
        "  0 > syn
         100 < syn/ack
         100 > ack
         100 > data 0
         200 < ack 1 closed
         500 > window probe
         600 < ack 1 closed
         1100 > window probe
         1200 < ack 1
         1200 > data 1",
    );
}

#[test]
fn a_lost_probe_is_followed_by_another() {
    let flow = read_by(stopped_until(ms(800)), flow(buffer(1)));
    let lost = [nth(Kind::WindowProbe, 1), nth(Kind::Ack, 2)];
    let mut tcp = Conversation::new(&flow, ms(50)).losing(lost);
    tcp.run(ms(1299));
    assert!(tcp.sent().ends_with("1100 > window probe\n1200 > data 1\n"));
}

#[test]
fn data_lost_before_a_closed_window_are_retransmitted() {
    let flow = read_by(stopped_until(ms(900)), transfer(buffer(3), 5));
    let mut tcp = Conversation::new(&flow, ms(50)).losing([data(2)]);
    tcp.run(ms(3000));
    assert!(tcp.sent().contains("data 2 again"), "{}", tcp.sent());
    assert_eq!(tcp.receiver.delivered_bytes(), 5 * u64::from(MSS_BYTES));
    assert!(tcp.sender.finished.is_some());
}

// ---- window updates and silly windows ----

#[test]
fn the_window_grows_by_segments() {
    // RFC 9293 section 3.8.6.2.2: four reads of 250 bytes make room for one segment.
    let flow = read_by(reading(1000.0, 250), flow(buffer(4)));
    let mut tcp = Conversation::new(&flow, ms(50));
    assert_reads(
        &tcp.run(ms(2050)).text(),
        "  0 > syn
         100 < syn/ack
         100 > ack
         100 > data 0..4
         200 < ack 1
         200 < ack 2
         200 < ack 3
         200 < ack 4 closed
         500 > window probe
         600 < ack 4 closed
         950 < ack 4           # reads at 150, 400, 650 and 900
         950 > data 4
         1050 < ack 5 closed
         1350 > window probe
         1450 < ack 5 closed
         1950 < ack 5
         1950 > data 5
         2050 < ack 6 closed",
    );
}

#[test]
fn reads_report_a_window_that_has_doubled() {
    // A buffer of ten segments, full at 150 ms: one is free at 160 ms, and two at 170 ms, when one is left of the first
    // update's. After the second, two more are free at 190 ms.
    let flow = read_by(reading(100_000.0, 1000), transfer(buffer(10), 10));
    let mut tcp = Conversation::new(&flow, ms(50));
    tcp.run(ms(260));
    let text = tcp.text();
    let updates: Vec<_> = text
        .lines()
        .filter(|line| line.ends_with("ack 10"))
        .collect();
    // The first segment is read as it arrives: the ACK of the last leaves a window of one.
    assert_eq!(
        updates,
        ["200 < ack 10", "210 < ack 10", "230 < ack 10"],
        "{text}"
    );
}

#[test]
fn a_window_update_is_no_duplicate_ack() {
    // RFC 5681 section 2: the advertised window is that of the last ACK.
    let tcp = TcpPlan {
        receive_window_bytes: Some(10_000),
        ..new_reno()
    };
    let mut script = Script::open(&flow(tcp), ms(100));
    script.advertising(10).ack(ms(200), 1);
    for window in 11..16 {
        script.advertising(window).ack(ms(200 + window), 1);
    }
    assert!(!script.sent().contains("recovery"), "{}", script.sent());
    for number in 0..3 {
        script.ack(ms(230 + number), 1);
    }
    assert!(script.sent().contains("recovery"), "{}", script.sent());
}

#[test]
fn a_window_that_was_overtaken_does_not_close() {
    let mut script = Script::open(&flow(buffer(4)), ms(100));
    script.clear();
    script.advertising(8).ack(ms(200), 2);
    script.advertising(3).ack(ms(201), 1);
    script.advertising(8).ack(ms(300), 3);
    assert_reads(
        &script.sent(),
        "200 > data 4..10
         300 > data 10",
    );
}

// ---- the end ----

#[test]
fn a_fin_closes_after_the_last_read() {
    let flow = read_by(reading(10_000.0, 1000), transfer(buffer(4), 3));
    let mut tcp = Conversation::new(&flow, ms(50));
    assert_reads(
        &tcp.run(ms(500)).text(),
        "  0 > syn
         100 < syn/ack
         100 > ack
         100 > data 0..3
         100 > fin
         200 < ack 1
         200 < ack 2
         200 < ack 3
         200 ! finished
         200 < ack 4
         400 < fin/ack 4       # reads at 150, 250 and 350
         400 > ack",
    );
    assert!(tcp.next().is_never());
}

#[test]
fn a_client_is_done_when_it_has_read_all() {
    let flow = FlowPlan {
        request_bytes: Some(100),
        ..read_by(reading(10_000.0, 1000), transfer(buffer(4), 3))
    };
    let mut tcp = Conversation::new(&flow, ms(50));
    tcp.run(ms(1000));
    // SYN, SYN/ACK, request, and the data at 200 ms; reads of 1000 bytes each 100 ms.
    let client = tcp.receiver.client().expect("it opened the connection");
    assert_eq!(client.finished, Some(ms(400)));
}

// ---- the send buffer ----

/// Segments in flight after each step.
fn segments_in_flight(tcp: TcpPlan) -> Vec<u64> {
    let mut tcp = Conversation::new(&flow(tcp), ms(50)).spaced(ms(1));
    tcp.run(ms(0));
    let mut found = vec![];
    while tcp.now < ms(3000) {
        tcp.step();
        found.push(tcp.outstanding());
    }
    found
}

#[test]
fn a_send_buffer_holds_so_many_bytes_until_they_are_acknowledged() {
    let tcp = TcpPlan {
        send_buffer_bytes: Some(3999),
        ..linux()
    };
    let mut tcp = Conversation::new(&flow(tcp), ms(50)).spaced(ms(1));
    assert_reads(
        &tcp.run(ms(202)).text(),
        "  0 > syn
         100 < syn/ack
         100 > ack
         100 > data 0..3
         200 < ack 1
         200 > data 3
         201 < ack 2
         201 > data 4
         202 < ack 3
         202 > data 5",
    );
}

#[test]
fn a_send_buffer_bounds_the_segments_in_flight() {
    for segments in [1, 2, 5, 20] {
        let bounded = TcpPlan {
            send_buffer_bytes: Some(1000 * segments),
            delayed_ack: DelayedAck::On,
            ..linux()
        };
        assert_eq!(
            segments_in_flight(bounded).into_iter().max(),
            Some(segments)
        );
    }
}
