//! The Internet checksum (RFC 1071).

use super::dissector::Dissector;
use super::{Address, Checksum};

/// The sum of 16-bit words in the machine's byte order, not yet folded: additions of four bytes at a time, whose
/// carries are kept (RFC 1071 section 2).
#[inline]
pub fn sum(bytes: &[u8]) -> u64 {
    let tokens = bytes.chunks_exact(4);
    let mut last = [0; 4];
    last[..tokens.remainder().len()].copy_from_slice(tokens.remainder());
    let whole: u64 = tokens
        .map(|token| u64::from(u32::from_ne_bytes([token[0], token[1], token[2], token[3]])))
        .sum();
    whole + u64::from(u32::from_ne_bytes(last))
}

/// A sum in 16 bits, in the machine's byte order; of bytes that include their checksum it is 0xffff.
#[inline]
pub fn folded(sum: u64) -> u16 {
    let mut sum = (sum >> 32) + (sum & 0xffff_ffff);
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    sum as u16
}

/// Return the checksum state of a segment whose bytes are all ahead of the dissector.
pub fn state(dissector: &Dissector, protocol: u8, field: u16) -> Checksum {
    if dissector.bad_header {
        return Checksum::Bad;
    }
    let whole = dissector.bytes.len() == dissector.length as usize;
    if !whole || dissector.fragmented || dissector.ip.routed {
        return Checksum::Unknown;
    }
    verdict(pseudo_header(dissector, protocol), dissector.bytes, field)
}

/// Return the checksum state of a complete segment, given the sum of its pseudo-header.
#[inline]
pub fn verdict(pseudo: u64, bytes: &[u8], field: u16) -> Checksum {
    if folded(pseudo + sum(bytes)) == 0xffff {
        Checksum::Good
    } else if folded(pseudo) == field.to_be() {
        Checksum::Offloaded
    } else {
        Checksum::Bad
    }
}

/// Addresses, length and protocol (RFC 9293 section 3.1). A mapped address would add 0xffff, which is zero.
fn pseudo_header(dissector: &Dissector, protocol: u8) -> u64 {
    let of = |address: Address| sum(&address.0.to_be_bytes());
    of(dissector.ip.source) + of(dissector.ip.destination) + pseudo_rest(dissector.length, protocol)
}

/// The sum of the pseudo-header's fields other than the addresses.
#[inline]
pub fn pseudo_rest(length: u32, protocol: u8) -> u64 {
    u64::from(length.to_be()) + u64::from(u32::from_ne_bytes([0, protocol, 0, 0]))
}

/// Return true if an IPv4 header has a wrong checksum; zero is left for the network card to fill in.
#[inline]
pub fn is_bad_header(header: &[u8]) -> bool {
    folded(sum(header)) != 0xffff && header[10..12] != [0, 0]
}
