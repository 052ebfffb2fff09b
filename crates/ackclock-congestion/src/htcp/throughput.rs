//! The throughput that a flow had reached at a loss, and at the loss before.
//!
//! PFLDnet 2004 section 2.3: β may adapt to the RTTs only while B(k), the throughput just before the k-th
//! loss, is within a fifth of B(k − 1). As in Linux, B is the largest value of a moving average (a quarter
//! of each new sample) from four smallest RTTs after the loss before; a sample is what was acknowledged
//! in a window, and takes a smallest RTT at least.

/// Samples and their largest average, in segments per second.
#[derive(Clone, Copy, Debug, Default)]
pub struct Throughput {
    /// Segments of the sample that is being taken.
    segments: u64,
    /// Tick at which it began.
    since: u64,
    average: u64,
    /// Largest average since the last loss.
    largest: u64,
    /// The same, before that loss.
    before: u64,
}

impl Throughput {
    /// Start a new sample.
    pub fn begin(&mut self, now: u64) {
        self.segments = 0;
        self.since = now;
    }

    /// Count acknowledged segments.
    pub fn count(&mut self, segments: u64) {
        self.segments += segments;
    }

    /// Take a sample if `enough` segments were acknowledged over at least `min_rtt` ticks, of which there are
    /// `hz` per second. It enters the average once `settled`; until then it is the average.
    pub fn sample(&mut self, now: u64, enough: u64, min_rtt: u64, hz: u64, settled: bool) {
        let span = now.saturating_sub(self.since);
        if self.segments < enough || span < min_rtt || span == 0 {
            return;
        }
        let sample = self.segments * hz / span;
        if settled {
            self.average = (3 * self.average + sample) / 4;
            self.largest = self.largest.max(self.average);
        } else {
            self.average = sample;
            self.largest = sample;
        }
        self.begin(now);
    }

    /// At a loss: whether the throughput is within a fifth of the one at the loss before.
    pub fn is_steady(&mut self) -> bool {
        let steady = (4 * self.before..=6 * self.before).contains(&(5 * self.largest));
        self.before = self.largest;
        steady
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_averaged_after_warmup_and_the_maximum_counts() {
        let mut throughput = Throughput::default();
        let mut take = |now, segments, settled| {
            throughput.count(segments);
            throughput.sample(now, 50, 5, 100, settled);
            (throughput.average, throughput.largest)
        };
        // 100 segments in 10 ticks of 10 ms are 1,000 per second.
        assert_eq!(take(10, 100, false), (1000, 1000));
        assert_eq!(take(20, 200, true), (1250, 1250));
        assert_eq!(take(30, 60, true), (1087, 1250));
        assert_eq!(take(34, 400, true), (1087, 1250), "too early");
        assert_eq!(take(36, 0, false), (6666, 6666), "400 in 6 ticks");
    }

    #[test]
    fn a_fifth_more_or_less_is_steady() {
        let steady = |before, largest| {
            Throughput {
                largest,
                before,
                ..Throughput::default()
            }
            .is_steady()
        };
        assert!(steady(1000, 800) && steady(1000, 1200));
        assert!(!steady(1000, 799) && !steady(1000, 1201));
        assert!(!steady(0, 1000), "the first loss");
    }
}
