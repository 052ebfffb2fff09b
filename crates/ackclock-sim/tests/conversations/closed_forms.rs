//! Transfers through a link whose times have a closed form.
//!
//! The link passes 1 byte in 1 µs (8 Mbit/s); propagation takes 50 ms each way. Without timestamps a
//! full segment has 1040 bytes, an ACK 40, a SYN 52 (MSS, window scale and SACK permitted).

use ackclock_core::tables::{EventKind, PacketAction, Tables, Totals};
use ackclock_core::Time;
use ackclock_plan::{DelayedAck, FlowPlan, LossPlan, Plan, TcpPlan};
use ackclock_sim::Simulation;

use crate::kit::{link, ms, path, plan, sack_tcp, transfer, us};

const SEGMENT_US: u64 = 1040;
const ACK_US: u64 = 40;
const SYN_US: u64 = 52;
const ONE_WAY_US: u64 = 50_000;
const RTT_US: u64 = 100_000;

fn through_a_link(tcp: TcpPlan, segments: u64, limit_packets: u32) -> Plan {
    let flow = FlowPlan {
        forward: path(us(ONE_WAY_US), &[0]),
        reverse: path(us(ONE_WAY_US), &[]),
        ..transfer(tcp, segments)
    };
    plan(ms(20_000), vec![link(8e6, limit_packets)], vec![flow])
}

fn run(plan: &Plan) -> (Tables, Totals) {
    let mut simulation = Simulation::new(plan, 1).expect("the kit's plans are sound");
    simulation.advance(plan.duration);
    (simulation.drain(), simulation.finish())
}

fn completion_us(plan: &Plan) -> f64 {
    run(plan).1.flows.fct_s[0] * 1e6
}

/// SYN, its answer, the handshake's ACK through the link: when the first segment begins to leave.
const FIRST_SEGMENT_US: u64 = SYN_US + RTT_US + ACK_US;

#[track_caller]
fn assert_us(found: f64, expected: u64) {
    assert!(
        (found - expected as f64).abs() < 1e-3,
        "{found} µs, expected {expected} µs"
    );
}

#[test]
fn one_flight_is_a_handshake_a_serialisation_and_a_round_trip() {
    for segments in 1..=10 {
        let expected = FIRST_SEGMENT_US + segments * SEGMENT_US + RTT_US;
        assert_us(
            completion_us(&through_a_link(sack_tcp(), segments, 100)),
            expected,
        );
    }
}

#[test]
fn each_further_flight_begins_with_the_first_ack_of_the_one_before() {
    // Flights of 10, 20 and 40 segments: each ACK releases two, so the link stays busy from the first
    // ACK on; the next flight's first ACK comes a segment and a round trip after that.
    let flights = [10, 20, 40];
    for segments in 1..=70_u64 {
        let mut first_us = FIRST_SEGMENT_US;
        let mut before = 0;
        for flight in flights {
            if segments <= before + flight {
                break;
            }
            before += flight;
            first_us += SEGMENT_US + RTT_US;
        }
        let expected = first_us + (segments - before) * SEGMENT_US + RTT_US;
        let found = completion_us(&through_a_link(sack_tcp(), segments, 100));
        assert_us(found, expected);
    }
}

#[test]
fn the_last_odd_segment_waits_for_the_delayed_ack_unless_followed_by_a_fin() {
    // Three segments and the FIN in one flight: the FIN is acknowledged immediately with what it follows.
    let tcp = TcpPlan {
        delayed_ack: DelayedAck::On,
        ..sack_tcp()
    };
    let expected = FIRST_SEGMENT_US + 3 * SEGMENT_US + ACK_US + RTT_US;
    assert_us(
        completion_us(&through_a_link(tcp.clone(), 3, 100)),
        expected,
    );
    // With a window of three the FIN follows the first ACK, that of two segments; it arrives within the
    // 40 ms no more, so the third segment's ACK is the timer's.
    let tcp = TcpPlan {
        initial_window: 3,
        ..tcp
    };
    let expected = FIRST_SEGMENT_US + 3 * SEGMENT_US + 40_000 + RTT_US;
    assert_us(completion_us(&through_a_link(tcp, 3, 100)), expected);
}

#[test]
fn a_short_last_segment_takes_less() {
    let mut plan = through_a_link(sack_tcp(), 1, 100);
    plan.flows[0].size_bytes = Some(1500);
    assert_us(
        completion_us(&plan),
        FIRST_SEGMENT_US + SEGMENT_US + 540 + RTT_US,
    );
    let (_, totals) = run(&plan);
    assert_eq!(totals.flows.delivered_bytes, [1500]);
}

#[test]
fn frame_overhead_counts_on_the_wire() {
    let mut plan = through_a_link(sack_tcp(), 1, 100);
    plan.links[0].frame_overhead_bytes = 14;
    let expected = SYN_US + 14 + RTT_US + ACK_US + 14 + SEGMENT_US + 14 + RTT_US;
    assert_us(completion_us(&plan), expected);
    let (tables, totals) = run(&plan);
    // SYN, two ACKs, a segment and the FIN.
    assert_eq!(
        totals.links.departed_bytes,
        [SYN_US + 3 * ACK_US + SEGMENT_US + 5 * 14]
    );
    let enqueued = tables
        .packets
        .what
        .iter()
        .position(|&what| what == PacketAction::Enqueue as u8);
    assert_eq!(
        enqueued.map(|row| tables.packets.kind[row]),
        Some(0),
        "the SYN"
    );
}

#[test]
fn every_access_link_adds_its_serialisation() {
    // An access link of ten times the rate stores and forwards; only the first segment sees it in full.
    let mut plan = through_a_link(sack_tcp(), 10, 100);
    plan.links.push(link(80e6, 1000));
    plan.flows[0].forward = path(us(ONE_WAY_US), &[1, 0]);
    // SYN and the handshake's ACK pass it too; the segments queue behind that ACK at the bottleneck.
    let handshake_us = (SYN_US as f64) * 1.1 + RTT_US as f64;
    let first_us = handshake_us + (ACK_US as f64) * 0.1 + (SEGMENT_US as f64) * 0.1;
    let expected = first_us + (10 * SEGMENT_US) as f64 + RTT_US as f64;
    let found = completion_us(&plan);
    assert!(
        (found - expected).abs() < 1e-3,
        "{found} µs, expected {expected} µs"
    );
}

#[test]
fn times_are_exact_on_a_fast_link() {
    // 10 Gbit/s pass a byte in 0.8 ns.
    let mut plan = through_a_link(sack_tcp(), 10, 100);
    plan.links[0] = link(10e9, 100);
    let bytes = SYN_US + ACK_US + 10 * SEGMENT_US;
    let expected = 2.0 * RTT_US as f64 + bytes as f64 * 0.8e-3;
    let found = completion_us(&plan);
    assert!(
        (found - expected).abs() < 1e-6,
        "{found} µs, expected {expected} µs"
    );
}

#[test]
fn a_burst_above_the_limit_is_tail_dropped() {
    // Ten segments immediately behind the handshake's ACK, which is in transmission: four fit.
    let plan = through_a_link(sack_tcp(), 10, 4);
    let (tables, totals) = run(&plan);
    let events = &tables.events;
    let dropped: Vec<f64> = (0..events.kind.len())
        .filter(|&row| events.kind[row] == EventKind::Drop as u8)
        .map(|row| events.value[row])
        .take(6)
        .collect();
    assert_eq!(dropped, [4.0, 5.0, 6.0, 7.0, 8.0, 9.0]);
    assert_eq!(totals.flows.delivered_bytes, [10_000]);
}

#[test]
fn the_reverse_link_delays_the_acks() {
    // ACKs of 40 bytes through 80 kbit/s take 4 ms each: the last of ten comes after ten of them.
    let mut plan = through_a_link(sack_tcp(), 10, 100);
    plan.links.push(link(80e3, 100));
    plan.flows[0].reverse = path(us(ONE_WAY_US), &[1]);
    let syn_ack_us = 100 * SYN_US;
    let first_at_receiver_us = FIRST_SEGMENT_US + syn_ack_us + SEGMENT_US + ONE_WAY_US;
    let expected = first_at_receiver_us + 10 * 100 * ACK_US + ONE_WAY_US;
    assert_us(completion_us(&plan), expected);
}

#[test]
fn an_ack_has_the_bytes_of_its_options() {
    // RFC 2018 section 3: 2 bytes and 8 for each block, with two of padding; timestamps take 12.
    for (timestamps, plain) in [(false, 40), (true, 52)] {
        let tcp = TcpPlan {
            timestamps,
            ..sack_tcp()
        };
        let mut plan = through_a_link(tcp, 10, 100);
        plan.links.push(link(8e6, 100));
        plan.flows[0].reverse = path(us(ONE_WAY_US), &[1]);
        // Segments 2, 5 and 8 are lost, so one block, then two, are reported.
        plan.links[0].loss = Some(LossPlan::Every { packets: 3 });
        let packets = run(&plan).0.packets;
        let sizes: Vec<u32> = (0..packets.what.len())
            .filter(|&row| {
                packets.link[row] == 1 && packets.what[row] == PacketAction::Enqueue as u8
            })
            .map(|row| packets.wire_bytes[row])
            .take(8)
            .collect();
        let [one, two] = [1, 2].map(|blocks| plain + 4 + 8 * blocks);
        let syn_ack = if timestamps { 60 } else { SYN_US as u32 };
        assert_eq!(sizes, [syn_ack, plain, plain, one, one, two, two, two + 8]);
    }
}

#[test]
fn a_single_flow_with_enough_buffer_fills_the_link() {
    // Once slow start has filled it the link is never idle: from the first segment of the flight that
    // exceeds a round trip's 97 segments on, the end is a matter of counting.
    let segments = 3000;
    let plan = through_a_link(sack_tcp(), segments, 10_000);
    // Flights of 10, 20, 40 and 80 leave gaps; the fifth begins after four round trips.
    let first_us = FIRST_SEGMENT_US + 4 * (SEGMENT_US + RTT_US);
    let expected = first_us + (segments - 150) * SEGMENT_US + RTT_US;
    assert_us(completion_us(&plan), expected);
    let (_, totals) = run(&plan);
    assert_eq!(totals.flows.retransmissions, [0]);
}

#[test]
fn the_log_names_each_packets_times() {
    let (tables, _) = run(&through_a_link(sack_tcp(), 1, 100));
    let packets = &tables.packets;
    let first = |kind: u8, what: PacketAction| {
        (0..packets.time_s.len())
            .find(|&row| packets.kind[row] == kind && packets.what[row] == what as u8)
            .map(|row| Time::from_seconds(packets.time_s[row]))
    };
    let data = 2;
    let begin = SYN_US + RTT_US;
    assert_eq!(first(data, PacketAction::Enqueue), Some(us(begin)));
    assert_eq!(
        first(data, PacketAction::Dequeue),
        Some(us(begin + ACK_US + SEGMENT_US))
    );
    assert_eq!(
        first(data, PacketAction::Arrive),
        Some(us(begin + ACK_US + SEGMENT_US + ONE_WAY_US))
    );
}
