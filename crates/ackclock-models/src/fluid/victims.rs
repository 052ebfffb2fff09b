//! The drop-policy controller: which flows a congestion event hits, in the order of their priority.
//!
//! Kumar, Azad and Park 2010: flow i is hit rather than flow j if D_i > D_j in the event's row of the
//! priority matrix; by default those of the highest rate come first.

use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;
use serde::Deserialize;

use super::checks::PlanError;
use super::random;

/// The policies.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Victims {
    /// The highest rate first.
    Rate {},
    /// The largest window first.
    Window {},
    /// In random order.
    Random {},
    /// These flows first, event by event, and again from the first; then by rate.
    Replayed {
        /// Flows hit, one list for each event.
        flows: Vec<Vec<usize>>,
    },
}

impl Victims {
    /// Refuses flows that there are not.
    ///
    /// # Errors
    /// The first such flow, or no events.
    pub fn check(&self, flows: usize) -> Result<(), PlanError> {
        let Victims::Replayed { flows: events } = self else {
            return Ok(());
        };
        let unknown = events.iter().flatten().find(|&&flow| flow >= flows);
        match unknown {
            Some(flow) => Err(PlanError::Value(format!(
                "victims: found flow {flow}; expected flows below {flows}"
            ))),
            None if events.is_empty() => Err(PlanError::Value(
                "victims: found no events; expected a list of flows for each".into(),
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
    /// What it sends, packets/s.
    pub rate_p_s: f64,
    /// Its window, packets.
    pub window_p: f64,
}

/// The controller in a run.
#[derive(Debug)]
pub struct Controller {
    kind: Victims,
    random: Pcg64Mcg,
    events: usize,
}

impl Controller {
    /// A controller before its first event.
    pub fn new(kind: &Victims, seed: u64) -> Controller {
        Controller {
            kind: kind.clone(),
            random: random::stream(seed, random::VICTIMS),
            events: 0,
        }
    }

    /// Puts the candidates of the next event in order; who is hit first comes first, equals by their index.
    pub fn order(&mut self, candidates: &mut [Candidate]) {
        let event = self.events;
        self.events += 1;
        candidates.sort_by(|one, other| other.rate_p_s.total_cmp(&one.rate_p_s));
        match &self.kind {
            Victims::Rate {} => {}
            Victims::Window {} => {
                candidates.sort_by(|one, other| other.window_p.total_cmp(&one.window_p));
            }
            Victims::Random {} => candidates.shuffle(&mut self.random),
            Victims::Replayed { flows } => {
                let hit = &flows[event % flows.len()];
                candidates.sort_by_key(|candidate| !hit.contains(&candidate.flow));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ordered(kind: &Victims, events: usize) -> Vec<usize> {
        let mut controller = Controller::new(kind, 3);
        let rates = [5.0, 9.0, 5.0, 7.0];
        let windows = [8.0, 1.0, 2.0, 9.0];
        let mut candidates = Vec::new();
        for _ in 0..events {
            candidates = (0..4)
                .map(|flow| Candidate {
                    flow,
                    rate_p_s: rates[flow],
                    window_p: windows[flow],
                })
                .collect();
            controller.order(&mut candidates);
        }
        candidates.iter().map(|candidate| candidate.flow).collect()
    }

    #[test]
    fn rate_and_window_order_by_what_they_say() {
        assert_eq!(ordered(&Victims::Rate {}, 1), [1, 3, 0, 2]);
        assert_eq!(ordered(&Victims::Window {}, 1), [3, 0, 2, 1]);
    }

    #[test]
    fn random_orders_differ_from_event_to_event() {
        let orders: Vec<_> = (1..20)
            .map(|events| ordered(&Victims::Random {}, events))
            .collect();
        assert!(orders.iter().any(|order| *order != orders[0]));
    }

    #[test]
    fn the_replayed_come_first_then_the_fastest() {
        let kind = Victims::Replayed {
            flows: vec![vec![2], vec![0, 3]],
        };
        assert_eq!(ordered(&kind, 1), [2, 1, 3, 0]);
        assert_eq!(ordered(&kind, 2), [3, 0, 1, 2]);
        assert_eq!(ordered(&kind, 3), [2, 1, 3, 0]);
    }
}
