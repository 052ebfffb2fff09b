//! Version 1 ACK by ACK: the state machine on a path of 1000 segments/s and 100 ms.
#![allow(clippy::float_cmp)] // windows are whole segments

use ackclock_core::{Rate, Time};
use serde_json::json;

use super::super::window::testing::{ack, LOSS};
use super::cycle::PHASES;
use super::*;

const MSS: u32 = 1000;
const RTT: Time = Time::from_milliseconds(100);

fn parameters() -> Value {
    json!({
        "startup_gain": 2.885,
        "probe_gain": 1.25,
        "cwnd_gain": 2.0,
        "bandwidth_window": 10,
        "min_rtt_window_s": 10.0,
        "probe_rtt_duration_s": 0.2,
        "pacing_margin": 0.01,
        "policer_detection": true,
    })
}

fn opened(seed: u64) -> Bbr {
    let mut bbr = Bbr::new(
        Parameters::deserialize(&parameters()).expect("the card's"),
        10.0,
    );
    bbr.on_established(&Opening {
        now: Time::ZERO,
        srtt: RTT,
        mss_bytes: MSS,
        seed,
    });
    bbr
}

/// Feeds rounds of one ACK each, which deliver `rate` segments/s and leave `in_flight` segments.
struct Path {
    now: Time,
    delivered: u64,
}

impl Path {
    fn new() -> Path {
        Path {
            now: Time::ZERO,
            delivered: 0,
        }
    }

    fn round(&mut self, rate: f64, in_flight: u32) -> Ack {
        self.now += RTT;
        let before = self.delivered;
        let segments = (rate * RTT.seconds()) as u32;
        self.delivered += u64::from(segments);
        Ack {
            rtt: Some(RTT),
            srtt: RTT,
            min_rtt: RTT,
            prior_in_flight: in_flight + segments,
            in_flight,
            delivery_rate: Some(Rate::from_bytes_per_second(rate * f64::from(MSS))),
            delivered: self.delivered,
            prior_delivered: before,
            ..ack(self.now, segments)
        }
    }
}

/// A sender that has found the pipe full and drained it.
fn steady(seed: u64) -> (Bbr, Path) {
    let (mut bbr, mut path) = (opened(seed), Path::new());
    for _ in 0..4 {
        bbr.on_ack(&path.round(1000.0, 200));
    }
    bbr.on_ack(&path.round(1000.0, 90));
    assert_eq!(bbr.mode, Mode::ProbeBw);
    (bbr, path)
}

/// 2.885 × 10 segments × 1000 B per 100 ms, less 1 %.
#[test]
fn the_first_pacing_rate_is_the_gain_times_the_initial_window_per_rtt() {
    let rate = opened(1).pacing_rate().expect("it always paces");
    assert!((rate.bytes_per_second() - 0.99 * 288_500.0).abs() < 1e-6);
}

#[test]
fn startup_ends_after_three_rounds_without_a_quarter_more() {
    let (mut bbr, mut path) = (opened(1), Path::new());
    for rate in [100.0, 200.0, 400.0, 800.0, 1000.0, 1200.0, 1200.0] {
        bbr.on_ack(&path.round(rate, 300));
        assert_eq!(bbr.mode, Mode::Startup, "at {rate}");
    }
    // 1000 was a quarter more than 800; 1200 is not a quarter more than 1000.
    bbr.on_ack(&path.round(1200.0, 300));
    assert_eq!(bbr.mode, Mode::Drain);
    let rate = bbr.pacing_rate().expect("paced").bytes_per_second();
    assert!((rate - 0.99 * 1_200_000.0 / 2.885).abs() < 1e-6);
}

#[test]
fn drain_ends_when_no_more_than_the_bdp_is_in_flight() {
    let (mut bbr, mut path) = (opened(1), Path::new());
    for _ in 0..4 {
        bbr.on_ack(&path.round(1000.0, 200));
    }
    // The BDP of 100 segments and room for three batches of two.
    bbr.on_ack(&path.round(1000.0, 108));
    assert_eq!(bbr.mode, Mode::Drain);
    bbr.on_ack(&path.round(1000.0, 106));
    assert_eq!(bbr.mode, Mode::ProbeBw);
}

/// 2 × 100 segments, three batches of two, and what ACKs ran ahead.
#[test]
fn the_window_is_twice_the_bdp_with_room_for_batches_and_aggregation() {
    let (mut bbr, mut path) = steady(1);
    while bbr.cycle.phase == 0 {
        bbr.on_ack(&path.round(1000.0, 100));
    }
    bbr.on_ack(&path.round(1000.0, 100));
    let aggregated = bbr.path.aggregation.excess() as u32;
    assert_eq!(bbr.window.cwnd(), (206 + aggregated).next_multiple_of(2));
}

#[test]
fn the_cycle_begins_anywhere_but_in_the_draining_phase() {
    let mut seen = [false; PHASES as usize];
    for seed in 0..200 {
        let (bbr, _) = steady(seed);
        seen[bbr.cycle.phase as usize] = true;
    }
    assert!(!seen[DRAINING_PHASE as usize]);
    assert_eq!(seen.iter().filter(|&&seen| seen).count(), 7);
}

#[test]
fn eight_phases_make_a_cycle_of_gains() {
    let (mut bbr, mut path) = steady(3);
    let mut gains = Vec::new();
    for _ in 0..16 {
        // Above 1.25 BDP before, at the BDP after: neither ends a phase early or holds it up.
        let ack = Ack {
            prior_in_flight: 140,
            ..path.round(1000.0, 110)
        };
        bbr.on_ack(&Ack {
            now: ack.now + Time::from_milliseconds(1),
            ..ack
        });
        path.now += Time::from_milliseconds(1);
        gains.push(bbr.pacing_gain());
    }
    let first = gains
        .iter()
        .position(|&gain| gain == 1.25)
        .expect("a probe");
    let mut cycle = gains.clone();
    cycle.rotate_left(first);
    assert_eq!(cycle[..8], [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]);
    assert_eq!(cycle[..8], cycle[8..]);
}

#[test]
fn losses_do_not_change_the_pacing_rate() {
    let (mut bbr, mut path) = steady(1);
    bbr.on_ack(&path.round(1000.0, 100));
    bbr.on_loss(&LOSS);
    let lossy = Ack {
        newly_lost: 10,
        recovering: true,
        ..path.round(1000.0, 90)
    };
    bbr.on_ack(&lossy);
    let rate = bbr.pacing_rate().expect("paced").bytes_per_second();
    assert!((rate - 990_000.0 * bbr.pacing_gain()).abs() < 1e-3);
}

#[test]
fn a_rate_limited_by_the_application_does_not_lower_the_bandwidth() {
    let (mut bbr, mut path) = steady(1);
    for _ in 0..20 {
        bbr.on_ack(&Ack {
            application_limited: true,
            ..path.round(100.0, 10)
        });
    }
    assert_eq!(bbr.bandwidth(), 1000.0);
    for _ in 0..20 {
        bbr.on_ack(&path.round(500.0, 50));
    }
    assert_eq!(bbr.bandwidth(), 500.0, "ten rounds later it is forgotten");
}

#[test]
fn it_governs_its_recovery_and_its_pacing() {
    let bbr = opened(1);
    assert_eq!(bbr.recovery_policy(), RecoveryPolicy::Controller);
    assert!(bbr.requires_pacing());
    assert_eq!(bbr.min_tso_segs(), 2);
}

#[test]
fn gains_that_do_not_probe_are_rejected() {
    let with = |name: &str, value: f64| {
        let mut parameters = parameters();
        parameters[name] = value.into();
        make(&parameters, 10.0)
    };
    assert!(with("startup_gain", 1.0).is_err());
    assert!(with("probe_gain", 2.5).is_err());
    assert!(with("cwnd_gain", 0.5).is_err());
    assert!(with("min_rtt_window_s", 0.0).is_err());
    assert!(with("cwnd_gain", 3.0).is_ok());
}
