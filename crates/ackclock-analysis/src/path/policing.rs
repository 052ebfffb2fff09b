//! The bucket that explains best which packets were lost.
//!
//! A packet that comes when the bucket has the level V, itself counted, is lost with the probability
//! λ + (1 − 2λ) / (1 + exp((B − V) / w)). The rate r, the depth B and the width w with the greatest likelihood are
//! those of the path; the interval of a parameter is where the likelihood, greatest over the others, falls by less than
//! 1.92 times what the blocks of the trace differ more than independent packets would.
//!
//! Near the right rate r' the likelihood has a peak that is as narrow as a packet in all that passed: no grid meets it,
//! and other peaks, at 1.25 to 1.6 r', are wide. But at losses V = B + (r' − r) · age, with the age of the busy period,
//! at any assumed rate r from about .7 r' to 1.05 r': a regression over the losses gives r' in a few steps, from a
//! grid that is fine enough for that.

use super::trace::{line, quantile, Levels, Trace};
use super::{Estimate, EXPLAINED, MIN_LOSSES};
use likelihood::Model;

mod intervals;
mod likelihood;

/// Step of the search for the rate, a factor: several steps fall into the range over which the regression finds it.
const GRID: f64 = 1.08;
/// Steps of the search, at most.
const GRID_STEPS: usize = 150;
/// Packets at whose pace the fastest rate is measured.
const BURST: usize = 16;
/// The maximum number of corrections of a rate.
const CORRECTIONS: usize = 12;
/// Packets in a row that the search takes as one, at most.
const MERGED: usize = 8;
/// Half of the 95 % quantile of χ² with one degree of freedom.
const FALL: f64 = 1.92;
/// The number of best rates of the search that are refined.
const REFINED: usize = 3;
/// Rates of the search whose logarithms are nearer than this are the same; than that, one of them is refined.
const SAME: f64 = 1e-6;
const NEAR: f64 = 1e-3;
/// Widths in packets.
const WIDTHS: [f64; 8] = [0.0625, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0];

/// The best bucket.
#[derive(Clone, Copy, Debug)]
pub struct Bucket {
    /// Bytes a second; its interval is nothing wide before [`Bucket::bounded`].
    pub rate: Estimate,
    /// Bytes, and the same.
    pub depth: Estimate,
    model: Model,
    likelihood: f64,
    /// It was full before most losses, so that nothing that came before the trace can be in the depth.
    pub was_full: bool,
    /// The share of the uncertainty about the fates that it takes away (McFadden's ρ²).
    pub explained: f64,
    /// The logarithm of the ratio of likelihoods with and without it.
    pub gain: f64,
}

/// Fit the bucket; none where too little was lost, or where time does not advance.
pub fn fit(trace: &Trace) -> Option<Bucket> {
    let mut search = Search::new(trace)?;
    let (slowest, fastest) = search.range()?;
    let merged = trace.merged(MERGED);
    let candidates = Search::new(&merged)?.candidates(slowest, fastest);
    let found = candidates
        .into_iter()
        .map(|candidate| search.climbed(candidate));
    let (model, _) = found.max_by(|one, other| one.1.total_cmp(&other.1))?;
    let (model, likelihood) = search.refined(model);
    let without_bucket = search.without_bucket();
    Some(Bucket {
        rate: Estimate::exactly(model.rate),
        depth: Estimate::exactly(model.depth.max(0.0)),
        model,
        likelihood,
        was_full: was_full(trace, &model),
        explained: 1.0 - likelihood / without_bucket,
        gain: likelihood - without_bucket,
    })
}

/// Return a bucket that explains the losses from where it was full, with the trace from there, if `bucket` explains them
/// too little: it may have been in use when the capture began.
pub fn from_full(trace: &Trace, bucket: Bucket) -> Option<(Trace, Bucket)> {
    if bucket.explained >= EXPLAINED {
        return None;
    }
    let later = trace.since_lowest();
    let bucket = (later.losses.len() >= MIN_LOSSES).then(|| fit(&later))??;
    (bucket.explained >= EXPLAINED).then_some((later, bucket))
}

/// The share of the uncertainty about the fates that any bucket takes away at most.
pub fn max_explained(trace: &Trace) -> f64 {
    let surely = trace.len() as f64 * likelihood::surely();
    Search::new(trace).map_or(0.0, |search| 1.0 - surely / search.without_bucket())
}

impl Bucket {
    /// The same with its intervals, which take about as long to find as the bucket: of its trace.
    pub fn bounded(self, trace: &Trace) -> Self {
        let Some(mut search) = Search::new(trace) else {
            return self;
        };
        let (widening, error) = search.spread(&self.model);
        let least = self.likelihood - FALL * widening;
        let rate = search.rate_interval(&self.model, least, error);
        let depth = search.depth_interval(&self.model, rate, least);
        Self {
            rate,
            depth,
            ..self
        }
    }
}

struct Search<'a> {
    trace: &'a Trace,
    levels: Levels,
    scratch: Vec<f64>,
    /// The size of most lost packets.
    packet: f64,
}

impl<'a> Search<'a> {
    fn new(trace: &'a Trace) -> Option<Self> {
        let mut sizes: Vec<f64> = trace
            .losses
            .iter()
            .map(|&place| trace.bytes[place])
            .collect();
        let packet = quantile(&mut sizes, 0.5);
        let known = packet > 0.0 && trace.losses.len() < trace.len() && trace.seconds() > 0.0;
        known.then(|| Self {
            trace,
            levels: Levels::default(),
            scratch: sizes,
            packet,
        })
    }

    /// The log-likelihood if all packets were lost with the same probability.
    fn without_bucket(&self) -> f64 {
        let all = self.trace.len() as f64;
        let lost = self.trace.losses.len() as f64;
        lost * (lost / all).ln() + (all - lost) * (1.0 - lost / all).ln()
    }

    /// The slowest and the fastest rate of the search: half of what passed, and the pace of a burst.
    fn range(&self) -> Option<(f64, f64)> {
        let trace = self.trace;
        let (&first, &last) = (trace.losses.first()?, trace.losses.last()?);
        let passed = |from: usize, to: usize| -> f64 {
            (from..to)
                .filter(|&place| !trace.lost[place])
                .map(|place| trace.bytes[place])
                .sum()
        };
        let lossy_s = trace.time_s[last] - trace.time_s[first];
        let mut slowest = passed(first, last) / lossy_s / 2.0;
        if !(slowest.is_finite() && slowest > 0.0) {
            slowest = passed(0, trace.len()) / trace.seconds() / 2.0;
        }
        let mut fastest = 0.0_f64;
        let mut bytes = 0.0;
        for end in 0..trace.len() {
            bytes += trace.bytes[end];
            if end >= BURST {
                bytes -= trace.bytes[end - BURST];
                let pace = bytes / (trace.time_s[end] - trace.time_s[end + 1 - BURST]);
                if pace.is_finite() {
                    fastest = fastest.max(pace);
                }
            }
        }
        (slowest.is_finite() && slowest > 0.0).then_some((slowest, fastest.max(slowest)))
    }

    /// The best rates of the search.
    fn candidates(&mut self, slowest: f64, fastest: f64) -> Vec<Model> {
        let mut found: Vec<(Model, f64)> = Vec::new();
        let mut start = slowest;
        for _ in 0..GRID_STEPS {
            self.follow(start, &mut found);
            start *= GRID;
            if start > fastest {
                break;
            }
        }
        found.sort_by(|one, other| other.1.total_cmp(&one.1));
        let mut best: Vec<Model> = Vec::with_capacity(REFINED);
        for (model, _) in found {
            let near = |known: &Model| (known.rate / model.rate).ln().abs() < NEAR;
            if best.len() < REFINED && !best.iter().any(near) {
                best.push(model);
            }
        }
        best
    }

    /// Correct a rate until it stays, becomes one that is known, or explains ever less.
    fn follow(&mut self, start: f64, found: &mut Vec<(Model, f64)>) {
        let (mut rate, mut best, mut worse) = (start, f64::NEG_INFINITY, 0);
        for _ in 0..=CORRECTIONS {
            if worse > 1
                || found
                    .iter()
                    .any(|(known, _)| (known.rate / rate).ln().abs() < SAME)
            {
                break;
            }
            self.levels.fill(self.trace, rate);
            let model = Model {
                rate,
                depth: self.depth_at_losses(),
                width: self.packet / 2.0,
            };
            let likelihood = self.likelihood(&model);
            worse = if likelihood > best { 0 } else { worse + 1 };
            best = best.max(likelihood);
            found.push((model, likelihood));
            rate = self.corrected(rate);
        }
    }

    /// The depth that most losses show: their level is up to a packet above it.
    fn depth_at_losses(&mut self) -> f64 {
        self.scratch.clear();
        let levels = &self.levels.level;
        self.scratch
            .extend(self.trace.losses.iter().map(|&place| levels[place]));
        quantile(&mut self.scratch, 0.5) - self.packet / 2.0
    }

    /// The rate at which the level at losses would not depend on the age of the busy period.
    fn corrected(&mut self, rate: f64) -> f64 {
        let mut drift = 0.0;
        let mut depth = 0.0;
        let mut most = f64::INFINITY;
        for _ in 0..3 {
            let points = self
                .trace
                .losses
                .iter()
                .map(|&place| (self.levels.age_s[place], self.levels.level[place]));
            let near = points
                .clone()
                .filter(|&(age, level)| (level - depth - drift * age).abs() <= most);
            let Some((slope, at_zero)) = line(near) else {
                break;
            };
            (drift, depth) = (slope, at_zero);
            self.scratch.clear();
            self.scratch
                .extend(points.map(|(age, level)| (level - depth - drift * age).abs()));
            // Four median deviations: what is further away is no loss of this bucket.
            most = 4.0 * quantile(&mut self.scratch, 0.5) + 1.0;
        }
        (rate + drift).clamp(rate * 0.5, rate * 1.5)
    }

    /// The best rate and depth from here (Fisher's scoring), with the log-likelihood.
    fn climbed(&mut self, mut model: Model) -> (Model, f64) {
        let mut here = self.assess(&model, f64::NEG_INFINITY);
        for _ in 0..6 {
            let [rate_step, depth_step] = here.step();
            let mut share = 1.0_f64.min(0.2 * model.rate / rate_step.abs());
            let mut gained = 0.0;
            for _ in 0..5 {
                let next = Model {
                    rate: model.rate + share * rate_step,
                    depth: model.depth + share * depth_step,
                    ..model
                };
                let there = self.assess(&next, here.likelihood);
                if there.likelihood > here.likelihood {
                    gained = there.likelihood - here.likelihood;
                    (model, here) = (next, there);
                    break;
                }
                share /= 4.0;
            }
            if gained < 1e-3 {
                break;
            }
        }
        (model, here.likelihood)
    }

    /// The best model near this one.
    fn refined(&mut self, mut model: Model) -> (Model, f64) {
        let mut likelihood = f64::NEG_INFINITY;
        for _ in 0..2 {
            self.levels.fill(self.trace, model.rate);
            for packets in WIDTHS {
                let other = Model {
                    width: packets * self.packet,
                    ..model
                };
                let arrivals_at = self.levels.arrivals_at(self.trace);
                let found = other.assess(arrivals_at, likelihood).likelihood;
                if found > likelihood {
                    (model, likelihood) = (other, found);
                }
            }
            (model, likelihood) = self.climbed(model);
        }
        (model, likelihood)
    }
}

/// Return true if the bucket filled up completely before most losses.
fn was_full(trace: &Trace, model: &Model) -> bool {
    let most = trace.losses[trace.losses.len() / 2];
    let (mut level, mut then_s, mut spare) = (0.0, 0.0, 0.0);
    for place in 0..most {
        level -= model.rate * (trace.time_s[place] - then_s);
        then_s = trace.time_s[place];
        if level < 0.0 {
            spare -= level;
            level = 0.0;
        }
        if !trace.lost[place] {
            level += trace.bytes[place];
        }
    }
    spare >= model.depth
}
