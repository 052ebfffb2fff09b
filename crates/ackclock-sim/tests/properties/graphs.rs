//! Random connected graphs, routed: conservation, determinism, every transfer arrives.

use ackclock_core::tables::{PacketAction, NONE};
use ackclock_core::{Rate, Time};
use ackclock_plan::{ChangePlan, FlowPlan, LinkPlan, Plan, Routing};
use proptest::prelude::*;
use proptest::sample::select;

use super::accounts::{check_balances, check_links, ledgers};
use super::determinism::{finished, run};
use super::plans::{any_tcp, cases, simulate};
use crate::kit::{self, between, change, flow, ms, nodes, routed, us};

/// Hosts on one or two switches of a tree with more links; some links fail and work again, some change.
pub fn any_graph(changing: bool) -> impl Strategy<Value = Plan> {
    let changes = if changing { 0..8_usize } else { 0..1 };
    let routing = select(vec![
        Routing::Single,
        Routing::Ecmp,
        Routing::EcmpPacket,
        Routing::Weighted,
    ]);
    (2..6_u32, 1..6_u32, routing, changes).prop_flat_map(|(hosts, switches, routing, changes)| {
        let edges = (hosts + switches + 6) as usize;
        let edges = prop::collection::vec(any_edge(), edges);
        let flows = prop::collection::vec(any_flow(), 1..6);
        let changes = prop::collection::vec(any_change(), changes);
        (edges, flows, changes).prop_map(move |(edges, flows, changes)| {
            assemble(hosts, switches, routing, &edges, flows, &changes)
        })
    })
}

/// Properties of an edge's two links, and a draw for the nodes that it joins.
type Edge = (u32, LinkPlan, LinkPlan);

fn any_edge() -> impl Strategy<Value = Edge> {
    (any::<u32>(), any_link(), any_link())
}

fn any_link() -> impl Strategy<Value = LinkPlan> {
    let delay_us = prop_oneof![Just(0), 0..20_000_u64];
    (2e5..1e7, 2..30_u32, delay_us, 1..5_u32, select(vec![0, 14])).prop_map(
        |(rate_bps, limit, delay_us, weight, frame_overhead_bytes)| LinkPlan {
            delay: us(delay_us),
            weight: f64::from(weight),
            frame_overhead_bytes,
            ..kit::link(rate_bps, limit)
        },
    )
}

fn any_flow() -> impl Strategy<Value = (FlowPlan, u32, u32)> {
    let draws = (any::<u32>(), any::<u32>());
    (any_tcp(), 0..60_000_u64, 0..500_000_u64, draws).prop_map(|(tcp, bytes, start_us, (a, b))| {
        let flow = FlowPlan {
            size_bytes: Some(bytes),
            start: us(start_us),
            ..flow(tcp)
        };
        (flow, a, b)
    })
}

fn any_change() -> impl Strategy<Value = (u64, u32, u32, f64)> {
    (0..2_000_000_u64, any::<u32>(), 0..3_u32, 2e5..1e7)
}

fn assemble(
    hosts: u32,
    switches: u32,
    routing: Routing,
    edges: &[Edge],
    flows: Vec<(FlowPlan, u32, u32)>,
    draws: &[(u64, u32, u32, f64)],
) -> Plan {
    let mut links = Vec::new();
    for (index, (draw, there, back)) in (0..).zip(edges) {
        let (a, b) = if index < hosts {
            (index, hosts + draw % switches)
        } else if index + 1 < hosts + switches {
            let switch = index - hosts + 1;
            (hosts + switch, hosts + draw % switch)
        } else {
            let nodes = hosts + switches;
            (draw % nodes, hosts + draw / nodes % switches)
        };
        if a != b {
            links.push(between(a, b, there.delay, there.clone()));
            links.push(between(b, a, back.delay, back.clone()));
        }
    }
    let flows = flows.into_iter().map(|(flow, a, b)| {
        let source = a % hosts;
        let destination = (source + 1 + b % (hosts - 1)) % hosts;
        routed(source, destination, flow)
    });
    let flows = flows.collect();
    let mut plan = kit::plan(ms(3000), links, flows);
    plan.nodes = nodes(hosts, hosts + switches);
    plan.routing = routing;
    for &(at_us, draw, kind, rate_bps) in draws {
        let link = draw % plan.links.len() as u32;
        plan.changes
            .extend(changes(us(at_us), link, kind, rate_bps));
    }
    plan
}

/// A failure and its end, or another rate, or another delay.
fn changes(at: Time, link: u32, kind: u32, rate_bps: f64) -> Vec<ChangePlan> {
    let change = change(at, link);
    match kind {
        0 => {
            let (down, up) = (Some(false), Some(true));
            let later = at + us(rate_bps as u64 / 20);
            vec![
                ChangePlan { up: down, ..change },
                ChangePlan {
                    at: later,
                    up,
                    ..change
                },
            ]
        }
        1 => {
            let rate = Some(Rate::from_bits_per_second(rate_bps));
            vec![ChangePlan { rate, ..change }]
        }
        _ => {
            let delay = Some(us(rate_bps as u64 / 300));
            vec![ChangePlan { delay, ..change }]
        }
    }
}

proptest! {
    #![proptest_config(cases(150))]

    #[test]
    fn no_packet_appears_or_disappears_on_a_graph(
        plan in any_graph(false),
        seed in any::<u64>(),
        stops in prop::collection::vec(0.0..1.0_f64, 0..20),
    ) {
        let mut simulation = simulate(&plan, seed);
        let mut stops = stops;
        stops.sort_by(f64::total_cmp);
        for stop in stops {
            check_balances(&mut simulation, plan.duration.scaled(stop))?;
        }
        check_balances(&mut simulation, plan.duration)?;
        let log = simulation.drain().packets;
        let totals = simulation.finish();
        let ledgers = ledgers(&log, plan.links.len())?;
        check_links(&plan, &simulation, &ledgers, &totals)?;
        for (index, counts) in totals.links.sojourn_counts.iter().enumerate() {
            let departed = totals.links.departed_total_p[index];
            prop_assert!(counts.iter().sum::<u64>().abs_diff(departed) <= 1);
        }
    }

    #[test]
    fn no_packet_appears_or_disappears_when_links_fail_and_change(
        plan in any_graph(true),
        seed in any::<u64>(),
        stops in prop::collection::vec(0.0..1.0_f64, 0..20),
    ) {
        let mut simulation = simulate(&plan, seed);
        let mut stops = stops;
        stops.sort_by(f64::total_cmp);
        for stop in stops {
            check_balances(&mut simulation, plan.duration.scaled(stop))?;
        }
        check_balances(&mut simulation, plan.duration)?;
        let log = simulation.drain().packets;
        let totals = simulation.finish();
        let lost_by_links: u64 = totals.links.lost_total_p.iter().sum();
        let lost: Vec<u32> = (0..log.what.len())
            .filter(|&row| log.what[row] == PacketAction::Loss as u8)
            .map(|row| log.link[row])
            .collect();
        let by_links = lost.iter().filter(|&&link| link != NONE).count();
        prop_assert_eq!(by_links as u64, lost_by_links);
        for (index, link) in simulation.links().iter().enumerate() {
            let links = &totals.links;
            let gone = links.lost_total_p[index] + links.dropped_total_p[index];
            let out = links.departed_total_p[index] + gone + link.held_packets(simulation.now());
            prop_assert_eq!(links.arrived_total_p[index], out);
        }
    }

    #[test]
    fn every_transfer_is_delivered_completely(plan in any_graph(true), seed in any::<u64>()) {
        let mut plan = plan;
        plan.duration = Time::from_seconds(100_000.0);
        plan.record.interval = Time::from_seconds(10_000.0);
        plan.record.packets = false;
        let mut simulation = simulate(&plan, seed);
        simulation.advance(plan.duration);
        let totals = simulation.finish();
        for (index, flow) in plan.flows.iter().enumerate() {
            prop_assert_eq!(Some(totals.flows.delivered_bytes[index]), flow.size_bytes);
            prop_assert!(totals.flows.end_s[index].is_finite());
        }
        prop_assert_eq!(simulation.packets_in_transit(), 0);
    }

    #[test]
    fn the_same_seed_gives_the_same_run_however_it_is_stepped(
        plan in any_graph(true),
        seed in any::<u64>(),
        stops in prop::collection::vec(0.0..1.0_f64, 1..10),
    ) {
        let mut stops = stops;
        stops.sort_by(f64::total_cmp);
        prop_assert!(run(&plan, seed, &[]) == run(&plan, seed, &stops));
    }

    /// Without the log most transmissions end without an event; nothing else may change.
    #[test]
    fn the_log_changes_nothing(plan in any_graph(true), seed in any::<u64>()) {
        let totals = |packets| {
            let mut plan = plan.clone();
            plan.record.packets = packets;
            let mut simulation = simulate(&plan, seed);
            simulation.advance(plan.duration);
            let tables = simulation.drain();
            let (events, samples) = (tables.events, tables.queue_samples);
            format!("{:?}{events:?}{samples:?}{:?}", simulation.finish(), tables.flow_samples)
        };
        prop_assert!(totals(true) == totals(false));
    }

    /// Parts of a graph on threads of their own write the rows of a run on one thread, however it is stepped.
    #[test]
    fn threads_change_nothing(
        plan in any_graph(false),
        seed in any::<u64>(),
        threads in 2..6_usize,
        stops in prop::collection::vec(0.0..1.0_f64, 0..5),
    ) {
        let mut plan = plan;
        plan.record.packets = false;
        plan.record.paths = true;
        plan.record.all_links = true;
        let mut stops = stops;
        stops.sort_by(f64::total_cmp);
        let mut divided = simulate(&plan, seed);
        if divided.enable_threads(threads).is_ok() {
            prop_assert!(finished(&mut divided, &plan, &stops) == run(&plan, seed, &[]));
        }
    }
}
