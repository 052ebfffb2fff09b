//! A finite number of flows under the same laws, with random losses.
//!
//! What the limit says of a share, a particle decides with that probability. Runs with different seeds show
//! how far so many flows are from the limit.

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;

use super::cohorts::{Cohorts, Exposure};
use super::law::Law;

/// A class of so many flows.
#[derive(Clone, Debug)]
pub struct Particles {
    law: Law,
    flows: Cohorts,
    random: Pcg64,
}

impl Particles {
    /// Flows as they are at the beginning; the random stream is that of the run's seed and the class's number.
    pub fn new(law: Law, flows: Cohorts, seed: u64, class: u64) -> Particles {
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

    /// Slow start ends without a loss.
    pub fn leave_slow_start(&mut self, now_s: f64, rounds: f64, least_p: f64) {
        self.flows
            .leave_slow_start(&self.law, now_s, rounds, least_p);
    }

    /// Let flows lose; puts the numbers of those that reduce into `hit` and returns their share.
    pub fn lose(&mut self, loss: &Exposure, hit: &mut Vec<usize>) -> f64 {
        hit.clear();
        for i in 0..self.flows.len() {
            if self.flows.birth_s[i] > loss.until_s {
                continue;
            }
            let window = self.flows.window[i];
            let chance = if self.flows.opening().contains(&i) {
                loss.chance_by_lot(window)
            } else {
                loss.chance(window)
            };
            if self.random.gen::<f64>() < chance {
                self.flows.restart(i, &self.law, loss);
                hit.push(i);
            }
        }
        hit.len() as f64 / self.flows.len() as f64
    }
}
