//! The round trip that each flow would have without a queue.

use std::collections::BTreeMap;

use super::super::trace::quantile;
use super::MIN_SAMPLES;
use crate::series::{ByFlow, RttSample};

/// A round trip of an hour is an error; so is a negative one.
const LONGEST_NS: i64 = 3_600_000_000_000;

/// A round trip within what is possible.
pub fn possible(rtt_ns: i64) -> i64 {
    rtt_ns.clamp(0, LONGEST_NS)
}

/// The round trip of each flow without a queue, in the order of the flows' numbers.
pub struct Bases(Vec<(u32, i64)>);

impl Bases {
    /// A flow may have begun when there was a queue, so its shortest round trip is compared with what those of the flow
    /// with most samples say: at the same time, both wait in the same queue. What is less than the scatter of this
    /// comparison is left as it is.
    pub fn of(samples: &[RttSample]) -> Self {
        let mut flows = ByFlow::of(samples, |sample| (sample.time_ns, possible(sample.rtt_ns)));
        // Shorter ones are not compared, and of their round trips only the shortest counts.
        flows.sort_parts(MIN_SAMPLES, |&(time_ns, _)| time_ns);
        let shortest = |of: &[(i64, i64)]| of.iter().map(|sample| sample.1).min().unwrap_or(0);
        let most = flows.parts().max_by_key(|(_, part)| part.len());
        let most = most.map_or(&[][..], |(_, part)| part);
        let mut further: BTreeMap<u32, (i64, i64)> = BTreeMap::new();
        let mut base = shortest(most);
        for (flow, own) in flows.parts().filter(|(_, part)| part.len() >= MIN_SAMPLES) {
            if let Some((longer, scatter)) = apart(own, most) {
                let least = shortest(own) - longer;
                if least < base - scatter {
                    base = least;
                }
                further.insert(flow, (longer, scatter));
            }
        }
        let known = flows.parts().map(|(flow, part)| {
            let own = shortest(part);
            let told = further
                .get(&flow)
                .filter(|(longer, scatter)| base + longer < own - scatter);
            (flow, told.map_or(own, |(longer, _)| base + longer))
        });
        Self(known.collect())
    }

    /// Return the base RTT of a flow.
    pub fn ns(&self, flow: u32) -> i64 {
        let place = self.0.binary_search_by_key(&flow, |&(number, _)| number);
        place.map_or(0, |place| self.0[place].1)
    }
}

/// Return the median difference between the round trips of two flows at the same time, and its scatter; None if too few
/// can be compared. Both are in the order of time.
fn apart(own: &[(i64, i64)], others: &[(i64, i64)]) -> Option<(i64, i64)> {
    let mut after = 0;
    let mut differences: Vec<f64> = own
        .iter()
        .filter_map(|&sample| {
            while others.get(after).is_some_and(|other| other.0 < sample.0) {
                after += 1;
            }
            difference(sample, others, after)
        })
        .collect();
    if differences.len() < MIN_SAMPLES {
        return None;
    }
    let longer = quantile(&mut differences, 0.5) as i64;
    let scatter = quantile(&mut differences, 0.75) - quantile(&mut differences, 0.25);
    Some((longer, scatter as i64))
}

/// Return by how much a round trip was longer than one that began within a sixteenth of it. `after`: the first of the
/// others that did not begin before.
fn difference((time_ns, rtt_ns): (i64, i64), others: &[(i64, i64)], after: usize) -> Option<f64> {
    let near = |place: usize| {
        others
            .get(place)
            .map(|other| (other.0.saturating_sub(time_ns).saturating_abs(), other.1))
    };
    let (apart, other) = near(after)
        .into_iter()
        .chain(near(after.wrapping_sub(1)))
        .min()?;
    (apart <= rtt_ns / 16).then(|| (rtt_ns - other) as f64)
}
