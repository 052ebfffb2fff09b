//! Classification of out-of-sequence data: retransmissions, reordering, duplication by the network.

use ackclock_core::tcp::seq;

use super::{Data, IpIdOrder, SenderView};
use crate::flow::scoreboard::{SentRange, Transmission};
use crate::output::{Output, SegmentOutcome, NOT_KEPT};
use crate::tables::{Fate, RetransmitCause, Vantage};

/// Copies of an acknowledged range that are kept with it.
const MAX_SPURIOUS: usize = 16;
/// A hole is in few pieces: so many ranges are searched for the data behind it.
const MAX_PIECES: usize = 16;
/// The delay below which late data is reordered and not retransmitted, if no RTT is known (Wireshark's rule).
const UNKNOWN_RTT_NS: i64 = 3_000_000;
/// A retransmission comes no sooner after the hole than this share of the minimum RTT.
const TOO_SOON: f64 = 0.9;

/// The kinds of out-of-sequence segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OutOfSequence {
    Retransmission,
    /// A copy that was lost before the vantage point, as it seemed.
    LateCopy,
    Reordered,
    NetworkDuplicate,
}

impl SenderView {
    /// Data below what was sent before.
    pub(super) fn old_data(&mut self, data: &Data, end: u64, arrival: u32, output: &mut Output) {
        let mut copy = Transmission {
            sent_ns: data.now_ns,
            tsval: data.tsval.unwrap_or(0),
            arrival,
            captured: true,
            cause: RetransmitCause::Unknown,
            late: false,
            dsacked: false,
            continued: data.start < self.snd_una,
        };
        if data.start < self.snd_una {
            self.acknowledged_data(data, end.min(self.snd_una), &copy, output);
        }
        let next_expected = matches!(data.ip_id_order, IpIdOrder::Next { .. });
        let mut cause = None;
        for index in self.board.split_range(data.start.max(self.snd_una), end) {
            match self.classify(index, data) {
                OutOfSequence::Reordered => {
                    let late = self.vantage != Vantage::Sender;
                    let identification = data.identification.unwrap_or(0);
                    self.board.on_filled_late(index, copy, identification, late);
                }
                OutOfSequence::NetworkDuplicate => {
                    self.duplicate(index, &copy, output);
                }
                OutOfSequence::LateCopy => {
                    self.board
                        .on_late_copy(index, data.now_ns, arrival, data.tsval);
                }
                OutOfSequence::Retransmission => {
                    self.retract_inferred_retransmission(index, data);
                    copy.cause =
                        *cause.get_or_insert_with(|| self.on_retransmission(index, data, output));
                    self.infer_lost_retransmission(index, data, copy.cause, output);
                    if copy.cause == RetransmitCause::Fast {
                        let goes_back = index > 0 && data.start < self.upstream_loss.cursor;
                        self.recovery.already_resent |= goes_back && next_expected;
                        self.recovery.retransmitted_to =
                            self.recovery.retransmitted_to.max(data.start);
                    }
                    self.record_retransmission(
                        index,
                        copy,
                        data.identification.unwrap_or(0),
                        output,
                    );
                }
            }
            copy.continued = true;
        }
        if cause.is_some() && data.ip_id_order != IpIdOrder::Older {
            self.upstream_loss.cursor = end;
        }
        self.between_numberings(data, end, output);
        self.last_cause = cause.or(self.last_cause);
    }

    /// Data where there is no range: before the numbering began anew.
    fn between_numberings(&mut self, data: &Data, end: u64, output: &mut Output) {
        let from = data.start.max(self.snd_una);
        let indices = self.board.split_range(from, end);
        let covered: u64 = indices
            .filter_map(|index| self.board.get(index))
            .map(|range| u64::from(range.bytes))
            .sum();
        let bytes = end.saturating_sub(from).saturating_sub(covered) as u32;
        if bytes > 0 {
            let outcome = SegmentOutcome {
                flow: self.flow,
                time_ns: data.now_ns,
                offset: from.saturating_sub(self.base),
                bytes,
                units: self.units(bytes),
                number: self.number(from) as u64,
                captured: true,
                arrival: NOT_KEPT,
                fate: Fate::Unresolved,
                cause: RetransmitCause::Unknown,
                confidence: 0.0,
            };
            self.report(&outcome, output);
        }
    }

    /// Data that is acknowledged already.
    fn acknowledged_data(
        &mut self,
        data: &Data,
        end: u64,
        copy: &Transmission,
        output: &mut Output,
    ) {
        // At the sender it is the capture that has a packet twice.
        let same = |identification: u32, tsval: u32| {
            data.identification == Some(identification) && data.tsval.is_none_or(|own| own == tsval)
        };
        let bytes = (end - data.start) as u32;
        let offset = data.start.saturating_sub(self.base);
        let mut outcome = SegmentOutcome {
            flow: self.flow,
            time_ns: data.now_ns,
            offset,
            bytes,
            units: self.units(bytes),
            number: offset / u64::from(self.mss.max(1)),
            captured: true,
            arrival: NOT_KEPT,
            fate: Fate::Spurious,
            cause: RetransmitCause::Unknown,
            confidence: 0.95,
        };
        if self.resolution.fill(data.start, end, copy.arrival) {
            return;
        }
        let same_bytes = |one: &&mut SentRange| one.start == data.start && one.end() == end;
        let pending = self.resolution.range(data.start).filter(same_bytes);
        let tsval = pending.map(|one| one.tsval);
        let older = tsval.is_some_and(|tsval| self.older(data, tsval));
        if older
            && self
                .resolution
                .on_late_copy(data.start, data.now_ns, copy.arrival, data.tsval)
        {
            return;
        }
        if !self.has_acks {
            outcome.fate = Fate::Unresolved;
        }
        if let Some(range) = self.resolution.range(data.start) {
            // The copies of one range are as long as it is.
            let is_same_range = range.start == data.start && range.bytes == bytes;
            if same(range.identification, range.tsval) {
                outcome.fate = Fate::Duplicate;
            } else if is_same_range
                && range
                    .copies
                    .as_ref()
                    .is_none_or(|all| all.len() < MAX_SPURIOUS)
            {
                range.add(*copy);
                self.last_cause = Some(RetransmitCause::Unknown);
                self.retransmission_event(data, RetransmitCause::Unknown, output);
                return;
            }
        }
        self.last_cause = Some(RetransmitCause::Spurious);
        if !self.has_acks {
            self.totals.causes[RetransmitCause::Unknown as usize] += u64::from(outcome.units);
            self.report(&outcome, output);
            return;
        }
        let probe = bytes == 1 && end == self.snd_una && self.snd_una == self.snd_nxt;
        let cause = match outcome.fate {
            Fate::Spurious if probe => Some(RetransmitCause::WindowProbe),
            Fate::Spurious => Some(RetransmitCause::Spurious),
            _ => None,
        };
        if let Some(cause) = cause {
            self.totals.causes[cause as usize] += u64::from(outcome.units);
            outcome.cause = cause;
            if cause == RetransmitCause::Spurious {
                self.retransmission_event(data, cause, output);
            }
        }
        self.report(&outcome, output);
    }

    fn duplicate(&mut self, index: usize, copy: &Transmission, output: &mut Output) {
        let Some(range) = self.board.get(index) else {
            return;
        };
        let outcome = SegmentOutcome {
            time_ns: copy.sent_ns,
            units: self.segments(range, true, copy.continued),
            ..self.outcome(range, Fate::Duplicate, 0.95)
        };
        self.report(&outcome, output);
    }

    /// Classify an out-of-sequence segment as reordered, duplicated or retransmitted (Jaiswal et al., *Measurement and
    /// Classification of Out-of-Sequence Packets in a Tier-1 IP Backbone*, 2003, with timestamps in addition). At the
    /// sender there are only retransmissions, except where the capture itself is out of order.
    fn classify(&self, index: usize, data: &Data) -> OutOfSequence {
        let Some(range) = self.board.get(index) else {
            return OutOfSequence::Retransmission;
        };
        let lag_ns = data.now_ns - range.last_ns;
        if !range.not_captured {
            // Hosts that do not count their packets may give them all the same number.
            let same_number = data
                .identification
                .is_some_and(|own| own == range.identification);
            let is_counter = data.ip_id_order != IpIdOrder::Unknown;
            let sure = same_number && (is_counter || self.too_soon(lag_ns));
            let same_tick = data.tsval.is_some_and(|own| own == range.tsval);
            let agrees = data.tsval.is_none() || same_tick;
            let guess = data.identification.is_none() && same_tick && self.too_soon(lag_ns);
            let guess = guess && self.vantage != Vantage::Sender;
            let duplicate = sure && agrees || guess;
            let missed = range.copies.as_deref();
            let missed = missed.is_some_and(|copies| copies.iter().any(|copy| !copy.captured));
            return match (duplicate, missed && self.older(data, range.tsval)) {
                (true, _) => OutOfSequence::NetworkDuplicate,
                (false, true) => OutOfSequence::LateCopy,
                (false, false) => OutOfSequence::Retransmission,
            };
        }
        if self.is_reordered(index, data, lag_ns) {
            OutOfSequence::Reordered
        } else {
            OutOfSequence::Retransmission
        }
    }

    /// It was sent before what was seen of the range.
    fn older(&self, data: &Data, tsval: u32) -> bool {
        if self.vantage == Vantage::Sender {
            return false;
        }
        match data.ip_id_order {
            IpIdOrder::Older => true,
            IpIdOrder::Next { .. } => false,
            IpIdOrder::Unknown => data.tsval.is_some_and(|own| seq::is_before(own, tsval)),
        }
    }

    /// Return true if the data that fills a hole was sent before the data behind it.
    fn is_reordered(&self, index: usize, data: &Data, lag_ns: i64) -> bool {
        if self.vantage == Vantage::Sender && lag_ns > UNKNOWN_RTT_NS {
            return false;
        }
        match data.ip_id_order {
            IpIdOrder::Next { .. } if self.vantage != Vantage::Sender => return false,
            IpIdOrder::Older => return true,
            _ => {}
        }
        let mut above = self.board.iter().skip(index + 1).take(MAX_PIECES);
        let behind = above
            .find(|next| !next.not_captured)
            .filter(|next| next.has_one_transmission());
        let tsval = data.tsval.zip(behind.map(|next| next.tsval));
        if let Some((own, next)) = tsval.filter(|(own, next)| own != next) {
            return seq::is_before(own, next);
        }
        let identification = data.identification.zip(
            behind
                .map(|next| next.identification)
                .filter(|&next| next != 0),
        );
        if let Some((own, next)) = identification {
            return (own.wrapping_sub(next) as u16).cast_signed() < 0;
        }
        self.too_soon(lag_ns)
    }

    /// Return true if a hole may be filled late: the path reorders (RFC 4737), and a retransmission cannot have come yet.
    pub(super) fn may_be_late(&self, hole: &SentRange) -> bool {
        hole.not_captured
            && self.totals.fates[Fate::Reordered as usize] > 0
            && self.last_data_ns - hole.first_ns < self.rtt_estimator.srtt_ns
    }

    fn too_soon(&self, lag_ns: i64) -> bool {
        match self.rtt.min() {
            Some(rtt_ns) => lag_ns < (rtt_ns as f64 * TOO_SOON) as i64,
            None => lag_ns < UNKNOWN_RTT_NS,
        }
    }
}
