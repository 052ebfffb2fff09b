//! Tail loss probe (RFC 8985 section 7): a segment that is sent in the absence of ACKs, to elicit one.

use ackclock_core::Time;

use super::send_reason::Trigger;
use super::timers::TIMER_FLOOR;
use super::{CaState, Outlet, Sender};
use crate::packet::Packet;
use ackclock_core::tables::EventKind;

/// An outstanding probe.
#[derive(Clone, Copy, Debug)]
pub struct TlpProbe {
    /// End of the segments whose acknowledgement completes it.
    end: u64,
    /// True if it was a retransmission.
    retransmitted: bool,
}

impl Sender {
    /// True if a probe may be sent (RFC 8985 section 7.2): neither in recovery nor with segments SACKed. The last one
    /// may be among these, and is not to be retransmitted then.
    #[inline]
    pub(super) fn can_probe(&self) -> bool {
        self.tcp.tail_loss_probe
            && self.tcp.sack
            && matches!(self.ca_state, CaState::Open | CaState::Cwr)
            && self.board.sacked == 0
            && self.tlp.is_none()
            && self.rtt.has_sample()
    }

    /// Probe timeout (RFC 8985 section 7.2): 2 SRTT, and for a single segment in flight the worst delayed ACK more
    /// (Linux: the RTO's floor).
    pub(super) fn probe_timeout(&self) -> Time {
        let twice = self.rtt.srtt() + self.rtt.srtt();
        if self.board.outstanding() == 1 {
            twice + self.tcp.min_rto
        } else {
            twice + TIMER_FLOOR
        }
    }

    /// Send a probe (RFC 8985 section 7.3): a new segment, or else the last one again.
    pub(super) fn on_probe_timer(&mut self, now: Time, out: &mut impl Outlet) {
        self.timers.stop();
        if self.board.outstanding() == 0 {
            return;
        }
        self.counters.tail_probes += 1;
        out.report(self.flow, EventKind::TailProbe, self.board.next as f64);
        let retransmitted = !self.has_new(now);
        if retransmitted {
            self.retransmit(self.board.next - 1, Trigger::TlpProbe, now, out);
        } else {
            self.send_new(1, Trigger::TlpProbe, now, out);
        }
        let end = self.board.next;
        self.tlp = Some(TlpProbe { end, retransmitted });
        self.timers.start(now, self.rtt.rto());
    }

    /// True if this segment was retransmitted as a probe.
    pub(super) fn is_probe(&self, sequence: u64) -> bool {
        let repeats = |tlp: TlpProbe| tlp.retransmitted && tlp.end == sequence + 1;
        self.tlp.is_some_and(repeats)
    }

    /// Decide whether an acknowledged probe was a retransmission that repaired a loss (RFC 8985 section 7.4.2).
    /// It was not if a duplicate is reported, by SACK or by a plain duplicate ACK; it was if the ACK goes past it.
    /// `reports_nothing`: the ACK neither advances nor has SACK blocks.
    #[inline]
    pub(super) fn process_probe_ack(&mut self, packet: &Packet, reports_nothing: bool, now: Time) {
        if let Some(tlp) = self.tlp {
            self.end_probe(tlp, packet, reports_nothing, now);
        }
    }

    #[cold]
    fn end_probe(&mut self, tlp: TlpProbe, packet: &Packet, reports_nothing: bool, now: Time) {
        if packet.number() < tlp.end {
            return;
        }
        let past_probe = packet.number() > tlp.end;
        let duplicate = packet.flags.has_dsack() || reports_nothing;
        if !tlp.retransmitted || duplicate || past_probe {
            self.tlp = None;
        }
        let was_lost = tlp.retransmitted && past_probe && !packet.flags.has_dsack();
        if was_lost && matches!(self.ca_state, CaState::Open | CaState::Disorder) {
            self.reduce(self.board.in_flight() + 1, now);
            let now = self.controller_time(now);
            self.controller.on_recovered(now, self.ack_rtt);
        }
    }
}
