//! The two ends of a flow that is not TCP, and what its datagrams carry.
//!
//! An end is a state machine: packets come in with [`Endpoint::on_packet`], and leave by [`Endpoint::poll`] when they
//! are due. It has one timer, [`Endpoint::wake`]. What a packet carries for the other end is opaque to the network.

use ackclock_congestion::Variables;
use ackclock_core::tables::Tables;
use ackclock_core::Time;
use ackclock_quic::Transport;

use crate::external::{Delivered, ExternalPacket};
use crate::packet::{Flags, Kind, Packet, NO_PACKET};
use crate::rtp::{Report, RtpHeader};

/// Content of a packet, which the network does not read.
#[derive(Clone, Debug)]
pub enum Payload {
    /// A piece of a video frame.
    Rtp(RtpHeader),
    /// A report of received packets.
    Report(Box<Report>),
    /// A datagram of QUIC.
    Quic(Vec<u8>),
    /// A program's IP packet.
    External(Box<ExternalPacket>),
}

/// A packet that an end sends.
#[derive(Debug)]
pub struct Outgoing {
    /// Its number; of an echo, that of the packet which it answers.
    pub sequence: u64,
    /// When it was sent; of an echo, when the packet was which it answers.
    pub timestamp: Time,
    /// Size of the IP packet.
    pub wire_bytes: u32,
    /// ECN bits.
    pub flags: Flags,
    /// Content for the other end.
    pub payload: Option<Payload>,
}

impl Outgoing {
    /// The packet in the network.
    pub fn packet(&self, flow: u32, kind: Kind, now: Time) -> Packet {
        Packet {
            sequence: self.sequence,
            timestamp: self.timestamp,
            enqueued: now,
            flow,
            wire_bytes: self.wire_bytes,
            kind,
            flags: self.flags,
            ..NO_PACKET
        }
    }
}

/// One end of a flow.
pub trait Endpoint: Send + Sync {
    /// Time of the next packet or of a timer; [`Time::NEVER`] if there is none.
    fn wake(&self) -> Time;
    /// The next packet that is due at `now`, if there is one. It may run a timer without sending anything.
    fn poll(&mut self, now: Time) -> Option<Outgoing>;
    /// A packet has arrived.
    fn on_packet(&mut self, packet: &Packet, payload: Option<Payload>, now: Time);
    /// Payload bytes that have arrived, those of duplicates once.
    fn delivered_bytes(&self) -> u64 {
        0
    }
    /// The last round-trip time, where it is measured.
    fn rtt(&self) -> Option<Time> {
        None
    }
    /// State of a transport with a congestion window.
    fn transport(&self) -> Option<Transport> {
        None
    }
    /// Take what the transport has logged since the last call.
    fn take_log(&mut self) -> Vec<u8> {
        Vec::new()
    }
    /// Why and when a circuit breaker stopped it, if one did: the value of its event, and the time.
    fn ceased(&self) -> Option<(f64, Time)> {
        None
    }
    /// The variables of its congestion control, if it has one that shows them.
    fn control_variables(&self) -> Option<Variables> {
        None
    }
    /// A program's packet enters here at `now`; an end of another flow takes none.
    fn enter(&mut self, packet: ExternalPacket, now: Time) {
        let _ = (packet, now);
    }
    /// Move the programs' packets that leave here to `all`.
    fn take_delivered(&mut self, all: &mut Vec<Delivered>) {
        let _ = all;
    }
    /// Append the rows that it has collected, up to the time `until`.
    fn write_rows(&mut self, flow: u32, until: Time, tables: &mut Tables) {
        let _ = (flow, until, tables);
    }
}
