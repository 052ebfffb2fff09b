//! The contract of all controllers of real-time media, and helpers of their tests.

use ackclock_core::{Rate, Time};
use proptest::prelude::*;
use serde_json::{json, Value};

use super::{make, Feedback, MediaSource, PacketReport, RateController, CONTROLLERS};

/// A packet that arrived; times in ms.
pub fn report(sequence: u64, sent_ms: u64, arrival_ms: u64, bytes: u32) -> PacketReport {
    PacketReport {
        sequence,
        sent: Time::from_milliseconds(sent_ms),
        arrival: Some(Time::from_milliseconds(arrival_ms)),
        bytes,
        marked: false,
    }
}

/// A lost packet.
pub fn lost(sequence: u64, sent_ms: u64) -> PacketReport {
    PacketReport {
        arrival: None,
        ..report(sequence, sent_ms, 0, 500)
    }
}

/// 150 kbit/s to 1.5 Mbit/s from 300 kbit/s, 30 frames a second.
pub fn source() -> MediaSource {
    MediaSource {
        min: Rate::from_bits_per_second(150e3),
        start: Rate::from_bits_per_second(300e3),
        max: Rate::from_bits_per_second(1.5e6),
        frames_per_s: 30.0,
        packet_bytes: 1240,
        l4s: false,
    }
}

/// The default parameters of a controller.
pub fn defaults(name: &str) -> Value {
    match name {
        "nada" => json!({
            "priority": 1.0, "x_ref_s": 0.010, "kappa": 0.5, "eta": 2.0, "tau_s": 0.5, "delta_s": 0.1,
            "log_window_s": 0.5, "q_eps_s": 0.010, "filter_delay_s": 0.12, "gamma_max": 0.5, "q_bound_s": 0.050,
            "multi_loss": 7.0, "q_th_s": 0.050, "lambda": 0.5, "loss_ratio_ref": 0.01, "marking_ratio_ref": 0.01,
            "loss_penalty_s": 0.010, "marking_penalty_s": 0.002, "alpha": 0.1, "beta_s": 0.1, "beta_v": 0.1,
        }),
        "gcc" => json!({
            "burst_time_s": 0.005, "state_noise": 1e-3, "initial_error": 0.1, "chi": 0.01, "threshold_s": 0.0125,
            "min_threshold_s": 0.006, "max_threshold_s": 0.6, "overuse_time_s": 0.010, "k_u": 0.01, "k_d": 0.00018, "max_deltas": 60,
            "rate_window_s": 0.5, "beta": 0.85, "eta": 1.08, "pacing_factor": 2.5,
        }),
        "scream" => json!({
            "qdelay_target_lo_s": 0.06, "qdelay_target_hi_s": 0.4, "qdelay_avg_g": 0.25, "adapt_qdelay_target": true,
            "reduce_jitter": false, "min_ref_wnd": 3000, "bytes_in_flight_head_room": 1.5, "beta_loss": 0.7,
            "beta_ecn": 0.8, "l4s_avg_g_up": 0.125, "l4s_avg_g_down": 1.0 / 128.0, "post_congestion_delay_rtts": 100.0,
            "mul_increase_factor": 0.02, "virtual_rtt_s": 0.025, "ref_wnd_overhead_min": 1.5,
            "ref_wnd_overhead_max": 3.0, "packet_pacing_headroom": 1.5, "max_relaxed_pacing_factor": 4.0,
            "relaxed_pacing_limit_low": 0.8,
        }),
        _ => panic!("no defaults for {name}"),
    }
}

fn controller(name: &str) -> Box<dyn RateController> {
    make(name, &defaults(name), source()).expect("the defaults")
}

/// A report: how long after the last, packets of which 0 is lost and others have a delay in ms, and the mark.
type Round = (u64, Vec<(u16, bool)>);

fn rounds() -> impl Strategy<Value = Vec<Round>> {
    let packets = prop::collection::vec((0_u16..2000, any::<bool>()), 0..40);
    prop::collection::vec((0_u64..1500, packets), 1..60)
}

/// Feed the rounds; returns the target after each.
fn run(name: &str, rounds: &[Round]) -> Vec<f64> {
    let mut controller = controller(name);
    let (mut now, mut sequence) = (0, 0);
    let mut targets = Vec::new();
    for (after, delays) in rounds {
        now += after;
        let packets = delays.iter().map(|&(delay, marked)| {
            sequence += 1;
            if delay == 0 {
                return lost(sequence, now);
            }
            PacketReport {
                marked,
                ..report(sequence, now, now + u64::from(delay), 1000)
            }
        });
        let packets: Vec<_> = packets.collect();
        controller.on_feedback(&Feedback {
            now: Time::from_milliseconds(now + 2000),
            rtt: Time::from_milliseconds(100),
            packets: &packets,
        });
        for backlog in [0, 1000, 1_000_000] {
            assert!(controller.pacing_rate(backlog).bits_per_second() > 0.0);
        }
        targets.push(controller.target_rate(0).bits_per_second());
    }
    targets
}

proptest! {
    #[test]
    fn the_target_stays_within_its_limits_and_is_deterministic(rounds in rounds()) {
        for (name, _) in CONTROLLERS {
            let targets = run(name, &rounds);
            prop_assert!(targets.iter().all(|rate| (150e3..=1.5e6).contains(rate)), "{name}: {targets:?}");
            prop_assert_eq!(&targets, &run(name, &rounds));
        }
    }
}

#[test]
fn every_controller_grows_on_an_idle_path_and_falls_when_its_queue_grows() {
    for (name, _) in CONTROLLERS {
        let mut controller = controller(name);
        let mut sequence = 0;
        let mut feed =
            |controller: &mut Box<dyn RateController>, from: u64, to: u64, growth: u64| {
                for start in (from..to).step_by(100) {
                    // What the target sends in 100 ms, in ten packets, and 200 ms in flight.
                    let bytes = (controller.target_rate(0).bits_per_second() / 800.0) as u32;
                    controller.on_sent(20 * u64::from(bytes));
                    let packets: Vec<_> = (0..10)
                        .map(|n| {
                            sequence += 1;
                            let sent = start + 10 * n;
                            report(
                                sequence,
                                sent,
                                sent + 30 + growth * (sent - from) / 10,
                                bytes,
                            )
                        })
                        .collect();
                    controller.on_feedback(&Feedback {
                        now: Time::from_milliseconds(start + 200),
                        rtt: Time::from_milliseconds(60),
                        packets: &packets,
                    });
                }
            };
        feed(&mut controller, 0, 10_000, 0);
        let high = controller.target_rate(0).bits_per_second();
        assert!(high > 600e3, "{name}: {high}");
        feed(&mut controller, 10_000, 12_000, 2);
        let low = controller.target_rate(0).bits_per_second();
        assert!(low < 0.9 * high, "{name}: {high} to {low}");
    }
}

#[test]
fn unknown_names_and_parameters_are_rejected() {
    assert!(make("none", &json!({}), source()).is_err());
    for (name, _) in CONTROLLERS {
        assert!(make(name, &json!({}), source()).is_err());
        let mut extra = defaults(name);
        extra["x"] = json!(1);
        assert!(make(name, &extra, source()).is_err());
    }
}
