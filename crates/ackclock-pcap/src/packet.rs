//! Decoding of the TCP segment or UDP datagram in a captured frame, through tags, labels and tunnels.
//!
//! Dissects the headers layer by layer and copies only the fields that are needed: `etherparse` 0.20 supports neither SLL2,
//! MPLS, PPPoE, GRE, VXLAN, Geneve nor ERSPAN, and builds a description of each layer that would be discarded.
//!
//! Lengths are taken from the headers, not from the captured bytes.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

use crate::framing::Record;
use dissector::{Dissector, Layer};

pub use icmp::{error as icmp_error, IcmpError, IcmpKind};
pub use quic::{ConnectionId, PacketTypes, QuicHeaders};
pub use udp::Datagram;

mod checksum;
mod dissector;
mod fast_path;
mod icmp;
mod link;
mod network;
pub mod quic;
mod tcp;
mod tunnel;
mod udp;

/// The maximum number of layers, which bounds the dissection of malicious frames.
const MAX_LAYERS: usize = 24;

/// An IP address; IPv4 addresses are mapped (RFC 4291 section 2.5.5.2).
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address(pub u128);

impl Address {
    #[inline]
    fn v4(address: u32) -> Self {
        Self(0xffff << 32 | u128::from(address))
    }

    #[inline]
    fn v6(bytes: &[u8]) -> Self {
        let mut address = [0; 16];
        address.copy_from_slice(bytes);
        Self(u128::from_be_bytes(address))
    }

    /// Return the address as the standard library's type.
    pub fn ip(self) -> IpAddr {
        Ipv6Addr::from_bits(self.0).to_canonical()
    }
}

impl From<IpAddr> for Address {
    fn from(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => Self::v4(address.to_bits()),
            IpAddr::V6(address) => Self(address.to_bits()),
        }
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.ip().fmt(to)
    }
}

/// One end of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Endpoint {
    /// Its address.
    pub address: Address,
    /// Its port.
    pub port: u16,
}

/// TCP's flags (RFC 9293 section 3.1, RFC 3168).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u16);

#[allow(missing_docs)]
impl Flags {
    pub const FIN: u16 = 0x01;
    pub const SYN: u16 = 0x02;
    pub const RST: u16 = 0x04;
    pub const PSH: u16 = 0x08;
    pub const ACK: u16 = 0x10;
    pub const URG: u16 = 0x20;
    pub const ECE: u16 = 0x40;
    pub const CWR: u16 = 0x80;
    pub const AE: u16 = 0x100;
    /// AccECN's field ACE (RFC 9768 section 3.2).
    pub const ACE: u16 = Flags::AE | Flags::CWR | Flags::ECE;

    /// Return the flags of the header's bytes 12 and 13.
    #[inline]
    pub fn of([offset, flags]: [u8; 2]) -> Self {
        Self(u16::from(offset & 1) << 8 | u16::from(flags))
    }

    /// Return true if any of the flags in `any` is set.
    #[inline]
    pub fn has(self, any: u16) -> bool {
        self.0 & any != 0
    }
}

/// TCP options of a segment (RFC 9293, 7323, 2018).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The maximum segment size that its sender accepts.
    pub mss: Option<u16>,
    /// The shift of its sender's windows.
    pub window_scale: Option<u8>,
    /// SACK is permitted.
    pub sack_permitted: bool,
    /// TSval and TSecr.
    pub timestamps: Option<(u32, u32)>,
    /// The number of valid entries in `sack`.
    pub sack_blocks: u8,
    /// The SACK blocks: first byte, and the one after the last.
    pub sack: [(u32, u32); 4],
    /// AccECN's count of payload bytes that arrived with a mark, modulo 2^24 (RFC 9768 section 3.2.3).
    pub marked_bytes: Option<u32>,
    /// Not all options were captured, so an absent option may have been sent.
    pub cut: bool,
}

impl Options {
    /// Return the valid SACK blocks.
    #[inline]
    pub fn sack(&self) -> &[(u32, u32)] {
        &self.sack[..usize::from(self.sack_blocks)]
    }
}

/// The checksum state of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checksum {
    /// Not all of the segment was captured.
    #[default]
    Unknown,
    /// TCP's is right, and IPv4's.
    Good,
    /// TCP's covers the addresses only: the network card was to complete it, so its sender is the host that captured.
    Offloaded,
    /// A checksum is wrong.
    Bad,
}

/// A captured TCP segment. Plain data: it is copied and owns nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// Nanoseconds since 1970, if the file has timestamps.
    pub time_ns: Option<i64>,
    /// The index of its file.
    pub file: u32,
    /// The index of the file's interface; on `any` captures that record it, the kernel's number.
    pub interface: u32,
    /// Identifies the capture point on the host: interface, direction and link address together.
    pub place: u32,
    /// True if the capturing host sent it, if the capture records it.
    pub outbound: Option<bool>,
    /// The sender.
    pub source: Endpoint,
    /// The receiver.
    pub destination: Endpoint,
    /// The sequence number of its first byte, or of its SYN.
    pub sequence: u32,
    /// The acknowledgement number, if the flag ACK is set.
    pub acknowledgement: u32,
    /// Its flags.
    pub flags: Flags,
    /// The window field of the header, unscaled.
    pub window: u16,
    /// The length of its payload, captured or not.
    pub payload_bytes: u32,
    /// Its options.
    pub options: Options,
    /// IPv4's identification, or that of an IPv6 fragment.
    pub identification: Option<u32>,
    /// TTL or hop limit.
    pub hops: u8,
    /// The ECN field of the IP header (RFC 3168).
    pub ecn: u8,
    /// The length of its IP packet, captured or not.
    pub packet_bytes: u32,
    /// The length of its frame.
    pub frame_bytes: u32,
    /// TCP's checksum as in the header, if it was captured.
    pub checksum_field: Option<u16>,
    /// The state of its checksums.
    pub checksum: Checksum,
    /// The number of tunnel headers around it, without VLAN tags and MPLS labels.
    pub encapsulations: u8,
    /// Larger than any frame on the wire: offloads split it after the capture (TSO), or merged it before (GRO).
    pub super_segment: bool,
    /// The first fragment of a datagram: `payload_bytes` excludes the other fragments.
    pub fragmented: bool,
    /// The same packet was captured before, on another interface or in the other direction.
    pub duplicate: bool,
}

/// The reason why a frame has no TCP segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skipped {
    /// The link type is not supported.
    LinkType,
    /// The frame has no IP packet.
    NotIp,
    /// The IP packet carries ICMP of either version.
    Icmp,
    /// The IP packet carries a UDP datagram: see [`datagram_into`].
    Udp,
    /// The IP packet carries something else.
    NotTcp,
    /// A fragment without the ports.
    LaterFragment,
    /// The captured part is too short.
    Cut,
    /// Its headers contradict themselves.
    Malformed,
}

/// Decode the TCP segment in a captured frame.
///
/// # Errors
/// The reason why the frame has none.
pub fn decode(record: &Record) -> Result<Segment, Skipped> {
    let mut segment = Segment::default();
    decode_into(record, &mut segment)?;
    Ok(segment)
}

/// Decode the TCP segment in a captured frame into `segment`: a segment is large, and there are millions.
///
/// # Errors
/// The reason why the frame has none; `segment` is unchanged.
#[inline]
pub fn decode_into(record: &Record, segment: &mut Segment) -> Result<(), Skipped> {
    if fast_path::segment(record, segment) {
        return Ok(());
    }
    dissect(record, segment)
}

/// Decode header by header.
fn dissect(record: &Record, segment: &mut Segment) -> Result<(), Skipped> {
    let mut dissector = Dissector::new(record);
    match transport(record, &mut dissector)? {
        tcp::PROTOCOL => tcp::segment(&dissector, record, segment),
        udp::PROTOCOL => Err(Skipped::Udp),
        _ => Err(Skipped::Icmp),
    }
}

/// Decode the UDP datagram in a captured frame into `datagram`.
///
/// # Errors
/// The reason why the frame has none; `datagram` is unchanged.
#[cold]
pub fn datagram_into(record: &Record, datagram: &mut Datagram) -> Result<(), Skipped> {
    let mut dissector = Dissector::new(record);
    match transport(record, &mut dissector)? {
        udp::PROTOCOL => udp::datagram(&dissector, record, datagram),
        _ => Err(Skipped::NotIp),
    }
}

/// Dissect the headers up to that of TCP, ICMP or UDP; return the protocol.
#[inline]
fn transport(record: &Record, dissector: &mut Dissector) -> Result<u8, Skipped> {
    let mut layer = link::enter(record.link, dissector)?;
    for _ in 0..MAX_LAYERS {
        layer = match layer {
            Layer::Ethernet => link::ethernet(dissector)?,
            Layer::EtherType(kind) => link::ether_type(kind, dissector)?,
            Layer::Ppp => link::ppp(dissector)?,
            Layer::Ip => network::ip(dissector)?,
            Layer::Protocol(protocol @ (tcp::PROTOCOL | icmp::PROTOCOL | icmp::PROTOCOL_6)) => {
                return Ok(protocol)
            }
            Layer::Protocol(udp::PROTOCOL) if !tunnel::is_in_udp(dissector) => {
                return Ok(udp::PROTOCOL)
            }
            Layer::Protocol(protocol) => tunnel::enter(protocol, dissector)?,
        };
    }
    Err(Skipped::Malformed)
}

/// Return true if frames of this link type are dissected.
pub fn is_supported_link(link: u16) -> bool {
    link::SUPPORTED.contains(&link)
}

#[cfg(test)]
mod tests;
