//! Reaction of the sender to ECN marks.
//!
//! A mark causes the same reaction as a loss, at most once per round trip (RFC 3168 section 6.1.2); the controller
//! decides on its size. Until a segment sent after the reaction is acknowledged, the sender is in the state `Cwr`, in
//! which the window is reduced as in fast recovery and does not grow: only after that has the receiver got CWR, and an
//! echo reports another mark.
//!
//! As in Linux: a loss detected in that state is retransmitted without a second reduction, and CWR follows every
//! reduction, for any reason (RFC 3168 section 6.1.2 as well).

use ackclock_core::tables::EventKind;
use ackclock_core::Time;
use ackclock_plan::{EcnMode, Reduction};

use super::prr::Prr;
use super::scoreboard::Delivery;
use super::{floor_segments, CaState, Outlet, Sender};
use crate::packet::{Ecn, Flags, Packet};
use ackclock_congestion::{EcnFeedback, Loss, RecoveryPolicy};

/// State of the reaction to ECN.
#[derive(Clone, Copy, Debug, Default)]
pub struct EcnState {
    /// Last count of marked packets that was echoed.
    echoed: u8,
    /// The reaction lasts until more than what is below it is acknowledged.
    end: u64,
    /// CWR is to be sent with the next new segment.
    cwr_pending: bool,
}

/// ECN feedback of an ACK.
#[derive(Clone, Copy, Debug, Default)]
pub struct EcnReport {
    /// Segments that it reports as marked.
    pub segments: u32,
    /// True if the ACK signals congestion.
    pub is_signalled: bool,
}

impl Sender {
    /// Flags of a segment: its ECN bits, and CWR once after each reduction, on a new one (RFC 3168 section 6.1.2).
    /// RFC 3168 section 6.1.5 forbids ECT on retransmissions; with accurate feedback it is allowed (RFC 8311 section
    /// 4.3).
    #[inline]
    pub(super) fn flags_of(&mut self, retransmitted: bool) -> Flags {
        let ecn = match self.tcp.ecn {
            EcnMode::Classic if !retransmitted => Ecn::Ect0,
            mode => Ecn::of_control(mode),
        };
        let flags = Flags::of(ecn).with_retransmitted(retransmitted);
        if retransmitted || !self.ecn.cwr_pending {
            return flags;
        }
        self.ecn.cwr_pending = false;
        flags.with_echo(1)
    }

    /// Schedule CWR after a reduction. RFC 8257 section 3.3 sets CWR as RFC 3168 does; accurate feedback has none.
    pub(super) fn queue_cwr(&mut self) {
        self.ecn.cwr_pending = matches!(self.tcp.ecn, EcnMode::Classic | EcnMode::Dctcp);
    }

    /// Cancel CWR when a reduction is undone.
    pub(super) fn cancel_cwr(&mut self) {
        self.ecn.cwr_pending = false;
    }

    /// True if an ACK echoes marks that were not echoed before.
    #[inline]
    pub(super) fn echoes_marks(&self, packet: &Packet) -> bool {
        match self.tcp.ecn {
            EcnMode::Off => false,
            EcnMode::Classic | EcnMode::Dctcp => packet.flags.echo() > 0,
            EcnMode::Accurate | EcnMode::L4s => packet.flags.echo() != self.ecn.echoed,
        }
    }

    /// Read the ECN feedback of an ACK and pass it to the controller. An ACK that another one has overtaken,
    /// or that finds nothing outstanding, is ignored.
    #[inline]
    pub(super) fn process_ecn(
        &mut self,
        packet: &Packet,
        delivery: &Delivery,
        old: bool,
    ) -> EcnReport {
        if self.tcp.ecn == EcnMode::Off || old {
            return EcnReport::default();
        }
        let report = self.report(packet, delivery.segments);
        self.controller.on_ecn_feedback(&EcnFeedback {
            delivered: delivery.segments,
            marked: report.segments,
            next: self.board.next,
            unacknowledged: self.board.unacknowledged,
        });
        report
    }

    /// Decode the feedback: ECE covers all that the ACK delivers (RFC 8257 section 3.3); a count is exact.
    fn report(&mut self, packet: &Packet, delivered: u32) -> EcnReport {
        let echo = packet.flags.echo();
        if matches!(self.tcp.ecn, EcnMode::Classic | EcnMode::Dctcp) {
            return EcnReport {
                segments: delivered * u32::from(echo),
                is_signalled: echo > 0,
            };
        }
        let modulus = Flags::ECHO_MODULUS;
        let segments = u32::from((echo + modulus - self.ecn.echoed) % modulus);
        self.ecn.echoed = echo;
        EcnReport {
            segments,
            is_signalled: segments > 0,
        }
    }

    /// End the reaction when something sent after it is acknowledged.
    #[inline]
    pub(super) fn end_reaction(&mut self, now: Time) {
        if self.ca_state == CaState::Cwr && self.board.unacknowledged > self.ecn.end {
            let now = self.controller_time(now);
            self.controller.on_recovered(now, self.ack_rtt);
            self.ca_state = CaState::Open;
            self.prr = None;
        }
    }

    /// React to marks, unless in a reaction or a recovery.
    pub(super) fn react_to_ecn(&mut self, in_flight: u32, now: Time, out: &mut impl Outlet) {
        if self.controller.recovery_policy() == RecoveryPolicy::Controller {
            return self.acknowledge_marks();
        }
        if !matches!(self.ca_state, CaState::Open | CaState::Disorder) {
            return;
        }
        out.report(
            self.flow,
            EventKind::MarkReaction,
            self.board.unacknowledged as f64,
        );
        let prior_window = floor_segments(self.controller.cwnd());
        self.undo.forget();
        self.ca_state = CaState::Cwr;
        self.ecn.end = self.board.next;
        self.tlp = None;
        self.queue_cwr();
        let loss = self.loss_at(in_flight, now);
        self.controller.on_loss(&Loss {
            marked: true,
            ..loss
        });
        let target = floor_segments(self.controller.cwnd());
        self.prr =
            (self.tcp.recovery_reduction == Reduction::Prr).then(|| Prr::new(target, prior_window));
        self.window = target;
    }

    /// Send CWR once per round trip for a controller that handles marks by itself.
    fn acknowledge_marks(&mut self) {
        if self.board.unacknowledged > self.ecn.end {
            self.ecn.end = self.board.next;
            self.queue_cwr();
        }
    }

    /// Handle a loss during a reaction: it is retransmitted without a further reduction, unless the controller
    /// requests one.
    pub(super) fn on_loss_in_cwr(&mut self, in_flight: u32, now: Time) {
        let loss = self.loss_at(in_flight, now);
        self.controller.on_loss_after_mark(&loss);
    }
}
