//! Records: samples add up, the warm-up is left out, and sampling changes nothing.

use ackclock_core::tables::Totals;
use ackclock_core::Time;
use ackclock_plan::{PcapPlan, Plan, Vantage};
use ackclock_sim::Simulation;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use super::plans::{any_plan, cases, simulate};
use crate::kit::{ms, us};

/// Totals at some time of a run without a warm-up.
fn totals_at(plan: &Plan, seed: u64, time: Time) -> Totals {
    let mut plan = plan.clone();
    plan.warmup = Time::ZERO;
    let mut simulation = simulate(&plan, seed);
    simulation.advance(time);
    simulation.finish()
}

/// The interval counts of a link sum up to its totals.
fn check_samples(plan: &Plan, simulation: &mut Simulation) -> Result<(), TestCaseError> {
    let samples = simulation.drain().queue_samples;
    let totals = simulation.finish().links;
    let intervals = plan.duration.picoseconds() / plan.record.interval.picoseconds();
    for link in 0..plan.links.len() {
        let rows = || (0..samples.link.len()).filter(|&row| samples.link[row] as usize == link);
        prop_assert_eq!(
            rows().count() as u64,
            intervals + 1,
            "one at 0 and one per interval"
        );
        let departures: u64 = rows().map(|row| samples.departures_p[row]).sum();
        prop_assert_eq!(departures, totals.departed_total_p[link]);
        let drops: u64 = rows().map(|row| samples.drops_p[row]).sum();
        prop_assert_eq!(drops, totals.dropped_total_p[link]);
        for (number, row) in rows().enumerate() {
            let due_s = number as f64 * plan.record.interval.seconds();
            prop_assert!((samples.time_s[row] - due_s).abs() < 1e-12);
        }
    }
    Ok(())
}

/// Everything but the samples, the log and the capture.
fn outcome(plan: &Plan, seed: u64) -> String {
    let mut simulation = simulate(plan, seed);
    simulation.advance(plan.duration);
    format!("{:?} {:?}", simulation.drain().events, simulation.finish())
}

/// The plan with a capture at all hosts and two links.
fn captured_everywhere(mut plan: Plan) -> Plan {
    let links = plan
        .links
        .iter()
        .take(2)
        .map(|link| Vantage::Link(link.name.clone()));
    let hosts = [Vantage::Receivers, Vantage::Senders];
    plan.record.pcap = PcapPlan::Each(hosts.into_iter().chain(links).collect());
    plan
}

/// The times of a capture's records (pcap-savefile(5)), ns.
fn times_ns(file: &[u8]) -> Vec<u64> {
    let field = |at: usize| {
        u64::from(u32::from_le_bytes(
            file[at..at + 4].try_into().expect("4 bytes"),
        ))
    };
    let (mut at, mut times) = (24, Vec::new());
    while at < file.len() {
        times.push(1_000_000_000 * field(at) + field(at + 4));
        at += 16 + field(at + 8) as usize;
    }
    times
}

proptest! {
    #![proptest_config(cases(500))]

    #[test]
    fn samples_add_up(plan in any_plan(), seed in any::<u64>(), intervals in 1..40_u64) {
        let mut plan = plan;
        plan.record.interval = ms(37);
        plan.duration = ms(37 * intervals);
        plan.warmup = Time::ZERO;
        let mut simulation = simulate(&plan, seed);
        simulation.advance(plan.duration);
        check_samples(&plan, &mut simulation)?;
    }

    #[test]
    fn sampling_changes_nothing(plan in any_plan(), seed in any::<u64>(), interval_us in 100..200_000_u64) {
        let expected = outcome(&plan, seed);
        let mut watched = captured_everywhere(plan);
        watched.record.packets = !watched.record.packets;
        watched.record.interval = us(interval_us);
        prop_assert!(outcome(&watched, seed) == expected);
    }

    #[test]
    fn captures_are_in_the_order_of_time_for_any_stepping(
        plan in any_plan(), seed in any::<u64>(), share in 0.0..1.0_f64
    ) {
        let plan = captured_everywhere(plan);
        let mut whole = simulate(&plan, seed);
        whole.advance(plan.duration);
        let mut cut = simulate(&plan, seed);
        cut.advance(plan.duration.scaled(share));
        let begun = cut.take_captures();
        cut.advance(plan.duration);
        let ended = cut.take_captures();
        for ((file, begun), ended) in whole.take_captures().iter().zip(&begun).zip(&ended) {
            prop_assert!(times_ns(file).is_sorted());
            prop_assert!(*file == [begun.as_slice(), ended.as_slice()].concat());
        }
    }

    #[test]
    fn the_measured_part_is_the_run_without_its_warm_up(plan in any_plan(), seed in any::<u64>()) {
        let mut simulation = simulate(&plan, seed);
        simulation.advance(plan.duration);
        let found = simulation.finish();
        let (before, after) = (totals_at(&plan, seed, plan.warmup), totals_at(&plan, seed, plan.duration));
        for flow in 0..plan.flows.len() {
            let difference = |count: fn(&Totals) -> &Vec<u64>| count(&after)[flow] - count(&before)[flow];
            prop_assert_eq!(found.flows.measured_bytes[flow], difference(|all| &all.flows.delivered_bytes));
            prop_assert_eq!(found.flows.measured_sent_packets[flow], difference(|all| &all.flows.sent_packets));
            prop_assert_eq!(
                found.flows.measured_retransmissions[flow],
                difference(|all| &all.flows.retransmissions)
            );
            prop_assert_eq!(found.flows.measured_timeouts[flow], difference(|all| &all.flows.timeouts));
        }
        for link in 0..plan.links.len() {
            let difference = |count: fn(&Totals) -> &Vec<u64>| count(&after)[link] - count(&before)[link];
            prop_assert_eq!(found.links.arrived_p[link], difference(|all| &all.links.arrived_total_p));
            prop_assert_eq!(found.links.dropped_p[link], difference(|all| &all.links.dropped_total_p));
            prop_assert_eq!(found.links.lost_p[link], difference(|all| &all.links.lost_total_p));
            prop_assert_eq!(found.links.departed_p[link], difference(|all| &all.links.departed_total_p));
        }
    }

    #[test]
    fn without_a_warm_up_everything_is_measured(plan in any_plan(), seed in any::<u64>()) {
        let mut plan = plan;
        plan.warmup = Time::ZERO;
        // From the very first packet on.
        plan.flows[0].start = Time::ZERO;
        plan.flows[0].start_jitter = Time::ZERO;
        let totals = totals_at(&plan, seed, plan.duration);
        let flows = &totals.flows;
        prop_assert_eq!(&flows.measured_bytes, &flows.delivered_bytes);
        prop_assert_eq!(&flows.measured_sent_packets, &flows.sent_packets);
        prop_assert_eq!(&flows.measured_retransmissions, &flows.retransmissions);
        prop_assert_eq!(&flows.measured_timeouts, &flows.timeouts);
        let links = &totals.links;
        prop_assert_eq!(&links.arrived_p, &links.arrived_total_p);
        prop_assert_eq!(&links.departed_p, &links.departed_total_p);
        prop_assert_eq!(&links.dropped_p, &links.dropped_total_p);
        prop_assert_eq!(&links.lost_p, &links.lost_total_p);
    }
}
