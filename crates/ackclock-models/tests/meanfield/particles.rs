//! Finite numbers of flows: they approach the limit as 1/N.

use ackclock_models::meanfield::field::Resolution;
use ackclock_models::meanfield::law::Mode;
use ackclock_models::meanfield::plan::Plan;

use crate::setups::{as_printed, assert_near, cubic, ftth, mean, run_with};

/// Mean windows of runs with different seeds.
fn mean_window(flows: u32, duration_s: f64, seeds: u64) -> f64 {
    let plan = Plan {
        particles: true,
        duration_s,
        ..as_printed(ftth(cubic(Mode::Tcp), flows))
    };
    let found = (1..=seeds).map(|seed| run_with(&plan, seed, Resolution::default()).mean_p);
    mean(&found.collect::<Vec<_>>())
}

#[test]
fn particles_converge_to_the_mean_field() {
    let ten = mean_window(10, 440.0, 4);
    let hundred = mean_window(100, 240.0, 2);
    let thousand = mean_window(1000, 100.0, 1);
    assert_near("10 flows", ten, 204.9, 0.005);
    assert_near("100 flows", hundred, 208.9, 0.003);
    assert_near("1000 flows", thousand, 209.31, 0.001);
    let limit = 209.34;
    assert!(limit - ten > 5.0 * (limit - hundred), "{ten}, {hundred}");
}

#[test]
fn seeds_differ_and_repeat() {
    let plan = Plan {
        particles: true,
        duration_s: 50.0,
        ..ftth(cubic(Mode::Auto), 10)
    };
    let window = |seed| {
        run_with(&plan, seed, Resolution::default())
            .mean_p
            .to_bits()
    };
    assert_eq!(window(1), window(1));
    assert_ne!(window(1), window(2));
}
