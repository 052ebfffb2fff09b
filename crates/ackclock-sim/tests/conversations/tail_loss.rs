//! RFC 8985 section 7: tail loss probes.
//!
//! With an RTT of 100 ms that never varies the probe timeout is 202 ms (twice the smoothed RTT and
//! 2 ms, Linux's least timer), the retransmission timeout 300 ms.

use ackclock_plan::{FlowPlan, TcpPlan};
use ackclock_sim::packet::Kind;

use crate::kit::{assert_reads, data, flow, linux, ms, nth, transfer, Conversation, Script};

/// Ten segments and the FIN in one flight.
fn short() -> FlowPlan {
    let tcp = TcpPlan {
        initial_window: 20,
        ..linux()
    };
    transfer(tcp, 10)
}

#[test]
fn probing_with_the_last_segment_reveals_the_loss_before_it() {
    let mut tcp = Conversation::new(&short(), ms(50)).losing([data(9), nth(Kind::Fin, 1)]);
    assert_reads(
        &tcp.run(ms(1000)).sent(),
        "  0 > syn
         100 > ack
         100 > data 0..10
         100 > fin
         402 ! tail_probe      # 200 + 2 × 100 + 2
         402 > fin again
         502 ! recovery        # its SACK
         502 > data 9 again
         602 ! finished
         602 > ack",
    );
    let counters = tcp.sender.counters;
    assert_eq!((counters.tail_probes, counters.timeouts), (1, 0));
}

#[test]
fn a_probe_prefers_a_new_segment() {
    let mut tcp = Conversation::new(&flow(linux()), ms(50)).losing((0..10).map(data));
    assert_reads(
        &tcp.run(ms(402)).sent(),
        "  0 > syn
         100 > ack
         100 > data 0..10
         302 ! tail_probe      # 100 + 2 × 100 + 2
         302 > data 10
         402 ! recovery        # all ten are overdue
         402 > data 0 again",
    );
}

#[test]
fn a_single_segment_waits_for_the_worst_delayed_ack_or_the_timeout() {
    // Section 7.2: where the retransmission timeout would come before the probe's 2 × 100 + 200 ms, the
    // probe is sent at its time.
    let mut tcp = Conversation::new(&short(), ms(50)).losing([nth(Kind::Fin, 1)]);
    assert_reads(
        &tcp.run(ms(1000)).sent(),
        "  0 > syn
         100 > ack
         100 > data 0..10
         100 > fin
         200 ! finished
         500 ! tail_probe      # 200 + 300
         500 > fin again
         600 > ack",
    );
}

#[test]
fn a_single_segment_waits_for_the_worst_delayed_ack() {
    // Linux takes the smallest timeout for it, here 10 ms; the timeout is 100 + 4 × 50 ms.
    let tcp = TcpPlan {
        initial_window: 20,
        min_rto: ms(10),
        ..linux()
    };
    let mut tcp = Conversation::new(&transfer(tcp, 10), ms(50)).losing([nth(Kind::Fin, 1)]);
    let text = tcp.run(ms(410)).sent();
    assert!(
        text.contains("410 ! tail_probe\n"),
        "200 + 2 × 100 + 10: {text}"
    );
}

#[test]
fn a_tail_gets_one_probe_and_then_the_timeout() {
    let lost = [data(9), nth(Kind::Fin, 1).times(2)];
    let mut tcp = Conversation::new(&short(), ms(50)).losing(lost);
    assert_reads(
        &tcp.run(ms(1000)).sent(),
        "  0 > syn
         100 > ack
         100 > data 0..10
         100 > fin
         402 ! tail_probe
         402 > fin again
         702 ! timeout         # 402 + 300
         702 > data 9 again
         802 ! finished
         802 > fin again
         902 > ack",
    );
}

/// A window of four segments that the receiver bounds; segment 0 is acknowledged at 200 ms, then all is
/// silence until the probe at 402 ms.
fn probed() -> Script {
    let tcp = TcpPlan {
        receive_window_bytes: Some(4000),
        ..linux()
    };
    let mut script = Script::open(&flow(tcp), ms(100));
    script.ack(ms(200), 1).wait(ms(402));
    assert_reads(
        &script.sent(),
        "  0 > syn
         100 > ack
         100 > data 0..4
         200 > data 4
         402 ! tail_probe
         402 > data 4 again",
    );
    script.clear();
    script
}

#[test]
fn a_loss_recovered_by_the_probe_reduces_the_window() {
    // Section 7.4.2: known once more than the probe is acknowledged and no duplicate was reported.
    let mut tcp = probed();
    tcp.ack(ms(502), 5);
    assert_eq!(tcp.sender.cwnd(), 10.0, "the original may have been late");
    tcp.ack(ms(602), 6);
    assert_eq!((tcp.sender.cwnd(), tcp.sender.ssthresh()), (5.0, 5.0));
    assert_eq!(
        tcp.sender.counters.recoveries, 0,
        "nothing is left to repair"
    );
}

#[test]
fn a_duplicate_report_shows_that_nothing_was_lost() {
    // The original was late: its ACK comes first, then that of the probe.
    let mut tcp = probed();
    tcp.ack(ms(410), 5).dsack(ms(502), 5);
    tcp.ack(ms(510), 6).ack(ms(512), 8).ack(ms(610), 10);
    assert_eq!(tcp.sender.ssthresh(), f64::INFINITY);
}

#[test]
fn a_plain_duplicate_ack_shows_that_nothing_was_lost() {
    // Section 7.4.2, case 2: a receiver that does not report duplicates.
    let mut tcp = probed();
    tcp.ack(ms(410), 5).ack(ms(502), 5);
    tcp.ack(ms(510), 6).ack(ms(512), 8).ack(ms(610), 10);
    assert_eq!(tcp.sender.ssthresh(), f64::INFINITY);
}

#[test]
fn a_new_segment_as_probe_calls_for_no_reduction() {
    let mut tcp = Script::open(&flow(linux()), ms(100));
    // All but late: the ACKs of the first flight come after the probe with segment 10.
    tcp.ack(ms(200), 1).wait(ms(402));
    let probes = tcp.sender.counters.tail_probes;
    let window = tcp.sender.cwnd();
    assert_eq!(probes, 1, "{}", tcp.text());
    tcp.ack(ms(410), 13).ack(ms(520), 14);
    assert!(tcp.sender.cwnd() > window);
    assert_eq!(tcp.sender.ssthresh(), f64::INFINITY);
}

#[test]
fn a_later_transmission_restarts_the_probe_timer() {
    // Section 7.2: the timer restarts when new data are sent.
    let tcp = TcpPlan {
        receive_window_bytes: Some(4000),
        ..linux()
    };
    let mut script = Script::open(&flow(tcp), ms(100));
    script.ack(ms(200), 1).ack(ms(300), 2);
    assert_reads(
        &script.clear().wait(ms(527)).sent(),
        "527 ! tail_probe      # 300 + 2 × 112.5 + 2: the ACK of 1 took 200 ms
         527 > data 5 again",
    );
}

#[test]
fn the_probe_timeout_counts_segments_sent_with_the_ack() {
    // One segment is outstanding when the ACK comes, two when it has been answered.
    let tcp = TcpPlan {
        receive_window_bytes: Some(2000),
        ..linux()
    };
    let mut script = Script::open(&flow(tcp), ms(100));
    assert_reads(
        &script.ack(ms(200), 1).wait(ms(402)).sent(),
        "  0 > syn
         100 > ack
         100 > data 0..2
         200 > data 2
         402 ! tail_probe      # 200 + 202
         402 > data 2 again",
    );
}

#[test]
fn no_probe_without_sack_or_when_disabled() {
    for tcp in [
        TcpPlan {
            sack: false,
            ..linux()
        },
        TcpPlan {
            tail_loss_probe: false,
            ..linux()
        },
    ] {
        let mut tcp = Conversation::new(&flow(tcp), ms(50)).losing((0..10).map(data));
        assert_reads(
            &tcp.run(ms(400)).sent(),
            "  0 > syn
             100 > ack
             100 > data 0..10
             400 ! timeout
             400 > data 0 again",
        );
    }
}
