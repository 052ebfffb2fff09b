//! Features of a window without any controller: the reduction at a loss, and the growth.
//!
//! Reported as evidence beside the named algorithm ([`crate::identify`]); the [`crate::identify::ranking`] does not
//! use it. Reno keeps a half and grows in a straight line by a segment a round trip, CUBIC keeps 0.7 and slows down
//! before it speeds up.

use ackclock_core::Time;

use crate::identify::likelihood::{windows, Round};
use crate::identify::series::Series;

/// The time from the end of one recovery to the next loss.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Epoch {
    /// When its first and its last round trip ended.
    pub span: (Time, Time),
    /// Round trips.
    pub rounds: usize,
    /// The windows of its first and last one, segments.
    pub window: (f64, f64),
    /// The first window as a share of the last one of the epoch before.
    pub kept: Option<f64>,
    /// Growth in segments per round trip; `None` if there is only one round trip.
    pub growth: Option<f64>,
    /// The share of its growth that comes in the second half of its round trips: a half is a straight line, more is
    /// convex. `None` without growth.
    pub later: Option<f64>,
}

/// The epochs of a flow in which there are round trips outside recovery.
pub fn epochs(series: &Series) -> Vec<Epoch> {
    let mut losses = series
        .samples
        .iter()
        .filter(|sample| sample.signal.is_some())
        .map(|sample| sample.time)
        .peekable();
    let mut groups: Vec<Vec<Round>> = vec![Vec::new()];
    for round in windows(series) {
        while losses.next_if(|&loss| loss <= round.end).is_some() {
            if groups.last().is_some_and(|group| !group.is_empty()) {
                groups.push(Vec::new());
            }
        }
        if let Some(group) = groups.last_mut() {
            group.push(round);
        }
    }
    let mut before = None;
    groups
        .iter()
        .filter_map(|group| {
            let epoch = epoch(group, before)?;
            before = Some(epoch.window.1);
            Some(epoch)
        })
        .collect()
}

fn epoch(rounds: &[Round], before: Option<f64>) -> Option<Epoch> {
    let (first, last) = (rounds.first()?, rounds.last()?);
    let grown = last.observed - first.observed;
    let samples = rounds.len() - 1;
    let middle = f64::midpoint(
        rounds[samples / 2].observed,
        rounds[samples.div_ceil(2)].observed,
    );
    Some(Epoch {
        span: (first.end, last.end),
        rounds: rounds.len(),
        window: (first.observed, last.observed),
        kept: before
            .filter(|&before| before > 0.0)
            .map(|before| first.observed / before),
        growth: (samples > 0).then(|| grown / samples as f64),
        later: (grown > 0.0).then(|| (last.observed - middle) / grown),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identify::testing::flow_of;

    /// The epochs between two losses, with the medians of what is read off them.
    fn medians(name: &str) -> (f64, f64, f64) {
        let all = epochs(&flow_of(name, 60));
        let whole = &all[2..all.len() - 1];
        let median = |value: fn(&Epoch) -> Option<f64>| {
            let mut values: Vec<f64> = whole.iter().filter_map(value).collect();
            values.sort_by(f64::total_cmp);
            values[values.len() / 2]
        };
        (
            median(|e| e.kept),
            median(|e| e.growth),
            median(|e| e.later),
        )
    }

    #[test]
    fn reno_keeps_a_half_and_grows_in_a_straight_line() {
        let (kept, growth, later) = medians("reno");
        // A round trip passes before its window is seen.
        assert!((0.48..0.55).contains(&kept), "{kept}");
        assert!((0.95..=1.0).contains(&growth), "{growth}");
        assert!((0.45..0.55).contains(&later), "{later}");
    }

    #[test]
    fn scalable_tcp_keeps_seven_eighths() {
        let (kept, ..) = medians("scalable");
        assert!((0.86..0.92).contains(&kept), "{kept}");
    }

    #[test]
    fn a_flow_without_steps_has_no_epochs() {
        assert!(epochs(&Series::default()).is_empty());
    }
}
