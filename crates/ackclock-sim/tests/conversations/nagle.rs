//! Messages of small writes: Nagle's algorithm, and the delayed ACK that it waits for.

use ackclock_core::Time;
use ackclock_plan::{DelayedAck, FlowPlan, TcpPlan};
use ackclock_traffic::{SlowReader, Writes};

use crate::kit::{assert_reads, data, flow, linux, ms, Conversation};

/// Two writes of 100 bytes each 200 ms.
const PAIRS: Writes = Writes {
    size_bytes: 100,
    count: 2,
    every: ms(200),
    nodelay: false,
};

fn delaying(delayed_ack: DelayedAck) -> TcpPlan {
    TcpPlan {
        delayed_ack,
        receive_window_bytes: Some(64_000),
        ..linux()
    }
}

fn writing(writes: Writes, tcp: TcpPlan) -> FlowPlan {
    FlowPlan {
        writes: Some(writes),
        ..flow(tcp)
    }
}

/// The end of a transcript, from `from` on.
fn since(conversation: &mut Conversation, from: u64, until: Time) -> String {
    let text = conversation.run(until).text();
    let at = |line: &&str| {
        let time = line.split_whitespace().next();
        time.and_then(|time| time.parse::<f64>().ok())
            .is_some_and(|time| time >= from as f64)
    };
    text.lines().filter(at).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_second_small_write_waits_for_the_delayed_ack() {
    let mut tcp = Conversation::new(&writing(PAIRS, delaying(DelayedAck::On)), ms(10));
    assert_reads(
        &tcp.run(ms(320)).text(),
        "  0 > syn
          20 < syn/ack
          20 > ack
          20 > data 0
          80 < ack 1      # 40 ms, and the round trip
          80 > data 1
         140 < ack 2
         220 > data 2
         280 < ack 3
         280 > data 3",
    );
    assert_eq!(tcp.sender.acknowledged_bytes(), 300);
}

#[test]
fn nodelay_sends_each_write_immediately() {
    let direct = Writes {
        nodelay: true,
        ..PAIRS
    };
    let mut tcp = Conversation::new(&writing(direct, delaying(DelayedAck::On)), ms(10));
    assert_reads(
        &tcp.run(ms(240)).text(),
        "  0 > syn
          20 < syn/ack
          20 > ack
          20 > data 0..2
          40 < ack 2
         220 > data 2..4
         240 < ack 4",
    );
}

#[test]
fn what_is_written_meanwhile_leaves_in_one_segment() {
    let steady = Writes {
        count: 1,
        every: ms(15),
        ..PAIRS
    };
    let flow = FlowPlan {
        size_bytes: Some(700),
        ..writing(steady, delaying(DelayedAck::On))
    };
    let mut tcp = Conversation::new(&flow, ms(10));
    assert_reads(
        &tcp.run(ms(200)).text(),
        "  0 > syn
          20 < syn/ack
          20 > ack
          20 > data 0
          80 < ack 1
          80 > data 1     # the writes at 35, 50, 65 and 80 ms
         110 > data 2     # the last one: closing ends the wait
         110 > fin
         130 < ack 3
         130 ! finished
         130 < fin/ack 4
         130 > ack",
    );
    assert_eq!(tcp.receiver.delivered_bytes(), 700);
}

/// Linux: 16 quick ACKs, then those of a one-way connection wait only while its application leaves data unread.
#[test]
fn quick_delayed_acks_wait_for_a_reader_of_messages() {
    let pairs = Writes {
        every: ms(100),
        ..PAIRS
    };
    let flow = writing(pairs, delaying(DelayedAck::Quick));
    let mut prompt = Conversation::new(&flow, ms(10));
    let direct = "2020 > data 40
         2040 < ack 41
         2040 > data 41
         2060 < ack 42";
    assert_reads(&since(&mut prompt, 2020, ms(2060)), direct);
    let reader = SlowReader {
        rate: None,
        chunk_bytes: 200,
        pause: None,
    };
    let flow = FlowPlan {
        slow_reader: Some(reader),
        ..flow
    };
    let mut by_message = Conversation::new(&flow, ms(10));
    assert_reads(
        &since(&mut by_message, 2020, ms(2100)),
        "2020 > data 40
         2080 < ack 41    # 40 ms
         2080 > data 41
         2100 < ack 42    # the message is read at once",
    );
}

#[test]
fn a_lost_small_segment_is_repeated_at_its_length() {
    let direct = Writes {
        count: 5,
        nodelay: true,
        ..PAIRS
    };
    let flow = FlowPlan {
        size_bytes: Some(500),
        ..writing(direct, delaying(DelayedAck::Off))
    };
    let mut tcp = Conversation::new(&flow, ms(10)).losing([data(1)]);
    tcp.run(ms(1000));
    assert!(tcp.sender.counters.retransmissions > 0 && !tcp.sender.is_active());
    let ends = (
        tcp.sender.acknowledged_bytes(),
        tcp.receiver.delivered_bytes(),
    );
    assert_eq!(ends, (500, 500));
}
