//! The distributions of think times, on periods and off periods.

use ackclock_core::Time;
use rand::distributions::{Distribution, OpenClosed01};
use rand::Rng;
use rand_distr::Exp1;
use rand_pcg::Pcg64Mcg;
use serde::Deserialize;

use crate::error::{not_negative, positive};
use crate::WorkloadError;

/// A distribution of durations.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Duration {
    /// Always the same.
    Fixed {
        /// The duration.
        s: f64,
    },
    /// Exponential.
    Exponential {
        /// The mean.
        mean_s: f64,
    },
    /// Pareto: longer than t with probability (least/t)^shape. The mean is infinite for a shape up to 1.
    Pareto {
        /// The shape, > 0.
        shape: f64,
        /// The shortest.
        least_s: f64,
    },
    /// Uniform on [from, to).
    Uniform {
        /// The shortest.
        from_s: f64,
        /// The bound above.
        to_s: f64,
    },
}

impl Duration {
    /// Reject parameters that make no distribution.
    ///
    /// # Errors
    /// The first parameter that is negative or, where it must not be, zero; a range that is reversed.
    pub fn check(&self) -> Result<(), WorkloadError> {
        match *self {
            Duration::Fixed { s } => not_negative("s", s),
            Duration::Exponential { mean_s } => not_negative("mean_s", mean_s),
            Duration::Pareto { shape, least_s } => {
                positive("shape", shape)?;
                positive("least_s", least_s)
            }
            Duration::Uniform { from_s, to_s } => {
                not_negative("from_s", from_s)?;
                not_negative("to_s", to_s)?;
                if from_s <= to_s {
                    Ok(())
                } else {
                    Err(WorkloadError::Reversed {
                        from: "from_s",
                        to: "to_s",
                    })
                }
            }
        }
    }

    /// One duration, to the nearest picosecond; what is too long for a [`Time`] is [`Time::NEVER`].
    ///
    /// The parameters must have passed [`Duration::check`]; otherwise the result means nothing.
    pub fn draw(&self, random: &mut Pcg64Mcg) -> Time {
        let seconds = match *self {
            Duration::Fixed { s } => s,
            Duration::Exponential { mean_s } => {
                let unit: f64 = Exp1.sample(random);
                mean_s * unit
            }
            Duration::Pareto { shape, least_s } => {
                // The distribution's inverse, as rand_distr's Pareto has it.
                let unit: f64 = OpenClosed01.sample(random);
                least_s * unit.powf(-1.0 / shape)
            }
            Duration::Uniform { from_s, to_s } => from_s + (to_s - from_s) * random.gen::<f64>(),
        };
        Time::from_seconds(seconds)
    }

    /// The mean in seconds; it may be infinite.
    pub fn mean_s(&self) -> f64 {
        match *self {
            Duration::Fixed { s } => s,
            Duration::Exponential { mean_s } => mean_s,
            Duration::Pareto { shape, .. } if shape <= 1.0 => f64::INFINITY,
            Duration::Pareto { shape, least_s } => shape * least_s / (shape - 1.0),
            Duration::Uniform { from_s, to_s } => f64::midpoint(from_s, to_s),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{stream, Purpose};

    const SAMPLES: usize = 100_000;

    fn samples_s(duration: Duration) -> Vec<f64> {
        let mut random = stream(1, 0, Purpose::Thinks);
        let mut samples: Vec<f64> = (0..SAMPLES)
            .map(|_| duration.draw(&mut random).seconds())
            .collect();
        samples.sort_by(f64::total_cmp);
        samples
    }

    fn mean(samples: &[f64]) -> f64 {
        samples.iter().sum::<f64>() / samples.len() as f64
    }

    /// Four standard deviations of a mean of draws with this deviation.
    fn tolerance(deviation: f64) -> f64 {
        4.0 * deviation / (SAMPLES as f64).sqrt()
    }

    #[test]
    fn fixed_is_fixed() {
        let mut random = stream(1, 0, Purpose::Thinks);
        let drawn = Duration::Fixed { s: 0.25 }.draw(&mut random);
        assert_eq!(drawn, Time::from_milliseconds(250));
    }

    #[test]
    fn exponential_has_its_mean_and_its_median() {
        let samples = samples_s(Duration::Exponential { mean_s: 3.0 });
        assert!((mean(&samples) - 3.0).abs() < tolerance(3.0));
        let median = 3.0 * 2.0_f64.ln();
        assert!((samples[SAMPLES / 2] - median).abs() < 0.02 * median);
    }

    #[test]
    fn pareto_has_its_mean_minimum_and_tail() {
        let pareto = Duration::Pareto {
            shape: 3.0,
            least_s: 2.0,
        };
        assert_eq!(pareto.mean_s(), 3.0);
        let samples = samples_s(pareto);
        assert!(samples[0] >= 2.0);
        // Variance of a Pareto: least² shape / ((shape − 1)² (shape − 2)).
        assert!((mean(&samples) - 3.0).abs() < tolerance(3.0_f64.sqrt()));
        let share_above = samples.iter().filter(|&&s| s > 8.0).count() as f64 / SAMPLES as f64;
        let expected = 0.25_f64.powi(3);
        assert!((share_above - expected).abs() < tolerance(expected.sqrt()));
    }

    #[test]
    fn uniform_stays_in_its_range() {
        let uniform = Duration::Uniform {
            from_s: 1.0,
            to_s: 5.0,
        };
        let samples = samples_s(uniform);
        assert!(samples[0] >= 1.0 && samples[SAMPLES - 1] <= 5.0);
        assert!((mean(&samples) - uniform.mean_s()).abs() < tolerance(4.0 / 12.0_f64.sqrt()));
        assert_eq!(uniform.mean_s(), 3.0);
    }

    #[test]
    fn invalid_parameters_are_rejected() {
        let refused = [
            Duration::Fixed { s: -1.0 },
            Duration::Fixed { s: f64::INFINITY },
            Duration::Exponential { mean_s: f64::NAN },
            Duration::Pareto {
                shape: 0.0,
                least_s: 1.0,
            },
            Duration::Pareto {
                shape: 1.0,
                least_s: 0.0,
            },
            Duration::Uniform {
                from_s: 2.0,
                to_s: 1.0,
            },
        ];
        for duration in refused {
            assert!(duration.check().is_err(), "{duration:?}");
        }
        assert!(Duration::Fixed { s: 0.0 }.check().is_ok());
    }
}
