//! SCReAMv2: a reference window that delay, loss and ECN marks steer, and from it the rate of the encoder.
//!
//! I. Johansson, M. Westerlund: Self-Clocked Rate Adaptation for Multimedia, draft-ietf-ccwg-rfc8298bis-screamv2, the
//! authors' text of August 2026 after revision 01; names and section titles are its own.
//!
//! ```text
//!   reports ─▶ queue_delay: qdelay, its average, its target ─┐
//!           ─▶ l4s_alpha: the marked share ──────────────────┼▶ reference_window ─▶ target = f · ref_wnd / s_rtt
//!           ─▶ losses ───────────────────────────────────────┘        │
//!   frames ─▶ rate_adjust_factor, frame_size_dev ──────── f            send_wnd = overhead · ref_wnd − in flight
//! ```
//!
//! - `queue_delay`: the queueing delay (RFC 6817), and the target that grows next to loss-based flows.
//! - `reference_window`: reductions, at most one in min(`VIRTUAL_RTT`, `s_rtt`), and the increase, one in each `s_rtt`.
//! - Here: the RTT, the shares of marks, the media rate control, the pacing rate and the send window.
//!
//! Compared with RFC 8298 (section "Updates Compared to SCReAM (version 1)"): L4S; a queueing delay acts as virtual
//! marks; no fast increase, but a multiplicative one that congestion holds back; the window limits what is in flight
//! only loosely, and the rate of the encoder is window over RTT.
//!
//! Our reading, where the text is open:
//!
//! - MSS is the largest IP packet of the media. All bytes are those of IP packets, and so is the target rate, from
//!   which the sender takes the headers away; the factor for `PACKET_OVERHEAD` would do that twice and is left out.
//! - `ref_wnd` begins with the scenario's start rate times the first RTT, at least `MIN_REF_WND`.
//! - `s_rtt` is RFC 6298's, one sample from a report. Before the first congestion, the times since it are infinite.
//! - The history of the adapted delay target has a sample each 50 ms; a round trip counts 1 % in `loss_event_rate`.
//!
//! Deviations: a packet that others overtake is lost only if a report has left before it came, so that there is no
//! reordering window. Left out, of what the text calls additional or optional: remedies for clock drift, link layer
//! losses and rate policers, and the undershoot at congestion. Nothing that waits for the pacer is dropped.

use ackclock_core::{Rate, Time};
use serde::Deserialize;
use serde_json::Value;

use super::{Feedback, Made, MediaSource, PacketReport, QueuedFrame, RateController};
use crate::{require, Variables};

mod queue_delay;
mod reference_window;

use queue_delay::QueueDelay;
use reference_window::{Congestion, Delivered, ReferenceWindow};

/// Weight of an RTT sample (RFC 6298 section 2).
const RTT_GAIN: f64 = 1.0 / 8.0;
/// Largest interval between updates of `l4s_alpha`.
const MAX_ALPHA_INTERVAL: Time = Time::from_milliseconds(10);
/// `RATE_PACE_MIN`, bit/s.
const RATE_PACE_MIN: f64 = 50e3;
/// `RATE_ADJUST_GAIN` and the largest `rate_adjust_factor`.
const RATE_ADJUST_GAIN: f64 = 1.0 / 16.0;
const MAX_RATE_ADJUST: f64 = 0.5;
/// `FRAME_SIZE_DEV_ALPHA` and the largest `frame_size_dev`.
const FRAME_SIZE_DEV_ALPHA: f64 = 1.0 / 64.0;
const MAX_FRAME_SIZE_DEV: f64 = 0.2;
/// Window over RTT as a multiple of the target rate.
const RATE_MARGIN: f64 = 1.2;

/// Parameters as in the algorithm spec, with the names of the draft.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    qdelay_target_lo_s: f64,
    qdelay_target_hi_s: f64,
    qdelay_avg_g: f64,
    /// True if the delay target grows next to loss-based flows ("Competing Flows Compensation").
    adapt_qdelay_target: bool,
    reduce_jitter: bool,
    /// In bytes.
    min_ref_wnd: f64,
    bytes_in_flight_head_room: f64,
    beta_loss: f64,
    beta_ecn: f64,
    l4s_avg_g_up: f64,
    l4s_avg_g_down: f64,
    post_congestion_delay_rtts: f64,
    mul_increase_factor: f64,
    virtual_rtt_s: f64,
    ref_wnd_overhead_min: f64,
    ref_wnd_overhead_max: f64,
    packet_pacing_headroom: f64,
    max_relaxed_pacing_factor: f64,
    relaxed_pacing_limit_low: f64,
}

/// A SCReAMv2 sender.
#[derive(Clone, Debug)]
struct Scream {
    parameters: Parameters,
    source: MediaSource,
    /// In s; none before the first report.
    s_rtt: Option<f64>,
    queue_delay: QueueDelay,
    marks: MarkedShare,
    window: ReferenceWindow,
    rate_adjust_factor: f64,
    frame_size_dev: f64,
    target_bps: f64,
}

/// Create the controller.
///
/// # Errors
/// Parameters other than the spec's, or out of the range in which they make sense.
pub fn make(parameters: &Value, source: MediaSource) -> Made {
    let p = Parameters::deserialize(parameters)?;
    require(
        p.qdelay_target_lo_s > 0.0 && p.qdelay_target_lo_s <= p.qdelay_target_hi_s,
        "qdelay_target_lo must be above 0 and at most qdelay_target_hi",
    )?;
    require(
        p.ref_wnd_overhead_min >= 1.0 && p.ref_wnd_overhead_min <= p.ref_wnd_overhead_max,
        "ref_wnd_overhead_min must be at least 1 and at most ref_wnd_overhead_max",
    )?;
    require(
        p.virtual_rtt_s > 0.0 && p.min_ref_wnd > 0.0 && p.max_relaxed_pacing_factor >= 1.0,
        "virtual_rtt and min_ref_wnd must be above 0, max_relaxed_pacing_factor at least 1",
    )?;
    require(
        [p.beta_loss, p.beta_ecn, p.packet_pacing_headroom]
            .iter()
            .all(|&factor| factor > 0.0)
            && (0.0..1.0).contains(&p.relaxed_pacing_limit_low),
        "factors must be above 0, relaxed_pacing_limit_low below 1",
    )?;
    Ok(Box::new(Scream {
        parameters: p,
        source,
        s_rtt: None,
        queue_delay: QueueDelay::new(&p),
        marks: MarkedShare::default(),
        window: ReferenceWindow::new(&p, &source),
        rate_adjust_factor: 0.0,
        frame_size_dev: 0.0,
        target_bps: source.clamp(source.start.bits_per_second()),
    }))
}

impl RateController for Scream {
    fn on_feedback(&mut self, feedback: &Feedback<'_>) {
        if feedback.packets.is_empty() || feedback.rtt == Time::ZERO {
            return;
        }
        let s_rtt = self.update_rtt(feedback.rtt.seconds());
        let delivered = Delivered::of(feedback.packets);
        self.marks
            .update(&self.parameters, &delivered, s_rtt, feedback.now);
        let newest = feedback.packets.iter().rev().find_map(PacketReport::delay);
        self.queue_delay
            .update(newest, delivered.lost > 0, s_rtt, feedback.now);
        let congestion = Congestion {
            now: feedback.now,
            s_rtt,
            l4s_alpha: self.marks.l4s_alpha,
            delay: self.queue_delay.levels(),
        };
        let is_at_max = self.target_bps >= self.source.max.bits_per_second();
        self.window.update(&delivered, &congestion, is_at_max);
        self.update_target(s_rtt);
    }

    /// "Media Rate Control": how far frames wait for the pacer, and exceed their nominal size.
    fn on_frame(&mut self, frame: &QueuedFrame) {
        let period_s = 1.0 / self.source.frames_per_s;
        let error = (frame.waited.seconds() - period_s / 4.0) / period_s;
        self.rate_adjust_factor =
            (self.rate_adjust_factor + error * RATE_ADJUST_GAIN).clamp(0.0, MAX_RATE_ADJUST);
        let nominal = self.target_bps * period_s / 8.0;
        let deviation = ((frame.bytes as f64 - nominal) / nominal).max(0.0);
        self.frame_size_dev += FRAME_SIZE_DEV_ALPHA * (deviation - self.frame_size_dev);
        self.frame_size_dev = self.frame_size_dev.min(MAX_FRAME_SIZE_DEV);
        if let Some(s_rtt) = self.s_rtt {
            self.update_target(s_rtt);
        }
    }

    fn on_sent(&mut self, in_flight_bytes: u64) {
        self.window.on_sent(in_flight_bytes as f64);
    }

    fn target_rate(&self, _backlog_bytes: u64) -> Rate {
        Rate::from_bits_per_second(self.target_bps)
    }

    /// "Packet Pacing": faster where the target comes near the highest rate.
    fn pacing_rate(&self, _backlog_bytes: u64) -> Rate {
        let p = &self.parameters;
        let nominal = self.target_bps / self.source.max.bits_per_second();
        let low = p.relaxed_pacing_limit_low;
        let relaxed = 1.0 - (nominal - low) / (1.0 - low);
        let scale = relaxed.clamp(1.0 / p.max_relaxed_pacing_factor, 1.0);
        let pace = self.target_bps.max(RATE_PACE_MIN) * p.packet_pacing_headroom;
        Rate::from_bits_per_second(pace / scale)
    }

    /// "Send Window Calculation".
    fn window_bytes(&self) -> Option<u64> {
        let p = &self.parameters;
        let range = p.ref_wnd_overhead_max - p.ref_wnd_overhead_min;
        let overhead = p.ref_wnd_overhead_min + range * self.queue_delay.ref_wnd_delay_scale();
        Some((self.window.ref_wnd() * overhead) as u64)
    }

    fn variables(&self) -> Variables {
        let (delay, window) = (self.queue_delay.levels(), &self.window);
        Variables {
            state: if self.source.l4s { "l4s" } else { "classic" },
            values: vec![
                ("ref_wnd", window.ref_wnd()),
                ("ref_wnd_i", window.ref_wnd_i()),
                ("s_rtt", self.s_rtt.unwrap_or(0.0)),
                ("qdelay", delay.qdelay),
                ("qdelay_avg", delay.qdelay_avg),
                ("qdelay_target", delay.qdelay_target),
                ("ref_wnd_delay_scale", delay.ref_wnd_delay_scale),
                ("l4s_alpha", self.marks.l4s_alpha),
                ("rate_adjust_factor", self.rate_adjust_factor),
                ("frame_size_dev", self.frame_size_dev),
                ("target_bitrate", self.target_bps),
            ],
        }
    }
}

impl Scream {
    /// Return `s_rtt` in s with a new sample. The first one gives the window of the start rate.
    fn update_rtt(&mut self, rtt: f64) -> f64 {
        let s_rtt = if let Some(s_rtt) = self.s_rtt {
            s_rtt + RTT_GAIN * (rtt - s_rtt)
        } else {
            let start = self.target_bps * rtt / 8.0 / self.rate_factor();
            self.window.begin(start);
            rtt
        };
        self.s_rtt = Some(s_rtt);
        s_rtt
    }

    /// `tmp_t`: what the encoder gets of window over RTT.
    fn rate_factor(&self) -> f64 {
        let for_small = 1.0 - (self.window.ref_wnd_ratio() - 0.1).clamp(0.0, 0.2);
        for_small / (RATE_MARGIN + self.rate_adjust_factor + self.frame_size_dev)
    }

    fn update_target(&mut self, s_rtt: f64) {
        let target_bps = self.rate_factor() * 8.0 * self.window.ref_wnd() / s_rtt;
        self.target_bps = self.source.clamp(target_bps);
    }
}

/// The marked share of the packets ("Receiving ECN-CE for L4S").
#[derive(Clone, Copy, Debug, Default)]
struct MarkedShare {
    l4s_alpha: f64,
    last_update: Time,
    delivered: u32,
    marked: u32,
}

impl MarkedShare {
    /// Update the average, fast upwards and slowly downwards.
    fn update(&mut self, p: &Parameters, delivered: &Delivered, s_rtt: f64, now: Time) {
        self.delivered += delivered.arrived;
        self.marked += delivered.marked;
        let interval = MAX_ALPHA_INTERVAL.min(Time::from_seconds(s_rtt));
        if now.since(self.last_update) < interval || self.delivered == 0 {
            return;
        }
        let fraction = f64::from(self.marked) / f64::from(self.delivered);
        self.l4s_alpha = if fraction >= self.l4s_alpha {
            p.l4s_avg_g_up * fraction + (1.0 - p.l4s_avg_g_up) * self.l4s_alpha
        } else {
            (1.0 - p.l4s_avg_g_down) * self.l4s_alpha
        };
        self.last_update = now;
        (self.delivered, self.marked) = (0, 0);
    }
}

#[cfg(test)]
mod tests;
