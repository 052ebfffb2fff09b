//! Resolution of which transmission of a range arrived: inferred when it is acknowledged, final when no DSACK can
//! follow.
//!
//! By the timestamp that the acknowledgement echoes (Eifel, RFC 3522); else a copy is taken for the one that arrived if
//! an acknowledgement of it can have come back in the time since. A DSACK (RFC 2883) tells of one more that arrived.
//!
//! Confidences are rounded from the shares that were right in every sixth case of the scoreboard, over all its
//! vantages: surest is what an echo, a DSACK or the receiver's side tells, less so what times tell, least a
//! retransmission that nobody saw.

use ackclock_core::tcp::seq;
use std::collections::VecDeque;

use super::ack::AckContext;
use super::ack_alignment::Departure;
use super::SenderView;
use crate::flow::scoreboard::{SentRange, State, Transmission};
use crate::output::{Output, SegmentOutcome, NOT_KEPT};
use crate::series::Arrival;
use crate::tables::{Fate, RetransmitCause, Vantage};

/// A segment that is sent so often and never acknowledged does not fit through the path, or the path is gone.
const STUCK_COPIES: usize = 3;
/// The maximum number of pending ranges.
const MAX_WAITING: usize = 4096;
/// Bytes whose acknowledgement is in the capture before them: how long they may be late.
const DISORDER_NS: i64 = 3_000_000;
/// The delay of a DSACK beyond two round trips.
const DSACK_NS: i64 = 100_000_000;
/// An acknowledgement after a smaller share of the minimum RTT is of an earlier copy.
const MIN_ACK_SHARE: f64 = 0.9;
/// The same of the least of few samples, each of which may be longer than the path is.
const MIN_ACK_SHARE_FOR_FEW: f64 = 0.6;
/// Fewer samples than this are few.
const FEW: u64 = 16;
/// The confidence of a timestamp echo.
const SURE: f64 = 0.99;

/// A range that is acknowledged, and what is known of it.
#[derive(Debug)]
struct PendingCopy {
    range: SentRange,
    due_ns: i64,
    arrived: usize,
    confidence: f64,
    /// The arrived transmission was found by alignment with all acknowledgements.
    is_aligned: bool,
}

/// Ranges that are acknowledged and not settled, in the order of their positions.
#[derive(Debug, Default)]
pub struct PendingResolution {
    waiting: VecDeque<PendingCopy>,
}

impl PendingResolution {
    /// Something is to be settled.
    #[inline]
    pub fn due(&self, now_ns: i64) -> bool {
        self.waiting
            .front()
            .is_some_and(|first| first.due_ns <= now_ns)
    }

    fn find(&mut self, start: u64) -> Option<&mut PendingCopy> {
        let index = self.waiting.partition_point(|one| one.range.end() <= start);
        self.waiting
            .get_mut(index)
            .filter(|one| one.range.start <= start)
    }

    /// Bytes came that are acknowledged already, and were not seen: the capture has them out of order.
    pub fn fill(&mut self, start: u64, end: u64, arrival: u32) -> bool {
        let index = self.waiting.partition_point(|one| one.range.end() <= start);
        let Some(one) = self.waiting.get_mut(index) else {
            return false;
        };
        let hole = &mut one.range;
        if !hole.not_captured
            || !hole.has_one_transmission()
            || hole.start > start
            || hole.end() < end
        {
            return false;
        }
        let mut pieces = Vec::with_capacity(2);
        if hole.end() > end {
            pieces.push(hole.split(end));
        }
        let before = hole.start < start;
        let mut late_copy = if before {
            hole.split(start)
        } else {
            hole.clone()
        };
        late_copy.not_captured = false;
        late_copy.arrival = arrival;
        let (due_ns, arrived, confidence) = (one.due_ns, one.arrived, one.confidence);
        if before {
            pieces.push(late_copy);
        } else {
            one.range = late_copy;
        }
        for range in pieces {
            let piece = PendingCopy {
                range,
                due_ns,
                arrived,
                confidence,
                is_aligned: false,
            };
            self.waiting.insert(index + 1, piece);
        }
        true
    }

    /// The range that holds a position, to which something happened late.
    pub fn range(&mut self, start: u64) -> Option<&mut SentRange> {
        self.find(start).map(|one| &mut one.range)
    }

    /// A copy came that was not seen, behind one that was sent later: the later one was sent for nothing.
    pub fn on_late_copy(
        &mut self,
        start: u64,
        now_ns: i64,
        arrival: u32,
        tsval: Option<u32>,
    ) -> bool {
        let Some(one) = self.find(start) else {
            return false;
        };
        let late_copy = one.range.on_late_copy(now_ns, arrival, tsval);
        if let Some(number) = late_copy {
            one.arrived = one.arrived.min(number);
        }
        late_copy.is_some()
    }

    /// All that wait.
    pub fn sent_ranges(&self) -> impl Iterator<Item = &SentRange> {
        self.waiting.iter().map(|one| &one.range)
    }

    /// These copies arrived, in the order in which they were sent, and of all others since then none.
    pub fn arrived(&mut self, copies: impl Iterator<Item = Departure>, since_ns: i64) {
        for sent in copies {
            let unacknowledged_outcome =
                |one: &&mut PendingCopy| !one.is_aligned && one.confidence < SURE;
            let Some(one) = self.find(sent.start).filter(unacknowledged_outcome) else {
                continue;
            };
            let all = one.range.copies.as_deref().map_or(&[][..], |all| all);
            let of_it = |copy: &Transmission| copy.sent_ns == sent.sent_ns;
            let Some(number) = all.iter().position(of_it) else {
                continue;
            };
            let already_resolved = all[one.arrived].sent_ns < since_ns;
            if !already_resolved || number < one.arrived {
                one.arrived = number;
            }
            one.is_aligned = true;
        }
    }

    /// One more copy of what begins at a position arrived.
    fn on_dsack(&mut self, start: u64) -> bool {
        let Some(one) = self.find(start) else {
            return false;
        };
        let Some(copies) = one.range.copies.as_deref_mut() else {
            return true;
        };
        let behind = one.arrived + 1;
        match copies.iter_mut().skip(behind).find(|copy| !copy.dsacked) {
            Some(copy) => copy.dsacked = true,
            None if one.arrived > 0 => {
                copies[one.arrived].dsacked = true;
                one.arrived -= 1;
            }
            None => {}
        }
        one.confidence = 0.99;
        true
    }
}

impl SenderView {
    /// A DSACK.
    pub(super) fn on_dsack(&mut self, start: u64, end: u64) {
        if start < end && !self.resolution.on_dsack(start) {
            self.board.on_dsack(start);
        }
    }

    /// A range is acknowledged that is not simply delivered; return when what arrived was sent.
    pub(super) fn on_range_acked(
        &mut self,
        mut range: SentRange,
        context: &AckContext,
        output: &mut Output,
    ) -> i64 {
        let now_ns = context.now_ns;
        if range.has_one_transmission() && self.has_missed_retransmission(&range, now_ns) {
            let missed_ns = range.lost_ns;
            range.add(Transmission {
                sent_ns: missed_ns,
                tsval: range.tsval,
                arrival: NOT_KEPT,
                captured: false,
                cause: RetransmitCause::Fast,
                late: false,
                dsacked: false,
                continued: false,
            });
            self.report_copies(&range, Some(1), 0.6, output);
            return missed_ns;
        }
        if range.has_one_transmission() && !range.not_captured {
            let late = range.late && self.vantage != Vantage::Sender;
            let (fate, confidence) = if late {
                (Fate::Reordered, 0.95)
            } else {
                (Fate::Delivered, 0.99)
            };
            self.report(&self.outcome(&range, fate, confidence), output);
            return range.last_ns;
        }
        let (mut arrived, confidence) = self.infer_arrived_copy(&range, context);
        if confidence < SURE {
            arrived = self.prefer_captured(&range, arrived);
        }
        let copies = range.copies.as_deref();
        let sent_ns = copies.map_or(range.last_ns, |copies| copies[arrived].sent_ns);
        let due_ns = if range.has_one_transmission() {
            now_ns + DISORDER_NS.max(self.rtt_estimator.srtt_ns / 4)
        } else {
            now_ns + 2 * self.rtt_estimator.srtt_ns + DSACK_NS
        };
        self.resolution.waiting.push_back(PendingCopy {
            range,
            due_ns,
            arrived,
            confidence,
            is_aligned: false,
        });
        if self.resolution.waiting.len() > MAX_WAITING {
            self.resolve_first(output);
        }
        sent_ns
    }

    /// Return true if a retransmission is missing in the capture: the range was marked lost and arrived a round trip
    /// later, and the IP identifications do not show that everything was captured. A captured segment needs no later
    /// packet to show that there was no gap; at its receiver it arrived.
    fn has_missed_retransmission(&self, range: &SentRange, now_ns: i64) -> bool {
        let arrived_ns = match range.state {
            State::Sacked => range.sacked_ns,
            State::InFlight | State::Lost => now_ns,
        };
        let round_ns = (self.rtt.min_ns as f64 * MIN_ACK_SHARE) as i64;
        let until_ns = if range.not_captured {
            arrived_ns - round_ns
        } else {
            i64::MIN
        };
        range.lost_ns > 0
            && !range.late
            && (range.not_captured || self.vantage != Vantage::Receiver)
            && self.rtt.count > 0
            && arrived_ns - range.lost_ns >= round_ns
            && !self.has_all_captured(range.lost_ns, until_ns)
    }

    /// In the middle, what the capture has, while it is not known to miss anything that came: what it has not was lost
    /// before the vantage point.
    fn prefer_captured(&self, range: &SentRange, arrived: usize) -> usize {
        let is_complete = self.totals.fates[Fate::NotCaptured as usize] == 0;
        match range.copies.as_deref() {
            Some(copies)
                if is_complete && self.vantage == Vantage::Middle && !copies[arrived].captured =>
            {
                let later = copies.iter().skip(arrived).position(|copy| copy.captured);
                let earlier = || copies.iter().take(arrived).rposition(|copy| copy.captured);
                later
                    .map(|behind| arrived + behind)
                    .or_else(earlier)
                    .unwrap_or(arrived)
            }
            _ => arrived,
        }
    }

    fn infer_arrived_copy(&self, range: &SentRange, context: &AckContext) -> (usize, f64) {
        let Some(copies) = range.copies.as_deref() else {
            return (0, 0.9);
        };
        let last = copies.len() - 1;
        if let Some(dsacked) = copies.iter().position(|copy| copy.dsacked) {
            return (dsacked.saturating_sub(1), 0.99);
        }
        if self.vantage == Vantage::Receiver {
            let captured = copies.iter().position(|copy| copy.captured);
            return (captured.unwrap_or(last), 0.99);
        }
        if let Some(late) = copies.iter().position(|copy| copy.late) {
            return (late, 0.95);
        }
        let has_distinct_tsvals = copies[0].tsval != copies[last].tsval;
        if let Some(echo) = context
            .echo
            .filter(|_| has_distinct_tsvals && range.state != State::Sacked)
        {
            let sent = |tsval: u32| !seq::is_before(echo, tsval);
            if let Some(arrived) = copies.iter().rposition(|copy| sent(copy.tsval)) {
                return (arrived, 0.99);
            }
        }
        if let Some(filled_ns) = context.filled_ns {
            let before = copies.iter().position(|copy| copy.sent_ns < filled_ns);
            return (before.unwrap_or(0), 0.9);
        }
        let arrived_ns = match range.state {
            State::Sacked => range.sacked_ns,
            State::InFlight | State::Lost => context.now_ns,
        };
        let min_ack_delay_ns = self.min_ack_delay_ns();
        let can = |sent_ns: i64| arrived_ns - sent_ns >= min_ack_delay_ns;
        let arrived = copies.iter().rposition(|copy| can(copy.sent_ns));
        (arrived.unwrap_or(0), 0.9)
    }

    /// An acknowledgement comes no sooner. Each RTT of a short flow may be longer by a delayed acknowledgement, or by
    /// the burst that was sent with its segment; the handshake's is not.
    pub(super) fn min_ack_delay_ns(&self) -> i64 {
        let min_rtt_ns = match self.handshake_ns {
            Some(handshake_ns) => self.rtt.min_ns.min(handshake_ns),
            None => self.rtt.min_ns,
        };
        let share = if self.rtt.count < FEW {
            MIN_ACK_SHARE_FOR_FEW
        } else {
            MIN_ACK_SHARE
        };
        (min_rtt_ns as f64 * share) as i64
    }

    /// Report what is due.
    pub(super) fn resolve_due(&mut self, now_ns: i64, output: &mut Output) {
        while self.resolution.due(now_ns) {
            self.resolve_first(output);
        }
    }

    fn resolve_first(&mut self, output: &mut Output) {
        let Some(waiting) = self.resolution.waiting.pop_front() else {
            return;
        };
        let PendingCopy {
            range,
            arrived,
            confidence,
            ..
        } = waiting;
        match &range.copies {
            Some(_) => self.report_copies(&range, Some(arrived), confidence, output),
            None if range.not_captured => {
                self.report(&self.outcome(&range, Fate::NotCaptured, 0.9), output);
            }
            None => self.report(&self.outcome(&range, Fate::Delivered, 0.9), output),
        }
    }

    /// A range of which nobody will hear any more. Where no acknowledgements are seen, what has passed counts as
    /// delivered.
    pub(super) fn abandon(&mut self, range: SentRange, output: &mut Output) {
        if !self.has_acks && !range.not_captured {
            self.totals.delivered_bytes += u64::from(range.bytes);
        }
        let sacked = range.state == State::Sacked;
        if sacked {
            let context = AckContext {
                now_ns: range.sacked_ns,
                echo: None,
                filled_ns: None,
            };
            self.on_range_acked(range, &context, output);
        } else if range.copies.is_some() {
            self.report_copies(&range, None, 0.8, output);
        } else if self.may_be_late(&range) {
            self.report(&self.outcome(&range, Fate::Unresolved, 1.0), output);
            self.totals.may_be_late += u64::from(self.units(range.bytes));
        } else if let Some((fate, confidence)) = self.unacknowledged_outcome(&range) {
            self.report(&self.outcome(&range, fate, confidence), output);
        }
    }

    /// Return the outcome of a range that was sent once and is not acknowledged. One that was not captured was lost
    /// before the vantage point, unless it may have arrived and most ranges that were not captured did.
    fn unacknowledged_outcome(&self, range: &SentRange) -> Option<(Fate, f64)> {
        let is_remote = matches!(self.vantage, Vantage::Middle | Vantage::Receiver);
        let fates = &self.totals.fates;
        let mostly_not_captured =
            fates[Fate::NotCaptured as usize] > fates[Fate::LostBefore as usize];
        let outcome = self.has_sack || !mostly_not_captured;
        match (range.not_captured, range.state, self.vantage) {
            (true, ..) if is_remote && outcome && range.end() < self.snd_nxt => {
                Some((Fate::LostBefore, 0.9))
            }
            (true, ..) => None,
            (false, _, Vantage::Receiver) => Some((Fate::Delivered, 0.95)),
            (false, State::Lost, _) if range.lost_ns > 0 => Some((Fate::Lost, 0.9)),
            _ => Some((Fate::Unresolved, 1.0)),
        }
    }

    /// `arrived`: the copy that reached the receiver; without, the last is open.
    fn report_copies(
        &mut self,
        range: &SentRange,
        arrived: Option<usize>,
        confidence: f64,
        output: &mut Output,
    ) {
        let Some(copies) = range.copies.as_deref() else {
            return;
        };
        let last = copies.len() - 1;
        if arrived.is_none() && copies.len() >= STUCK_COPIES {
            self.totals.smallest_stuck_bytes = match self.totals.smallest_stuck_bytes {
                0 => range.bytes,
                known => known.min(range.bytes),
            };
        }
        for (number, copy) in copies.iter().enumerate() {
            let fate = match arrived {
                Some(arrived) if number == arrived && range.late && number == 0 => Fate::Reordered,
                Some(arrived) if number == arrived && !copy.captured => Fate::NotCaptured,
                Some(arrived) if number == arrived => Fate::Delivered,
                Some(arrived) if number > arrived => Fate::Spurious,
                None if number == last => Fate::Unresolved,
                _ if !copy.captured && self.vantage != Vantage::Sender => Fate::LostBefore,
                _ => Fate::Lost,
            };
            if fate == Fate::Lost && !copy.captured && self.ours {
                // It must have passed: the capture lost it, and the network too. Where times alone say that this is the
                // sender, it may have been lost on a short way to the vantage point.
                self.totals.fates[Fate::NotCaptured as usize] += u64::from(self.units(range.bytes));
            }
            if fate == Fate::Lost && copy.captured {
                output.lost(copy.arrival);
            }
            let outcome = self.copy_outcome(range, copy, fate, confidence);
            if number > 0 {
                let cause = match fate {
                    Fate::Spurious => RetransmitCause::Spurious,
                    _ => copy.cause,
                };
                self.totals.causes[cause as usize] += u64::from(outcome.units);
            }
            self.report(&outcome, output);
        }
    }

    /// Count a fate and report it.
    pub(super) fn report(&mut self, outcome: &SegmentOutcome, output: &mut Output) {
        let fate = outcome.fate as usize;
        self.totals.fates[fate] += u64::from(outcome.units);
        if outcome.captured {
            self.totals.fate_bytes[fate] += u64::from(outcome.bytes);
        } else if outcome.fate == Fate::LostBefore {
            self.keep_lost_upstream(outcome, output);
        }
        output.outcome(outcome);
    }

    /// Keep the arrivals at the limiter of segments that it dropped before they could be captured.
    fn keep_lost_upstream(&self, outcome: &SegmentOutcome, output: &mut Output) {
        let Some(path) = self.path else {
            return;
        };
        // In a burst, what a limiter drops follows what it let through.
        let before = output.series.arrivals.get(outcome.arrival as usize);
        let time_ns = before.map_or(outcome.time_ns, |arrival| arrival.time_ns);
        let mut left = outcome.bytes;
        while left > 0 {
            let bytes = left.min(self.mss.max(1));
            let arrival = output.arrival(Arrival {
                time_ns,
                bytes: bytes + self.header_bytes,
                path,
                lost: true,
            });
            if arrival == NOT_KEPT {
                return;
            }
            left -= bytes;
        }
    }
}
