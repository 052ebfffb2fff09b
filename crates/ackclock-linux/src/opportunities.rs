//! Links that deliver at the opportunities of a trace: the input of our kernel module.
//!
//! The module (`opportunities.c`) is ours. It takes a trace in pieces of less than a page.

use std::fmt::Write;
use std::fs;

use ackclock_plan::{CoursePlan, LinkPlan, Plan};

use crate::error::Tried;
use crate::Error;

const TRACE: &str = "/sys/module/opportunities/parameters/trace";
const ZERO: &str = "/sys/module/opportunities/parameters/zero_ns";

/// Gaps per write.
const PIECE: usize = 480;

/// Report the opportunities of all links that have them, and when the run's time is 0 by the monotonic clock.
///
/// # Errors
/// The module is not there, or does not take them.
pub fn write_traces(plan: &Plan, zero_ns: i64) -> Result<(), Error> {
    let pieces_of_all: Vec<String> = plan.links.iter().enumerate().flat_map(pieces).collect();
    for piece in &pieces_of_all {
        fs::write(TRACE, piece).tried(|| TRACE.to_owned())?;
    }
    if pieces_of_all.is_empty() {
        return Ok(());
    }
    fs::write(ZERO, zero_ns.to_string()).tried(|| ZERO.to_owned())
}

/// A link's number, the wire bytes of an opportunity, the period, and gaps between opportunities, in milliseconds.
fn pieces((number, link): (usize, &LinkPlan)) -> Vec<String> {
    let Some(trace) = &link.trace else {
        return Vec::new();
    };
    let CoursePlan::Opportunities { at_ms, bytes } = &trace.course else {
        return Vec::new();
    };
    let begin = format!(
        "{number},{},{}",
        bytes + link.frame_overhead_bytes,
        (trace.period.seconds() * 1e3).round()
    );
    let mut last_ms = 0;
    at_ms
        .chunks(PIECE)
        .map(|piece| {
            piece.iter().fold(begin.clone(), |mut text, &at_ms| {
                let _ = write!(text, ",{}", at_ms - last_ms);
                last_ms = at_ms;
                text
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn link(at_ms: &[u64]) -> LinkPlan {
        let course = json!({"kind": "opportunities", "at_ms": at_ms, "bytes": 1500});
        serde_json::from_value(json!({
            "name": "bottleneck", "ends": null, "rate_bps": 1e6, "delay_s": 0.0, "weight": 1.0, "burst_bytes": null,
            "frame_overhead_bytes": 14, "queue": {"discipline": "pfifo", "parameters": {}}, "loss": null, "medium": null,
            "trace": {"file": "t", "sha256": "", "period_s": 5.0, "course": course}, "bottleneck": true
        }))
        .expect("a link")
    }

    #[test]
    fn a_trace_is_written_as_gaps() {
        assert_eq!(
            pieces((3, &link(&[2, 2, 5, 5000]))),
            ["3,1514,5000,2,0,3,4995"]
        );
    }

    #[test]
    fn a_long_trace_is_written_in_consecutive_pieces() {
        let at_ms: Vec<u64> = (1..=1000).map(|number| 3 * number).collect();
        let pieces_of_all = pieces((0, &link(&at_ms)));
        assert_eq!(pieces_of_all.len(), 3);
        assert!(pieces_of_all
            .iter()
            .all(|piece| piece.starts_with("0,1514,5000,3,3,")));
    }

    /// A trace lasts up to 30 days, so that gaps of as many digits as possible are all alike.
    #[test]
    fn the_longest_piece_is_less_than_a_page() {
        let gap_ms = 30 * 24 * 3_600_000 / PIECE as u64;
        let at_ms: Vec<u64> = (1..=PIECE as u64).map(|number| gap_ms * number).collect();
        assert!(pieces((100, &link(&at_ms)))[0].len() < 4096);
    }
}
