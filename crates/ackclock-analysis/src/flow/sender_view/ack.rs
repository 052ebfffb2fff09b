//! Processing of acknowledgements when they have reached the sender.

use super::ack_tracer::AckFlags;
use super::upstream_loss::Hole;
use super::{Ack, Data, SenderView, MAX_HOLE};
use crate::flow::capacity::Progress;
use crate::flow::path_change::RttStep;
use crate::flow::rate_limit::MAX_SHIFT;
use crate::flow::scoreboard::{SentRange, State};
use crate::output::Output;
use crate::series::RttSample;
use crate::tables::{Fate, Vantage};
use ackclock_core::tcp::seq;

/// The maximum number of pending acknowledgements.
const MAX_PENDING: usize = 1 << 14;

/// The context of an acknowledged range.
#[derive(Clone, Copy, Debug)]
pub(super) struct AckContext {
    /// When the sender hears it.
    pub now_ns: i64,
    /// The echo of the copy that arrived.
    pub echo: Option<u32>,
    /// The copy that arrived waited for one that was sent then.
    pub filled_ns: Option<i64>,
}

/// A segment that was sent once, and acknowledged.
#[derive(Clone, Copy, Debug)]
struct AckedSegment {
    sent_ns: i64,
    rtt_ns: i64,
    tsval: u32,
}

/// Segments that a paced sender sends at once, at least (Linux: `tcp_min_tso_segs`).
const PACED_SEGMENTS: u64 = 2;
/// In a window of so many bursts, most acknowledgements do not find room for just the last by chance.
const MIN_BURSTS: u64 = 4;

impl AckedSegment {
    fn new(range: &SentRange, now_ns: i64) -> Self {
        Self {
            sent_ns: range.last_ns,
            rtt_ns: now_ns - range.last_ns,
            tsval: range.tsval,
        }
    }
}

impl SenderView {
    /// Take in what the sender has heard by now, and report what is settled. What it echoes says what it has heard, but
    /// for acknowledgements of the same tick.
    #[inline]
    pub fn process_due_acks(&mut self, now_ns: i64, echo: Option<u32>, output: &mut Output) {
        while self.is_due(0, now_ns, echo) {
            self.process_next_ack(now_ns, output);
        }
        if self.resolution.due(now_ns) && !self.is_collecting() {
            self.resolve_due(now_ns, output);
        }
    }

    /// Return true if the pending acknowledgement at index `behind` has reached the sender.
    #[inline]
    fn is_due(&self, filled_by: usize, now_ns: i64, echo: Option<u32>) -> bool {
        self.pending.get(filled_by).is_some_and(|ack| {
            let ahead = ack
                .timestamps
                .zip(echo)
                .map_or(0, |((tsval, _), echo)| seq::distance(tsval, echo));
            ahead < 0 || ahead == 0 && ack.captured_ns + self.sender_delay_ns <= now_ns
        })
    }

    #[inline]
    fn process_next_ack(&mut self, now_ns: i64, output: &mut Output) {
        if let Some(ack) = self.pending.pop_front() {
            self.on_ack(
                &ack,
                (ack.captured_ns + self.sender_delay_ns).min(now_ns),
                output,
            );
        }
    }

    /// Process acknowledgements up to a hole: packets missing before the first response to an acknowledgement count as
    /// sent before it, since a burst that meets a full queue loses its end. Return the hole, if there is one.
    #[inline]
    pub(super) fn process_acks_before_hole(
        &mut self,
        data: &Data,
        output: &mut Output,
    ) -> Option<Hole> {
        if self.sender_delay_ns == 0 || data.start <= self.snd_nxt || !self.has_acks {
            return None;
        }
        while self.is_due(1, data.now_ns, data.tsecr) {
            self.process_next_ack(data.now_ns, output);
        }
        let hole = self.hole(data.start);
        if hole.packets == 0 || !self.is_due(0, data.now_ns, data.tsecr) {
            return None;
        }
        self.left_hole = true;
        self.open_hole(data.start, data.now_ns, data.tsval.unwrap_or(0));
        Some(hole)
    }

    /// An acknowledgement was seen.
    #[inline]
    pub fn on_captured_ack(&mut self, ack: &Ack, output: &mut Output) {
        if self.vantage == Vantage::Unknown {
            let last_ns = self.last_data_ns.max(self.last_ack_captured_ns);
            self.ack_responses.on_ack(ack.captured_ns - last_ns);
        }
        self.has_acks = true;
        self.write_ack(ack, output);
        if let Some((tsval, tsecr)) = ack.timestamps {
            self.ack_timestamps.sent(tsval, ack.captured_ns);
            self.on_ack_clock(tsval, ack.captured_ns);
            if let Some(side_rtt_ns) = self.own_timestamps.echoed(tsecr, ack.captured_ns) {
                self.rtt_timestamps.add(side_rtt_ns + self.sender_delay_ns);
            }
        }
        if self.sender_delay_ns == 0 {
            self.on_ack(ack, ack.captured_ns, output);
            return;
        }
        for &(start, end) in ack.sack.iter().take(usize::from(ack.blocks)) {
            self.captured_sacks.insert(start, end);
        }
        if self.pending.len() == MAX_PENDING {
            if let Some(first) = self.pending.pop_front() {
                self.on_ack(&first, first.captured_ns + self.sender_delay_ns, output);
            }
        }
        self.pending.push_back(*ack);
    }

    /// Process the timestamps of a data segment.
    #[inline]
    pub(super) fn on_timestamps(&mut self, data: &Data) {
        if let Some(tsval) = data.tsval {
            self.own_timestamps.sent(tsval, data.now_ns);
            if self.sender_delay_ns > 0 {
                if self.tsval_clock.on_packet(tsval, data.now_ns) {
                    self.rtt_step = RttStep::default();
                }
                if let Some((excess_ns, tick_ns)) = self.tsval_clock.excess_delay_ns() {
                    self.limits.add_excess_delay(excess_ns - tick_ns);
                    let min_ns = self.rtt.min_ns;
                    self.rtt_step
                        .on_sample(data.now_ns, min_ns + excess_ns, min_ns);
                }
            }
        }
        let side_rtt_ns = data
            .tsecr
            .and_then(|tsecr| self.ack_timestamps.echoed(tsecr, data.now_ns));
        if self.snd_nxt == self.base && data.start > self.base {
            return; // All before it was lost: it waited for a timer, and answers nothing.
        }
        if let Some(side_rtt_ns) = side_rtt_ns {
            self.add_sender_side_rtt(data.now_ns, side_rtt_ns);
            if let Some(tracer) = self.tracer.as_mut().filter(|_| self.sender_delay_ns > 0) {
                tracer.on_echo(data, side_rtt_ns);
            }
        } else if let Some(tracer) = self.tracer.as_mut().filter(|_| self.sender_delay_ns > 0) {
            tracer.on_same_echo(data, self.sender_delay_ns);
        }
    }

    pub(super) fn add_sender_side_rtt(&mut self, now_ns: i64, side_rtt_ns: i64) {
        self.sender_side_rtt.add(side_rtt_ns);
        self.queue_delay
            .add(side_rtt_ns, self.ack_timestamps.ahead());
        if self.sender_delay_ns > 0 {
            self.sender_delay_ns = self.queue_delay.recent_ns().max(1);
            self.on_sender_delay();
            self.limits
                .path_rtt(side_rtt_ns + self.receiver_side_rtt.min_ns);
            self.limits.capacity.arrived(
                Progress {
                    now_ns,
                    bytes: self.totals.payload_bytes,
                    rtt_ns: side_rtt_ns,
                },
                (self.sender_side_rtt.min_ns, self.rtt.min_ns),
                self.mss,
            );
        }
    }

    /// Return the minimum time for which the sender had nothing in flight, `after_ns` after everything was
    /// acknowledged; queueing delay of the packet is excluded.
    pub(super) fn idle_ns(&self, after_ns: i64, data: &Data) -> i64 {
        match self
            .tsval_clock
            .excess_delay_ns()
            .filter(|_| data.tsval.is_some() && self.sender_delay_ns > 0)
        {
            Some((excess_ns, _)) => {
                let acked_ns = self.last_ack_ns + self.sender_side_rtt.min_ns;
                after_ns.min(data.now_ns - excess_ns - acked_ns)
            }
            None if self.sender_delay_ns > 0 => after_ns - self.rtt.min_ns,
            None => after_ns,
        }
    }

    /// Data has come to the end of the window before the last one: the sender sent it when it had not heard of the
    /// last.
    pub(super) fn has_filled(&self) -> bool {
        let end = self.snd_nxt + self.sendable_bytes();
        self.edge_before
            .is_some_and(|edge| self.snd_nxt <= edge && edge < end)
    }

    /// The sender hears an acknowledgement.
    #[inline]
    fn on_ack(&mut self, ack: &Ack, now_ns: i64, output: &mut Output) {
        if ack.position > self.snd_nxt + 1 && ack.position - self.snd_nxt < MAX_HOLE {
            let missing = self.hole_before(ack.position);
            self.upstream_loss.acknowledged =
                self.upstream_loss.acknowledged.saturating_add(missing);
            self.open_hole(ack.position, now_ns, 0);
        }
        let position = ack.position.min(self.snd_nxt);
        if let (None, Some(max_window_bytes)) = (self.window_bytes, self.max_window_bytes) {
            let in_flight = self.snd_nxt - self.snd_una;
            let window = max_window_bytes >> MAX_SHIFT;
            self.limits.on_unscaled_window(in_flight, window, self.mss);
        }
        // The rate is that at which acknowledgements pass the vantage point: their way to the sender may vary.
        if self.empty_since_ns.is_none() {
            let report_delivered = self.arrived_bytes();
            let (srtt_ns, min_rtt_ns) = (self.rtt_estimator.srtt_ns, self.rtt.min_ns);
            self.limits.step(
                ack.captured_ns,
                srtt_ns,
                report_delivered,
                min_rtt_ns,
                &mut output.shared,
            );
        }
        self.before_ack();
        let dup_acks = self.totals.duplicate_acks;
        let pipe = self.pipe_bytes();
        if self.sent_since_ack > 0 {
            self.latched_pipe_bytes = pipe;
        }
        if let Some((start, end)) = ack.dsack {
            self.has_sack = true;
            self.on_dsack(start, end);
        }
        let mut rtt = None;
        if position > self.snd_una {
            rtt = self.on_advance(position, ack, now_ns, output);
        } else if position == self.snd_una {
            self.on_duplicate_ack(ack, now_ns);
        }
        if ack.blocks > 0 {
            self.on_sack_blocks(ack, now_ns, &mut rtt);
        }
        self.detect_losses(now_ns);
        if let Some(acked) = rtt {
            let rtt_ns = acked.rtt_ns;
            // With timestamps the vantage point will be known soon; until then a round trip may have one half only.
            let is_whole = self.vantage != Vantage::Unknown || ack.timestamps.is_none();
            self.rtt_sample(acked, is_whole, output);
            self.limits.capacity.acknowledged(
                Progress {
                    now_ns: ack.captured_ns,
                    bytes: self.arrived_bytes(),
                    rtt_ns: rtt_ns - self.sender_delay_ns,
                },
                (self.receiver_side_rtt.min_ns, self.rtt.min_ns),
                self.mss,
            );
        } else if ack.blocks > 0 || position == self.snd_una {
            self.limits.capacity.interrupted();
        }
        let was_shut = self.is_shut();
        let was_full = was_shut || self.has_no_room_for_burst();
        self.window_bytes = ack.window_bytes;
        self.max_window_bytes = Some(ack.max_window_bytes);
        let window_bytes = ack.window_bytes.unwrap_or(0);
        self.totals.window_max_bytes = self.totals.window_max_bytes.max(window_bytes);
        let edge = match ack.window_bytes {
            Some(0) if position >= self.snd_una => position,
            _ => self.edge.unwrap_or(0).max(position + ack.max_window_bytes),
        };
        if self.edge != Some(edge) {
            self.edge_before = self.edge.filter(|_| !was_shut);
            self.edge = Some(edge);
        }
        self.shut_while_empty |= self.empty_since_ns.is_some() && self.is_shut();
        let window = self.limits.window_bytes();
        let room = self.pipe_bytes() + (window / 4).max(4 * u64::from(self.mss)) <= window;
        let room = room && !self.is_shut() && !self.recovery.within(self.snd_una);
        let unused = room && self.had_room && self.sent_since_ack == 0;
        self.had_room = room;
        let after_ns = now_ns - self.last_processed_ack_ns;
        self.limits.on_ack(after_ns, unused, was_full);
        if ack.marks > 0 {
            self.limits.on_mark();
        }
        self.sent_since_ack = 0;
        self.last_processed_ack_ns = now_ns;
        self.last_ack_captured_ns = ack.captured_ns;
        self.last_echo = ack.timestamps.map(|(_, tsecr)| tsecr);
        let duplicate = self.totals.duplicate_acks > dup_acks;
        self.trace_ack(
            ack.captured_ns,
            AckFlags {
                selective: ack.blocks > 0 || duplicate,
                marks: ack.marks,
            },
            output,
        );
    }

    /// A paced sender waits for the receiver's window: it has no room for what such a sender sends at once.
    fn has_no_room_for_burst(&self) -> bool {
        let burst_bytes = PACED_SEGMENTS * u64::from(self.mss);
        let is_wide = self.window_bytes >= Some(MIN_BURSTS * burst_bytes);
        let end = self.snd_nxt + burst_bytes;
        self.limits.is_paced() && is_wide && self.edge.is_some_and(|edge| edge < end)
    }

    /// The cumulative acknowledgement advances; return the newest segment in it.
    #[inline]
    fn on_advance(
        &mut self,
        position: u64,
        ack: &Ack,
        now_ns: i64,
        output: &mut Output,
    ) -> Option<AckedSegment> {
        let mut rtt = None;
        let mut context = AckContext {
            now_ns,
            echo: ack.timestamps.map(|(_, tsecr)| tsecr),
            filled_ns: None,
        };
        let mut before_ns = None;
        let mut fills_hole = false;
        self.detect_reneging();
        while let Some(range) = self.board.take_acked(position) {
            fills_hole |= !range.has_one_transmission();
            context.filled_ns = before_ns.and_then(|sent_ns| self.filled_by(sent_ns));
            self.newest_delivered_ns = self.newest_delivered_ns.max(range.last_ns);
            if let Some(tracer) = &mut self.tracer {
                tracer.on_delivered(&range);
            }
            if range.has_one_transmission() && !range.not_captured && !range.late {
                if range.state != State::Sacked && context.filled_ns.is_none() {
                    rtt = Some(AckedSegment::new(&range, now_ns));
                }
                if range.lost_ns == 0 {
                    before_ns = context.filled_ns.or(Some(range.last_ns));
                    self.report_delivered(&range, output);
                    continue;
                }
            }
            let sent_ns = self.on_range_acked(range, &context, output);
            context.echo = None;
            before_ns = context.filled_ns.or(Some(sent_ns));
        }
        self.totals.delivered_bytes += position - self.snd_una;
        let before = std::mem::replace(&mut self.snd_una, position);
        self.last_ack_ns = ack.captured_ns;
        self.advanced_ns = now_ns;
        self.duplicate_acks = 0;
        self.board.forget_below(position);
        self.captured_sacks.forget_below(position);
        self.recovery.advanced(position);
        if self.board.is_empty() {
            self.empty_since_ns = Some(now_ns);
            self.shut_while_empty = false;
            self.emptied_by_pure_ack = ack.pure;
            self.queued = 0;
        }
        if self.is_collecting() {
            self.on_ack_event(before, now_ns);
        }
        // What is acknowledged with a retransmission may have waited behind it: of many holes, SACK blocks tell a few.
        rtt.filter(|_| !fills_hole)
    }

    /// Without SACK, what is acknowledged together with what filled a hole waited behind it, as many as duplicate
    /// acknowledgements told of; return when that was sent, which is later than what waited.
    fn filled_by(&mut self, sent_ns: i64) -> Option<i64> {
        if self.has_sack || self.queued == 0 {
            return None;
        }
        self.queued -= 1;
        Some(sent_ns)
    }

    fn report_delivered(&mut self, range: &SentRange, output: &mut Output) {
        let units = self.segments(range, true, range.continued);
        self.totals.fates[Fate::Delivered as usize] += u64::from(units);
        let largest_bytes = self.totals.largest_delivered_bytes.max(range.bytes);
        self.totals.largest_delivered_bytes = largest_bytes;
        self.totals.fate_bytes[Fate::Delivered as usize] += u64::from(range.bytes);
        if output.options.segments {
            let outcome = self.outcome(range, Fate::Delivered, 1.0);
            output.outcome(&outcome);
        }
    }

    fn on_duplicate_ack(&mut self, ack: &Ack, now_ns: i64) {
        let same_window = Some(ack.max_window_bytes) == self.max_window_bytes || ack.blocks > 0;
        if ack.pure && !self.board.is_empty() && same_window {
            self.duplicate_acks += 1;
            self.totals.duplicate_acks += 1;
            // What the receiver has already is echoed (RFC 7323 section 4.3), what comes out of order is not.
            let echo = ack.timestamps.map(|(_, tsecr)| tsecr);
            self.queued += u32::from(echo == self.last_echo);
            if ack.blocks == 0 {
                self.on_dup_ack(now_ns);
            }
        }
    }

    fn on_sack_blocks(&mut self, ack: &Ack, now_ns: i64, rtt: &mut Option<AckedSegment>) {
        self.has_sack = true;
        let (newest, tracer) = (&mut self.newest_delivered_ns, &mut self.tracer);
        for &(start, end) in ack.sack.iter().take(usize::from(ack.blocks)) {
            self.board.sack(start, end, now_ns, |range| {
                *newest = (*newest).max(range.last_ns);
                if let Some(tracer) = tracer {
                    tracer.on_delivered(range);
                }
                let is_sample = range.has_one_transmission() && !range.not_captured && !range.late;
                if is_sample && rtt.is_none_or(|before| range.last_ns > before.sent_ns) {
                    *rtt = Some(AckedSegment::new(range, now_ns));
                }
            });
        }
    }

    /// Take for lost what RACK does: three segments were sacked above it, or its last copy was sent well before one
    /// that arrived (RFC 8985 section 6.2).
    fn detect_losses(&mut self, now_ns: i64) {
        if self.board.sacked_bytes() >= 3 * u64::from(self.mss) {
            self.board.mark_lost_below(self.board.high_sacked(), now_ns);
        } else if !self.has_sack && self.duplicate_acks == 3 {
            self.board
                .mark_lost_below(self.snd_una + u64::from(self.mss), now_ns);
        }
        let reordering_ns = self.rtt.min_ns / 4;
        while let Some(&(sent_ns, start)) = self.retransmitted.front() {
            if sent_ns + reordering_ns >= self.newest_delivered_ns {
                break;
            }
            self.retransmitted.pop_front();
            self.board.mark_copy_lost(start, sent_ns, now_ns);
        }
    }

    fn rtt_sample(&mut self, acked: AckedSegment, is_whole: bool, output: &mut Output) {
        let AckedSegment {
            sent_ns,
            rtt_ns,
            tsval,
        } = acked;
        self.rtt.add(rtt_ns);
        self.receiver_side_rtt.add(rtt_ns - self.sender_delay_ns);
        self.rtt_estimator.add(rtt_ns);
        self.limits.add_rtt(rtt_ns);
        if self.sender_delay_ns == 0 {
            self.limits.path_rtt(rtt_ns);
            self.rtt_step
                .on_sample(sent_ns + rtt_ns, rtt_ns, self.rtt.min_ns);
        }
        if let Some(path) = self.path.filter(|_| is_whole) {
            let behind = self.vantage == Vantage::Receiver;
            // Behind the queue the sender's clock tells how long this packet waited, to a tick; the least of several
            // echoes does not, if they are so few that some of them waited less.
            let waited_ns = if behind {
                self.tsval_clock.min_excess_ns(tsval, sent_ns)
            } else {
                0
            };
            output.rtt(RttSample {
                time_ns: sent_ns,
                rtt_ns: rtt_ns.max(self.rtt.min_ns + waited_ns),
                flow: self.flow,
                path,
                behind,
            });
        }
    }
}
