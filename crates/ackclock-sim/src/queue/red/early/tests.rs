//! The average, the spacing of drops and the adaptation, worked by hand from the papers.

#![allow(clippy::float_cmp)] // the numbers are sums of powers of two, or compared with a margin

use super::*;
use crate::queue::testing::CONTEXT;

const SETTINGS: Settings = Settings {
    min: 10.0,
    max: 30.0,
    weight: 0.25,
    max_probability: 0.1,
    gentle: false,
    wait: false,
    adaptation: None,
    packet_time: Time::from_milliseconds(1),
};

fn early(settings: Settings) -> Early {
    Early::new(settings, CONTEXT.random()).expect("valid settings")
}

const MS: fn(u64) -> Time = Time::from_milliseconds;

#[test]
fn the_average_follows_the_queue_with_its_weight() {
    let mut early = early(SETTINGS);
    early.entered();
    let averages: Vec<f64> = [8.0, 8.0, 2.0]
        .into_iter()
        .map(|queued| {
            early.observe(queued, MS(1));
            early.average()
        })
        .collect();
    assert_eq!(averages, [2.0, 3.5, 3.125]); // 0 + 8/4, 2 + 6/4, 3.5 − 1.5/4
}

/// Four packet times of idling count as four arrivals at an empty queue: 3.5 × 0.75⁴. Until the last packet
/// has left, the link is not idle.
#[test]
fn an_idle_time_counts_as_the_packets_that_could_have_been_sent() {
    let mut early = early(SETTINGS);
    early.entered();
    early.observe(8.0, MS(0));
    early.observe(8.0, MS(0));
    early.emptied(MS(10));
    early.observe(0.0, MS(14));
    assert!((early.average() - 1.107_421_875).abs() < 1e-12);
    // That packet was dropped: the link is idle still, and the time counts once.
    early.observe(0.0, MS(15));
    assert!((early.average() - 1.107_421_875 * 0.75).abs() < 1e-12);
    early.entered();
    early.emptied(MS(20));
    early.observe(0.0, MS(19));
    assert!((early.average() - 1.107_421_875 * 0.75 * 0.75).abs() < 1e-12);
}

/// Half a packet time: 0.75 to the power of one half, where a table of whole powers would have none.
#[test]
fn the_power_is_exact() {
    let mut early = early(SETTINGS);
    early.entered();
    early.observe(16.0, MS(0));
    early.emptied(MS(0));
    early.observe(0.0, Time::from_microseconds(500));
    assert!((early.average() - 4.0 * 0.75_f64.sqrt()).abs() < 1e-12);
}

/// The distance between drops for an average that stays at 20: `p_b` is 0.05, so each distance from 1 to 20 has
/// the same probability (Floyd and Jacobson section 7, method 2). Of 20,000 each takes 1000; the standard
/// deviation of a count is 31.
#[test]
fn distances_between_drops_are_uniform() {
    let mut early = early(Settings {
        weight: 1.0,
        ..SETTINGS
    });
    early.entered();
    let mut counts = [0_i32; 20];
    assert_eq!(early.arrival(20.0, 1.0, false, MS(0)), Verdict::Pass);
    for _ in 0..20_000 {
        let distance = (1..1000)
            .find(|_| early.arrival(20.0, 1.0, false, MS(0)) == Verdict::Early)
            .expect("a drop");
        counts[distance - 1] += 1;
    }
    assert!(
        counts.iter().all(|count| (count - 1000).abs() < 150),
        "{counts:?}"
    );
}

/// With `wait` each distance from 21 to 40 has the same probability: 1/`p_b` packets more (the ns Manual, class RED).
#[test]
fn waiting_adds_the_inverse_of_the_probability_to_each_distance() {
    let mut early = early(Settings {
        weight: 1.0,
        wait: true,
        ..SETTINGS
    });
    early.entered();
    let mut counts = [0_i32; 41];
    assert_eq!(early.arrival(20.0, 1.0, false, MS(0)), Verdict::Pass);
    for _ in 0..20_000 {
        let distance = (1..1000)
            .find(|_| early.arrival(20.0, 1.0, false, MS(0)) == Verdict::Early)
            .expect("a drop");
        counts[distance] += 1;
    }
    assert_eq!(counts[..21].iter().sum::<i32>(), 0);
    assert!(
        counts[21..].iter().all(|count| (count - 1000).abs() < 150),
        "{counts:?}"
    );
}

/// Packets of a third of an average packet: the distances are three times as long.
#[test]
fn short_packets_are_dropped_in_proportion() {
    let mut early = early(Settings {
        weight: 1.0,
        ..SETTINGS
    });
    early.entered();
    let drops = (0..63_000)
        .filter(|_| early.arrival(20.0, 1.0 / 3.0, false, MS(0)) == Verdict::Early)
        .count();
    // The mean distance is 3 × 10 + 0.5 packets of that length (uniform, rounded up).
    assert!((2000..2140).contains(&drops), "{drops}");
}

/// The count begins when the average comes between the thresholds: the first packet there is never dropped.
#[test]
fn the_first_packet_between_the_thresholds_passes() {
    let mut early = early(Settings {
        weight: 1.0,
        max_probability: 1.0,
        ..SETTINGS
    });
    early.entered();
    for _ in 0..1000 {
        assert_eq!(early.arrival(9.9, 1.0, false, MS(0)), Verdict::Pass);
        assert_eq!(early.arrival(29.999, 1.0, false, MS(0)), Verdict::Pass);
    }
    assert_eq!(early.arrival(30.0, 1.0, false, MS(0)), Verdict::Forced);
}

#[test]
fn the_probability_rises_to_the_upper_threshold_and_gently_above() {
    let zone = |average, gentle| {
        let mut early = early(Settings { gentle, ..SETTINGS });
        early.average = average;
        early.zone()
    };
    for (average, abrupt, gentle) in [
        (9.0, Zone::Below, Zone::Below),
        (10.0, Zone::Between(0.0), Zone::Between(0.0)),
        (20.0, Zone::Between(0.05), Zone::Between(0.05)),
        (30.0, Zone::Above, Zone::Between(0.1)),
        (45.0, Zone::Above, Zone::Between(0.55)),
        (60.0, Zone::Above, Zone::Above),
    ] {
        assert_eq!(zone(average, false), abrupt);
        assert_eq!(zone(average, true), gentle);
    }
}

/// Target 18 to 22: above, the probability grows by a quarter, at most 0.01; below, it falls to nine tenths.
#[test]
fn the_maximum_probability_is_adapted_step_by_step() {
    for (average, before, after) in [
        (25.0, 0.1, 0.11),
        (25.0, 0.02, 0.025),
        (25.0, 0.501, 0.501),
        (20.0, 0.1, 0.1),
        (15.0, 0.1, 0.09),
        (15.0, 0.009, 0.009),
    ] {
        let mut early = early(Settings {
            max_probability: before,
            adaptation: Some(ADAPTATION_INTERVAL),
            ..SETTINGS
        });
        early.entered();
        early.average = average;
        early.observe(average, MS(499));
        assert_eq!(early.max_probability(), before);
        early.observe(average, MS(500));
        assert!((early.max_probability() - after).abs() < 1e-12);
    }
}

/// Two adaptations were due while the link idled: the first finds the average at 25, the second, 500 packet
/// times later, far below.
#[test]
fn missed_adaptations_are_applied() {
    let mut early = early(Settings {
        adaptation: Some(ADAPTATION_INTERVAL),
        ..SETTINGS
    });
    early.average = 25.0;
    early.emptied(MS(500));
    early.observe(0.0, MS(1100));
    assert!((early.max_probability() - 0.11 * 0.9).abs() < 1e-12);
}

/// Bursts of the recorded runs: min 30,000 B and 33 packets of 1500 B give 1/16, min 15,000 B and 16 packets
/// 1/8; and 1/2 lets a burst of as many packets as the threshold pass.
#[test]
fn the_weight_follows_from_the_burst() {
    assert_eq!(weight_for_burst(20.0, 33.0), Some(0.0625));
    assert_eq!(weight_for_burst(10.0, 16.0), Some(0.125));
    assert_eq!(weight_for_burst(20.0, 20.0), Some(0.5));
    assert_eq!(weight_for_burst(20.0, 19.0), None);
}
