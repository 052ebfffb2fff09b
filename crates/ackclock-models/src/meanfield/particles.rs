//! A finite number of flows under the same laws: each loses or not, by lot.
//!
//! What the limit says of a share, a particle decides with that probability. Runs with different seeds show
//! how far so many flows are from the limit.

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;

use super::cohorts::{Cohorts, Exposure};
use super::law::{Law, Start};

/// A class of so many flows.
#[derive(Clone, Debug)]
pub struct Particles {
    law: Law,
    flows: Cohorts,
    random: Pcg64,
}

impl Particles {
    /// All flows alike, just after a loss; the random stream is that of the run's seed and the class's number.
    pub fn new(law: Law, count: usize, start: Start, seed: u64, class: u64) -> Particles {
        let mut flows = Cohorts::default();
        for _ in 0..count {
            flows.push(&law, 1.0 / count as f64, 0.0, 0.0, start);
        }
        let stream = seed.wrapping_add(class.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        Particles {
            law,
            flows,
            random: Pcg64::seed_from_u64(stream),
        }
    }

    /// The flows, each a cohort of its own, in their order.
    pub fn cohorts(&self) -> &Cohorts {
        &self.flows
    }

    /// Their windows at a time; returns the mean.
    pub fn grow(&mut self, now_s: f64, rounds: f64) -> f64 {
        self.flows.grow(&self.law, now_s, rounds)
    }

    /// Lets flows lose; puts the numbers of those that reduce into `hit` and returns their share.
    pub fn lose(&mut self, loss: &Exposure, hit: &mut Vec<usize>) -> f64 {
        hit.clear();
        for i in 0..self.flows.len() {
            if self.flows.birth_s[i] > loss.until_s {
                continue;
            }
            let chance = loss.chance(self.flows.window[i]);
            if self.random.gen::<f64>() < chance {
                self.flows.restart(i, &self.law, loss.now_s, loss.rounds);
                hit.push(i);
            }
        }
        hit.len() as f64 / self.flows.len() as f64
    }
}
