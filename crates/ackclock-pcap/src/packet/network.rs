//! IPv4 (RFC 791) with options and fragments, IPv6 (RFC 8200) with extension headers and jumbograms (RFC 2675).
//!
//! Offloads of Linux capture packets whose headers have no length: 0 in IPv4's total length, 0 in IPv6's payload length
//! with or without a jumbo option. Then the frame's length gives it.

use super::checksum;
use super::dissector::{u16_at, u32_at, Dissector, IpHeader, Layer};
use super::{Address, Skipped};

const HEADER_6_BYTES: u32 = 40;
const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const DESTINATION: u8 = 60;
const MOBILITY: u8 = 135;
const HOST_IDENTITY: u8 = 139;
const SHIM6: u8 = 140;
/// Options of extension headers (RFC 2675, RFC 6275).
const JUMBO_PAYLOAD: u8 = 0xc2;
const HOME_ADDRESS: u8 = 0xc9;

/// Continue past an IP header of either version.
#[inline]
pub fn ip(dissector: &mut Dissector) -> Result<Layer, Skipped> {
    dissector.ip_headers = dissector.ip_headers.saturating_add(1);
    match dissector.peek::<1>()?[0] >> 4 {
        4 => version_4(dissector),
        6 => version_6(dissector),
        _ => Err(Skipped::NotIp),
    }
}

#[inline]
fn version_4(dissector: &mut Dissector) -> Result<Layer, Skipped> {
    let header = dissector.peek::<20>()?;
    let header_bytes = usize::from(header[0] & 0x0f) * 4;
    let total_bytes = u32::from(u16_at(header, 2));
    if header_bytes < 20 || (total_bytes != 0 && (total_bytes as usize) < header_bytes) {
        return Err(Skipped::Malformed);
    }
    if total_bytes == 0 {
        dissector.has_no_length = true;
    } else {
        dissector.limit(total_bytes);
        let header = dissector.bytes.get(..header_bytes);
        dissector.bad_header |= header.is_some_and(checksum::is_bad_header);
    }
    let fragment = u16_at(header, 6);
    if fragment & 0x1fff != 0 {
        return Err(Skipped::LaterFragment);
    }
    dissector.fragmented |= fragment & 0x2000 != 0;
    dissector.ip = IpHeader {
        source: Address::v4(u32_at(header, 12)),
        destination: Address::v4(u32_at(header, 16)),
        identification: Some(u32::from(u16_at(header, 4))),
        hops: header[8],
        ecn: header[1] & 3,
        packet_bytes: dissector.length,
        routed: false,
    };
    dissector.skip(header_bytes)?;
    after(header[9], dissector)
}

/// Return the layer behind an IP header.
/// An authentication header is part of neither version: what is behind it is as readable as before.
#[inline]
fn after(protocol: u8, dissector: &mut Dissector) -> Result<Layer, Skipped> {
    if protocol == AUTHENTICATION {
        let [next, length] = *dissector.peek::<2>()?;
        dissector.skip((usize::from(length) + 2) * 4)?;
        return Ok(Layer::Protocol(next));
    }
    Ok(Layer::Protocol(protocol))
}

#[inline]
fn version_6(dissector: &mut Dissector) -> Result<Layer, Skipped> {
    let header = dissector.take::<40>()?;
    let payload_bytes = u32::from(u16_at(header, 4));
    if payload_bytes > 0 {
        dissector.limit(payload_bytes);
    } else {
        dissector.has_no_length = true;
    }
    dissector.ip = IpHeader {
        source: Address::v6(&header[8..24]),
        destination: Address::v6(&header[24..]),
        identification: None,
        hops: header[7],
        ecn: header[1] >> 4 & 3,
        packet_bytes: dissector.length.saturating_add(HEADER_6_BYTES),
        routed: false,
    };
    extensions(header[6], dissector)
}

/// Continue past extension headers; each takes at least eight bytes, so there is an end.
#[inline]
fn extensions(mut next: u8, dissector: &mut Dissector) -> Result<Layer, Skipped> {
    loop {
        let here = next;
        match here {
            HOP_BY_HOP | ROUTING | DESTINATION | MOBILITY | HOST_IDENTITY | SHIM6 => {
                let [following, length] = *dissector.peek::<2>()?;
                let length = (usize::from(length) + 1) * 8;
                let header = dissector.bytes.get(..length).ok_or(Skipped::Cut)?;
                match here {
                    HOP_BY_HOP => jumbo(header, dissector),
                    ROUTING => dissector.ip.routed |= header[3] != 0,
                    DESTINATION => dissector.ip.routed |= option(header, HOME_ADDRESS).is_some(),
                    _ => {}
                }
                next = following;
                dissector.skip(length)?;
            }
            FRAGMENT => {
                let header = dissector.take::<8>()?;
                let place = u16_at(header, 2);
                if place >> 3 != 0 {
                    return Err(Skipped::LaterFragment);
                }
                dissector.fragmented |= place & 1 != 0;
                dissector.ip.identification = Some(u32_at(header, 4));
                next = header[0];
            }
            AUTHENTICATION => {
                let [following, length] = *dissector.peek::<2>()?;
                dissector.skip((usize::from(length) + 2) * 4)?;
                next = following;
            }
            protocol => return Ok(Layer::Protocol(protocol)),
        }
    }
}

/// Take the length of a jumbogram from its hop-by-hop option. It counts from the extension header on.
fn jumbo(header: &[u8], dissector: &mut Dissector) {
    if let Some(length @ [_, _, _, _]) = option(header, JUMBO_PAYLOAD) {
        if dissector.has_no_length {
            dissector.limit(u32_at(length, 0));
            dissector.ip.packet_bytes = dissector.length.saturating_add(HEADER_6_BYTES);
        }
    }
}

/// The value of an option in an extension header (RFC 8200 section 4.2).
fn option(header: &[u8], min_bytes: u8) -> Option<&[u8]> {
    let mut options = &header[2..];
    while let [kind, rest @ ..] = options {
        options = match (*kind, rest) {
            (0, _) => rest,
            (kind, [length, rest @ ..]) => {
                let value = rest.get(..usize::from(*length))?;
                if kind == min_bytes {
                    return Some(value);
                }
                &rest[value.len()..]
            }
            (_, []) => return None,
        };
    }
    None
}
