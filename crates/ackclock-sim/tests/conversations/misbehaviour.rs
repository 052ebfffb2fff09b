//! Misbehaving receivers, and the defences of senders (S. Savage et al., CCR 29(5), 1999).

use ackclock_plan::{EcnMode, FlowPlan, Misbehaviour, TcpPlan};

use crate::kit::{data, flow, linux, ms, new_reno, sack_tcp, transfer, Conversation, MSS_BYTES};

const HONEST: Misbehaviour = Misbehaviour {
    ack_division: 1,
    duplicate_acks: 0,
    optimistic_acks: 0,
    conceals_losses: false,
    conceals_marks: false,
};

fn to(misbehaviour: Misbehaviour, flow: FlowPlan) -> FlowPlan {
    FlowPlan {
        misbehaviour: Some(misbehaviour),
        ..flow
    }
}

fn dividing(ack_division: u32) -> Misbehaviour {
    Misbehaviour {
        ack_division,
        ..HONEST
    }
}

fn counting(byte_counting: bool) -> TcpPlan {
    TcpPlan {
        initial_window: 1,
        byte_counting,
        ..sack_tcp()
    }
}

/// Segments sent in each of the first three rounds of 100 ms, from an initial window of one.
fn rounds(flow: &FlowPlan) -> [u64; 3] {
    let mut tcp = Conversation::new(flow, ms(50));
    let sent = [190, 290, 390].map(|until| tcp.run(ms(until)).sent_segments());
    [sent[0], sent[1] - sent[0], sent[2] - sent[1]]
}

#[test]
fn an_honest_receiver_is_one_without_misbehaviour() {
    let mut plain = Conversation::new(&flow(linux()), ms(50)).losing([data(30)]);
    let mut honest = Conversation::new(&to(HONEST, flow(linux())), ms(50)).losing([data(30)]);
    assert_eq!(plain.run(ms(900)).text(), honest.run(ms(900)).text());
}

/// Savage et al., ACK division: with m ACKs for each segment, slow start multiplies the window by 1 + m.
#[test]
fn ack_division_multiplies_the_window_of_a_sender_that_counts_acks() {
    assert_eq!(rounds(&flow(counting(false))), [1, 2, 4]);
    assert_eq!(rounds(&to(dividing(4), flow(counting(false)))), [1, 5, 25]);
    assert_eq!(rounds(&to(dividing(8), flow(counting(false)))), [1, 9, 81]);
}

/// RFC 3465 section 2.2: the window grows by the bytes that an ACK acknowledges for the first time.
#[test]
fn ack_division_gains_nothing_from_a_sender_that_counts_bytes() {
    for (tcp, lost) in [(linux(), 30), (sack_tcp(), 30), (new_reno(), u64::MAX)] {
        let run = |flow: &FlowPlan| {
            let mut tcp = Conversation::new(flow, ms(50)).losing([data(lost)]);
            tcp.run(ms(600)).sent()
        };
        let flow = flow(tcp);
        assert_eq!(run(&flow), run(&to(dividing(8), flow.clone())));
    }
}

/// Savage et al., DupACK spoofing: a sender without SACK takes copies for a loss, and then each for a segment that has
/// left. With SACK a duplicate without a block is neither.
#[test]
fn spoofed_duplicates_release_segments_of_a_sender_without_sack_only() {
    let outcome = |tcp: TcpPlan, duplicate_acks| {
        let spoofing = Misbehaviour {
            duplicate_acks,
            ..HONEST
        };
        let mut tcp = Conversation::new(&to(spoofing, flow(tcp)), ms(50));
        let sent = tcp.run(ms(250)).sent_segments();
        (tcp.sender.counters.recoveries, sent)
    };
    let ((_, honest), (recoveries, spoofed)) = (outcome(new_reno(), 0), outcome(new_reno(), 4));
    assert!(recoveries > 0 && spoofed > honest, "{spoofed} and {honest}");
    for tcp in [sack_tcp(), linux()] {
        assert_eq!(outcome(tcp.clone(), 4), outcome(tcp, 0));
    }
}

#[test]
fn an_optimistic_receiver_acknowledges_what_has_not_arrived() {
    let optimistic = Misbehaviour {
        optimistic_acks: 5,
        ..HONEST
    };
    let mut tcp = Conversation::new(&to(optimistic, flow(linux())), ms(50)).spaced(ms(1));
    let text = tcp.run(ms(206)).text();
    // One segment further ahead with each, five at most: the first ACK is of two, the fifth of ten, the sixth of eleven.
    for line in ["200 < ack 2", "204 < ack 10", "205 < ack 11"] {
        assert!(
            text.lines().any(|found| found.trim() == line),
            "{line}: {text}"
        );
    }
}

#[test]
fn concealed_losses_are_neither_retransmitted_nor_delivered() {
    for optimistic_acks in [0, 8] {
        let concealing = Misbehaviour {
            optimistic_acks,
            conceals_losses: true,
            ..HONEST
        };
        let flow = to(concealing, transfer(linux(), 100));
        let lost = [data(20), data(21), data(50)];
        let mut tcp = Conversation::new(&flow, ms(50)).spaced(ms(1)).losing(lost);
        tcp.run(ms(5000));
        assert!(tcp.sender.is_done() && tcp.receiver.is_closed());
        assert_eq!(tcp.sent_segments(), 101, "{}", tcp.text());
        assert_eq!(tcp.receiver.delivered_bytes(), 97 * u64::from(MSS_BYTES));
        assert_eq!(tcp.sender.counters.recoveries, 0);
    }
}

/// RFC 3168 section 7: without a nonce a sender cannot know. An honest receiver makes it react once.
#[test]
fn concealed_marks_cause_no_reaction() {
    for mode in [
        EcnMode::Classic,
        EcnMode::Dctcp,
        EcnMode::Accurate,
        EcnMode::L4s,
    ] {
        let reacts = |conceals_marks| {
            let misbehaviour = Misbehaviour {
                conceals_marks,
                ..HONEST
            };
            let tcp = TcpPlan {
                ecn: mode,
                ..linux()
            };
            let mut tcp = Conversation::new(&to(misbehaviour, flow(tcp)), ms(50));
            tcp = tcp.marking([data(12)]);
            tcp.run(ms(500)).sent().contains("mark")
        };
        assert_eq!([false, true].map(reacts), [true, false], "{mode:?}");
    }
}
