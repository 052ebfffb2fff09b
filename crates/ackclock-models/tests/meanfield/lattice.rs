//! Cohorts by age and the lattice of windows are two forms of one model.

use ackclock_models::meanfield::law::{Control, Mode};
use ackclock_models::meanfield::plan::Plan;

use crate::reference::{Growth, Lattice};
use crate::setups::{as_printed, assert_near, cubic, ftth, plan, run};

fn gates(lattice: &Lattice) {
    assert!((lattice.total() - 1.0).abs() < 1e-12, "{}", lattice.total());
    assert!(lattice.top_mass() < 1e-4, "{}", lattice.top_mass());
}

#[test]
fn tcp_mode_is_the_same_on_the_lattice() {
    let plan = as_printed(ftth(cubic(Mode::Tcp), 100));
    let mut lattice = Lattice::new(&plan, Growth::Line(1.0 / 3.0), 0.8, 1, 500);
    lattice.run(60.0);
    gates(&lattice);
    let ages = run(&plan);
    assert_near(
        "mean window",
        ages.mean_p,
        Lattice::late(&lattice.means),
        0.005,
    );
    assert_near(
        "mean queue",
        ages.queue_p,
        Lattice::late(&lattice.queue),
        0.02,
    );
}

#[test]
fn new_reno_is_the_same_on_the_lattice() {
    let plan = as_printed(ftth(Control::Reno {}, 100));
    let mut lattice = Lattice::new(&plan, Growth::Line(1.0), 0.5, 1, 800);
    lattice.run(60.0);
    gates(&lattice);
    let ages = run(&plan);
    assert_near(
        "mean window",
        ages.mean_p,
        Lattice::late(&lattice.means),
        0.01,
    );
    assert_near(
        "mean queue",
        ages.queue_p,
        Lattice::late(&lattice.queue),
        0.05,
    );
}

/// A network so small that w_max in whole packets are fine enough: 42 packets in transit, and 20 in the queue.
///
/// With one reduction per round trip: as printed, this network has no equilibrium, and each of the several cuts in an
/// overflow would need steps far finer than the lattice can afford.
#[test]
fn cubic_mode_is_the_same_on_the_lattice() {
    let small = plan(2.5e6, 0.2, 20.0, cubic(Mode::Cubic), 100);
    let plan = Plan {
        duration_s: 40.0,
        warmup_s: 20.0,
        ..small
    };
    let mut lattice = Lattice::new(&plan, Growth::Cubic(0.4), 0.8, 500, 1000);
    lattice.run(40.0);
    gates(&lattice);
    let ages = run(&plan);
    assert_near(
        "mean window",
        ages.mean_p,
        Lattice::late(&lattice.means),
        0.005,
    );
    assert_near(
        "mean queue",
        ages.queue_p,
        Lattice::late(&lattice.queue),
        0.03,
    );
}
