//! The distribution of the number of objects of a web page.

use rand::distributions::Distribution;
use rand::Rng;
use rand_distr::Geometric;
use rand_pcg::Pcg64Mcg;
use serde::Deserialize;

use crate::error::{check_max, not_negative};
use crate::{WorkloadError, MAX_TRANSFERS};

/// A distribution of counts.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Count {
    /// Always the same.
    Fixed {
        /// The count.
        n: u32,
    },
    /// Geometric on 0, 1, 2, …: n with probability p (1 − p)^n, where p = 1/(1 + mean).
    Geometric {
        /// The mean.
        mean: f64,
    },
    /// Uniform on from, …, to.
    Uniform {
        /// The smallest.
        from: u32,
        /// The largest.
        to: u32,
    },
}

impl Count {
    /// Reject parameters that make no distribution, and means beyond the number of transfers possible.
    pub(crate) fn check(&self) -> Result<(), WorkloadError> {
        let most = MAX_TRANSFERS as f64;
        match *self {
            Count::Fixed { n } => check_max("n", f64::from(n), most),
            Count::Geometric { mean } => {
                not_negative("mean", mean)?;
                check_max("mean", mean, most)
            }
            Count::Uniform { from, to } if from > to => Err(WorkloadError::Reversed {
                from: "from",
                to: "to",
            }),
            Count::Uniform { to, .. } => check_max("to", f64::from(to), most),
        }
    }

    /// One count.
    pub(crate) fn draw(&self, random: &mut Pcg64Mcg) -> u64 {
        match *self {
            Count::Fixed { n } => u64::from(n),
            Count::Geometric { mean } => {
                Geometric::new(1.0 / (1.0 + mean)).map_or(0, |law| law.sample(random))
            }
            Count::Uniform { from, to } => u64::from(random.gen_range(from..=to)),
        }
    }

    /// The mean.
    pub(crate) fn mean(&self) -> f64 {
        match *self {
            Count::Fixed { n } => f64::from(n),
            Count::Geometric { mean } => mean,
            Count::Uniform { from, to } => f64::midpoint(f64::from(from), f64::from(to)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{stream, Purpose};

    const SAMPLES: usize = 100_000;

    fn samples(count: Count) -> Vec<u64> {
        let mut random = stream(1, 0, Purpose::Objects);
        (0..SAMPLES).map(|_| count.draw(&mut random)).collect()
    }

    fn mean(samples: &[u64]) -> f64 {
        samples.iter().sum::<u64>() as f64 / samples.len() as f64
    }

    #[test]
    fn geometric_has_its_mean_and_its_share_of_zeros() {
        let samples = samples(Count::Geometric { mean: 4.0 });
        // Variance of a geometric on 0, 1, …: (1 − p)/p² = mean (1 + mean).
        let tolerance = 4.0 * (20.0 / SAMPLES as f64).sqrt();
        assert!((mean(&samples) - 4.0).abs() < tolerance);
        let zeros = samples.iter().filter(|&&n| n == 0).count() as f64 / SAMPLES as f64;
        assert!((zeros - 0.2).abs() < 4.0 * (0.16 / SAMPLES as f64).sqrt());
    }

    #[test]
    fn uniform_takes_both_ends() {
        let samples = samples(Count::Uniform { from: 2, to: 4 });
        for n in 2..=4 {
            let share = samples.iter().filter(|&&drawn| drawn == n).count() as f64 / SAMPLES as f64;
            assert!((share - 1.0 / 3.0).abs() < 4.0 * (2.0 / 9.0 / SAMPLES as f64).sqrt());
        }
        assert!(samples.iter().all(|n| (2..=4).contains(n)));
    }

    #[test]
    fn invalid_parameters_are_rejected() {
        for count in [
            Count::Geometric { mean: -1.0 },
            Count::Geometric { mean: 1e300 },
            Count::Uniform { from: 2, to: 1 },
            Count::Fixed { n: u32::MAX },
        ] {
            assert!(count.check().is_err(), "{count:?}");
        }
    }
}
