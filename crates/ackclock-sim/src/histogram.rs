//! A high-dynamic-range histogram of times, bounded in memory whatever the number of records.
//!
//! Bins are linear within each power of two (the layout of `HdrHistogram`, <https://hdrhistogram.org>):
//! 64 to an octave, from 1 ps to the end of [`Time`], and one bin for exactly zero. A bin is therefore
//! at most 1/64 (1.6 %) as wide as its lower edge, and the middle of it, which quantiles report, is
//! within 1/128 (0.8 %) of each value in it. Below 64 ps bins hold one value each.
//!
//! Count, mean and maximum are exact. An octave's bins are allocated when it is first hit: a queue
//! whose sojourn times span 1 µs to 1 s needs about 10 KB, and no queue more than 30 KB.

use ackclock_core::Time;

/// Bits of a value that choose the bin within an octave.
const SUB_BITS: u32 = 6;
/// Bins in an octave.
const SUB_BINS: usize = 1 << SUB_BITS;
/// Octaves; the first holds the values below [`SUB_BINS`] ps one by one.
const OCTAVES: usize = (u64::BITS - SUB_BITS + 1) as usize;

type Octave = Box<[u64; SUB_BINS]>;

/// A histogram of times.
#[derive(Clone, Debug)]
pub struct Histogram {
    octaves: Box<[Option<Octave>; OCTAVES]>,
    count: u64,
    sum: u128,
    max: Time,
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram::new()
    }
}

impl Histogram {
    /// An empty histogram.
    pub fn new() -> Histogram {
        Histogram {
            octaves: Box::new([const { None }; OCTAVES]),
            count: 0,
            sum: 0,
            max: Time::ZERO,
        }
    }

    /// Add so many values of exactly zero.
    pub fn add_zeros(&mut self, zeros: u64) {
        if zeros > 0 {
            self.octaves[0].get_or_insert_with(empty_octave)[0] += zeros;
            self.count += zeros;
        }
    }

    /// Add one value.
    pub fn record(&mut self, value: Time) {
        let (octave, bin) = place(value.picoseconds());
        self.octaves[octave].get_or_insert_with(empty_octave)[bin] += 1;
        self.count += 1;
        self.sum += u128::from(value.picoseconds());
        if value > self.max {
            self.max = value;
        }
    }

    /// Add one value `count` times.
    pub fn record_many(&mut self, value: Time, count: u64) {
        if count == 0 {
            return;
        }
        self.record(value);
        let (octave, bin) = place(value.picoseconds());
        self.octaves[octave].get_or_insert_with(empty_octave)[bin] += count - 1;
        self.count += count - 1;
        self.sum += u128::from(value.picoseconds()) * u128::from(count - 1);
    }

    /// Number of recorded values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The exact mean, to the picosecond below; `None` if nothing was recorded.
    pub fn mean(&self) -> Option<Time> {
        let mean = self.sum.checked_div(u128::from(self.count))?;
        Some(Time::from_picoseconds(mean as u64))
    }

    /// The exact maximum; `None` if nothing was recorded.
    pub fn max(&self) -> Option<Time> {
        (self.count > 0).then_some(self.max)
    }

    /// The smallest value that at least a share `q` (clamped to 0–1) of the records do not exceed,
    /// within 0.8 %; `None` if nothing was recorded.
    pub fn quantile(&self, q: f64) -> Option<Time> {
        let rank =
            ((q.clamp(0.0, 1.0) * self.count as f64).ceil() as u64).clamp(1, self.count.max(1));
        let mut below = 0;
        self.places()
            .find(|(_, _, count)| {
                below += count;
                below >= rank
            })
            .map(|(octave, bin, _)| Time::from_picoseconds(middle(octave, bin)).min(self.max))
    }

    /// The non-empty bins in rising order: the largest value that a bin takes, and its count.
    pub fn bins(&self) -> impl Iterator<Item = (Time, u64)> + '_ {
        self.places()
            .map(|(octave, bin, count)| (Time::from_picoseconds(upper_edge(octave, bin)), count))
    }

    /// Clear all records.
    pub fn clear(&mut self) {
        for octave in self.octaves.iter_mut().flatten() {
            octave.fill(0);
        }
        self.count = 0;
        self.sum = 0;
        self.max = Time::ZERO;
    }

    /// The non-empty bins in rising order: octave, bin in it, count.
    fn places(&self) -> impl Iterator<Item = (usize, usize, u64)> + '_ {
        self.octaves
            .iter()
            .enumerate()
            .filter_map(|(octave, bins)| bins.as_ref().map(|bins| (octave, bins)))
            .flat_map(|(octave, bins)| {
                bins.iter()
                    .enumerate()
                    .map(move |(bin, n)| (octave, bin, *n))
            })
            .filter(|(_, _, count)| *count > 0)
    }
}

fn empty_octave() -> Octave {
    Box::new([0; SUB_BINS])
}

/// Octave and bin of a value. The leading bit names the octave, the next [`SUB_BITS`] bits the bin.
fn place(value: u64) -> (usize, usize) {
    let octave = (value | (SUB_BINS as u64 - 1)).ilog2() + 1 - SUB_BITS;
    let bin = value >> octave.saturating_sub(1);
    (octave as usize, bin as usize % SUB_BINS)
}

/// Width of the bins of an octave, ps.
fn width(octave: usize) -> u64 {
    1 << octave.saturating_sub(1)
}

/// Smallest value of a bin, ps.
fn lower_edge(octave: usize, bin: usize) -> u64 {
    let leading = if octave == 0 { 0 } else { SUB_BINS };
    (leading + bin) as u64 * width(octave)
}

/// Largest value of a bin, ps.
fn upper_edge(octave: usize, bin: usize) -> u64 {
    lower_edge(octave, bin) + (width(octave) - 1)
}

/// The value in the middle of a bin, ps.
fn middle(octave: usize, bin: usize) -> u64 {
    lower_edge(octave, bin) + width(octave) / 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(values: &[u64]) -> Histogram {
        let mut histogram = Histogram::new();
        for &value in values {
            histogram.record(Time::from_picoseconds(value));
        }
        histogram
    }

    #[test]
    fn an_empty_histogram_has_no_statistics() {
        let histogram = Histogram::new();
        assert_eq!(histogram.count(), 0);
        assert_eq!(histogram.mean(), None);
        assert_eq!(histogram.max(), None);
        assert_eq!(histogram.quantile(0.5), None);
        assert_eq!(histogram.bins().count(), 0);
    }

    #[test]
    fn zero_has_a_separate_bin() {
        let histogram = of(&[0, 0, 1]);
        let bins: Vec<_> = histogram.bins().collect();
        assert_eq!(bins, [(Time::ZERO, 2), (Time::from_picoseconds(1), 1)]);
        assert_eq!(histogram.quantile(0.5), Some(Time::ZERO));
    }

    #[test]
    fn equal_values_are_recorded_by_their_count() {
        let (value, mut many) = (Time::from_microseconds(3), Histogram::new());
        many.record_many(value, 2);
        let one_by_one = of(&[3_000_000, 3_000_000]);
        assert_eq!(
            many.bins().collect::<Vec<_>>(),
            one_by_one.bins().collect::<Vec<_>>()
        );
        assert_eq!(
            (many.count(), many.mean(), many.max()),
            (2, Some(value), Some(value))
        );
    }

    #[test]
    fn bins_follow_each_other_without_gap_or_overlap() {
        let mut next = 0;
        for octave in 0..OCTAVES {
            for bin in 0..SUB_BINS {
                assert_eq!(lower_edge(octave, bin), next, "octave {octave}, bin {bin}");
                assert_eq!(place(lower_edge(octave, bin)), (octave, bin));
                assert_eq!(place(upper_edge(octave, bin)), (octave, bin));
                next = upper_edge(octave, bin).wrapping_add(1);
            }
        }
        assert_eq!(next, 0, "the last bin ends with the largest time");
    }

    #[test]
    fn quantiles_of_a_uniform_millisecond() {
        let mut histogram = Histogram::new();
        for microseconds in 1..=1000 {
            histogram.record(Time::from_microseconds(microseconds));
        }
        for (q, exact_s) in [(0.5, 500e-6), (0.95, 950e-6), (0.0, 1e-6)] {
            let quantile = histogram.quantile(q).expect("not empty").seconds();
            assert!(
                (quantile / exact_s - 1.0).abs() < 1.0 / 128.0,
                "{q}: {quantile}"
            );
        }
        assert_eq!(histogram.quantile(1.0), histogram.max());
        assert_eq!(histogram.mean(), Some(Time::from_picoseconds(500_500_000)));
    }

    #[test]
    fn clear_resets_all_counts() {
        let mut histogram = of(&[5, 1_000_000]);
        histogram.clear();
        assert_eq!(histogram.count(), 0);
        assert_eq!(histogram.max(), None);
        histogram.record(Time::from_picoseconds(7));
        assert_eq!(histogram.mean(), Some(Time::from_picoseconds(7)));
        assert_eq!(histogram.bins().count(), 1);
    }

    /// Values spread over all magnitudes.
    fn values() -> impl Strategy<Value = Vec<u64>> {
        let value = (0_u32..64, any::<u64>()).prop_map(|(shift, value)| value >> shift);
        proptest::collection::vec(value, 1..200)
    }

    proptest! {
        #[test]
        fn a_quantile_is_within_a_128th_of_the_true_one(mut values in values(), q in 0.0..=1.0) {
            let histogram = of(&values);
            values.sort_unstable();
            let rank = (f64::ceil(q * values.len() as f64) as usize).max(1);
            let exact = values[rank - 1] as f64;
            let quantile = histogram.quantile(q).expect("not empty").picoseconds() as f64;
            prop_assert!((quantile - exact).abs() <= exact / 128.0, "{quantile} for {exact}");
        }

        #[test]
        fn count_mean_and_maximum_are_exact(values in values()) {
            let histogram = of(&values);
            let sum: u128 = values.iter().copied().map(u128::from).sum();
            let mean = (sum / values.len() as u128) as u64;
            prop_assert_eq!(histogram.mean(), Some(Time::from_picoseconds(mean)));
            prop_assert_eq!(histogram.max().map(Time::picoseconds), values.iter().max().copied());
            prop_assert_eq!(histogram.count(), values.len() as u64);
            prop_assert_eq!(histogram.bins().map(|(_, count)| count).sum::<u64>(), values.len() as u64);
        }
    }
}
