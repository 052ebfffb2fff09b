//! Every transfer that ends does so, given time and a chance for each packet.

use ackclock_core::tables::Totals;
use ackclock_plan::Plan;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use super::plans::{cases, finite_plan, simulate};

fn check_flows(plan: &Plan, totals: &Totals) -> Result<(), TestCaseError> {
    let flows = &totals.flows;
    for (index, flow) in plan.flows.iter().enumerate() {
        prop_assert_eq!(Some(flows.delivered_bytes[index]), flow.size_bytes);
        let start_s = flow.start.seconds();
        let latest_s = (flow.start + flow.start_jitter).seconds();
        prop_assert!((start_s..=latest_s).contains(&flows.start_s[index]));
        prop_assert!(flows.established_s[index] >= flows.start_s[index]);
        prop_assert!(flows.end_s[index] >= flows.established_s[index]);
        let fct_s = flows.end_s[index] - flows.start_s[index];
        prop_assert!((flows.fct_s[index] - fct_s).abs() < 1e-6);
    }
    Ok(())
}

/// Little's law, exactly, since the queues began and ended empty: the integral of the backlog is the sum
/// of the sojourn times. The transmitter was busy for as long as the bytes take.
fn check_queues(plan: &Plan, totals: &Totals) -> Result<(), TestCaseError> {
    let links = &totals.links;
    for (index, link) in plan.links.iter().enumerate() {
        let departed = links.departed_p[index];
        prop_assert_eq!(
            links.arrived_p[index],
            departed + links.dropped_p[index] + links.lost_p[index]
        );
        if departed == 0 {
            continue;
        }
        let integral = links.backlog_mean_p[index] * plan.duration.seconds();
        let sojourns = links.sojourn_mean_s[index] * departed as f64;
        prop_assert!(
            (integral - sojourns).abs() <= 1e-9 * (1.0 + sojourns),
            "{integral} {sojourns}"
        );
        let bytes_s = links.departed_bytes[index] as f64 / link.rate.bytes_per_second();
        prop_assert!((links.busy_s[index] - bytes_s).abs() <= 1e-9 * (1.0 + bytes_s));
    }
    Ok(())
}

proptest! {
    #![proptest_config(cases(1000))]

    #[test]
    fn every_finite_transfer_ends(plan in finite_plan(), seed in any::<u64>()) {
        let mut simulation = simulate(&plan, seed);
        simulation.advance(plan.duration);
        let totals = simulation.finish();
        check_flows(&plan, &totals)?;
        check_queues(&plan, &totals)?;
        prop_assert!(simulation.senders().all(|sender| !sender.is_active()));
        prop_assert_eq!(simulation.packets_in_transit(), 0);
        let (sent, gone) = simulation.packets_sent_and_accounted();
        prop_assert_eq!(sent, gone);
    }
}
