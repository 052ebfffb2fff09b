//! The draft's equations, with numbers computed by hand, and its steady state.

// Windows are sums of binary fractions unless a tolerance says otherwise.
#![allow(clippy::float_cmp)]

use super::super::window::testing::{ack, LOSS};
use super::super::Restart;
use super::*;
use serde_json::json;

const RTT: Time = Time::from_milliseconds(5);

fn prague(cwnd: f64, rtt_ref_after: u32) -> Prague {
    let card = json!({
        "rtt_ref_s": 0.025, "rtt_ref_after": rtt_ref_after, "classic_ecn_fallback": false,
        "slow_start": "standard",
    });
    let mut prague = Prague::new(
        Parameters::deserialize(card).expect("the spec's parameters"),
        cwnd,
    );
    prague.on_established(&Opening {
        now: Time::ZERO,
        srtt: RTT,
        mss_bytes: 1000,
        seed: 0,
    });
    prague
}

/// A connection whose ACKs are spread evenly over each RTT, one for each segment.
struct Path {
    prague: Prague,
    rtt: Time,
    now: Time,
    acked: u64,
    next: u64,
}

impl Path {
    fn new(prague: Prague, rtt: Time) -> Path {
        let next = prague.window.cwnd() as u64;
        Path {
            prague,
            rtt,
            now: Time::ZERO,
            acked: 0,
            next,
        }
    }

    fn ack(&mut self, marked: bool) {
        let cwnd = self.prague.window.cwnd();
        self.now += Time::from_seconds(self.rtt.seconds() / cwnd);
        self.acked += 1;
        self.next = self.next.max(self.acked + cwnd as u64);
        self.prague.on_ecn_feedback(&EcnFeedback {
            delivered: 1,
            marked: u32::from(marked),
            next: self.next,
            unacknowledged: self.acked,
        });
        self.prague.on_ack(&Ack {
            srtt: self.rtt,
            unacknowledged: self.acked,
            next: self.next,
            ..ack(self.now, 1)
        });
    }
}

#[test]
fn the_first_mark_ends_slow_start_and_halves() {
    let mut path = Path::new(prague(20.0, 500), RTT);
    path.ack(false);
    assert_eq!(path.prague.window.cwnd(), 21.0);
    path.ack(true);
    assert_eq!(
        path.prague.window.cwnd(),
        10.5,
        "21 (1 − 1/2); a marked segment adds nothing"
    );
    assert_eq!(path.prague.window.ssthresh(), 10.5);
}

#[test]
fn a_reduction_is_followed_by_another_only_after_a_round() {
    let mut path = Path::new(prague(20.0, 500), RTT);
    path.ack(true);
    let reduced = path.prague.window.cwnd();
    // 20 segments were in flight, and the ACK that lets one more out.
    for _ in 0..20 {
        path.ack(true);
        assert_eq!(path.prague.window.cwnd(), reduced);
    }
    path.ack(true);
    assert!(path.prague.window.cwnd() < reduced);
}

#[test]
fn growth_goes_on_after_a_reduction() {
    let mut path = Path::new(prague(20.0, 500), RTT);
    path.ack(true);
    assert_eq!(path.prague.window.cwnd(), 10.0);
    path.ack(false);
    assert_eq!(path.prague.window.cwnd(), 10.1);
}

#[test]
fn alpha_moves_by_a_sixteenth_of_the_difference() {
    let mut prague = prague(20.0, 500);
    prague.alpha = Some(0.5);
    prague.observed = Some(ReferenceRound {
        end: 0,
        until: Time::ZERO,
    });
    prague.newly_marked = 2;
    prague.observe(&Ack {
        unacknowledged: 1,
        ..ack(Time::ZERO, 8)
    });
    assert_eq!(prague.alpha, Some(0.5 + (0.25 - 0.5) / 16.0));
}

#[test]
fn below_the_reference_rtt_growth_is_divided_by_m_squared() {
    for (rtt_ms, m) in [(5, 5.0), (25, 1.0), (100, 1.0)] {
        let mut path = Path::new(prague(20.0, 0), Time::from_milliseconds(rtt_ms));
        path.prague.window.end_slow_start();
        path.ack(false);
        let grown = path.prague.window.cwnd() - 20.0;
        assert!(
            (grown - 1.0 / (m * m * 20.0)).abs() < 1e-12,
            "{rtt_ms} ms: {grown}"
        );
    }
    let mut young = Path::new(prague(20.0, 500), RTT);
    young.prague.window.end_slow_start();
    young.ack(false);
    assert_eq!(young.prague.window.cwnd(), 20.05, "RTT-dependent at first");
}

#[test]
fn below_the_reference_rtt_a_round_lasts_25_ms() {
    let mut path = Path::new(prague(20.0, 0), RTT);
    path.prague.window.end_slow_start();
    path.ack(true);
    let start = path.now;
    let reduced = path.prague.window.cwnd();
    while path.prague.window.cwnd() >= reduced {
        path.ack(true);
    }
    let waited = path.now.since(start);
    let spacing = Time::from_microseconds(500);
    assert!(
        waited >= Time::from_milliseconds(25) && waited <= Time::from_milliseconds(25) + spacing
    );
}

#[test]
fn a_loss_halves_the_window_before_the_marks_of_its_round() {
    let mut path = Path::new(prague(20.0, 500), RTT);
    path.prague.window.end_slow_start();
    path.prague.alpha = Some(0.5);
    path.prague.observed = Some(ReferenceRound {
        end: 1000,
        until: Time::ZERO,
    });
    path.ack(true);
    assert_eq!(path.prague.window.cwnd(), 15.0);
    path.prague.on_loss(&LOSS);
    assert_eq!(path.prague.window.cwnd(), 10.0, "half of 20 taken together");
    let mut plain = prague(20.0, 500);
    plain.on_loss(&LOSS);
    assert_eq!((plain.window.cwnd(), plain.window.ssthresh()), (10.0, 10.0));
}

#[test]
fn a_timeout_restarts_from_one() {
    let mut prague = prague(20.0, 500);
    prague.on_timeout(Time::ZERO, 20);
    assert_eq!(
        (prague.window.cwnd(), prague.window.ssthresh()),
        (1.0, 10.0)
    );
    prague.on_restart(&Restart {
        now: Time::ZERO,
        idle_since: Time::ZERO,
        rto: RTT,
        initial_window: 10,
    });
    assert_eq!(prague.window.cwnd(), 1.0);
}

#[test]
fn the_window_is_paced_over_one_rtt_and_twice_as_fast_in_slow_start() {
    let mut prague = prague(20.0, 500);
    let bits = |prague: &Prague| prague.pacing_rate().map(Rate::bits_per_second);
    // 20 segments of 1000 bytes in 5 ms are 32 Mbit/s.
    assert_eq!(bits(&prague), Some(64e6));
    prague.window.end_slow_start();
    assert_eq!(bits(&prague), Some(32e6));
    prague.in_flight = 30;
    assert_eq!(bits(&prague), Some(48e6));
}

/// Mean window when every 1/`p`-th segment is marked, of the last half of `marks` marks.
fn mean_window(mut path: Path, p: f64, marks: u64) -> f64 {
    let period = (1.0 / p) as u64;
    path.prague.window.end_slow_start();
    let (mut segments, mut rounds) = (0.0, 0.0);
    for segment in 0..marks * period {
        path.ack(segment % period == period - 1);
        if segment > marks * period / 2 {
            segments += 1.0;
            rounds += 1.0 / path.prague.window.cwnd();
        }
    }
    segments / rounds
}

#[test]
fn the_steady_state_has_two_marks_per_round() {
    // Section 2.3.2: alpha = 2/cwnd, so cwnd = 2/p; with growth on unmarked segments alone, 2 (1 − p)/p.
    for p in [0.1, 0.02, 0.005] {
        let path = Path::new(prague(2.0 / p, 500), Time::from_milliseconds(50));
        let window = mean_window(path, p, 4000);
        let expected = 2.0 * (1.0 - p) / p;
        assert!(
            (window / expected - 1.0).abs() < 0.1,
            "p = {p}: {window}, {expected}"
        );
    }
}

#[test]
fn below_the_reference_the_rate_does_not_depend_on_the_rtt() {
    // M cwnd takes the place of cwnd: the rate is 2/p segments per 25 ms for every shorter RTT.
    let p = 0.01;
    for rtt_ms in [5, 10, 20] {
        let rtt = Time::from_milliseconds(rtt_ms);
        let path = Path::new(prague(8.0 * rtt_ms as f64, 0), rtt);
        let rate = mean_window(path, p, 4000) / rtt.seconds();
        let expected = 2.0 * (1.0 - p) / p / 0.025;
        assert!(
            (rate / expected - 1.0).abs() < 0.1,
            "{rtt_ms} ms: {rate}, {expected}"
        );
    }
}

#[test]
fn invalid_parameters_are_rejected() {
    assert!(make(&json!({}), 10.0).is_err());
}
