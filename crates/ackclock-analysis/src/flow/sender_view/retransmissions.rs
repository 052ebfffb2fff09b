//! Out-of-sequence data: retransmissions and their causes, reordering, duplication by the network.

use ackclock_core::tables::EventKind;
use ackclock_core::tcp::seq;

use super::{Data, IpIdOrder, SenderView};
use crate::ack_trace::Signal;
use crate::flow::scoreboard::{SentRange, State, Transmission};
use crate::output::{EventDetail, Output, SegmentOutcome, NOT_KEPT};
use crate::tables::{Fate, RetransmitCause, Vantage};

/// The shortest retransmission timeout that is in use: Linux's, with some slack.
const MIN_RTO_NS: i64 = 190_000_000;
/// Copies of an acknowledged range that are kept with it.
const MAX_SPURIOUS: usize = 16;
/// The delay below which late data is reordered and not retransmitted, if no RTT is known (Wireshark's rule).
const UNKNOWN_RTT_NS: i64 = 3_000_000;
/// A retransmission comes no sooner after the hole than this share of the minimum RTT.
const TOO_SOON: f64 = 0.9;

/// A lost retransmission is retransmitted a round trip after it, or by this share of one sooner.
const EARLY: f64 = 0.15;

/// The progress of recovery.
#[derive(Clone, Copy, Debug, Default)]
pub struct RecoveryState {
    /// The end of the data sent before the timeout.
    timeout_until: u64,
    /// The end of the data sent before fast recovery.
    recover: u64,
    /// A tail probe is out, sent when this was the last byte.
    probed: u64,
    /// The sender retransmissions retransmissions without its timer: it went back to what it had retransmitted.
    already_resent: bool,
    /// The start of the last hole that fast recovery has retransmitted.
    pub retransmitted_to: u64,
}

impl RecoveryState {
    /// Recovery of either kind goes on.
    pub fn within(&self, snd_una: u64) -> bool {
        snd_una < self.recover || self.after_timeout(snd_una)
    }

    /// Return true if data that was outstanding at the timeout is still unacknowledged.
    pub fn after_timeout(&self, snd_una: u64) -> bool {
        snd_una < self.timeout_until
    }

    /// The cumulative acknowledgement advanced.
    #[inline]
    pub fn advanced(&mut self, snd_una: u64) {
        if self.probed != 0 && snd_una >= self.probed {
            self.probed = 0;
        }
    }
}

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
                OutOfSequence::NetworkDuplicate => self.duplicate(index, data, output),
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
        let may_be_network_copy = self.vantage != Vantage::Sender;
        let same = |identification: u32, tsval: u32| {
            may_be_network_copy
                && data.identification == Some(identification)
                && data.tsval.is_none_or(|own| own == tsval)
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

    fn duplicate(&mut self, index: usize, data: &Data, output: &mut Output) {
        let Some(range) = self.board.get(index) else {
            return;
        };
        let outcome = SegmentOutcome {
            time_ns: data.now_ns,
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
            let sure = data
                .identification
                .is_some_and(|own| own == range.identification);
            let same_tick = data.tsval.is_some_and(|own| own == range.tsval);
            let agrees = data.tsval.is_none() || same_tick;
            let guess = data.identification.is_none() && same_tick && self.too_soon(lag_ns);
            let duplicate = (sure && agrees || guess) && !matches!(self.vantage, Vantage::Sender);
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
        let behind = self
            .board
            .get(index + 1)
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

    fn too_soon(&self, lag_ns: i64) -> bool {
        match self.rtt.min() {
            Some(rtt_ns) => lag_ns < (rtt_ns as f64 * TOO_SOON) as i64,
            None => lag_ns < UNKNOWN_RTT_NS,
        }
    }

    /// Why a range is retransmitted; keeps what follows from it.
    pub(super) fn on_retransmission(
        &mut self,
        index: usize,
        data: &Data,
        output: &mut Output,
    ) -> RetransmitCause {
        let cause = self.cause(index, data);
        let now_ns = data.now_ns;
        let number = self.number(data.start);
        match cause {
            RetransmitCause::Timeout
                if self.snd_una >= self.recovery.timeout_until || self.expired(index, data) =>
            {
                self.limits
                    .on_timeout(self.mss, self.recovery.within(self.snd_una));
                self.recovery.timeout_until = self.sent_until();
                self.recovery.recover = 0;
                self.recovery.retransmitted_to = 0;
                self.upstream_loss.cursor = 0;
                self.totals.timeouts += 1;
                self.trace_sent();
                self.board.mark_all_lost();
                self.duplicate_acks = 0;
                if let Some(tracer) = &mut self.tracer {
                    tracer.signal(Signal::Timeout, self.recovery.timeout_until, now_ns);
                }
                output.event(
                    now_ns,
                    self.flow,
                    EventKind::Timeout,
                    number,
                    EventDetail::default(),
                );
            }
            RetransmitCause::Fast if self.snd_una >= self.recovery.recover => {
                self.recovery.recover = self.sent_until();
                self.recovery.retransmitted_to = 0;
                self.totals.recoveries += 1;
                self.limits.on_loss(self.mss);
                if let Some(tracer) = &mut self.tracer {
                    tracer.signal(Signal::Loss, self.recovery.recover, now_ns);
                }
                output.event(
                    now_ns,
                    self.flow,
                    EventKind::Recovery,
                    number,
                    EventDetail::default(),
                );
            }
            RetransmitCause::TailProbe => {
                self.recovery.probed = self.snd_nxt;
                output.event(
                    now_ns,
                    self.flow,
                    EventKind::TailProbe,
                    number,
                    EventDetail::default(),
                );
            }
            _ => {}
        }
        self.retransmission_event(data, cause, output);
        cause
    }

    /// A retransmission that comes a round trip after its segment was marked lost is not the first if what is behind it
    /// was retransmitted before, since holes are retransmitted in their order (RFC 6675 section 4, `NextSeg`): another
    /// was lost, before the point or, at the sender, by the capture and behind it. Else the window had no room for it.
    /// Of several that were lost one after the other one is told.
    fn infer_lost_retransmission(
        &mut self,
        index: usize,
        data: &Data,
        cause: RetransmitCause,
        output: &mut Output,
    ) {
        let srtt_ns = self.rtt_estimator.srtt_ns;
        let next_expected = data.ip_id_order != IpIdOrder::Unknown;
        let pending = match self.vantage {
            Vantage::Unknown => false,
            Vantage::Sender => next_expected,
            Vantage::Middle | Vantage::Receiver => true,
        };
        let Some(range) = self.board.get(index) else {
            return;
        };
        let (has_one_transmission, lost_ns) = (range.has_one_transmission(), range.lost_ns);
        let is_first = has_one_transmission && self.recovery.retransmitted_to <= data.start;
        let already_resent = !has_one_transmission && range.state != State::Lost;
        if !pending || is_first || already_resent || lost_ns == 0 || cause != RetransmitCause::Fast
        {
            return;
        }
        let late = (data.now_ns - lost_ns) as f64 >= (1.0 - EARLY) * srtt_ns as f64;
        let sent_ns = match (next_expected, has_one_transmission) {
            (true, _) => self.take_missing_between(lost_ns, data.now_ns),
            (false, true) if late && srtt_ns > 0 => Some(lost_ns),
            _ => None,
        };
        let Some(sent_ns) = sent_ns else {
            return;
        };
        let missing = Transmission {
            sent_ns,
            tsval: data.tsval.unwrap_or(0),
            arrival: NOT_KEPT,
            captured: false,
            cause,
            late: false,
            dsacked: false,
        };
        self.record_retransmission(index, missing, 0, output);
    }

    fn number(&self, start: u64) -> f64 {
        (start.saturating_sub(self.base) / u64::from(self.mss.max(1))) as f64
    }

    fn retransmission_event(&self, data: &Data, cause: RetransmitCause, output: &mut Output) {
        let detail = EventDetail {
            class: cause as u8,
            ..EventDetail::default()
        };
        let (now_ns, number) = (data.now_ns, self.number(data.start));
        output.event(now_ns, self.flow, EventKind::Retransmission, number, detail);
    }

    fn idle_ns_before(&self, now_ns: i64) -> i64 {
        now_ns - self.last_sent_ns.max(self.last_processed_ack_ns)
    }

    fn timer_ns(&self) -> i64 {
        MIN_RTO_NS.max(self.rtt_estimator.srtt_ns + self.rtt_estimator.srtt_ns / 10)
    }

    /// The retransmission timer can have expired: what is sent is the first that is missing, and quiet for long, or
    /// what is heard has not advanced for long and tells nothing new of it.
    fn expired(&self, index: usize, data: &Data) -> bool {
        let Some(head) = self.board.get(index).filter(|_| index == 0) else {
            return false;
        };
        if self.idle_ns_before(data.now_ns) >= self.timer_ns() {
            return true;
        }
        let rtt_estimator = &self.rtt_estimator;
        // SACK tells of lost retransmissions too, later than the first hole's last copy if that was not seen.
        let variation_ns = if self.has_sack {
            rtt_estimator.variation_ns
        } else {
            0
        };
        let timer_ns = rtt_estimator.srtt_ns + 4 * variation_ns;
        let lost_for_ns = data.now_ns - head.lost_ns;
        let just_lost = head.state == State::Lost && lost_for_ns < rtt_estimator.srtt_ns / 2;
        let repaired_ns = if self.recovery.already_resent {
            head.last_ns.max(self.last_missing_ns(data.now_ns))
        } else {
            head.last_ns
        };
        let since_ns = data.now_ns - repaired_ns.max(self.advanced_ns);
        since_ns >= self.timer_ns().max(timer_ns) && !just_lost
    }

    fn cause(&self, index: usize, data: &Data) -> RetransmitCause {
        let Some(range) = self.board.get(index) else {
            return RetransmitCause::Unknown;
        };
        let sacked = self.board.sacked_bytes() > 0;
        let outcome = sacked || self.duplicate_acks > 0;
        let tail = range.end() == self.snd_nxt && range.has_one_transmission();
        let no_recovery =
            !outcome && !self.recovery.within(self.snd_una) && self.recovery.probed == 0;
        let probes = tail && no_recovery && (index > 0 || self.has_sack);
        if probes && self.idle_ns_before(data.now_ns) >= self.rtt_estimator.srtt_ns {
            return RetransmitCause::TailProbe;
        }
        if self.expired(index, data) {
            return RetransmitCause::Timeout;
        }
        if self.snd_una < self.recovery.timeout_until && range.start < self.recovery.timeout_until {
            return RetransmitCause::Timeout;
        }
        let above = self.board.high_sacked() > range.start && sacked;
        // What was sent later has arrived, or the window before it is being retransmitted.
        let overtaken = self.newest_delivered_ns > range.last_ns;
        let recovering = self.snd_una < self.recovery.recover;
        let is_first = self.duplicate_acks > 0 && index == 0;
        if above || overtaken || recovering || is_first || range.state == State::Lost {
            return RetransmitCause::Fast;
        }
        RetransmitCause::Unknown
    }
}
