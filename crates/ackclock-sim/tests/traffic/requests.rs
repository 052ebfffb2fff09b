//! Connections that the receiver opens, on links.

use ackclock_core::tables::EventKind;
use ackclock_core::Time;
use ackclock_plan::{FlowPlan, Plan, TcpPlan};

use super::run;
use crate::kit::{link, linux, ms, path, plan, transfer};

/// A transfer of `segments` that the receiver asks for with 100 bytes; 30 ms there, 20 ms back.
fn client_flow(tcp: TcpPlan, segments: u64) -> FlowPlan {
    FlowPlan {
        start: ms(1000),
        request_bytes: Some(100),
        forward: path(ms(30), &[0]),
        reverse: path(ms(20), &[1]),
        ..transfer(tcp, segments)
    }
}

/// Both links pass 1000 bytes in a millisecond.
fn network(flows: Vec<FlowPlan>) -> Plan {
    plan(ms(20_000), vec![link(8e6, 100), link(8e6, 100)], flows)
}

#[test]
fn times_are_measured_at_the_client() {
    let (simulation, tables, totals) = run(&network(vec![client_flow(linux(), 3)]), 1);
    let flows = &totals.flows;
    // SYN and SYN/ACK have 60 bytes, request 52 + 100, data 1052 each: at 8 Mbit/s 0.060, 0.060, 0.152 and 1.052 ms.
    let open_s = 1.0 + 0.020 + 0.030 + 2.0 * 0.000_060;
    assert_eq!(flows.start_s, [1.0]);
    assert!((flows.established_s[0] - open_s).abs() < 1e-12);
    let complete_s = open_s + 0.020 + 0.000_152 + 3.0 * 0.001_052 + 0.030;
    assert!(
        (flows.end_s[0] - complete_s).abs() < 1e-12,
        "{}",
        flows.end_s[0]
    );
    assert!((flows.fct_s[0] - (complete_s - 1.0)).abs() < 1e-12);
    assert_eq!(flows.delivered_bytes, [3000]);
    assert_eq!(simulation.packets_in_transit(), 0);
    let (sent, gone) = simulation.packets_sent_and_accounted();
    assert_eq!(sent, gone);
    let kinds: Vec<u8> = tables.events.kind.clone();
    assert_eq!(
        kinds,
        [EventKind::Established as u8, EventKind::Finished as u8],
        "each once"
    );
    assert!((tables.events.time_s[0] - open_s).abs() < 1e-12);
    assert!((tables.events.time_s[1] - complete_s).abs() < 1e-12);
}

#[test]
fn events_after_the_clients_clock_are_not_counted() {
    // The last byte has left the link at 1.0834, but arrives at 1.1134 s.
    let mut plan = network(vec![client_flow(linux(), 3)]);
    plan.duration = ms(1100);
    let (_, _, totals) = run(&plan, 1);
    assert!(totals.flows.end_s[0].is_nan());
    assert!(totals.flows.established_s[0].is_finite());
}

/// The receiver's clock runs ahead of the simulation's by 3 s, the SYN's timer strikes each second.
#[test]
fn a_syn_is_retransmitted_while_the_first_is_in_transit() {
    let far = FlowPlan {
        forward: path(ms(3000), &[0]),
        reverse: path(ms(1000), &[]),
        ..client_flow(linux(), 1)
    };
    let (_, tables, totals) = run(&network(vec![far]), 1);
    // At 1, 2 and 4 s; the SYN/ACK of the first arrives at 1 + 1 + 3 s and its transmission.
    assert_eq!(totals.flows.syn_retransmissions, [2]);
    assert!((totals.flows.established_s[0] - 5.000_06).abs() < 1e-9);
    let syns: Vec<f64> = (0..tables.events.kind.len())
        .filter(|&row| tables.events.kind[row] == EventKind::SynRetransmission as u8)
        .map(|row| tables.events.time_s[row])
        .collect();
    assert_eq!(syns, [2.0, 4.0]);
    let arrivals: Vec<f64> = (0..tables.packets.kind.len())
        .filter(|&row| tables.packets.kind[row] == 7)
        .map(|row| tables.packets.time_s[row])
        .collect();
    assert_eq!(arrivals, [2.0, 3.0, 5.0], "SYNs at the sender");
    assert!(totals.flows.end_s[0].is_finite());
}

#[test]
fn several_clients_on_one_path_are_independent() {
    let flows: Vec<FlowPlan> = (0..20)
        .map(|index| FlowPlan {
            start: Time::from_microseconds(700 * index),
            ..client_flow(linux(), 1 + index)
        })
        .collect();
    let (simulation, tables, totals) = run(&network(flows), 1);
    assert!(totals.flows.end_s.iter().all(|end_s| end_s.is_finite()));
    assert_eq!(simulation.packets_in_transit(), 0);
    let finished = EventKind::Finished as u8;
    let ends = tables.events.kind.iter().filter(|kind| **kind == finished);
    assert_eq!(ends.count(), 20);
}

#[test]
fn a_request_of_more_than_a_segment_is_rejected() {
    let mut large = client_flow(linux(), 1);
    large.request_bytes = Some(1001);
    let refused = ackclock_sim::Simulation::new(&network(vec![large]), 1).map(|_| ());
    let message = refused.expect_err("too large").to_string();
    assert_eq!(
        message,
        "request_bytes is 1001, but at most 1000 is possible"
    );
}
