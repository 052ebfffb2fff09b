//! Streams of random numbers: one for each purpose.

use rand::{RngCore, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// The purpose of a stream of random numbers.
///
/// Each purpose has its own stream, so that a change in one part of a workload leaves the draws of the
/// others as they were (common random numbers): with another size distribution the same transfers
/// begin at the same times between the same ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// When transfers begin.
    Arrivals = 0,
    /// Between whom.
    Ends = 1,
    /// Sizes of transfers; for a web page, of the embedded objects.
    Sizes = 2,
    /// Sizes of the main objects of web pages.
    MainSizes = 3,
    /// Numbers of objects of a page.
    Objects = 4,
    /// Think times of users and sources.
    Thinks = 5,
    /// On periods of an on/off source.
    OnPeriods = 6,
    /// Off periods of an on/off source.
    OffPeriods = 7,
    /// Sizes of the frames of a video.
    FrameSizes = 8,
    /// Connection IDs and other draws of the ends of a QUIC connection.
    Quic = 9,
}

/// The stream of random numbers of one purpose.
///
/// It depends on the run's `seed`, the number of the `stream` (which workload of the plan) and the
/// purpose, on nothing else. Each of the three is folded in by seeding a generator with the last one's
/// first output, so that neighbouring numbers give unrelated streams.
pub fn stream(seed: u64, stream: u64, purpose: Purpose) -> Pcg64Mcg {
    [stream, purpose as u64]
        .iter()
        .fold(Pcg64Mcg::seed_from_u64(seed), |mut random, index| {
            Pcg64Mcg::seed_from_u64(random.next_u64() ^ index)
        })
}

/// The stream of random numbers of one flow of the plan: it depends on the seed and the flow's number alone.
pub fn flow_stream(seed: u64, flow: u64) -> Pcg64Mcg {
    let mut stream = Pcg64Mcg::new((u128::from(seed) << 64 | u128::from(flow)) << 1 | 1);
    stream.next_u64();
    stream.next_u64();
    stream
}

/// The stream of random numbers of the host at an end of one flow, apart from the flow's own.
pub fn host_stream(seed: u64, flow: u64, end: u64) -> Pcg64Mcg {
    Pcg64Mcg::seed_from_u64(flow_stream(seed, flow).next_u64() ^ end)
}

/// A uniform draw from [0, 1): what share of its jitter a flow starts late.
pub fn start_draw(seed: u64, flow: u64) -> f64 {
    (flow_stream(seed, flow).next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

/// The streams of one workload.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Streams {
    pub seed: u64,
    pub stream: u64,
}

impl Streams {
    /// The stream for a purpose, from its beginning.
    pub fn of(self, purpose: Purpose) -> Pcg64Mcg {
        stream(self.seed, self.stream, purpose)
    }
}

/// A stream of its own for the next pair: how much one pair draws does not move the others.
pub(crate) fn next_pair(random: &mut Pcg64Mcg) -> Pcg64Mcg {
    Pcg64Mcg::seed_from_u64(random.next_u64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seed_stream_and_purpose_each_make_another_stream() {
        let first = |seed, index, purpose| stream(seed, index, purpose).next_u64();
        let samples = [
            first(1, 0, Purpose::Arrivals),
            first(0, 1, Purpose::Arrivals),
            first(0, 0, Purpose::Ends),
            first(0, 0, Purpose::Arrivals),
            first(1, 1, Purpose::Arrivals),
        ];
        for (index, draw) in samples.iter().enumerate() {
            assert!(!samples[..index].contains(draw), "draw {index}");
        }
        assert_eq!(samples[0], first(1, 0, Purpose::Arrivals));
    }
}
