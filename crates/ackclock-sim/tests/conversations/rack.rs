//! RFC 8985 section 6: losses by time.

use ackclock_core::Rate;
use ackclock_plan::{FlowPlan, TcpPlan};
use ackclock_sim::packet::Kind;

use crate::kit::{assert_reads, data, flow, linux, ms, nth, Conversation, Loss, Script};

fn conversation(losses: impl IntoIterator<Item = Loss>) -> Conversation {
    Conversation::new(&flow(linux()), ms(50))
        .spaced(ms(1))
        .losing(losses)
}

fn window_of(initial_window: u32) -> FlowPlan {
    flow(TcpPlan {
        initial_window,
        ..linux()
    })
}

#[test]
fn three_sacked_segments_end_the_reordering_window() {
    // Section 6.2, step 4: no reordering window once the duplicate threshold is reached.
    let mut tcp = conversation([data(0)]);
    assert_reads(
        &tcp.run(ms(209)).sent(),
        "  0 > syn
         100 > ack
         100 > data 0..10
         201 > data 10
         202 > data 11
         203 ! recovery
         203 > data 0 again    # PRR from 10 to 5: one for two
         205 > data 12
         207 > data 13",
    );
    assert_eq!(tcp.sender.in_flight(), 5);
}

#[test]
fn fewer_than_three_sacks_wait_a_quarter_of_the_min_rtt() {
    let mut tcp = Conversation::new(&window_of(3), ms(50))
        .spaced(ms(1))
        .losing([data(0)]);
    assert_reads(
        &tcp.run(ms(227)).text(),
        "  0 > syn
         100 < syn/ack
         100 > ack
         100 > data 0..3
         201 < ack 0 sack 1
         201 > data 3
         202 < ack 0 sack 1..3 # an RTT of 102 ms and 25 ms more, from 100 ms on
         202 > data 4
         227 ! recovery
         227 > data 0 again",
    );
}

#[test]
fn a_coarse_clock_leaves_the_timer_time_for_the_third_sack() {
    // The quarter of an RTT ends at 225 ms, and 2 ms are the floor: by a clock of 10 ms three ticks, and one more. So
    // the third segment SACKed, at 235 ms, condemns first.
    let mut tcp = window_of(4);
    tcp.tcp.timer_tick = ms(10);
    let mut alone = Script::open(&tcp, ms(100));
    alone.sack(ms(200), 0, &[(1, 2)]).clear();
    assert_reads(
        &alone.wait(ms(299)).sent(),
        "240 ! recovery
         240 > data 0 again",
    );
    let mut told = Script::open(&tcp, ms(100));
    told.sack(ms(200), 0, &[(1, 2)]).clear();
    assert_reads(
        &told.sack(ms(235), 0, &[(1, 4)]).sent(),
        "235 ! recovery
         235 > data 0 again",
    );
}

#[test]
fn reordering_within_the_window_is_no_loss() {
    let mut tcp = Script::open(&window_of(3), ms(100));
    tcp.sack(ms(200), 0, &[(1, 2)]);
    tcp.ack(ms(224), 2);
    assert_reads(
        &tcp.wait(ms(299)).sent(),
        "  0 > syn
         100 > ack
         100 > data 0..3
         200 > data 3
         224 > data 4..6       # 2 and 3 are in flight",
    );
    assert_eq!(
        tcp.sender.cwnd(),
        4.0,
        "the ACK that advances delivers 0 alone"
    );
}

#[test]
fn reordering_outside_the_window_is_a_loss() {
    let mut flow = window_of(3);
    flow.tcp.undo_spurious = false;
    let mut tcp = Script::open(&flow, ms(100));
    tcp.sack(ms(200), 0, &[(1, 2)]);
    tcp.ack(ms(226), 2);
    assert_reads(
        &tcp.sent(),
        "  0 > syn
         100 > ack
         100 > data 0..3
         200 > data 3
         225 ! recovery
         225 > data 0 again",
    );
    assert_eq!(
        tcp.sender.in_flight(),
        2,
        "2 and 3, as many as ssthresh allows"
    );
}

#[test]
fn a_later_segment_delivered_marks_earlier_ones_lost_immediately() {
    // Segment 1 is missing for longer than an RTT and a quarter when the first SACK comes.
    let mut tcp = Script::open(&window_of(2), ms(100));
    tcp.ack(ms(200), 1); // 2 and 3 go out
    tcp.clear().sack(ms(300), 1, &[(2, 3)]);
    assert_reads(
        &tcp.sent(),
        "300 ! recovery
         300 > data 1 again",
    );
}

#[test]
fn the_reordering_timer_waits_for_the_last_of_the_overtaken() {
    // Section 6.2, step 5: the timer is for the longest of the remaining times.
    let mut tcp = Script::open(&window_of(4), ms(100));
    tcp.ack(ms(200), 1).ack(ms(210), 2); // 4, 5 go out, and 6, 7
    tcp.ack(ms(220), 3).ack(ms(230), 4);
    tcp.sack(ms(301), 4, &[(5, 6)]);
    tcp.clear().sack(ms(311), 4, &[(7, 8), (5, 6)]); // an RTT of 101 ms
    assert_reads(
        &tcp.wait(ms(340)).sent(),
        "311 > data 13
         336 ! recovery        # 210 + 101 + 25; for segment 4 it would be 326
         336 > data 4 again",
    );
    assert_eq!(tcp.sender.counters.retransmissions, 1);
    assert_eq!(
        tcp.sender.in_flight(),
        7,
        "4 again and 8..14 but neither 5, 6 nor 7"
    );
}

#[test]
fn a_lost_retransmission_is_detected_when_later_ones_arrive() {
    let mut tcp = conversation([data(0).times(2)]);
    assert_reads(
        &tcp.run(ms(405)).sent(),
        "  0 > syn
         100 > ack
         100 > data 0..10
         201 > data 10
         202 > data 11
         203 ! recovery
         203 > data 0 again    # lost again
         205 > data 12
         207 > data 13
         301 > data 14
         302 > data 15
         305 > data 0 again    # the SACK of 12, sent after it
         305 > data 16
         307 > data 17
         401 > data 18
         402 > data 19
         405 > data 20         # ack 16 ends the recovery; 16..20 are in flight",
    );
    assert_eq!(tcp.sender.counters.timeouts, 0);
    assert_eq!(tcp.sender.counters.recoveries, 1);
}

#[test]
fn an_rtt_below_the_minimum_belongs_to_the_original_transmission() {
    // Section 6.2, step 2: segment 0 is retransmitted at 203 ms; its ACK 20 ms later is for the original.
    let mut tcp = Script::open(&flow(linux()), ms(100));
    for segment in 1..=3 {
        tcp.sack(ms(200 + segment), 0, &[(1, segment + 1)]);
    }
    tcp.ack_echoing(ms(223), 4, ms(100));
    // Had RACK believed it, 4..10 (sent at 100 ms, before 203 ms) would be overdue.
    assert_eq!(tcp.sender.counters.retransmissions, 1, "{}", tcp.text());
}

#[test]
fn an_ack_with_an_earlier_echo_belongs_to_the_original_transmission() {
    // The same with an ACK 117 ms after the second sending: only its timestamp tells.
    let mut tcp = Script::open(&flow(linux()), ms(100));
    for segment in 1..=3 {
        tcp.sack(ms(200 + segment), 0, &[(1, segment + 1)]);
    }
    tcp.ack_echoing(ms(320), 4, ms(100));
    assert_eq!(tcp.sender.counters.retransmissions, 1, "{}", tcp.text());
}

#[test]
fn a_timeout_spares_segments_sent_within_an_rtt() {
    // Section 6.3. An application writes a segment each 90 ms; from the third on all are lost.
    let tcp = TcpPlan {
        tail_loss_probe: false,
        ..linux()
    };
    let mut slow = flow(tcp);
    slow.application_rate = Some(Rate::from_bytes_per_second(1000.0 / 0.09));
    let mut tcp = Conversation::new(&slow, ms(50)).losing([nth(Kind::Data, 3).times(4)]);
    assert_reads(
        &tcp.run(ms(590)).sent(),
        "  0 > syn
         100 > ack
         100 > data 0
         190 > data 1
         280 > data 2
         370 > data 3
         460 > data 4
         550 > data 5
         590 ! timeout         # the ACK of 1 came at 290
         590 > data 2 again",
    );
    assert_eq!(tcp.sender.in_flight(), 2, "2 again, and 5");
}

#[test]
fn losses_above_the_recovery_point_start_the_next_recovery() {
    // 10 is sent in the recovery of 0, whose end is 10, and found lost in it. As in Linux the window comes down again
    // with the ACK that ends the recovery, though that ACK reports nothing new.
    let mut tcp = Script::open(&flow(linux()), ms(100));
    tcp.sack(ms(200), 0, &[(1, 4)]);
    tcp.sack(ms(201), 0, &[(1, 10)]);
    tcp.sack(ms(301), 0, &[(11, 12), (1, 10)]);
    assert_eq!((tcp.sender.cwnd(), tcp.sender.ssthresh()), (5.0, 5.0));
    tcp.clear().ack(ms(302), 10);
    assert!(tcp.text().contains("302 ! recovery"), "{}", tcp.text());
    assert_eq!(tcp.sender.ssthresh(), 2.0);
}

#[test]
fn an_ack_with_sacks_gives_the_rtt_of_sacked_segments() {
    // The ACK of 1 was held back, and goes out with the SACK of 3: 180 ms for 1, 80 ms for 3, so a reordering window
    // of 20 ms (as in Linux, `tcp_clean_rtx_queue`). Section 6.2, step 2: both are heard, and 1 last.
    let mut tcp = Script::open(&window_of(2), ms(100));
    tcp.ack(ms(200), 1).clear();
    assert_reads(
        &tcp.sack(ms(280), 2, &[(3, 4)]).wait(ms(404)).sent(),
        "280 > data 4..8
         400 ! recovery        # 200 + 180 + 20
         400 > data 2 again",
    );
}

#[test]
fn an_ack_without_rtt_leaves_overtaken_segments_to_the_timer() {
    // As in a_coarse_clock_leaves_the_timer_time_for_the_third_sack, but the ACK at 230 ms repeats the one at 200 ms.
    let mut tcp = window_of(4);
    tcp.tcp.timer_tick = ms(10);
    let mut tcp = Script::open(&tcp, ms(100));
    tcp.sack(ms(200), 0, &[(1, 2)]).clear();
    assert_reads(
        &tcp.sack(ms(230), 0, &[(1, 2)]).wait(ms(299)).sent(),
        "240 ! recovery
         240 > data 0 again",
    );
}
