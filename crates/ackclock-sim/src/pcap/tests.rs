//! Captured conversations, read back.

use std::sync::Arc;

use super::frame::{ACK, AE, CWR, ECE, FIN, SYN};
use super::parser::{datagrams, frames, records, Frame};
use super::*;
use crate::packet::{acknowledgement, Ecn, Flags, Kind, MAX_WINDOW, NO_PACKET};
use crate::queue::FlowHeader;
use ackclock_plan::{CongestionPlan, LinkPlan, PathPlan, Vantage};
use serde_json::{json, Value};

/// A flow with some fields of its TCP changed.
fn flow(size_bytes: Option<u64>, changes: &Value) -> FlowPlan {
    let mut tcp = json!({
        "mss_bytes": 1448, "header_bytes": 40, "sack": true, "timestamps": true,
        "delayed_ack": "off", "delayed_ack_timeout_s": 0.04, "initial_window": 10,
        "initial_rto_s": 1.0, "min_rto_s": 0.2, "max_rto_s": 120.0,
        "rto_floor_on_variance": true, "rto_slop_s": 0.0, "timer_tick_s": 0.0, "rtt_sampling": "each_ack", "rtt_tick_s": 0.0, "impatient": false, "receive_window_bytes": null, "send_buffer_bytes": null,
        "loss_detection": "rack", "tail_loss_probe": true, "undo_spurious": true, "frto": true, "adaptive_reordering": true, "limited_transmit": true,
        "recovery_reduction": "prr", "pacing": false, "tso_batching": false, "window_validation": true, "byte_counting": true, "ecn": "off", "processing": null,
    });
    for (name, value) in changes.as_object().expect("an object") {
        tcp[name] = value.clone();
    }
    let path = PathPlan {
        hops: vec![],
        delay: Time::from_milliseconds(10),
    };
    FlowPlan {
        group: 0,
        start: Time::ZERO,
        start_jitter: Time::ZERO,
        stop: None,
        size_bytes,
        request_bytes: None,
        application_rate: None,
        slow_reader: None,
        writes: None,
        misbehaviour: None,
        priority: 0,
        congestion: Arc::new(CongestionPlan {
            kind: "reno".to_owned(),
            parameters: json!({}),
        }),
        tcp: serde_json::from_value(tcp).expect("a valid TCP"),
        ends: None,
        forward: path.clone(),
        reverse: path,
    }
}

fn packet(kind: Kind, sequence: u64, wire_bytes: u32) -> Packet {
    Packet {
        sequence,
        timestamp: Time::from_milliseconds(5),
        enqueued: Time::from_milliseconds(15),
        flow: 0,
        wire_bytes,
        kind,
        ..NO_PACKET
    }
}

/// Captures at the senders alone.
fn at_senders() -> Captures {
    Captures {
        files: vec![(Point::Senders, File::empty())],
        connections: BTreeMap::new(),
        paths: BTreeMap::new(),
        in_transit: Vec::new(),
        ground_truth: GroundTruth::default(),
        headers: FlowHeaders::NONE.clone(),
        seed: 1,
    }
}

fn reason(kind: Kind) -> SendReason {
    SendReason::of_control(kind, false)
}

/// Open a connection whose numbers all begin at 0.
fn open_at_zero(captures: &mut Captures, plan: &FlowPlan) {
    let connection = Connection::new(plan, Numbers::default());
    captures.connections.insert(0, connection);
}

/// A packet passes its sender's interface at `now`. One of the receiver's was sent when it entered its queue.
fn pass(captures: &mut Captures, packet: Packet, blocks: &[Block], now: Time) {
    let packet = Packet {
        attachment: 0,
        ..packet
    };
    if packet.kind.is_forward() {
        captures.send(&packet, Carried::default(), reason(packet.kind), now);
    } else {
        let carried = Carried {
            external: None,
            blocks,
            content: &[],
        };
        captures.send_reply(&packet, carried, packet.enqueued, now);
        captures.arrive(&packet, now, now);
    }
}

fn file(captures: &mut Captures) -> Vec<u8> {
    captures.take(Time::NEVER).remove(0)
}

/// Captures packets of one flow, a millisecond apart.
fn captured(flow: &FlowPlan, packets: &[Packet], blocks: &[Block]) -> Vec<Frame> {
    let mut captures = at_senders();
    open_at_zero(&mut captures, flow);
    for (at_ms, packet) in packets.iter().enumerate() {
        let now = Time::from_milliseconds(at_ms as u64);
        pass(&mut captures, *packet, blocks, now);
    }
    frames(&file(&mut captures))
}

#[test]
fn a_complete_connection_is_captured() {
    let flow = flow(Some(2000), &json!({}));
    let packets = [
        packet(Kind::Syn, 0, 60),
        packet(Kind::SynAck, 0, 60),
        packet(Kind::LastAck, 0, 52),
        packet(Kind::Data, 0, 1500),
        packet(Kind::Data, 1, 604),
        packet(Kind::Fin, 2, 52),
        packet(Kind::Ack, 2, 52),
        packet(Kind::FinAck, 3, 52),
        packet(Kind::LastAck, 0, 52),
    ];
    let told: Vec<_> = captured(&flow, &packets, &[])
        .iter()
        .map(|f| {
            (
                f.flags,
                f.sequence,
                f.acknowledgement,
                f.payload_bytes,
                f.wire_bytes,
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            (SYN, 0, 0, 0, 74),
            (SYN | ACK, 0, 1, 0, 74),
            (ACK, 1, 1, 0, 66),
            (ACK, 1, 1, 1448, 1514),
            (ACK, 1449, 1, 552, 618),
            (FIN | ACK, 2001, 1, 0, 66),
            (ACK, 1, 2001, 0, 66),
            (FIN | ACK, 1, 2002, 0, 66),
            (ACK, 2002, 2, 0, 66),
        ]
    );
}

#[test]
fn timestamps_are_echoed_in_both_directions() {
    let flow = flow(None, &json!({}));
    let packets = [
        packet(Kind::Data, 0, 1500),
        packet(Kind::Ack, 1, 52),
        packet(Kind::Data, 1, 1500),
    ];
    let stamps: Vec<_> = captured(&flow, &packets, &[])
        .iter()
        .map(|f| f.timestamps)
        .collect();
    assert_eq!(stamps, [Some((5, 0)), Some((15, 5)), Some((5, 15))]);
}

#[test]
fn an_ack_of_a_part_of_a_segment_is_of_its_bytes() {
    let part = |part| Packet {
        flags: Flags::NONE.with_part(part),
        ..packet(Kind::Ack, 1, 52)
    };
    let frames = captured(&flow(None, &json!({})), &[part(0), part(2), part(4)], &[]);
    let numbers: Vec<u32> = frames.iter().map(|frame| frame.acknowledgement).collect();
    // The second segment of 1448 bytes begins at 1449.
    assert_eq!(numbers, [1449, 1449 + 362, 1449 + 724]);
}

#[test]
fn sack_blocks_are_bytes() {
    let flow = flow(None, &json!({ "mss_bytes": 1000 }));
    let acks = [packet(Kind::Ack, 3, 52 + 20)];
    let frames = captured(&flow, &acks, &[(5, 7), (10, 11)]);
    assert_eq!(frames[0].sack, [(5001, 7001), (10_001, 11_001)]);
    assert_eq!(frames[0].wire_bytes, 14 + 72);
}

#[test]
fn disabled_timestamps_and_sack_have_no_options() {
    let flow = flow(
        None,
        &json!({ "timestamps": false, "sack": false, "mss_bytes": 1460 }),
    );
    let packets = [packet(Kind::Syn, 0, 48), packet(Kind::Data, 0, 1500)];
    let frames = captured(&flow, &packets, &[]);
    assert_eq!(
        (frames[0].mss, frames[0].sack_permitted),
        (Some(1460), false)
    );
    assert_eq!((frames[0].timestamps, frames[0].wire_bytes), (None, 62));
    assert_eq!(
        (frames[1].payload_bytes, frames[1].wire_bytes),
        (1460, 1514)
    );
}

#[test]
fn the_length_is_that_of_the_simulated_packet() {
    let flow = flow(None, &json!({ "timestamps": false }));
    let mut ack = packet(Kind::Ack, 1, 40 + 12);
    ack.flags = Flags::NONE.with_dsack(true);
    assert_eq!(captured(&flow, &[ack], &[])[0].wire_bytes, 14 + 52);
}

#[test]
fn the_window_field_is_what_the_packet_carries_rounded_up_to_the_scale() {
    let fields = |receive_window_bytes: Value, segments: [u64; 2]| {
        let flow = flow(
            None,
            &json!({ "mss_bytes": 1000, "receive_window_bytes": receive_window_bytes }),
        );
        let advertising = |kind, next, window, bytes| Packet {
            sequence: acknowledgement(next, window),
            ..packet(kind, 0, bytes)
        };
        let packets = [
            advertising(Kind::SynAck, 0, segments[0], 60),
            advertising(Kind::Ack, 1, segments[1], 52),
        ];
        let frames = captured(&flow, &packets, &[]);
        (frames[0].window, frames[0].window_shift, frames[1].window)
    };
    let unlimited = fields(json!(null), [MAX_WINDOW, MAX_WINDOW]);
    assert_eq!(unlimited, (65_535, Some(14), 65_535));
    assert_eq!(fields(json!(20_000), [20, 3]), (20_000, Some(0), 3000));
    // Of a SYN the field is not scaled; 99 000 are 24 750 of the scale's four bytes, and 1001 × 1000 / 16 is rounded up.
    assert_eq!(fields(json!(256_000), [65, 99]), (65_000, Some(2), 24_750));
    assert_eq!(fields(json!(1_001_000), [0, 1001]), (0, Some(4), 62_563));
}

#[test]
fn sequence_numbers_wrap() {
    let flow = flow(None, &json!({ "mss_bytes": 1024 }));
    let frames = captured(&flow, &[packet(Kind::Data, 1 << 22, 1076)], &[]);
    assert_eq!(frames[0].sequence, 1);
}

#[test]
fn only_the_first_bytes_have_the_file_header() {
    let flow = flow(None, &json!({}));
    let mut captures = at_senders();
    open_at_zero(&mut captures, &flow);
    assert_eq!(file(&mut captures).len(), 24);
    pass(&mut captures, packet(Kind::Data, 0, 1500), &[], Time::ZERO);
    assert_eq!(records(&file(&mut captures)).len(), 1);
    assert!(file(&mut captures).is_empty());
}

#[test]
fn ecn_flags_are_those_of_each_feedback() {
    // RFC 3168 section 6.1.1: ECE and CWR on the SYN, ECE on the answer. RFC 9768 table 2 and section 3.2.2.1: all
    // three flags, then how the SYN and how the SYN/ACK arrived; section 3.2.1: the count in the flags' place, from
    // 5.
    let marked = |packet: Packet, echo: u8| Packet {
        flags: Flags::NONE.with_echo(echo),
        ..packet
    };
    let told = |ecn: &str, echo: u8| {
        let packets = [
            packet(Kind::Syn, 0, 60),
            packet(Kind::SynAck, 0, 60),
            packet(Kind::Data, 0, 1500),
            marked(packet(Kind::Data, 1, 1500), 1),
            marked(packet(Kind::Ack, 2, 52), echo),
        ];
        let flow = flow(None, &json!({ "ecn": ecn }));
        let frames = captured(&flow, &packets, &[]);
        let all: Vec<u16> = frames.iter().map(|f| f.flags & (AE | CWR | ECE)).collect();
        let opened = [packets[0], packets[1], packet(Kind::LastAck, 0, 52)];
        let last = captured(&flow, &opened, &[])[2].flags & (AE | CWR | ECE);
        assert_eq!(
            last,
            if ecn == "accurate" || ecn == "l4s" {
                CWR
            } else {
                0
            }
        );
        (all[0], all[1], all[2], all[3], all[4])
    };
    assert_eq!(told("off", 0), (0, 0, 0, 0, 0));
    assert_eq!(told("classic", 1), (ECE | CWR, ECE, 0, CWR, ECE));
    assert_eq!(told("dctcp", 1), (ECE | CWR, ECE, 0, CWR, ECE));
    for (ecn, marks, count) in [("accurate", 3, 0), ("l4s", 1, CWR | AE)] {
        let (syn, send_reply, _, _, found) = told(ecn, marks); // 5 + 3 = 8, 5 + 1 = 6
        assert_eq!((syn, send_reply, found), (AE | CWR | ECE, CWR, count));
    }
}

/// RFC 9293 section 3.5 with the roles changed: the client's SYN is number 0, its request follows from 1 on, and
/// its ACKs and FIN come after the request.
#[test]
fn a_connection_that_the_client_opens() {
    let asking = FlowPlan {
        request_bytes: Some(300),
        ..flow(Some(2000), &json!({}))
    };
    let packets = [
        packet(Kind::ClientSyn, 0, 60),
        packet(Kind::ServerSynAck, 0, 60),
        packet(Kind::Request, 0, 352),
        packet(Kind::Request, 0, 352),
        packet(Kind::Data, 0, 1500),
        packet(Kind::Ack, 1, 52),
        packet(Kind::Data, 1, 604),
        packet(Kind::Fin, 2, 52),
        packet(Kind::FinAck, 3, 52),
        packet(Kind::LastAck, 0, 52),
    ];
    let frames = captured(&asking, &packets, &[]);
    let told: Vec<_> = frames
        .iter()
        .map(|f| {
            let from_client = f.source.ends_with(":5001");
            let numbers = (f.sequence, f.acknowledgement, f.payload_bytes);
            (from_client, f.flags, numbers, f.wire_bytes)
        })
        .collect();
    assert_eq!(
        told,
        [
            (true, SYN, (0, 0, 0), 74),
            (false, SYN | ACK, (0, 1, 0), 74),
            (true, ACK, (1, 1, 300), 366),
            (true, ACK, (1, 1, 300), 366),
            (false, ACK, (1, 301, 1448), 1514),
            (true, ACK, (301, 1449, 0), 66),
            (false, ACK, (1449, 301, 552), 618),
            (false, FIN | ACK, (2001, 301, 0), 66),
            (true, FIN | ACK, (301, 2002, 0), 66),
            (false, ACK, (2002, 302, 0), 66),
        ]
    );
    assert!(frames[0].sack_permitted && frames[1].sack_permitted);
    assert_eq!((frames[0].mss, frames[1].mss), (Some(1460), Some(1460)));
    assert_eq!(frames[2].mss, None);
    let (server, client) = ("10.0.0.1:49152", "10.128.0.1:5001");
    assert_eq!(
        (&*frames[0].source, &*frames[0].destination),
        (client, server)
    );
    assert_eq!(
        (&*frames[4].source, &*frames[4].destination),
        (server, client)
    );
}

/// RFC 768, on a way there and back; a UDP flow needs no connection in the capture.
#[test]
fn datagrams_and_their_echoes() {
    let of = |flow, kind, wire_bytes| Packet {
        flow,
        ..packet(kind, 7, wire_bytes)
    };
    let packets = [
        of(0, Kind::Datagram, 1028),
        of(0, Kind::Echo, 37),
        of(16_384, Kind::Datagram, 29),
        of(16_385, Kind::Datagram, 28),
    ];
    let mut captures = at_senders();
    for (at_ms, packet) in packets.iter().enumerate() {
        let now = Time::from_milliseconds(at_ms as u64);
        pass(&mut captures, *packet, &[], now);
    }
    let frames = datagrams(&file(&mut captures));
    let expected = [
        (0, "10.0.0.1:49152", "10.128.0.1:5001", 1000, 1042),
        (1, "10.128.0.1:5001", "10.0.0.1:49152", 9, 51),
        // 16 385 is 64 · 256 + 1; the ports begin again, the addresses do not.
        (2, "10.0.64.1:49152", "10.128.64.1:5001", 1, 43),
        (3, "10.0.64.2:49153", "10.128.64.2:5001", 0, 42),
    ];
    let told: Vec<_> = frames
        .iter()
        .map(|f| {
            let (at_ms, ends) = (f.nanoseconds / 1_000_000, (&*f.source, &*f.destination));
            (at_ms, ends.0, ends.1, f.payload_bytes, f.wire_bytes)
        })
        .collect();
    assert_eq!(told, expected);
    assert!(frames.iter().all(|f| f.flags == 0 && f.tos == 0));
}

/// RFC 1071 by hand: the words of pseudo header and header, 0a00 + 0001 + 0a80 + 0001 + 0011 + 03f0 and c000 + 1389 +
/// 03f0, add up to effc without a carry.
#[test]
fn the_checksum_of_a_datagram_by_hand() {
    let mut captures = at_senders();
    pass(
        &mut captures,
        packet(Kind::Datagram, 0, 1028),
        &[],
        Time::ZERO,
    );
    let file = file(&mut captures);
    let udp = &file[24 + 16 + 34..][..8];
    assert_eq!(udp, [0xc0, 0x00, 0x13, 0x89, 0x03, 0xf0, 0x10, 0x03]);
}

fn first_link() -> LinkPlan {
    let queue = json!({ "discipline": "pfifo", "parameters": {} });
    let plan = json!({
        "name": "first", "ends": null, "rate_bps": 1e6, "delay_s": 0.0, "weight": 1.0, "burst_bytes": null,
        "frame_overhead_bytes": 0, "queue": queue, "loss": null, "medium": null, "trace": null, "bottleneck": true,
    });
    serde_json::from_value(plan).expect("a link")
}

/// Records of a host ahead of the simulation's clock are written in the order of time.
#[test]
fn records_ahead_of_the_clock_wait() {
    let at = Time::from_milliseconds;
    let mut captures = Captures {
        files: vec![(Point::Receivers, File::empty())],
        ..at_senders()
    };
    open_at_zero(&mut captures, &flow(None, &json!({})));
    let ack = |attachment, sequence| Packet {
        attachment,
        ..packet(Kind::Ack, sequence, 52)
    };
    captures.send_reply(&ack(0, 1), Carried::default(), at(30), at(10));
    captures.send_reply(&ack(1, 2), Carried::default(), at(20), at(10));
    assert_eq!(captures.take(at(10)).remove(0).len(), 24);
    captures.send_reply(&ack(2, 3), Carried::default(), at(25), at(20));
    let early = records(&captures.take(at(25)).remove(0));
    let late = records(&captures.take(at(30)).remove(0));
    let told: Vec<_> = early.iter().chain(&late).collect();
    let times_ms: Vec<u64> = told.iter().map(|f| f.nanoseconds / 1_000_000).collect();
    assert_eq!((early.len(), times_ms), (2, vec![20, 25, 30]));
    let order: Vec<u16> = told.iter().map(|f| f.identification).collect();
    assert_eq!(order, [1, 2, 0], "each is counted as it is sent");
}

/// A marked packet has another first line of its IP header, and a right checksum; a router takes one off its life.
#[test]
fn all_vantage_points_capture_the_same_frame_with_local_ecn_bits() {
    let wire = Point::new(&Vantage::Link("first".to_owned()), &[first_link()], &[]);
    let expedited = FlowHeader {
        dscp: 46,
        ..FlowHeader::default()
    };
    let mut captures = Captures {
        files: vec![
            (Point::Senders, File::empty()),
            (wire, File::empty()),
            (Point::Receivers, File::empty()),
        ],
        headers: FlowHeaders::new([(0, expedited)]),
        ..at_senders()
    };
    open_at_zero(&mut captures, &flow(None, &json!({})));
    let at = Time::from_milliseconds;
    let sent = Packet {
        attachment: 0,
        flags: Flags::of(Ecn::Ect0),
        ..packet(Kind::Data, 0, 1500)
    };
    let marked = Packet {
        flags: Flags::of(Ecn::Ce),
        ..sent
    };
    captures.send(&sent, Carried::default(), reason(Kind::Data), at(1));
    captures.leave(&marked, 0, at(2));
    captures.arrive(&marked, at(7), at(2));
    let files: Vec<Vec<Frame>> = captures.take(at(7)).iter().map(|f| frames(f)).collect();
    let told: Vec<_> = files
        .iter()
        .flatten()
        .map(|f| (f.nanoseconds / 1_000_000, f.tos, f.time_to_live))
        .collect();
    // EF is 46, above the two ECN bits.
    assert_eq!(told, [(1, 0xba, 64), (2, 0xbb, 64), (7, 0xbb, 63)]);
    assert!(files.iter().flatten().all(|f| f.timestamps == Some((5, 0))));
}
