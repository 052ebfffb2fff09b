//! NADA: a rate that follows one congestion signal, composed of queueing delay, loss and ECN marks.
//!
//! RFC 8698. With each report (nominally every DELTA), the congestion signal is (equations 1 and 2 in section 4.2; the
//! ratios in section 5.1.2)
//!
//! ```text
//!   d_tilde = d_queue                                        without recent loss, or if d_queue < QTH
//!           = QTH · exp(−LAMBDA (d_queue − QTH) / QTH)       otherwise
//!   x_curr  = d_tilde + DMARK (p_mark / PMRREF)² + DLOSS (p_loss / PLRREF)²
//! ```
//!
//! A loss is recent for MULTILOSS average loss intervals; in the next one d_tilde goes over to d_queue linearly.
//!
//! The rate changes in one of two modes (section 4.3, equations 3 to 7; section 4.2 has the conditions):
//!
//! ```text
//!   accelerated ramp-up, if within LOGWIN nothing was lost and each delay was less than QEPS above the smallest:
//!     gamma = min(GAMMA_MAX, QBOUND / (rtt + DELTA + DFILT))
//!     r_ref = max(r_ref, (1 + gamma) r_recv)
//!   gradual rate update:
//!     x_offset = x_curr − PRIO · XREF · RMAX / r_ref
//!     x_diff   = x_curr − x_prev
//!     r_ref    = r_ref − KAPPA (delta / TAU) (x_offset / TAU) r_ref − KAPPA · ETA (x_diff / TAU) r_ref
//! ```
//!
//! The rate shaping buffer keeps the target of the encoder a little below `r_ref` and the sending rate a little above
//! while packets wait to be paced out (section 5.2.2).
//!
//! The sender does all computation, from per-packet feedback, as section 6.4 allows.
//!
//! Our deviations:
//!
//! - `r_ref` begins with the scenario's start rate and not with RMIN.
//! - The queueing delay is the smallest of the last DFILT, and not of the last 15 packets (section 5.1.1): a packet that
//!   waits behind those of its own frame is no sign of congestion, and 15 packets may be one frame. Accelerated ramp-up
//!   looks at each delay, unfiltered.
//! - The smallest delay is never forgotten (section 5.1.1: after tens of minutes).
//! - A packet that others overtake is lost only if a report has left before it came (section 5.1.2: always).
//! - The average loss interval is that of RFC 5348 section 5.4 without the open interval since the last loss. With it,
//!   no loss would ever expire: the average grows by at least a sixth of the open interval, MULTILOSS is 7. Intervals
//!   are between lost packets, not between loss events.
//! - A step of the gradual update takes at most DELTA, so that a late report does not count more than one.
//! - The signal is at most TAU, as the update is linear in x / TAU: a loss ratio of 10 % is a signal of 1 s, and as it
//!   decays its derivative would multiply the rate several times, into the next loss. The RFC's only bound is the field
//!   of its report, 3.27 s (section 5.3).

use std::collections::VecDeque;

use ackclock_core::{Rate, Time};
use serde::Deserialize;
use serde_json::Value;

use super::arrivals::Arrivals;
use super::{Feedback, Made, MediaSource, RateController};
use crate::{require, Variables};

/// Weights of the last loss intervals in their average, the newest first (RFC 5348 section 5.4, n = 8).
const LOSS_INTERVAL_WEIGHTS: [f64; 8] = [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2];
/// Largest deviation of the encoder's target and of the sending rate from `r_ref` (section 5.2.2).
const MAX_SHAPING: f64 = 0.05;

/// Parameters as in the algorithm spec, with the names of RFC 8698, table 2.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    /// PRIO: weight of the flow.
    priority: f64,
    /// XREF: reference congestion level.
    x_ref_s: f64,
    /// KAPPA: scaling of the gradual update.
    kappa: f64,
    /// ETA: scaling of the derivative.
    eta: f64,
    /// TAU: upper bound of the RTT.
    tau_s: f64,
    /// DELTA: nominal interval of feedback.
    delta_s: f64,
    /// LOGWIN: window of observation.
    log_window_s: f64,
    /// QEPS: queueing delay that counts as an empty queue.
    q_eps_s: f64,
    /// DFILT: bound of the filtering delay.
    filter_delay_s: f64,
    /// `GAMMA_MAX`: largest increase of accelerated ramp-up.
    gamma_max: f64,
    /// QBOUND: largest queueing delay that accelerated ramp-up may cause.
    q_bound_s: f64,
    /// MULTILOSS: expiration of losses, in average loss intervals.
    multi_loss: f64,
    /// QTH: queueing delay at which the warping begins.
    q_th_s: f64,
    /// LAMBDA: exponent of the warping.
    lambda: f64,
    /// PLRREF: reference loss ratio.
    loss_ratio_ref: f64,
    /// PMRREF: reference marking ratio.
    marking_ratio_ref: f64,
    /// DLOSS: delay penalty of losses at PLRREF.
    loss_penalty_s: f64,
    /// DMARK: delay penalty of marks at PMRREF.
    marking_penalty_s: f64,
    /// ALPHA: smoothing of the ratios.
    alpha: f64,
    /// `BETA_S`: how much the sending rate may exceed `r_ref` to drain the buffer.
    beta_s: f64,
    /// `BETA_V`: how much the encoder's target may fall below `r_ref`.
    beta_v: f64,
}

/// A NADA sender.
#[derive(Clone, Debug)]
struct Nada {
    parameters: Parameters,
    source: MediaSource,
    arrivals: Arrivals,
    losses: LossIntervals,
    /// `d_base`: the smallest delay so far.
    base_delay: Time,
    p_loss: f64,
    p_mark: f64,
    /// `x_prev`, in s.
    previous_signal_s: f64,
    r_ref_bps: f64,
    last_update: Option<Time>,
}

/// Create the controller.
///
/// # Errors
/// Parameters other than the spec's, or out of the range in which they make sense.
pub fn make(parameters: &Value, source: MediaSource) -> Made {
    let parameters = Parameters::deserialize(parameters)?;
    let positive = [
        parameters.priority,
        parameters.x_ref_s,
        parameters.kappa,
        parameters.tau_s,
        parameters.delta_s,
        parameters.log_window_s,
        parameters.filter_delay_s,
        parameters.q_th_s,
        parameters.loss_ratio_ref,
        parameters.marking_ratio_ref,
    ];
    require(
        positive
            .iter()
            .all(|&value| value > 0.0 && value.is_finite()),
        "times, ratios and weights must be above 0",
    )?;
    Ok(Box::new(Nada {
        arrivals: Arrivals::new(Time::from_seconds(parameters.log_window_s)),
        parameters,
        source,
        losses: LossIntervals::default(),
        base_delay: Time::NEVER,
        p_loss: 0.0,
        p_mark: 0.0,
        previous_signal_s: 0.0,
        r_ref_bps: source.clamp(source.start.bits_per_second()),
        last_update: None,
    }))
}

impl RateController for Nada {
    fn on_feedback(&mut self, feedback: &Feedback<'_>) {
        let Some(signal_s) = self.observe(feedback) else {
            return;
        };
        let p = &self.parameters;
        let r_ref_bps = if self.may_ramp_up() {
            ramp_up_bps(
                p,
                feedback.rtt.seconds(),
                self.r_ref_bps,
                self.arrivals.rate_bps(),
            )
        } else {
            let since_s = self
                .last_update
                .map_or(p.delta_s, |last| feedback.now.since(last).seconds());
            let step = Step {
                delta_s: since_s.min(p.delta_s),
                signal_s,
                previous_signal_s: self.previous_signal_s,
                max_bps: self.source.max.bits_per_second(),
            };
            gradual_bps(p, &step, self.r_ref_bps)
        };
        self.r_ref_bps = self.source.clamp(r_ref_bps);
        self.previous_signal_s = signal_s;
        self.last_update = Some(feedback.now);
    }

    /// `r_vin` (section 5.2.2).
    fn target_rate(&self, backlog_bytes: u64) -> Rate {
        let lower = self.shaping_bps(self.parameters.beta_v, backlog_bytes);
        let min = self.source.min.bits_per_second();
        Rate::from_bits_per_second((self.r_ref_bps - lower).max(min))
    }

    /// `r_send` (section 5.2.2).
    fn pacing_rate(&self, backlog_bytes: u64) -> Rate {
        let higher = self.shaping_bps(self.parameters.beta_s, backlog_bytes);
        let max = self.source.max.bits_per_second();
        Rate::from_bits_per_second((self.r_ref_bps + higher).min(max))
    }

    fn variables(&self) -> Variables {
        Variables {
            state: if self.may_ramp_up() {
                "accelerated ramp-up"
            } else {
                "gradual rate update"
            },
            values: vec![
                ("r_ref", self.r_ref_bps),
                ("x_curr", self.previous_signal_s),
                ("p_loss", self.p_loss),
                ("p_mark", self.p_mark),
            ],
        }
    }
}

impl Nada {
    /// Take the packets of a report; returns `x_curr` in s, or nothing before the first arrival.
    fn observe(&mut self, feedback: &Feedback<'_>) -> Option<f64> {
        self.arrivals.add(feedback);
        for packet in feedback.packets {
            self.losses.on_packet(packet.arrival.is_none());
            if let Some(delay) = packet.delay() {
                self.base_delay = self.base_delay.min(delay);
            }
        }
        let p = &self.parameters;
        self.p_loss += p.alpha * (self.arrivals.loss_ratio() - self.p_loss);
        self.p_mark += p.alpha * (self.arrivals.marking_ratio() - self.p_mark);
        let filter = Time::from_seconds(p.filter_delay_s);
        let smallest = self.arrivals.delays_within(filter).min()?;
        let queueing_s = smallest.since(self.base_delay).seconds();
        let warped_share = self.losses.warped_share(p.multi_loss);
        let delay_s = queueing_s + warped_share * (warped_s(p, queueing_s) - queueing_s);
        Some(signal_s(p, delay_s, self.p_mark, self.p_loss))
    }

    /// Return true if within LOGWIN nothing was lost, and no delay shows a queue.
    fn may_ramp_up(&self) -> bool {
        let p = &self.parameters;
        let limit = self.base_delay + Time::from_seconds(p.q_eps_s);
        let window = Time::from_seconds(p.log_window_s);
        self.arrivals.loss_ratio() <= 0.0
            && self
                .arrivals
                .delays_within(window)
                .all(|delay| delay < limit)
    }

    /// `r_diff_v` or `r_diff_s`.
    fn shaping_bps(&self, beta: f64, backlog_bytes: u64) -> f64 {
        let drain_bps = beta * 8.0 * backlog_bytes as f64 * self.source.frames_per_s;
        drain_bps.min(MAX_SHAPING * self.r_ref_bps)
    }
}

/// `d_tilde` with recent loss.
fn warped_s(p: &Parameters, queueing_s: f64) -> f64 {
    if queueing_s < p.q_th_s {
        queueing_s
    } else {
        p.q_th_s * (-p.lambda * (queueing_s - p.q_th_s) / p.q_th_s).exp()
    }
}

/// `x_curr`, at most TAU.
fn signal_s(p: &Parameters, delay_s: f64, p_mark: f64, p_loss: f64) -> f64 {
    let marks = p.marking_penalty_s * (p_mark / p.marking_ratio_ref).powi(2);
    let losses = p.loss_penalty_s * (p_loss / p.loss_ratio_ref).powi(2);
    (delay_s + marks + losses).min(p.tau_s)
}

/// `r_ref` after accelerated ramp-up.
fn ramp_up_bps(p: &Parameters, rtt_s: f64, r_ref_bps: f64, r_recv_bps: f64) -> f64 {
    let gamma = (p.q_bound_s / (rtt_s + p.delta_s + p.filter_delay_s)).min(p.gamma_max);
    r_ref_bps.max((1.0 + gamma) * r_recv_bps)
}

/// Input of a gradual update.
struct Step {
    delta_s: f64,
    signal_s: f64,
    previous_signal_s: f64,
    max_bps: f64,
}

/// `r_ref` after a gradual update.
fn gradual_bps(p: &Parameters, step: &Step, r_ref_bps: f64) -> f64 {
    let offset_s = step.signal_s - p.priority * p.x_ref_s * step.max_bps / r_ref_bps;
    let diff_s = step.signal_s - step.previous_signal_s;
    let by_offset = p.kappa * (step.delta_s / p.tau_s) * (offset_s / p.tau_s);
    let by_diff = p.kappa * p.eta * (diff_s / p.tau_s);
    r_ref_bps * (1.0 - by_offset - by_diff)
}

/// Intervals between losses, in packets.
#[derive(Clone, Debug, Default)]
struct LossIntervals {
    intervals: VecDeque<u64>,
    /// Packets since the last loss; before the first, all of them.
    since_loss: u64,
}

impl LossIntervals {
    fn on_packet(&mut self, is_lost: bool) {
        self.since_loss += 1;
        if !is_lost {
            return;
        }
        self.intervals.push_front(self.since_loss);
        self.intervals.truncate(LOSS_INTERVAL_WEIGHTS.len());
        self.since_loss = 0;
    }

    /// `loss_int`: the weighted average of the closed intervals.
    fn average(&self) -> f64 {
        let weighted = self.intervals.iter().zip(LOSS_INTERVAL_WEIGHTS);
        let (sum, weights) = weighted.fold((0.0, 0.0), |(sum, weights), (&interval, weight)| {
            (sum + weight * interval as f64, weights + weight)
        });
        sum / weights
    }

    /// Return the share of the warping: 1 within `multiple` average intervals of the last loss, 0 an interval later.
    fn warped_share(&self, multiple: f64) -> f64 {
        if self.intervals.is_empty() {
            return 0.0;
        }
        (1.0 + multiple - self.since_loss as f64 / self.average()).clamp(0.0, 1.0)
    }
}

#[cfg(test)]
mod tests;
