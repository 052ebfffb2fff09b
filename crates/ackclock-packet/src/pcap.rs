//! A packet capture of the senders' side, readable by tcpdump and Wireshark.
//!
//! The simulator counts segments; a capture counts bytes. Initial sequence numbers are 0, so the first
//! data byte is number 1 (RFC 9293 section 3.4), and numbers wrap at 2^32. Timestamps tick each millisecond of
//! simulated time, as Linux's do. Each flow has its own pair of addresses, 10.0.0.0/9 the senders and
//! 10.128.0.0/9 the receivers.
//!
//! Deviations:
//! - Frames have an Ethernet header whatever the links' frame overhead.
//! - A block that reports a duplicate (RFC 2883) is padding: the simulated ACK says only that there is one.
//! - The value of an ACK's timestamp is the time at which it entered its last queue on the path back, or left
//!   the receiver if it met none.

use std::collections::BTreeMap;

use ackclock_capture::savefile;
use ackclock_plan::{EcnMode, FlowPlan, TIMESTAMPS_BYTES};
use ackclock_units::Time;

use crate::options::{Block, Blocks, MOST_BLOCKS};
use crate::packet::{Kind, Packet};
use crate::workload::Workload;

mod frame;

use frame::{Options, Segment, ACK, AE, CWR, ECE, FIN, SYN};

/// The largest window scale (RFC 7323 section 2.3).
const SHIFT_MAX: u8 = 14;
/// IPv4 and TCP headers without options, bytes.
const HEADER_BYTES: u32 = 40;

/// Packets written down as they pass the senders' interfaces.
#[derive(Debug)]
pub struct Capture {
    bytes: Vec<u8>,
    /// By flow.
    connections: BTreeMap<u32, Connection>,
}

/// What a capture knows of a connection.
#[derive(Clone, Copy, Debug)]
struct Connection {
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
}

impl Connection {
    fn new(plan: &FlowPlan) -> Connection {
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

    /// Learns from a packet that has been written down.
    fn follow(&mut self, packet: &Packet) {
        if !packet.kind.is_forward() {
            self.echo_ms = milliseconds(packet.enqueued);
        }
        self.closing |= packet.kind == Kind::FinAck;
    }
}

/// RFC 9768 section 3.2.1: the counter of marked packets begins at this number.
const FIRST_COUNT: u16 = 5;

impl Capture {
    /// A capture without frames.
    pub fn empty() -> Capture {
        Capture {
            bytes: savefile::header(),
            connections: BTreeMap::new(),
        }
    }

    /// A connection begins.
    pub fn open(&mut self, flow: u32, plan: &FlowPlan) {
        self.connections.insert(flow, Connection::new(plan));
    }

    /// The last packet of a flow was recorded.
    pub fn close(&mut self, flow: u32) {
        self.connections.remove(&flow);
    }

    /// The bytes since the last call; those of the first call begin with the file's header.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }

    /// Writes down a packet that leaves or reaches its sender at `now`. Its `wire_bytes` are those of the IP
    /// packet; `blocks` are the ACK's SACK blocks.
    pub fn record_packet(&mut self, packet: &Packet, blocks: Option<&Blocks>, now: Time) {
        self.record(packet, blocks.map_or(&[], Blocks::as_slice), now);
    }

    fn record(&mut self, packet: &Packet, blocks: &[Block], now: Time) {
        if matches!(packet.kind, Kind::Datagram | Kind::Echo) {
            return frame::append_datagram(&mut self.bytes, packet, now);
        }
        let Some(connection) = self.connections.get_mut(&packet.flow) else {
            return;
        };
        if packet.kind == Kind::Fin {
            connection.workload.end_at(packet.sequence);
        }
        let workload = &connection.workload;
        let mut sack = [(0, 0); MOST_BLOCKS];
        let count = blocks.len().min(MOST_BLOCKS);
        for (edges, (left, right)) in sack.iter_mut().zip(blocks) {
            *edges = (byte(*left, workload), byte(*right, workload));
        }
        let payload_bytes = connection.payload_bytes(packet);
        let (sequence, acknowledgement) = connection.numbers(packet);
        let (of_syn, of_others) = connection.windows;
        let segment = Segment {
            time: now,
            flow: packet.flow,
            forward: packet.kind.is_forward(),
            flags: flags(packet.kind) | ecn_flags(packet, connection.ecn),
            sequence,
            acknowledgement,
            window: if flags(packet.kind) & SYN == 0 {
                of_others
            } else {
                of_syn
            },
            payload_bytes,
            ecn: packet.ecn,
            options: connection.options(packet, &sack[..count], payload_bytes),
        };
        frame::append(&mut self.bytes, &segment);
        connection.follow(packet);
    }
}

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

#[cfg(test)]
mod reading;
#[cfg(test)]
mod tests;
