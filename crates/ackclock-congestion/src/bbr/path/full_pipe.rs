//! Detection of a full pipe: three rounds in which the bandwidth grew by less than a quarter
//! (draft-cardwell-iccrg-bbr-congestion-control-00 section 4.3.2.2, draft-ietf-ccwg-bbr section 5.3.1.2).

/// Growth that counts.
const GROWTH: f64 = 1.25;
/// Rounds without such growth: the first may be the receiver's window growing, the second fills it, the third
/// brings the higher samples (draft-cardwell-00 section 4.3.2.2).
const ROUNDS: u32 = 3;

/// The estimator.
#[derive(Clone, Copy, Debug, Default)]
pub struct FullPipe {
    /// Bandwidth to grow beyond.
    baseline: f64,
    rounds: u32,
    /// True if the pipe is full.
    pub now: bool,
}

impl FullPipe {
    /// Rounds without growth.
    pub fn count(&self) -> u32 {
        self.rounds
    }

    /// A new search from a bandwidth.
    pub fn from(baseline: f64) -> FullPipe {
        FullPipe {
            baseline,
            ..FullPipe::default()
        }
    }

    /// Any bandwidth counts as growth at the next look.
    pub fn forget_baseline(&mut self) {
        self.baseline = 0.0;
    }

    /// The rounds without growth are forgotten too; a pipe that was found full stays so.
    pub fn begin_anew(&mut self) {
        self.baseline = 0.0;
        self.rounds = 0;
    }

    /// A round that no application limited has ended, with this bandwidth.
    pub fn observe(&mut self, bandwidth: f64) {
        if self.now {
            return;
        }
        if bandwidth >= self.baseline * GROWTH {
            *self = FullPipe::from(bandwidth);
            return;
        }
        self.rounds += 1;
        self.now = self.rounds >= ROUNDS;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full_after(bandwidths: &[f64]) -> Option<usize> {
        let mut pipe = FullPipe::default();
        bandwidths.iter().position(|&bandwidth| {
            pipe.observe(bandwidth);
            pipe.now
        })
    }

    #[test]
    fn three_rounds_with_less_than_a_quarter_more_fill_it() {
        assert_eq!(full_after(&[100.0, 124.0, 124.0, 124.0]), Some(3));
        assert_eq!(full_after(&[100.0, 124.0, 124.0, 125.0, 150.0]), None);
    }

    #[test]
    fn growth_resets_the_count() {
        assert_eq!(
            full_after(&[10.0, 10.0, 10.0, 20.0, 21.0, 22.0, 23.0]),
            Some(6)
        );
    }
}
