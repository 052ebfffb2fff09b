//! The input series of limiter detection: arrivals at the limiter, and the round-trip times behind it.

/// A segment as it passed the capture's point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When, in nanoseconds of the capture's clock.
    pub time_ns: i64,
    /// The bytes that it takes of an Ethernet, with header and check sequence: what policers that were measured count.
    pub bytes: u32,
    /// Its path.
    pub path: u16,
    /// It was lost behind the vantage point, or before it: then it is inferred, and has the time of the packet before.
    pub lost: bool,
}

/// A round-trip time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RttSample {
    /// When its segment passed the capture's point.
    pub time_ns: i64,
    /// The time until its acknowledgement.
    pub rtt_ns: i64,
    /// Its flow.
    pub flow: u32,
    /// Its path.
    pub path: u16,
    /// The vantage point is at the receiver: what it waited for on its way was before that.
    pub behind: bool,
}

/// Both, of all flows of one direction of a path, or of several paths.
#[derive(Clone, Debug, Default)]
pub struct PathSeries {
    /// In the order of the capture, but for those that were inferred.
    pub arrivals: Vec<Arrival>,
    /// In the order of their acknowledgements.
    pub rtts: Vec<RttSample>,
}

impl PathSeries {
    /// Return the series of one path.
    #[must_use]
    pub fn of(&self, path: u16) -> Self {
        Self {
            arrivals: picked(&self.arrivals, |arrival| arrival.path == path),
            rtts: picked(&self.rtts, |sample| sample.path == path),
        }
    }
}

/// The items that are wanted, in memory for just so many.
fn picked<T: Copy>(items: &[T], is_wanted: impl Fn(&T) -> bool) -> Vec<T> {
    let mut found = Vec::with_capacity(items.iter().filter(|&item| is_wanted(item)).count());
    found.extend(items.iter().filter(|&item| is_wanted(item)));
    found
}

/// Values of samples grouped by flow, in the order of the samples.
#[derive(Debug)]
pub struct ByFlow<T> {
    /// Each flow, in the order of their numbers, and where its part ends.
    ends: Vec<(u32, usize)>,
    items: Vec<T>,
}

impl<T: Copy + Default> ByFlow<T> {
    /// In one list for all, as there may be a million flows.
    pub fn of(samples: &[RttSample], item: impl Fn(&RttSample) -> T) -> Self {
        let highest = samples.iter().map(|sample| sample.flow).max().unwrap_or(0);
        if highest as usize >= samples.len() {
            return Self::sorted(samples, item);
        }
        // Counted, not compared: where the next sample of each flow belongs.
        let mut next = vec![0_usize; highest as usize + 1];
        for sample in samples {
            next[sample.flow as usize] += 1;
        }
        let mut before = 0;
        for count in &mut next {
            before += std::mem::replace(count, before);
        }
        let mut items = vec![T::default(); samples.len()];
        for sample in samples {
            let own = &mut next[sample.flow as usize];
            items[*own] = item(sample);
            *own += 1;
        }
        let mut ends: Vec<(u32, usize)> = (0..).zip(next).collect();
        let mut before = 0;
        ends.retain(|&(_, end)| std::mem::replace(&mut before, end) < end);
        Self { ends, items }
    }

    /// The same of a few samples of flows with large numbers.
    fn sorted(samples: &[RttSample], item: impl Fn(&RttSample) -> T) -> Self {
        let mut sorted: Vec<&RttSample> = samples.iter().collect();
        sorted.sort_by_key(|sample| sample.flow);
        let mut end = 0;
        let ends = sorted.chunk_by(|one, other| one.flow == other.flow);
        let ends = ends.map(|part| {
            end += part.len();
            (part[0].flow, end)
        });
        Self {
            ends: ends.collect(),
            items: sorted.iter().map(|sample| item(sample)).collect(),
        }
    }

    /// Put the samples of each flow in order that has at least so many.
    pub fn sort_parts<K: Ord>(&mut self, least: usize, key: impl Fn(&T) -> K) {
        let mut begin = 0;
        for &(_, end) in &self.ends {
            let part = &mut self.items[begin..end];
            if part.len() >= least && !part.is_sorted_by_key(&key) {
                part.sort_by_key(&key);
            }
            begin = end;
        }
    }

    /// Each flow with its part, in the order of the flows' numbers.
    pub fn parts(&self) -> impl Iterator<Item = (u32, &[T])> {
        let mut begin = 0;
        self.ends.iter().map(move |&(flow, end)| {
            let part = &self.items[begin..end];
            begin = end;
            (flow, part)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_in_the_order_of_flow_and_place_however_large_numbers_are() {
        for flows in [[2, 0, 2, 1, 0, 2], [7, 0, 900, 3, 0, 7]] {
            let sample = |(flow, rtt_ns)| RttSample {
                time_ns: 0,
                rtt_ns,
                flow,
                path: 0,
                behind: false,
            };
            let samples: Vec<RttSample> = flows.into_iter().zip(0..).map(sample).collect();
            let mut expected: Vec<(u32, i64)> = flows.into_iter().zip(0..).collect();
            expected.sort_unstable();
            let grouped = ByFlow::of(&samples, |sample| sample.rtt_ns);
            let all = grouped
                .parts()
                .flat_map(|(flow, part)| part.iter().map(move |&at| (flow, at)));
            assert_eq!(all.collect::<Vec<_>>(), expected);
            assert_eq!(grouped.parts().count(), 4 - usize::from(flows[0] == 2));
        }
        assert_eq!(ByFlow::of(&[], |sample| sample.rtt_ns).parts().count(), 0);
    }
}
