//! Google congestion control: a rate from the trend of the one-way delay, and one from losses; the smaller one holds.
//!
//! draft-ietf-rmcat-gcc-02, with all of it at the sender, and G. Carlucci, L. De Cicco, S. Holmer, S. Mascolo,
//! "Analysis and Design of the Google Congestion Control for Web Real-time Communication (WebRTC)", MMSys 2016.
//!
//! ```text
//!   packets → groups → arrival-time filter → over-use detector → rate control → target = min(A, As)
//!             (5 ms)   (Kalman, m)           (threshold adapts)  (AIMD, A)          ▲
//!   losses ──────────────────────────────────────────────────────▶ loss control As ─┘
//! ```
//!
//! - `arrival_filter`: groups, and the estimate m of how the delay changes from group to group (sections 5.2, 5.3).
//! - `overuse`: m against an adaptive threshold (section 5.4).
//! - `rate_control`: multiplicative and additive increase, decrease to a fraction of the received rate (section 5.5).
//! - Loss control, here (section 6): above 10 % of lost packets in a report As falls by half of the ratio, below 2 % it
//!   rises by 5 %.
//!
//! Our deviations:
//!
//! - The detector compares m multiplied by the number of groups so far, at most `max_deltas`, as libwebrtc does (its
//!   constant is 60). With the draft's m alone (`max_deltas = 1`) a group each 10 ms would have to wait 6 ms longer than
//!   the last before it counts as over-use, which is an excess of 60 %.
//! - As continues from the last target, so that losses reduce what is sent; the draft's As would first have to come
//!   down from wherever it has grown above A.
//! - Packets leave at `pacing_factor` times the target. The draft sends what `burst_time` takes at the target rate, by
//!   which frames of random size would wait for ever longer; libwebrtc's factor is 2.5.

use ackclock_core::{Rate, Time};
use serde::Deserialize;
use serde_json::Value;

use super::arrivals::Arrivals;
use super::{Feedback, Made, MediaSource, RateController};
use crate::{require, Variables};

mod arrival_filter;
mod overuse;
mod rate_control;

use arrival_filter::{Groups, KalmanFilter};
use overuse::{Detector, Signal};
use rate_control::RateControl;

/// Loss ratio above which the loss-based estimate falls, and below which it rises (section 6).
const HIGH_LOSS: f64 = 0.10;
const LOW_LOSS: f64 = 0.02;
/// Growth of the loss-based estimate with a report.
const LOSS_FREE_GROWTH: f64 = 1.05;

/// Parameters as in the algorithm spec; those of the draft's table 1 with its names.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    /// `burst_time`: packets sent within it are a group.
    #[serde(rename = "burst_time_s")]
    burst_time: Time,
    /// q: variance of the state noise, ms².
    state_noise: f64,
    /// e(0): initial variance of the estimate, ms².
    initial_error: f64,
    /// chi: coefficient of the measured noise variance.
    chi: f64,
    /// `del_var_th(0)`: initial threshold.
    threshold_s: f64,
    /// Smallest threshold.
    min_threshold_s: f64,
    /// Largest threshold.
    max_threshold_s: f64,
    /// `overuse_time_th`: how long m must exceed the threshold.
    overuse_time_s: f64,
    /// `K_u`: adaptation of the threshold upwards, per ms.
    k_u: f64,
    /// `K_d`: adaptation downwards, per ms.
    k_d: f64,
    /// Groups by whose number m is multiplied, at most.
    max_deltas: u32,
    /// T: window of the received rate.
    #[serde(rename = "rate_window_s")]
    rate_window: Time,
    /// beta: fraction of the received rate after over-use.
    beta: f64,
    /// eta: growth in a second.
    eta: f64,
    /// Pacing rate as a multiple of the target.
    pacing_factor: f64,
}

/// A GCC sender.
#[derive(Clone, Debug)]
struct Gcc {
    source: MediaSource,
    pacing_factor: f64,
    arrivals: Arrivals,
    groups: Groups,
    filter: KalmanFilter,
    detector: Detector,
    delay_based: RateControl,
    /// The smaller of the two estimates, bit/s.
    target_bps: f64,
}

/// Create the controller.
///
/// # Errors
/// Parameters other than the spec's, or out of the range in which they make sense.
pub fn make(parameters: &Value, source: MediaSource) -> Made {
    let p = Parameters::deserialize(parameters)?;
    require(
        p.chi > 0.0 && p.chi < 1.0 && p.beta > 0.0 && p.beta < 1.0,
        "chi and beta must be between 0 and 1",
    )?;
    require(
        p.min_threshold_s > 0.0 && p.min_threshold_s <= p.max_threshold_s,
        "min_threshold must be above 0 and at most max_threshold",
    )?;
    require(
        p.rate_window > Time::ZERO && p.eta >= 1.0 && p.pacing_factor >= 1.0 && p.max_deltas > 0,
        "rate_window must be above 0; eta, pacing_factor and max_deltas at least 1",
    )?;
    let target_bps = source.clamp(source.start.bits_per_second());
    Ok(Box::new(Gcc {
        source,
        pacing_factor: p.pacing_factor,
        arrivals: Arrivals::new(p.rate_window),
        groups: Groups::new(p.burst_time),
        filter: KalmanFilter::new(p.state_noise, p.initial_error, p.chi),
        detector: Detector::new(&p),
        delay_based: RateControl::new(&p, target_bps),
        target_bps,
    }))
}

impl RateController for Gcc {
    fn on_feedback(&mut self, feedback: &Feedback<'_>) {
        if feedback.packets.is_empty() {
            return;
        }
        self.arrivals.add(feedback);
        let signal = self.detect(feedback);
        let received_bps = self.arrivals.rate_bps();
        let delay_based = self
            .delay_based
            .update(signal, received_bps, feedback.rtt, feedback.now);
        let delay_based = self.source.clamp(delay_based);
        self.delay_based.set_rate(delay_based);
        let lost = feedback.packets.iter().filter(|p| p.arrival.is_none());
        let ratio = lost.count() as f64 / feedback.packets.len() as f64;
        let loss_based = loss_based_bps(self.target_bps, ratio);
        self.target_bps = self.source.clamp(delay_based.min(loss_based));
    }

    fn target_rate(&self, _backlog_bytes: u64) -> Rate {
        Rate::from_bits_per_second(self.target_bps)
    }

    fn pacing_rate(&self, _backlog_bytes: u64) -> Rate {
        Rate::from_bits_per_second(self.pacing_factor * self.target_bps)
    }

    fn variables(&self) -> Variables {
        let state = match self.detector.signal() {
            Signal::Overuse => "overuse",
            Signal::Normal => "normal",
            Signal::Underuse => "underuse",
        };
        Variables {
            state,
            values: vec![
                ("A_hat", self.target_bps),
                ("del_var_th", self.detector.threshold_ms()),
            ],
        }
    }
}

impl Gcc {
    /// Return over-use if any group of a report signals it, else the signal of the last group.
    fn detect(&mut self, feedback: &Feedback<'_>) -> Signal {
        let mut overuse = false;
        for packet in feedback.packets {
            if let Some(change) = self.groups.add(packet) {
                let estimate_ms = self.filter.update(&change);
                overuse |= self.detector.update(estimate_ms, &change) == Signal::Overuse;
            }
        }
        if overuse {
            Signal::Overuse
        } else {
            self.detector.signal()
        }
    }
}

/// The loss-based estimate after a report with a ratio of lost packets (section 6).
fn loss_based_bps(previous_bps: f64, loss_ratio: f64) -> f64 {
    if loss_ratio > HIGH_LOSS {
        previous_bps * (1.0 - 0.5 * loss_ratio)
    } else if loss_ratio < LOW_LOSS {
        previous_bps * LOSS_FREE_GROWTH
    } else {
        previous_bps
    }
}

#[cfg(test)]
mod tests {
    use super::super::contract::{defaults, lost, report, source};
    use super::*;

    #[test]
    fn losses_scale_the_estimate_by_the_rules_of_section_6() {
        assert!((loss_based_bps(1e6, 0.2) - 900e3).abs() < 1e-6);
        assert!((loss_based_bps(1e6, 0.05) - 1e6).abs() < 1e-6);
        assert!((loss_based_bps(1e6, 0.019) - 1.05e6).abs() < 1e-6);
        assert!(
            (loss_based_bps(1e6, 0.10) - 1e6).abs() < 1e-6,
            "more than 10 %, not 10 %"
        );
    }

    /// 300 kbit/s and half of the packets lost: · 0.75.
    #[test]
    fn heavy_loss_lowers_the_target_immediately() {
        let mut gcc = make(&defaults("gcc"), source()).expect("the defaults");
        let packets: Vec<_> = (0..10)
            .map(|n| {
                if n % 2 == 0 {
                    report(n, 20 * n, 20 * n + 50, 1000)
                } else {
                    lost(n, 20 * n)
                }
            })
            .collect();
        gcc.on_feedback(&Feedback {
            now: Time::from_milliseconds(300),
            rtt: Time::from_milliseconds(100),
            packets: &packets,
        });
        assert!((gcc.target_rate(0).bits_per_second() - 225e3).abs() < 1e-6);
        assert!((gcc.pacing_rate(0).bits_per_second() - 562.5e3).abs() < 1e-6);
    }
}
