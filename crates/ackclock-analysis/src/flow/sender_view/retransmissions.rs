//! Retransmissions and their causes.

use ackclock_core::tables::EventKind;

use super::{Data, IpIdOrder, SenderView};
use crate::ack_trace::Signal;
use crate::flow::scoreboard::{State, Transmission};
use crate::output::{EventDetail, Output, NOT_KEPT};
use crate::tables::{RetransmitCause, Vantage};

/// The shortest retransmission timeout that is in use: Linux's, with some slack.
const MIN_RTO_NS: i64 = 190_000_000;
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
    /// The sender retransmits retransmissions without its timer: it went back to what it had retransmitted.
    pub already_resent: bool,
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

impl SenderView {
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
    pub(super) fn infer_lost_retransmission(
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
            continued: false,
        };
        self.record_retransmission(index, missing, 0, output);
    }

    pub(super) fn number(&self, start: u64) -> f64 {
        (start.saturating_sub(self.base) / u64::from(self.mss.max(1))) as f64
    }

    pub(super) fn retransmission_event(
        &self,
        data: &Data,
        cause: RetransmitCause,
        output: &mut Output,
    ) {
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
