//! Packets of programs: they come from outside with their bytes, cross the network, and leave it again.
//!
//! What the simulation knows of such a packet is its size, its DS field and what it carries for the counts. Each
//! connection of the programs is a flow of its own, so that a discipline tells them apart.

use ackclock_core::Time;

use crate::packet::Ecn;

/// End of a flow at which a packet enters or leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowEnd {
    /// The sender's, where the data of a scenario's flows come from.
    Sender,
    /// The receiver's.
    Receiver,
}

/// A program's IP packet.
#[derive(Clone, Debug)]
pub struct ExternalPacket {
    /// The packet from its IP header on.
    pub bytes: Vec<u8>,
    /// Payload of its transport, bytes.
    pub payload_bytes: u32,
    /// Its ECN bits.
    pub ecn: Ecn,
    /// Its DS codepoint (RFC 2474).
    pub dscp: u8,
    /// A number of the caller's, which comes back with the packet.
    pub tag: u32,
}

/// A packet that has crossed the network.
#[derive(Clone, Debug)]
pub struct Delivered {
    /// Time at which it entered.
    pub sent: Time,
    /// Time at which it leaves, which may be later than the simulation's.
    pub due: Time,
    /// The end at which it leaves.
    pub end: FlowEnd,
    /// The packet, with the ECN bits that it has now.
    pub packet: ExternalPacket,
}
