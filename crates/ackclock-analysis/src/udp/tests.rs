use ackclock_pcap::packet::quic::headers;
use ackclock_pcap::packet::Address;
use serde_json::Value;
use std::net::IpAddr;

use super::*;

const MS: i64 = 1_000_000;
/// First bytes of the long headers of version 1.
const INITIAL: u8 = 0xc0;
const HANDSHAKE: u8 = 0xe0;
const RETRY: u8 = 0xf0;
const CLIENT_ID: &[u8] = b"client-1";
const SERVER_ID: &[u8] = b"server-1";
const ORIGINAL_ID: &[u8] = b"original";

fn end(host: u8, port: u16) -> Endpoint {
    Endpoint {
        address: Address::from(IpAddr::from([192, 0, 2, host])),
        port,
    }
}

fn client() -> Endpoint {
    end(1, 50_000)
}

fn server() -> Endpoint {
    end(2, 443)
}

/// A packet with a long header that takes the rest of its datagram.
fn long(first: u8, version: u32, destination: &[u8], source: &[u8]) -> Vec<u8> {
    let mut packet = vec![first];
    packet.extend(version.to_be_bytes());
    for id in [destination, source] {
        packet.push(id.len() as u8);
        packet.extend(id);
    }
    packet
}

fn short(bit: bool, id: &[u8]) -> Vec<u8> {
    [&[0x40 | u8::from(bit) << 5], id].concat()
}

/// A conversation: who sends what to whom, at a time in milliseconds and with a size.
struct Talk(UdpFlows);

impl Talk {
    fn new() -> Self {
        Self(UdpFlows::default())
    }

    fn between(
        &mut self,
        ends: [Endpoint; 2],
        at_ms: i64,
        bytes: u32,
        payload: &[u8],
    ) -> &mut Self {
        let [source, destination] = ends;
        let datagram = Datagram {
            source,
            destination,
            payload_bytes: bytes,
            quic: headers(payload, bytes),
            ..Datagram::default()
        };
        self.0.take(&datagram, at_ms * MS);
        self
    }

    fn client(&mut self, at_ms: i64, bytes: u32, payload: &[u8]) -> &mut Self {
        self.between([client(), server()], at_ms, bytes, payload)
    }

    fn server(&mut self, at_ms: i64, bytes: u32, payload: &[u8]) -> &mut Self {
        self.between([server(), client()], at_ms, bytes, payload)
    }

    /// A handshake of 10 ms to the client and 30 ms to the server, from `at_ms` on.
    fn handshake(&mut self, at_ms: i64) -> &mut Self {
        self.client(at_ms, 1200, &long(INITIAL, 1, ORIGINAL_ID, CLIENT_ID))
            .server(at_ms + 30, 1200, &long(INITIAL, 1, CLIENT_ID, SERVER_ID))
            .client(at_ms + 40, 1200, &long(HANDSHAKE, 1, SERVER_ID, CLIENT_ID))
            .client(at_ms + 41, 60, &short(false, SERVER_ID))
            .server(at_ms + 70, 60, &short(false, CLIENT_ID))
    }

    fn flows(&self) -> Vec<Value> {
        report(&self.0, 100)["flows"].as_array().unwrap().clone()
    }

    fn flow(&self) -> Value {
        let flows = self.flows();
        assert_eq!(flows.len(), 1, "{flows:?}");
        flows[0].clone()
    }
}

#[test]
fn a_handshake_has_the_rtts_of_both_halves() {
    let flow = Talk::new().handshake(0).flow();
    assert_eq!(flow["client"], "192.0.2.1:50000");
    assert_eq!(flow["protocol"], "quic");
    assert_eq!(flow["from_server"]["bytes"], 1260);
    let handshake = &flow["quic"]["handshake"];
    assert_eq!(handshake["state"], "complete");
    assert_eq!(handshake["to_server_s"], 0.03);
    assert_eq!(handshake["to_client_s"], 0.01);
    assert_eq!(handshake["duration_s"], 0.07);
    assert_eq!(flow["quic"]["client_id"], "636c69656e742d31");
    assert_eq!(flow["segments_lost"], Value::Null);
}

/// A server may send 1-RTT packets before the client's Finished arrives (RFC 9001 section 5.7).
#[test]
fn early_data_of_the_server_completes_no_handshake() {
    let mut talk = Talk::new();
    talk.client(0, 1200, &long(INITIAL, 1, ORIGINAL_ID, CLIENT_ID))
        .server(30, 1200, &long(INITIAL, 1, CLIENT_ID, SERVER_ID))
        .server(31, 1200, &short(false, CLIENT_ID))
        .client(40, 1200, &long(HANDSHAKE, 1, SERVER_ID, CLIENT_ID))
        .client(41, 60, &short(false, SERVER_ID))
        .client(600, 1200, &long(HANDSHAKE, 1, SERVER_ID, CLIENT_ID));
    assert_eq!(talk.flow()["quic"]["handshake"]["state"], "answered");
    talk.server(630, 60, &short(false, CLIENT_ID));
    assert_eq!(talk.flow()["quic"]["handshake"]["state"], "complete");
}

#[test]
fn a_retransmitted_initial_leaves_the_rtt_unknown() {
    let mut talk = Talk::new();
    talk.client(0, 1200, &long(INITIAL, 1, ORIGINAL_ID, CLIENT_ID))
        .handshake(300);
    let handshake = talk.flow()["quic"]["handshake"].clone();
    assert_eq!(handshake["to_server_s"], Value::Null);
    assert_eq!(handshake["rtt_s"], Value::Null);
    assert_eq!(handshake["to_client_s"], 0.01);
}

#[test]
fn a_retransmitted_initial_without_a_response_is_reported() {
    let mut talk = Talk::new();
    let initial = long(INITIAL, 1, ORIGINAL_ID, CLIENT_ID);
    talk.client(0, 1200, &initial);
    assert_eq!(talk.flow()["quic"]["handshake"]["state"], Value::Null);
    talk.client(1000, 1200, &initial);
    assert_eq!(talk.flow()["quic"]["handshake"]["state"], "unanswered");
    assert_eq!(talk.flow()["quic"]["handshake"]["tried_s"], 1.0);
}

#[test]
fn retry_and_version_negotiation_begin_the_round_trip_anew() {
    let mut talk = Talk::new();
    let negotiation = [&long(0x80, 0, CLIENT_ID, b"x")[..], &1_u32.to_be_bytes()].concat();
    talk.client(0, 1200, &long(INITIAL, 0x1a1a_1a1a, ORIGINAL_ID, CLIENT_ID))
        .server(30, negotiation.len() as u32, &negotiation)
        .client(40, 1200, &long(INITIAL, 1, ORIGINAL_ID, CLIENT_ID))
        .server(70, 60, &long(RETRY, 1, CLIENT_ID, b"retry-id"))
        .handshake(1000);
    let quic = talk.flow()["quic"].clone();
    assert_eq!(quic["versions_offered"], Value::from(vec!["1"]));
    assert_eq!(
        (&quic["datagrams"]["retry"], &quic["datagrams"]["initial"]),
        (&1.into(), &4.into())
    );
    assert_eq!(quic["handshake"]["to_server_s"], 0.03);
    assert_eq!(quic["handshake"]["amplification_waits"], 0);
}

/// RFC 9000 section 8.1: 3600 bytes for an Initial of 1200, then nothing until the client's next datagram.
#[test]
fn a_server_at_the_amplification_limit_waits_for_the_client() {
    let answer = |talk: &mut Talk, at_ms| {
        talk.server(at_ms, 1200, &long(HANDSHAKE, 1, CLIENT_ID, SERVER_ID));
    };
    let mut talk = Talk::new();
    talk.client(0, 1200, &long(INITIAL, 1, ORIGINAL_ID, CLIENT_ID))
        .server(30, 1200, &long(INITIAL, 1, CLIENT_ID, SERVER_ID));
    answer(&mut talk, 31);
    answer(&mut talk, 32);
    let mut within = Talk(UdpFlows::default());
    within
        .client(0, 1200, &long(INITIAL, 1, ORIGINAL_ID, CLIENT_ID))
        .server(30, 1200, &long(INITIAL, 1, CLIENT_ID, SERVER_ID));
    for talk in [&mut talk, &mut within] {
        talk.client(72, 1200, &long(INITIAL, 1, SERVER_ID, CLIENT_ID));
        answer(talk, 102);
    }
    let handshake = talk.flow()["quic"]["handshake"].clone();
    assert_eq!(handshake["amplification_waits"], 1);
    assert_eq!(handshake["amplification_wait_s"], 0.07);
    assert_eq!(handshake["amplification_sent_bytes"], 3600);
    assert_eq!(handshake["amplification_received_bytes"], 1200);
    // What was sent after the client's datagram might have been sent before it.
    assert_eq!(within.flow()["quic"]["handshake"]["amplification_waits"], 0);
}

#[test]
fn a_connection_id_identifies_the_connection_after_a_port_rebinding() {
    let mut talk = Talk::new();
    let moved = end(1, 50_001);
    talk.handshake(0)
        .between([moved, server()], 200, 60, &short(false, SERVER_ID))
        .between([server(), moved], 230, 60, &short(false, CLIENT_ID))
        .between([end(3, 9), server()], 300, 60, &short(false, SERVER_ID));
    let flow = talk.flow();
    let changes = &flow["quic"]["address_changes"];
    assert_eq!(
        (&changes[0]["kind"], &changes[0]["to"]),
        (&"port".into(), &"192.0.2.1:50001".into())
    );
    assert_eq!(
        (&changes[1]["kind"], &changes[1]["time_s"]),
        (&"address".into(), &0.3.into())
    );
    assert_eq!(
        (&flow["client"], &flow["datagrams"]),
        (&"192.0.2.3:9".into(), &8.into())
    );
    talk.between([end(4, 9), server()], 400, 60, &short(false, b"unknown!"));
    assert_eq!(talk.flows().len(), 2);
}

#[test]
fn connections_between_the_same_ends_are_distinguished_by_their_ids() {
    let mut talk = Talk::new();
    talk.handshake(0)
        .client(100, 1200, &long(INITIAL, 1, b"another1", b"client-2"))
        .server(130, 1200, &long(INITIAL, 1, b"client-2", b"server-2"))
        .client(140, 50, &short(false, SERVER_ID))
        .server(150, 50, &short(false, CLIENT_ID))
        .client(160, 50, &short(false, b"server-2"));
    let datagrams: Vec<_> = talk
        .flows()
        .iter()
        .map(|flow| flow["datagrams"].clone())
        .collect();
    assert_eq!(datagrams, [7, 3]);
}

#[test]
fn an_unpublished_version_is_quic_after_a_response() {
    let version = 0x1234_5678;
    let mut talk = Talk::new();
    talk.client(0, 1200, &long(INITIAL, version, ORIGINAL_ID, CLIENT_ID));
    assert_eq!(talk.flow()["protocol"], Value::Null);
    talk.server(30, 1200, &long(INITIAL, version, CLIENT_ID, SERVER_ID));
    let quic = talk.flow()["quic"].clone();
    assert_eq!(quic["version"], "0x12345678");
    // Its types and its spin bit may be others.
    assert_eq!(
        (&quic["datagrams"]["initial"], &quic["handshake"]["rtt_s"]),
        (&0.into(), &Value::Null)
    );
    let mut other = Talk::new();
    other
        .client(0, 100, &[0x80, 1, 2, 3, 4, 0, 0])
        .server(1, 100, &[0x80, 1, 2, 3, 4, 0, 0]);
    assert_eq!(other.flow()["protocol"], Value::Null);
}

#[test]
fn any_other_flow_has_its_rates_and_gaps() {
    let mut talk = Talk::new();
    talk.between([server(), client()], 0, 1000, &[0x21])
        .client(500, 500, &[0x21])
        .client(1500, 500, &[0x21]);
    let flow = talk.flow();
    // The port shows the server, though it was the first to send.
    assert_eq!(flow["server"], "192.0.2.2:443");
    assert_eq!(
        (&flow["protocol"], &flow["quic"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(flow["from_client"]["rate_bps"], 8000.0);
    assert_eq!(flow["from_client"]["max_gap_s"], 1.0);
    assert_eq!(flow["from_client"]["ack_sized"], Value::Null);
    assert_eq!(
        (&flow["gaps"]["count"], &flow["gaps"]["listed"][0]["class"]),
        (&2.into(), &"undecided".into())
    );
}

#[test]
fn the_largest_flows_are_kept_and_the_others_summed_up() {
    let mut talk = Talk::new();
    for flow in 0..=MAX_FLOWS as u32 {
        let ends = [
            end((flow >> 15) as u8, 1024 + (flow & 0x7fff) as u16),
            server(),
        ];
        talk.between(ends, i64::from(flow), 1 + u32::from(flow == 7) * 1000, &[0]);
    }
    assert_eq!(talk.0.flows().len(), MAX_FLOWS / 2 + 1);
    assert!(talk.0.flows().contains_key(&7));
    let report = report(&talk.0, 10);
    assert_eq!(report["flows"][0]["bytes"], 1001);
    assert_eq!(report["unlisted"]["flows"], MAX_FLOWS + 1 - 10);
    assert_eq!(report["unlisted"]["bytes"], MAX_FLOWS + 1 - 10);
}

/// quic-go's client addresses the server by an ID from a NEW_CONNECTION_ID frame as soon as it has one (RFC 9000 section
/// 5.1.1), in packets with long headers, too.
#[test]
fn a_connection_goes_on_by_an_id_that_the_server_has_issued() {
    for issued in [&b"next"[..], b"issued-1"] {
        let mut talk = Talk::new();
        let beside = [
            long(INITIAL, 1, issued, CLIENT_ID),
            vec![0, 0x40, 0],
            long(HANDSHAKE, 1, issued, CLIENT_ID),
        ]
        .concat();
        talk.client(0, 1200, &long(INITIAL, 1, ORIGINAL_ID, CLIENT_ID))
            .server(
                30,
                1200,
                &long(INITIAL, 1, CLIENT_ID, &SERVER_ID[..issued.len()]),
            )
            .client(40, 1200, &beside)
            .client(41, 60, &short(false, issued))
            .server(70, 60, &short(false, CLIENT_ID));
        assert_eq!(talk.flow()["quic"]["handshake"]["state"], "complete");
    }
}

/// Memory is bounded: neither a client's ports nor a server's connection IDs fill it.
#[test]
fn keys_that_are_no_longer_used_are_forgotten() {
    let mut talk = Talk::new();
    talk.handshake(0);
    for number in 0..(MAX_KEYS + 10) as u32 {
        let id = [&b"srv-"[..], &number.to_be_bytes()].concat();
        talk.server(100, 60, &long(HANDSHAKE, 1, CLIENT_ID, &id));
    }
    assert!(
        talk.0.by_id.len() <= 2 * MAX_FLOWS,
        "{}",
        talk.0.by_id.len()
    );
    assert_eq!(talk.flows().len(), 1);
}
