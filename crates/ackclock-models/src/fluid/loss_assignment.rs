//! The drop-policy controller: which flows a congestion event hits, in the order of their priority.
//!
//! Kumar, Azad and Park 2010: flow i is hit rather than flow j if D_i > D_j in the event's row of the
//! priority matrix; by default those of the highest rate come first. `Weighted` is ours, to be fitted to packets:
//! each place goes to one of those left with a probability proportional to its weight (Plackett and Luce).

use rand::seq::SliceRandom;
use rand_distr::{Distribution, Exp1};
use rand_pcg::Pcg64Mcg;
use serde::Deserialize;

use super::checks::{between, PlanError};
use super::random;

/// The policies.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum LossAssignment {
    /// The highest rate first.
    Rate {},
    /// The largest window first.
    Window {},
    /// In random order.
    Random {},
    /// Drawn with weights A^rate (dW/dt)^growth.
    Weighted {
        /// Exponent of the rate.
        rate: f64,
        /// Exponent of the growth.
        growth: f64,
    },
    /// These flows first, event by event, and again from the first; then by rate.
    Replayed {
        /// Flows hit, one list for each event.
        flows: Vec<Vec<usize>>,
    },
}

/// Exponents of weights are between this and its negative.
const MAX_EXPONENT: f64 = 20.0;
/// Smallest growth as a weight, packets/s.
const MIN_GROWTH: f64 = 1e-3;

impl LossAssignment {
    /// Reject flows that do not exist.
    ///
    /// # Errors
    /// The first such flow, or no events.
    pub fn check(&self, flows: usize) -> Result<(), PlanError> {
        if let LossAssignment::Weighted { rate, growth } = self {
            between("rate", *rate, -MAX_EXPONENT, MAX_EXPONENT)?;
            return between("growth", *growth, -MAX_EXPONENT, MAX_EXPONENT);
        }
        let LossAssignment::Replayed { flows: events } = self else {
            return Ok(());
        };
        let unknown = events.iter().flatten().find(|&&flow| flow >= flows);
        match unknown {
            Some(flow) => Err(PlanError::Value(format!(
                "loss_assignment: found flow {flow}; expected flows below {flows}"
            ))),
            None if events.is_empty() => Err(PlanError::Value(
                "loss_assignment: found no events; expected a list of flows for each".into(),
            )),
            None => Ok(()),
        }
    }
}

/// A flow that could be hit.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    /// Its index.
    pub flow: usize,
    /// Sending rate, packets/s.
    pub rate_p_s: f64,
    /// Its window, packets.
    pub window_p: f64,
    /// Its growth, packets/s.
    pub growth_p_s: f64,
}

/// The controller in a run.
#[derive(Debug)]
pub struct Controller {
    kind: LossAssignment,
    random: Pcg64Mcg,
    events: usize,
}

impl Controller {
    /// A controller before its first event.
    pub fn new(kind: &LossAssignment, seed: u64) -> Controller {
        Controller {
            kind: kind.clone(),
            random: random::stream(seed, random::VICTIMS),
            events: 0,
        }
    }

    /// Put the candidates of the next event in order: the first are hit first, equal ones by their index.
    pub fn order(&mut self, candidates: &mut [Candidate]) {
        let event = self.events;
        self.events += 1;
        candidates.sort_by(|one, other| other.rate_p_s.total_cmp(&one.rate_p_s));
        match &self.kind {
            LossAssignment::Rate {} => {}
            LossAssignment::Window {} => {
                candidates.sort_by(|one, other| other.window_p.total_cmp(&one.window_p));
            }
            LossAssignment::Random {} => candidates.shuffle(&mut self.random),
            LossAssignment::Weighted { rate, growth } => {
                // The least of exponential times with these rates is each one's with its share of the weights.
                let mut timed: Vec<(f64, Candidate)> = candidates
                    .iter()
                    .map(|one| {
                        let lot: f64 = Exp1.sample(&mut self.random);
                        let grown = one.growth_p_s.max(MIN_GROWTH).ln();
                        (lot.ln() - rate * one.rate_p_s.ln() - growth * grown, *one)
                    })
                    .collect();
                timed.sort_by(|one, other| one.0.total_cmp(&other.0));
                for (place, (_, one)) in candidates.iter_mut().zip(timed) {
                    *place = one;
                }
            }
            LossAssignment::Replayed { flows } => {
                let hit = &flows[event % flows.len()];
                candidates.sort_by_key(|candidate| !hit.contains(&candidate.flow));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ordered(kind: &LossAssignment, events: usize) -> Vec<usize> {
        ordered_by(kind, events, 3)
    }

    fn order(kind: &LossAssignment, seed: u64) -> Vec<usize> {
        ordered_by(kind, 1, seed)
    }

    fn ordered_by(kind: &LossAssignment, events: usize, seed: u64) -> Vec<usize> {
        let mut controller = Controller::new(kind, seed);
        let rates = [5.0, 9.0, 5.0, 7.0];
        let windows = [8.0, 1.0, 2.0, 9.0];
        let growths = [1.0, 2.0, 0.0, 3.0];
        let mut candidates = Vec::new();
        for _ in 0..events {
            candidates = (0..4)
                .map(|flow| Candidate {
                    flow,
                    rate_p_s: rates[flow],
                    window_p: windows[flow],
                    growth_p_s: growths[flow],
                })
                .collect();
            controller.order(&mut candidates);
        }
        candidates.iter().map(|candidate| candidate.flow).collect()
    }

    #[test]
    fn rate_and_window_policies_order_by_rate_and_window() {
        assert_eq!(ordered(&LossAssignment::Rate {}, 1), [1, 3, 0, 2]);
        assert_eq!(ordered(&LossAssignment::Window {}, 1), [3, 0, 2, 1]);
    }

    #[test]
    fn random_orders_differ_from_event_to_event() {
        let orders: Vec<_> = (1..20)
            .map(|events| ordered(&LossAssignment::Random {}, events))
            .collect();
        assert!(orders.iter().any(|order| *order != orders[0]));
    }

    /// With weights 5, 9, 5 and 7, flow 1 comes first in 9 of 26 events; by growth 2 of 6, and flow 2 never does.
    #[test]
    fn the_first_place_goes_by_weight() {
        let first = |kind: &LossAssignment, flow: usize| {
            let firsts = (1..4001).map(|events| order(kind, events)[0]);
            firsts.filter(|&first| first == flow).count() as f64 / 4000.0
        };
        let weighted = |rate, growth| LossAssignment::Weighted { rate, growth };
        assert!((first(&weighted(1.0, 0.0), 1) - 9.0 / 26.0).abs() < 0.025);
        assert!((first(&weighted(0.0, 1.0), 1) - 2.0 / 6.0).abs() < 0.025);
        assert!(first(&weighted(0.0, 1.0), 2) < 0.002);
        assert!(weighted(f64::NAN, 0.0).check(4).is_err());
    }

    #[test]
    fn replayed_flows_precede_the_fastest() {
        let kind = LossAssignment::Replayed {
            flows: vec![vec![2], vec![0, 3]],
        };
        assert_eq!(ordered(&kind, 1), [2, 1, 3, 0]);
        assert_eq!(ordered(&kind, 2), [3, 0, 1, 2]);
        assert_eq!(ordered(&kind, 3), [2, 1, 3, 0]);
    }
}
