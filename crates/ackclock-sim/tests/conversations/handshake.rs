//! RFC 9293 section 3.5, RFC 6298 sections 2.1 and 5.7, RFC 6928: how a connection opens.

use ackclock_plan::TcpPlan;
use ackclock_sim::packet::Kind;

use crate::kit::{assert_reads, flow, linux, ms, new_reno, nth, Conversation, Loss};

fn conversation(tcp: TcpPlan, losses: impl IntoIterator<Item = Loss>) -> Conversation {
    Conversation::new(&flow(tcp), ms(50)).losing(losses)
}

#[test]
fn three_steps_and_the_initial_window() {
    let mut tcp = conversation(linux(), []);
    assert_reads(
        &tcp.run(ms(199)).text(),
        "  0 > syn
         100 < syn/ack
         100 > ack
         100 > data 0..10      # RFC 6928",
    );
    assert_eq!(tcp.sender.established, Some(ms(100)));
    assert_eq!(tcp.sender.srtt(), Some(ms(100)));
}

#[test]
fn a_lost_syn_is_repeated_after_a_second() {
    let mut tcp = conversation(linux(), [nth(Kind::Syn, 1)]);
    assert_reads(
        &tcp.run(ms(1199)).text(),
        "   0 > syn
         1000 > syn again
         1100 < syn/ack
         1100 > ack
         1100 > data 0..10     # one loss leaves the initial window as it is",
    );
    assert_eq!(tcp.sender.counters.syn_retransmissions, 1);
}

#[test]
fn the_wait_doubles_and_the_window_is_one_after_more_than_one_loss() {
    let mut tcp = conversation(linux(), [nth(Kind::Syn, 1).times(3)]);
    assert_reads(
        &tcp.run(ms(7199)).text(),
        "   0 > syn
         1000 > syn again
         3000 > syn again
         7000 > syn again
         7100 < syn/ack
         7100 > ack
         7100 > data 0",
    );
    let mut tcp = conversation(linux(), [nth(Kind::Syn, 1).times(2)]);
    tcp.run(ms(3199));
    assert_eq!(tcp.sender.cwnd(), 1.0, "two are more than one");
}

#[test]
fn an_initial_timeout_of_three_seconds() {
    let tcp = TcpPlan {
        initial_rto: ms(3000),
        ..linux()
    };
    let mut tcp = conversation(tcp, [nth(Kind::Syn, 1).times(2)]);
    assert_reads(
        &tcp.run(ms(9100)).sent(),
        "   0 > syn
         3000 > syn again
         9000 > syn again
         9100 > ack
         9100 > data 0",
    );
}

#[test]
fn the_wait_for_a_syn_ack_is_bounded_by_the_ceiling() {
    let mut tcp = conversation(linux(), [nth(Kind::Syn, 1).times(9)]);
    let text = tcp.run(ms(367_000)).text();
    let times: Vec<&str> = text
        .lines()
        .filter_map(|line| line.split_once(" > syn"))
        .map(|(time, _)| time)
        .collect();
    // 1, 2, 4 … 64 s, then 120 s each
    let expected = [0, 1, 3, 7, 15, 31, 63, 127, 247, 367].map(|s| (1000 * s).to_string());
    assert_eq!(times, expected);
}

#[test]
fn a_lost_syn_ack_is_repeated_for_the_repeated_syn() {
    let mut tcp = conversation(linux(), [nth(Kind::SynAck, 1)]);
    assert_reads(
        &tcp.run(ms(1100)).text(),
        "   0 > syn
         1000 > syn again
         1100 < syn/ack
         1100 > ack
         1100 > data 0..10",
    );
}

#[test]
fn the_receiver_repeats_its_syn_ack_by_itself() {
    // The repeated SYN at 1050 ms starts the receiver's second anew; at 2050 ms it does not wait for
    // the third SYN.
    let mut tcp = conversation(linux(), [nth(Kind::SynAck, 1).times(2)]);
    assert_reads(
        &tcp.run(ms(2100)).text(),
        "   0 > syn
         1000 > syn again
         2100 < syn/ack
         2100 > ack
         2100 > data 0..10",
    );
}

#[test]
fn data_open_the_connection_when_the_handshakes_ack_is_lost() {
    let mut tcp = conversation(linux(), [nth(Kind::LastAck, 1)]);
    let text = tcp.run(ms(299)).text();
    assert!(text.contains("200 < ack 1\n"), "{text}");
    assert_eq!(text.matches("syn/ack").count(), 1);
}

#[test]
fn a_syn_ack_repeated_in_vain_is_acknowledged() {
    // An RTT of 1.5 s: the second SYN was not needed.
    let mut tcp = Conversation::new(&flow(linux()), ms(750));
    assert_reads(
        &tcp.run(ms(2500)).text(),
        "   0 > syn
         1000 > syn again
         1500 < syn/ack
         1500 > ack
         1500 > data 0..10
         2500 < syn/ack
         2500 > ack",
    );
    assert_eq!(
        tcp.sender.srtt(),
        Some(ms(1500)),
        "the echo tells the SYNs apart"
    );
}

#[test]
fn without_a_sample_from_the_handshake_the_timeout_for_data_is_three_seconds() {
    // RFC 6298, 5.7. No timestamps, so after a repeated SYN Karn's rule forbids the sample.
    let mut tcp = conversation(
        new_reno(),
        [nth(Kind::Syn, 1), nth(Kind::Data, 1).times(u32::MAX)],
    );
    assert_reads(
        &tcp.run(ms(5000)).sent(),
        "   0 > syn
         1000 > syn again
         1100 > ack
         1100 > data 0..10
         4100 ! timeout
         4100 > data 0 again",
    );
}
