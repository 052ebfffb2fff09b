//! The dissection state of a frame: the current position and the fields of the headers before it.

use super::{Address, Endpoint, Skipped};
use crate::framing::Record;

/// The next header to dissect.
#[derive(Clone, Copy, Debug)]
pub enum Layer {
    /// An Ethernet header.
    Ethernet,
    /// The protocol of an `EtherType`.
    EtherType(u16),
    /// A protocol number of PPP.
    Ppp,
    /// An IP header of either version.
    Ip,
    /// The payload of an IP header, by protocol number.
    Protocol(u8),
}

/// The state of the dissection of one frame.
#[derive(Debug)]
pub struct Dissector<'a> {
    /// The captured bytes that are not yet dissected.
    pub bytes: &'a [u8],
    /// The bytes that are left by the innermost header's length, captured or not.
    pub length: u32,
    /// The kernel's interface index, if the frame has it.
    pub kernel_interface: Option<u32>,
    /// True if the capturing host sent it.
    pub outbound: Option<bool>,
    /// A tag of the link addresses, for captures without interface or direction.
    pub link_tag: u32,
    /// The innermost IP header.
    pub ip: IpHeader,
    /// IP headers so far.
    pub ip_headers: u8,
    /// Any of the datagrams was fragmented.
    pub fragmented: bool,
    /// An IP header has no length: the packet is larger than it can say.
    pub has_no_length: bool,
    /// An IPv4 header's checksum is wrong.
    pub bad_header: bool,
}

/// The fields of the IP header that a segment keeps.
#[derive(Clone, Copy, Debug)]
pub struct IpHeader {
    pub source: Address,
    pub destination: Address,
    pub identification: Option<u32>,
    pub hops: u8,
    pub ecn: u8,
    /// The length of the whole packet, header included.
    pub packet_bytes: u32,
    /// Another header has the last destination or the true source, of which the checksum is.
    pub routed: bool,
}

impl<'a> Dissector<'a> {
    #[inline]
    pub fn new(record: &Record<'a>) -> Self {
        Self {
            bytes: record.bytes,
            length: record.frame_bytes,
            kernel_interface: None,
            outbound: record.outbound,
            link_tag: 0,
            ip: IpHeader {
                source: Address(0),
                destination: Address(0),
                identification: None,
                hops: 0,
                ecn: 0,
                packet_bytes: 0,
                routed: false,
            },
            ip_headers: 0,
            fragmented: false,
            has_no_length: false,
            bad_header: false,
        }
    }

    /// Return the sender and the receiver of a transport's packet, whose header begins with their ports.
    #[inline]
    pub fn endpoints(&self, header: &[u8]) -> [Endpoint; 2] {
        [(self.ip.source, 0), (self.ip.destination, 2)].map(|(address, place)| Endpoint {
            address,
            port: u16_at(header, place),
        })
    }

    /// Return the next `N` bytes without consuming them.
    #[inline]
    pub fn peek<const N: usize>(&self) -> Result<&'a [u8; N], Skipped> {
        self.bytes.first_chunk().ok_or(Skipped::Cut)
    }

    /// Consume and return the next `N` bytes.
    #[inline]
    pub fn take<const N: usize>(&mut self) -> Result<&'a [u8; N], Skipped> {
        let (taken, rest) = self.bytes.split_first_chunk().ok_or(Skipped::Cut)?;
        self.bytes = rest;
        self.length = self.length.saturating_sub(N as u32);
        Ok(taken)
    }

    /// Consume `count` bytes.
    #[inline]
    pub fn skip(&mut self, count: usize) -> Result<(), Skipped> {
        self.bytes = self.bytes.get(count..).ok_or(Skipped::Cut)?;
        self.length = self.length.saturating_sub(count as u32);
        Ok(())
    }

    /// Limit the rest of the frame to `length` bytes; cut trailing padding.
    #[inline]
    pub fn limit(&mut self, length: u32) {
        self.length = length;
        self.bytes = &self.bytes[..self.bytes.len().min(length as usize)];
    }
}

/// Read a big-endian `u16`.
#[inline]
pub fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// Read a big-endian `u32`.
#[inline]
pub fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
