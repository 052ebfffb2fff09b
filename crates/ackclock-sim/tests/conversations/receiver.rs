//! When a receiver acknowledges, and what its ACKs say: RFC 5681 section 4.2, RFC 2018, RFC 2883, RFC 7323.

use std::iter;

use ackclock_core::Time;
use ackclock_plan::{DelayedAck, TcpPlan};
use ackclock_sim::packet::{Kind, Packet};
use ackclock_sim::receiver::{Receiver, Reply};

use crate::kit::{assert_reads, flow, linux, ms, packet, transfer, Conversation};

/// A receiver that tells what it answers, as text.
struct Ear {
    receiver: Receiver,
}

impl Ear {
    fn of(tcp: TcpPlan) -> Ear {
        let mut receiver = Receiver::new(&flow(tcp));
        receiver.on_packet(&packet(Kind::Syn), Time::ZERO);
        receiver.on_packet(&packet(Kind::LastAck), Time::ZERO);
        Ear { receiver }
    }

    fn reply_to(&mut self, at: Time, sequence: u64) -> Option<Reply> {
        let segment = Packet {
            sequence,
            timestamp: at,
            ..packet(Kind::Data)
        };
        self.receiver.on_packet(&segment, at)
    }

    /// The answer to a segment that arrives at `at`; `-` for none.
    fn receives(&mut self, at: Time, sequence: u64) -> String {
        self.reply_to(at, sequence)
            .map_or_else(|| "-".to_owned(), |reply| text(&reply))
    }

    /// The answers to segments that arrive one after the other, a line each.
    fn receives_all(&mut self, sequences: &[u64]) -> String {
        let answers: Vec<String> = sequences
            .iter()
            .map(|&sequence| format!("{sequence}: {}", self.receives(ms(1), sequence)))
            .collect();
        answers.join("\n")
    }
}

fn text(reply: &Reply) -> String {
    let dsack = if reply.flags.has_dsack() {
        " dsack"
    } else {
        ""
    };
    let blocks = reply.blocks.unwrap_or_default();
    let ranges = blocks.as_slice().iter();
    let words: Vec<String> = iter::once(format!("ack {}{dsack}", reply.ack))
        .chain(ranges.map(|(start, end)| format!("{start}-{end}")))
        .collect();
    words.join(" ")
}

fn with(delayed_ack: DelayedAck) -> Ear {
    Ear::of(TcpPlan {
        delayed_ack,
        ..linux()
    })
}

fn with_window(receive_window_bytes: Option<u64>) -> Ear {
    Ear::of(TcpPlan {
        delayed_ack: DelayedAck::Quick,
        receive_window_bytes,
        ..linux()
    })
}

// ---- when ----

#[test]
fn without_delay_each_segment_is_acknowledged() {
    assert_reads(
        &with(DelayedAck::Off).receives_all(&[0, 1, 2]),
        "0: ack 1
         1: ack 2
         2: ack 3",
    );
}

#[test]
fn with_delay_each_second_one_is() {
    assert_reads(
        &with(DelayedAck::On).receives_all(&[0, 1, 2, 3, 4]),
        "0: -
         1: ack 2
         2: -
         3: ack 4
         4: -",
    );
}

#[test]
fn a_lone_segment_is_acknowledged_when_the_timer_expires() {
    let mut ear = with(DelayedAck::On);
    assert_eq!(ear.receives(ms(10), 0), "-");
    assert_eq!(ear.receiver.wake(), ms(50));
    let reply = ear.receiver.on_timer(ms(50));
    assert_eq!(reply.map(|reply| text(&reply)), Some("ack 1".to_owned()));
    assert!(ear.receiver.wake().is_never());
}

#[test]
fn the_second_segment_stops_the_timer() {
    let mut ear = with(DelayedAck::On);
    ear.receives(ms(10), 0);
    assert_eq!(ear.receives(ms(30), 1), "ack 2");
    assert!(ear.receiver.wake().is_never());
}

#[test]
fn the_timer_runs_from_the_first_segment_not_acknowledged() {
    let mut ear = with(DelayedAck::On);
    ear.receives(ms(0), 0);
    ear.receives(ms(5), 1);
    ear.receives(ms(30), 2);
    assert_eq!(ear.receiver.wake(), ms(70));
}

#[test]
fn quick_acks_are_not_delayed_sixteen_times() {
    let mut ear = with(DelayedAck::Quick);
    let segments: Vec<u64> = (0..20).collect();
    let answers = ear.receives_all(&segments);
    let silent: Vec<&str> = answers.lines().filter(|line| line.ends_with('-')).collect();
    assert_eq!(silent, ["16: -", "18: -"]);
}

#[test]
fn a_segment_that_opens_the_receive_window_is_acknowledged_by_itself() {
    // Each opens it by two segments: 65 535 B and 20 segments take ten, and the sixteen quick ACKs come after them.
    let mut ear = with_window(Some(65_535 + 20 * 1000));
    let segments: Vec<u64> = (0..30).collect();
    let answers = ear.receives_all(&segments);
    let silent: Vec<&str> = answers.lines().filter(|line| line.ends_with('-')).collect();
    assert_eq!(silent, ["26: -", "28: -"]);
}

#[test]
fn a_buffer_without_limit_grows_with_the_best_round_trip() {
    let mut ear = with_window(None);
    let mut silent_in = |round: u64, segments: std::ops::Range<u64>| {
        let answers: Vec<String> = segments
            .map(|segment| ear.receives(ms(100 * round), segment))
            .collect();
        answers.iter().filter(|answer| *answer == "-").count()
    };
    // The first 16 are quick. A round trip of as many as there were before makes no room; its last begins another.
    assert_eq!(silent_in(1, 0..10), 0);
    assert_eq!(silent_in(2, 10..20), 2);
    assert_eq!(silent_in(3, 20..60), 20);
    // Its forty are more than any before: with the first of the next there is room for all that is still to come.
    assert_eq!(silent_in(4, 60..100), 1);
}

#[test]
fn a_delay_in_jiffies_ends_with_a_jiffy() {
    // Timers that tick every 10 ms: four ticks for 40 ms, and one lest it be early.
    let mut ear = Ear::of(TcpPlan {
        delayed_ack: DelayedAck::On,
        timer_tick: ms(10),
        ..linux()
    });
    ear.receives(ms(17), 0);
    assert_eq!(ear.receiver.wake(), ms(57));
    assert!(ear.receiver.on_timer(ms(57)).is_none());
    assert_eq!(ear.receiver.wake(), ms(60));
    assert_eq!(
        ear.receiver.on_timer(ms(60)).map(|reply| text(&reply)),
        Some("ack 1".to_owned())
    );
}

#[test]
fn a_duplicate_restarts_quick_acks() {
    let mut ear = with(DelayedAck::Quick);
    let segments: Vec<u64> = (0..17).collect();
    ear.receives_all(&segments);
    assert_reads(
        &ear.receives_all(&[3, 17, 18, 19]),
        "3: ack 17 dsack 3-4
         17: ack 18
         18: ack 19
         19: ack 20",
    );
}

#[test]
fn an_idle_time_restarts_quick_acks() {
    let mut ear = with_window(Some(65_535));
    for segment in 0..18 {
        ear.receives(ms(100), segment);
    }
    assert_eq!(ear.receives(ms(299), 18), "-", "less than 200 ms");
    assert_eq!(ear.receives(ms(299), 19), "ack 20");
    assert_eq!(ear.receives(ms(500), 20), "ack 21", "more than 200 ms");
    assert_eq!(ear.receives(ms(501), 21), "ack 22");
    assert_eq!(ear.receives(ms(502), 22), "-");
}

#[test]
fn disorder_is_reported_immediately() {
    // RFC 5681 section 4.2: out of order, and what fills a hole in part or whole.
    assert_reads(
        &with(DelayedAck::On).receives_all(&[0, 2, 4, 1, 3, 5]),
        "0: -
         2: ack 1 2-3
         4: ack 1 4-5 2-3
         1: ack 3 4-5
         3: ack 5
         5: -",
    );
}

#[test]
fn a_fin_acknowledges_the_last_segment_without_delay() {
    let tcp = TcpPlan {
        delayed_ack: DelayedAck::On,
        ..linux()
    };
    let mut tcp = Conversation::new(&transfer(tcp, 3), ms(50));
    assert_reads(
        &tcp.run(ms(300)).text(),
        "  0 > syn
         100 < syn/ack
         100 > ack
         100 > data 0..3
         100 > fin
         200 < ack 2
         200 < fin/ack 4
         200 ! finished
         200 > ack",
    );
}

// ---- what ----

#[test]
fn rfc_2018_case_1_nothing_is_missing_before_the_end() {
    assert_reads(
        &with(DelayedAck::Off).receives_all(&[0, 1, 2, 3]),
        "0: ack 1
         1: ack 2
         2: ack 3
         3: ack 4",
    );
}

#[test]
fn rfc_2018_case_2_the_first_of_eight_is_missing() {
    assert_reads(
        &with(DelayedAck::Off).receives_all(&[1, 2, 3, 4, 5, 6, 7]),
        "1: ack 0 1-2
         2: ack 0 1-3
         3: ack 0 1-4
         4: ack 0 1-5
         5: ack 0 1-6
         6: ack 0 1-7
         7: ack 0 1-8",
    );
}

#[test]
fn rfc_2018_case_3_each_second_of_eight_is_missing() {
    // The latest block comes first; then the fourth segment fills a hole, then the second.
    assert_reads(
        &with(DelayedAck::Off).receives_all(&[0, 2, 4, 6, 3, 1]),
        "0: ack 1
         2: ack 1 2-3
         4: ack 1 4-5 2-3
         6: ack 1 6-7 4-5 2-3
         3: ack 1 2-5 6-7
         1: ack 5 6-7",
    );
}

#[test]
fn three_blocks_fit_with_timestamps_and_four_without() {
    assert_reads(
        &with(DelayedAck::Off).receives_all(&[1, 3, 5, 7]),
        "1: ack 0 1-2
         3: ack 0 3-4 1-2
         5: ack 0 5-6 3-4 1-2
         7: ack 0 7-8 5-6 3-4",
    );
    let mut without = Ear::of(TcpPlan {
        timestamps: false,
        ..linux()
    });
    assert_reads(
        &without.receives_all(&[1, 3, 5, 7, 9]),
        "1: ack 0 1-2
         3: ack 0 3-4 1-2
         5: ack 0 5-6 3-4 1-2
         7: ack 0 7-8 5-6 3-4 1-2
         9: ack 0 9-10 7-8 5-6 3-4",
    );
}

#[test]
fn a_block_extended_downwards_or_joined_is_reported_first() {
    assert_reads(
        &with(DelayedAck::Off).receives_all(&[2, 6, 10, 5, 9, 1]),
        "2: ack 0 2-3
         6: ack 0 6-7 2-3
         10: ack 0 10-11 6-7 2-3
         5: ack 0 5-7 10-11 2-3
         9: ack 0 9-11 5-7 2-3
         1: ack 0 1-3 9-11 5-7",
    );
}

#[test]
fn a_duplicate_is_reported_first_and_takes_the_place_of_a_block() {
    // RFC 2883 section 4: then comes the range that it is in, if it is beyond the hole. The 40 bytes of
    // options hold three blocks besides timestamps.
    assert_reads(
        &with(DelayedAck::Off).receives_all(&[0, 1, 3, 5, 7, 1, 5]),
        "0: ack 1
         1: ack 2
         3: ack 2 3-4
         5: ack 2 5-6 3-4
         7: ack 2 7-8 5-6 3-4
         1: ack 2 dsack 1-2 7-8 5-6
         5: ack 2 dsack 5-6 5-6 7-8",
    );
}

#[test]
fn disabled_sack_sends_neither_blocks_nor_dsacks() {
    let mut ear = Ear::of(TcpPlan {
        sack: false,
        ..linux()
    });
    assert_reads(
        &ear.receives_all(&[0, 2, 2, 0, 1]),
        "0: ack 1
         2: ack 1
         2: ack 1
         0: ack 1
         1: ack 3",
    );
}

#[test]
fn the_echo_is_that_of_the_first_segment_not_acknowledged() {
    // RFC 7323 section 4.3: delayed ACKs echo the earliest.
    let mut ear = with(DelayedAck::On);
    ear.reply_to(ms(10), 0);
    let echo = |reply: Option<Reply>| reply.map(|reply| reply.echo);
    assert_eq!(echo(ear.reply_to(ms(12), 1)), Some(ms(10)));
    // Beyond a hole: the last one in order. Filling it: the segment that does.
    assert_eq!(echo(ear.reply_to(ms(20), 3)), Some(ms(10)));
    assert_eq!(echo(ear.reply_to(ms(30), 2)), Some(ms(30)));
}

#[test]
fn delivered_bytes_are_those_in_order() {
    let mut ear = with(DelayedAck::Off);
    ear.receives_all(&[0, 2, 3]);
    assert_eq!(ear.receiver.delivered_bytes(), 1000);
    ear.receives_all(&[1]);
    assert_eq!(ear.receiver.delivered_bytes(), 4000);
    assert_eq!(ear.receiver.duplicates, 0);
}
