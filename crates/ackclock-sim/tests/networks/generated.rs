//! Transfers that the seed draws and UDP, between the hosts of a graph.

use ackclock_core::tables::{Tables, Totals};
use ackclock_core::Time;
use ackclock_plan::{
    DatagramPlan, EndsPlan, GroupPlan, Plan, PopulationPlan, Routing, TrafficPlan,
};
use ackclock_sim::Simulation;
use serde_json::{json, Value};

use crate::kit::fat_tree::FatTree;
use crate::kit::{between, link, linux, ms, nodes, path, plan, reno, us};

const BYTES: u64 = 30_000;

/// 16 hosts on a fat tree of 100 Mb/s; short queues, so that there is loss.
pub(super) fn tree(
    duration: Time,
    traffic: Vec<TrafficPlan>,
    datagrams: Vec<DatagramPlan>,
) -> Plan {
    let tree = FatTree::new(4, 3);
    let edges = tree.edges();
    let both = edges.into_iter().flat_map(|(a, b)| [(a, b), (b, a)]);
    let links = both.map(|(a, b)| between(a, b, us(10), link(1e8, 12)));
    let mut plan = plan(duration, links.collect(), vec![]);
    plan.nodes = nodes(tree.hosts(), tree.nodes());
    plan.routing = Routing::Ecmp;
    plan.record.packets = false;
    plan.groups = vec![GroupPlan {
        name: "short".to_owned(),
        congestion: Some(reno()),
        tcp: Some(linux()),
        slow_reader: None,
        writes: None,
        misbehaviour: None,
        dscp: 0,
    }];
    Plan {
        traffic,
        datagrams,
        ..plan
    }
}

pub(super) fn among(sources: &[u32], destinations: &[u32], workload: Value) -> TrafficPlan {
    let random = serde_json::from_value(json!("random")).expect("a pairing");
    TrafficPlan {
        group: 0,
        priority: 0,
        request_bytes: None,
        application_rate: None,
        population: PopulationPlan::Nodes {
            sources: sources.to_vec(),
            destinations: destinations.to_vec(),
            pairing: random,
        },
        workload: serde_json::from_value(workload).expect("a workload"),
    }
}

pub(super) fn poisson(per_s: f64, stop_s: f64) -> Value {
    json!({
        "start_s": 0.0,
        "stop_s": stop_s,
        "arrivals": { "kind": "poisson", "per_s": per_s },
        "size": { "kind": "fixed", "bytes": BYTES },
    })
}

/// From host to host, 1000 bytes each.
fn datagrams(source: u32, destination: u32, sending: Value) -> DatagramPlan {
    DatagramPlan {
        group: 0,
        start: ms(100),
        stop: Some(ms(1100)),
        priority: 0,
        ends: Some(EndsPlan {
            source,
            destination,
        }),
        forward: path(Time::ZERO, &[]),
        reverse: path(Time::ZERO, &[]),
        payload_bytes: 972,
        header_bytes: 28,
        source: serde_json::from_value(sending).expect("a source"),
    }
}

fn constant(per_s: f64) -> Value {
    json!({ "kind": "constant", "per_s": per_s })
}

fn adaptive(per_s: f64) -> Value {
    json!({ "kind": "adaptive", "target_s": 1.0, "min_per_s": per_s, "max_per_s": per_s })
}

/// A run in strides of 5 ms; at the end of each the packets' books agree.
fn run(plan: &Plan, seed: u64) -> (Simulation, Tables, Totals) {
    let mut simulation = Simulation::new(plan, seed).expect("a sound plan");
    while simulation.now() < plan.duration {
        simulation.advance((simulation.now() + ms(5)).min(plan.duration));
        let (sent, gone) = simulation.packets_sent_and_accounted();
        assert_eq!(sent, gone + simulation.packets_in_transit());
    }
    let (tables, totals) = (simulation.drain(), simulation.finish());
    (simulation, tables, totals)
}

#[test]
fn transfers_between_random_hosts_complete_and_counts_agree() {
    let everyone: Vec<u32> = (0..16).collect();
    // 3000 a second of 30 KB among 16 hosts: 45 % of each host's link.
    let traffic = among(&everyone, &everyone, poisson(3000.0, 0.3));
    let plan = tree(ms(20_000), vec![traffic], vec![]);
    let (simulation, _, totals) = run(&plan, 11);
    let (flows, links) = (&totals.flows, &totals.links);
    // 900 with a standard deviation of 30.
    let number = flows.flow.len();
    assert!((750..1050).contains(&number), "{number}");
    assert!(flows.delivered_bytes.iter().all(|&bytes| bytes == BYTES));
    assert!(flows.end_s.iter().all(|end_s| end_s.is_finite()));
    assert_eq!(simulation.packets_in_transit(), 0);
    assert_eq!(simulation.senders().count(), 0, "all are over");
    let ends = flows.source_node.iter().zip(&flows.destination_node);
    assert!(ends.clone().all(|(a, b)| a != b && *a < 16 && *b < 16));
    let pairs: std::collections::BTreeSet<_> = ends.collect();
    assert!(pairs.len() > 200, "of 240: {}", pairs.len());
    let dropped: u64 = links.dropped_total_p.iter().sum();
    assert!(dropped > 0, "queues of 12 packets overflow");
    for index in 0..plan.links.len() {
        let out = links.departed_total_p[index] + links.dropped_total_p[index];
        assert_eq!(links.arrived_total_p[index], out, "all have left");
    }
}

/// Two hosts of one switch: two links of 10 µs there and two back.
#[test]
fn the_base_rtt_of_a_transfer_is_that_of_its_hosts() {
    let traffic = among(&[0], &[1], poisson(10.0, 1.0));
    let plan = tree(ms(2000), vec![traffic], vec![]);
    let (_, _, totals) = run(&plan, 3);
    let base = &totals.flows.base_rtt_s;
    assert!(!base.is_empty());
    assert!(base.iter().all(|rtt_s| (rtt_s - 40e-6).abs() < 1e-15));
}

/// Across the roots there are six links: 60 µs, and six times the 80 µs that 1000 bytes take.
#[test]
fn a_datagram_crosses_the_tree() {
    let plan = tree(ms(1500), vec![], vec![datagrams(0, 15, constant(100.0))]);
    let (_, _, totals) = run(&plan, 1);
    let flows = &totals.flows;
    assert_eq!((flows.source_node[0], flows.destination_node[0]), (0, 15));
    assert_eq!(
        (flows.sent_packets[0], flows.received_packets[0]),
        (100, 100)
    );
    assert_eq!(flows.delivered_bytes, [100 * 972]);
    assert!((flows.delay_mean_s[0] - 540e-6).abs() < 1e-12);
    assert!((flows.base_rtt_s[0] - 120e-6).abs() < 1e-15);
    let departed: u64 = totals.links.departed_total_p.iter().sum();
    assert_eq!(departed, 600);
}

/// Back, an echo of one byte and 28 of headers takes 2.32 µs a link.
#[test]
fn an_echo_crosses_it_back() {
    let plan = tree(ms(1500), vec![], vec![datagrams(0, 15, adaptive(100.0))]);
    let (simulation, tables, totals) = run(&plan, 1);
    assert_eq!(totals.flows.received_packets, [100]);
    let departed: u64 = totals.links.departed_total_p.iter().sum();
    assert_eq!(departed, 1200);
    let rtt_s = *tables.flow_samples.srtt_s.last().expect("samples");
    assert!(
        (rtt_s - (540e-6 + 60e-6 + 6.0 * 2.32e-6)).abs() < 1e-12,
        "{rtt_s}"
    );
    assert_eq!(simulation.packets_in_transit(), 0);
}

/// Several to one host, more than its link takes, with transfers between; the seed alone decides.
fn crowd() -> Plan {
    let sources: Vec<u32> = (0..8).collect();
    let traffic = among(&sources, &[15, 14], poisson(300.0, 1.0));
    let two = vec![
        datagrams(1, 15, constant(9000.0)),
        datagrams(2, 15, constant(5000.0)),
        datagrams(8, 3, adaptive(500.0)),
    ];
    tree(ms(1200), vec![traffic], two)
}

#[test]
fn counts_agree_when_udp_crowds_out_a_host() {
    let plan = crowd();
    let (_, _, totals) = run(&plan, 5);
    let flows = &totals.flows;
    assert_eq!(
        flows.flow[..3],
        [0, 1, 2],
        "datagrams come before the transfers"
    );
    for flow in 0..2 {
        let (sent, received) = (flows.sent_packets[flow], flows.received_packets[flow]);
        assert_eq!(sent, received + flows.dropped_packets[flow]);
    }
    assert!(flows.dropped_packets[0] > 0 && flows.dropped_packets[1] > 0);
    // In the second of 14 000 offered datagrams, host 15's link passes 12 500 packets of 1000 bytes, and some are
    // TCP's.
    let udp = flows.received_packets[0] + flows.received_packets[1];
    assert!((9000..12_512).contains(&udp), "{udp}");
    assert!(flows.retransmissions[3..].iter().sum::<u64>() > 0);
}

#[test]
fn the_same_seed_gives_the_same_bytes_however_it_is_stepped() {
    let plan = crowd();
    let whole = |seed| {
        let mut simulation = Simulation::new(&plan, seed).expect("a sound plan");
        simulation.advance(plan.duration);
        format!("{:?}{:?}", simulation.drain(), simulation.finish())
    };
    let (_, tables, totals) = run(&plan, 5);
    assert!(whole(5) == format!("{tables:?}{totals:?}"));
    assert!(whole(5) != whole(6));
}
