//! What the sender does about ECN marks.
//!
//! A mark calls for the same reaction as a loss, at most once per round trip (RFC 3168 section 6.1.2); what it
//! amounts to is the controller's. Until something sent after the reaction has been acknowledged the sender is in
//! the phase `Reduced`, in which the window comes down as in fast recovery and does not grow: only then can the
//! receiver have seen CWR, and an echo stand for another mark.
//!
//! As Linux does it: a loss found in that phase is repaired without a second reduction, and CWR follows every
//! reduction, whatever its reason (RFC 3168 section 6.1.2 as well).

use ackclock_plan::{EcnMode, Reduction};
use ackclock_record::Happening;
use ackclock_units::Time;

use super::prr::Prr;
use super::scoreboard::Delivery;
use super::{whole_segments, Outlet, Phase, Sender};
use crate::packet::{Ecn, Flags, Packet};
use ackclock_congestion::{Feedback, Loss, Repair};

/// What the sender knows of marks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Marks {
    /// The last count of marked packets that was echoed.
    echoed: u8,
    /// The reaction lasts until more than what is below it is acknowledged.
    end: u64,
    /// CWR goes out with the next new segment.
    must_say_cwr: bool,
}

/// What an ACK tells of marks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Report {
    /// Segments that it reports as marked.
    pub segments: u32,
    /// Whether it asks for a reaction.
    pub asks: bool,
}

impl Sender {
    /// The ECN bits of a segment. RFC 3168 section 6.1.5 has none on retransmissions; with exact feedback
    /// nothing speaks against it (RFC 8311 section 4.3).
    #[inline]
    pub(super) fn ecn_of(&self, retransmitted: bool) -> Ecn {
        match self.tcp.ecn {
            EcnMode::Classic if !retransmitted => Ecn::Capable0,
            mode => Ecn::of_control(mode),
        }
    }

    /// The header bits of a segment: CWR once after each reduction, on a new one (RFC 3168 section 6.1.2).
    #[inline]
    pub(super) fn flags_of(&mut self, retransmitted: bool) -> Flags {
        let flags = Flags::NONE.with_retransmitted(retransmitted);
        if retransmitted || !self.marks.must_say_cwr {
            return flags;
        }
        self.marks.must_say_cwr = false;
        flags.with_echo(1)
    }

    /// The window has come down. RFC 8257 section 3.3 sets CWR as RFC 3168 does; with a count there is none.
    pub(super) fn announce_reduction(&mut self) {
        self.marks.must_say_cwr = matches!(self.tcp.ecn, EcnMode::Classic | EcnMode::Dctcp);
    }

    /// The window comes back: nothing is to be told of its reduction.
    pub(super) fn withdraw_reduction(&mut self) {
        self.marks.must_say_cwr = false;
    }

    /// Reads what an ACK tells of marks and passes it to the controller. An ACK that another one has overtaken,
    /// or that finds nothing outstanding, tells nothing new.
    #[inline]
    pub(super) fn read_marks(&mut self, packet: &Packet, delivery: &Delivery, old: bool) -> Report {
        if self.tcp.ecn == EcnMode::Off || old {
            return Report::default();
        }
        let report = self.report(packet, delivery.segments);
        self.controller.on_feedback(&Feedback {
            delivered: delivery.segments,
            marked: report.segments,
            next: self.board.next(),
            unacknowledged: self.board.unacknowledged(),
        });
        report
    }

    /// ECE speaks of all that the ACK delivers (RFC 8257 section 3.3); a count speaks for itself.
    fn report(&mut self, packet: &Packet, delivered: u32) -> Report {
        let echo = packet.flags.echo();
        if matches!(self.tcp.ecn, EcnMode::Classic | EcnMode::Dctcp) {
            return Report {
                segments: delivered * u32::from(echo),
                asks: echo > 0,
            };
        }
        let modulus = Flags::ECHO_MODULUS;
        let segments = u32::from((echo + modulus - self.marks.echoed) % modulus);
        self.marks.echoed = echo;
        Report {
            segments,
            asks: segments > 0,
        }
    }

    /// Leaves the reaction when something sent after it is acknowledged.
    #[inline]
    pub(super) fn end_reaction(&mut self, now: Time) {
        if self.phase == Phase::Reduced && self.board.unacknowledged() > self.marks.end {
            self.controller.on_recovered(now, self.heard_rtt);
            self.phase = Phase::Open;
            self.prr = None;
        }
    }

    /// Reacts to marks, unless a reaction or a recovery is under way.
    pub(super) fn react_to_marks(&mut self, in_flight: u32, now: Time, out: &mut impl Outlet) {
        if self.controller.repair() == Repair::Controller {
            return self.acknowledge_marks();
        }
        if !matches!(self.phase, Phase::Open | Phase::Disorder) {
            return;
        }
        out.report(
            self.flow,
            Happening::MarkReaction,
            self.board.unacknowledged() as f64,
        );
        let prior_window = whole_segments(self.controller.cwnd());
        self.undo.forget();
        self.phase = Phase::Reduced;
        self.marks.end = self.board.next();
        self.probe = None;
        self.announce_reduction();
        let loss = self.loss_at(in_flight, now);
        self.controller.on_loss(&Loss {
            marked: true,
            ..loss
        });
        let target = whole_segments(self.controller.cwnd());
        self.prr =
            (self.tcp.recovery_reduction == Reduction::Prr).then(|| Prr::new(target, prior_window));
        self.window = target;
    }

    /// The controller sees to marks itself; the receiver still waits for CWR, once per round trip.
    fn acknowledge_marks(&mut self) {
        if self.board.unacknowledged() > self.marks.end {
            self.marks.end = self.board.next();
            self.announce_reduction();
        }
    }

    /// A loss is found during a reaction: repaired without a further reduction, unless the controller
    /// asks for one.
    pub(super) fn lose_while_reduced(&mut self, in_flight: u32, now: Time) {
        let loss = self.loss_at(in_flight, now);
        self.controller.on_loss_after_mark(&loss);
    }
}
