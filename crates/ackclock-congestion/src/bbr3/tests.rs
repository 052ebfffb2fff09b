//! Version 3 ACK by ACK, on a path of 1000 segments/s and 100 ms.
#![allow(clippy::float_cmp)] // whole segments

use serde_json::json;

use super::super::window::testing::{ack, LOSS};
use super::*;

const MSS: u32 = 1000;
const RTT: Time = Time::from_milliseconds(100);

fn parameters() -> Value {
    json!({
        "startup_gain": 2.77,
        "drain_gain": 0.5,
        "up_gain": 1.25,
        "down_gain": 0.9,
        "cwnd_gain": 2.0,
        "up_cwnd_gain": 2.25,
        "probe_rtt_cwnd_gain": 0.5,
        "loss_threshold": 0.02,
        "beta": 0.7,
        "headroom": 0.15,
        "probe_wait_s": 2.0,
        "probe_wait_spread_s": 1.0,
        "reno_rounds": 63,
        "min_rtt_window_s": 10.0,
        "probe_rtt_interval_s": 1000.0,
        "probe_rtt_duration_s": 0.2,
        "pacing_margin": 0.01,
    })
}

/// A sender on a path that delivers 1000 segments/s, with an ACK for each round of 100.
struct Path {
    bbr: Bbr3,
    now: Time,
    delivered: u64,
}

impl Path {
    fn new() -> Path {
        let parameters = Parameters::deserialize(&parameters()).expect("the card's");
        let mut bbr = Bbr3::new(parameters, 10.0);
        bbr.on_established(&Opening {
            now: Time::ZERO,
            srtt: RTT,
            mss_bytes: MSS,
            seed: 1,
        });
        Path {
            bbr,
            now: Time::ZERO,
            delivered: 0,
        }
    }

    /// A round with `in_flight` segments in it, of which `lost` are found lost.
    fn round(&mut self, in_flight: u32, lost: u32) -> State {
        self.now += RTT;
        let before = self.delivered;
        self.delivered += 100;
        self.bbr.on_ack(&Ack {
            rtt: Some(RTT),
            srtt: RTT,
            prior_in_flight: in_flight,
            in_flight,
            delivery_rate: Some(Rate::from_bytes_per_second(1000.0 * f64::from(MSS))),
            delivered: self.delivered,
            prior_delivered: before,
            newly_lost: lost,
            window_limited: false,
            ..ack(self.now, 100)
        });
        self.bbr.state
    }

    /// Rounds until a state is reached.
    fn until(&mut self, state: State) {
        let reached = (0..100).any(|_| self.round(100, 0) == state);
        assert!(reached, "{state:?}");
    }
}

fn probing() -> Path {
    let mut path = Path::new();
    path.until(State::Up);
    path
}

#[test]
fn the_states_follow_each_other() {
    let mut path = Path::new();
    let mut states = vec![State::Startup];
    for _ in 0..60 {
        let queues = matches!(path.bbr.state, State::Startup | State::Up);
        let state = path.round(if queues { 160 } else { 100 }, 0);
        if states.last() != Some(&state) {
            states.push(state);
        }
    }
    assert_eq!(
        states[..7],
        [
            State::Startup,
            State::Drain,
            State::Cruise,
            State::Refill,
            State::Up,
            State::Down,
            State::Cruise,
        ],
        "Drain leaves nothing to do for DOWN"
    );
}

#[test]
fn a_flight_with_more_than_2_percent_lost_in_a_probe_bounds_the_long_term() {
    let mut path = probing();
    assert!(path.bbr.long_term.volume.is_infinite());
    assert_eq!(path.round(160, 3), State::Up, "3 of 160 are less than 2 %");
    assert!(path.bbr.long_term.volume.is_infinite());
    assert_eq!(path.round(160, 8), State::Down);
    // 152 before the eight, of which 2 % are 3.04, and none of them lost: 152 + 3.04 / 0.98.
    let bound = path.bbr.long_term.volume;
    assert!((bound - (152.0 + 3.04 / 0.98)).abs() < 1e-9, "{bound}");
}

#[test]
fn the_bound_is_min_beta_of_the_bdp() {
    let mut path = probing();
    path.round(40, 20);
    path.round(40, 20);
    assert!((path.bbr.long_term.volume - 70.0).abs() < 1e-9);
}

/// Section 5.5.11.2: the probe goes on, and the bounds of the episode are forgotten.
#[test]
fn a_spurious_loss_in_a_probe_leads_back_to_it() {
    let mut path = probing();
    path.bbr.on_loss(&LOSS);
    path.round(160, 3);
    assert_eq!(path.round(160, 8), State::Down);
    let cwnd = path.bbr.cwnd();
    path.bbr.undo(&PriorWindow {
        cwnd,
        ssthresh: f64::INFINITY,
    });
    assert_eq!(path.bbr.state, State::Refill);
    assert!(path.bbr.long_term.volume.is_infinite());
    assert_eq!(path.round(100, 0), State::Up);
}

#[test]
fn a_spurious_loss_outside_a_probe_leaves_the_state_and_restores_the_bounds() {
    let mut path = Path::new();
    path.until(State::Cruise);
    path.bbr.on_loss(&LOSS);
    path.round(100, 1);
    path.round(100, 0);
    assert!(path.bbr.short_term.bandwidth.is_finite());
    let cwnd = path.bbr.cwnd();
    path.bbr.undo(&PriorWindow {
        cwnd,
        ssthresh: f64::INFINITY,
    });
    assert_eq!(path.bbr.state, State::Cruise);
    assert!(path.bbr.short_term.bandwidth.is_infinite());
    assert!(path.bbr.short_term.volume.is_infinite());
}

/// The draft's case "Skipping PROBE_RTT Due to Application-Limited Sending".
#[test]
fn a_restart_from_idle_skips_probe_rtt() {
    let mut path = Path::new();
    path.until(State::Cruise);
    let idle_since = path.now;
    path.now += Time::from_seconds(1001.0);
    path.bbr.on_restart(&Restart {
        now: path.now,
        idle_since,
        rto: RTT,
        initial_window: 10,
    });
    assert!(path.bbr.idle_restart);
    assert_ne!(path.round(100, 0), State::ProbeRtt);
}

/// The draft's case "Handling Application-Limited Sending During PROBE_REFILL".
#[test]
fn a_refill_that_the_application_limits_leaves_the_bandwidth() {
    let mut path = Path::new();
    path.until(State::Refill);
    let before = path.bbr.path.bandwidth.get();
    path.now += RTT;
    let prior_delivered = path.delivered;
    path.delivered += 10;
    path.bbr.on_ack(&Ack {
        rtt: Some(RTT),
        srtt: RTT,
        delivery_rate: Some(Rate::from_bytes_per_second(100.0 * f64::from(MSS))),
        delivered: path.delivered,
        prior_delivered,
        application_limited: true,
        window_limited: false,
        ..ack(path.now, 10)
    });
    assert_eq!(path.bbr.path.bandwidth.get(), before);
    assert_eq!(path.bbr.state, State::Up);
}

#[test]
fn cruising_leaves_headroom_below_the_bound() {
    let mut path = probing();
    path.round(160, 3);
    path.round(160, 8);
    path.until(State::Cruise);
    let bound = path.bbr.long_term.volume;
    assert_eq!(path.bbr.cwnd(), (bound - 0.15 * bound).floor());
}

#[test]
fn losses_outside_a_probe_bound_the_short_term_until_the_next_one() {
    let mut path = Path::new();
    path.until(State::Cruise);
    assert!(path.bbr.short_term.volume.is_infinite());
    path.round(100, 1);
    let cwnd = path.bbr.cwnd();
    path.round(100, 0);
    // A round delivered 100 segments at 1000/s; 0.7 of the window are more.
    let bounds = path.bbr.short_term;
    assert_eq!((bounds.bandwidth, bounds.volume), (1000.0, 0.7 * cwnd));
    assert!(path.bbr.long_term.volume.is_infinite());
    path.until(State::Refill);
    assert!(path.bbr.short_term.volume.is_infinite());
}

/// Section 5.3.3.6: after a probe that lost too much, the next one stops at the level that did.
#[test]
fn the_probe_after_one_that_lost_too_much_is_precautionary() {
    let mut path = probing();
    path.round(160, 3);
    path.round(160, 8);
    path.until(State::Up);
    assert_eq!(path.round(160, 0), State::Down, "above the bound");
    assert_eq!(path.round(100, 0), State::Refill, "all went well");
}

/// The state after a round of recovery with so many reports of two losses each, of 160 in flight.
fn after_reports(reports: u64) -> State {
    let mut path = Path::new();
    let mut at = |prior_delivered: u64, delivered: u64, lost: u32| {
        path.now += Time::from_milliseconds(10);
        path.bbr.on_ack(&Ack {
            rtt: Some(RTT),
            prior_in_flight: 160,
            in_flight: 160,
            delivery_rate: Some(Rate::from_bytes_per_second(1e6)),
            delivered,
            prior_delivered,
            newly_lost: lost,
            recovering: true,
            ..ack(path.now, 1)
        });
        path.bbr.state
    };
    for report in 0..reports {
        assert_eq!(at(0, 10 + report, 2), State::Startup);
    }
    at(10, 20, 0)
}

#[test]
fn startup_ends_with_six_reports_of_loss_in_a_round_of_recovery() {
    assert_eq!(after_reports(5), State::Startup);
    assert_eq!(after_reports(6), State::Drain);
}

#[test]
fn it_governs_its_recovery_and_its_pacing() {
    let mut path = Path::new();
    assert_eq!(path.bbr.recovery_policy(), RecoveryPolicy::Controller);
    assert!(path.bbr.requires_pacing());
    path.until(State::Cruise);
    let before = path.bbr.cwnd();
    path.bbr.on_loss(&LOSS);
    assert_eq!(path.bbr.cwnd(), before, "a loss alone changes no window");
    path.bbr.on_timeout(path.now, 100);
    assert_eq!(path.bbr.cwnd(), 1.0);
}

#[test]
fn invalid_parameters_are_rejected() {
    let with = |name: &str, value: f64| {
        let mut parameters = parameters();
        parameters[name] = value.into();
        make(&parameters, 10.0)
    };
    for (name, value) in [
        ("startup_gain", 1.0),
        ("up_gain", 1.0),
        ("drain_gain", 1.5),
        ("down_gain", 0.0),
        ("cwnd_gain", 0.9),
        ("beta", 1.0),
        ("probe_wait_s", 0.0),
        ("probe_rtt_cwnd_gain", 2.0),
        ("min_rtt_window_s", f64::INFINITY),
    ] {
        assert!(with(name, value).is_err(), "{name} = {value}");
    }
    assert!(with("beta", 0.5).is_ok());
}
