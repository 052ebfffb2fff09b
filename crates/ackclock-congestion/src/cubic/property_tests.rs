//! Properties for arbitrary histories.

// Windows are compared exactly on purpose: the same operations give the same numbers.
#![allow(clippy::float_cmp)]

use super::super::window::testing::ack;
use super::tests::LOSS;
use super::*;
use proptest::prelude::*;
use serde_json::json;

/// A step of a random history.
#[derive(Clone, Copy, Debug)]
enum Step {
    Ack {
        after_us: u64,
        newly_acked: u32,
        rtt_us: Option<u64>,
        limited: bool,
        recovering: bool,
    },
    Loss,
    Timeout,
    Restart {
        idle_us: u64,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let ack = (
        0_u64..100_000,
        0_u32..2000,
        proptest::option::of(0_u64..2_000_000),
        any::<bool>(),
        any::<bool>(),
    );
    prop_oneof![
        20 => ack.prop_map(|(after_us, newly_acked, rtt_us, limited, recovering)| Step::Ack {
            after_us, newly_acked, rtt_us, limited, recovering,
        }),
        1 => Just(Step::Loss),
        1 => Just(Step::Timeout),
        1 => (0_u64..100_000_000).prop_map(|idle_us| Step::Restart { idle_us }),
    ]
}

fn apply(step: Step, cubic: &mut dyn Controller, now: &mut Time) {
    match step {
        Step::Ack {
            after_us,
            newly_acked,
            rtt_us,
            limited,
            recovering,
        } => {
            *now += Time::from_microseconds(after_us);
            cubic.on_ack(&Ack {
                rtt: rtt_us.map(Time::from_microseconds),
                window_limited: limited,
                recovering,
                ..ack(*now, newly_acked)
            });
        }
        Step::Loss => cubic.on_loss(&LOSS),
        Step::Timeout => cubic.on_timeout(*now, 10),
        Step::Restart { idle_us } => {
            let idle_since = *now;
            *now += Time::from_microseconds(idle_us);
            cubic.on_restart(&Restart {
                now: *now,
                idle_since,
                rto: Time::from_milliseconds(200),
                initial_window: 10,
            });
        }
    }
}

proptest! {
    #[test]
    fn the_window_is_finite_and_positive_in_any_history(
        steps in proptest::collection::vec(step(), 0..300),
        c in 1e-6..10.0,
        beta in 0.01..0.99,
        start in prop_oneof![Just("standard"), Just("hystart"), Just("hystart++")],
        flags in any::<[bool; 7]>(),
    ) {
        let parameters = json!({
            "c": c, "beta": beta, "fast_convergence": flags[0], "reno_friendly": flags[1],
            "reno_catch_up": flags[2], "slow_start": start, "delayed_ack_correction": flags[4],
            "whole_segments": flags[6],
            "tick_s": if flags[5] { 0.004 } else { 0.0 },
        });
        let mut cubic = make(&parameters, 10.0).expect("valid parameters");
        let mut now = Time::ZERO;
        for step in steps {
            let before = cubic.cwnd();
            apply(step, cubic.as_mut(), &mut now);
            prop_assert!(cubic.cwnd() >= 1.0 && cubic.cwnd().is_finite());
            prop_assert!(cubic.ssthresh() >= 2.0);
            let grown = cubic.cwnd() - before;
            if let Step::Ack { newly_acked, limited, .. } = step {
                prop_assert!(grown >= 0.0 && grown <= f64::from(newly_acked) + 1.0);
                prop_assert!(limited || grown == 0.0, "it grew though the window was not used");
            }
        }
    }
}
