//! Every congestion control under any history.

use ackclock_congestion::{self as congestion, Controller};
use ackclock_units::Rate;
use proptest::prelude::*;
use proptest::sample::select;

use super::history::{histories, History, Step};
use crate::kit::cards::congestion_controls;

const INITIAL_WINDOW: u32 = 10;

/// What a controller shows of its state.
type Shown = (f64, f64, Option<f64>);

fn make(plan: &ackclock_plan::CongestionPlan) -> Box<dyn Controller> {
    congestion::make(&plan.kind, &plan.parameters, INITIAL_WINDOW)
        .unwrap_or_else(|error| panic!("{}: {error}", plan.kind))
}

fn shown(controller: &dyn Controller) -> Shown {
    let rate = controller.pacing_rate().map(Rate::bits_per_second);
    (controller.cwnd(), controller.ssthresh(), rate)
}

fn play(
    controller: &mut dyn Controller,
    base_rtt_us: u64,
    seed: u64,
    steps: &[Step],
) -> Vec<Shown> {
    let mut history = History::new(base_rtt_us);
    history.open(controller, seed);
    let mut states = vec![shown(controller)];
    for &step in steps {
        history.apply(step, controller);
        states.push(shown(controller));
    }
    states
}

#[test]
fn every_controller_can_be_made_and_begins_with_its_initial_window() {
    for plan in congestion_controls() {
        assert_eq!(
            make(&plan).cwnd(),
            f64::from(INITIAL_WINDOW),
            "{}",
            plan.kind
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    /// At least one segment, finite, and no more than 40 segments for each one sent (the fastest slow start of the
    /// cards adds 32 for each acknowledged one).
    #[test]
    fn windows_thresholds_and_rates_are_sane(
        plan in select(congestion_controls()),
        base_rtt_us in prop_oneof![10..1000_u64, 1000..1_000_000_u64],
        seed in any::<u64>(),
        steps in histories(),
    ) {
        let most = |sent: u64| 40.0 * (f64::from(INITIAL_WINDOW) + sent as f64) + 1000.0;
        let mut sent = 0;
        let seen = play(make(&plan).as_mut(), base_rtt_us, seed, &steps);
        for (step, (cwnd, ssthresh, rate_bps)) in steps.iter().zip(&seen[1..]) {
            if let Step::Send(segments, _) = step {
                sent += u64::from(*segments);
            }
            prop_assert!(*cwnd >= 1.0 && *cwnd <= most(sent), "{}: cwnd {cwnd} after {step:?}", plan.kind);
            prop_assert!(*ssthresh >= 1.0, "{}: ssthresh {ssthresh} after {step:?}", plan.kind);
            if let Some(rate_bps) = rate_bps {
                let sane = *rate_bps > 0.0 && rate_bps.is_finite();
                prop_assert!(sane, "{}: pacing at {rate_bps} bit/s after {step:?}", plan.kind);
            }
        }
    }

    #[test]
    fn the_same_history_gives_the_same_windows(
        plan in select(congestion_controls()),
        seed in any::<u64>(),
        steps in histories(),
    ) {
        let once = play(make(&plan).as_mut(), 20_000, seed, &steps);
        let again = play(make(&plan).as_mut(), 20_000, seed, &steps);
        prop_assert_eq!(once, again);
    }

    /// A timeout leaves a small window, unless the controller governs the repair itself.
    #[test]
    fn a_timeout_leaves_at_most_what_was_there(
        plan in select(congestion_controls()),
        steps in histories(),
    ) {
        let mut controller = make(&plan);
        play(controller.as_mut(), 20_000, 1, &steps);
        let before = controller.cwnd();
        controller.on_timeout(ackclock_units::Time::from_seconds(1e6), 5);
        prop_assert!(controller.cwnd() <= before.max(6.0), "{}", plan.kind);
    }
}
