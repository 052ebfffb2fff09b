//! Which congestion control a captured flow used: the steps of `ackclock-capture`, told to `ackclock-replay`.

use ackclock_capture::steps::{self, FlowSteps};
use ackclock_core::Time;
use ackclock_replay::ranking::{rank, Candidate};
use ackclock_replay::series::{Series, Step};
use serde::Deserialize;
use serde_json::Value;

/// A control that may have been it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Card {
    name: String,
    /// All of them, as in a plan.
    parameters: Value,
    /// A mainline kernel has it, or a system takes it by default.
    deployed: bool,
}

/// Reads candidates, a JSON array of objects with `name`, `parameters` and `deployed`.
///
/// # Errors
/// Says what is wrong with them.
pub fn candidates(json: &str) -> Result<Vec<Candidate>, String> {
    let cards: Vec<Card> = serde_json::from_str(json).map_err(|error| error.to_string())?;
    cards
        .iter()
        .map(|card| Candidate::new(&card.name, &card.parameters, card.deployed))
        .collect::<Result<_, _>>()
        .map_err(|error| error.to_string())
}

/// A name, those of others that did the same, how probable it is, and by what share its windows are off.
pub type Named = (String, Vec<String>, f64, Option<f64>);

/// What explains a flow, the most probable first.
pub fn ranked(flow: &FlowSteps, candidates: &[Candidate]) -> Vec<Named> {
    let ranked = rank(&series(flow), candidates);
    let named = ranked
        .into_iter()
        .map(|one| (one.name, one.same, one.probability, one.off));
    named.collect()
}

/// A flow as replay knows it.
fn series(flow: &FlowSteps) -> Series {
    let origin_ns = flow
        .steps
        .first()
        .map_or(0, |first| first.time_ns.min(first.oldest_sent_ns));
    Series {
        mss_bytes: flow.mss_bytes,
        initial_window: flow.initial_window,
        handshake: flow.handshake_ns.map(|ns| time(ns, 0)),
        steps: flow
            .steps
            .iter()
            .map(|one| step(one, flow.mss_bytes, origin_ns))
            .collect(),
    }
}

/// Since `origin_ns`: no time is negative.
fn time(ns: i64, origin_ns: i64) -> Time {
    nanoseconds(ns.saturating_sub(origin_ns).max(0).cast_unsigned())
}

fn nanoseconds(ns: u64) -> Time {
    Time::from_picoseconds(ns.saturating_mul(1000))
}

fn step(one: &steps::Step, mss_bytes: u32, origin_ns: i64) -> Step {
    // What is left of whole segments is one more.
    let segments = |bytes: u32| bytes.div_ceil(mss_bytes.max(1));
    let delivered = segments(one.delivered_bytes);
    let rtt = |ns: Option<u32>| ns.map(|ns| nanoseconds(ns.into()));
    Step {
        time: time(one.time_ns, origin_ns),
        delivered,
        advanced: segments(one.advanced_bytes),
        selective: one.selective,
        marked: if one.marked { delivered } else { 0 },
        rtt: rtt(one.rtt_ns),
        oldest_rtt: rtt(one.oldest_rtt_ns),
        prior_in_flight: segments(one.prior_in_flight_bytes),
        in_flight: segments(one.in_flight_bytes),
        window: segments(one.window_bytes),
        oldest_sent: time(one.oldest_sent_ns, origin_ns),
        outstanding: segments(one.outstanding_bytes),
        signal: one.signal,
        phase: one.phase,
        limited_elsewhere: one.limited_elsewhere,
    }
}
