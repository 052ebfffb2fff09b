//! From a captured frame to the TCP segment in it, through whatever it is wrapped in.
//!
//! One walk over the headers, layer by layer, that copies what a segment says and keeps nothing: `etherparse` 0.20 knows
//! neither SLL2, MPLS, PPPoE, GRE, VXLAN, Geneve nor ERSPAN, and builds a description of each layer that would be thrown
//! away.
//!
//! Lengths are those that the headers say, not those that were captured.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

use crate::framing::Record;
use walk::{Layer, Walk};

mod checksum;
mod link;
mod network;
mod tcp;
mod tunnel;
mod usual;
mod walk;

/// More layers than any packet has: a walk through bytes that name each other ends.
const MOST_LAYERS: usize = 24;

/// An address of either version; those of IPv4 are the mapped ones (RFC 4291 section 2.5.5.2).
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

    /// The address as the standard library has it.
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
pub struct Flags(pub u8);

#[allow(missing_docs)]
impl Flags {
    pub const FIN: u8 = 0x01;
    pub const SYN: u8 = 0x02;
    pub const RST: u8 = 0x04;
    pub const PSH: u8 = 0x08;
    pub const ACK: u8 = 0x10;
    pub const URG: u8 = 0x20;
    pub const ECE: u8 = 0x40;
    pub const CWR: u8 = 0x80;

    /// Whether any of these is set.
    #[inline]
    pub fn has(self, any: u8) -> bool {
        self.0 & any != 0
    }
}

/// What a segment's options say (RFC 9293, 7323, 2018).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The largest segment that its sender takes.
    pub mss: Option<u16>,
    /// The shift of its sender's windows.
    pub window_scale: Option<u8>,
    /// Its sender understands SACK.
    pub sack_permitted: bool,
    /// TSval and TSecr.
    pub timestamps: Option<(u32, u32)>,
    /// How many of `sack` there are.
    pub sack_blocks: u8,
    /// The SACK blocks: first byte, and the one after the last.
    pub sack: [(u32, u32); 4],
    /// Not all options were captured: what is missing here may have been there.
    pub cut: bool,
}

impl Options {
    /// The SACK blocks that there are.
    #[inline]
    pub fn sack(&self) -> &[(u32, u32)] {
        &self.sack[..usize::from(self.sack_blocks)]
    }
}

/// What is known of a segment's checksums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checksum {
    /// Not all of the segment was captured.
    #[default]
    Unknown,
    /// TCP's is right, and IPv4's.
    Good,
    /// TCP's covers the addresses only: the network card was to complete it, so its sender is the host that captured.
    Offloaded,
    /// One of them is wrong.
    Bad,
}

/// A TCP segment as it was captured. Plain data: it is copied and owns nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// Nanoseconds since 1970, if the file has a time.
    pub time_ns: Option<i64>,
    /// Which of the files it is from.
    pub file: u32,
    /// Which of the file's interfaces; on `any` captures that say it, the kernel's number.
    pub interface: u32,
    /// Tells where the capturing host saw it: interface, direction and link address together.
    pub place: u32,
    /// Whether the host that captured sent it, if the capture says so.
    pub outbound: Option<bool>,
    /// Who sent it.
    pub source: Endpoint,
    /// To whom.
    pub destination: Endpoint,
    /// The sequence number of its first byte, or of its SYN.
    pub sequence: u32,
    /// The acknowledgement number, if the flag ACK is set.
    pub acknowledgement: u32,
    /// Its flags.
    pub flags: Flags,
    /// The window as in the header, unscaled.
    pub window: u16,
    /// The bytes of data that it carried, whether captured or not.
    pub payload_bytes: u32,
    /// What its options say.
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
    /// What is known of its checksums.
    pub checksum: Checksum,
    /// Headers that it was wrapped in: tunnels, not VLAN tags or labels.
    pub encapsulations: u8,
    /// More than the wire carries at once: an offload split it after the capture, or joined it before.
    pub super_segment: bool,
    /// The first fragment of a datagram: what the others carried is not in `payload_bytes`.
    pub fragmented: bool,
    /// The same file has the same packet before, from another place of the host.
    pub seen_before: bool,
}

/// Why a frame gives no segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skipped {
    /// The link type is not known here.
    LinkType,
    /// No IP packet is in it.
    NotIp,
    /// The IP packet carries something else.
    NotTcp,
    /// A fragment without the ports.
    LaterFragment,
    /// Too little of it was captured.
    Cut,
    /// Its headers contradict themselves.
    Malformed,
}

/// The segment in a captured frame.
///
/// # Errors
/// Why there is none.
pub fn decode(record: &Record) -> Result<Segment, Skipped> {
    let mut segment = Segment::default();
    decode_into(record, &mut segment)?;
    Ok(segment)
}

/// The same, where it is wanted: a segment is large, and there are millions.
///
/// # Errors
/// Why there is none; what was there stays.
#[inline]
pub fn decode_into(record: &Record, segment: &mut Segment) -> Result<(), Skipped> {
    if usual::segment(record, segment) {
        return Ok(());
    }
    walked(record, segment)
}

/// The same, header by header.
fn walked(record: &Record, segment: &mut Segment) -> Result<(), Skipped> {
    let mut walk = Walk::new(record);
    let mut layer = link::enter(record.link, &mut walk)?;
    for _ in 0..MOST_LAYERS {
        layer = match layer {
            Layer::Ethernet => link::ethernet(&mut walk)?,
            Layer::EtherType(kind) => link::ether_type(kind, &mut walk)?,
            Layer::Ppp => link::ppp(&mut walk)?,
            Layer::Ip => network::ip(&mut walk)?,
            Layer::Protocol(tcp::PROTOCOL) => return tcp::segment(&walk, record, segment),
            Layer::Protocol(protocol) => tunnel::enter(protocol, &mut walk)?,
        };
    }
    Err(Skipped::Malformed)
}

/// Whether any frame of this link type can give a segment.
pub fn knows(link: u16) -> bool {
    link::KNOWN.contains(&link)
}

#[cfg(test)]
mod tests;
