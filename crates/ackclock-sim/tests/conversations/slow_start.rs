//! RFC 5681 section 3.1: the window doubles each round trip, then grows by one segment.

use ackclock_plan::{DelayedAck, TcpPlan};

use crate::kit::{assert_reads, cubic, data, flow, linux, ms, sack_tcp, Conversation};

#[test]
fn each_round_trip_doubles_the_window() {
    let tcp = TcpPlan {
        initial_window: 2,
        ..linux()
    };
    let mut tcp = Conversation::new(&flow(tcp), ms(50));
    assert_reads(
        &tcp.run(ms(499)).sent(),
        "  0 > syn
         100 > ack
         100 > data 0..2
         200 > data 2..6
         300 > data 6..14
         400 > data 14..30",
    );
    assert_eq!(tcp.sender.cwnd(), 16.0);
    assert_eq!(tcp.sender.ssthresh(), f64::INFINITY);
}

#[test]
fn each_ack_releases_twice_the_acknowledged_segments() {
    let mut tcp = Conversation::new(&flow(linux()), ms(50)).spaced(ms(1));
    assert_reads(
        &tcp.run(ms(203)).text(),
        "  0 > syn
         100 < syn/ack
         100 > ack
         100 > data 0..10
         200 < ack 1
         200 > data 10..12
         201 < ack 2
         201 > data 12..14
         202 < ack 3
         202 > data 14..16
         203 < ack 4
         203 > data 16..18",
    );
}

#[test]
fn delayed_acks_do_not_slow_it_down() {
    // Growth counts acknowledged segments, not ACKs (RFC 3465 with L = 2).
    let tcp = TcpPlan {
        delayed_ack: DelayedAck::On,
        ..linux()
    };
    let mut tcp = Conversation::new(&flow(tcp), ms(50)).spaced(ms(1));
    assert_reads(
        &tcp.run(ms(209)).text(),
        "  0 > syn
         100 < syn/ack
         100 > ack
         100 > data 0..10
         201 < ack 2
         201 > data 10..14
         203 < ack 4
         203 > data 14..18
         205 < ack 6
         205 > data 18..22
         207 < ack 8
         207 > data 22..26
         209 < ack 10
         209 > data 26..30",
    );
    assert_eq!(tcp.sender.cwnd(), 20.0);
}

#[test]
fn above_ssthresh_a_round_trip_adds_one_segment() {
    // The loss of segment 0 makes it 5; recovery ends at 303 ms.
    let mut tcp = Conversation::new(&flow(sack_tcp()), ms(50))
        .spaced(ms(1))
        .losing([data(0)]);
    let mut windows = Vec::new();
    for round in 3..9 {
        tcp.run(ms(100 * round + 50));
        windows.push(tcp.sender.cwnd());
    }
    assert_eq!(windows, [5.0, 6.0, 7.0, 8.0, 9.0, 10.0]);
}

#[test]
fn cubic_slow_start_equals_reno() {
    let mut cubic_flow = flow(linux());
    cubic_flow.congestion = cubic().into();
    let [mut reno, mut cubic] = [flow(linux()), cubic_flow].map(|flow| {
        // 3 ms apart, no train of ACKs ends slow start.
        Conversation::new(&flow, ms(50)).spaced(ms(3))
    });
    assert_reads(&cubic.run(ms(299)).text(), &reno.run(ms(299)).text());
}
