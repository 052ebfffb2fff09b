//! The packet: a small value that is copied from queue to queue and never allocated by itself.

use ackclock_core::tables::{codes, PacketAction, Packets};
use ackclock_core::Time;
use ackclock_plan::EcnMode;

codes!(
    /// Kind of a packet.
    Kind {
        /// SYN of the sender.
        Syn => "syn",
        /// SYN/ACK of the receiver.
        SynAck => "syn_ack",
        /// Payload from the sender.
        Data => "data",
        /// FIN of the sender without payload.
        Fin => "fin",
        /// Acknowledgement from the receiver.
        Ack => "ack",
        /// Acknowledgement of the sender's FIN with the receiver's FIN.
        FinAck => "fin_ack",
        /// The sender's last acknowledgement (of the SYN/ACK or of the receiver's FIN).
        LastAck => "last_ack",
        /// SYN of a receiver that requests the data.
        ClientSyn => "client_syn",
        /// SYN/ACK of the sender, to a `ClientSyn`.
        ServerSynAck => "server_syn_ack",
        /// Request of the receiver for the data.
        Request => "request",
        /// A UDP datagram.
        Datagram => "datagram",
        /// Reply to a datagram.
        Echo => "echo",
        /// Last payload with the FIN, from the sender.
        DataFin => "data_fin",
        /// Probe of the sender for the receiver's closed window.
        WindowProbe => "window_probe",
    }
);

impl Kind {
    /// True for a SYN or SYN/ACK.
    pub fn opens(self) -> bool {
        matches!(
            self,
            Kind::Syn | Kind::SynAck | Kind::ClientSyn | Kind::ServerSynAck
        )
    }

    /// True if the packet carries a FIN.
    pub fn closes(self) -> bool {
        matches!(self, Kind::DataFin | Kind::Fin | Kind::FinAck)
    }

    /// True for the sender's numbered segments: those with payload, with the FIN, or both.
    #[inline]
    pub fn is_segment(self) -> bool {
        matches!(self, Kind::Data | Kind::DataFin | Kind::Fin)
    }

    /// True if the packet carries the sender's payload.
    #[inline]
    pub fn carries_payload(self) -> bool {
        matches!(self, Kind::Data | Kind::DataFin | Kind::Datagram)
    }

    /// True if the packet travels from the sender to the receiver.
    pub fn is_forward(self) -> bool {
        matches!(
            self,
            Kind::Syn
                | Kind::Data
                | Kind::DataFin
                | Kind::Fin
                | Kind::LastAck
                | Kind::ServerSynAck
                | Kind::Datagram
                | Kind::WindowProbe
        )
    }
}

/// The two ECN bits of the IP header (RFC 3168 section 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ecn {
    /// Not-ECT: the transport does not support ECN.
    #[default]
    NotEct,
    /// ECT(0).
    Ect0,
    /// ECT(1).
    Ect1,
    /// CE: a router has experienced congestion.
    Ce,
}

impl Ecn {
    /// The codepoint of the two lowest bits.
    #[inline(always)]
    fn of_bits(bits: u16) -> Ecn {
        match bits & 3 {
            0 => Ecn::NotEct,
            1 => Ecn::Ect0,
            2 => Ecn::Ect1,
            _ => Ecn::Ce,
        }
    }

    /// ECN bits of SYNs and ACKs without data. RFC 3168 sections 6.1.1 and 6.1.4 forbid ECT; transports with accurate
    /// feedback may have such packets marked instead of dropped, as Linux does with DCTCP.
    #[inline]
    pub fn of_control(mode: EcnMode) -> Ecn {
        match mode {
            EcnMode::Off | EcnMode::Classic => Ecn::NotEct,
            EcnMode::Dctcp | EcnMode::Accurate => Ecn::Ect0,
            EcnMode::L4s => Ecn::Ect1,
        }
    }
}

/// Flags of a packet: its ECN bits, the echo of ECN marks, retransmitted (or, of an ACK, DSACK), a larger
/// receive buffer, corrupted in transit, the ECN bits below a tunnel's header, and the part of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(u16);

impl Flags {
    /// No flag.
    pub const NONE: Flags = Flags(0);
    /// The echo counts modulo this.
    pub const ECHO_MODULUS: u8 = 64;
    const ECHO: u16 = 0x3f;
    const ECN_SHIFT: u32 = 6;
    const ECN: u16 = 3 << Flags::ECN_SHIFT;
    /// DSACK in an ACK; retransmitted in all others.
    const REPEATS: u16 = 1 << 8;
    /// Larger receive buffer, in an ACK.
    const OPENED: u16 = 1 << 9;
    const CORRUPTED: u16 = 1 << 10;
    const INNER_SHIFT: u32 = 11;
    const PART_SHIFT: u32 = 13;
    /// Parts of a segment that an ACK can tell apart.
    pub const PARTS: u32 = 8;

    /// Flags of a packet with these ECN bits.
    #[inline(always)]
    pub fn of(ecn: Ecn) -> Flags {
        Flags::NONE.with_ecn(ecn)
    }

    /// Set the ECN bits.
    #[inline(always)]
    #[must_use]
    pub fn with_ecn(self, ecn: Ecn) -> Flags {
        Flags(self.0 & !Flags::ECN | (ecn as u16) << Flags::ECN_SHIFT)
    }

    /// Set the echo, taken modulo [`Flags::ECHO_MODULUS`].
    #[inline(always)]
    #[must_use]
    pub fn with_echo(self, echo: u8) -> Flags {
        Flags(self.0 & !Flags::ECHO | u16::from(echo % Flags::ECHO_MODULUS))
    }

    /// Set or clear the flag of a retransmission, in a packet other than an ACK.
    #[inline(always)]
    #[must_use]
    pub fn with_retransmitted(self, retransmitted: bool) -> Flags {
        self.with(Flags::REPEATS, retransmitted)
    }

    /// Set or clear DSACK, in an ACK.
    #[inline(always)]
    #[must_use]
    pub fn with_dsack(self, dsack: bool) -> Flags {
        self.with(Flags::REPEATS, dsack)
    }

    /// Set or clear the flag of a larger receive buffer, in an ACK.
    #[inline(always)]
    #[must_use]
    pub fn with_opened(self, opened: bool) -> Flags {
        self.with(Flags::OPENED, opened)
    }

    /// Set the DS codepoint of a program's packet, which has no echo: the same bits.
    #[must_use]
    pub fn with_dscp(self, dscp: u8) -> Flags {
        self.with_echo(dscp)
    }

    /// The DS codepoint of a program's packet.
    pub fn dscp(self) -> u8 {
        self.echo()
    }

    #[inline(always)]
    fn with(self, flag: u16, is_set: bool) -> Flags {
        Flags(self.0 & !flag | (u16::from(is_set) * flag))
    }

    /// The ECN bits.
    #[inline(always)]
    pub fn ecn(self) -> Ecn {
        Ecn::of_bits(self.0 >> Flags::ECN_SHIFT)
    }

    /// Set the ECN bits of the header inside a tunnel.
    #[must_use]
    pub fn with_inner_ecn(self, ecn: Ecn) -> Flags {
        Flags(self.0 & !(3 << Flags::INNER_SHIFT) | (ecn as u16) << Flags::INNER_SHIFT)
    }

    /// The ECN bits of the header inside a tunnel.
    pub fn inner_ecn(self) -> Ecn {
        Ecn::of_bits(self.0 >> Flags::INNER_SHIFT)
    }

    /// Set how much of the next segment an ACK acknowledges, in [`Flags::PARTS`]; less than all.
    #[must_use]
    pub fn with_part(self, part: u32) -> Flags {
        let part = (part % Flags::PARTS) as u16;
        Flags(self.0 & !(7 << Flags::PART_SHIFT) | part << Flags::PART_SHIFT)
    }

    /// Part of the next segment that an ACK acknowledges, in [`Flags::PARTS`].
    #[inline(always)]
    pub fn part(self) -> u32 {
        u32::from(self.0 >> Flags::PART_SHIFT)
    }

    /// ACK: ECE (0 or 1), or with accurate feedback the number of marked packets that the receiver has seen,
    /// modulo [`Flags::ECHO_MODULUS`]. Data: CWR (0 or 1).
    #[inline(always)]
    pub fn echo(self) -> u8 {
        (self.0 & Flags::ECHO) as u8
    }

    /// True for retransmitted data, SYNs, SYN/ACKs and requests.
    #[inline(always)]
    pub fn is_retransmitted(self) -> bool {
        self.0 & Flags::REPEATS != 0
    }

    /// True if the first block of an ACK reports a duplicate (RFC 2883).
    #[inline(always)]
    pub fn has_dsack(self) -> bool {
        self.0 & Flags::REPEATS != 0
    }

    /// True if the receive buffer has grown since the ACK before.
    #[inline(always)]
    pub fn has_opened(self) -> bool {
        self.0 & Flags::OPENED != 0
    }
}

/// Bits of a segment number in [`Packet::sequence`]: a terasegment, more than a run can send.
const NUMBER_BITS: u32 = 40;
/// Largest window of an ACK, in segments: with full-sized ones beyond the 1 GiB of RFC 7323 section 2.3. A receiver
/// without a limit advertises it.
pub const MAX_WINDOW: u64 = (1 << (64 - NUMBER_BITS)) - 1;

/// Value of [`Packet::sequence`] in an ACK: the next segment expected, and a window of so many segments from there, at
/// most [`MAX_WINDOW`].
#[inline(always)]
pub fn acknowledgement(next: u64, window: u64) -> u64 {
    next | window << NUMBER_BITS
}

/// Value of [`Packet::attachment`] without one.
pub const NO_ATTACHMENT: u32 = u32::MAX;

/// A packet in transit. Sequence numbers count segments, from 0 for the first data segment.
///
/// The order of the fields is that of memory: the field that changes in transit ([`Packet::wire_bytes`]) and the one
/// that distinguishes a packet from none (`kind`) lie between pieces that are copied in words. A piece that is no
/// multiple of a word is copied in two that overlap, and to read it back then means to wait for both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Packet {
    /// Data: its segment number. Packets of the receiver: an [`acknowledgement`].
    pub sequence: u64,
    /// Data: when it was sent (the timestamp option's value). ACK: the echo of it.
    pub timestamp: Time,
    /// Time at which it entered the present queue; set by the link.
    pub enqueued: Time,
    /// The connection.
    pub flow: u32,
    /// Slot of what does not fit into a packet, its SACK blocks and its captured frame; or [`NO_ATTACHMENT`].
    pub attachment: u32,
    /// Size on the wire, headers, options and frame included.
    pub wire_bytes: u32,
    /// Its kind.
    pub kind: Kind,
    /// Position on its path: the index of the hop it is in or heading to.
    pub hop: u8,
    /// ECN bits, header flags, and whether it is corrupted.
    pub flags: Flags,
}

/// Placeholder where there is no packet.
pub const NO_PACKET: Packet = Packet {
    sequence: 0,
    timestamp: Time::ZERO,
    enqueued: Time::ZERO,
    flow: 0,
    attachment: NO_ATTACHMENT,
    wire_bytes: 0,
    kind: Kind::Ack,
    hop: 0,
    flags: Flags::NONE,
};

impl Packet {
    /// Data: its segment number. ACK: the next segment expected.
    #[inline(always)]
    pub fn number(&self) -> u64 {
        self.sequence & ((1 << NUMBER_BITS) - 1)
    }

    /// Window that an ACK advertises, in segments from the next one expected.
    #[inline(always)]
    pub fn window(&self) -> u64 {
        self.sequence >> NUMBER_BITS
    }

    /// The ECN bits.
    #[inline(always)]
    pub fn ecn(&self) -> Ecn {
        self.flags.ecn()
    }

    /// Corrupt the packet: its destination will discard it for its checksum. It is no longer ECN-capable, so that
    /// disciplines count no mark which nobody will see.
    #[inline]
    pub fn corrupt(&mut self) {
        self.flags = Flags(self.flags.0 | Flags::CORRUPTED).with_ecn(Ecn::NotEct);
    }

    /// True if the packet is corrupted.
    #[inline(always)]
    pub fn is_corrupted(&self) -> bool {
        self.flags.0 & Flags::CORRUPTED != 0
    }

    /// The packet as it enters a queue; before that, a separate copy in memory, as [`Packet::for_record`],
    /// in which only the time of entering differs, which has not been read yet.
    #[inline(always)]
    #[must_use]
    pub fn entering(&self, now: Time) -> Packet {
        Packet {
            enqueued: now,
            ..*self
        }
    }

    /// Copy with separate memory, for rare paths. A packet to which nothing refers
    /// stays in registers from the sender into the queue; one that is read back from memory just after it
    /// was written waits for all writes before it.
    #[inline(always)]
    #[must_use]
    pub fn for_record(&self) -> Packet {
        Packet {
            hop: u8::MAX,
            ..*self
        }
    }

    /// Append the packet to the packet log.
    pub fn log(&self, now: Time, link: u32, action: PacketAction, log: &mut Packets) {
        log.time_s.push(now.seconds());
        log.flow.push(self.flow);
        log.link.push(link);
        log.kind.push(self.kind as u8);
        log.sequence.push(self.number());
        log.wire_bytes.push(self.wire_bytes);
        log.what.push(action as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_acknowledgement_holds_the_next_segment_and_the_window() {
        for (next, window) in [
            (0, 0),
            (0, MAX_WINDOW),
            ((1 << NUMBER_BITS) - 1, 1),
            (7, 45),
        ] {
            let ack = Packet {
                sequence: acknowledgement(next, window),
                ..NO_PACKET
            };
            assert_eq!((ack.number(), ack.window()), (next, window));
        }
    }

    #[test]
    fn the_window_makes_a_packet_no_larger() {
        assert_eq!(size_of::<Packet>(), 40);
    }
}
