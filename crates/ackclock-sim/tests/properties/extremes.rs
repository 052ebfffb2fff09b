//! Plans at the edges of what can be written: no panic, no standstill; what is impossible is refused.

use ackclock_core::{Rate, Time};
use ackclock_plan::{FlowPlan, LossPlan, Plan, QueuePlan, TcpPlan};
use ackclock_sim::Simulation;
use proptest::prelude::*;
use proptest::sample::select;

use super::plans::{any_tcp, cases, simulate};
use crate::kit::{flow, link, linux, ms, path, pfifo, plan, transfer};

/// A rate, and a time in which it passes a few thousand packets at most.
fn extreme_rate() -> impl Strategy<Value = (f64, f64)> {
    select(vec![(1.0, 1e6), (1e3, 1e4), (1e12, 2e-6)])
}

fn extreme_tcp() -> impl Strategy<Value = TcpPlan> {
    let mss_bytes = select(vec![1_u32, 2, 1460, 65_000]);
    let window = select(vec![None, Some(0_u64), Some(1), Some(100_000)]);
    let max_rto_s = select(vec![60.0, 120.0, 1e6]);
    (any_tcp(), mss_bytes, window, 0..3_u32, max_rto_s).prop_map(
        |(tcp, mss_bytes, receive_window_bytes, initial_window, max_rto_s)| TcpPlan {
            mss_bytes,
            receive_window_bytes,
            initial_window,
            max_rto: Time::from_seconds(max_rto_s),
            ..tcp
        },
    )
}

fn extreme_plan() -> impl Strategy<Value = Plan> {
    let size = select(vec![None, Some(0), Some(1), Some(5000), Some(u64::MAX)]);
    let application = select(vec![None, Some(1e-3), Some(1.0), Some(1e12), Some(1e18)]);
    let one_way_s = select(vec![0.0, 1e-12, 1e-3, 1e5]);
    let flows = prop::collection::vec((extreme_tcp(), size, application, one_way_s), 0..4);
    let queue = select(vec![
        pfifo(1),
        pfifo(u32::MAX),
        crate::kit::bfifo(1),
        crate::kit::bfifo(u64::MAX),
    ]);
    (extreme_rate(), queue, flows).prop_map(|((rate_bps, duration_s), queue, flows)| {
        let flows = flows
            .into_iter()
            .map(|(tcp, size_bytes, application_bps, one_way_s)| FlowPlan {
                size_bytes,
                application_rate: application_bps.map(Rate::from_bits_per_second),
                forward: path(Time::from_seconds(one_way_s), &[0]),
                reverse: path(Time::ZERO, &[]),
                ..flow(tcp)
            });
        crowded(rate_bps, duration_s, queue, flows.collect())
    })
}

fn crowded(rate_bps: f64, duration_s: f64, queue: QueuePlan, flows: Vec<FlowPlan>) -> Plan {
    let mut link = link(rate_bps, 1);
    link.queue = queue;
    let mut plan = plan(Time::from_seconds(duration_s), vec![link], flows);
    plan.record.interval = Time::from_seconds(duration_s / 7.0);
    plan
}

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn an_extreme_plan_runs(plan in extreme_plan(), seed in any::<u64>()) {
        let mut simulation = simulate(&plan, seed);
        prop_assert_eq!(simulation.advance(plan.duration), plan.duration);
        let (sent, gone) = simulation.packets_sent_and_accounted();
        prop_assert_eq!(sent, gone + simulation.packets_in_transit());
        let totals = simulation.finish();
        prop_assert_eq!(totals.flows.flow.len(), plan.flows.len());
    }
}

/// A sound plan of one flow, to be spoilt.
fn sound() -> Plan {
    let mut one = transfer(linux(), 10);
    one.forward = path(ms(10), &[0]);
    one.reverse = path(ms(10), &[]);
    plan(ms(1000), vec![link(1e6, 10)], vec![one])
}

fn is_rejected(spoil: impl Fn(&mut Plan)) -> bool {
    let mut plan = sound();
    spoil(&mut plan);
    Simulation::new(&plan, 1).is_err()
}

#[test]
fn a_valid_plan_is_accepted() {
    assert!(!is_rejected(|_| {}));
}

#[test]
fn plans_that_would_stall_or_divide_by_zero_are_rejected() {
    assert!(is_rejected(|plan| plan.record.interval = Time::ZERO));
    assert!(is_rejected(
        |plan| plan.links[0].rate = Rate::from_bits_per_second(0.0)
    ));
    assert!(is_rejected(
        |plan| plan.links[0].rate = Rate::from_bits_per_second(-1.0)
    ));
    assert!(is_rejected(
        |plan| plan.links[0].rate = Rate::from_bits_per_second(f64::NAN)
    ));
    assert!(is_rejected(|plan| plan.links[0].queue = pfifo(0)));
    assert!(is_rejected(|plan| plan.flows[0].tcp.mss_bytes = 0));
    assert!(is_rejected(
        |plan| plan.flows[0].forward = path(ms(10), &[1])
    ));
    assert!(is_rejected(
        |plan| plan.flows[0].reverse = path(ms(10), &[9])
    ));
}

#[test]
fn a_loss_period_of_zero_is_rejected() {
    assert!(is_rejected(
        |plan| plan.links[0].loss = Some(LossPlan::Every { packets: 0 })
    ));
}

#[test]
fn a_timeout_of_zero_would_repeat_for_ever() {
    assert!(is_rejected(
        |plan| plan.flows[0].tcp.initial_rto = Time::ZERO
    ));
    assert!(is_rejected(|plan| plan.flows[0].tcp.max_rto = Time::ZERO));
}

#[test]
fn impossible_packet_sizes_are_rejected() {
    assert!(is_rejected(|plan| plan.flows[0].tcp.mss_bytes = u32::MAX));
    assert!(is_rejected(|plan| plan.flows[0].tcp.header_bytes = u32::MAX));
    assert!(is_rejected(
        |plan| plan.links[0].frame_overhead_bytes = u32::MAX
    ));
}

#[test]
fn a_path_has_no_more_hops_than_a_packet_can_count() {
    assert!(is_rejected(
        |plan| plan.flows[0].forward = path(ms(10), &[0; 300])
    ));
}

#[test]
fn an_unlimited_receive_window_may_be_written_as_a_number() {
    let mut plan = sound();
    plan.flows[0].tcp.mss_bytes = 1;
    plan.flows[0].tcp.receive_window_bytes = Some(u64::MAX);
    plan.duration = ms(10_000);
    let mut simulation = simulate(&plan, 1);
    simulation.advance(plan.duration);
    assert_eq!(simulation.finish().flows.delivered_bytes, [10_000]);
}

#[test]
fn time_passes_however_fast_a_link() {
    // A packet takes less than a picosecond, and there is no delay.
    let mut one = flow(linux());
    one.forward = path(Time::ZERO, &[0]);
    one.reverse = path(Time::ZERO, &[]);
    let plan = crowded(1e18, 1e-9, pfifo(10), vec![one]);
    let mut simulation = simulate(&plan, 1);
    simulation.advance(plan.duration);
    let (sent, _) = simulation.packets_sent_and_accounted();
    assert!((100..10_000).contains(&sent), "{sent}");
}

#[test]
fn negative_times_are_rejected() {
    let plan = sound();
    let mut simulation = simulate(&plan, 1);
    simulation.advance(ms(500));
    assert_eq!(simulation.advance(ms(200)), ms(500));
}

#[test]
fn a_network_without_flows_or_links_has_no_events() {
    for plan in [
        plan(ms(1000), vec![link(1e6, 10)], vec![]),
        plan(ms(1000), vec![], vec![]),
    ] {
        let mut simulation = simulate(&plan, 1);
        simulation.advance(plan.duration);
        assert_eq!(simulation.packets_sent_and_accounted(), (0, 0));
        assert_eq!(simulation.finish().links.link.len(), plan.links.len());
    }
}
