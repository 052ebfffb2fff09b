//! Classification of what limits a sender, round trip by round trip (Siekkinen et al., *Root Cause Analysis for
//! Long-Lived TCP Connections*, CoNEXT 2005, with rounds in place of their bulk periods; the signature of slow start is
//! that of Sundaresan et al., *TCP Congestion Signatures*, IMC 2017: the window grows with what is acknowledged).

use super::app_limited::{AppLimitedDetector, SendEvent};
use super::capacity::Capacity;
use crate::shared_bottleneck::{Round, SharedBottleneck};
use crate::tables::Limit;
use send_rate::{PipeCeiling, PipeGrowth, SendRate};
use window_scale::WindowScale;
pub use window_scale::MAX_SHIFT;
mod evidence;
mod send_rate;
mod window_scale;

/// A rate of at least this share of the most that the flow ever got: nobody else takes of the link (dispersion < .2).
const UNSHARED: f64 = 0.85;
/// A flow that gets this share of the link's rate fills it, whether a queue is to be seen or not.
const FILLS: f64 = 0.9;
/// Links are compared by the time that they take for so many bytes.
const SPACED_BYTES: u32 = 1500;
/// Fewer retransmissions do not show whether a sender catches up faster than its own rate.
const MIN_RETRANSMISSIONS: u32 = 4;
/// Segments retransmitted, of all in the round: the link is full.
const FULL_LOSS: f64 = 0.01;
/// The number of steady groups required where ACK clocking is not observable.
const STEADY_REMOTE: u32 = 3;
/// No queue is to be seen that adds less than this to the minimum RTT.
const NO_QUEUE: f64 = 0.015;
/// The delay of an acknowledgement, in segment spacings of a round, that is no queue.
const LATE: f64 = 1.25;
/// The share of that delay that is a queue, where TSvals show the excess delay.
const WAITED: f64 = 0.3;
/// ACK-clocked data follows an acknowledgement within this share (1/8) of the mean time between acknowledgements, but
/// at least [`ACK_CLOCK_NS`] and at most [`ACK_BATCH_NS`], as hosts batch both (generic receive offload).
const ACK_CLOCK_NS: i64 = 100_000;
const ACK_CLOCK_SHARE: i64 = 8;
/// Acknowledgements that come within this time may be processed together, and be answered together.
const ACK_BATCH_NS: i64 = 1_000_000;
/// The share of segments without ACK clocking above which a sender is paced.
const MAX_UNCLOCKED: f64 = 0.25;
/// Acknowledgements that are further apart than so many ticks of the sender's clock: it tells what they let out.
const TICKS_APART: i64 = 4;
/// Growth of the window from round to round in slow start; with delayed acknowledgements it is 1.5.
const SLOW_START_GROWTH: f64 = 1.25;
/// After a restart from slow start the pipe falls to 1/4 of the window before the loss, or less.
const FROM_START: u64 = 4;
/// Rounds without that growth, until slow start is over.
const FLAT_ROUNDS: u32 = 3;
/// A link has room for a flow that gets less than its rate by this factor.
const ROOM: f64 = 1.5;
/// A pipe has run empty if it stays so for longer than packets come late on jittery links; at the sender, than a batch.
const DRAINED_NS: i64 = 10_000_000;
/// A standing queue adds this share to the shortest RTT.
const PERSISTENT_QUEUE: f64 = 0.1;

/// The round trips of a direction.
#[derive(Clone, Debug, Default)]
#[allow(clippy::struct_excessive_bools)] // what was the case and what was not
pub struct LimitClassifier {
    flow: u32,
    open: bool,
    start_ns: i64,
    start_delivered: u64,
    acks: u32,
    spaced_acks: u32,
    unused_acks: u32,
    zero_window_acks: u32,
    /// The last acknowledgement opened the receiver's window.
    opened: bool,
    /// New data that it let out.
    released: u32,
    filled_late_acks: u32,
    /// Data that was sent between two acknowledgements, and such whose last segment was not full.
    flights: u32,
    short_flights: u32,
    is_flight_open: bool,
    ends_short: bool,
    sends: u32,
    retransmissions: u32,
    max_pipe_bytes: u64,
    previous_max_pipe_bytes: u64,
    round_min_rtt_ns: i64,
    rtt_sum_ns: i64,
    rtt_count: u32,
    excess_sum_ns: i64,
    excess_count: u32,
    unclocked: u32,
    /// New data that no acknowledgement let out, of so much of which the sender's clock tells that for certain.
    unclocked_new: u32,
    timed_new: u32,
    app_limited: AppLimitedDetector,
    ack_gap_ns: i64,
    classified_sends: u32,
    is_paced: bool,
    send_rate: SendRate,
    pipe_growth: PipeGrowth,
    pipe_ceiling: PipeCeiling,
    mss: u32,
    is_touched: bool,
    total_retransmissions: u32,
    /// Timestamps tell how long packets wait.
    has_delay_samples: bool,
    /// The pipe when the current loss began.
    lost_bytes: u64,
    /// A window that no reduction goes below (RFC 5681 equation 4).
    min_window_bytes: u64,
    ssthresh_bytes: u64,
    flat: u32,
    out_of_slow_start: bool,
    after_loss: u8,
    after_mark: u8,
    max_bps: f64,
    previous_bps: f64,
    /// The rate of the link.
    pub capacity: Capacity,
    /// Seconds by [`Limit`], as if the receiver's window did not limit where its size is unknown.
    limited_s: [f64; Limit::NAMES.len()],
    /// The limit of the last round.
    pub latest: u8,
    /// The scales that the receiver's window may have, if that is unknown.
    window_scale: Option<Box<WindowScale>>,
    /// Why the pipe has run empty at the end of the current round.
    drained_by: Option<Limit>,
    /// When the last round ended, and how long it took.
    last_round: (i64, f64),
    /// By the sender's clock, packets of the last round waited on their way to the vantage point.
    pub waited: bool,
}

impl LimitClassifier {
    /// Create a classifier for a flow.
    pub fn for_flow(flow: u32) -> Self {
        Self {
            flow,
            ..Self::default()
        }
    }

    /// Data that is to be sent next follows what was sent last, without a hole: elsewhere than at its sender, no closer
    /// than the link before lets it.
    #[inline]
    pub fn on_in_order(&mut self, now_ns: i64, bytes: u32) {
        self.send_rate.on_in_order(now_ns, bytes);
    }

    /// New data was sent in a segment of this size.
    #[inline]
    pub fn on_new_data(&mut self, bytes: u32, mss: u32) {
        self.mss = mss;
        self.is_flight_open = true;
        self.ends_short = bytes < mss;
    }

    /// Something was sent, all up to `next` so far.
    #[inline]
    pub fn on_send(&mut self, now_ns: i64, next: u64, pipe_bytes: u64, is_retransmission: bool) {
        self.send_rate.on_send(now_ns, next, is_retransmission);
        self.sends += 1;
        self.retransmissions += u32::from(is_retransmission);
        self.max_pipe_bytes = self.max_pipe_bytes.max(pipe_bytes);
    }

    /// At the sender: what is sent long after an acknowledgement was not let out by it.
    #[inline]
    pub fn ack_clocked(&mut self, sends: &SendEvent) {
        self.classified_sends += 1;
        self.unclocked += u32::from(sends.after_ns > self.ack_clock_ns());
        self.classify_send(sends);
    }

    /// The same elsewhere, where the sender's clock tells when it was sent, by a tick too early at most.
    #[inline]
    pub fn ack_clocked_by_tsval(&mut self, sends: &SendEvent, tick_ns: i64) {
        if TICKS_APART * tick_ns < self.ack_gap_ns {
            let is_timed = evidence::TICKS_SURE * tick_ns < self.ack_gap_ns;
            self.timed_new += u32::from(is_timed && !sends.is_retransmission);
            self.classify_send(sends);
        }
    }

    /// Retransmissions may wait for a timer. Who waits for the receiver's window uses it as soon as it opens.
    #[inline]
    fn classify_send(&mut self, sends: &SendEvent) {
        let unclocked = !sends.is_retransmission && sends.after_ns > self.ack_clock_ns();
        self.unclocked_new += u32::from(unclocked);
        self.released += u32::from(self.opened && !sends.is_retransmission && !unclocked);
        self.app_limited.sent(sends, unclocked);
    }

    /// Return the time after an acknowledgement within which a segment counts as ACK-clocked.
    #[inline]
    pub fn ack_clock_ns(&self) -> i64 {
        (self.ack_gap_ns / ACK_CLOCK_SHARE).clamp(ACK_CLOCK_NS, ACK_BATCH_NS)
    }

    /// In this round or the last, acknowledgements let out less than was sent: the window is larger than the pipe.
    pub fn is_paced(&self) -> bool {
        self.is_paced || self.is_mostly_unclocked()
    }

    fn is_mostly_unclocked(&self) -> bool {
        f64::from(self.unclocked) > MAX_UNCLOCKED * f64::from(self.classified_sends)
    }

    /// Process an acknowledgement, `after_ns` after the previous one; `unused`: both made room, but nothing was sent
    /// between them; `zero_window`: until then the receiver's window had no room for another segment. Of those that
    /// come together the host may process all before it sends.
    #[inline]
    pub fn on_ack(&mut self, after_ns: i64, unused: bool, zero_window: bool) {
        let spaced = after_ns > ACK_BATCH_NS;
        if after_ns > ACK_CLOCK_NS {
            self.ack_gap_ns += (after_ns - self.ack_gap_ns) / ACK_CLOCK_SHARE;
        }
        if std::mem::take(&mut self.is_flight_open) {
            self.flights += 1;
            self.short_flights += u32::from(self.ends_short);
        }
        self.acks += 1;
        self.spaced_acks += u32::from(spaced);
        self.zero_window_acks += u32::from(zero_window);
        self.opened = zero_window;
        self.unused_acks += u32::from(unused && spaced);
    }

    /// All that an acknowledgement allowed has come to the capture after the next one was heard: it waited on the way.
    #[inline]
    pub fn on_filled_late(&mut self) {
        self.filled_late_acks += 1;
    }

    /// A round-trip time.
    #[inline]
    pub fn add_rtt(&mut self, rtt_ns: i64) {
        if self.round_min_rtt_ns == 0 || rtt_ns < self.round_min_rtt_ns {
            self.round_min_rtt_ns = rtt_ns;
        }
    }

    /// A round-trip time with all that packets waited for.
    #[inline]
    pub fn path_rtt(&mut self, rtt_ns: i64) {
        self.rtt_sum_ns += rtt_ns;
        self.rtt_count += 1;
    }

    /// Data passed that took this much longer on its way to the vantage point than other data did, by its sender's
    /// clock.
    #[inline]
    pub fn add_excess_delay(&mut self, ack_wait_ns: i64) {
        self.excess_sum_ns += ack_wait_ns;
        self.excess_count += 1;
    }

    /// Return the maximum pipe of this round and the one before.
    #[inline]
    pub fn window_bytes(&self) -> u64 {
        self.max_pipe_bytes.max(self.previous_max_pipe_bytes)
    }

    /// The sender comes down.
    pub fn on_loss(&mut self, mss: u32) {
        self.min_window_bytes = 2 * u64::from(mss);
        self.lost_bytes = self.window_bytes();
        self.out_of_slow_start = true;
        self.after_loss = 2;
    }

    /// The retransmission timer expired: slow start again. If the sender is `in_recovery` already, it is the same
    /// loss, and ssthresh stays (RFC 5681 section 3.1, equation 4).
    pub fn on_timeout(&mut self, mss: u32, in_recovery: bool) {
        if !in_recovery {
            self.lost_bytes = self.window_bytes();
        }
        self.min_window_bytes = 2 * u64::from(mss);
        self.ssthresh_bytes = (self.lost_bytes / 2).max(self.min_window_bytes);
        self.out_of_slow_start = false;
        self.flat = 0;
        self.after_loss = 2;
    }

    /// Everything was acknowledged at `since_ns`, and now there is new data to send: the time between was idle.
    /// `shut`: the receiver's window was closed meanwhile.
    pub fn on_idle(
        &mut self,
        (since_ns, now_ns): (i64, i64),
        shut: bool,
        delivered: u64,
        rtt_min_ns: i64,
        shared: &mut SharedBottleneck,
    ) {
        let limit = if shut {
            Limit::Receiver
        } else {
            Limit::Application
        };
        // Whoever has more to send does not let the pipe run empty, unless a loss or a timer makes it.
        let is_repairing = self.retransmissions > 0 || self.after_loss > 0;
        let least_ns = if self.classified_sends > 0 {
            ACK_BATCH_NS
        } else {
            DRAINED_NS
        };
        self.drained_by = (now_ns - since_ns > least_ns && !is_repairing).then_some(limit);
        self.end(since_ns, delivered, rtt_min_ns, shared);
        if self.drained_by.is_some() && since_ns - self.last_round.0 <= ACK_BATCH_NS {
            // The acknowledgement that emptied the pipe had ended the round.
            let spent_s = std::mem::take(&mut self.last_round.1);
            self.add(self.latest, -spent_s);
            self.add(limit as u8, spent_s);
        }
        self.drained_by = None;
        self.last_round.1 = 0.0;
        self.add(limit as u8, (now_ns - since_ns).max(0) as f64 * 1e-9);
        self.latest = limit as u8;
        self.max_pipe_bytes = 0; // what was in flight before tells nothing of the window after (RFC 5681 section 4.1)
        self.begin(now_ns, delivered);
    }

    fn begin(&mut self, now_ns: i64, delivered: u64) {
        self.open = true;
        self.start_ns = now_ns;
        self.start_delivered = delivered;
        self.acks = 0;
        self.spaced_acks = 0;
        self.unused_acks = 0;
        self.zero_window_acks = 0;
        self.filled_late_acks = 0;
        self.flights = 0;
        self.short_flights = 0;
        self.sends = 0;
        self.retransmissions = 0;
        self.unclocked = 0;
        self.unclocked_new = 0;
        self.timed_new = 0;
        self.released = 0;
        self.classified_sends = 0;
        self.round_min_rtt_ns = 0;
        self.rtt_sum_ns = 0;
        self.rtt_count = 0;
        self.excess_sum_ns = 0;
        self.excess_count = 0;
        self.previous_max_pipe_bytes = std::mem::take(&mut self.max_pipe_bytes);
    }

    /// Begin the first round, or end the current one once it has lasted an RTT.
    #[inline]
    pub fn step(
        &mut self,
        now_ns: i64,
        srtt_ns: i64,
        delivered: u64,
        rtt_min_ns: i64,
        shared: &mut SharedBottleneck,
    ) {
        if !self.open {
            self.begin(now_ns, delivered);
        } else if now_ns - self.start_ns >= srtt_ns && srtt_ns > 0 {
            self.end(now_ns, delivered, rtt_min_ns, shared);
        }
    }

    /// End a round.
    pub fn end(
        &mut self,
        now_ns: i64,
        delivered: u64,
        rtt_min_ns: i64,
        shared: &mut SharedBottleneck,
    ) {
        if !self.open {
            return;
        }
        let spent_s = (now_ns - self.start_ns).max(0) as f64 * 1e-9;
        let bps = delivered.saturating_sub(self.start_delivered) as f64 * 8.0 / spent_s.max(1e-9);
        if self.acks > 3 {
            // Of two rounds: one alone may end in a burst of acknowledgements.
            self.max_bps = self.max_bps.max(bps.min(self.previous_bps));
            self.previous_bps = bps;
        }
        self.is_paced = self.is_mostly_unclocked();
        let round = Round {
            flow: self.flow,
            end_ns: now_ns,
            spent_ns: now_ns - self.start_ns,
            queue_ns: self.queue_ns(rtt_min_ns),
            bps,
        };
        let is_short = self.drained_by.is_some() && round.spent_ns <= ACK_BATCH_NS;
        let limit = self.classify(&round, rtt_min_ns, shared);
        if let Some(scale) = &mut self.window_scale {
            scale.end_round(self.retransmissions == 0, is_short);
        }
        self.add(limit as u8, spent_s);
        if !is_short {
            self.latest = limit as u8;
            self.last_round = (now_ns, spent_s);
        }
        self.after_loss = self.after_loss.saturating_sub(1);
        self.after_mark = self.after_mark.saturating_sub(1);
        self.begin(now_ns, delivered);
    }

    fn classify(&mut self, round: &Round, rtt_min_ns: i64, shared: &mut SharedBottleneck) -> Limit {
        if self.acks == 0 && self.sends == 0 {
            return Limit::Unknown;
        }
        let (bps, queue_ns) = (round.bps, round.queue_ns as f64);
        self.detect_restart();
        let is_losing = f64::from(self.retransmissions) > FULL_LOSS * f64::from(self.sends.max(1));
        self.pipe_growth.round(self.max_pipe_bytes);
        // Delayed acknowledgements of a few segments look like a queue, and so does a sender that waits for its
        // application.
        let ack_wait_ns = LATE * round.spent_ns as f64 / f64::from(self.sends.max(1));
        let calm_ns = NO_QUEUE * rtt_min_ns as f64;
        let waited_ns = self.waited_ns();
        self.waited = waited_ns > calm_ns;
        let waited = self.waited && waited_ns > WAITED * ack_wait_ns;
        let is_queued = queue_ns > calm_ns && queue_ns > ack_wait_ns || waited;
        let has_standing_queue = queue_ns > PERSISTENT_QUEUE * rtt_min_ns as f64;
        if self.retransmissions > 0 {
            self.send_rate.recurring.retransmitted();
        }
        self.send_rate
            .round(has_standing_queue && is_queued && self.classified_sends == 0); // at the sender, acknowledgements tell
        self.total_retransmissions = self
            .total_retransmissions
            .saturating_add(self.retransmissions);
        self.has_delay_samples |= self.rtt_count > 0 || self.excess_count > 0;
        self.is_touched |= is_queued || self.total_retransmissions > 0;
        if has_standing_queue {
            shared.queues.put(*round);
        }
        self.pipe_ceiling.round(self.max_pipe_bytes, self.mss);
        if let Some(limit) = self.drained_by {
            return limit;
        }
        if self.app_limited.has_returned() && self.is_mostly_unclocked_new() {
            return Limit::Application;
        }
        let fills_link_without_queue = self.fills_link(round, shared);
        // What answers acknowledgements may wait for a full link before the vantage point.
        let is_app_limited = !fills_link_without_queue
            && self.after_loss == 0
            && self.unused_acks * 2 > self.spaced_acks.max(1);
        if is_app_limited {
            return Limit::Application;
        }
        // One window that was shut at its end is enough: else the congestion window may be smaller by a segment.
        // A retransmission has its room already; and at the sender one sees what the window's opening let out.
        let new = self.retransmissions == 0 || 2 * self.retransmissions < self.sends;
        let waits_for_window = new && self.is_released_by_window();
        if self.zero_window_acks > 0
            && (self.zero_window_acks + self.filled_late_acks) * 2 > self.acks
            && waits_for_window
        {
            return Limit::Receiver;
        }
        let capacity_bps = self.capacity.bps();
        let link_bps_estimate = capacity_bps.unwrap_or(0.0).max(self.max_bps);
        // What is slower than the flow is not the link: acknowledgements that were late have stretched its trains.
        let is_links = FILLS * bps <= link_bps_estimate;
        let is_link_filled =
            self.capacity.is_stretched() && is_links && bps >= FILLS * link_bps_estimate;
        if !is_queued && !is_link_filled && !fills_link_without_queue && self.has_own_rate() {
            return Limit::Application;
        }
        if self.is_buffer_limited(bps, capacity_bps, rtt_min_ns) {
            return Limit::SendBuffer;
        }
        // A segment that is not full ends what there was to send (RFC 9293 section 3.7.4).
        if self.retransmissions == 0 && self.flights > 0 && 2 * self.short_flights > self.flights {
            return Limit::Application;
        }
        self.flat = if self.has_grown() { 0 } else { self.flat + 1 };
        if !self.out_of_slow_start {
            let small = self.max_pipe_bytes < self.ssthresh_bytes;
            if self.flat < FLAT_ROUNDS && (self.ssthresh_bytes == 0 || small) {
                return Limit::SlowStart;
            }
            self.out_of_slow_start = true;
        }
        // A link that had a queue before loses nothing without one.
        let is_losing = is_losing && capacity_bps.is_none_or(|capacity| 2.0 * bps > capacity);
        if !(has_standing_queue || is_losing || is_link_filled) {
            return Limit::Cwnd;
        }
        let shared = bps < UNSHARED * link_bps_estimate
            || has_standing_queue && bps < UNSHARED * (bps + shared.queues.bps(round));
        if shared {
            Limit::SharedBottleneck
        } else {
            Limit::Bottleneck
        }
    }
}

#[cfg(test)]
mod tests;
