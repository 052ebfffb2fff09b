//! Which control it was: every candidate replayed, ranked by likelihood, with "unknown" among them.
//!
//! Probabilities are Bayes': prior times likelihood. A candidate that fits as badly as only one in a hundred of our own
//! engine's flows fits its true control is no explanation; *unknown* is one more control that fits just so well. The
//! bounds come from our engine alone: 189 flows, each replayed by its true control and, left out in turn, by all others.

use ackclock_congestion::{make, Controller, Error, Repair};
use serde_json::Value;

use crate::likelihood::{fit, rounds, Fit, WEIGHT};
use crate::replay::{Counting, Manner, Origin, Prepared};
use crate::series::Series;

/// What is said where no candidate fits.
pub const UNKNOWN: &str = "unknown";

/// Mean logarithm of the likelihood of a round: 163 of 164 flows have more with their true control. Where that and its
/// near relatives were left out, and Westwood+, LEDBAT and models as well, the best of the others had more in 12 of 72.
const POOR: f64 = 0.7;

/// The same for LEDBAT, which moves as freely as the delay does and fits many a flow by chance: its own have 3.43 and
/// more, those of others up to 2.91.
const POOR_LEDBAT: f64 = 3.2;

/// The same for controls that pace by a model of the path, whose cycles begin at random: 19 of their own have as much or more.
/// They are believed only where nothing else fits better.
const POOR_MODEL: f64 = -0.8;

/// What is left of the prior of a control that is not deployed: one flow in twenty of the others.
const RARE: f64 = 0.05;

/// Those that counted ACKs in Linux before 5.7, whose changes are called *fix stretch ACK bugs*.
const COUNTED_ACKS: &[&str] = &["bic", "scalable"];

/// The control that is Reno where ECN was not negotiated: Linux takes Reno's functions then.
const NEEDS_MARKS: &str = "dctcp";

/// A congestion control that may have been it, with its card's complete parameters.
#[derive(Clone, Debug)]
pub struct Candidate {
    name: String,
    parameters: Value,
    deployed: bool,
    is_model: bool,
}

/// How well a candidate fits, driven in one manner.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fitted {
    /// The manner.
    pub manner: Manner,
    /// Its fit.
    pub fit: Fit,
}

/// A name and how probable it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranked {
    /// A candidate's name, or [`UNKNOWN`].
    pub name: String,
    /// Between 0 and 1.
    pub probability: f64,
}

impl Candidate {
    /// A candidate; `deployed` if a mainline kernel has it, or a system takes it by default.
    ///
    /// # Errors
    /// An unknown name, or parameters that are not those of the card.
    pub fn new(name: &str, parameters: &Value, deployed: bool) -> Result<Self, Error> {
        let controller = make(name, parameters, 10)?;
        Ok(Self {
            name: name.to_owned(),
            parameters: parameters.clone(),
            deployed,
            is_model: controller.repair() == Repair::Controller,
        })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A controller with a window in segments.
    ///
    /// # Panics
    /// Never: [`Candidate::new`] has made one of the same parameters.
    pub fn controller(&self, window: u32) -> Box<dyn Controller> {
        make(&self.name, &self.parameters, window).expect("it was made before")
    }

    /// The fit of each manner in which it may have been driven.
    pub fn fits(&self, series: &Series, prepared: &Prepared) -> Vec<Fitted> {
        let make = |window| self.controller(window);
        let countings: &[Counting] = if COUNTED_ACKS.contains(&self.name.as_str()) {
            &[Counting::Segments, Counting::Acks]
        } else {
            &[Counting::Segments]
        };
        // A model of the path that begins anew in a full queue paces at the bottleneck's rate, as whoever fills it does.
        let origins: &[Origin] = if self.is_model {
            &[Origin::Opening]
        } else {
            &[Origin::Opening, Origin::FirstLoss]
        };
        countings
            .iter()
            .flat_map(|&counting| {
                origins
                    .iter()
                    .map(move |&origin| Manner { counting, origin })
            })
            .map(|manner| Fitted {
                manner,
                fit: fit(&rounds(series, &prepared.replay(&make, manner))),
            })
            .collect()
    }

    fn evidence(&self, series: &Series, prepared: &Prepared) -> Evidence {
        let fits = self.fits(series, prepared);
        let logs: Vec<f64> = fits.iter().map(|f| f.fit.log_likelihood).collect();
        Evidence {
            log: log_sum(&logs) - (logs.len() as f64).ln(),
            best: logs.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            rounds: fits.iter().map(|f| f.fit.rounds).max().unwrap_or(0),
        }
    }

    fn prior(&self, prepared: &Prepared) -> f64 {
        if self.deployed && (prepared.uses_ecn() || self.name != NEEDS_MARKS) {
            1.0
        } else {
            RARE
        }
    }

    fn poor(&self) -> f64 {
        match self.name.as_str() {
            "ledbat" => POOR_LEDBAT,
            _ if self.is_model => POOR_MODEL,
            _ => POOR,
        }
    }
}

/// What a flow says for a candidate.
#[derive(Clone, Copy, Debug)]
struct Evidence {
    /// Logarithm of the mean likelihood over the manners.
    log: f64,
    /// That of the best manner.
    best: f64,
    /// Rounds that could be compared.
    rounds: usize,
}

/// The candidates and [`UNKNOWN`], the most probable first; the probabilities sum to 1.
pub fn rank(series: &Series, candidates: &[Candidate]) -> Vec<Ranked> {
    let prepared = Prepared::new(series);
    let evidence = |candidate: &Candidate| candidate.evidence(series, &prepared);
    let evidences: Vec<Evidence> = candidates.iter().map(evidence).collect();
    let both = || candidates.iter().zip(&evidences);
    let rounds = evidences.iter().map(|evidence| evidence.rounds).max();
    let weight = WEIGHT * rounds.unwrap_or(0) as f64;
    let exact = both()
        .filter(|(candidate, _)| !candidate.is_model)
        .fold(f64::NEG_INFINITY, |most, (_, evidence)| {
            most.max(evidence.best)
        });
    let mut first = (f64::NEG_INFINITY, POOR);
    let mut logs = Vec::with_capacity(candidates.len() + 1);
    for (candidate, evidence) in both() {
        let poor = candidate.poor();
        let beaten = candidate.is_model && evidence.best < exact;
        let explains = evidence.best >= weight * poor && !beaten;
        let log = evidence.log + candidate.prior(&prepared).ln();
        logs.push(if explains { log } else { f64::NEG_INFINITY });
        if explains && log > first.0 {
            first = (log, poor);
        }
    }
    logs.push(weight * first.1);
    let total = log_sum(&logs);
    let names = candidates.iter().map(Candidate::name).chain([UNKNOWN]);
    let mut ranked: Vec<Ranked> = names
        .zip(&logs)
        .map(|(name, log)| Ranked {
            name: name.to_owned(),
            probability: (log - total).exp(),
        })
        .collect();
    ranked.sort_by(|a, b| b.probability.total_cmp(&a.probability));
    ranked
}

/// Logarithm of the sum of what `logs` are the logarithms of.
fn log_sum(logs: &[f64]) -> f64 {
    let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    most + logs.iter().map(|log| (log - most).exp()).sum::<f64>().ln()
}

#[cfg(test)]
mod tests;
