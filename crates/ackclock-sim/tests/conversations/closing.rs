//! RFC 9293 section 3.6: how a connection ends. The FIN is a segment after the data, or goes with the last of them
//! where there is a send buffer.

use ackclock_plan::{FlowPlan, TcpPlan};
use ackclock_sim::packet::Kind;

use crate::kit::{assert_reads, flow, linux, ms, nth, transfer, Conversation, Loss};

/// Three segments without probes: the timeout is 300 ms.
fn conversation(losses: impl IntoIterator<Item = Loss>) -> Conversation {
    let tcp = TcpPlan {
        tail_loss_probe: false,
        ..linux()
    };
    Conversation::new(&transfer(tcp, 3), ms(50)).losing(losses)
}

fn is_over(tcp: &Conversation) -> bool {
    tcp.next().is_never() && !tcp.sender.is_active()
}

#[test]
fn the_fin_gets_a_fin_ack_and_that_an_ack() {
    let mut tcp = conversation([]);
    assert_reads(
        &tcp.run(ms(10_000)).text(),
        "  0 > syn
         100 < syn/ack
         100 > ack
         100 > data 0..3
         100 > fin
         200 < ack 1
         200 < ack 2
         200 < ack 3
         200 ! finished        # the last data byte, not the FIN
         200 < fin/ack 4
         200 > ack",
    );
    assert!(is_over(&tcp));
    assert_eq!(tcp.sender.finished, Some(ms(200)));
    assert_eq!(tcp.receiver.delivered_bytes(), 3000);
}

#[test]
fn a_lost_fin_is_retransmitted() {
    let mut tcp = conversation([nth(Kind::Fin, 1)]);
    assert_reads(
        &tcp.run(ms(10_000)).sent(),
        "  0 > syn
         100 > ack
         100 > data 0..3
         100 > fin
         200 ! finished
         500 ! timeout
         500 > fin again
         600 > ack",
    );
    assert!(is_over(&tcp));
    assert_eq!(tcp.sender.finished, Some(ms(200)));
}

#[test]
fn a_lost_fin_ack_is_retransmitted_for_the_retransmitted_fin() {
    let mut tcp = conversation([nth(Kind::FinAck, 1)]);
    assert_reads(
        &tcp.run(ms(10_000)).text(),
        "  0 > syn
         100 < syn/ack
         100 > ack
         100 > data 0..3
         100 > fin
         200 < ack 1
         200 < ack 2
         200 < ack 3
         200 ! finished
         500 ! timeout
         500 > fin again
         600 < fin/ack 4
         600 > ack",
    );
    assert!(is_over(&tcp));
}

#[test]
fn a_lost_last_ack_makes_the_receiver_repeat_its_fin() {
    // The second of these ACKs is the one of the receiver's FIN, which it repeats after 1 s.
    let mut tcp = conversation([nth(Kind::LastAck, 2).times(2)]);
    assert_reads(
        &tcp.run(ms(20_000)).sent(),
        "   0 > syn
          100 > ack
          100 > data 0..3
          100 > fin
          200 ! finished
          200 > ack            # lost
         1200 > ack            # 150 + 1000 + 50; lost
         3200 > ack            # and twice as long",
    );
    assert!(is_over(&tcp));
}

#[test]
fn the_receivers_timeout_is_independent_of_the_handshake() {
    // Its SYN/ACK was repeated once; the timer for its FIN begins with 1 s all the same.
    let mut tcp = conversation([nth(Kind::SynAck, 1).times(2), nth(Kind::LastAck, 2)]);
    let text = tcp.run(ms(20_000)).sent();
    // The third SYN/ACK goes out at 2050 ms, the FIN/ACK at 2150 ms.
    assert!(text.ends_with("3200 > ack\n"), "{text}");
}

#[test]
fn the_fin_waits_for_the_window_like_a_segment() {
    let tcp = TcpPlan {
        initial_window: 3,
        ..linux()
    };
    let mut tcp = Conversation::new(&transfer(tcp, 3), ms(50));
    assert_reads(
        &tcp.run(ms(1000)).sent(),
        "  0 > syn
         100 > ack
         100 > data 0..3
         200 > fin
         200 ! finished
         300 > ack",
    );
}

#[test]
fn the_last_segment_is_as_short_as_it_must_be() {
    let short = FlowPlan {
        size_bytes: Some(2001),
        ..flow(linux())
    };
    let mut tcp = Conversation::new(&short, ms(50));
    tcp.run(ms(1000));
    assert_eq!(tcp.receiver.delivered_bytes(), 2001);
    assert_eq!(tcp.sender.acknowledged_bytes(), 2001);
    let counters = tcp.sender.counters;
    // SYN 60; two ACKs, the FIN and three data segments with 52 bytes of headers each.
    assert_eq!(counters.sent_packets, 7);
    assert_eq!(counters.sent_bytes, 60 + 6 * 52 + 2001);
}

#[test]
fn an_empty_transfer_is_a_bare_fin() {
    let empty = FlowPlan {
        size_bytes: Some(0),
        ..flow(linux())
    };
    let mut tcp = Conversation::new(&empty, ms(50));
    assert_reads(
        &tcp.run(ms(10_000)).text(),
        "  0 > syn
         100 < syn/ack
         100 > ack
         100 > fin
         200 < fin/ack 1
         200 ! finished
         200 > ack",
    );
    assert!(is_over(&tcp));
}

#[test]
fn a_fin_out_of_order_waits_for_the_data_before_it() {
    let mut tcp = conversation([crate::kit::data(1)]);
    assert_reads(
        &tcp.run(ms(10_000)).text(),
        "  0 > syn
         100 < syn/ack
         100 > ack
         100 > data 0..3
         100 > fin
         200 < ack 1
         200 < ack 1 sack 2
         200 < ack 1 sack 2..4
         225 ! recovery        # a quarter of the RTT later
         225 > data 1 again
         325 < fin/ack 4
         325 ! finished
         325 > ack",
    );
    assert!(is_over(&tcp));
}

/// With a send buffer, and a window of three segments.
fn buffered(segments: u64) -> Conversation {
    let tcp = TcpPlan {
        initial_window: 3,
        tso_batching: true,
        ..linux()
    };
    Conversation::new(&transfer(tcp, segments), ms(50))
}

#[test]
fn a_fin_after_sent_data_ignores_the_window() {
    let mut tcp = buffered(3);
    assert_reads(
        &tcp.run(ms(10_000)).text(),
        "  0 > syn
         100 < syn/ack
         100 > ack
         100 > data 0..3
         100 > fin
         200 < ack 1
         200 < ack 2
         200 < ack 3
         200 ! finished
         200 < fin/ack 4
         200 > ack",
    );
    assert!(is_over(&tcp));
}

#[test]
fn the_last_segment_carries_the_fin_and_ignores_the_window() {
    let mut tcp = buffered(4);
    assert_reads(
        &tcp.run(ms(10_000)).text(),
        "  0 > syn
         100 < syn/ack
         100 > ack
         100 > data 0..3
         100 > data 3 fin
         200 < ack 1
         200 < ack 2
         200 < ack 3
         200 < fin/ack 4
         200 ! finished
         200 > ack",
    );
    assert!(is_over(&tcp));
    assert_eq!(tcp.receiver.delivered_bytes(), 4000);
}

#[test]
fn two_remaining_segments_respect_the_window() {
    let mut tcp = buffered(5);
    assert_reads(
        &tcp.run(ms(10_000)).sent(),
        "  0 > syn
         100 > ack
         100 > data 0..3
         200 > data 3
         200 > data 4 fin
         300 ! finished
         300 > ack",
    );
}

#[test]
fn a_lost_fin_is_retransmitted_with_its_data() {
    let mut tcp = buffered(4).losing([nth(Kind::DataFin, 1)]);
    assert_reads(
        &tcp.run(ms(10_000)).sent(),
        "  0 > syn
         100 > ack
         100 > data 0..3
         100 > data 3 fin
         500 ! tail_probe     # no later than the timeout
         500 > data 3 fin again
         600 ! finished
         600 > ack",
    );
    assert!(is_over(&tcp));
    assert_eq!(tcp.receiver.delivered_bytes(), 4000);
}

#[test]
fn a_reordered_fin_closes_the_connection_after_the_missing_data() {
    let mut tcp = buffered(4).losing([crate::kit::data(1)]);
    assert_reads(
        &tcp.run(ms(10_000)).sent(),
        "  0 > syn
         100 > ack
         100 > data 0..3
         100 > data 3 fin
         225 ! recovery
         225 > data 1 again
         325 ! finished
         325 > ack",
    );
    assert!(is_over(&tcp));
}
