//! The distributions of transfer sizes.

use rand::distributions::Distribution;
use rand::Rng;
use rand_distr::{Exp1, Pareto, StandardNormal, Zipf};
use rand_pcg::Pcg64Mcg;
use serde::Deserialize;

use crate::error::{check_max, not_negative, positive};
use crate::WorkloadError;

#[cfg(test)]
mod tests;

/// The largest size: 2^53 bytes, the end of the whole numbers that a JSON number holds.
pub const LARGEST_BYTES: u64 = 1 << 53;

/// A distribution of sizes.
///
/// Draws are rounded to whole bytes, at least 1 and at most [`LARGEST_BYTES`]. Where the law has no
/// largest size of its own, `truncation` handles draws that are too large.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Size {
    /// Always the same.
    Fixed {
        /// The size.
        bytes: u64,
    },
    /// Exponential.
    Exponential {
        /// The mean before truncation.
        mean_bytes: f64,
        /// The truncation of draws that are too large.
        #[serde(deserialize_with = "Option::deserialize")]
        truncation: Option<Truncation>,
    },
    /// Lognormal.
    Lognormal {
        /// The median before truncation.
        median_bytes: f64,
        /// Standard deviation of the natural logarithm.
        sigma: f64,
        /// The truncation of draws that are too large.
        #[serde(deserialize_with = "Option::deserialize")]
        truncation: Option<Truncation>,
    },
    /// Pareto: larger than x with probability (least/x)^shape.
    Pareto {
        /// The shape, > 0; up to 1 the mean is infinite unless truncated.
        shape: f64,
        /// The smallest size.
        least_bytes: f64,
        /// The truncation of draws that are too large.
        #[serde(deserialize_with = "Option::deserialize")]
        truncation: Option<Truncation>,
    },
    /// Zipf: k units with probability proportional to k^−exponent, k = 1, …, most. The law ends at
    /// `most`, so it needs no truncation.
    Zipf {
        /// The exponent, ≥ 0.
        exponent: f64,
        /// The largest number of units.
        most: u64,
        /// Bytes of a unit, such as the payload of a full segment.
        unit_bytes: u64,
    },
    /// A cumulative distribution through these points, straight between them.
    Empirical {
        /// Pairs of a size in bytes and the share of transfers up to that size. Both rise or stay; the
        /// last share is 1. The first point's share is that of its size exactly.
        points: Vec<(u64, f64)>,
    },
}

/// The truncation of draws that are too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Truncation {
    /// They are drawn again: the law given that it is at most this. This must not be below the median,
    /// so that two draws are enough on average.
    Redraw {
        /// The largest size.
        most_bytes: u64,
    },
    /// They become this size.
    Clip {
        /// The largest size.
        most_bytes: u64,
    },
}

/// A distribution of sizes whose parameters have been checked.
#[derive(Clone, Debug)]
pub struct SizeSampler {
    law: Law,
    truncation: Option<Truncation>,
}

/// A checked law; sizes in bytes.
#[derive(Clone, Debug)]
enum Law {
    Fixed {
        bytes: f64,
    },
    Exponential {
        mean: f64,
    },
    Lognormal {
        median: f64,
        sigma: f64,
    },
    Pareto(Pareto<f64>),
    Zipf {
        law: Zipf<f64>,
        most: f64,
        unit: f64,
    },
    Empirical {
        points: Vec<(u64, f64)>,
    },
}

impl Size {
    /// Check the parameters and create what draws from the distribution.
    ///
    /// # Errors
    /// A parameter that is not positive or too large, points that do not rise to 1, a truncation by
    /// redrawing below the median.
    pub fn sampler(&self) -> Result<SizeSampler, WorkloadError> {
        let truncation = self.truncation();
        if let Some(truncation) = truncation {
            truncation.check(self.median_bytes())?;
        }
        Ok(SizeSampler {
            law: self.law()?,
            truncation,
        })
    }

    fn law(&self) -> Result<Law, WorkloadError> {
        match *self {
            Size::Fixed { bytes } => {
                check_integer("bytes", bytes)?;
                let bytes = bytes as f64;
                Ok(Law::Fixed { bytes })
            }
            Size::Exponential { mean_bytes, .. } => {
                positive("mean_bytes", mean_bytes)?;
                Ok(Law::Exponential { mean: mean_bytes })
            }
            Size::Lognormal {
                median_bytes,
                sigma,
                ..
            } => {
                positive("median_bytes", median_bytes)?;
                not_negative("sigma", sigma)?;
                Ok(Law::Lognormal {
                    median: median_bytes,
                    sigma,
                })
            }
            Size::Pareto {
                shape, least_bytes, ..
            } => {
                positive("shape", shape)?;
                positive("least_bytes", least_bytes)?;
                Pareto::new(least_bytes, shape)
                    .map(Law::Pareto)
                    .map_err(|_| WorkloadError::NotPositive("shape"))
            }
            Size::Zipf {
                exponent,
                most,
                unit_bytes,
            } => zipf(exponent, most, unit_bytes),
            Size::Empirical { ref points } => {
                check_points(points)?;
                let points = points.clone();
                Ok(Law::Empirical { points })
            }
        }
    }

    fn truncation(&self) -> Option<Truncation> {
        match *self {
            Size::Exponential { truncation, .. }
            | Size::Lognormal { truncation, .. }
            | Size::Pareto { truncation, .. } => truncation,
            Size::Fixed { .. } | Size::Zipf { .. } | Size::Empirical { .. } => None,
        }
    }

    /// The median of the laws that can be truncated.
    fn median_bytes(&self) -> f64 {
        match *self {
            Size::Exponential { mean_bytes, .. } => mean_bytes * std::f64::consts::LN_2,
            Size::Lognormal { median_bytes, .. } => median_bytes,
            Size::Pareto {
                shape, least_bytes, ..
            } => least_bytes * (1.0 / shape).exp2(),
            Size::Fixed { .. } | Size::Zipf { .. } | Size::Empirical { .. } => 0.0,
        }
    }
}

impl Truncation {
    fn check(self, median_bytes: f64) -> Result<(), WorkloadError> {
        let (Truncation::Redraw { most_bytes } | Truncation::Clip { most_bytes }) = self;
        check_integer("most_bytes", most_bytes)?;
        let throws_most_away = (most_bytes as f64) < median_bytes;
        if matches!(self, Truncation::Redraw { .. }) && throws_most_away {
            return Err(WorkloadError::RedrawBelowMedian {
                max_bytes: most_bytes,
                median_bytes,
            });
        }
        Ok(())
    }
}

impl SizeSampler {
    /// One size in bytes.
    pub fn draw(&self, random: &mut Pcg64Mcg) -> u64 {
        loop {
            let bytes = round_bytes(self.law.draw(random));
            match self.truncation {
                Some(Truncation::Redraw { most_bytes }) if bytes > most_bytes => {}
                Some(Truncation::Clip { most_bytes }) => return bytes.min(most_bytes),
                _ => return bytes,
            }
        }
    }
}

impl Law {
    fn draw(&self, random: &mut Pcg64Mcg) -> f64 {
        match self {
            Law::Fixed { bytes } => *bytes,
            Law::Exponential { mean } => {
                let unit: f64 = Exp1.sample(random);
                mean * unit
            }
            Law::Lognormal { median, sigma } => {
                let normal: f64 = StandardNormal.sample(random);
                median * (sigma * normal).exp()
            }
            Law::Pareto(law) => law.sample(random),
            // Rounding in the sampler may exceed a very large maximum by one.
            Law::Zipf { law, most, unit } => law.sample(random).min(*most) * unit,
            Law::Empirical { points } => size_at(points, random.gen()),
        }
    }
}

/// Rounds to the nearest byte, at least one.
fn round_bytes(bytes: f64) -> u64 {
    (bytes.round() as u64).clamp(1, LARGEST_BYTES)
}

/// The size up to which this share of the transfers is; the inverse of the cumulative distribution.
fn size_at(points: &[(u64, f64)], share: f64) -> f64 {
    let above = points.partition_point(|&(_, cumulative)| cumulative <= share);
    let (bytes, cumulative) = points[above.min(points.len() - 1)];
    match above.checked_sub(1).map(|below| points[below]) {
        None => bytes as f64,
        Some((least, below)) => {
            let along = (share - below) / (cumulative - below);
            least as f64 + (bytes - least) as f64 * along
        }
    }
}

fn zipf(exponent: f64, most: u64, unit_bytes: u64) -> Result<Law, WorkloadError> {
    not_negative("exponent", exponent)?;
    check_integer("most", most)?;
    check_integer("unit_bytes", unit_bytes)?;
    let (units, unit) = (most as f64, unit_bytes as f64);
    check_max("most × unit_bytes", units * unit, LARGEST_BYTES as f64)?;
    let law = Zipf::new(most, exponent).map_err(|_| WorkloadError::NotPositive("most"))?;
    Ok(Law::Zipf {
        law,
        most: units,
        unit,
    })
}

fn check_integer(what: &'static str, found: u64) -> Result<(), WorkloadError> {
    positive(what, found as f64)?;
    check_max(what, found as f64, LARGEST_BYTES as f64)
}

fn check_points(points: &[(u64, f64)]) -> Result<(), WorkloadError> {
    let &[(smallest, first), .., (largest, last)] = points else {
        return Err(WorkloadError::Points("expected two or more"));
    };
    check_integer("bytes", smallest)?;
    check_integer("bytes", largest)?;
    not_negative("share", first)?;
    let rise = |pair: &[(u64, f64)]| pair[0].0 <= pair[1].0 && pair[0].1 <= pair[1].1;
    if !points.windows(2).all(rise) {
        return Err(WorkloadError::Points("expected sizes and shares that rise"));
    }
    if last != 1.0 {
        return Err(WorkloadError::Points("expected 1 as the last share"));
    }
    Ok(())
}
