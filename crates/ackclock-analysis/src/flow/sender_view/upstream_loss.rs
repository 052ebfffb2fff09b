//! Inference of packets that were sent and not captured: lost before the vantage point, or missed by the capture. Gaps
//! in the IP identifications of a sender that counts its packets show how many there were besides the missing bytes.
//!
//! Their content is inferred when the packet behind the gap is captured, by the order in which holes are retransmitted,
//! and corrected by later packets: a hole in new data retracts retransmissions inferred since the last new data, and
//! nothing is sent twice within a round trip. Unexplained packets wait. One was new data, as long as no new data was
//! captured behind it, or a lost retransmission, if the next one follows a round trip later. A sender that was observed
//! to go back over its retransmissions may have done so with it, without a timeout.
//!
//! At the sender there are gaps only after a known capture loss. There, acknowledgements may reveal new data before the
//! gap does, and a retransmission in a gap can have arrived: it counts as sent once its loss was known, right behind
//! the last captured packet. Elsewhere on the path it counts as lost before the vantage point, unless other evidence
//! contradicts, and as sent with the packet behind the gap.

use std::collections::VecDeque;

use super::ip_id::IpIdOrder;
use super::{Data, SenderView, MAX_HOLE};
use crate::flow::scoreboard::{SentRange, State, Transmission};
use crate::output::{Output, NOT_KEPT};
use crate::tables::{Fate, Vantage};

/// Ranges that are looked at for those that can have been retransmitted.
const MAX_SCANNED: usize = 4096;
/// Most unexplained packets, and most inferences, that are kept.
const MAX_WAITING: usize = 1024;
/// The share of the minimum RTT before which nothing is retransmitted.
const MIN_RESEND_SHARE: f64 = 0.9;

/// A packet that was not seen: it passed between two that were.
#[derive(Clone, Copy, Debug)]
struct MissingPacket {
    after_ns: i64,
    before_ns: i64,
    /// The TSval of the packet before it.
    tsval: u32,
}

/// A retransmission that was inferred for a missing packet.
#[derive(Clone, Copy, Debug)]
struct InferredRetransmission {
    start: u64,
    packet: MissingPacket,
}

/// Packets that were not seen, in their order.
#[derive(Clone, Debug, Default)]
pub struct UpstreamLoss {
    /// Missing packets with unknown content.
    missing: VecDeque<MissingPacket>,
    /// The number of them that passed before the last new data, so that they were no new data.
    old_missing: usize,
    /// Missing packets that count as retransmissions.
    inferred: VecDeque<InferredRetransmission>,
    /// The number of them that passed before the last new data.
    old_inferred: usize,
    /// The end of the data that counts as sent before.
    pub until: u64,
    /// The last data's TSval.
    tsval: u32,
    /// Packets of new data that acknowledgements told of before a gap did.
    pub acknowledged: u32,
    /// The end of the last retransmission, from which the sender continues.
    pub cursor: u64,
    /// The sender counts its packets, and this is when the last gap in them was seen.
    gap_ns: Option<i64>,
}

impl UpstreamLoss {
    /// Packets that can have been new data behind the last that was seen.
    fn unexplained(&self) -> usize {
        self.missing.len() - self.old_missing
    }

    /// Add a missing packet with unknown content.
    fn add_missing(&mut self, packet: MissingPacket) {
        if self.missing.len() == MAX_WAITING {
            self.missing.pop_front();
            self.old_missing = self.old_missing.saturating_sub(1);
        }
        let at = self
            .missing
            .partition_point(|one| one.before_ns <= packet.before_ns);
        self.old_missing += usize::from(at < self.old_missing);
        self.missing.insert(at, packet);
    }

    fn infer(&mut self, start: u64, packet: MissingPacket) {
        if self.inferred.len() == MAX_WAITING {
            self.inferred.pop_front();
            self.old_inferred = self.old_inferred.saturating_sub(1);
        }
        self.inferred
            .push_back(InferredRetransmission { start, packet });
    }

    /// Take the last guess of a range back.
    fn retract(&mut self, start: u64) -> Option<MissingPacket> {
        let at = self.inferred.iter().rposition(|one| one.start == start)?;
        self.old_inferred -= usize::from(at < self.old_inferred);
        self.inferred.remove(at).map(|one| one.packet)
    }

    /// Take the last packet out that passed between two times.
    fn take_between(&mut self, since_ns: i64, until_ns: i64) -> Option<MissingPacket> {
        let between = |one: &MissingPacket| one.after_ns <= until_ns && one.before_ns >= since_ns;
        let at = self.missing.iter().rposition(between)?;
        self.old_missing -= usize::from(at < self.old_missing);
        self.missing.remove(at)
    }

    /// Record a gap, or that there was none.
    #[inline]
    pub fn on_ip_id(&mut self, place: IpIdOrder, now_ns: i64) {
        match place {
            IpIdOrder::Unknown => self.gap_ns = None,
            IpIdOrder::Next { missing: 0 } => {
                self.gap_ns.get_or_insert(i64::MIN);
            }
            IpIdOrder::Next { .. } | IpIdOrder::Older => self.gap_ns = Some(now_ns),
        }
    }

    /// New data was captured: packets still unexplained were not new data.
    fn mark_old(&mut self) {
        self.old_missing = self.missing.len();
        self.old_inferred = self.inferred.len();
    }

    /// Forget the packets before the last new data, as nothing is outstanding.
    fn forget_old(&mut self) {
        self.missing.drain(..self.old_missing);
        self.old_missing = 0;
        self.inferred.drain(..self.old_inferred);
        self.old_inferred = 0;
    }

    /// Free unused memory.
    pub fn shrink(&mut self) {
        *self = Self {
            until: self.until,
            cursor: self.cursor,
            tsval: self.tsval,
            acknowledged: self.acknowledged,
            ..Self::default()
        };
    }
}

/// A hole in the captured data.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hole {
    start: u64,
    /// The number of them.
    pub packets: u32,
}

impl SenderView {
    /// Find what was in the packets that are missing before this one. The hole before it may have been found already.
    #[inline]
    pub(super) fn explain_gap(
        &mut self,
        data: &Data,
        hole_before: Option<Hole>,
        output: &mut Output,
    ) {
        self.upstream_loss.on_ip_id(data.ip_id_order, data.now_ns);
        // If the capture is complete, a gap is not this connection's.
        let is_complete = self.vantage == Vantage::Sender
            && self.totals.fates[Fate::NotCaptured as usize] == 0
            && self.upstream_loss.acknowledged == 0;
        if !is_complete {
            self.find_missing(data, hole_before, output);
        }
        self.upstream_loss.tsval = data.tsval.unwrap_or(0);
    }

    #[inline(never)]
    fn find_missing(&mut self, data: &Data, hole_before: Option<Hole>, output: &mut Output) {
        let reported = match data.ip_id_order {
            IpIdOrder::Older => 0,
            _ => std::mem::take(&mut self.upstream_loss.acknowledged),
        };
        let has_counter = match self.vantage {
            Vantage::Unknown => false,
            Vantage::Sender => self.totals.fates[Fate::NotCaptured as usize] > 0,
            Vantage::Middle | Vantage::Receiver => true,
        };
        if !has_counter || !self.has_acks {
            return;
        }
        let new_missing = match data.ip_id_order {
            IpIdOrder::Next { missing } => missing.saturating_sub(reported),
            _ => 0,
        };
        if new_missing > 0
            || !self.upstream_loss.missing.is_empty()
            || !self.upstream_loss.inferred.is_empty()
        {
            let packet = MissingPacket {
                after_ns: self.last_data_ns,
                before_ns: data.now_ns,
                tsval: self.upstream_loss.tsval,
            };
            self.explain_missing(data, new_missing, packet, hole_before, output);
        }
        let sent_before = hole_before.is_none()
            && data.start == self.snd_nxt
            && data.start < self.upstream_loss.until;
        if sent_before {
            self.open_hole(
                data.start + u64::from(data.bytes),
                self.last_data_ns,
                data.tsval.unwrap_or(0),
            );
        }
    }

    /// Return the hole before a position.
    pub(super) fn hole(&self, until: u64) -> Hole {
        Hole {
            start: self.snd_nxt,
            packets: self.hole_before(until),
        }
    }

    /// Return how many packets the hole before a position stands for.
    #[inline]
    pub fn hole_before(&self, start: u64) -> u32 {
        match start.saturating_sub(self.snd_nxt) {
            0 => 0,
            bytes => {
                let packets = bytes.div_ceil(u64::from(self.mss.max(1)));
                u32::try_from(packets).unwrap_or(u32::MAX)
            }
        }
    }

    /// Packets of new data that were not seen before a position, with those that acknowledgements told of since the
    /// last data.
    #[inline]
    pub fn missing_before(&self, start: u64) -> u32 {
        self.hole_before(start)
            .saturating_add(self.upstream_loss.acknowledged)
    }

    /// Bytes up to a position were not seen. A hole that is wider than any window is none: the numbering begins anew,
    /// and nothing of it is told. Neither is one in the first round trip of a capture that begins in a connection:
    /// that was in flight before.
    pub(super) fn open_hole(&mut self, until: u64, now_ns: i64, tsval: u32) {
        let was_in_flight = self.is_mid_stream && self.has_acks && self.rtt.count == 0;
        if until - self.snd_nxt < MAX_HOLE && !was_in_flight {
            if let Some(tracer) = &mut self.tracer {
                tracer.on_missing(self.snd_nxt - self.base, until - self.snd_nxt, self.mss);
            }
            self.board.push(SentRange {
                start: self.snd_nxt,
                first_ns: now_ns,
                last_ns: now_ns,
                sacked_ns: 0,
                lost_ns: 0,
                copies: None,
                bytes: (until - self.snd_nxt) as u32,
                tsval,
                arrival: self.last_arrival,
                identification: 0,
                state: State::InFlight,
                not_captured: true,
                late: false,
                continued: false,
            });
        }
        self.snd_nxt = until;
    }

    /// Return the end of the data sent before the current retransmissions; unexplained missing packets count as new
    /// data.
    pub(super) fn sent_until(&self) -> u64 {
        let missing_bytes = self.upstream_loss.unexplained() as u64 * u64::from(self.mss);
        self.upstream_loss.until.max(self.snd_nxt + missing_bytes)
    }

    fn explain_missing(
        &mut self,
        data: &Data,
        new_missing: u32,
        packet: MissingPacket,
        hole_before: Option<Hole>,
        output: &mut Output,
    ) {
        let new = data.start >= self.snd_nxt;
        if self.board.is_empty() {
            self.upstream_loss.forget_old();
        }
        let hole = hole_before.unwrap_or_else(|| self.hole(data.start));
        let mut left = new_missing.saturating_sub(hole.packets);
        self.fill_hole(hole.packets.saturating_sub(new_missing));
        let cursor = self.upstream_loss.cursor.max(self.snd_una);
        let until = if new { hole.start } else { data.start };
        if until >= cursor {
            self.infer_retransmissions((cursor, until), &mut left, packet, data, output);
        } else {
            self.infer_retransmissions((cursor, hole.start), &mut left, packet, data, output);
            self.infer_retransmissions((self.snd_una, until), &mut left, packet, data, output);
        }
        for _ in 0..left {
            self.upstream_loss.add_missing(packet);
        }
        if new {
            // At the sender packets without data are missed too, and nothing new is sent a round trip late.
            if self.vantage != Vantage::Sender {
                self.sent_before(data);
            }
            self.upstream_loss.mark_old();
        }
    }

    /// Count more missing packets as new data: of those with unknown content, or else of the retransmissions inferred
    /// since the last new data.
    fn fill_hole(&mut self, packets: u32) {
        let packets = packets as usize;
        let waiting = self.upstream_loss.unexplained().min(packets);
        self.upstream_loss
            .missing
            .truncate(self.upstream_loss.missing.len() - waiting);
        let guessed = self.upstream_loss.inferred.len() - self.upstream_loss.old_inferred;
        for _ in 0..guessed.min(packets - waiting) {
            if let Some(InferredRetransmission { start, .. }) =
                self.upstream_loss.inferred.pop_back()
            {
                self.board.retract_last(self.board.index_of(start));
            }
        }
    }

    /// Infer how much of the data that now arrives as new was sent before: since the last new data, and long enough ago
    /// to be retransmitted.
    fn sent_before(&mut self, data: &Data) {
        let min_resend_ns = self.min_resend_ns();
        let unexplained = self
            .upstream_loss
            .missing
            .iter()
            .skip(self.upstream_loss.old_missing);
        let old = unexplained.filter(|packet| data.now_ns - packet.after_ns >= min_resend_ns);
        let packets = old.count();
        if packets > 0 {
            let bytes = packets as u64 * u64::from(self.mss);
            self.upstream_loss.until = self.upstream_loss.until.max(data.start + bytes);
            let end = self.upstream_loss.old_missing + packets;
            self.upstream_loss
                .missing
                .drain(self.upstream_loss.old_missing..end);
        }
    }

    /// All data that was sent between two times was seen: the sender counts its packets, and there was no gap up to
    /// data that was sent later.
    pub(super) fn has_all_captured(&self, since_ns: i64, until_ns: i64) -> bool {
        let has_no_gap = self
            .upstream_loss
            .gap_ns
            .is_some_and(|gap_ns| gap_ns < since_ns);
        has_no_gap && self.last_data_ns >= until_ns
    }

    /// Return the minimum time before a retransmission.
    fn min_resend_ns(&self) -> i64 {
        (self.rtt.min_ns as f64 * MIN_RESEND_SHARE) as i64
    }

    /// Retract an inferred retransmission if the real one follows sooner than the sender can have detected its loss.
    pub(super) fn retract_inferred_retransmission(&mut self, index: usize, data: &Data) {
        let min_resend_ns = self.min_resend_ns();
        let Some(start) = self.board.get(index).map(|one| one.start) else {
            return;
        };
        let inferred = self
            .upstream_loss
            .inferred
            .iter()
            .rfind(|one| one.start == start);
        if inferred.is_some_and(|one| data.now_ns - one.packet.after_ns < min_resend_ns)
            && self.board.retract_last(index)
        {
            if let Some(packet) = self.upstream_loss.retract(start) {
                self.upstream_loss.add_missing(packet);
            }
        }
    }

    /// A packet that was not seen between two times; return when it passed at the latest.
    pub(super) fn take_missing_between(&mut self, since_ns: i64, now_ns: i64) -> Option<i64> {
        let until_ns = now_ns - self.min_resend_ns();
        let packet = self.upstream_loss.take_between(since_ns, until_ns)?;
        Some(packet.before_ns)
    }

    /// Return the latest time at which the last unexplained missing packet can have passed, if it can have been
    /// retransmitted since; [`i64::MIN`] without one.
    pub(super) fn last_missing_ns(&self, now_ns: i64) -> i64 {
        let until_ns = now_ns - self.min_resend_ns();
        let mut latest_first = self.upstream_loss.missing.iter().rev();
        let packet = latest_first.find(|packet| packet.after_ns <= until_ns);
        packet.map_or(i64::MIN, |packet| packet.before_ns)
    }

    /// Infer retransmissions of lost ranges between two positions, in order, one for each missing packet.
    fn infer_retransmissions(
        &mut self,
        (from, until): (u64, u64),
        left: &mut u32,
        packet: MissingPacket,
        data: &Data,
        output: &mut Output,
    ) {
        let min_resend_ns = self.min_resend_ns();
        let high = self.board.high_sacked();
        let until = if self.board.lost_bytes() > 0 {
            until
        } else {
            until.min(high)
        };
        let mut at = from;
        for _ in 0..MAX_SCANNED {
            if *left == 0 || at >= until {
                return;
            }
            let index = self.board.index_of(at);
            let Some(range) = self.board.get(index) else {
                return;
            };
            let start = range.start.max(at);
            let lost = range.state == State::Lost;
            let after_timeout = lost && self.recovery.after_timeout(self.snd_una);
            let missing = range.state != State::Sacked
                && (lost || range.start < high)
                && data.now_ns - range.last_ns >= min_resend_ns;
            let end = range.end();
            if !missing || start >= until {
                at = end;
                continue;
            }
            at = end.min(start + u64::from(self.mss.max(1)));
            if !after_timeout && self.has_arrived(start, at) {
                continue;
            }
            *left -= 1;
            self.upstream_loss.infer(start, packet);
            self.infer_retransmission(start, at, packet, data, output);
        }
    }

    /// It has arrived, as acknowledgements that have passed the vantage point tell: it was not retransmitted, unless
    /// the timer made the sender begin anew before it could hear of them.
    fn has_arrived(&self, start: u64, end: u64) -> bool {
        let on_ack = self.pending.back().map_or(self.snd_una, |ack| ack.position);
        end <= on_ack || self.captured_sacks.contains(start, end)
    }

    fn infer_retransmission(
        &mut self,
        start: u64,
        end: u64,
        packet: MissingPacket,
        data: &Data,
        output: &mut Output,
    ) {
        let mut cause = None;
        for index in self.board.split_range(start, end) {
            let own = Data { start, ..*data };
            let cause = *cause.get_or_insert_with(|| self.on_retransmission(index, &own, output));
            let missed_ns = self.board.get(index).map_or(0, |range| range.lost_ns);
            let (sent_ns, tsval) = if self.vantage == Vantage::Sender {
                let earliest_ns = packet.after_ns.max(missed_ns);
                (earliest_ns.min(data.now_ns), packet.tsval)
            } else {
                (data.now_ns, data.tsval.unwrap_or(0))
            };
            let copy = Transmission {
                sent_ns,
                tsval,
                arrival: NOT_KEPT,
                captured: false,
                cause,
                late: false,
                dsacked: false,
                continued: false,
            };
            self.record_retransmission(index, copy, 0, output);
        }
        self.recovery.retransmitted_to = self.recovery.retransmitted_to.max(end);
        self.upstream_loss.cursor = end;
    }
}
