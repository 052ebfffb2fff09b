//! The series that tell what limits a path: what reached the limiter, and the round-trip times behind it.

/// A segment as it passed the capture's point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When, in nanoseconds of the capture's clock.
    pub time_ns: i64,
    /// The bytes that it takes of an Ethernet, with header and check sequence: what policers that were measured count.
    pub bytes: u32,
    /// Which path it took.
    pub path: u16,
    /// It was lost behind the point.
    pub lost: bool,
}

/// A round-trip time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RttSample {
    /// When its segment passed the capture's point.
    pub time_ns: i64,
    /// How long until its acknowledgement came.
    pub rtt_ns: i64,
    /// Which flow it is of.
    pub flow: u32,
    /// Which path it took.
    pub path: u16,
}

/// Both, of all flows of one direction of a path, or of several paths.
#[derive(Clone, Debug, Default)]
pub struct PathSeries {
    /// In the order of the capture.
    pub arrivals: Vec<Arrival>,
    /// In the order of their acknowledgements.
    pub rtts: Vec<RttSample>,
}

impl PathSeries {
    /// Those of one path.
    #[must_use]
    pub fn of(&self, path: u16) -> Self {
        Self {
            arrivals: picked(&self.arrivals, |arrival| arrival.path == path),
            rtts: picked(&self.rtts, |sample| sample.path == path),
        }
    }
}

/// The items that are wanted, in memory for just so many.
fn picked<T: Copy>(items: &[T], wanted: impl Fn(&T) -> bool) -> Vec<T> {
    let mut found = Vec::with_capacity(items.iter().filter(|&item| wanted(item)).count());
    found.extend(items.iter().filter(|&item| wanted(item)));
    found
}

/// The flow and the place of each sample, in the order of both.
pub fn by_flow(samples: &[RttSample]) -> Vec<(u32, u32)> {
    let highest = samples.iter().map(|sample| sample.flow).max().unwrap_or(0);
    let of_samples = (0..)
        .zip(samples)
        .map(|(place, sample)| (sample.flow, place));
    if highest as usize >= samples.len() {
        let mut places: Vec<(u32, u32)> = of_samples.collect();
        places.sort_unstable();
        return places;
    }
    // Counted, not compared: where the next sample of each flow belongs.
    let mut next = vec![0_u32; highest as usize + 1];
    for sample in samples {
        next[sample.flow as usize] += 1;
    }
    let mut before = 0;
    for count in &mut next {
        before += std::mem::replace(count, before);
    }
    let mut places = vec![(0, 0); samples.len()];
    for (flow, place) in of_samples {
        let own = &mut next[flow as usize];
        places[*own as usize] = (flow, place);
        *own += 1;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_in_the_order_of_flow_and_place_however_large_numbers_are() {
        for flows in [[2, 0, 2, 1, 0, 2], [7, 0, 900, 3, 0, 7]] {
            let sample = |flow| RttSample {
                time_ns: 0,
                rtt_ns: 0,
                flow,
                path: 0,
            };
            let mut expected: Vec<(u32, u32)> = flows.into_iter().zip(0..).collect();
            expected.sort_unstable();
            assert_eq!(by_flow(&flows.map(sample)), expected);
        }
        assert!(by_flow(&[]).is_empty());
    }
}
