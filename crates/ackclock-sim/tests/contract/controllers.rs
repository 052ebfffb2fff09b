//! Every congestion control under any history: the laws are those of [`ackclock_congestion::contract`].

use ackclock_congestion::contract::{Step, Trial};
use ackclock_plan::CongestionPlan;
use proptest::prelude::*;
use proptest::sample::select;

use crate::kit::cards::congestion_controls;

/// Any history.
fn histories() -> impl Strategy<Value = Vec<Step>> {
    let microseconds = prop_oneof![0..50_u32, 0..10_000_u32, 0..2_000_000_u32];
    let queueing = prop_oneof![Just(0), 0..2_000_u32, 0..500_000_u32];
    let step = prop_oneof![
        4 => (1..100_u32, any::<bool>()).prop_map(|(n, limited)| Step::Send(n, limited)),
        16 => (microseconds, 0..60_u32, queueing, prop::bool::weighted(0.9), prop::bool::weighted(0.1))
            .prop_map(|(us, n, queue, advances, marked)| Step::Ack(us, n, queue, advances, marked)),
        1 => any::<bool>().prop_map(Step::Loss),
        1 => Just(Step::Recovered),
        1 => Just(Step::Timeout),
        1 => (1..100_000_000_u32).prop_map(Step::Idle),
        1 => Just(Step::LossAfterMark),
        1 => Just(Step::RepeatedTimeout),
        1 => Just(Step::Undo),
        1 => any::<bool>().prop_map(Step::Reordering),
    ];
    prop::collection::vec(step, 1..400)
}

fn trial<'a>(
    plan: &'a CongestionPlan,
    base_rtt_us: u64,
    seed: u64,
    steps: &'a [Step],
) -> Trial<'a> {
    Trial {
        kind: &plan.kind,
        parameters: &plan.parameters,
        base_rtt_us,
        seed,
        steps,
    }
}

#[test]
fn every_controller_can_be_made_and_begins_with_its_initial_window() {
    for plan in congestion_controls() {
        assert_eq!(
            trial(&plan, 1000, 1, &[]).starts_at_initial_window(),
            Ok(()),
            "{}",
            plan.kind
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn windows_thresholds_and_rates_are_sane(
        plan in select(congestion_controls()),
        base_rtt_us in prop_oneof![10..1000_u64, 1000..1_000_000_u64],
        seed in any::<u64>(),
        steps in histories(),
    ) {
        let found = trial(&plan, base_rtt_us, seed, &steps).keeps_bounds();
        prop_assert_eq!(found, Ok(()), "{}", plan.kind);
    }

    #[test]
    fn the_same_history_gives_the_same_windows(
        plan in select(congestion_controls()),
        seed in any::<u64>(),
        steps in histories(),
    ) {
        prop_assert_eq!(trial(&plan, 20_000, seed, &steps).is_deterministic(), Ok(()), "{}", plan.kind);
    }

    #[test]
    fn a_timeout_does_not_raise_the_window(
        plan in select(congestion_controls()),
        steps in histories(),
    ) {
        let found = trial(&plan, 20_000, 1, &steps).reduces_at_timeout();
        prop_assert_eq!(found, Ok(()), "{}", plan.kind);
    }
}
