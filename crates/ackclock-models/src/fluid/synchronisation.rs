//! The synchronisation controller: how many flows a congestion event hits.
//!
//! Kumar, Azad and Park 2010 draw the number from a normal distribution that is bounded from below by the
//! synchronisation ratio X; they leave its mean and deviation open. Or it is a black box that is fed with the
//! measured shares. Or the event's own losses decide: each lost packet hits a random flow, so that of N
//! flows a share 1 − exp(−ρ D / N) is hit by D lost packets of which each counts for ρ; ρ < 1 where losses come in
//! clumps to the same flow. That one is ours, to be fitted to packets.

use rand_distr::{Binomial, Distribution, Normal};
use rand_pcg::Pcg64Mcg;
use serde::Deserialize;

use super::checks::{between, PlanError};
use super::random;

/// A draw outside the bounds is retransmitted so often; then the nearest bound is taken.
const MAX_DRAWS: u32 = 1000;

/// The kinds of controllers.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Synchronisation {
    /// No events: each flow is reduced smoothly by −W b λ (Misra, Gong, Towsley 2000).
    None {},
    /// A whole number from a normal distribution, within [X N, N].
    Normal {
        /// X: the least share of the flows.
        least: f64,
        /// Mean in flows; `null`: halfway between the bounds.
        #[serde(deserialize_with = "Option::deserialize")]
        mean: Option<f64>,
        /// Standard deviation in flows.
        sd: f64,
    },
    /// All flows.
    Full {},
    /// These shares of the flows, event by event, and again from the first.
    Replayed {
        /// One for each event.
        shares: Vec<f64>,
    },
    /// Each flow at random, by the losses of the event.
    Losses {
        /// ρ: for how many independent losses a lost packet counts.
        loss_weight: f64,
    },
}

/// Overload that an event resolves.
#[derive(Clone, Copy, Debug)]
pub struct Overload {
    /// Flows that cross the queue.
    pub flows: usize,
    /// Flows that a loss may hit.
    pub free: usize,
    /// D: packets beyond the queue's rate in one round trip.
    pub lost_p: f64,
}

impl Synchronisation {
    /// Reject numbers without meaning.
    ///
    /// # Errors
    /// The first such number.
    pub fn check(&self) -> Result<(), PlanError> {
        match self {
            Synchronisation::None {} | Synchronisation::Full {} => Ok(()),
            Synchronisation::Normal { least, mean, sd } => {
                between("least", *least, 0.0, 1.0)?;
                between("sd", *sd, 0.0, f64::MAX)?;
                mean.map_or(Ok(()), |mean| between("mean", mean, 0.0, f64::MAX))
            }
            Synchronisation::Losses { loss_weight } => {
                between("loss_weight", *loss_weight, 0.0, 1e6)
            }
            Synchronisation::Replayed { shares } if shares.is_empty() => Err(PlanError::Value(
                "shares: found none; expected one for each event".into(),
            )),
            Synchronisation::Replayed { shares } => shares
                .iter()
                .try_for_each(|&share| between("share", share, 0.0, 1.0)),
        }
    }
}

/// The controller in a run.
#[derive(Debug)]
pub struct Controller {
    kind: Synchronisation,
    random: Pcg64Mcg,
    events: usize,
}

impl Controller {
    /// A controller before its first event.
    pub fn new(kind: &Synchronisation, seed: u64) -> Controller {
        Controller {
            kind: kind.clone(),
            random: random::stream(seed, random::SYNCHRONISATION),
            events: 0,
        }
    }

    /// True if losses are smooth and there are no events.
    pub fn is_smooth(&self) -> bool {
        matches!(self.kind, Synchronisation::None {})
    }

    /// True if the losses of an event say how many flows it hits.
    pub fn is_by_losses(&self) -> bool {
        matches!(self.kind, Synchronisation::Losses { .. })
    }

    /// Number of flows that the next event hits, at least one.
    pub fn flows_hit(&mut self, overload: Overload) -> usize {
        let event = self.events;
        self.events += 1;
        let flows = overload.flows;
        let count = flows as f64;
        let hit = match &self.kind {
            Synchronisation::None {} | Synchronisation::Full {} => count,
            Synchronisation::Replayed { shares } => (shares[event % shares.len()] * count).round(),
            Synchronisation::Normal { least, mean, sd } => {
                let low = (least * count - 1e-9).ceil().max(1.0);
                let mean = mean.unwrap_or(count * (1.0 + least) / 2.0);
                truncated(mean, *sd, low, count, &mut self.random)
            }
            Synchronisation::Losses { loss_weight } => {
                let share = -(-loss_weight * overload.lost_p.max(0.0) / count).exp_m1();
                let drawn = Binomial::new(overload.free as u64, share.clamp(0.0, 1.0));
                drawn.map_or(1.0, |drawn| drawn.sample(&mut self.random) as f64)
            }
        };
        (hit as usize).clamp(1, flows.max(1))
    }
}

/// A whole number from a normal distribution, drawn again while it is outside the bounds.
fn truncated(mean: f64, sd: f64, low: f64, high: f64, random: &mut Pcg64Mcg) -> f64 {
    let Ok(normal) = Normal::new(mean, sd) else {
        return mean.round().clamp(low, high);
    };
    let mut draws = (0..MAX_DRAWS).map(|_| normal.sample(random).round());
    let found = draws.find(|drawn| (low..=high).contains(drawn));
    found.unwrap_or(mean.round().clamp(low, high))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(kind: &Synchronisation, flows: usize, events: usize) -> Vec<usize> {
        let mut controller = Controller::new(kind, 7);
        let overload = |lost_p| Overload {
            flows,
            free: flows,
            lost_p,
        };
        (0..events)
            .map(|_| controller.flows_hit(overload(LOST_P)))
            .collect()
    }

    /// Loss of the events in these tests.
    const LOST_P: f64 = 5.0;

    fn normal(least: f64, mean: Option<f64>, sd: f64) -> Synchronisation {
        Synchronisation::Normal { least, mean, sd }
    }

    #[test]
    fn draws_stay_within_the_bounds_and_reach_them() {
        let found = drawn(&normal(0.3, None, 1.5), 10, 5000);
        assert_eq!(found.iter().min(), Some(&3));
        assert_eq!(found.iter().max(), Some(&10));
    }

    /// The mean of the paper's set-up is 10 (1 + X)/2, and the bounds lie symmetrically about it.
    #[test]
    fn the_mean_is_halfway_between_the_bounds() {
        for (least, expected) in [(0.3, 6.5), (0.6, 8.0)] {
            let found = drawn(&normal(least, None, 1.5), 10, 20_000);
            let mean = found.iter().sum::<usize>() as f64 / found.len() as f64;
            assert!((mean - expected).abs() < 0.05, "{least}: {mean}");
        }
    }

    #[test]
    fn a_mean_and_a_deviation_may_be_given() {
        assert_eq!(drawn(&normal(0.1, Some(4.0), 0.0), 10, 3), [4, 4, 4]);
        assert_eq!(drawn(&normal(0.5, Some(1.0), 0.0), 10, 2), [5, 5]);
    }

    /// Five losses hit 10 (1 − e^−ρ/2) of ten flows; a draw of none is one, which adds (1 − p)¹⁰.
    #[test]
    fn losses_hit_by_lot() {
        for (loss_weight, expected) in [(0.7, 2.953 + 0.030), (2.0, 6.321)] {
            let found = drawn(&Synchronisation::Losses { loss_weight }, 10, 20_000);
            let mean = found.iter().sum::<usize>() as f64 / found.len() as f64;
            assert!((mean - expected).abs() < 0.05, "{loss_weight}: {mean}");
        }
        let none = drawn(&Synchronisation::Losses { loss_weight: 0.0 }, 10, 5);
        assert_eq!(none, [1; 5]);
    }

    #[test]
    fn full_synchronisation_hits_all_flows_and_shares_rotate() {
        assert_eq!(drawn(&Synchronisation::Full {}, 7, 2), [7, 7]);
        let shares = Synchronisation::Replayed {
            shares: vec![0.2, 0.0, 1.0],
        };
        assert_eq!(drawn(&shares, 10, 4), [2, 1, 10, 2]);
    }
}
