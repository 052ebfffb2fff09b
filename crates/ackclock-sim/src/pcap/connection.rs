//! State for the frames of a connection: byte sequence numbers, options, and what each end has received.

use ackclock_core::Time;
use ackclock_plan::{EcnMode, FlowPlan, TIMESTAMPS_BYTES};

use super::frame::{Frame, Options, Segment, ACK, AE, CWR, ECE, FIN, SYN};
use super::ground_truth::Header;
use super::numbers::Numbers;
use crate::options::{Block, MAX_BLOCKS};
use crate::packet::{Flags, Kind, Packet};
use crate::receiver::ranges::Ranges;
use crate::workload::Workload;

/// The largest window scale (RFC 7323 section 2.3).
const SHIFT_MAX: u8 = 14;
/// IPv4 and TCP headers without options, bytes.
const HEADER_BYTES: u32 = 40;

/// A connection with the state of both ends.
#[derive(Clone, Debug)]
pub struct Connection {
    workload: Workload,
    /// Bytes of the receiver's request.
    request_bytes: u32,
    mss: u16,
    sack: bool,
    timestamps: bool,
    ecn: EcnMode,
    /// Payload of a full segment, and headers of every one.
    segment_bytes: u64,
    header_bytes: u32,
    /// The sender's receive window: nothing fills it.
    sender_window: u64,
    shift: u8,
    /// Initial numbers of both ends; the identifications are those of the next packets.
    numbers: Numbers,
    /// The newest timestamp from the receiver, for the sender to echo, ms.
    echo_ms: u32,
    /// True once the receiver's FIN has arrived.
    closing: bool,
    /// Kinds of packets that the receiver has sent, and that have reached their destination: a bit each.
    sent_and_arrived: u16,
    arrived: u16,
    /// Next segment that the receiver expects, and the ranges above it.
    next: u64,
    above: Ranges,
}

impl Connection {
    /// A connection that begins.
    pub fn new(plan: &FlowPlan, numbers: Numbers) -> Connection {
        let tcp = &plan.tcp;
        let window = tcp.receive_window_bytes.unwrap_or(u64::MAX);
        let shift = (0..SHIFT_MAX)
            .find(|shift| window >> shift <= 0xffff)
            .unwrap_or(SHIFT_MAX);
        // RFC 6691: the option is the payload without TCP options, whose bytes each segment subtracts.
        let option_bytes = u32::from(tcp.timestamps) * TIMESTAMPS_BYTES;
        Connection {
            workload: Workload::new(plan),
            request_bytes: plan.request_bytes.unwrap_or(0),
            mss: saturated(u64::from(tcp.mss_bytes.saturating_add(option_bytes))),
            sack: tcp.sack,
            timestamps: tcp.timestamps,
            ecn: tcp.ecn,
            segment_bytes: u64::from(tcp.mss_bytes),
            header_bytes: tcp.segment_header_bytes(),
            sender_window: window,
            shift,
            numbers,
            echo_ms: 0,
            closing: false,
            sent_and_arrived: 0,
            arrived: 0,
            next: 0,
            above: Ranges::default(),
        }
    }

    /// Value and echo of the timestamp option; the echo of an opening packet is zero.
    fn timestamps(&self, packet: &Packet) -> Option<(u32, u32)> {
        let Numbers { sender, receiver } = &self.numbers;
        let stamps = match packet.kind {
            Kind::ClientSyn => (receiver.shown(packet.enqueued), 0),
            kind if kind.is_forward() => (sender.shown(packet.timestamp), self.echo_ms),
            _ => (
                receiver.shown(packet.enqueued),
                sender.shown(packet.timestamp),
            ),
        };
        self.timestamps.then_some(stamps)
    }

    fn options<'a>(
        &self,
        packet: &Packet,
        sack: &'a [(u32, u32)],
        payload_bytes: u32,
    ) -> Options<'a> {
        let opens = packet.kind.opens();
        let option_bytes = packet
            .wire_bytes
            .saturating_sub(HEADER_BYTES + payload_bytes);
        Options {
            mss: opens.then_some(self.mss),
            sack_permitted: opens && self.sack,
            window_shift: opens.then_some(self.shift),
            timestamps: self.timestamps(packet),
            sack,
            min_bytes: option_bytes as usize,
        }
    }

    fn payload_bytes(&self, packet: &Packet) -> u32 {
        match packet.kind {
            Kind::Data | Kind::DataFin => self.workload.payload_bytes(packet.sequence) as u32,
            Kind::Request => self.request_bytes,
            _ => 0,
        }
    }

    /// Sequence and acknowledgement number, from the initial ones on. The receiver's bytes are its SYN, number 0, its
    /// request, from 1 on, and its FIN.
    fn counts_of(&self, packet: &Packet) -> (u32, u32) {
        let first = byte(packet.number(), &self.workload);
        let asked = 1 + self.request_bytes;
        match packet.kind {
            Kind::Syn | Kind::ClientSyn | Kind::Datagram | Kind::Echo => (0, 0),
            Kind::SynAck | Kind::ServerSynAck => (0, 1),
            Kind::Data | Kind::DataFin | Kind::Fin => (first, asked),
            Kind::Ack | Kind::FinAck => (asked, first.wrapping_add(self.part_bytes(packet))),
            // As Linux's: no byte, below the window.
            Kind::WindowProbe => (first.wrapping_sub(1), asked),
            Kind::LastAck if self.closing => (byte(self.workload.end, &self.workload), asked + 1),
            Kind::LastAck | Kind::Request => (1, 1),
        }
    }

    /// Bytes of the next segment that an ACK acknowledges.
    fn part_bytes(&self, packet: &Packet) -> u32 {
        match packet.flags.part() {
            0 => 0,
            part => self.workload.payload_bytes(packet.number()) as u32 * part / Flags::PARTS,
        }
    }

    /// Record that the receiver sends a packet of this kind; returns True for the first one.
    pub fn sends_first(&mut self, kind: Kind) -> bool {
        is_first(&mut self.sent_and_arrived, kind)
    }

    /// Compose the frame of a packet that one of the ends sends; `blocks` are its SACK blocks. Returns its header
    /// fields.
    pub fn compose(&mut self, packet: &Packet, blocks: &[Block], frame: &mut Frame) -> Header {
        if matches!(packet.kind, Kind::DataFin | Kind::Fin) {
            self.workload.on_end(packet);
        }
        if packet.kind.carries_payload() && self.workload.has_messages() {
            let bytes = packet.wire_bytes.saturating_sub(self.header_bytes);
            self.workload.learn(packet.sequence, u64::from(bytes));
        }
        let mut sack = [(0, 0); MAX_BLOCKS];
        let count = blocks.len().min(MAX_BLOCKS);
        for (edges, (left, right)) in sack.iter_mut().zip(blocks) {
            let edge = |segment: &u64| {
                let first = self.numbers.sender.sequence;
                first.wrapping_add(byte(*segment, &self.workload))
            };
            *edges = (edge(left), edge(right));
        }
        let payload_bytes = self.payload_bytes(packet);
        let (sequence, acknowledgement) = self.numbers_of(packet);
        let segment = Segment {
            flow: packet.flow,
            forward: packet.kind.is_forward(),
            flags: flags(packet.kind) | ecn_flags(packet, self.ecn, !self.closing),
            sequence,
            acknowledgement,
            window: self.window_field(packet),
            payload_bytes,
            identification: self.identification(packet),
            options: self.options(packet, &sack[..count], payload_bytes),
        };
        frame.set_segment(&segment)
    }

    /// The window field: that of a SYN is not scaled (RFC 7323 section 2.2), all others are rounded up to the scale.
    fn window_field(&self, packet: &Packet) -> u16 {
        let bytes = if packet.kind.is_forward() {
            self.sender_window
        } else {
            packet.window() * self.segment_bytes
        };
        if packet.kind.opens() {
            saturated(bytes)
        } else {
            saturated(bytes.div_ceil(1 << self.shift))
        }
    }

    /// The sequence and acknowledgement number in the header.
    fn numbers_of(&self, packet: &Packet) -> (u32, u32) {
        let Numbers { sender, receiver } = &self.numbers;
        let (own, other) = if packet.kind.is_forward() {
            (sender.sequence, receiver.sequence)
        } else {
            (receiver.sequence, sender.sequence)
        };
        let (sequence, acknowledgement) = self.counts_of(packet);
        let acknowledges = flags(packet.kind) & ACK != 0;
        (
            own.wrapping_add(sequence),
            u32::from(acknowledges) * other.wrapping_add(acknowledgement),
        )
    }

    /// Next identification: each end counts its packets, as Linux does for a connection.
    fn identification(&mut self, packet: &Packet) -> u16 {
        let counter = if packet.kind.is_forward() {
            &mut self.numbers.sender.identification
        } else {
            &mut self.numbers.receiver.identification
        };
        let identification = *counter;
        *counter = counter.wrapping_add(1);
        identification
    }

    /// Handle the arrival of a packet sent at `sent`. Returns whether it is the first copy of what it carries.
    pub fn on_arrival(&mut self, packet: &Packet, sent: Time) -> bool {
        if !packet.kind.is_forward() {
            self.echo_ms = self.numbers.receiver.shown(sent);
            self.closing |= packet.kind == Kind::FinAck;
        }
        match packet.kind {
            kind if kind.is_segment() => self.is_new(packet.sequence),
            Kind::Ack | Kind::LastAck | Kind::WindowProbe => true,
            kind => is_first(&mut self.arrived, kind),
        }
    }

    /// Record a segment that reaches the receiver; returns True if it is new.
    fn is_new(&mut self, segment: u64) -> bool {
        if segment < self.next || self.above.range_of(segment).is_some() {
            return false;
        }
        if segment == self.next {
            self.next = self.above.follow(segment + 1);
        } else {
            self.above.keep(segment);
        }
        true
    }
}

/// Set the bit of a kind; returns True if it was clear.
fn is_first(kinds: &mut u16, kind: Kind) -> bool {
    let bit = 1 << kind as u8;
    let is_first = *kinds & bit == 0;
    *kinds |= bit;
    is_first
}

/// RFC 9768 section 3.2.1: the counter of marked packets begins at this number.
const FIRST_COUNT: u16 = 5;

/// RFC 9768 table 2 and section 3.2.2.1: SYN/ACK and the ACK of it reflect the ECN bits of what they answer, Not-ECT
/// here.
const NOT_ECT: u16 = 0b010;

/// The flags of RFC 3168 section 6.1, or the counter in their place (RFC 9768 section 3.2.2), which begins at 5;
/// `is_open`: the connection is not closing.
fn ecn_flags(packet: &Packet, ecn: EcnMode, is_open: bool) -> u16 {
    let echo = u16::from(packet.flags.echo());
    match (ecn, packet.kind) {
        (EcnMode::Off, _) => 0,
        (EcnMode::Classic | EcnMode::Dctcp, Kind::Syn | Kind::ClientSyn) => ECE | CWR,
        (EcnMode::Classic | EcnMode::Dctcp, Kind::SynAck | Kind::ServerSynAck) => ECE,
        (EcnMode::Classic | EcnMode::Dctcp, kind) if kind.is_segment() => CWR * echo,
        (EcnMode::Classic | EcnMode::Dctcp, _) => ECE * echo,
        (EcnMode::Accurate | EcnMode::L4s, Kind::Syn | Kind::ClientSyn) => AE | CWR | ECE,
        (EcnMode::Accurate | EcnMode::L4s, Kind::SynAck | Kind::ServerSynAck) => NOT_ECT * ECE,
        (EcnMode::Accurate | EcnMode::L4s, Kind::LastAck) if is_open => NOT_ECT * ECE,
        (EcnMode::Accurate | EcnMode::L4s, _) => (FIRST_COUNT + echo) % 8 * ECE,
    }
}

fn flags(kind: Kind) -> u16 {
    match kind {
        Kind::Syn | Kind::ClientSyn => SYN,
        Kind::SynAck | Kind::ServerSynAck => SYN | ACK,
        Kind::Data | Kind::Ack | Kind::LastAck | Kind::Request | Kind::WindowProbe => ACK,
        Kind::DataFin | Kind::Fin | Kind::FinAck => FIN | ACK,
        Kind::Datagram | Kind::Echo => 0,
    }
}

/// Number of the first byte of a segment; after the last one the FIN has taken one.
fn byte(segment: u64, workload: &Workload) -> u32 {
    let fin = u64::from(segment >= workload.end);
    (1 + workload.payload_before(segment) + fin) as u32
}

fn saturated(value: u64) -> u16 {
    u16::try_from(value).unwrap_or(u16::MAX)
}
