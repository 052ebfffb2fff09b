//! ECN feedback of the receiver: RFC 3168 with delayed ACKs, RFC 8257 section 3.2, RFC 9768.

use ackclock_plan::{DelayedAck, EcnMode, TcpPlan};
use ackclock_sim::packet::Kind;

use super::ecn::{acks, classic, conversation, count, with};
use crate::kit::{data, flow, linux, ms, nth, sack_tcp, Script};

// ---- RFC 3168: the receiver's delayed ACKs ----

#[test]
fn a_delayed_ack_echoes_a_mark_on_either_segment() {
    for marked in [2, 3] {
        let tcp = TcpPlan {
            delayed_ack: DelayedAck::On,
            ..with(EcnMode::Classic, &sack_tcp())
        };
        let mut tcp = conversation(tcp).marking([data(marked)]);
        let acks = acks(&tcp.run(ms(210)).text());
        assert_eq!(acks, ["2", "4 ece", "6 ece", "8 ece", "10 ece"]);
    }
}

#[test]
fn quick_acks_are_sent_for_a_first_mark_the_next_segment_and_cwr() {
    // 16 ACKs are quick, then every second segment is acknowledged: 18, 20, 22, …
    let tcp = TcpPlan {
        delayed_ack: DelayedAck::Quick,
        ..classic()
    };
    let mut tcp = conversation(tcp).marking([data(22)]);
    let text = tcp.run(ms(520)).text();
    let acks = acks(&text);
    let from = acks.iter().position(|ack| ack == "22").expect("a pair's");
    assert_eq!(
        acks[from + 1..from + 5],
        ["23 ece", "24 ece", "26 ece", "28 ece"]
    );
    // CWR is on the first segment of a pair, or its ACK would come immediately anyway.
    let cwr = text.lines().find(|line| line.contains("cwr")).expect("one");
    let number: u64 = cwr
        .split(' ')
        .nth(3)
        .and_then(|range| range.split("..").next())
        .and_then(|number| number.parse().ok())
        .expect("a number");
    let answer = (number + 1).to_string();
    assert!(acks.contains(&answer), "no {answer} in {acks:?}");
    assert_eq!(number % 2, 0, "{cwr}");
}

// ---- RFC 8257 section 3.2 ----

fn dctcp(delayed_ack: DelayedAck) -> TcpPlan {
    TcpPlan {
        delayed_ack,
        ..with(EcnMode::Dctcp, &linux())
    }
}

#[test]
fn a_ce_state_change_is_acknowledged_immediately_and_earlier_segments_separately() {
    let mut tcp = conversation(dctcp(DelayedAck::On)).marking([3, 4].map(data));
    assert_eq!(
        acks(&tcp.run(ms(210)).text()),
        [
            "2",     // 0 and 1
            "3",     // 2 had waited: the state before
            "4 ece", // 3 immediately
            "5 ece", // 4 had waited
            "6",     // 5 immediately
            "8",     // 6 and 7
            "10",
        ]
    );
}

#[test]
fn a_ce_state_change_after_an_ack_sends_one_ack() {
    let mut tcp = conversation(dctcp(DelayedAck::On)).marking([2, 3, 4].map(data));
    assert_eq!(
        acks(&tcp.run(ms(210)).text()),
        ["2", "3 ece", "5 ece", "6", "8", "10"]
    );
}

#[test]
fn the_echo_counts_marks_exactly() {
    // What the sender adds up: the segments that each ACK with ECE delivers.
    let patterns: [&[u64]; 5] = [
        &[0],
        &[1, 3, 5],
        &[2, 3],
        &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
        &[4, 9],
    ];
    for delayed_ack in [DelayedAck::Off, DelayedAck::On, DelayedAck::Quick] {
        for pattern in patterns {
            let marks = pattern.iter().map(|&number| data(number));
            let mut tcp = conversation(dctcp(delayed_ack)).marking(marks);
            let mut before = 0;
            let mut marked = 0;
            for ack in acks(&tcp.run(ms(250)).text()) {
                let (number, ece) = ack.split_once(' ').unwrap_or((&ack, ""));
                let number: u64 = number.parse().expect("a number");
                marked += u64::from(ece == "ece") * (number - before);
                before = number;
            }
            assert_eq!(before, 10);
            assert_eq!(marked, pattern.len() as u64, "{delayed_ack:?}, {pattern:?}");
        }
    }
}

#[test]
fn every_packet_of_dctcp_is_ecn_capable_and_cwr_is_set_as_ever() {
    // As Linux does it; section 3.3 for CWR. The receiver's echo does not heed CWR.
    let mut tcp = conversation(dctcp(DelayedAck::Off))
        .marking([data(3)])
        .losing([data(8)]);
    let text = tcp.run(ms(320)).text();
    assert!(text.starts_with("0 > syn ect\n"), "{text}");
    assert!(text.contains("> ack ect\n"), "{text}");
    assert!(text.contains("> data 8 again ect\n"), "{text}");
    assert_eq!(count(&text, "cwr"), 1, "{text}");
    assert_eq!(count(&text, "ece"), 1, "{text}");
}

// ---- RFC 9768 ----

#[test]
fn marks_are_counted_and_reported_on_every_ack() {
    let mut tcp = conversation(with(EcnMode::Accurate, &linux())).marking([2, 3, 7].map(data));
    let text = tcp.run(ms(209)).text();
    assert_eq!(
        acks(&text),
        [
            "1",
            "2",
            "3 marks 1",
            "4 marks 2",
            "5 marks 2",
            "6 marks 2",
            "7 marks 2",
            "8 marks 3",
            "9 marks 3",
            "10 marks 3"
        ]
    );
    assert_eq!(count(&text, "mark_reaction"), 1, "{text}");
    assert_eq!(count(&text, "cwr"), 0, "{text}");
}

#[test]
fn a_count_survives_the_loss_of_acks() {
    // Those of 2 and 3 are lost; the next one tells of both.
    let mut tcp = conversation(with(EcnMode::Accurate, &linux()))
        .marking([2, 3].map(data))
        .losing([nth(Kind::Ack, 3).times(2)]);
    let text = tcp.run(ms(209)).text();
    assert!(
        text.contains("204 < ack 5 marks 2\n204 ! mark_reaction\n"),
        "{text}"
    );
}

#[test]
fn a_repeated_count_triggers_no_reaction() {
    let mut tcp = conversation(with(EcnMode::Accurate, &linux())).marking([data(3)]);
    let text = tcp.run(ms(1000)).text();
    assert_eq!(count(&text, "mark_reaction"), 1, "{text}");
}

#[test]
fn a_first_mark_is_reported_immediately() {
    // Section 3.2.2.5.1: a change-triggered ACK.
    let tcp = TcpPlan {
        delayed_ack: DelayedAck::On,
        ..with(EcnMode::Accurate, &linux())
    };
    let mut tcp = conversation(tcp).marking([2, 3, 4].map(data));
    assert_eq!(
        acks(&tcp.run(ms(210)).text()),
        ["2", "3 marks 1", "5 marks 3", "7 marks 3", "9 marks 3"]
    );
}

#[test]
fn an_overtaken_count_is_not_read() {
    let mut tcp = Script::open(&flow(with(EcnMode::Accurate, &linux())), ms(100));
    tcp.ack_marked(ms(200), 5, 3);
    assert_eq!(tcp.sender.ssthresh(), 5.0);
    tcp.ack_marked(ms(201), 3, 1);
    // Beyond all that was outstanding at the reaction: the count is the one known.
    tcp.ack_marked(ms(300), 10, 3).ack_marked(ms(301), 11, 3);
    assert_eq!(tcp.sender.ssthresh(), 5.0);
    tcp.ack_marked(ms(302), 12, 4);
    assert!(tcp.sender.ssthresh() < 5.0);
}

#[test]
fn the_count_wraps() {
    let mut tcp = Script::open(&flow(with(EcnMode::Accurate, &linux())), ms(100));
    tcp.ack_marked(ms(200), 1, 127);
    let first = tcp.sender.ssthresh();
    tcp.ack(ms(300), 10).ack_marked(ms(301), 11, 127);
    let text = tcp.ack_marked(ms(302), 13, 0).text();
    assert!(first < 100.0);
    assert_eq!(count(&text, "mark_reaction"), 2, "127 and one more: {text}");
}

#[test]
fn l4s_packets_carry_ect1() {
    let mut tcp = conversation(with(EcnMode::L4s, &linux())).marking([data(3)]);
    let text = tcp.run(ms(203)).text();
    assert!(text.contains("100 > data 0..10 ect1\n"), "{text}");
    assert!(
        text.contains("203 < ack 4 marks 1\n203 ! mark_reaction\n"),
        "{text}"
    );
}
