//! Flows of known laws, through a path of a given length in segments.

use ackclock_core::Time;
use serde_json::json;

use crate::identify::ranking::Candidate;
use crate::identify::replay::{Counting, Driver, Sender};
use crate::identify::series::{AckSample, CaState, Series, Signal};

pub const RTT: Time = Time::from_milliseconds(50);
/// Segments that the path holds without a queue; each one more costs a millisecond.
const EMPTY: u32 = 30;
/// Between the rounds, longer than any RTT.
pub const SPACING: Time = Time::from_milliseconds(200);
const ROUNDS: u32 = 400;
const MSS_BYTES: u32 = 1448;

pub fn candidates() -> Vec<Candidate> {
    let cards = [
        ("reno", json!({"slow_start": "standard"}), true),
        ("vegas", json!({"alpha": 2, "beta": 4, "gamma": 1}), true),
        (
            "scalable",
            json!({"a": 0.01, "b": 0.125, "slow_start": "standard"}),
            true,
        ),
        (
            "cubic",
            json!({
                "c": 0.4, "beta": 0.7, "fast_convergence": true, "reno_friendly": true, "reno_catch_up": false,
                "slow_start": "hystart", "delayed_ack_correction": true, "whole_segments": true, "tick_s": 0.004
            }),
            true,
        ),
        (
            "aimd",
            json!({"increase": 1.0, "beta": 0.5, "slow_start_step": 1.0, "slow_start": "standard"}),
            false,
        ),
    ];
    cards
        .iter()
        .map(|(name, card, deployed)| Candidate::new(name, card, *deployed).expect("its card"))
        .collect()
}

/// A flow whose window is `window(round, the window before)`, and whose losses come when a window exceeds `pipe`.
pub fn flow(pipe: u32, mut window: impl FnMut(&AckSample) -> u32) -> Series {
    let mut samples = Vec::new();
    let mut observed = 10;
    let mut recovering = false;
    for round in 1..ROUNDS {
        let flight = observed;
        let lost = !recovering && flight > pipe;
        let queue_ms = u64::from(flight.saturating_sub(EMPTY));
        let rtt = RTT + Time::from_milliseconds(queue_ms);
        for ack in 1..=flight {
            let mut sample = AckSample {
                time: SPACING.scaled(f64::from(round)) + Time::from_microseconds(u64::from(ack)),
                delivered: 1,
                advanced: 1,
                rtt: Some(rtt),
                oldest_rtt: Some(rtt),
                prior_in_flight: flight,
                in_flight: flight - 1,
                outstanding: flight - 1,
                signal: (lost && ack == 1).then_some(Signal::Loss),
                ca_state: if lost {
                    CaState::Recovery
                } else {
                    CaState::Open
                },
                ..AckSample::default()
            };
            observed = window(&sample);
            sample.window = observed;
            samples.push(sample);
        }
        recovering = lost;
    }
    Series {
        mss_bytes: MSS_BYTES,
        initial_window: Some(10),
        is_l4s: false,
        handshake: Some(RTT),
        samples,
    }
}

/// A flow of one of the candidates.
pub fn flow_of(name: &str, pipe: u32) -> Series {
    let candidates = candidates();
    let named = |one: &&Candidate| one.name() == name;
    let mut controller = candidates
        .iter()
        .find(named)
        .expect("it is one")
        .controller(10);
    let mut sender = Sender::new(&Series {
        mss_bytes: MSS_BYTES,
        handshake: Some(RTT),
        ..Series::default()
    });
    let mut driver = Driver::new(Counting::Segments, false, MSS_BYTES);
    flow(pipe, |sample| {
        sender.measure(sample);
        let input = sender.controller_input(sample, sample.time);
        driver.follow(controller.as_mut(), &input).cwnd as u32
    })
}
