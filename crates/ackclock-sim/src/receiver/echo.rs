//! Echo of ECN marks from the receiver to the sender.
//!
//! ```text
//! classic    RFC 3168 section 6.1.3   ECE on every ACK from the first mark until the sender sends CWR
//! dctcp      RFC 8257 section 3.2     ECE on the ACKs of marked segments alone; an ACK whenever that changes
//! accurate,  RFC 9768 section 3.2     the number of marked packets, on every ACK; an ACK immediately when marks begin
//! l4s
//! ```
//!
//! Linux acknowledges the first marked segment, a retransmission (one that is not ECN-capable) and the segment
//! after either immediately, and also one with CWR: the sender's window may be small. `quick` delayed ACKs do that.
//!
//! Deviations: the negotiation on the SYN takes no time and never fails, and a mark on a packet without data is
//! not echoed. RFC 9768's counter (3 bits, and more in an option) is a counter modulo 64 here; it wraps only if
//! 64 marked packets pass without any ACK arriving.

use ackclock_plan::EcnMode;

use crate::packet::{Ecn, Flags, Packet};

/// State of the echo.
#[derive(Clone, Copy, Debug)]
pub struct Echo {
    mode: EcnMode,
    /// ECE, or the count of marked packets.
    value: u8,
    /// True if the last segment was marked.
    marked: bool,
}

/// Reaction to a segment's ECN bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EcnAction {
    /// No reaction.
    None,
    /// Send the ACKs of this and the next segment without delay, with quick ACKs.
    TwoQuick,
    /// Send this segment's ACK without delay, with quick ACKs.
    OneQuick,
    /// Send this segment's ACK immediately.
    Ack,
    /// Send this segment's ACK immediately, preceded by an ACK of the earlier segments with the previous echo.
    AckBefore,
}

impl Echo {
    /// State before the first mark.
    pub fn new(mode: EcnMode) -> Echo {
        Echo {
            mode,
            value: 0,
            marked: false,
        }
    }

    /// True if ECN is in use.
    #[inline]
    pub fn is_on(self) -> bool {
        self.mode != EcnMode::Off
    }

    /// Flags of the next ACK: its ECN bits, and ECE, or the count of marked packets.
    #[inline]
    pub fn flags(self) -> Flags {
        Flags::of(Ecn::of_control(self.mode)).with_echo(self.value)
    }

    /// Reaction to a segment. After [`EcnAction::AckBefore`], write that ACK before [`Echo::take`].
    pub fn action_for(self, packet: &Packet) -> EcnAction {
        let marked = packet.ecn() == Ecn::Ce;
        let says_cwr = packet.flags.echo() > 0;
        match self.mode {
            EcnMode::Classic if marked && (self.value == 0 || says_cwr) => EcnAction::TwoQuick,
            EcnMode::Classic if packet.ecn() == Ecn::NotEct => EcnAction::TwoQuick,
            EcnMode::Dctcp if marked != self.marked => EcnAction::AckBefore,
            EcnMode::Classic | EcnMode::Dctcp if says_cwr => EcnAction::OneQuick,
            EcnMode::Accurate | EcnMode::L4s if marked && !self.marked => EcnAction::Ack,
            _ => EcnAction::None,
        }
    }

    /// Record a segment's ECN bits.
    pub fn take(&mut self, packet: &Packet) {
        self.marked = packet.ecn() == Ecn::Ce;
        let says_cwr = packet.flags.echo() > 0;
        self.value = match self.mode {
            EcnMode::Off => 0,
            // CWR acknowledges earlier marks; a mark on the same segment is a new one.
            EcnMode::Classic => u8::from(self.marked) | if says_cwr { 0 } else { self.value },
            EcnMode::Dctcp => u8::from(self.marked),
            EcnMode::Accurate | EcnMode::L4s => {
                (self.value + u8::from(self.marked)) % Flags::ECHO_MODULUS
            }
        };
    }
}
