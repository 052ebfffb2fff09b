//! Packets that overtake each other: whatever the sender marks lost, the connection goes on.

use ackclock_plan::{Distribution, ImpairmentPlan, JitterPlan, Plan};
use ackclock_sim::sender::Sender;
use ackclock_sim::Simulation;

use crate::kit::cards::congestion_controls;
use crate::kit::{flow, link, linux, ms, path, plan};

/// One flow without end over a link of 10 Mb/s with this medium, an RTT of 40 ms and a buffer of one bandwidth-delay
/// product.
fn single_flow(medium: ImpairmentPlan, control: &str) -> Plan {
    let mut there = link(10e6, 33);
    (there.medium, there.delay) = (Some(medium), ms(20));
    let mut flow = flow(linux());
    let mut known = congestion_controls().into_iter();
    let found = known.find(|congestion| congestion.kind == control);
    flow.congestion = found.expect("a control").into();
    flow.forward = path(ms(0), &[0]);
    flow.reverse = path(ms(20), &[]);
    plan(ms(6_000), vec![there], vec![flow])
}

/// Seeds, of 36, whose last two seconds deliver nothing.
fn stalled(medium: ImpairmentPlan, control: &str) -> Vec<u64> {
    let plan = single_flow(medium, control);
    let stalls = |seed: &u64| {
        let mut simulation = Simulation::new(&plan, *seed).expect("a sound plan");
        let delivered = |simulation: &Simulation| -> u64 {
            simulation.senders().map(Sender::acknowledged_bytes).sum()
        };
        simulation.advance(ms(4_000));
        let before = delivered(&simulation);
        simulation.advance(plan.duration);
        delivered(&simulation) == before
    };
    (1..=36).filter(stalls).collect()
}

/// A hole whose mark of loss was undone waits for the timeout, which no later reordering may put off.
#[test]
fn a_connection_progresses_under_any_reordering() {
    let jitter = |deviation| ImpairmentPlan {
        jitter: Some(JitterPlan {
            deviation: ms(deviation),
            distribution: Distribution::Normal,
            in_order: false,
        }),
        ..ImpairmentPlan::NONE
    };
    let reorder = |reorder| ImpairmentPlan {
        reorder,
        ..ImpairmentPlan::NONE
    };
    for control in ["reno", "cubic", "bbr"] {
        for medium in [reorder(0.01), reorder(0.05), jitter(1), jitter(5)] {
            let stalled = stalled(medium, control);
            assert!(stalled.is_empty(), "{control}, {medium:?}: {stalled:?}");
        }
    }
}
