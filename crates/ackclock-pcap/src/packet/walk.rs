//! How far into a frame we are, and what the headers said on the way.

use super::{Address, Skipped};
use crate::framing::Record;

/// What comes next.
#[derive(Clone, Copy, Debug)]
pub enum Layer {
    /// An Ethernet header.
    Ethernet,
    /// What an `EtherType` names.
    EtherType(u16),
    /// A protocol number of PPP.
    Ppp,
    /// An IP header of either version.
    Ip,
    /// What the protocol number of an IP header names.
    Protocol(u8),
}

/// The walk over one frame.
#[derive(Debug)]
pub struct Walk<'a> {
    /// What was captured from here on.
    pub bytes: &'a [u8],
    /// The length from here to the end that the innermost header knows, captured or not.
    pub length: u32,
    /// The interface by the kernel's number, if the frame says it.
    pub kernel_interface: Option<u32>,
    /// Whether the host sent it.
    pub outbound: Option<bool>,
    /// What tells the frame's link addresses apart where nothing else does.
    pub link_tag: u32,
    /// The innermost IP header.
    pub ip: IpHeader,
    /// IP headers so far.
    pub ip_headers: u8,
    /// Any of the datagrams was fragmented.
    pub fragmented: bool,
    /// An IP header has no length: the packet is larger than it can say.
    pub without_length: bool,
    /// An IPv4 header's checksum is wrong.
    pub bad_header: bool,
}

/// What the segment needs of its IP header.
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

impl<'a> Walk<'a> {
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
            without_length: false,
            bad_header: false,
        }
    }

    /// The next `N` bytes, which stay where they are.
    #[inline]
    pub fn peek<const N: usize>(&self) -> Result<&'a [u8; N], Skipped> {
        self.bytes.first_chunk().ok_or(Skipped::Cut)
    }

    /// Goes past the next `N` bytes, and gives them.
    #[inline]
    pub fn take<const N: usize>(&mut self) -> Result<&'a [u8; N], Skipped> {
        let (taken, rest) = self.bytes.split_first_chunk().ok_or(Skipped::Cut)?;
        self.bytes = rest;
        self.length = self.length.saturating_sub(N as u32);
        Ok(taken)
    }

    /// Goes past `count` bytes.
    #[inline]
    pub fn skip(&mut self, count: usize) -> Result<(), Skipped> {
        self.bytes = self.bytes.get(count..).ok_or(Skipped::Cut)?;
        self.length = self.length.saturating_sub(count as u32);
        Ok(())
    }

    /// What comes is `length` bytes long, whatever the frame has behind it.
    #[inline]
    pub fn limit(&mut self, length: u32) {
        self.length = length;
        self.bytes = &self.bytes[..self.bytes.len().min(length as usize)];
    }
}

/// Two bytes in the network's order.
#[inline]
pub fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// Four bytes in the network's order.
#[inline]
pub fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
