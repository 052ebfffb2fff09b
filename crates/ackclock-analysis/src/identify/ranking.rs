//! The ranking of CCAs by likelihood, with "unknown" among them.
//!
//! Probabilities are Bayes': prior times likelihood, of laws: candidates that did the same over the flow are one, under
//! the name of the most probable. Those that a kernel or a system has come before those that none has, and among equals
//! the one with the fewest parameters. A candidate that fits as badly as only one in a hundred of our own engine's
//! flows fits its true control is no explanation; *unknown* is one more control that fits just so well. The bounds come
//! from our engine alone: flows of the scoreboard's cases, seen at the senders and at the receivers, each replayed by
//! all controls. `POOR` was chosen with transfers of others' kernels in view as well.
//!
//! The probabilities are calibrated by two numbers, `TEMPERATURE` and `MIMICS`, to be the shares of names that are
//! right; `which.py --linux` and `which.py --csv` print both.
//!
//! ECT(1) declares a scalable congestion control (RFC 9331 section 4.1), so a flow whose packets carry it was none of the
//! candidates that do not send it, however well they fit.
//!
//! A first window that stacks do not have speaks for a control that sets just this one itself (`UNUSUAL`).

use ackclock_congestion::{make, Controller, Error, RecoveryPolicy};
use serde_json::{Map, Value};

use self::laws::{laws, Explains, Law};
use crate::identify::likelihood::{bound, fit, reaches, rounds, Fit, Round, Rounds, WEIGHT};
use crate::identify::replay::{Counting, Make, Manner, Origin, Prepared, Replay};
use crate::identify::series::{Series, Signal};

mod laws;

/// The name in the ranking for CCAs that are not among the candidates.
pub const UNKNOWN: &str = "unknown";

/// Mean logarithm of the likelihood of a round: nearly all flows have as much with their true control. If the true
/// control and its equivalents are not candidates, the verdict is not always "unknown": many windows are so small that
/// several controls do nearly the same.
const POOR: f64 = 0.8;

/// The same for LEDBAT, which moves as freely as the delay does and fits many a flow by chance: its own have more at
/// the sender, though not all at the receiver, and hardly any other has as much.
const POOR_LEDBAT: f64 = 2.5;

/// The same for ABCC, which draws its first rate by chance, so that a small window is off by half a segment for long.
/// Its own have more at the sender, though not all at the receiver.
const POOR_ABCC: f64 = -0.2;

/// The same for controls that pace by a model of the path, whose cycles begin at random. They are believed only where
/// nothing else fits better.
const POOR_MODEL: f64 = -0.4;

/// The prior of a CCA that is not deployed, relative to a deployed one.
const RARE: f64 = 0.05;

/// First windows that stacks have, in segments: RFC 2001, 2581, 3390 and 6928.
const COMMON_INITIAL_WINDOWS: &[u32] = &[1, 2, 3, 4, 10];

/// The share of stacks with any other initial window.
const UNUSUAL: f64 = 0.01;

/// Logarithms of probabilities are divided by it (temperature scaling; Guo et al.: On Calibration of Modern Neural
/// Networks, ICML 2017): what a replay misses it misses again and again, so rounds are less independent than [`WEIGHT`]
/// has it. It has the least log loss over 370 flows of real kernels; without any one of their conditions it is between
/// 1.5 and 3.
const TEMPERATURE: f64 = 2.0;

/// The share of flows named rightly by the replay, but of a CCA that has none here and behaves just so: TCP-LP without
/// competition is Reno, and `YeAH` with an empty queue Scalable TCP. Fitted with `TEMPERATURE`.
const MIMICS: f64 = 0.15;

/// Divisors: a replay is checked after 1/8, 1/4 and 1/2 of the flow.
const PARTS: [usize; 3] = [8, 4, 2];

/// A logarithm that is this much less adds nothing to a sum of two numbers of 53 bits.
const NEGLIGIBLE: f64 = 40.0;

/// Sums of logarithms are not off by more.
const ROUNDING: f64 = 1e-6;

/// CCAs that counted ACKs in Linux before 5.7, until the commits *fix range ACK bugs*.
const COUNTED_ACKS: &[&str] = &["bic", "scalable"];

/// The control that is Reno where ECN was not negotiated: Linux takes Reno's functions then.
const ECN_ONLY: &str = "dctcp";

/// A CCA that may have been it, with the complete parameters of its algorithm spec.
#[derive(Clone, Debug)]
pub struct Candidate {
    name: String,
    parameters: Value,
    deployed: bool,
    is_l4s: bool,
    is_model: bool,
}

/// The fit of a candidate, driven in one manner.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fitted {
    /// The manner.
    pub manner: Manner,
    /// Its fit.
    pub fit: Fit,
}

/// A law and how probable it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranked {
    /// A candidate's name, or [`UNKNOWN`].
    pub name: String,
    /// Other candidates that did the same over the flow, the most probable first.
    pub same: Vec<String>,
    /// Between 0 and 1.
    pub probability: f64,
    /// By what share its windows are off in half of the round trips or more; none where no round trip could be
    /// compared, and for [`UNKNOWN`].
    pub off: Option<f64>,
}

impl Ranked {
    fn unknown(probability: f64) -> Self {
        Self {
            name: UNKNOWN.to_owned(),
            same: Vec::new(),
            probability,
            off: None,
        }
    }
}

impl Candidate {
    /// A candidate; `deployed` if a mainline kernel has it, or a system takes it by default.
    ///
    /// # Errors
    /// An unknown name, or parameters that are not those of the algorithm spec.
    pub fn new(name: &str, parameters: &Value, deployed: bool) -> Result<Self, Error> {
        let controller = make(name, parameters, 10)?;
        Ok(Self {
            name: name.to_owned(),
            parameters: parameters.clone(),
            deployed,
            is_l4s: false,
            is_model: controller.recovery_policy() == RecoveryPolicy::Controller,
        })
    }

    /// The same; `is_l4s` if its packets carry ECT(1).
    #[must_use]
    pub fn with_l4s(self, is_l4s: bool) -> Self {
        Self { is_l4s, ..self }
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

    /// The manners in which it may have been driven.
    fn manners(&self) -> impl Iterator<Item = Manner> {
        let countings: &[Counting] = if COUNTED_ACKS.contains(&self.name.as_str()) {
            &[Counting::Segments, Counting::Acks]
        } else {
            &[Counting::Segments]
        };
        // A model of the path that begins anew in a full queue paces at the bottleneck's rate, as anyone who fills it
        // does.
        let origins: &[Origin] = if self.is_model {
            &[Origin::Opening]
        } else {
            &[Origin::Opening, Origin::FirstLoss]
        };
        countings.iter().flat_map(move |&counting| {
            origins
                .iter()
                .map(move |&origin| Manner { counting, origin })
        })
    }

    /// Return the fit in each manner.
    pub fn fits(&self, flow: &Flow) -> Vec<Fitted> {
        self.manners()
            .map(|manner| Fitted {
                manner,
                fit: flow.fit(self, manner),
            })
            .collect()
    }

    /// Return the evidence of a flow for a candidate, or nothing if it cannot reach `min_log_likelihood`. `begun`: its
    /// replay in the default manner, begun.
    fn evidence<'a>(
        &self,
        flow: &'a Flow,
        make: Make<'a>,
        begun: Begun<'a>,
        min_log_likelihood: f64,
    ) -> Evidence {
        let manners: Vec<Manner> = self.manners().collect();
        let mut usual = Some(begun);
        let mut matched = Evidence::BLANK;
        let mut tried = |&manner: &Manner| {
            let begun = usual.take_if(|_| manner == Manner::default());
            let begun = begun.unwrap_or_else(|| flow.begun(make, manner));
            let rounds = flow.min_rounds(begun, min_log_likelihood)?;
            let log = fit(&rounds).log_likelihood;
            if log > matched.best {
                matched.best = log;
                matched.errors = rounds.iter().map(Round::error).collect();
            }
            Ok(log)
        };
        let tried: Vec<Result<f64, f64>> = manners.iter().map(&mut tried).collect();
        let best = matched.best;
        let log = |(&manner, tried): (&Manner, &Result<f64, f64>)| match tried {
            Ok(log) => *log,
            Err(bound) if *bound < best - NEGLIGIBLE || best == f64::NEG_INFINITY => {
                f64::NEG_INFINITY
            }
            Err(_) => flow.fit(self, manner).log_likelihood,
        };
        let logs: Vec<f64> = manners.iter().zip(&tried).map(log).collect();
        matched.log = log_sum(&logs) - (logs.len() as f64).ln();
        matched
    }

    fn prior(&self, flow: &Flow) -> f64 {
        if self.deployed && (flow.prepared.uses_ecn() || self.name != ECN_ONLY) {
            1.0
        } else {
            RARE
        }
    }

    /// By how much likelier the first window is with it than with a control that leaves that to the stack: the
    /// logarithm. Only a control that sets the first window itself, as Hybla by the handshake's RTT, can be identified
    /// by it.
    fn opening(&self, flow: &Flow) -> f64 {
        let make = |window| self.controller(window);
        let Some((observed, own)) = flow.prepared.opening_of(&make) else {
            return 0.0;
        };
        let with_it = if own.abs_diff(observed) <= 1 {
            1.0
        } else {
            UNUSUAL
        };
        let with_others = if COMMON_INITIAL_WINDOWS.contains(&observed) {
            1.0
        } else {
            UNUSUAL
        };
        f64::ln(with_it / with_others)
    }

    fn poor(&self) -> f64 {
        match self.name.as_str() {
            "ledbat" => POOR_LEDBAT,
            "abcc" => POOR_ABCC,
            _ if self.is_model => POOR_MODEL,
            _ => POOR,
        }
    }
}

/// The evidence of a flow for a candidate.
#[derive(Clone, Debug)]
struct Evidence {
    /// Logarithm of the mean likelihood over the manners.
    log: f64,
    /// The log likelihood of the best manner.
    best: f64,
    /// By what its windows are off, one value a round.
    errors: Vec<f64>,
}

impl Evidence {
    const BLANK: Self = Self {
        log: f64::NEG_INFINITY,
        best: f64::NEG_INFINITY,
        errors: Vec::new(),
    };
}

/// A candidate's replay on its way, and the rounds that are over.
struct Begun<'a> {
    replay: Replay<'a>,
    rounds: Rounds,
}

/// A flow, prepared for all candidates.
#[derive(Debug)]
pub struct Flow<'a> {
    series: &'a Series,
    prepared: Prepared,
    /// Round trips that can be compared: the same for all.
    rounds: usize,
}

impl<'a> Flow<'a> {
    /// Prepare it.
    pub fn new(series: &'a Series) -> Self {
        let prepared = Prepared::new(series);
        let rounds = rounds(series, &prepared.blank()).len();
        Self {
            series,
            prepared,
            rounds,
        }
    }

    /// Return the fit of a candidate.
    fn fit(&self, candidate: &Candidate, manner: Manner) -> Fit {
        let make = |window| candidate.controller(window);
        fit(&rounds(self.series, &self.prepared.replay(&make, manner)))
    }

    /// The rounds of a replay, or what the logarithm of their likelihood is at most, as soon as it cannot be
    /// `min_log_likelihood`.
    fn min_rounds(&self, mut begun: Begun, min_log_likelihood: f64) -> Result<Vec<Round>, f64> {
        for part in PARTS {
            self.advance(&mut begun, self.prepared.samples() / part);
            let matched = &begun.rounds.matched;
            reaches(matched, self.rounds - matched.len(), min_log_likelihood)?;
        }
        self.advance(&mut begun, usize::MAX);
        Ok(begun.rounds.matched)
    }

    /// A replay at its beginning.
    fn begun<'b>(&'b self, make: Make<'b>, manner: Manner) -> Begun<'b> {
        Begun {
            replay: self.prepared.started(make, manner),
            rounds: Rounds::default(),
        }
    }

    fn advance(&self, begun: &mut Begun, samples: usize) {
        begun.replay.advance(samples);
        begun.rounds.advance(self.series, &begun.replay.course);
    }

    /// Return an upper bound of a candidate's likelihood, from the beginning of its replay.
    fn promise(&self, begun: &mut Begun) -> f64 {
        self.advance(begun, self.prepared.samples() / PARTS[0]);
        bound(
            &begun.rounds.matched,
            self.rounds - begun.rounds.matched.len(),
        )
    }

    /// Return the evidence for each candidate. The most promising are evaluated first, models of the path last, so that
    /// the others can be dropped early.
    fn evidences(&self, candidates: &[&Candidate], weight: f64) -> (Vec<Evidence>, f64) {
        let makes: Vec<_> = candidates
            .iter()
            .map(|one| move |window| one.controller(window))
            .collect();
        let usual = |make| self.begun(make, Manner::default());
        let mut begun: Vec<Begun> = makes.iter().map(|make| usual(make as Make)).collect();
        let promise: Vec<f64> = begun.iter_mut().map(|one| self.promise(one)).collect();
        let mut order: Vec<usize> = (0..candidates.len()).collect();
        order.sort_by(|&one, &other| {
            let models = candidates[one].is_model.cmp(&candidates[other].is_model);
            models.then(promise[other].total_cmp(&promise[one]))
        });
        let mut matched = vec![Evidence::BLANK; candidates.len()];
        let mut exact = f64::NEG_INFINITY;
        let mut begun: Vec<Option<Begun>> = begun.into_iter().map(Some).collect();
        for place in order {
            let candidate = candidates[place];
            let Some(begun) = begun[place].take() else {
                continue; // never: each place is there once
            };
            let poor = weight * candidate.poor() - candidate.opening(self) - ROUNDING;
            let min_log_likelihood = if candidate.is_model {
                poor.max(exact)
            } else {
                poor.min(exact)
            };
            matched[place] = candidate.evidence(self, &makes[place], begun, min_log_likelihood);
            if !candidate.is_model {
                exact = exact.max(matched[place].best);
            }
        }
        (matched, exact)
    }
}

/// The window came down by the timer more often than by anything else: that begins at one segment with every control,
/// and hardly leads to where they part.
fn is_by_the_timer(series: &Series) -> bool {
    let signals = || series.samples.iter().filter_map(|sample| sample.signal);
    let timeouts = signals().filter(|&signal| signal == Signal::Timeout);
    2 * timeouts.count() > signals().count()
}

/// The laws that explain a flow and [`UNKNOWN`], the most probable first; the probabilities sum to 1.
pub fn rank(series: &Series, candidates: &[Candidate]) -> Vec<Ranked> {
    if is_by_the_timer(series) {
        return vec![Ranked::unknown(1.0)];
    }
    let candidates: Vec<&Candidate> = candidates
        .iter()
        .filter(|candidate| candidate.is_l4s || !series.is_l4s)
        .collect();
    let flow = Flow::new(series);
    let weight = WEIGHT * flow.rounds as f64;
    let (evidences, exact) = flow.evidences(&candidates, weight);
    let explains = |(place, evidence): (usize, Evidence)| {
        let candidate = candidates[place];
        let beaten = candidate.is_model && evidence.best < exact;
        let opening = candidate.opening(&flow);
        let explains = evidence.best + opening >= weight * candidate.poor() && !beaten;
        explains.then(|| Explains {
            place,
            log: (evidence.log + opening + candidate.prior(&flow).ln()) / TEMPERATURE,
            parameters: candidate.parameters.as_object().map_or(0, Map::len),
            errors: evidence.errors,
        })
    };
    let mut laws = laws(
        evidences
            .into_iter()
            .enumerate()
            .filter_map(explains)
            .collect(),
    );
    // A behaviour of most candidates is no evidence.
    laws.retain(|law| 2 * law.same.len() < candidates.len());
    let poor = laws
        .first()
        .map_or(POOR, |law| candidates[law.first.place].poor());
    let no_law = weight * poor / TEMPERATURE;
    let logs: Vec<f64> = laws
        .iter()
        .map(|law| law.first.log)
        .chain([no_law])
        .collect();
    let total = log_sum(&logs);
    let name = |&place: &usize| candidates[place].name.clone();
    let called = |law: &Law| Ranked {
        name: name(&law.first.place),
        same: law.same.iter().map(name).collect(),
        probability: (1.0 - MIMICS) * (law.first.log - total).exp(),
        off: law.first.off(),
    };
    let unknown = Ranked::unknown(MIMICS + (1.0 - MIMICS) * (no_law - total).exp());
    let mut ranked: Vec<Ranked> = laws.iter().map(called).chain([unknown]).collect();
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
