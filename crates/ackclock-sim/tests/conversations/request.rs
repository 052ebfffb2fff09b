//! A receiver that opens the connection and asks for the data: RFC 9293 section 3.5, RFC 6298.
//!
//! One way takes 50 ms: the SYN arrives at 50, the SYN/ACK at 100, the request at 150, the first data at 200.

use ackclock_core::tables::EventKind;
use ackclock_plan::{FlowPlan, TcpPlan};
use ackclock_sim::packet::Kind;

use crate::kit::{assert_reads, data, flow, linux, ms, nth, transfer, Conversation, Loss};

fn client_flow(request_bytes: u32, losses: impl IntoIterator<Item = Loss>) -> Conversation {
    let plan = FlowPlan {
        request_bytes: Some(request_bytes),
        ..transfer(linux(), 3)
    };
    Conversation::new(&plan, ms(50)).losing(losses)
}

/// Time at which the client had the connection open, and the last byte, in ms.
fn client_times(tcp: &Conversation) -> (Option<u64>, Option<u64>) {
    let client = tcp.receiver.client().expect("a client");
    let ms = |time: ackclock_core::Time| time.microseconds() / 1000;
    (client.established.map(ms), client.finished.map(ms))
}

fn is_over(tcp: &Conversation) -> bool {
    tcp.next().is_never() && tcp.receiver.is_closed() && tcp.sender.is_done()
}

#[test]
fn two_round_trips_from_the_syn_to_the_first_data() {
    for request_bytes in [0, 100, 1000] {
        let mut tcp = client_flow(request_bytes, []);
        assert_reads(
            &tcp.run(ms(10_000)).text(),
            " 50 < syn
              50 > syn/ack
             150 < request
             150 > data 0..3
             150 > fin
             250 < ack 1
             250 < ack 2
             250 < ack 3
             250 < fin/ack 4
             250 > ack",
        );
        assert!(is_over(&tcp));
        assert_eq!(client_times(&tcp), (Some(100), Some(200)));
        assert_eq!(tcp.receiver.delivered_bytes(), 3000);
        // The first RTT of the sender is that of SYN/ACK and request.
        assert_eq!(tcp.sender.established, Some(ms(150)));
        assert_eq!(tcp.sender.srtt(), Some(ms(100)));
    }
}

#[test]
fn a_lost_syn_is_retransmitted_after_one_and_two_seconds() {
    let mut tcp = client_flow(100, [nth(Kind::ClientSyn, 1).times(2)]);
    assert_reads(
        &tcp.run(ms(3200)).text(),
        " 3050 < syn again
          3050 > syn/ack
          3150 < request
          3150 > data 0..3
          3150 > fin",
    );
    assert_eq!(client_times(&tcp), (Some(3100), Some(3200)));
    let client = tcp.receiver.client_mut().expect("a client");
    assert_eq!(client.syn_retransmissions, 2);
    let events: Vec<_> = client.take_events();
    assert_eq!(
        events,
        [
            (ms(1000), EventKind::SynRetransmission),
            (ms(3000), EventKind::SynRetransmission),
            (ms(3100), EventKind::Established),
            (ms(3200), EventKind::Finished),
        ]
    );
}

#[test]
fn a_lost_syn_ack_is_repeated_for_the_repeated_syn() {
    let mut tcp = client_flow(100, [nth(Kind::ServerSynAck, 1)]);
    assert_reads(
        &tcp.run(ms(1150)).text(),
        "  50 < syn
           50 > syn/ack            # lost
         1050 < syn again          # the client's timer is first, by 50 ms
         1050 > syn/ack again
         1150 < request
         1150 > data 0..3
         1150 > fin",
    );
    assert_eq!(client_times(&tcp).0, Some(1100));
}

#[test]
fn the_sender_repeats_its_syn_ack_by_itself() {
    // Both SYN/ACKs are lost. The repeated SYN at 1050 starts the sender's second anew, so that it strikes at 2050,
    // long before the client's next SYN at 3000. More than one loss: a window of one.
    let mut tcp = client_flow(100, [nth(Kind::ServerSynAck, 1).times(2)]);
    assert_reads(
        &tcp.run(ms(2150)).text(),
        "  50 < syn
           50 > syn/ack
         1050 < syn again
         1050 > syn/ack again
         2050 > syn/ack again
         2150 < request
         2150 > data 0",
    );
}

#[test]
fn each_syn_ack_that_the_sender_repeats_by_itself_waits_twice_as_long() {
    // The client's SYNs come at 50, 1050, 3050 and 7050; between them the sender waits 1 s, then 2 s, then 4 s.
    let mut tcp = client_flow(100, [nth(Kind::ServerSynAck, 1).times(9)]);
    assert_reads(
        &tcp.run(ms(7100)).text(),
        "  50 < syn
           50 > syn/ack
         1050 < syn again
         1050 > syn/ack again
         2050 > syn/ack again
         3050 < syn again
         3050 > syn/ack again
         5050 > syn/ack again
         7050 < syn again
         7050 > syn/ack again",
    );
}

#[test]
fn after_a_lost_syn_the_request_waits_three_seconds() {
    // RFC 6298 (5.7): a SYN that was retransmitted gives no sample, and the RTO is 3 s, not doubled: 1100 + 3000 + 50.
    let lost = [nth(Kind::ClientSyn, 1), nth(Kind::Request, 1)];
    let mut tcp = client_flow(100, lost);
    assert_reads(
        &tcp.run(ms(4150)).text(),
        "1050 < syn again
         1050 > syn/ack
         2050 > syn/ack again
         2150 < ack 0
         4150 < request again
         4150 > data 0..3
         4150 > fin",
    );
}

#[test]
fn a_lost_request_is_retransmitted_after_the_timeout_of_the_handshake_rtt() {
    // Linux's timeout: 100 ms and the floor of 200 ms, from 100 on. Then twice as long.
    let mut tcp = client_flow(100, [nth(Kind::Request, 1).times(2)]);
    assert_reads(
        &tcp.run(ms(1100)).text(),
        "  50 < syn
           50 > syn/ack
         1050 < request again      # 100 + 300 + 600 + 50
         1050 > data 0..3
         1050 > fin",
    );
    assert_eq!(client_times(&tcp), (Some(100), Some(1100)));
    assert_eq!(
        tcp.receiver.client().expect("a client").syn_retransmissions,
        0
    );
    // RFC 6298: SRTT + 4 RTTVAR = 300 ms, but at least a second.
    let tcp = TcpPlan {
        min_rto: ms(1000),
        rto_floor_on_variance: false,
        ..linux()
    };
    let plan = FlowPlan {
        request_bytes: Some(100),
        ..transfer(tcp, 3)
    };
    let mut tcp = Conversation::new(&plan, ms(50)).losing([nth(Kind::Request, 1)]);
    let text = tcp.run(ms(1200)).text();
    // The sender's SYN/ACK timer expired at 1050, and what it sends is acknowledged: the client still waits.
    assert!(text.contains("1050 > syn/ack again\n"), "{text}");
    assert!(
        text.contains("1150 < request again\n1150 > data 0..3\n"),
        "{text}"
    );
}

#[test]
fn a_repeated_syn_ack_is_acknowledged_and_stops_the_sender_from_repeating_it() {
    // The request is lost four times, with 300, 600, 1200 and 2400 ms between: it arrives at 4650. Meanwhile the
    // sender repeats its SYN/ACK at 1050, gets an ACK at 1150, and waits.
    let mut tcp = client_flow(100, [nth(Kind::Request, 1).times(4)]);
    assert_reads(
        &tcp.run(ms(4650)).text(),
        "  50 < syn
           50 > syn/ack
         1050 > syn/ack again
         1150 < ack 0
         4650 < request again
         4650 > data 0..3
         4650 > fin",
    );
}

#[test]
fn without_bytes_any_acknowledgement_of_the_handshake_is_the_request() {
    let mut tcp = client_flow(0, [nth(Kind::Request, 1).times(4)]);
    let text = tcp.run(ms(1150)).text();
    assert!(
        text.ends_with("1150 < ack 0\n1150 > data 0..3\n1150 > fin\n"),
        "{text}"
    );
}

#[test]
fn lost_data_cause_a_retransmission_of_the_request() {
    // All three segments and the FIN are lost: the client asks again, which changes nothing; the sender's probe
    // at 150 + 2 RTT + 2 ms sends the last segment again, the FIN.
    let losses = [data(0), data(1), data(2), nth(Kind::Fin, 1)];
    let mut tcp = client_flow(100, losses);
    let text = tcp.run(ms(10_000)).text();
    assert!(text.contains("450 < request again\n"), "{text}");
    assert_eq!(text.matches("request").count(), 2, "{text}");
    assert_eq!(tcp.receiver.delivered_bytes(), 3000);
    assert!(is_over(&tcp));
}

#[test]
fn a_client_completes_half_a_round_trip_before_its_sender() {
    let plan = FlowPlan {
        request_bytes: Some(1),
        ..transfer(linux(), 30)
    };
    let mut tcp = Conversation::new(&plan, ms(50));
    tcp.run(ms(10_000));
    // Flights of 10 and 20: data at 150 and 250.
    assert_eq!(client_times(&tcp), (Some(100), Some(300)));
    assert_eq!(tcp.sender.finished, Some(ms(350)));
}

#[test]
fn nothing_to_send_is_complete_with_the_fin() {
    let plan = FlowPlan {
        size_bytes: Some(0),
        request_bytes: Some(10),
        ..flow(linux())
    };
    let mut tcp = Conversation::new(&plan, ms(50));
    tcp.run(ms(10_000));
    assert_eq!(client_times(&tcp), (Some(100), Some(200)));
    assert!(is_over(&tcp));
}
