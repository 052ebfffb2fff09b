//! Values of another program for the same equations, within 1 % by default.

use ackclock_models::meanfield::law::{Control, Mode};

use crate::setups::{as_printed, assert_near, cubic, ftth, inter_dc, run};

#[test]
fn ftth_as_the_thesis_has_it() {
    let found = run(&as_printed(ftth(cubic(Mode::Tcp), 100)));
    assert_near("mean window", found.mean_p, 209.3, 0.01);
    assert_near("lowest mean window", found.lowest_p, 198.7, 0.01);
    assert_near("highest mean window", found.highest_p, 219.6, 0.01);
    assert_near("mean queue", found.queue_p, 40.5, 0.01);
    assert_near("period", found.period_s, 1.58, 0.01);
    assert_near("deviation", found.sd_p, 48.7, 0.01);
    assert_eq!(found.empty, 0.0);
}

#[test]
fn ftth_with_one_reduction_per_round_trip() {
    let found = run(&ftth(cubic(Mode::Tcp), 100));
    assert_near("mean window", found.mean_p, 210.9, 0.01);
    assert_near("lowest mean window", found.lowest_p, 201.9, 0.01);
    assert_near("highest mean window", found.highest_p, 219.6, 0.01);
    assert_near("mean queue", found.queue_p, 42.0, 0.01);
    assert_near("period", found.period_s, 1.35, 0.01);
    assert_near("deviation", found.sd_p, 42.3, 0.01);
}

#[test]
fn ftth_with_new_reno() {
    let found = run(&as_printed(ftth(Control::Reno {}, 100)));
    assert_near("mean window", found.mean_p, 174.6, 0.01);
    assert_near("lowest mean window", found.lowest_p, 122.8, 0.01);
    assert_near("highest mean window", found.highest_p, 220.9, 0.01);
    assert_near("utilisation", found.utilisation, 0.944, 0.01);
    assert_near("deviation", found.sd_p, 63.8, 0.01);
    // Given with two digits: 0.42 and 2.12 s.
    assert_near("time with an empty queue", found.empty, 0.42, 0.05);
    assert_near("period", found.period_s, 2.12, 0.015);
}

/// Steps of that program were coarser in this network: period and share hit are 2–3 % off its values and move
/// by less than 0.2 % here when steps, cells and the number of cohorts are refined (see `gates`).
#[test]
fn inter_dc_at_full_scale() {
    let found = run(&inter_dc(10));
    assert_near("mean window", found.mean_p, 4438.0, 0.01);
    assert_near("utilisation", found.utilisation, 0.992, 0.01);
    assert_near("period", found.period_s, 9.4, 0.04);
    assert_near("fall of the mean window", found.fall, 0.171, 0.04);
    assert_near("share of the flows hit", found.hit, 0.86, 0.04);
}

#[test]
fn inter_dc_without_the_limit_of_one_reduction_is_not_physical() {
    let found = run(&as_printed(inter_dc(10)));
    assert_near("utilisation", found.utilisation, 0.33, 0.05);
}
