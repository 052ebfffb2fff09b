//! What the frames of a connection need to know: numbers in bytes, options, what each end has heard of the other.

use ackclock_plan::{EcnMode, FlowPlan, TIMESTAMPS_BYTES};
use ackclock_units::Time;

use super::frame::{Frame, Options, Segment, ACK, AE, CWR, ECE, FIN, SYN};
use crate::options::{Block, MOST_BLOCKS};
use crate::packet::{Kind, Packet};
use crate::workload::Workload;

/// The largest window scale (RFC 7323 section 2.3).
const SHIFT_MAX: u8 = 14;
/// IPv4 and TCP headers without options, bytes.
const HEADER_BYTES: u32 = 40;

/// A connection, as its two ends have it.
#[derive(Clone, Copy, Debug)]
pub struct Connection {
    workload: Workload,
    /// Bytes with which the receiver asks.
    request_bytes: u32,
    mss: u16,
    sack: bool,
    timestamps: bool,
    ecn: EcnMode,
    /// Window field of a SYN, which is not scaled, and of all others.
    windows: (u16, u16),
    shift: u8,
    /// The newest timestamp from the receiver, for the sender to echo, ms.
    echo_ms: u32,
    /// Whether the receiver's FIN has arrived.
    closing: bool,
    /// Packets that the sender and the receiver have sent: the identification of the next one.
    sent: (u16, u16),
}

impl Connection {
    /// A connection that begins.
    pub fn new(plan: &FlowPlan) -> Connection {
        let tcp = &plan.tcp;
        let window = tcp.receive_window_bytes.unwrap_or(u64::MAX);
        let shift = (0..SHIFT_MAX)
            .find(|shift| window >> shift <= 0xffff)
            .unwrap_or(SHIFT_MAX);
        // RFC 6691: the option says what fits without options; those of each segment come out of it.
        let option_bytes = u32::from(tcp.timestamps) * TIMESTAMPS_BYTES;
        Connection {
            workload: Workload::new(plan),
            request_bytes: plan.request_bytes.unwrap_or(0),
            mss: saturated(u64::from(tcp.mss_bytes.saturating_add(option_bytes))),
            sack: tcp.sack,
            timestamps: tcp.timestamps,
            ecn: tcp.ecn,
            windows: (saturated(window), saturated(window >> shift)),
            shift,
            echo_ms: 0,
            closing: false,
            sent: (0, 0),
        }
    }

    /// Value and echo of the timestamp option.
    fn timestamps(&self, packet: &Packet) -> Option<(u32, u32)> {
        let stamps = if packet.kind.is_forward() {
            (milliseconds(packet.timestamp), self.echo_ms)
        } else {
            (
                milliseconds(packet.enqueued),
                milliseconds(packet.timestamp),
            )
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
            least_bytes: option_bytes as usize,
        }
    }

    fn payload_bytes(&self, packet: &Packet) -> u32 {
        match packet.kind {
            Kind::Data => self.workload.payload_bytes(packet.sequence) as u32,
            Kind::Request => self.request_bytes,
            _ => 0,
        }
    }

    /// Sequence and acknowledgement number. The receiver's bytes are its SYN, number 0, its request, from 1 on, and
    /// its FIN.
    fn numbers(&self, packet: &Packet) -> (u32, u32) {
        let first = byte(packet.sequence, &self.workload);
        let asked = 1 + self.request_bytes;
        match packet.kind {
            Kind::Syn | Kind::ClientSyn | Kind::Datagram | Kind::Echo => (0, 0),
            Kind::SynAck | Kind::ServerSynAck => (0, 1),
            Kind::Data | Kind::Fin => (first, asked),
            Kind::Ack | Kind::FinAck => (asked, first),
            Kind::LastAck if self.closing => {
                let end = self.workload.segments().saturating_add(1);
                (byte(end, &self.workload), asked + 1)
            }
            Kind::LastAck | Kind::Request => (1, 1),
        }
    }

    /// Makes the frame of a packet that one of the ends sends; `blocks` are its SACK blocks.
    pub fn compose(&mut self, packet: &Packet, blocks: &[Block], frame: &mut Frame) {
        if packet.kind == Kind::Fin {
            self.workload.end_at(packet.sequence);
        }
        let mut sack = [(0, 0); MOST_BLOCKS];
        let count = blocks.len().min(MOST_BLOCKS);
        for (edges, (left, right)) in sack.iter_mut().zip(blocks) {
            *edges = (byte(*left, &self.workload), byte(*right, &self.workload));
        }
        let payload_bytes = self.payload_bytes(packet);
        let (sequence, acknowledgement) = self.numbers(packet);
        let (of_syn, of_others) = self.windows;
        let is_syn = flags(packet.kind) & SYN != 0;
        frame.set_segment(&Segment {
            flow: packet.flow,
            forward: packet.kind.is_forward(),
            flags: flags(packet.kind) | ecn_flags(packet, self.ecn),
            sequence,
            acknowledgement,
            window: if is_syn { of_syn } else { of_others },
            payload_bytes,
            identification: self.identification(packet),
            options: self.options(packet, &sack[..count], payload_bytes),
        });
    }

    /// Each end counts the packets that it sends, as Linux does for a connection.
    fn identification(&mut self, packet: &Packet) -> u16 {
        let counter = if packet.kind.is_forward() {
            &mut self.sent.0
        } else {
            &mut self.sent.1
        };
        let identification = *counter;
        *counter = counter.wrapping_add(1);
        identification
    }

    /// The sender learns from a packet that reaches it, and was sent at `sent`.
    pub fn hear(&mut self, packet: &Packet, sent: Time) {
        self.echo_ms = milliseconds(sent);
        self.closing |= packet.kind == Kind::FinAck;
    }
}

/// RFC 9768 section 3.2.1: the counter of marked packets begins at this number.
const FIRST_COUNT: u16 = 5;

/// The flags of RFC 3168 section 6.1, or the counter in their place (RFC 9768 section 3.2.2), which begins at 5.
fn ecn_flags(packet: &Packet, ecn: EcnMode) -> u16 {
    let echo = u16::from(packet.flags.echo());
    match (ecn, packet.kind) {
        (EcnMode::Off, _) => 0,
        (EcnMode::Classic | EcnMode::Dctcp, Kind::Syn | Kind::ClientSyn) => ECE | CWR,
        (EcnMode::Classic | EcnMode::Dctcp, Kind::SynAck | Kind::ServerSynAck) => ECE,
        (EcnMode::Classic | EcnMode::Dctcp, Kind::Data | Kind::Fin) => CWR * echo,
        (EcnMode::Classic | EcnMode::Dctcp, _) => ECE * echo,
        (EcnMode::Accurate | EcnMode::L4s, Kind::Syn | Kind::ClientSyn) => AE | CWR | ECE,
        // RFC 9768 table 2: the answer tells which ECN bits the SYN arrived with.
        (EcnMode::Accurate, Kind::SynAck | Kind::ServerSynAck) => AE,
        (EcnMode::L4s, Kind::SynAck | Kind::ServerSynAck) => CWR | ECE,
        (EcnMode::Accurate | EcnMode::L4s, _) => (FIRST_COUNT + echo) % 8 * ECE,
    }
}

fn flags(kind: Kind) -> u16 {
    match kind {
        Kind::Syn | Kind::ClientSyn => SYN,
        Kind::SynAck | Kind::ServerSynAck => SYN | ACK,
        Kind::Data | Kind::Ack | Kind::LastAck | Kind::Request => ACK,
        Kind::Fin | Kind::FinAck => FIN | ACK,
        Kind::Datagram | Kind::Echo => 0,
    }
}

/// Number of the first byte of a segment. The FIN, the segment after the data, takes one.
fn byte(segment: u64, workload: &Workload) -> u32 {
    let fin = u64::from(segment > workload.segments());
    (1 + workload.payload_before(segment) + fin) as u32
}

fn milliseconds(time: Time) -> u32 {
    (time.microseconds() / 1000) as u32
}

fn saturated(value: u64) -> u16 {
    u16::try_from(value).unwrap_or(u16::MAX)
}
