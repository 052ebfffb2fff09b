//! Programs' packets, which enter the simulation from outside and leave it.

use ackclock_core::Time;
use ackclock_plan::{DatagramPlan, Plan};
use ackclock_sim::external::{Delivered, ExternalPacket, FlowEnd};
use ackclock_sim::packet::Ecn;
use ackclock_sim::Simulation;
use serde_json::json;

use crate::kit::{link, ms, path, plan};

const HOUR: Time = Time::from_milliseconds(3_600_000);

/// Two flows of programs over a link of 8 Mbit/s with two packets of queue: 10 ms there and 20 ms back.
fn network() -> Plan {
    let programs = DatagramPlan {
        group: 0,
        start: HOUR,
        stop: None,
        priority: 0,
        ends: None,
        forward: path(ms(10), &[0]),
        reverse: path(ms(20), &[]),
        payload_bytes: 1,
        header_bytes: 28,
        source: serde_json::from_value(json!({ "kind": "external" })).expect("a source"),
    };
    Plan {
        datagrams: vec![programs.clone(), programs],
        ..plan(HOUR, vec![link(8e6, 2)], vec![])
    }
}

fn packet(tag: u32, ecn: Ecn) -> ExternalPacket {
    ExternalPacket {
        bytes: vec![tag as u8; 1000],
        payload_bytes: 960,
        ecn,
        dscp: 0,
        tag,
    }
}

fn delivered(simulation: &mut Simulation) -> Vec<Delivered> {
    let mut all = Vec::new();
    simulation.take_delivered(&mut all);
    all
}

/// A packet takes 1 ms to send and 10 ms there, and comes with its bytes; the other way it takes 20 ms.
#[test]
fn a_packet_crosses_the_network_both_ways() {
    let mut simulation = Simulation::new(&network(), 1).expect("a sound plan");
    simulation.advance(ms(5));
    simulation.enter(1, FlowEnd::Sender, packet(7, Ecn::Ect1));
    simulation.advance(ms(5));
    assert_eq!(simulation.next_event().min(ms(6)), ms(6));
    simulation.advance(ms(40));
    let there = delivered(&mut simulation);
    let [one] = &there[..] else {
        panic!("found {there:?}")
    };
    assert_eq!(
        (one.sent, one.due, one.end),
        (ms(5), ms(16), FlowEnd::Receiver)
    );
    assert_eq!(
        (one.packet.tag, one.packet.ecn, one.packet.bytes.len()),
        (7, Ecn::Ect1, 1000)
    );
    simulation.enter(1, FlowEnd::Receiver, packet(8, Ecn::NotEct));
    simulation.advance(ms(100));
    let back = delivered(&mut simulation);
    assert_eq!(back.len(), 1);
    assert_eq!(
        (back[0].sent, back[0].due, back[0].end),
        (ms(40), ms(60), FlowEnd::Sender)
    );
    let flows = simulation.finish().flows;
    assert!(flows.start_s[0].is_nan(), "no packet: it has not begun");
    assert_eq!((flows.start_s[1], flows.sent_packets[1]), (0.005, 1));
    assert_eq!((flows.delivered_bytes[1], flows.sent_bytes[1]), (960, 1000));
}

/// Five packets at once: one is sent, two wait, and two are dropped.
#[test]
fn packets_of_two_flows_share_the_queue() {
    let mut simulation = Simulation::new(&network(), 1).expect("a sound plan");
    for number in 0..5 {
        simulation.enter(number % 2, FlowEnd::Sender, packet(number, Ecn::NotEct));
        simulation.advance(Time::ZERO);
    }
    simulation.advance(ms(100));
    let mut there = delivered(&mut simulation);
    there.sort_by_key(|one| one.due);
    let found: Vec<(u32, Time)> = there.iter().map(|one| (one.packet.tag, one.due)).collect();
    assert_eq!(found, [(0, ms(11)), (1, ms(12)), (2, ms(13))]);
    let (sent, accounted) = simulation.packets_sent_and_accounted();
    assert_eq!((sent, accounted), (5, 5));
}

/// A flow that is none of programs' takes nothing.
#[test]
fn only_flows_of_programs_take_packets() {
    let mut simulation = Simulation::new(&network(), 1).expect("a sound plan");
    simulation.enter(2, FlowEnd::Sender, packet(0, Ecn::NotEct));
    simulation.advance(ms(100));
    assert!(delivered(&mut simulation).is_empty());
    assert!(simulation.next_event() > ms(100));
}
