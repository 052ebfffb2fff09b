//! Transfers that are drawn from the seed.

use ackclock_core::tables::{Flows, Totals};
use ackclock_core::Time;
use ackclock_plan::{GroupPlan, PathPairPlan, Plan, PopulationPlan, TrafficPlan};
use ackclock_sim::Simulation;
use serde_json::{json, Value};

use super::run;
use crate::kit::{link, linux, ms, path, plan, reno, transfer};

/// Paths over one link, of 20 ms, 22 ms, … there and back.
fn paths_of_link(number: u64) -> Vec<PathPairPlan> {
    let path = |index| PathPairPlan {
        forward: path(ms(10 + index), &[0]),
        reverse: path(ms(10 + index), &[]),
    };
    (0..number).map(path).collect()
}

fn traffic(paths: u64, workload: Value) -> TrafficPlan {
    TrafficPlan {
        group: 0,
        priority: 0,
        request_bytes: None,
        application_rate: None,
        population: PopulationPlan::Paths {
            paths: paths_of_link(paths),
        },
        workload: serde_json::from_value(workload).expect("a workload"),
    }
}

/// 80 Mbit/s: 10 packets of 1000 bytes a millisecond.
fn network(duration: Time, traffic: Vec<TrafficPlan>) -> Plan {
    Plan {
        groups: vec![GroupPlan {
            name: "short".to_owned(),
            congestion: Some(reno()),
            tcp: Some(linux()),
            slow_reader: None,
            writes: None,
            misbehaviour: None,
            dscp: 0,
        }],
        traffic,
        ..plan(duration, vec![link(8e7, 200)], vec![])
    }
}

fn poisson(per_s: f64, stop_s: f64, bytes: u64) -> Value {
    json!({
        "start_s": 0.0,
        "stop_s": stop_s,
        "arrivals": { "kind": "poisson", "per_s": per_s },
        "size": { "kind": "fixed", "bytes": bytes },
    })
}

fn sources(think_s: f64, transfers: u32) -> Value {
    json!({
        "start_s": 0.5,
        "stop_s": null,
        "arrivals": {
            "kind": "sources", "jitter_s": 0.0,
            "think": { "kind": "fixed", "s": think_s }, "transfers": transfers,
        },
        "size": { "kind": "fixed", "bytes": 5000 },
    })
}

/// Everything but what each flow is called.
fn columns(flows: &Flows) -> String {
    let Flows {
        start_s,
        established_s,
        end_s,
        delivered_bytes,
        measured_bytes,
        sent_packets,
        sent_bytes,
        received_packets,
        dropped_packets,
        retransmissions,
        base_rtt_s,
        size_bytes,
        ..
    } = flows;
    format!(
        "{start_s:?}{established_s:?}{end_s:?}{delivered_bytes:?}{measured_bytes:?}{sent_packets:?}\
         {sent_bytes:?}{received_packets:?}{dropped_packets:?}{retransmissions:?}{base_rtt_s:?}{size_bytes:?}"
    )
}

fn check_books(plan: &Plan, simulation: &Simulation, totals: &Totals) {
    let (sent, gone) = simulation.packets_sent_and_accounted();
    assert_eq!(sent, gone + simulation.packets_in_transit());
    let links = &totals.links;
    let now = simulation.now();
    let held: u64 = simulation
        .links()
        .iter()
        .map(|link| link.held_packets(now))
        .sum();
    assert_eq!(
        links.arrived_total_p[0],
        links.dropped_total_p[0] + links.lost_total_p[0] + links.departed_total_p[0] + held
    );
    let sent: u64 = totals.flows.sent_packets.iter().sum();
    assert_eq!(
        sent, links.arrived_total_p[0],
        "one link: {}",
        plan.links[0].name
    );
}

#[test]
fn every_transfer_of_a_poisson_process_completes() {
    let plan = network(ms(60_000), vec![traffic(5, poisson(200.0, 20.0, 20_000))]);
    let (simulation, tables, totals) = run(&plan, 7);
    let flows = &totals.flows;
    // 4000 with a standard deviation of 63.
    let number = flows.flow.len();
    assert!((3750..4250).contains(&number), "{number}");
    assert!(flows.end_s.iter().all(|end_s| end_s.is_finite()));
    assert!(flows.delivered_bytes.iter().all(|&bytes| bytes == 20_000));
    assert!(flows.start_s.windows(2).all(|pair| pair[0] <= pair[1]));
    assert_eq!(simulation.packets_in_transit(), 0);
    assert_eq!(simulation.senders().count(), 0, "all are over");
    check_books(&plan, &simulation, &totals);
    assert!(tables.flow_samples.flow.is_empty(), "not asked for");
    // Each takes at least a handshake and two flights: three RTTs of 20 ms or more.
    assert!(flows.fct_s.iter().all(|&s| s > 0.060));
}

#[test]
fn state_is_kept_only_for_concurrent_transfers() {
    let of = |seconds: u64| {
        let stop_s = seconds as f64;
        let traffic = vec![
            traffic(5, poisson(500.0, stop_s, 2000)),
            traffic(2, sources(0.001, 10 * seconds as u32)),
        ];
        let (simulation, _, totals) = run(&network(ms(1000 * seconds), traffic), 7);
        (simulation.slots(), totals.flows.flow.len())
    };
    let (short, long) = (of(2), of(20));
    assert!(long.1 > 9 * short.1, "{} transfers", long.1);
    // A transfer lasts a tenth of a second; of some fifty the greatest number is a matter of chance.
    assert!(
        long.0 < 2 * short.0 && short.0 < 150,
        "{} {}",
        short.0,
        long.0
    );
}

#[test]
fn transfers_are_sampled_only_on_request() {
    let mut plan = network(ms(3000), vec![traffic(2, poisson(100.0, 2.0, 50_000))]);
    plan.record.traffic = true;
    plan.record.interval = ms(10);
    let (_, tables, _) = run(&plan, 7);
    let samples = &tables.flow_samples;
    assert!(samples.flow.len() > 500);
    let ordered = (1..samples.flow.len()).all(|row| {
        (samples.time_s[row - 1], samples.flow[row - 1]) < (samples.time_s[row], samples.flow[row])
    });
    assert!(ordered, "by time, then by flow");
}

/// The same transfers, once as flows of the plan and once as traffic: the same rows.
#[test]
fn a_generated_transfer_is_a_flow() {
    let once = json!({
        "start_s": 0.25,
        "stop_s": null,
        "arrivals": { "kind": "once", "jitter_s": 0.0 },
        "size": { "kind": "fixed", "bytes": 300_000 },
    });
    let mut generated = network(ms(5000), vec![traffic(8, once)]);
    generated.links[0].queue = crate::kit::pfifo(20);
    generated.warmup = ms(400);
    let mut given = generated.clone();
    given.traffic.clear();
    given.flows = paths_of_link(8)
        .into_iter()
        .map(|path| ackclock_plan::FlowPlan {
            start: ms(250),
            forward: path.forward,
            reverse: path.reverse,
            ..transfer(linux(), 300)
        })
        .collect();
    let (_, _, generated) = run(&generated, 3);
    let (_, _, given) = run(&given, 3);
    assert!(
        given.flows.retransmissions.iter().sum::<u64>() > 0,
        "a crowded link"
    );
    assert_eq!(columns(&generated.flows), columns(&given.flows));
}

#[test]
fn a_source_thinks_between_its_transfers() {
    let plan = network(ms(10_000), vec![traffic(2, sources(0.3, 4))]);
    let (_, _, totals) = run(&plan, 1);
    let flows = &totals.flows;
    assert_eq!(flows.flow.len(), 8);
    for path in 0..2 {
        // The first of each are numbered 0 and 1; then come those behind gates, source by source.
        let mine: Vec<usize> = std::iter::once(path)
            .chain(2 + 3 * path..5 + 3 * path)
            .collect();
        assert_eq!(flows.start_s[mine[0]], 0.5);
        for pair in mine.windows(2) {
            let gap_s = flows.start_s[pair[1]] - flows.end_s[pair[0]];
            assert!((gap_s - 0.3).abs() < 1e-12, "{gap_s}");
        }
    }
}

/// The think time begins when the last byte reaches the client that has asked for it.
#[test]
fn a_client_thinks_after_its_response() {
    let mut asking = traffic(1, sources(0.3, 5));
    asking.request_bytes = Some(200);
    let plan = network(ms(10_000), vec![asking]);
    let (simulation, _, totals) = run(&plan, 1);
    let flows = &totals.flows;
    assert_eq!(flows.flow.len(), 5);
    assert!(flows.end_s.iter().all(|end_s| end_s.is_finite()));
    for index in 1..5 {
        let gap_s = flows.start_s[index] - flows.end_s[index - 1];
        assert!((gap_s - 0.3).abs() < 1e-12, "{gap_s}");
    }
    // Two round trips of 20 ms and the transmissions: SYN/ACK of 60 bytes and five segments of 1052, at 10 kB/ms.
    let expected_s = 0.040 + (60.0 + 5.0 * 1052.0) / 1e7;
    assert!(
        (flows.fct_s[0] - expected_s).abs() < 1e-12,
        "{}",
        flows.fct_s[0]
    );
    assert_eq!(simulation.packets_in_transit(), 0);
}

#[test]
fn transfers_after_the_end_have_no_row() {
    let plan = network(ms(1000), vec![traffic(1, sources(0.3, 4))]);
    let (_, _, totals) = run(&plan, 1);
    // A transfer takes two round trips, 0.04 s: the first starts are 0.5, 0.84 and 1.18 s.
    assert_eq!(totals.flows.flow, [0, 1]);
    let mut stopping = sources(0.3, 4);
    stopping["stop_s"] = json!(0.84);
    let plan = network(ms(10_000), vec![traffic(1, stopping)]);
    let (_, _, totals) = run(&plan, 1);
    assert_eq!(totals.flows.flow, [0], "the gate opens after the stop");
}

/// At the stop itself nothing begins any more; a picosecond earlier it does.
#[test]
fn a_start_at_the_stop_begins_no_transfer() {
    let until = |stop_s: Option<f64>| {
        let mut stopping = sources(0.3, 4);
        stopping["stop_s"] = json!(stop_s);
        let plan = network(ms(10_000), vec![traffic(1, stopping)]);
        run(&plan, 1).2.flows.start_s
    };
    let opens_s = until(None)[1];
    assert_eq!(until(Some(opens_s)), [0.5]);
    assert_eq!(until(Some(opens_s + 1e-12)), [0.5, opens_s]);
}

#[test]
fn an_incast_waits_for_its_slowest() {
    let rounds = json!({
        "start_s": 0.0,
        "stop_s": null,
        "arrivals": { "kind": "incast", "senders": 4, "every_s": null, "rounds": 3 },
        "size": { "kind": "fixed", "bytes": 30_000 },
    });
    let plan = network(ms(10_000), vec![traffic(4, rounds)]);
    let (_, _, totals) = run(&plan, 1);
    let flows = &totals.flows;
    assert_eq!(flows.flow.len(), 12);
    for round in 1..3 {
        let slowest_s = (4 * round - 4..4 * round)
            .map(|flow| flows.end_s[flow])
            .fold(0.0, f64::max);
        for flow in 4 * round..4 * round + 4 {
            assert_eq!(flows.start_s[flow], slowest_s);
        }
    }
}

#[test]
fn several_traffics_keep_their_groups_and_sizes() {
    let mut second = traffic(1, sources(0.2, 3));
    second.group = 1;
    let mut plan = network(ms(5000), vec![traffic(3, poisson(20.0, 4.0, 700)), second]);
    plan.groups.push(GroupPlan {
        name: "loop".to_owned(),
        ..plan.groups[0].clone()
    });
    let (_, _, totals) = run(&plan, 5);
    let flows = &totals.flows;
    let first = flows.group.iter().filter(|&&group| group == 0).count();
    assert_eq!(flows.group.len(), first + 3);
    assert!(flows.group.windows(2).all(|pair| pair[0] <= pair[1]));
    for flow in 0..flows.flow.len() {
        let expected = if flow < first { 700 } else { 5000 };
        assert_eq!(flows.size_bytes[flow], expected);
        assert_eq!(flows.delivered_bytes[flow], expected);
    }
    assert!((flows.base_rtt_s[first] - 0.020).abs() < 1e-15);
}

/// Half-way, with a warm-up and however it is stepped: the same rows, and the measured part is what came after.
#[test]
fn steps_do_not_matter_and_the_warm_up_is_left_out() {
    let mut plan = network(ms(3000), vec![traffic(5, poisson(300.0, 2.5, 30_000))]);
    plan.links[0].queue = crate::kit::pfifo(15);
    plan.warmup = ms(1500);
    let whole = run(&plan, 2);
    let mut stepped = Simulation::new(&plan, 2).expect("a sound plan");
    for step in 1..=300 {
        stepped.advance(ms(10 * step));
        let (sent, gone) = stepped.packets_sent_and_accounted();
        assert_eq!(sent, gone + stepped.packets_in_transit());
    }
    let flows = stepped.finish().flows;
    assert_eq!(columns(&flows), columns(&whole.2.flows));
    let mut first_half = plan.clone();
    first_half.warmup = Time::ZERO;
    let mut until = Simulation::new(&first_half, 2).expect("a sound plan");
    until.advance(ms(1500));
    let before = until.finish().flows;
    for flow in 0..flows.flow.len() {
        let earlier = before.delivered_bytes.get(flow).copied().unwrap_or(0);
        assert_eq!(
            flows.measured_bytes[flow],
            flows.delivered_bytes[flow] - earlier
        );
        let earlier = before.sent_packets.get(flow).copied().unwrap_or(0);
        assert_eq!(
            flows.measured_sent_packets[flow],
            flows.sent_packets[flow] - earlier
        );
    }
}

#[test]
fn the_seed_draws_the_transfers() {
    let plan = network(ms(3000), vec![traffic(5, poisson(50.0, 2.5, 30_000))]);
    let columns_of = |seed| columns(&run(&plan, seed).2.flows);
    assert_eq!(columns_of(1), columns_of(1));
    assert_ne!(columns_of(1), columns_of(2));
}

#[test]
fn impossible_traffic_is_rejected_with_its_number() {
    let plan = network(ms(1000), vec![traffic(1, poisson(0.0, 1.0, 1))]);
    let refused = Simulation::new(&plan, 1).map(|_| ());
    let message = refused.expect_err("no arrivals").to_string();
    assert!(message.starts_with("traffic 0: "), "{message}");
    let mut plan = network(ms(1000), vec![traffic(1, poisson(1.0, 1.0, 1))]);
    plan.groups[0].tcp = None;
    assert!(Simulation::new(&plan, 1).is_err());
}
