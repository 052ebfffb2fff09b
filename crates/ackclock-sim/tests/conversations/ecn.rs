//! Explicit congestion notification as RFC 3168 has it, packet by packet.
//!
//! Over the spaced wire the first flight's ACKs come at 200, 201, … ms, each releasing two segments, so that
//! the window is 13 when segment 3's comes.

use ackclock_plan::{EcnMode, TcpPlan};

use crate::kit::{assert_reads, data, flow, linux, ms, new_reno, Conversation, Script};

/// A stack with this feedback of marks.
pub fn with(ecn: EcnMode, tcp: &TcpPlan) -> TcpPlan {
    TcpPlan { ecn, ..tcp.clone() }
}

pub fn classic() -> TcpPlan {
    with(EcnMode::Classic, &linux())
}

pub fn conversation(tcp: TcpPlan) -> Conversation {
    Conversation::new(&flow(tcp), ms(50)).spaced(ms(1))
}

/// Lines of a transcript that contain `what`.
pub fn count(text: &str, what: &str) -> usize {
    text.lines().filter(|line| line.contains(what)).count()
}

/// The ACKs of a transcript: time, next segment, what they echo.
pub fn acks(text: &str) -> Vec<String> {
    let of = |line: &str| line.split_once(" < ack ").map(|(_, ack)| ack.to_owned());
    text.lines().filter_map(of).collect()
}

// ---- RFC 3168: the sender ----

#[test]
fn only_new_data_are_ecn_capable_and_cwr_follows_any_reduction() {
    // Sections 6.1.1, 6.1.4, 6.1.5: not SYNs, ACKs, retransmissions. Section 6.1.2: CWR on the first new segment
    // after a reduction "for any reason".
    let mut tcp = conversation(classic()).losing([data(0)]);
    assert_reads(
        &tcp.run(ms(303)).sent(),
        "  0 > syn
         100 > ack
         100 > data 0..10 ect   # 0 is lost
         201 > data 10 ect
         202 > data 11 ect
         203 ! recovery
         203 > data 0 again
         205 > data 12 ect cwr  # three delivered: ⌈3 × 5/10⌉ − 1
         207 > data 13 ect
         301 > data 14 ect
         302 > data 15 ect
         303 > data 16 ect",
    );
}

#[test]
fn a_mark_is_echoed_until_cwr_and_halves_the_window() {
    let mut tcp = conversation(classic()).marking([data(3)]);
    assert_reads(
        &tcp.run(ms(306)).text(),
        "  0 > syn
         100 < syn/ack
         100 > ack
         100 > data 0..10 ect   # 3 is marked
         200 < ack 1
         200 > data 10..12 ect
         201 < ack 2
         201 > data 12..14 ect
         202 < ack 3
         202 > data 14..16 ect
         203 < ack 4 ece
         203 ! mark_reaction    # from 13 to 6, one segment for 13/6 delivered
         203 > data 16 ect cwr  # ⌈6/13⌉
         204 < ack 5 ece
         205 < ack 6 ece
         205 > data 17 ect      # ⌈18/13⌉ − 1
         206 < ack 7 ece
         207 < ack 8 ece
         207 > data 18 ect
         208 < ack 9 ece
         209 < ack 10 ece
         209 > data 19 ect
         300 < ack 11 ece
         301 < ack 12 ece
         301 > data 20 ect
         302 < ack 13 ece
         303 < ack 14 ece
         303 > data 21 ect
         304 < ack 15 ece
         305 < ack 16 ece       # all that was outstanding at the reaction; CWR may still be on its way
         306 < ack 17           # the receiver has seen CWR: the end, and six are in flight
         306 > data 22 ect",
    );
    assert_eq!((tcp.sender.cwnd(), tcp.sender.ssthresh()), (6.0, 6.0));
    assert_eq!(tcp.sender.in_flight(), 6);
}

#[test]
fn the_window_does_not_grow_in_the_reaction_and_grows_after_it() {
    let mut tcp = conversation(classic()).marking([data(3)]);
    tcp.run(ms(306));
    assert_eq!(tcp.sender.cwnd(), 6.0);
    tcp.run(ms(700));
    assert!(tcp.sender.cwnd() > 6.0);
    assert_eq!(tcp.sender.ssthresh(), 6.0);
}

#[test]
fn further_marks_of_the_same_round_trip_change_nothing() {
    let once = conversation(classic())
        .marking([data(3)])
        .run(ms(1000))
        .text();
    let more = [3, 4, 7, 9, 15].map(data);
    let often = conversation(classic()).marking(more).run(ms(1000)).text();
    assert_reads(&often, &once);
}

#[test]
fn a_mark_on_the_cwr_segment_is_a_new_one() {
    // Section 6.1.3: CWR ends the echo of the marks before it, and this segment's own begins another.
    let mut tcp = conversation(classic()).marking([data(3), data(16)]);
    let text = tcp.run(ms(306)).text();
    assert!(
        text.contains("306 < ack 17 ece\n306 ! mark_reaction\n"),
        "{text}"
    );
    assert_eq!(tcp.sender.ssthresh(), 3.0);
    assert_eq!(count(&tcp.run(ms(1000)).sent(), "cwr"), 2);
}

#[test]
fn a_lost_cwr_leaves_the_echo_on_and_a_second_one_ends_it() {
    // Section 6.1.2 foresees a second reduction then.
    let mut tcp = conversation(classic())
        .marking([data(3)])
        .losing([data(16)]);
    let text = tcp.run(ms(1000)).text();
    assert_eq!(count(&text, "mark_reaction"), 2, "{text}");
    assert_eq!(count(&text, "cwr"), 2, "{text}");
    assert_eq!(tcp.sender.counters.recoveries, 1);
    let last = acks(&text).pop().expect("some");
    assert!(!last.contains("ece"), "{last}");
}

#[test]
fn a_loss_in_cwr_is_retransmitted_without_a_second_reduction() {
    let mut tcp = conversation(classic()).marking([data(3)]).losing([data(8)]);
    let text = tcp.run(ms(1000)).text();
    assert_eq!(count(&text, "mark_reaction"), 1, "{text}");
    assert!(text.contains("> data 8 again\n"), "without ECT: {text}");
    assert_eq!(tcp.sender.counters.recoveries, 1);
    assert_eq!(tcp.sender.counters.timeouts, 0);
    assert_eq!(tcp.sender.ssthresh(), 6.0);
}

#[test]
fn a_mark_in_recovery_calls_for_nothing_while_it_lasts() {
    // Section 6.1.2: the window has come down already. As in Linux, an echo that is still on when recovery ends
    // begins another reaction: 12 says CWR and arrives after the repaired 0, whose ACK ends recovery.
    let mut tcp = conversation(classic()).losing([data(0)]).marking([data(5)]);
    tcp.run(ms(302));
    assert_eq!(count(&tcp.text(), "ece"), 7, "{}", tcp.text());
    assert_eq!(count(&tcp.text(), "mark_reaction"), 0, "{}", tcp.text());
    assert_eq!(tcp.sender.ssthresh(), 5.0);
    let text = tcp.run(ms(303)).text();
    assert!(
        text.contains("303 < ack 12 ece\n303 ! mark_reaction\n"),
        "{text}"
    );
}

#[test]
fn a_timeout_in_cwr_keeps_ssthresh_and_sends_cwr() {
    // What was outstanding at the reaction, the segment with CWR among it, is lost.
    let tcp = TcpPlan {
        tail_loss_probe: false,
        ..classic()
    };
    let mut tcp = conversation(tcp)
        .marking([data(3)])
        .losing((10..20).map(data));
    let text = tcp.run(ms(850)).text();
    assert_eq!(tcp.sender.counters.timeouts, 1, "{text}");
    assert_eq!(tcp.sender.ssthresh(), 6.0, "{text}");
    let sent = tcp.sent();
    let after = sent.split("timeout").nth(1).expect("one timeout");
    assert_eq!(count(after, "cwr"), 1, "{text}");
    assert!(!after.contains("again ect"), "{after}");
}

#[test]
fn a_timeout_sends_cwr_on_the_first_new_segment() {
    let tcp = TcpPlan {
        tail_loss_probe: false,
        frto: false,
        ..classic()
    };
    let mut tcp = Conversation::new(&flow(tcp), ms(50)).losing((0..10).map(data));
    assert_reads(
        &tcp.run(ms(700)).sent(),
        "  0 > syn
         100 > ack
         100 > data 0..10 ect
         400 ! timeout
         400 > data 0 again
         500 > data 1..3 again
         600 > data 3..7 again
         700 > data 7..10 again
         700 > data 10 ect cwr
         700 > data 11 ect",
    );
}

#[test]
fn without_prr_the_sender_pauses_until_the_pipe_has_drained() {
    let mut tcp = conversation(with(EcnMode::Classic, &new_reno())).marking([data(3)]);
    assert_reads(
        &tcp.run(ms(401)).sent(),
        "  0 > syn
         100 > ack
         100 > data 0..10 ect
         200 > data 10..12 ect
         201 > data 12..14 ect
         202 > data 14..16 ect
         203 ! mark_reaction    # 12 are in flight, 6 may be
         300 > data 16 ect cwr
         301 > data 17 ect
         302 > data 18 ect
         303 > data 19 ect
         304 > data 20 ect
         305 > data 21 ect      # the echo goes on until 16 arrives
         400 > data 22 ect
         401 > data 23 ect",
    );
    assert_eq!((tcp.sender.cwnd(), tcp.sender.ssthresh()), (6.0, 6.0));
}

#[test]
fn without_sack_three_duplicates_of_one_ack_start_recovery_in_the_reaction() {
    // RFC 5681 section 3.2: an advance begins the count anew, here as elsewhere.
    let mut tcp = Script::open(&flow(with(EcnMode::Classic, &new_reno())), ms(100));
    tcp.ack_marked(ms(200), 1, 1);
    tcp.ack_marked(ms(201), 1, 1).ack_marked(ms(202), 1, 1);
    tcp.ack_marked(ms(203), 2, 1);
    tcp.ack_marked(ms(204), 2, 1).ack_marked(ms(205), 2, 1);
    assert_eq!(tcp.sender.counters.recoveries, 0);
    tcp.ack_marked(ms(206), 2, 1);
    assert_eq!(tcp.sender.counters.recoveries, 1);
    assert_eq!(tcp.sender.ssthresh(), 5.0, "one reduction");
}

#[test]
fn an_overtaken_ack_triggers_no_reaction() {
    let mut tcp = Script::open(&flow(classic()), ms(100));
    tcp.ack(ms(200), 5).ack_marked(ms(201), 3, 1);
    assert_eq!(tcp.sender.ssthresh(), f64::INFINITY);
    tcp.ack_marked(ms(202), 6, 1);
    assert!(tcp.sender.ssthresh() < 100.0);
}

#[test]
fn no_mark_is_set_or_processed_without_ecn() {
    let mut tcp = conversation(linux()).marking((0..50).map(data));
    let text = tcp.run(ms(500)).text();
    assert_eq!(count(&text, "ec"), 0, "{text}");
}
