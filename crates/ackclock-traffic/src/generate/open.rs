//! Arrivals that wait for nothing: once, Poisson, periodic.

use ackclock_units::Time;
use rand::distributions::Distribution;
use rand::Rng;
use rand_distr::Exp1;
use rand_pcg::Pcg64Mcg;

use super::Work;
use crate::population::Pairs;
use crate::{Purpose, WorkloadError};

/// A uniform draw from [0, jitter).
pub(super) fn jittered(jitter: Time, random: &mut Pcg64Mcg) -> Time {
    match jitter.picoseconds() {
        0 => Time::ZERO,
        picoseconds => Time::from_picoseconds(random.gen_range(0..picoseconds)),
    }
}

impl Work<'_> {
    /// One transfer for each pair.
    pub(super) fn once(&mut self, jitter: Time, pairs: &Pairs<'_>) -> Result<(), WorkloadError> {
        let mut arrivals = self.streams.of(Purpose::Arrivals);
        for ends in pairs.each(&mut self.ends)? {
            let time = self.start + jittered(jitter, &mut arrivals);
            self.transfer_at(time, ends)?;
        }
        Ok(())
    }

    /// A Poisson process: the gaps between arrivals, and from the start to the first, are exponential.
    pub(super) fn poisson(&mut self, per_s: f64, pairs: &Pairs<'_>) -> Result<(), WorkloadError> {
        let mut arrivals = self.streams.of(Purpose::Arrivals);
        let mut gap = || {
            let unit: f64 = Exp1.sample(&mut arrivals);
            Time::from_seconds(unit / per_s)
        };
        let mut time = self.start + gap();
        while time < self.end {
            let ends = pairs.draw(&mut self.ends);
            self.transfer_at(time, ends)?;
            time += gap();
        }
        Ok(())
    }

    /// Equal distances.
    pub(super) fn periodic(&mut self, every: Time, pairs: &Pairs<'_>) -> Result<(), WorkloadError> {
        let mut time = self.start;
        while time < self.end {
            let ends = pairs.draw(&mut self.ends);
            self.transfer_at(time, ends)?;
            time += every;
        }
        Ok(())
    }
}
