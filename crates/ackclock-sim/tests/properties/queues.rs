//! Disciplines in a network: shapers that hold packets back, and queues for SYNs and FINs.

use std::collections::HashMap;

use ackclock_core::tables::{PacketAction, Packets};
use ackclock_plan::{Plan, QueuePlan};
use proptest::prelude::*;
use serde_json::json;

use super::plans::{any_plan, cases, finite_plan, simulate};
use crate::kit::{link, linux, ms, path, plan, transfer};

/// Wire bytes of the longest packet; the clock of `cake` lets one leave before its time has come.
const LONGEST_BYTES: f64 = 1600.0;

/// Kinds of packets as the log numbers them.
const SYN: u8 = 0;
const SYN_ACK: u8 = 1;
const DATA: u8 = 2;
const FIN: u8 = 3;
const FIN_ACK: u8 = 5;

fn queue(discipline: &str, parameters: serde_json::Value) -> QueuePlan {
    QueuePlan {
        discipline: discipline.to_owned(),
        parameters,
    }
}

fn tbf(rate_bps: f64, burst_bytes: u64, limit_bytes: u64, per_flow: bool) -> QueuePlan {
    queue(
        "tbf",
        json!({
            "rate_bps": rate_bps, "burst_bytes": burst_bytes, "limit_bytes": limit_bytes,
            "latency_s": null, "per_flow": per_flow,
        }),
    )
}

fn cake(rate_bps: f64, limit_bytes: u64, ack_filter: &str) -> QueuePlan {
    queue(
        "cake",
        json!({
            "bandwidth_bps": rate_bps, "diffserv": "diffserv4", "isolation": "triple-isolate",
            "ack_filter": ack_filter, "rtt_s": 0.1, "link_layer": "noatm", "overhead": null, "mpu": 0,
            "memlimit_bytes": limit_bytes,
        }),
    )
}

/// Bytes per second of a shaper, and bytes that may leave at once.
fn rate_and_burst(queue: &QueuePlan) -> (f64, f64) {
    let number = |key: &str| queue.parameters[key].as_f64();
    let rate = number("rate_bps").or_else(|| number("bandwidth_bps"));
    let burst = number("burst_bytes").unwrap_or(LONGEST_BYTES);
    (rate.unwrap_or(0.0) / 8.0, burst)
}

/// A plan of which all links, or the bottleneck alone, are shaped.
fn shaped_plan(plans: impl Strategy<Value = Plan>) -> impl Strategy<Value = Plan> {
    let (rates, limits) = (5e4..5e6_f64, 4000_u64..50_000);
    let tbfs = (
        rates.clone(),
        1600_u64..20_000,
        limits.clone(),
        any::<bool>(),
    );
    let tbfs = tbfs.prop_map(|(rate, burst, limit, per_flow)| tbf(rate, burst, limit, per_flow));
    let filters = prop::sample::select(vec!["off", "on", "aggressive"]);
    let cakes =
        (rates, limits, filters).prop_map(|(rate, limit, filter)| cake(rate, limit, filter));
    let shaper = prop_oneof![tbfs, cakes];
    (plans, shaper, any::<bool>()).prop_map(|(mut plan, shaper, everywhere)| {
        let links = if everywhere { plan.links.len() } else { 1 };
        for link in &mut plan.links[..links] {
            link.queue = shaper.clone();
        }
        plan
    })
}

/// Packets of a kind that a log says were dropped.
fn dropped(log: &Packets, kinds: &[u8]) -> usize {
    (0..log.time_s.len())
        .filter(|row| log.what[*row] == PacketAction::Drop as u8 && kinds.contains(&log.kind[*row]))
        .count()
}

proptest! {
    #![proptest_config(cases(200))]

    /// Packets sent are gone or in transit at any time, link and discipline agree on what is held, and no
    /// flow gets more than burst + rate × time through a shaped bottleneck.
    #[test]
    fn shapers_keep_the_accounts_and_the_rate(
        plan in shaped_plan(any_plan()),
        seed in any::<u64>(),
        stops in prop::collection::vec(0.0..1.0_f64, 0..20),
    ) {
        let mut simulation = simulate(&plan, seed);
        let mut stops = stops;
        stops.push(1.0);
        stops.sort_by(f64::total_cmp);
        for stop in stops {
            simulation.advance(plan.duration.scaled(stop));
            let (sent, gone) = simulation.packets_sent_and_accounted();
            prop_assert_eq!(sent, gone + simulation.packets_in_transit());
            for link in simulation.links() {
                let held = link.discipline_backlog();
                prop_assert_eq!(link.backlog(), (held.packets, held.bytes));
            }
        }
        let log = simulation.drain().packets;
        let (rate, burst) = rate_and_burst(&plan.links[0].queue);
        let frame = f64::from(plan.links[0].frame_overhead_bytes);
        let mut bytes: HashMap<u32, f64> = HashMap::new();
        for row in (0..log.time_s.len()).filter(|row| log.link[*row] == 0) {
            if log.what[row] == PacketAction::Dequeue as u8 {
                let sum = bytes.entry(log.flow[row]).or_default();
                *sum += f64::from(log.wire_bytes[row]) + frame;
                prop_assert!(*sum <= burst + rate * log.time_s[row] + 0.01);
            }
        }
    }

    /// However slow the shaper, transfers end.
    #[test]
    fn transfers_through_shapers_end(plan in shaped_plan(finite_plan()), seed in any::<u64>()) {
        let mut simulation = simulate(&plan, seed);
        simulation.advance(plan.duration);
        let totals = simulation.finish();
        for (index, flow) in plan.flows.iter().enumerate() {
            let size = flow.size_bytes.unwrap_or(0);
            prop_assert_eq!(totals.flows.delivered_bytes[index], size);
        }
        prop_assert_eq!(simulation.packets_in_transit(), 0);
    }
}

/// Short transfers that begin one after the other and overload a queue of this discipline.
fn overloaded(discipline: &str) -> Packets {
    let flows = (0..200).map(|index| {
        let mut flow = transfer(linux(), 60);
        flow.start = ms(20 * index);
        flow.forward = path(ms(10), &[0]);
        flow.reverse = path(ms(10), &[]);
        flow
    });
    let mut plan = plan(ms(60_000), vec![link(2e6, 20)], flows.collect());
    plan.links[0].queue = queue(discipline, json!({ "limit_packets": 20 }));
    let mut simulation = simulate(&plan, 1);
    simulation.advance(plan.duration);
    simulation.drain().packets
}

#[test]
fn no_syn_is_lost_while_data_are() {
    let fifo = overloaded("pfifo");
    assert!(dropped(&fifo, &[DATA]) > 100 && dropped(&fifo, &[SYN, SYN_ACK]) > 5);
    assert!(dropped(&fifo, &[FIN, FIN_ACK]) > 5);
    let syn = overloaded("synprio");
    assert!(dropped(&syn, &[DATA]) > 100 && dropped(&syn, &[FIN, FIN_ACK]) > 5);
    assert_eq!(dropped(&syn, &[SYN, SYN_ACK]), 0);
    let both = overloaded("synfinprio");
    assert!(dropped(&both, &[DATA]) > 100);
    assert_eq!(dropped(&both, &[SYN, SYN_ACK, FIN, FIN_ACK]), 0);
}
