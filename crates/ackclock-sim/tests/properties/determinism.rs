//! The same plan and seed give the same tables to the last bit.

use std::thread;

use ackclock_core::tables::{Events, FlowSamples, Packets, QueueSamples, Tables};
use ackclock_core::Time;
use ackclock_plan::{LossPlan, Plan};
use ackclock_sim::Simulation;
use proptest::prelude::*;

use super::plans::{any_plan, cases, simulate};

/// Everything that a run writes, as text: floats are written so that no two different ones look alike.
pub fn run(plan: &Plan, seed: u64, stops: &[f64]) -> String {
    finished(&mut simulate(plan, seed), plan, stops)
}

/// Run a simulation to the end, with stops at shares of its duration; returns everything that it writes.
pub fn finished(simulation: &mut Simulation, plan: &Plan, stops: &[f64]) -> String {
    let mut tables = Tables::default();
    for &stop in stops {
        simulation.advance(plan.duration.scaled(stop));
        append(&mut tables, simulation.drain());
    }
    simulation.advance(plan.duration);
    append(&mut tables, simulation.drain());
    format!("{tables:?}\n{:?}", simulation.finish())
}

/// Add the columns of one table to another's; a column that is forgotten here does not compile.
macro_rules! extend {
    ($table:ident, $to:expr, $from:expr, $($column:ident),+) => {{
        let $table { $($column),+ } = $from;
        $($to.$column.extend($column);)+
    }};
}

fn append(to: &mut Tables, from: Tables) {
    let Tables {
        flow_samples,
        mut cubic_samples,
        mut delays,
        mut frames,
        mut paths,
        queue_samples,
        events,
        packets,
        mut transmissions,
    } = from;
    to.cubic_samples.append(&mut cubic_samples);
    to.delays.append(&mut delays);
    to.frames.append(&mut frames);
    to.paths.append(&mut paths);
    to.transmissions.append(&mut transmissions);
    extend!(
        FlowSamples,
        to.flow_samples,
        flow_samples,
        time_s,
        flow,
        cwnd,
        ssthresh,
        srtt_s,
        in_flight,
        delivered_bytes
    );
    extend!(
        QueueSamples,
        to.queue_samples,
        queue_samples,
        time_s,
        link,
        backlog_p,
        backlog_bytes,
        sojourn_s,
        departures_p,
        drops_p,
        marks_p,
        utilisation
    );
    extend!(Events, to.events, events, time_s, flow, link, kind, value);
    extend!(Packets, to.packets, packets, time_s, flow, link, kind, sequence, wire_bytes, what);
}

/// True if a run draws random numbers that matter.
fn is_random(plan: &Plan) -> bool {
    let bernoulli = |loss: &LossPlan| matches!(loss, LossPlan::Bernoulli { .. });
    let lossy = plan
        .links
        .iter()
        .filter_map(|link| link.loss.as_ref())
        .any(bernoulli);
    lossy || plan.flows.iter().any(|flow| flow.start_jitter > Time::ZERO)
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn results_are_independent_of_stepping(
        plan in any_plan(),
        seed in any::<u64>(),
        stops in prop::collection::vec(0.0..1.0_f64, 1..30),
    ) {
        let mut stops = stops;
        stops.sort_by(f64::total_cmp);
        prop_assert!(run(&plan, seed, &[]) == run(&plan, seed, &stops));
    }

    #[test]
    fn results_are_independent_of_threads(plan in any_plan(), seed in any::<u64>()) {
        let alone = run(&plan, seed, &[]);
        let together: Vec<String> = thread::scope(|scope| {
            let threads: Vec<_> = (0..3).map(|_| scope.spawn(|| run(&plan, seed, &[]))).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        prop_assert!(together.iter().all(|text| *text == alone));
    }

    #[test]
    fn the_seed_matters_only_in_stochastic_plans(plan in any_plan(), seed in any::<u64>()) {
        let same = run(&plan, seed, &[]) == run(&plan, seed.wrapping_add(1), &[]);
        if is_random(&plan) {
            // A loss that is rare may not show within the run; the starts always do.
            let jittered = plan.flows.iter().any(|flow| {
                flow.start_jitter > Time::ZERO && flow.start + flow.start_jitter < plan.duration
            });
            prop_assert!(!(same && jittered));
        } else {
            prop_assert!(same);
        }
    }
}

#[test]
fn bernoulli_losses_depend_only_on_the_seed() {
    use crate::kit::{flow, link, linux, ms, path, plan};
    let mut lossy = link(1e6, 20);
    lossy.loss = Some(LossPlan::Bernoulli { probability: 0.05 });
    let mut one = flow(linux());
    one.forward = path(ms(10), &[0]);
    one.reverse = path(ms(10), &[]);
    let plan = plan(ms(5000), vec![lossy], vec![one]);
    let runs: Vec<String> = (1..=4).map(|seed| run(&plan, seed, &[])).collect();
    for (index, text) in runs.iter().enumerate() {
        assert!(
            !runs[..index].contains(text),
            "seeds {} and an earlier one",
            index + 1
        );
    }
}
