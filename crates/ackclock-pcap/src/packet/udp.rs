//! The UDP header (RFC 768), and what QUIC shows of itself behind it.

use super::dissector::{u16_at, Dissector};
use super::quic::{self, QuicHeaders};
use super::{tcp, Endpoint, Skipped};
use crate::framing::Record;

/// The number of UDP in an IP header.
pub const PROTOCOL: u8 = 17;
/// The length of the header.
const HEADER_BYTES: u32 = 8;

/// A captured UDP datagram. Plain data: it is copied and owns nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Datagram {
    /// Nanoseconds since 1970, if the file has timestamps.
    pub time_ns: Option<i64>,
    /// The index of its file.
    pub file: u32,
    /// The index of the file's interface.
    pub interface: u32,
    /// Identifies the capture point on the host, as that of a segment.
    pub place: u32,
    /// True if the capturing host sent it, if the capture records it.
    pub outbound: Option<bool>,
    /// The sender.
    pub source: Endpoint,
    /// The receiver.
    pub destination: Endpoint,
    /// The length of its payload, captured or not.
    pub payload_bytes: u32,
    /// The length of its IP packet, captured or not; of a fragmented one, of its first fragment.
    pub packet_bytes: u32,
    /// IPv4's identification, or that of an IPv6 fragment.
    pub identification: Option<u32>,
    /// TTL or hop limit.
    pub hops: u8,
    /// The ECN field of the IP header (RFC 3168).
    pub ecn: u8,
    /// The checksum field, which differs between most datagrams of the same ends.
    pub checksum_field: u16,
    /// Its payload, read as QUIC.
    pub quic: QuicHeaders,
    /// The same datagram was captured before, on another interface or in the other direction.
    pub duplicate: bool,
}

/// Decode the UDP datagram at the dissector's position.
pub fn datagram(
    dissector: &Dissector,
    record: &Record,
    datagram: &mut Datagram,
) -> Result<(), Skipped> {
    let header = dissector.peek::<{ HEADER_BYTES as usize }>()?;
    let length = match u32::from(u16_at(header, 4)) {
        0 => dissector.length, // a jumbogram, or left to the network card
        length => length,
    };
    if length < HEADER_BYTES || (length > dissector.length && !dissector.fragmented) {
        return Err(Skipped::Malformed);
    }
    let captured = dissector.bytes.len().min(length as usize);
    let payload = &dissector.bytes[HEADER_BYTES as usize..captured];
    let payload_bytes = length - HEADER_BYTES;
    let interface = dissector.kernel_interface.unwrap_or(record.interface);
    let [source, destination] = dissector.endpoints(header);
    *datagram = Datagram {
        time_ns: record.time_ns,
        file: 0,
        interface,
        place: tcp::place(interface, dissector.outbound, dissector.link_tag),
        outbound: dissector.outbound,
        source,
        destination,
        payload_bytes,
        packet_bytes: dissector.ip.packet_bytes,
        identification: dissector.ip.identification,
        hops: dissector.ip.hops,
        ecn: dissector.ip.ecn,
        checksum_field: u16_at(header, 6),
        quic: quic::headers(payload, payload_bytes),
        duplicate: false,
    };
    Ok(())
}
