//! The intervals of rate and depth: where the likelihood has fallen too far.

use super::super::NOISE_S;
use super::likelihood::Model;
use super::{Estimate, Search};

/// An interval has its ends within so many times the rate.
const WIDEST: f64 = 8.0;
/// Parts of a trace that are taken as independent.
const BLOCKS: usize = 20;

impl Search<'_> {
    /// Return the overdispersion of the trace's blocks compared with independent packets (White's variance of the rate,
    /// with blocks as observations, over Fisher's), and the rate's standard error.
    pub(super) fn spread(&mut self, model: &Model) -> (f64, f64) {
        self.levels.fill(self.trace, model.rate);
        let arrivals_at = || self.levels.arrivals_at(self.trace);
        let any = f64::NEG_INFINITY;
        let [rr, rd, _] = model.assess(arrivals_at(), any).inverse();
        let length = self.trace.len().div_ceil(BLOCKS);
        let mut variance = 0.0;
        for begin in (0..self.trace.len()).step_by(length) {
            let block = arrivals_at().skip(begin).take(length);
            let [rate, depth] = model.assess(block, any).growth;
            variance += (rr * rate + rd * depth).powi(2);
        }
        let ratio = variance / rr;
        let widening = if ratio.is_finite() {
            ratio.max(1.0)
        } else {
            1.0
        };
        (widening, (rr * widening).sqrt())
    }

    /// Return the maximum log-likelihood over depths at this rate, and the depth; stop early at `enough`.
    fn at_rate(&mut self, rate: f64, model: &Model, enough: f64) -> (f64, f64) {
        let mut model = Model { rate, ..*model };
        // Depths change no level.
        self.levels.fill(self.trace, rate);
        let assess = |model: &Model, least: f64| {
            let arrivals_at = self.levels.arrivals_at(self.trace);
            model.assess(arrivals_at, least)
        };
        let mut here = assess(&model, f64::NEG_INFINITY);
        for _ in 0..4 {
            if here.likelihood >= enough {
                break;
            }
            let mut step = here.growth[1] / here.information[2].max(f64::MIN_POSITIVE);
            step = step.clamp(-4.0 * model.width, 4.0 * model.width);
            let next = Model {
                depth: model.depth + step,
                ..model
            };
            let there = assess(&next, here.likelihood);
            if there.likelihood <= here.likelihood {
                break;
            }
            (model, here) = (next, there);
        }
        (here.likelihood, model.depth)
    }

    pub(super) fn rate_interval(&mut self, model: &Model, least: f64, error: f64) -> Estimate {
        let first = (error / model.rate).clamp(1e-8, 0.1);
        let mut end = |up: bool| {
            let at = |by: f64| {
                if up {
                    model.rate * (1.0 + by)
                } else {
                    model.rate / (1.0 + by)
                }
            };
            let mut likely = |by: f64| self.at_rate(at(by), model, least).0 >= least;
            let (mut inside, mut outside) = (0.0, first);
            while outside < WIDEST && likely(outside) {
                (inside, outside) = (outside, outside * 2.0);
            }
            for _ in 0..4 {
                let middle = f64::midpoint(inside, outside);
                if likely(middle) {
                    inside = middle;
                } else {
                    outside = middle;
                }
            }
            at(outside)
        };
        Estimate {
            value: model.rate,
            low: end(false),
            high: end(true),
        }
    }

    /// Return the depth's interval, widened by the best depths at both ends of the rate's interval. It has at least a
    /// packet on each side, as some limiters pass what finds a part of its tokens, and what comes in the time by which
    /// packets reach the limiter sooner or later than they seem to.
    pub(super) fn depth_interval(&mut self, model: &Model, rate: Estimate, least: f64) -> Estimate {
        let (slow, fast) = (
            self.at_rate(rate.low, model, f64::INFINITY).1,
            self.at_rate(rate.high, model, f64::INFINITY).1,
        );
        let margin = self.packet + model.rate * NOISE_S;
        self.levels.fill(self.trace, model.rate);
        let end = |sign: f64| {
            let likely = |by: f64| {
                let other = Model {
                    depth: model.depth + sign * by,
                    ..*model
                };
                let arrivals_at = self.levels.arrivals_at(self.trace);
                other.assess(arrivals_at, least).likelihood >= least
            };
            let (mut inside, mut outside) = (0.0, self.packet / 64.0);
            while outside < model.depth && likely(outside) {
                (inside, outside) = (outside, outside * 2.0);
            }
            for _ in 0..4 {
                let middle = f64::midpoint(inside, outside);
                if likely(middle) {
                    inside = middle;
                } else {
                    outside = middle;
                }
            }
            model.depth + sign * outside
        };
        Estimate {
            value: model.depth.max(0.0),
            low: end(-1.0)
                .min(slow)
                .min(fast)
                .min(model.depth - margin)
                .max(0.0),
            high: end(1.0).max(slow).max(fast).max(model.depth + margin),
        }
    }
}
