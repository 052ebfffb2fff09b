//! The draft's own example, and its rules on bins. Deliveries are spread evenly over each round trip.

use super::super::make;
use super::super::window::testing::ack;
use super::*;
use serde_json::json;

/// One bin is 35 ms, a window 350 ms.
const RTT: Time = Time::from_milliseconds(100);
const BIN: Time = Time::from_milliseconds(35);

const VIEW: View = View {
    cwnd: 1000.0,
    ssthresh: f64::INFINITY,
};

fn search() -> Search {
    let mut search = Search::default();
    search.initialize(Time::ZERO, RTT, 0);
    search
}

/// Deliveries per round trip in, one ACK a millisecond; the time of the exit in milliseconds, and its window.
fn exit_of(per_rtt: impl Fn(f64) -> f64) -> Option<(u64, f64)> {
    let mut search = search();
    let mut delivered = 0.0;
    for at_ms in 1..3000 {
        delivered += per_rtt(at_ms as f64 / 100.0) / 100.0;
        let ack = Ack {
            rtt: Some(RTT),
            delivered: delivered as u64,
            ..ack(Time::from_milliseconds(at_ms), 1)
        };
        if let Some(Steer::Exit(cwnd)) = search.on_ack(&ack, VIEW) {
            return Some((at_ms, cwnd));
        }
    }
    None
}

#[test]
fn doubling_deliveries_never_end_slow_start() {
    assert_eq!(
        exit_of(|rtts| 100.0 * (rtts.min(20.0)).exp2()).map(|(at, _)| at > 2000),
        Some(true)
    );
}

#[test]
fn constant_deliveries_are_half_of_what_is_expected() {
    let mut bins = Bins::new(Time::ZERO, BIN, 0);
    for bin in 1..40 {
        bins.update(Time::from_milliseconds(35 * bin + 1), 7 * bin);
    }
    let norm_diff = bins.norm_diff(RTT).expect("enough bins");
    assert!((norm_diff - 0.5).abs() < 1e-12, "{norm_diff}");
}

#[test]
fn slow_start_ends_soon_after_the_capacity_is_reached() {
    // Doubling until round trip 8, constant after that. With rates 2^(t/R) the window of 3.5 R before the capacity holds
    // R/ln 2 (2^8 − 2^4.5); x round trips later the current one has that of its part before, and 2^8 x.
    let norm_diff = |x: f64| {
        let doubling = |from: f64, to: f64| (to.exp2() - from.exp2()) / std::f64::consts::LN_2;
        let found = doubling(8.0 + x - 3.5, 8.0) + 256.0 * x;
        let expected =
            2.0 * (doubling(7.0 + x - 3.5, 8.0_f64.min(7.0 + x)) + 256.0 * (x - 1.0).max(0.0));
        (expected - found) / expected
    };
    let crossing = (0..300)
        .map(|n| f64::from(n) / 100.0)
        .find(|x| norm_diff(*x) >= THRESH)
        .expect("0.5 at last");
    let (at_ms, cwnd) = exit_of(|rtts| 100.0 * rtts.min(8.0).exp2()).expect("an exit");
    let late = at_ms as f64 / 100.0 - 8.0;
    // Decided at the end of a bin, and what the bins give to a bin is what its last ACK reports.
    assert!(
        (crossing - 0.02..crossing + 0.36 + 0.02).contains(&late),
        "{late} {crossing}"
    );
    // What five bins, 1.75 RTTs, have delivered is taken back.
    assert!(cwnd < VIEW.cwnd);
}

#[test]
fn the_drafts_example_of_four_rounds() {
    // Section 4, on the threshold: a window of four rounds; 1, 2, 4, 8, 16, 16 has (60 − 44) / 60.
    let norm = |rounds: &[f64]| {
        let (current, previous): (f64, f64) = (
            rounds[rounds.len() - 4..].iter().sum(),
            rounds[rounds.len() - 5..rounds.len() - 1].iter().sum(),
        );
        (2.0 * previous - current) / (2.0 * previous)
    };
    assert!((norm(&[1.0, 2.0, 4.0, 8.0, 16.0, 16.0]) - 16.0 / 60.0).abs() < 1e-12);
    assert!(norm(&[1.0, 2.0, 4.0, 8.0, 16.0]).abs() < 1e-12);
}

#[test]
fn an_interpolated_sum_is_moved_back_by_the_fraction() {
    let mut bins = Bins::new(Time::ZERO, BIN, 0);
    for bin in 1..20 {
        bins.update(Time::from_milliseconds(35 * bin + 1), bin * bin);
    }
    // Bin i (from 0) has (i + 1)² − i² = 2 i + 1 segments; those after 5 up to 15 are 256 − 36.
    assert!((bins.sum(5, 15, 0.0) - 220.0).abs() < 1e-12);
    assert!((bins.sum(4, 14, 0.0) - 200.0).abs() < 1e-12);
    assert!((bins.sum(5, 15, 0.5) - 210.0).abs() < 1e-12);
}

#[test]
fn it_waits_for_a_window_and_a_round_trip() {
    let mut bins = Bins::new(Time::ZERO, BIN, 0);
    for bin in 1..=12 {
        bins.update(Time::from_milliseconds(35 * bin + 1), 7 * bin);
        assert_eq!(bins.norm_diff(RTT), None, "{bin}");
    }
    // 100 ms are two bins and a part; the previous window needs the bins 0 to 10.
    bins.update(Time::from_milliseconds(35 * 13 + 1), 7 * 13);
    assert!(bins.norm_diff(RTT).is_some());
}

#[test]
fn an_rtt_of_fifteen_bins_is_too_long() {
    let mut bins = Bins::new(Time::ZERO, BIN, 0);
    for bin in 1..60 {
        bins.update(Time::from_milliseconds(35 * bin + 1), 7 * bin);
    }
    assert!(bins
        .norm_diff(Time::from_milliseconds(35 * 15 - 1))
        .is_some());
    assert_eq!(bins.norm_diff(Time::from_milliseconds(35 * 15)), None);
}

#[test]
fn a_gap_of_two_round_trips_starts_anew_and_a_shorter_one_does_not() {
    for (gap_bins, ended) in [(6, 20 + 6), (7, 0)] {
        let mut bins = Bins::new(Time::ZERO, BIN, 0);
        for bin in 1..=20 {
            bins.update(Time::from_milliseconds(35 * bin + 1), 7 * bin);
        }
        bins.update(Time::from_milliseconds(35 * (20 + gap_bins) + 1), 200);
        assert_eq!(bins.ended, ended);
    }
}

#[test]
#[allow(clippy::float_cmp)] // whole segments
fn the_exit_takes_back_the_last_five_bins() {
    let mut bins = Bins::new(Time::ZERO, BIN, 0);
    for bin in 1..=20 {
        bins.update(Time::from_milliseconds(35 * bin + 1), 7 * bin);
    }
    assert_eq!(bins.overshoot(), 35.0);
}

#[test]
fn the_handshake_or_the_first_sample_sets_the_bins() {
    let parameters = json!({ "slow_start": "search" });
    let mut reno = make("reno", &parameters, 10).expect("valid");
    reno.on_established(&Opening {
        now: Time::ZERO,
        srtt: RTT,
        mss_bytes: 1448,
        seed: 0,
    });
    let mut late = Search::default();
    let first = Ack {
        rtt: Some(RTT),
        ..ack(Time::from_milliseconds(500), 1)
    };
    assert_eq!(late.on_ack(&first, VIEW), None);
    assert_eq!(late.bins.map(|bins| bins.duration), Some(BIN));
    assert!(reno.cwnd() > 0.0);
}
