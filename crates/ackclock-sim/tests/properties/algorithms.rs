//! Whole simulations with any congestion control, any queue discipline and any ECN.

use ackclock_core::Time;
use ackclock_plan::Plan;
use ackclock_sim::Simulation;
use proptest::prelude::*;
use proptest::sample::Index;

use super::plans::{any_plan, cases, finite_plan, simulate};
use crate::kit::cards::{congestion_controls, disciplines};

/// A plan in which each flow's congestion control and each link's queue discipline are drawn from the lists.
fn mixed(plan: impl Strategy<Value = Plan>) -> impl Strategy<Value = Plan> {
    let draws = prop::collection::vec(any::<Index>(), 16);
    let (controls, queues) = (congestion_controls(), disciplines(20));
    (plan, draws).prop_map(move |(mut plan, draws)| {
        let mut draws = draws.into_iter().cycle();
        let mut draw = move |length: usize| draws.next().map_or(0, |draw| draw.index(length));
        for flow in &mut plan.flows {
            flow.congestion = controls[draw(controls.len())].clone().into();
            flow.priority = draw(16) as u8;
        }
        for link in &mut plan.links {
            link.queue = queues[draw(queues.len())].clone();
        }
        plan
    })
}

/// Packets sent are gone or in transit, and each link's own count is its discipline's.
fn is_balanced(simulation: &Simulation) -> bool {
    let (sent, gone) = simulation.packets_sent_and_accounted();
    let links = simulation.links().iter().all(|link| {
        let backlog = link.discipline_backlog();
        link.backlog() == (backlog.packets, backlog.bytes)
    });
    links && sent == gone + simulation.packets_in_transit()
}

/// Far more events than a few seconds of these networks hold: time that stands still is found, and not waited for.
const MAX_EVENTS: u32 = 1_000_000;

fn go(simulation: &mut Simulation, until: Time) {
    let ends = simulation.advance_within(until, MAX_EVENTS);
    assert!(ends, "time stands still at {:?}", simulation.now());
}

fn everything(plan: &Plan, seed: u64) -> String {
    let mut simulation = simulate(plan, seed);
    go(&mut simulation, plan.duration);
    format!("{:?}\n{:?}", simulation.drain(), simulation.finish())
}

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn packets_are_conserved_and_windows_sane(
        plan in mixed(any_plan()),
        seed in any::<u64>(),
        stops in prop::collection::vec(0.0..1.0_f64, 0..10),
    ) {
        let mut simulation = simulate(&plan, seed);
        let mut stops = stops;
        stops.sort_by(f64::total_cmp);
        for stop in stops.into_iter().chain([1.0]) {
            go(&mut simulation, plan.duration.scaled(stop));
            prop_assert!(is_balanced(&simulation));
        }
        let samples = simulation.drain().flow_samples;
        let sane = |&cwnd: &f64| cwnd.is_nan() || cwnd >= 1.0 && cwnd.is_finite();
        prop_assert!(samples.cwnd.iter().all(sane));
    }

    #[test]
    fn the_same_seed_gives_the_same_tables(plan in mixed(any_plan()), seed in any::<u64>()) {
        prop_assert!(everything(&plan, seed) == everything(&plan, seed));
    }
}

proptest! {
    #![proptest_config(cases(100))]

    /// Whatever is lost, marked or held back: a transfer that ends, ends.
    #[test]
    fn transfers_complete(plan in mixed(finite_plan()), seed in any::<u64>()) {
        let mut simulation = simulate(&plan, seed);
        go(&mut simulation, plan.duration);
        let ends_s = simulation.finish().flows.end_s;
        for (flow, end_s) in plan.flows.iter().zip(ends_s) {
            prop_assert!(end_s.is_finite(), "{}", flow.congestion.kind);
        }
    }
}
