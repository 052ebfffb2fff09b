//! RFC 6675: losses by the count of SACKed segments, the window by what is in flight (*pipe*).

use ackclock_plan::TcpPlan;

use crate::kit::{assert_reads, data, flow, ms, sack_tcp, Conversation, Loss, Script};

fn conversation(losses: impl IntoIterator<Item = Loss>) -> Conversation {
    Conversation::new(&flow(sack_tcp()), ms(50))
        .spaced(ms(1))
        .losing(losses)
}

#[test]
fn the_third_sacked_segment_starts_recovery() {
    let mut tcp = conversation([data(0)]);
    assert_reads(
        &tcp.run(ms(303)).text(),
        "  0 > syn
         100 < syn/ack
         100 > ack
         100 > data 0..10      # 0 is lost
         201 < ack 0 sack 1
         201 > data 10         # limited transmit
         202 < ack 0 sack 1..3
         202 > data 11
         203 < ack 0 sack 1..4
         203 ! recovery        # window 5, pipe 12 − 3 − 1
         203 > data 0 again    # pipe 9
         204 < ack 0 sack 1..5
         205 < ack 0 sack 1..6
         206 < ack 0 sack 1..7
         207 < ack 0 sack 1..8 # pipe 5
         208 < ack 0 sack 1..9
         208 > data 12
         209 < ack 0 sack 1..10
         209 > data 13
         301 < ack 0 sack 1..11
         301 > data 14
         302 < ack 0 sack 1..12
         302 > data 15
         303 < ack 12
         303 > data 16",
    );
    assert_eq!((tcp.sender.cwnd(), tcp.sender.ssthresh()), (5.0, 5.0));
}

#[test]
fn several_holes_are_retransmitted_in_one_round_trip() {
    let mut tcp = conversation([data(0), data(1), data(2)]);
    assert_reads(
        &tcp.run(ms(309)).sent(),
        "  0 > syn
         100 > ack
         100 > data 0..10
         203 > data 10
         204 > data 11
         205 ! recovery        # 3, 4 and 5 are SACKed; pipe 12 − 3 − 3
         205 > data 0 again    # pipe 7
         208 > data 1 again    # pipe 4 before
         209 > data 2 again
         303 > data 12         # SACK of 10
         304 > data 13
         305 > data 14         # ack 1
         308 > data 15         # ack 2
         309 > data 16         # ack 12",
    );
    assert_eq!(tcp.sender.counters.retransmissions, 3);
}

#[test]
fn fewer_than_three_sacked_segments_wait_for_the_timeout() {
    let tcp = TcpPlan {
        limited_transmit: false,
        ..sack_tcp()
    };
    let mut tcp = Script::open(&flow(tcp), ms(100));
    tcp.sack(ms(200), 0, &[(8, 9)]);
    tcp.sack(ms(201), 0, &[(8, 10)]);
    assert_reads(
        &tcp.wait(ms(1100)).sent(),
        "  0 > syn
         100 > ack
         100 > data 0..10
         1100 ! timeout
         1100 > data 0 again",
    );
}

#[test]
fn three_sacked_segments_count_wherever_they_are() {
    // RFC 6675 section 2, IsLost: three segments above, contiguous or not.
    let mut tcp = Script::open(&flow(sack_tcp()), ms(100));
    tcp.sack(ms(200), 0, &[(2, 3)]);
    tcp.sack(ms(201), 0, &[(9, 10), (2, 3)]);
    tcp.clear().sack(ms(202), 0, &[(6, 7), (9, 10), (2, 3)]);
    // Above 0 and 1 there are three, above 3, 4, 5, 7 and 8 fewer: pipe 12 − 3 − 2.
    assert_reads(
        &tcp.sent(),
        "202 ! recovery
         202 > data 0 again",
    );
    assert_eq!(tcp.sender.in_flight(), 8);
    tcp.sack(ms(203), 0, &[(6, 8), (9, 10), (2, 3)]);
    assert_eq!(
        tcp.sender.in_flight(),
        4 + 1,
        "3, 4 and 5 are lost too: one is sent"
    );
}

#[test]
fn one_ack_for_many_segments_counts_them_all() {
    let mut tcp = Script::open(&flow(sack_tcp()), ms(100));
    assert_reads(
        &tcp.clear().sack(ms(200), 0, &[(7, 10)]).sent(),
        "200 ! recovery
         200 > data 0..5 again # all of 0..7 are lost, pipe 0, window 5",
    );
}

#[test]
fn segments_lost_during_recovery_are_retransmitted_in_the_same_episode() {
    // 11 is sent before recovery begins, 13 during it.
    let mut tcp = conversation([data(0), data(11)]);
    let text = tcp.run(ms(700)).sent();
    assert_eq!(tcp.sender.counters.recoveries, 1, "{text}");
    assert_eq!(tcp.sender.counters.timeouts, 0, "{text}");

    let mut tcp = conversation([data(0), data(13)]);
    let text = tcp.run(ms(700)).sent();
    assert_eq!(tcp.sender.counters.recoveries, 2, "{text}");
}

#[test]
fn a_lost_retransmission_waits_for_the_timeout() {
    // Counting cannot tell (RFC 6675 section 5.1). SACKs of segments sent before the retransmission
    // restart the timer, the last of them at 302 ms; those of later ones do not.
    let tcp = TcpPlan {
        receive_window_bytes: Some(18_000),
        ..sack_tcp()
    };
    let mut tcp = Conversation::new(&flow(tcp), ms(50))
        .spaced(ms(1))
        .losing([data(0).times(2)]);
    assert_reads(
        &tcp.run(ms(1402)).sent(),
        "   0 > syn
          100 > ack
          100 > data 0..10
          201 > data 10
          202 > data 11
          203 ! recovery
          203 > data 0 again
          208 > data 12
          209 > data 13
          301 > data 14
          302 > data 15
          308 > data 16
          309 > data 17        # the receive window is full
         1302 ! timeout
         1302 > data 0 again
         1402 > data 18..20    # window 2: 0 alone is newly delivered",
    );
    assert_eq!(tcp.sender.counters.recoveries, 1);
}
