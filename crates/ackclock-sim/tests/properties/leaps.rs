//! Leaps past round trips in which no packet matters.

use ackclock_core::tables::{EventKind, Tables, Totals};
use ackclock_core::Time;
use ackclock_plan::{FlowPlan, Plan};
use ackclock_sim::Simulation;
use proptest::prelude::*;

use super::determinism::finished;
use super::plans::{any_plan, cases, simulate};
use crate::kit::{cubic, flow, link, linux, ms, path, plan};

/// Two CUBIC flows, the second from 2 s on, at 50 Mb/s with 40 ms and a buffer of one BDP, for 40 s.
fn bulk() -> Plan {
    let one = |start| FlowPlan {
        start,
        congestion: cubic().into(),
        forward: path(ms(20), &[0]),
        reverse: path(ms(20), &[]),
        ..flow(linux())
    };
    let mut plan = plan(
        ms(40_000),
        vec![link(50e6, 240)],
        vec![one(ms(0)), one(ms(2000))],
    );
    plan.record.packets = false;
    plan.record.interval = ms(100);
    plan.warmup = ms(5_050);
    plan
}

fn with_leaps(plan: &Plan, seed: u64) -> Simulation {
    let mut simulation = simulate(plan, seed);
    simulation.enable_leaps();
    simulation
}

/// Run to the end with leaps; also returns the time that they skipped.
fn leapt(plan: &Plan) -> (Tables, Totals, Time) {
    let mut simulation = with_leaps(plan, 1);
    simulation.advance(plan.duration);
    let tables = simulation.drain();
    (tables, simulation.finish(), simulation.leaps().1)
}

#[test]
fn a_bulk_transfer_is_mostly_skipped_and_keeps_its_totals() {
    let (_, totals, skipped) = leapt(&bulk());
    assert!(skipped > ms(30_000), "{skipped:?}");
    let links = &totals.links;
    let busy = links.busy_s[0] / 34.95;
    assert!(busy > 0.99 && busy < 1.01, "{busy}");
    let capacity_p = 50e6 * 34.95 / 8.0 / 1052.0;
    let departed = links.departed_p[0] as f64 / capacity_p;
    assert!((departed - 1.0).abs() < 0.01, "{departed}");
    let received: u64 = totals.flows.measured_bytes.iter().sum();
    let departed_bytes = 1000.0 * links.departed_p[0] as f64;
    assert!((received as f64 / departed_bytes - 1.0).abs() < 0.01);
}

#[test]
fn samples_and_starts_keep_their_times_through_leaps() {
    let (tables, totals, _) = leapt(&bulk());
    let times = &tables.queue_samples.time_s;
    let expected: Vec<f64> = (0..=400).map(|step| ms(100 * step).seconds()).collect();
    assert_eq!(*times, expected);
    assert_eq!(totals.flows.start_s, [0.0, 2.0]);
    let sum: u64 = tables.queue_samples.departures_p.iter().sum();
    assert_eq!(sum, totals.links.departed_total_p[0]);
}

#[test]
fn a_flow_stops_when_it_is_to_stop_though_a_leap_precedes() {
    let mut plan = bulk();
    plan.flows[1].stop = Some(ms(30_000));
    let (tables, totals, skipped) = leapt(&plan);
    assert!(skipped > ms(20_000), "{skipped:?}");
    let end_s = totals.flows.end_s[1];
    assert!(end_s > 30.0 && end_s < 30.2, "{end_s}");
    let events = tables.events.kind.iter().zip(&tables.events.time_s);
    let finished = events.filter(|(&kind, _)| kind == EventKind::Finished as u8);
    let times: Vec<f64> = finished.map(|(_, &time_s)| time_s).collect();
    assert_eq!(times, [end_s]);
}

#[test]
fn losses_are_as_frequent_as_without_leaps() {
    let plan = Plan {
        duration: ms(200_000),
        ..bulk()
    };
    let mut packets = simulate(&plan, 1);
    packets.advance(plan.duration);
    let recoveries = |totals: &Totals| totals.flows.recoveries.iter().sum::<u64>() as f64;
    let ratio = recoveries(&leapt(&plan).1) / recoveries(&packets.finish());
    assert!((ratio - 1.0).abs() < 0.1, "{ratio}");
}

#[test]
fn every_packet_is_accounted_for_after_leaps() {
    let plan = bulk();
    let mut simulation = with_leaps(&plan, 1);
    for step in 1..=40 {
        simulation.advance(ms(1000 * step));
        let (sent, gone) = simulation.packets_sent_and_accounted();
        assert_eq!(sent, gone + simulation.packets_in_transit());
    }
}

proptest! {
    #![proptest_config(cases(60))]

    #[test]
    fn a_run_without_a_leap_is_that_of_the_packet_engine(plan in any_plan(), seed in any::<u64>()) {
        let mut plan = plan;
        plan.record.packets = false;
        let mut simulation = with_leaps(&plan, seed);
        let text = finished(&mut simulation, &plan, &[]);
        if simulation.leaps().0 == 0 {
            prop_assert!(text == finished(&mut simulate(&plan, seed), &plan, &[]));
        }
    }

    #[test]
    fn leaps_are_independent_of_stepping(stops in prop::collection::vec(0.0..1.0_f64, 1..30)) {
        let plan = bulk();
        let mut stops = stops;
        stops.sort_by(f64::total_cmp);
        let whole = finished(&mut with_leaps(&plan, 1), &plan, &[]);
        prop_assert!(whole == finished(&mut with_leaps(&plan, 1), &plan, &stops));
    }
}
