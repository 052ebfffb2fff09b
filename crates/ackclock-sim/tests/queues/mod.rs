//! Purpose of queue disciplines, in whole simulations: isolation, protected SYNs, delays that follow a target.

use ackclock_core::tables::Totals;
use ackclock_core::Time;
use ackclock_plan::{FlowPlan, PcapPlan, Plan, QueuePlan, RecordPlan, Routing};
use ackclock_sim::Simulation;

use crate::kit::cards::disciplines;
use crate::kit::{flow, linux, ms, path, transfer};

/// A discipline with the defaults of its algorithm spec, room for `limit_packets`, and changes.
fn queue(name: &str, limit_packets: u32, changes: &[(&str, f64)]) -> QueuePlan {
    let mut queue = disciplines(limit_packets)
        .into_iter()
        .find(|plan| plan.discipline == name)
        .expect("a known discipline");
    for &(name, value) in changes {
        queue.parameters[name] = value.into();
    }
    queue
}

/// Flows through one bottleneck.
fn run(rate_bps: f64, rtt: Time, queue: QueuePlan, mut flows: Vec<FlowPlan>) -> Totals {
    for flow in &mut flows {
        flow.forward = path(rtt.scaled(0.5), &[0]);
        flow.reverse = path(rtt.scaled(0.5), &[]);
    }
    let mut link = crate::kit::link(rate_bps, 1);
    link.queue = queue;
    let plan = Plan {
        duration: ms(60_000),
        warmup: ms(20_000),
        nodes: vec![],
        links: vec![link],
        routing: Routing::Single,
        flowlet_gap: None,
        changes: vec![],
        groups: vec![],
        flows,
        traffic: vec![],
        datagrams: vec![],
        record: RecordPlan {
            interval: ms(1000),
            packets: false,
            pcap: PcapPlan::Senders(false),
            traffic: false,
            all_links: true,
            delays: false,
            cubic_state: false,
            paths: false,
        },
    };
    let mut simulation = Simulation::new(&plan, 1).expect("a sound plan");
    simulation.advance(plan.duration);
    simulation.drain();
    simulation.finish()
}

fn starting(flow: FlowPlan, at_ms: u64) -> FlowPlan {
    FlowPlan {
        start: ms(at_ms),
        ..flow
    }
}

/// 50 transfers of 20 segments, one a second, besides a long one at 20 Mb/s, 50 ms. Alone each takes the
/// handshake, then flights of 10 and 10 segments: 150 ms and a few for transmission.
#[test]
fn flow_queues_isolate_short_transfers_from_a_long_one() {
    let slowest = |name: &str, limit_packets| {
        let short = (0..50).map(|n| starting(transfer(linux(), 20), 5000 + 1000 * n));
        let flows = std::iter::once(flow(linux())).chain(short).collect();
        let totals = run(20e6, ms(50), queue(name, limit_packets, &[]), flows);
        totals.flows.fct_s[1..].iter().copied().fold(0.0, f64::max)
    };
    let fifo = slowest("pfifo", 166);
    assert!(fifo > 0.3, "{fifo}");
    for (name, limit_packets) in [("fq_codel", 10_240), ("sfq", 127)] {
        let isolated = slowest(name, limit_packets);
        assert!(isolated < 0.185, "{name}: {isolated}");
    }
}

/// 20 long flows and a short one every 200 ms at 2.4 Mb/s, 52 ms: data are dropped by the thousand.
#[test]
fn no_syn_is_lost_where_syns_are_favoured() {
    let lost = |name: &str, limit_packets| {
        let long = (0..20).map(|n| starting(flow(linux()), 10 * n));
        let short = (0..250).map(|n| starting(transfer(linux(), 4), 1000 + 200 * n));
        let queue = queue(name, limit_packets, &[]);
        let flows = run(2.4e6, ms(52), queue, long.chain(short).collect()).flows;
        let drops: u64 = flows.dropped_packets.iter().sum();
        assert!(drops > 1000, "{name}: {drops}");
        flows.syn_retransmissions.iter().sum::<u64>()
    };
    for (name, limit_packets) in [("pfifo", 30), ("red", 30), ("codel", 1000)] {
        assert!(lost(name, limit_packets) > 20, "{name}");
    }
    for (name, limit_packets) in [("redfavor", 30), ("spa", 1000)] {
        assert_eq!(lost(name, limit_packets), 0, "{name}");
    }
}

/// 64 flows at 10 Mb/s, 100 ms, 1000 packets: the delay follows the target, and the link stays busy. From 20 ms on
/// ARED holds the delay at the target itself (below, its floor of five packets, 12 ms, is above it).
#[test]
fn the_delay_follows_the_target() {
    let measured = |name: &str, target_s: f64| {
        let flows = (0..64).map(|n| starting(flow(linux()), 15 * n)).collect();
        let queue = queue(name, 1000, &[("target_s", target_s)]);
        let totals = run(10e6, ms(100), queue, flows);
        let bytes: u64 = totals.flows.measured_bytes.iter().sum();
        let goodput_bps = 8.0 * bytes as f64 / 40.0;
        assert!(goodput_bps > 9e6, "{name} {target_s}: {goodput_bps}");
        totals.links.sojourn_mean_s[0]
    };
    for name in ["codel", "ared"] {
        let delays = [0.005, 0.02, 0.03].map(|target_s| measured(name, target_s));
        assert!(delays.is_sorted(), "{name}: {delays:?}");
    }
    for target_s in [0.02, 0.03] {
        let delay_s = measured("ared", target_s);
        assert!((delay_s / target_s - 1.0).abs() < 0.15, "{delay_s}");
    }
}
