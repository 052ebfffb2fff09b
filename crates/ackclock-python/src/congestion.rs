//! Identification of the CCA of a captured flow: converts its trace for `ackclock_analysis::identify`.

use ackclock_analysis::ack_trace::{self, AckTrace, ALL_MARKED};
use ackclock_analysis::identify::ranking::{rank, Candidate};
use ackclock_analysis::identify::series::{AckSample, Series};
use ackclock_core::Time;
use serde::Deserialize;
use serde_json::Value;

/// A candidate CCA.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Card {
    name: String,
    /// Its complete parameters, as in a plan.
    parameters: Value,
    /// A mainline kernel contains it, or an operating system has it as its default.
    deployed: bool,
    /// Its packets carry ECT(1).
    is_l4s: bool,
}

/// Read candidates, a JSON array of objects with the fields of [`Card`].
///
/// # Errors
/// Returns the reason if a candidate is invalid.
pub fn candidates(json: &str) -> Result<Vec<Candidate>, String> {
    let cards: Vec<Card> = serde_json::from_str(json).map_err(|error| error.to_string())?;
    cards
        .iter()
        .map(|card| {
            let candidate = Candidate::new(&card.name, &card.parameters, card.deployed)?;
            Ok(candidate.with_l4s(card.is_l4s))
        })
        .collect::<Result<_, ackclock_congestion::Error>>()
        .map_err(|error| error.to_string())
}

/// A name, the names of others with the same windows, its probability, and the median relative error of its windows.
pub type Named = (String, Vec<String>, f64, Option<f64>);

/// Rank the candidates for a flow, the most probable first.
pub fn ranked(flow: &AckTrace, candidates: &[Candidate]) -> Vec<Named> {
    let ranked = rank(&series(flow), candidates);
    let named = ranked
        .into_iter()
        .map(|one| (one.name, one.same, one.probability, one.off));
    named.collect()
}

/// Convert a trace to the input of a replay.
fn series(flow: &AckTrace) -> Series {
    let origin_ns = flow
        .samples
        .first()
        .map_or(0, |first| first.time_ns.min(first.oldest_sent_ns));
    Series {
        mss_bytes: flow.mss_bytes,
        initial_window: flow.initial_window,
        is_l4s: flow.is_l4s,
        handshake: flow.handshake_ns.map(|ns| time(ns, 0)),
        samples: flow
            .samples
            .iter()
            .map(|one| step(one, flow.mss_bytes, origin_ns))
            .collect(),
    }
}

/// Return the time since `origin_ns`, at least 0.
fn time(ns: i64, origin_ns: i64) -> Time {
    nanoseconds(ns.saturating_sub(origin_ns).max(0).cast_unsigned())
}

fn nanoseconds(ns: u64) -> Time {
    Time::from_picoseconds(ns.saturating_mul(1000))
}

fn step(one: &ack_trace::AckSample, mss_bytes: u32, origin_ns: i64) -> AckSample {
    // A partial segment counts as one.
    let segments = |bytes: u32| bytes.div_ceil(mss_bytes.max(1));
    let delivered = segments(one.delivered_bytes);
    let rtt = |ns: Option<u32>| ns.map(|ns| nanoseconds(ns.into()));
    AckSample {
        time: time(one.time_ns, origin_ns),
        delivered,
        advanced: segments(one.advanced_bytes),
        selective: one.selective,
        marked: match one.marks {
            ALL_MARKED => delivered,
            marks => delivered.min(marks.into()),
        },
        rtt: rtt(one.rtt_ns),
        oldest_rtt: rtt(one.oldest_rtt_ns),
        prior_in_flight: segments(one.prior_in_flight_bytes),
        in_flight: segments(one.in_flight_bytes),
        window: segments(one.window_bytes),
        oldest_sent: time(one.oldest_sent_ns, origin_ns),
        outstanding: segments(one.outstanding_bytes),
        signal: one.signal,
        ca_state: one.ca_state,
        not_cwnd_limited: one.not_cwnd_limited,
    }
}
