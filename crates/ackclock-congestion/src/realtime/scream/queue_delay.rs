//! The queueing delay: its average, its variation, and the target that it is compared with.
//!
//! Sections "Detecting Increased Queue Delay" and "Competing Flows Compensation" of the draft.

use std::collections::VecDeque;

use ackclock_core::Time;

use super::Parameters;
use crate::base_delay::BaseDelay;

/// `BASE_HISTORY` of RFC 6817, in minutes.
const BASE_HISTORY: u32 = 10;
/// `QDELAY_MIN_MAX_AVG_G`, `QDELAY_DEV_AVG_G` and `QDELAY_DEV_THRESHOLD`, the last in s.
const QDELAY_MIN_MAX_AVG_G: f64 = 1.0 / 16.0;
const QDELAY_DEV_AVG_G: f64 = 1.0 / 32.0;
const QDELAY_DEV_THRESHOLD: f64 = 0.01;
/// Samples of the history for the variance, and those for the average.
const VARIANCE_SAMPLES: usize = 200;
const AVERAGE_SAMPLES: usize = 50;
/// Interval between samples of the history; the draft has none.
const SAMPLE_INTERVAL: Time = Time::from_milliseconds(50);
/// Weight of a round trip in `loss_event_rate`; the draft has none.
const LOSS_EVENT_GAIN: f64 = 0.01;
/// `loss_event_rate` from which on flows that are loss-based compete.
const LOSS_EVENT_THRESHOLD: f64 = 0.002;
/// Variance of the normalized delay from which on it is not safe to raise the target.
const SAFE_VARIANCE: f64 = 0.2;

/// The values that the reference window depends on; times in s.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Levels {
    pub qdelay: f64,
    pub qdelay_avg: f64,
    pub qdelay_target: f64,
    pub ref_wnd_delay_scale: f64,
}

/// The queueing delay of a flow.
#[derive(Clone, Debug)]
pub struct QueueDelay {
    parameters: Parameters,
    base: BaseDelay,
    levels: Levels,
    last_average: Time,
    max_avg: f64,
    min_avg: f64,
    dev_avg: f64,
    target: AdaptiveTarget,
}

impl QueueDelay {
    pub(super) fn new(p: &Parameters) -> QueueDelay {
        QueueDelay {
            parameters: *p,
            base: BaseDelay::new(BASE_HISTORY),
            levels: Levels {
                qdelay: 0.0,
                qdelay_avg: 0.0,
                qdelay_target: p.qdelay_target_lo_s,
                ref_wnd_delay_scale: 1.0,
            },
            last_average: Time::ZERO,
            max_avg: p.qdelay_target_lo_s,
            min_avg: 0.0,
            dev_avg: 0.0,
            target: AdaptiveTarget::default(),
        }
    }

    pub fn levels(&self) -> Levels {
        self.levels
    }

    pub fn ref_wnd_delay_scale(&self) -> f64 {
        self.levels.ref_wnd_delay_scale
    }

    /// Take the delay of the newest packet of a report, and whether one was lost.
    pub fn update(&mut self, delay: Option<Time>, has_loss: bool, s_rtt: f64, now: Time) {
        let p = &self.parameters;
        if let Some(delay) = delay {
            self.base.update(delay, now);
            let base = self.base.min().unwrap_or(delay);
            self.levels.qdelay = delay.since(base).seconds();
        }
        let qdelay = self.levels.qdelay;
        if p.reduce_jitter {
            self.max_avg = self.levels.qdelay_target.min(qdelay.max(self.max_avg));
            self.min_avg = self.min_avg.min(qdelay);
        }
        let interval = Time::from_seconds(s_rtt.min(p.virtual_rtt_s));
        if now.since(self.last_average) >= interval {
            self.last_average = now;
            let average = &mut self.levels.qdelay_avg;
            *average = qdelay.min(*average + p.qdelay_avg_g * (qdelay - *average));
            if p.reduce_jitter {
                self.update_delay_scale();
            }
        }
        let p = &self.parameters;
        if p.adapt_qdelay_target {
            let norm = qdelay / p.qdelay_target_lo_s;
            self.target.observe(norm, has_loss, s_rtt, now);
            let target = self.target.next(p, self.levels.qdelay_target);
            self.levels.qdelay_target = target.clamp(p.qdelay_target_lo_s, p.qdelay_target_hi_s);
        }
    }

    /// `calculate_ref_wnd_delay_scale`.
    fn update_delay_scale(&mut self) {
        self.max_avg *= 1.0 - QDELAY_MIN_MAX_AVG_G;
        self.min_avg += QDELAY_MIN_MAX_AVG_G * (self.max_avg - self.min_avg);
        self.dev_avg += QDELAY_DEV_AVG_G * (self.max_avg - self.min_avg - self.dev_avg);
        self.levels.ref_wnd_delay_scale =
            (1.0 - self.dev_avg / QDELAY_DEV_THRESHOLD).clamp(0.0, 1.0);
    }
}

/// The history from which the target of the queueing delay is adapted.
#[derive(Clone, Debug, Default)]
struct AdaptiveTarget {
    /// `qdelay_norm_history`, the newest last.
    history: VecDeque<f64>,
    last_sample: Option<Time>,
    /// True if the history has a new sample.
    is_new: bool,
    loss_event_rate: f64,
    round_start: Time,
    has_loss: bool,
}

impl AdaptiveTarget {
    fn observe(&mut self, norm: f64, has_loss: bool, s_rtt: f64, now: Time) {
        self.has_loss |= has_loss;
        if now.since(self.round_start) >= Time::from_seconds(s_rtt) {
            let event = f64::from(u8::from(self.has_loss));
            self.loss_event_rate += LOSS_EVENT_GAIN * (event - self.loss_event_rate);
            self.round_start = now;
            self.has_loss = false;
        }
        self.is_new = self
            .last_sample
            .is_none_or(|last| now.since(last) >= SAMPLE_INTERVAL);
        if self.is_new {
            self.last_sample = Some(now);
            self.history.push_back(norm);
            if self.history.len() > VARIANCE_SAMPLES {
                self.history.pop_front();
            }
        }
    }

    /// `adjust_qdelay_target`, before its limits.
    fn next(&self, p: &Parameters, target: f64) -> f64 {
        if !self.is_new {
            return target;
        }
        let (_, variance) = mean_and_variance(self.history.iter().copied());
        let recent = self.history.iter().rev().take(AVERAGE_SAMPLES);
        let (average, _) = mean_and_variance(recent.copied());
        let new_target = (average + variance.sqrt()) * p.qdelay_target_lo_s;
        if self.loss_event_rate > LOSS_EVENT_THRESHOLD {
            1.5 * new_target
        } else if variance < SAFE_VARIANCE {
            new_target
        } else if new_target < p.qdelay_target_lo_s {
            new_target.max(0.5 * target)
        } else {
            0.9 * target
        }
    }
}

fn mean_and_variance(values: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let count = values.clone().count().max(1) as f64;
    let mean = values.clone().sum::<f64>() / count;
    let variance = values.map(|value| (value - mean).powi(2)).sum::<f64>() / count;
    (mean, variance)
}
