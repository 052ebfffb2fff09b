//! RFC 3649's table and response function, and Linux's steps through the table.

#![allow(clippy::float_cmp)] // windows are whole segments

use super::super::window::testing::{ack, recovering, LOSS};
use super::*;
use serde_json::json;

/// Appendix B: window, a(w), b(w) as printed.
const APPENDIX_B: [(u32, u32, f64); 73] = [
    (38, 1, 0.50),
    (118, 2, 0.44),
    (221, 3, 0.41),
    (347, 4, 0.38),
    (495, 5, 0.37),
    (663, 6, 0.35),
    (851, 7, 0.34),
    (1058, 8, 0.33),
    (1284, 9, 0.32),
    (1529, 10, 0.31),
    (1793, 11, 0.30),
    (2076, 12, 0.29),
    (2378, 13, 0.28),
    (2699, 14, 0.28),
    (3039, 15, 0.27),
    (3399, 16, 0.27),
    (3778, 17, 0.26),
    (4177, 18, 0.26),
    (4596, 19, 0.25),
    (5036, 20, 0.25),
    (5497, 21, 0.24),
    (5979, 22, 0.24),
    (6483, 23, 0.23),
    (7009, 24, 0.23),
    (7558, 25, 0.22),
    (8130, 26, 0.22),
    (8726, 27, 0.22),
    (9346, 28, 0.21),
    (9991, 29, 0.21),
    (10661, 30, 0.21),
    (11358, 31, 0.20),
    (12082, 32, 0.20),
    (12834, 33, 0.20),
    (13614, 34, 0.19),
    (14424, 35, 0.19),
    (15265, 36, 0.19),
    (16137, 37, 0.19),
    (17042, 38, 0.18),
    (17981, 39, 0.18),
    (18955, 40, 0.18),
    (19965, 41, 0.17),
    (21013, 42, 0.17),
    (22101, 43, 0.17),
    (23230, 44, 0.17),
    (24402, 45, 0.16),
    (25618, 46, 0.16),
    (26881, 47, 0.16),
    (28193, 48, 0.16),
    (29557, 49, 0.15),
    (30975, 50, 0.15),
    (32450, 51, 0.15),
    (33986, 52, 0.15),
    (35586, 53, 0.14),
    (37253, 54, 0.14),
    (38992, 55, 0.14),
    (40808, 56, 0.14),
    (42707, 57, 0.13),
    (44694, 58, 0.13),
    (46776, 59, 0.13),
    (48961, 60, 0.13),
    (51258, 61, 0.13),
    (53677, 62, 0.12),
    (56230, 63, 0.12),
    (58932, 64, 0.12),
    (61799, 65, 0.12),
    (64851, 66, 0.11),
    (68113, 67, 0.11),
    (71617, 68, 0.11),
    (75401, 69, 0.10),
    (79517, 70, 0.10),
    (84035, 71, 0.10),
    (89053, 72, 0.10),
    (94717, 73, 0.09),
];

fn highspeed(initial_window: f64) -> HighSpeed {
    HighSpeed::new(initial_window)
}

fn rfc(initial_window: f64) -> Box<dyn Controller> {
    make(
        &json!({ "whole_segments": false, "slow_start": "standard" }),
        initial_window,
    )
    .expect("the card's parameters")
}

/// ACKs of one segment each, until all of the window is acknowledged.
fn round(controller: &mut dyn Controller) {
    for _ in 0..controller.cwnd() as u32 {
        controller.on_ack(&ack(Time::ZERO, 1));
    }
}

/// A value as the appendix prints it.
fn printed(b: f64) -> f64 {
    (100.0 * b).round() / 100.0
}

#[test]
fn the_table_is_that_of_appendix_b() {
    let rows: Vec<_> = row_windows().take(APPENDIX_B.len()).collect();
    for (window, (expected, increase, decrease)) in rows.into_iter().zip(APPENDIX_B) {
        assert_eq!(window, expected);
        assert_eq!(a(f64::from(window)) as u32, increase, "a({window})");
        assert_eq!(printed(b(f64::from(window))), decrease, "b({window})");
    }
    let linux = table();
    assert_eq!(linux.len(), 72);
    for (row, (window, increase, decrease)) in linux.iter().zip(APPENDIX_B) {
        assert_eq!(row.window, window);
        let error = f64::from(row.decrease_256) / 256.0 - decrease;
        assert!(
            (-0.009..0.005).contains(&error),
            "b({window}) is {error} off"
        );
        assert_eq!(linux[increase as usize - 1].window, window);
    }
}

#[test]
fn the_table_s_corners_are_the_parameters_of_section_5() {
    assert_eq!((a(38.0), b(38.0)), (1.0, 0.5));
    assert_eq!((a(10.0), b(10.0)), (1.0, 0.5), "Reno below");
    assert_eq!(printed(b(83_000.0)), 0.1);
    // Section 5 has a(83000) = 72 for b = 0.1 and p = 10⁻⁷: 83,000² × 10⁻⁷ × 0.2 / 1.9 = 72.5. The
    // program's p(w) is 2.3 % lower there.
    assert_eq!(a(83_000.0).round(), 71.0);
    assert!((p(83_000.0) / 1e-7 - 1.0).abs() < 0.03);
    assert!((p(38.0) / 1e-3 - 1.0).abs() < 0.01);
}

#[test]
fn a_round_adds_a_and_a_loss_takes_b() {
    // Up to 38 segments it is Reno.
    let mut small = highspeed(38.0);
    small.on_loss(&LOSS);
    assert_eq!(small.cwnd(), 19.0);
    round(&mut small);
    assert_eq!(small.cwnd(), 20.0);
    // 1,000 segments lie between the rows of 7 (851) and 8 (1,058): Linux takes the upper one.
    let mut large = highspeed(2000.0);
    large.on_loss(&LOSS);
    assert_eq!(large.cwnd(), 1000.0, "out of slow start: a half");
    round(&mut large);
    assert_eq!(
        large.cwnd(),
        1007.0,
        "1,000 × 8 earned, of which 7 windows were spent"
    );
    assert_eq!(
        large.window.credit(),
        8000 - 7021,
        "1,000 + 1,001 + … + 1,006"
    );
    large.on_loss(&LOSS);
    // b(1058) = 0.3269 = 83 / 256: 1,007 × 83 / 256 = 326.
    assert_eq!(large.cwnd(), 681.0);
}

#[test]
fn growth_counts_acks_not_segments() {
    let mut highspeed = highspeed(76.0);
    highspeed.on_loss(&LOSS);
    assert_eq!(highspeed.cwnd(), 38.0);
    for _ in 0..37 {
        highspeed.on_ack(&ack(Time::ZERO, 2));
    }
    assert_eq!(highspeed.cwnd(), 38.0);
    highspeed.on_ack(&ack(Time::ZERO, 2));
    assert_eq!(highspeed.cwnd(), 39.0);
    // a(39) is 2 in Linux: 20 ACKs buy the next segment.
    for _ in 0..19 {
        highspeed.on_ack(&ack(Time::ZERO, 2));
    }
    assert_eq!(highspeed.cwnd(), 39.0);
    highspeed.on_ack(&ack(Time::ZERO, 2));
    assert_eq!(highspeed.cwnd(), 40.0);
}

#[test]
fn windows_above_the_table_use_its_last_row() {
    let mut highspeed = highspeed(200_000.0);
    highspeed.on_loss(&LOSS);
    highspeed.on_ack(&ack(Time::ZERO, 1));
    assert_eq!(highspeed.row, 71);
    assert_eq!(highspeed.reduced(), 100_000 - 100_000 * 24 / 256);
}

#[test]
fn a_timeout_restarts_from_one_and_slow_start_uses_all_segments() {
    let mut highspeed = highspeed(16.0);
    highspeed.on_timeout(Time::ZERO, 16);
    assert_eq!((highspeed.cwnd(), highspeed.ssthresh()), (1.0, 8.0));
    highspeed.on_ack(&ack(Time::ZERO, 7 + 5));
    assert_eq!((highspeed.cwnd(), highspeed.window.credit()), (8.0, 0));
}

#[test]
fn fractional_growth_is_a_over_w_per_segment_and_zero_in_recovery() {
    let mut rfc = rfc(2000.0);
    rfc.on_loss(&LOSS);
    let w = 2000.0 * (1.0 - b(2000.0));
    assert_eq!(rfc.cwnd(), w);
    rfc.on_ack(&recovering(Time::ZERO, 5));
    assert_eq!(rfc.cwnd(), w);
    rfc.on_ack(&ack(Time::ZERO, 2));
    assert_eq!(rfc.cwnd(), w + 2.0 * a(w) / w);
}

/// Average window when each `1/p`-th segment is lost, over 8 losses after 8.
fn average_window(controller: &mut dyn Controller, p: f64) -> f64 {
    controller.on_loss(&LOSS);
    let (mut segments, mut rounds) = (0.0, 0.0);
    for loss in 0..16 {
        if loss == 8 {
            (segments, rounds) = (0.0, 0.0);
        }
        for _ in 0..(1.0 / p) as u64 {
            rounds += 1.0 / controller.cwnd();
            segments += 1.0;
            controller.on_ack(&ack(Time::ZERO, 1));
        }
        controller.on_loss(&LOSS);
    }
    segments / rounds
}

#[test]
fn the_response_function_is_that_of_the_rfc() {
    for p in [1e-4_f64, 1e-5, 1e-6] {
        let expected = 0.12 / p.powf(0.835);
        let rfc = average_window(rfc(expected).as_mut(), p);
        assert!((rfc / expected - 1.0).abs() < 0.01, "p = {p}: {rfc}");
        // Linux's a(w) is the next row's: 2 instead of 1.0 at 39 segments, 72 instead of 71.1 at most.
        let linux = average_window(&mut highspeed(expected), p);
        assert!(1.0 < linux / rfc && linux / rfc < 1.18, "p = {p}: {linux}");
    }
}

#[test]
fn other_parameters_are_rejected() {
    assert!(make(&json!({ "slow_start": "standard" }), 10.0).is_err());
    assert!(make(
        &json!({ "whole_segments": 3, "slow_start": "standard" }),
        10.0
    )
    .is_err());
}
