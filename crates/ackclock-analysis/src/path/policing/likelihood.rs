//! The likelihood of packet losses under a token bucket.

use super::super::trace::BucketArrival;
use super::Search;

/// λ: the share of fates that a bucket need not explain: losses on other links, and fates that were inferred wrongly.
const LAPSE: f64 = 0.005;
/// Beyond these widths from the depth a fate is certain.
const CERTAIN: f64 = 15.0;
/// Packets after which it is seen whether a model can still be likely enough.
const TABLE: usize = 512;

/// A packet is lost if the level would be above the depth, give or take the width.
#[derive(Clone, Copy, Debug)]
pub(super) struct Model {
    pub(super) rate: f64,
    pub(super) depth: f64,
    pub(super) width: f64,
}

/// The logarithm of a model's likelihood, how it grows with rate and depth, and Fisher's information.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Assessment {
    pub(super) likelihood: f64,
    pub(super) growth: [f64; 2],
    pub(super) information: [f64; 3],
}

impl Assessment {
    /// Return the scoring step in rate and depth.
    pub(super) fn step(&self) -> [f64; 2] {
        let [rr, rd, dd] = self.inverse();
        let [r, d] = self.growth;
        [rr * r + rd * d, rd * r + dd * d]
    }

    /// The inverse of the information: variances and covariance. Zero where nothing is known.
    pub(super) fn inverse(&self) -> [f64; 3] {
        let [rr, rd, dd] = self.information;
        // A millionth more on the diagonal: all losses may have the same age.
        let (rr, dd) = (rr * (1.0 + 1e-6), dd * (1.0 + 1e-6));
        let determinant = rr * dd - rd * rd;
        if determinant > 0.0 && determinant.is_finite() {
            [dd / determinant, -rd / determinant, rr / determinant]
        } else if dd > 0.0 {
            [0.0, 0.0, 1.0 / dd]
        } else {
            [0.0; 3]
        }
    }
}

/// The logarithm of a fate's likelihood, at most.
pub(super) fn surely() -> f64 {
    (1.0 - LAPSE).ln()
}

impl Search<'_> {
    /// The logarithm of a model's likelihood alone, from its logistic function's asymptotes: for the search.
    #[inline(never)] // in a larger function the sum would not stay in a register
    pub(super) fn likelihood(&self, model: &Model) -> f64 {
        let mut sum = 0.0;
        let most = -LAPSE.ln();
        for (&level, &lost) in self.levels.level.iter().zip(&self.trace.lost) {
            let above = level - model.depth;
            let wrong = if lost { -above } else { above };
            if wrong > 0.0 {
                sum -= (wrong / model.width).min(most);
            }
        }
        sum
    }

    /// Return the likelihood of all packets under a model, or stop early once it is below `least`: each packet lowers
    /// it.
    pub(super) fn assess(&self, model: &Model, least: f64) -> Assessment {
        model.assess(self.trace.arrivals_at(model.rate), least)
    }
}

impl Model {
    /// Assess these packets, in arrival order at this model's rate: see [`Search::assess`].
    #[inline]
    pub(super) fn assess(
        &self,
        packets: impl Iterator<Item = BucketArrival>,
        least: f64,
    ) -> Assessment {
        let mut sum = Assessment::default();
        let (surely, hardly) = (surely(), LAPSE.ln());
        let far = (CERTAIN + 1.0) * self.width;
        for (number, packet) in packets.enumerate() {
            if number % TABLE == 0 && sum.likelihood < least {
                break;
            }
            let above = packet.level - self.depth;
            // Nearly all are far away, and nothing has to be divided to see that.
            if above.abs() > far || (above / self.width).abs() > CERTAIN {
                sum.likelihood += if (above > 0.0) == packet.lost {
                    surely
                } else {
                    hardly
                };
            } else {
                self.uncertain(above / self.width, packet, &mut sum);
            }
        }
        sum
    }

    /// Add a packet whose level is near the depth.
    #[inline]
    fn uncertain(&self, above: f64, packet: BucketArrival, sum: &mut Assessment) {
        let full = 1.0 / (1.0 + (-above).exp());
        let probability = LAPSE + (1.0 - 2.0 * LAPSE) * full;
        let slope = (1.0 - 2.0 * LAPSE) * full * (1.0 - full) / self.width;
        let (fate, score) = if packet.lost {
            (probability, slope / probability)
        } else {
            (1.0 - probability, -slope / (1.0 - probability))
        };
        sum.likelihood += fate.ln();
        let weight = slope * slope / (probability * (1.0 - probability));
        let age = packet.age_s;
        sum.growth[0] -= score * age;
        sum.growth[1] -= score;
        sum.information[0] += weight * age * age;
        sum.information[1] += weight * age;
        sum.information[2] += weight;
    }
}
