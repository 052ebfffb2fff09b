//! Contents of the packets of real-time media: RTP packets of the sender, and reports of the receiver (RFC 8888).

use ackclock_core::Time;

/// The frame of an RTP packet, and the packet's place in it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RtpHeader {
    /// Number of the frame.
    pub frame: u64,
    /// When the frame was captured.
    pub captured: Time,
    /// Position of the packet in the frame.
    pub index: u32,
    /// Packets of the frame.
    pub packets: u32,
    /// Payload of this packet.
    pub payload_bytes: u32,
}

/// The arrival of a packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Arrival {
    /// When it arrived.
    pub time: Time,
    /// True if it arrived with CE.
    pub marked: bool,
}

/// A report of received packets.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// Number of the first packet that it reports.
    pub first: u64,
    /// Arrivals from there on; `None` if a packet has not arrived.
    pub arrivals: Vec<Option<Arrival>>,
    /// When it was sent.
    pub sent: Time,
}
