//! What the sender does about ECN marks.
//!
//! A mark calls for the same reaction as a loss, at most once per round trip (RFC 3168 section 6.1.2); what it
//! amounts to is the controller's. Until what was outstanding at the reaction has been acknowledged the
//! sender is in the phase `Reduced`, in which the window comes down as in fast recovery and does not grow.
//! A loss found in that phase is repaired without a second reduction, as Linux does it.

use ackclock_units::Time;

use super::recovery::Prr;
use super::{whole_segments, Outlet, Phase, Sender};
use crate::congestion::{Loss, Repair};
use crate::packet::{Ecn, Flags, Packet};
use crate::plan::{EcnMode, Reduction};
use crate::record::Happening;

/// What the sender knows of marks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Marks {
    /// The last echo.
    echoed: u8,
    /// The reaction lasts until everything below it is acknowledged.
    end: u64,
    /// CWR goes out with the next new segment.
    must_say_cwr: bool,
}

impl Sender {
    /// The ECN bits of a segment. RFC 3168 section 6.1.5 has none on what is sent again; with exact feedback
    /// nothing speaks against it (RFC 8311 section 4.3).
    #[inline]
    pub(super) fn ecn_of(&self, again: bool) -> Ecn {
        match self.tcp.ecn {
            EcnMode::Off => Ecn::NotCapable,
            EcnMode::Classic if again => Ecn::NotCapable,
            EcnMode::Classic | EcnMode::Dctcp | EcnMode::Accurate => Ecn::Capable0,
            EcnMode::L4s => Ecn::Capable1,
        }
    }

    /// The header bits of a segment: CWR once after each reaction, on a new one (RFC 3168 section 6.1.2).
    #[inline]
    pub(super) fn flags_of(&mut self, again: bool) -> Flags {
        let flags = Flags::repeating(again);
        if again || !self.marks.must_say_cwr {
            return flags;
        }
        self.marks.must_say_cwr = false;
        flags.with_echo(1)
    }

    /// Segments that an ACK reports as marked, `delivered` of which it reports as delivered.
    #[inline]
    pub(super) fn marked_segments(&mut self, packet: &Packet, delivered: u32) -> u32 {
        match self.tcp.ecn {
            EcnMode::Off => 0,
            EcnMode::Classic | EcnMode::Dctcp => delivered * u32::from(packet.echo()),
            EcnMode::Accurate | EcnMode::L4s => {
                let modulus = Flags::ECHO_MODULUS;
                let new = (packet.echo() + modulus - self.marks.echoed) % modulus;
                self.marks.echoed = packet.echo();
                u32::from(new)
            }
        }
    }

    /// Whether an ACK asks for a reaction: ECE, or newly marked packets.
    #[inline]
    pub(super) fn reports_marks(&self, packet: &Packet, marked: u32) -> bool {
        marked > 0 || (self.tcp.ecn == EcnMode::Classic && packet.echo() > 0)
    }

    /// Leaves the reaction when more than what was outstanding then is acknowledged: the first new segment
    /// carries CWR, and until it is acknowledged the receiver echoes the same mark (as Linux holds CWR).
    #[inline]
    pub(super) fn end_reaction(&mut self) {
        if self.phase == Phase::Reduced && self.board.unacknowledged() > self.marks.end {
            self.phase = Phase::Open;
            self.prr = None;
        }
    }

    /// Reacts to marks, unless a reaction or a recovery is under way.
    pub(super) fn react_to_marks(&mut self, in_flight: u32, now: Time, out: &mut impl Outlet) {
        if !matches!(self.phase, Phase::Open | Phase::Disorder)
            || self.controller.repair() == Repair::Controller
        {
            return;
        }
        out.report(
            self.flow,
            Happening::MarkReaction,
            self.board.unacknowledged() as f64,
        );
        let prior_window = whole_segments(self.controller.cwnd());
        self.phase = Phase::Reduced;
        self.marks.end = self.board.next();
        self.marks.must_say_cwr = self.tcp.ecn == EcnMode::Classic;
        let loss = self.loss_at(in_flight, now);
        self.controller.on_loss(&Loss {
            marked: true,
            ..loss
        });
        let target = whole_segments(self.controller.cwnd());
        self.prr = (self.tcp.reduction == Reduction::Prr).then(|| Prr::new(target, prior_window));
        self.window = target;
    }

    /// A loss is found during a reaction: repaired without a further reduction, unless the controller
    /// asks for one.
    pub(super) fn lose_while_reduced(&mut self, in_flight: u32, now: Time) {
        let loss = self.loss_at(in_flight, now);
        self.controller.on_loss_after_mark(&loss);
    }
}
