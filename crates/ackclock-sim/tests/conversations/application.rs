//! Limits other than the congestion window: the receiver, the application, pacing.

use ackclock_core::Rate;
use ackclock_plan::{DelayedAck, FlowPlan, TcpPlan};

use crate::kit::{assert_reads, data, flow, linux, ms, transfer, Conversation};

fn bounded_by(receive_window_bytes: u64) -> TcpPlan {
    TcpPlan {
        receive_window_bytes: Some(receive_window_bytes),
        ..linux()
    }
}

/// An application that writes a segment each 100 ms.
fn slowly(flow: FlowPlan) -> FlowPlan {
    FlowPlan {
        application_rate: Some(Rate::from_bytes_per_second(10_000.0)),
        ..flow
    }
}

// ---- the receive window ----

#[test]
fn no_more_than_the_receive_window_is_outstanding() {
    let mut tcp = Conversation::new(&flow(bounded_by(4999)), ms(50)).spaced(ms(1));
    assert_reads(
        &tcp.run(ms(203)).text(),
        "  0 > syn
         100 < syn/ack
         100 > ack
         100 > data 0..4       # whole segments
         200 < ack 1
         200 > data 4
         201 < ack 2
         201 > data 5
         202 < ack 3
         202 > data 6
         203 < ack 4
         203 > data 7",
    );
}

#[test]
fn a_receive_window_like_linuxs_opens_by_two_segments_for_each_that_arrives() {
    // 65535 bytes are 65 segments of 1000. The last of them waits 40 ms for its ACK.
    let tcp = TcpPlan {
        delayed_ack: DelayedAck::Quick,
        initial_window: 500,
        ..linux()
    };
    let mut tcp = Conversation::new(&flow(tcp), ms(50));
    assert_reads(
        &tcp.run(ms(299)).sent(),
        "  0 > syn
         100 > ack
         100 > data 0..65
         200 > data 65..257    # 64 + 65 + 2 × 64
         240 > data 257..260",
    );
    assert_eq!(tcp.sender.cwnd(), 500.0, "it is not what limits the sender");
}

#[test]
fn sacked_segments_stay_in_the_receive_window() {
    // Four segments beyond the hole occupy the receiver's buffer until it is filled.
    let mut tcp = Conversation::new(&flow(bounded_by(5000)), ms(50))
        .spaced(ms(1))
        .losing([data(0)]);
    assert_reads(
        &tcp.run(ms(303)).sent(),
        "  0 > syn
         100 > ack
         100 > data 0..5
         203 ! recovery
         203 > data 0 again
         303 > data 5..10",
    );
}

#[test]
fn a_receive_window_below_a_segment_passes_one() {
    let mut tcp = Conversation::new(&flow(bounded_by(10)), ms(50));
    assert_reads(
        &tcp.run(ms(200)).sent(),
        "  0 > syn
         100 > ack
         100 > data 0
         200 > data 1",
    );
}

// ---- window validation ----

#[test]
fn a_window_that_the_receiver_bounds_does_not_grow() {
    let mut tcp = Conversation::new(&flow(bounded_by(4000)), ms(50));
    tcp.run(ms(5000));
    assert_eq!(tcp.sender.cwnd(), 10.0);
}

#[test]
fn in_slow_start_the_window_may_be_twice_the_segments_used() {
    // Linux: a burst may need it. Eight outstanding let ten grow to sixteen.
    let mut tcp = Conversation::new(&flow(bounded_by(8000)), ms(50));
    tcp.run(ms(5000));
    assert_eq!(tcp.sender.cwnd(), 16.0);
}

#[test]
fn without_validation_it_grows_unused() {
    let tcp = TcpPlan {
        window_validation: false,
        ..bounded_by(4000)
    };
    let mut tcp = Conversation::new(&flow(tcp), ms(50));
    tcp.run(ms(599));
    assert_eq!(tcp.sender.cwnd(), 10.0 + 4.0 * 4.0, "four ACKs each 100 ms");
}

#[test]
fn a_window_that_the_application_does_not_fill_does_not_grow() {
    let mut tcp = Conversation::new(&slowly(flow(linux())), ms(50));
    tcp.run(ms(20_000));
    assert_eq!(tcp.sender.cwnd(), 10.0);
}

// ---- the application ----

#[test]
fn segments_are_sent_when_they_are_written() {
    let mut tcp = Conversation::new(&slowly(transfer(linux(), 4)), ms(20));
    assert_reads(
        &tcp.run(ms(1000)).sent(),
        "  0 > syn
          40 > ack
          40 > data 0
         140 > data 1
         240 > data 2
         340 > data 3
         340 > fin             # with the last of the data
         380 ! finished
         380 > ack",
    );
}

#[test]
fn what_is_written_while_the_window_is_closed_waits() {
    // A segment each 100 ms, an RTT of 400 ms and a window of two.
    let tcp = TcpPlan {
        receive_window_bytes: Some(2000),
        ..linux()
    };
    let mut tcp = Conversation::new(&slowly(flow(tcp)), ms(200));
    assert_reads(
        &tcp.run(ms(1300)).sent(),
        " 400 > ack
          400 > data 0
          500 > data 1
          800 > data 2         # written at 600
          900 > data 3
         1200 > data 4         # written at 800
         1300 > data 5"
            .replace(" 400 > ack", "0 > syn\n 400 > ack")
            .as_str(),
    );
}

// ---- pacing ----

fn paced() -> TcpPlan {
    TcpPlan {
        pacing: true,
        ..linux()
    }
}

#[test]
fn the_first_ten_segments_are_unpaced_and_the_next_paced_at_twice_the_window_rate() {
    // Ten ACKs come immediately: after the first, 2 × 11 × 1000 B each 100 ms, 4.545 ms for 1000 B, of which half
    // is given because the segment was late; then 2 × 20 × 1000 B, 2.5 ms.
    let mut tcp = Conversation::new(&flow(paced()), ms(50));
    assert_reads(
        &tcp.run(ms(206)).sent(),
        "  0 > syn
         100 > ack
         100 > data 0..10
         200 > data 10
         202.272727273 > data 11
         204.772727273 > data 12",
    );
}

#[test]
fn in_congestion_avoidance_at_1_2_times_the_windows_rate() {
    let mut tcp = Conversation::new(&flow(paced()), ms(50)).losing([data(0)]);
    tcp.run(ms(760));
    let window = tcp.sender.cwnd();
    let before = tcp.sent().len();
    tcp.run(ms(800));
    assert_eq!(tcp.sender.cwnd(), window, "between two increments");
    let times: Vec<f64> = tcp.sent()[before..]
        .lines()
        .filter_map(|line| line.split(' ').next()?.parse().ok())
        .collect();
    let least_ms = 1000.0 / (1.2 * window * 1000.0 / 100.0);
    assert!(times.len() >= 2, "{times:?}");
    for pair in times.windows(2) {
        assert!(pair[1] - pair[0] > least_ms - 1e-6, "{times:?}, {least_ms}");
    }
}

#[test]
fn data_written_while_the_window_is_full_are_sent_when_it_opens() {
    // With a send buffer too: what comes next is looked for after what is there.
    for batches in [false, true] {
        let tcp = TcpPlan {
            initial_window: 1,
            tso_batching: batches,
            ..linux()
        };
        let mut tcp = Conversation::new(&slowly(transfer(tcp, 6)), ms(100));
        assert_reads(
            &tcp.run(ms(600)).sent(),
            "  0 > syn
             200 > ack
             200 > data 0
             400 > data 1..3
             600 > data 3..5",
        );
    }
}

#[test]
fn a_paced_sender_that_was_idle_does_not_make_up_for_it() {
    // A segment each 100 ms: none waits for its turn.
    let tcp = TcpPlan {
        initial_window: 1,
        ..paced()
    };
    let mut tcp = Conversation::new(&slowly(transfer(tcp, 12)), ms(20));
    tcp.run(ms(900));
    let before = tcp.sent().len();
    assert_reads(
        &tcp.run(ms(1140)).sent()[before..],
        " 940 > data 9
         1040 > data 10
         1140 > data 11",
    );
}
