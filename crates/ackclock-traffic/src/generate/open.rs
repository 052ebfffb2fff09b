//! Arrivals that wait for nothing: once, Poisson, periodic.

use ackclock_core::Time;
use rand::distributions::Distribution;
use rand::Rng;
use rand_distr::Exp1;
use rand_pcg::Pcg64Mcg;

use super::{Sizes, Work};
use crate::population::Pairs;
use crate::{Arrivals, Purpose, Start, Transfer, WorkloadError};

/// A uniform draw from [0, jitter).
pub(super) fn jittered(jitter: Time, random: &mut Pcg64Mcg) -> Time {
    match jitter.picoseconds() {
        0 => Time::ZERO,
        picoseconds => Time::from_picoseconds(random.gen_range(0..picoseconds)),
    }
}

impl Work {
    /// One transfer for each pair.
    pub(super) fn single_transfers(
        &mut self,
        jitter: Time,
        pairs: &Pairs,
    ) -> Result<(), WorkloadError> {
        let mut arrivals = self.streams.of(Purpose::Arrivals);
        for ends in pairs.each(&mut self.ends)? {
            let time = self.start + jittered(jitter, &mut arrivals);
            self.transfer_at(time, ends)?;
        }
        Ok(())
    }

    /// Return the gaps between the arrivals of a process that draws their ends.
    pub(super) fn gaps(&self, arrivals: &Arrivals) -> Option<Gaps> {
        match *arrivals {
            Arrivals::Poisson { per_s } => Some(Gaps::Poisson {
                per_s,
                random: self.streams.of(Purpose::Arrivals),
            }),
            Arrivals::Periodic { every } => Some(Gaps::Periodic { every }),
            _ => None,
        }
    }

    /// Count the arrivals; draw nothing else.
    pub(super) fn arriving(self, mut gaps: Gaps, pairs: Pairs) -> Result<Arriving, WorkloadError> {
        let next = self.start + gaps.before_first();
        let (mut time, mut later, mut left) = (next, gaps.clone(), 0);
        while time < self.end {
            left += 1;
            self.made.expect(left as f64)?;
            time += later.draw();
        }
        Ok(Arriving {
            next,
            gaps,
            left,
            stop: self.end,
            pairs,
            ends: self.ends,
            sizes: self.sizes,
        })
    }
}

/// Times between arrivals.
#[derive(Clone, Debug)]
pub(super) enum Gaps {
    /// A Poisson process: the gaps between arrivals, and from the start to the first, are exponential.
    Poisson { per_s: f64, random: Pcg64Mcg },
    /// Equal distances.
    Periodic { every: Time },
}

impl Gaps {
    /// From the start to the first arrival.
    fn before_first(&mut self) -> Time {
        match self {
            Gaps::Poisson { .. } => self.draw(),
            Gaps::Periodic { .. } => Time::ZERO,
        }
    }

    /// From an arrival to the next.
    fn draw(&mut self) -> Time {
        match self {
            Gaps::Poisson { per_s, random } => {
                let unit: f64 = Exp1.sample(random);
                Time::from_seconds(unit / *per_s)
            }
            Gaps::Periodic { every } => *every,
        }
    }
}

/// The transfers of arrivals that draw their ends, in the order of their times. Each is drawn on demand, so
/// that those to come take no room, however many they are.
#[derive(Clone, Debug)]
pub struct Arriving {
    next: Time,
    gaps: Gaps,
    left: usize,
    stop: Time,
    pairs: Pairs,
    /// Draws the ends.
    ends: Pcg64Mcg,
    sizes: Sizes,
}

impl Arriving {
    /// No transfer begins at or after this.
    pub fn stop(&self) -> Time {
        self.stop
    }
}

impl Iterator for Arriving {
    type Item = Transfer;

    fn next(&mut self) -> Option<Transfer> {
        self.left = self.left.checked_sub(1)?;
        let start = Start::At(self.next);
        self.next += self.gaps.draw();
        Some(Transfer {
            start,
            size_bytes: self.sizes.draw(),
            ends: self.pairs.draw(&mut self.ends),
            completes: None,
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Arriving {}
