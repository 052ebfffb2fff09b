//! The headers of a UDP payload that may be QUIC: the version-independent properties (RFC 8999), types of long headers
//! (RFC 9000 section 17.2, RFC 9369 section 3.2), coalesced packets (RFC 9000 section 12.2), the spin bit (section
//! 17.4).
//!
//! Nothing is decrypted. A payload alone does not show that it is QUIC, so what is here is how it reads if it is; who
//! sees both ends of a connection decides.
//!
//! Deviations: versions before draft 22 and those of Google up to Q049 have another layout behind the version, of which
//! nothing is read; Google's public header of Q043 and before is recognised by its version alone.

/// The longest connection ID of the versions whose layout is known (RFC 9000 section 17.2).
pub const MAX_ID_BYTES: usize = 20;
/// The maximum number of versions kept of a Version Negotiation packet.
pub const MAX_OFFERED: usize = 8;
/// The maximum number of packets read from a datagram; a malicious one has more.
const MAX_COALESCED: usize = 8;
const LONG: u8 = 0x80;
/// The fixed bit (RFC 9000 section 17.2). Ends that have agreed on it send any value (RFC 9287).
const FIXED: u8 = 0x40;
const SPIN: u8 = 0x20;
/// The first draft with the layout of RFC 8999: a byte for the length of each connection ID.
const FIRST_DRAFT: u32 = 0xff00_0016;
const LAST_DRAFT: u32 = 0xff00_0022;
const VERSION_1: u32 = 1;
const VERSION_2: u32 = 0x6b33_43cf;
/// mvfst's versions.
const FACEBOOK: u32 = 0xface_b000;
/// Google's versions with the layout of RFC 8999: Q050, T050, T051.
const GOOGLE: [u32; 3] = [0x5130_3530, 0x5430_3530, 0x5430_3531];

/// A connection ID.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId {
    length: u8,
    bytes: [u8; MAX_ID_BYTES],
}

impl ConnectionId {
    /// Make one of at most [`MAX_ID_BYTES`] bytes; None if it is longer.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let mut id = Self {
            length: bytes.len() as u8,
            bytes: [0; MAX_ID_BYTES],
        };
        id.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(id)
    }

    /// Return its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

/// The types of packets in a datagram, as flags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PacketTypes(pub u8);

#[allow(missing_docs)]
impl PacketTypes {
    pub const INITIAL: u8 = 0x01;
    pub const ZERO_RTT: u8 = 0x02;
    pub const HANDSHAKE: u8 = 0x04;
    pub const RETRY: u8 = 0x08;
    pub const VERSION_NEGOTIATION: u8 = 0x10;
    pub const SHORT: u8 = 0x20;
    /// A long header of a version with another layout.
    pub const OTHER: u8 = 0x40;

    /// Return true if any of the types in `any` is there.
    pub fn has(self, any: u8) -> bool {
        self.0 & any != 0
    }
}

/// The headers of a datagram, read as QUIC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct QuicHeaders {
    /// The types of its packets.
    pub types: PacketTypes,
    /// The version of its first packet, if that has a long header.
    pub version: Option<u32>,
    /// The destination connection ID of its first packet, if that has a long header whose layout is known.
    pub destination_id: Option<ConnectionId>,
    /// The source connection ID of the same packet.
    pub source_id: Option<ConnectionId>,
    /// The versions that a Version Negotiation packet offers, the first of them.
    pub offered: [u32; MAX_OFFERED],
    /// The number of valid entries in `offered`.
    pub offered_count: u8,
    /// The spin bit, if it has a packet with a short header.
    pub spin: Option<bool>,
    /// The bytes behind the first one, if the first packet has a short header: its connection ID, and more.
    pub short_bytes: Option<ConnectionId>,
}

impl QuicHeaders {
    /// Return the versions that a Version Negotiation packet offers.
    pub fn offered(&self) -> &[u32] {
        &self.offered[..usize::from(self.offered_count)]
    }

    /// Return true if the version is one that exists, so that no other protocol is likely.
    pub fn has_published_version(&self) -> bool {
        self.version.is_some_and(is_published)
    }
}

/// Return true if a version has the layout of RFC 9000's headers.
pub fn has_rfc9000_layout(version: u32) -> bool {
    matches!(version, VERSION_1 | VERSION_2 | FIRST_DRAFT..=LAST_DRAFT)
        || version & 0xffff_ff00 == FACEBOOK
        || GOOGLE.contains(&version)
        || is_reserved(version)
}

/// Return true for the versions that are reserved to force Version Negotiation (RFC 9000 section 15).
pub fn is_reserved(version: u32) -> bool {
    version & 0x0f0f_0f0f == 0x0a0a_0a0a
}

/// Return true for a draft, a version of Google, or one with a known layout.
fn is_published(version: u32) -> bool {
    has_rfc9000_layout(version) || version >> 8 == 0x00ff_0000 || is_google(version)
}

/// Return true for Google's versions, such as Q043: a letter and three digits.
fn is_google(version: u32) -> bool {
    let [letter, digits @ ..] = version.to_be_bytes();
    matches!(letter, b'Q' | b'T') && digits[0] == b'0' && digits.iter().all(u8::is_ascii_digit)
}

/// Read a payload as QUIC; `payload_bytes` is its length, of which fewer bytes may have been captured.
pub fn headers(payload: &[u8], payload_bytes: u32) -> QuicHeaders {
    let mut headers = QuicHeaders::default();
    match payload.first() {
        Some(first) if first & LONG != 0 => long(payload, payload_bytes, &mut headers),
        Some(first) if !public(payload, &mut headers) => {
            let rest = &payload[1..];
            headers.short_bytes = ConnectionId::new(&rest[..rest.len().min(MAX_ID_BYTES)]);
            short(*first, &mut headers);
        }
        _ => {}
    }
    headers
}

fn short(first: u8, headers: &mut QuicHeaders) {
    headers.types.0 |= PacketTypes::SHORT;
    headers.spin = Some(first & SPIN != 0);
}

/// Read the public header of Google's QUIC up to Q043: flags of a version and of an 8-byte connection ID, then both. Return
/// false if it is none.
fn public(payload: &[u8], headers: &mut QuicHeaders) -> bool {
    let [flags, rest @ ..] = payload else {
        return false;
    };
    let Some(version) = rest.get(8..).and_then(<[u8]>::first_chunk::<4>) else {
        return false;
    };
    let version = u32::from_be_bytes(*version);
    let is_public = flags & 0x09 == 0x09 && is_google(version);
    if is_public {
        headers.version = Some(version);
        headers.types.0 |= PacketTypes::OTHER;
    }
    is_public
}

/// Read the packets of a datagram that begins with a long header.
fn long(payload: &[u8], payload_bytes: u32, headers: &mut QuicHeaders) {
    let Some(version) = payload[1..]
        .first_chunk::<4>()
        .map(|v| u32::from_be_bytes(*v))
    else {
        return;
    };
    if version != 0 && !has_rfc9000_layout(version) {
        headers.version = Some(version);
        headers.types.0 |= PacketTypes::OTHER;
        // Other versions may have the connection IDs of RFC 8999; only a peer that answers to them shows it.
        if !is_published(version) {
            if let Some((ids, _)) = connection_ids(payload) {
                [headers.destination_id, headers.source_id] = ids.map(Some);
            }
        }
        return;
    }
    let Some((ids, rest)) = connection_ids(payload) else {
        return;
    };
    headers.version = Some(version);
    [headers.destination_id, headers.source_id] = ids.map(Some);
    if version == 0 {
        return negotiation(rest, payload_bytes, headers);
    }
    let mut left = Some(payload);
    for _ in 0..MAX_COALESCED {
        left = match left {
            Some(packet @ [first, ..]) if first & LONG != 0 => packet_of(packet, version, headers),
            // Without the fixed bit it may be padding.
            Some([first, ..]) if first & FIXED != 0 => return short(*first, headers),
            _ => return,
        };
    }
}

/// Read the versions of a Version Negotiation packet (RFC 8999 section 6), unless its length is none of such a list.
fn negotiation(rest: &[u8], payload_bytes: u32, headers: &mut QuicHeaders) {
    let behind = payload_bytes as usize;
    let ids: usize = [headers.destination_id, headers.source_id]
        .iter()
        .flatten()
        .map(|id| id.bytes().len())
        .sum();
    if behind < 11 + ids || !(behind - 7 - ids).is_multiple_of(4) {
        headers.version = None;
        return;
    }
    headers.types.0 |= PacketTypes::VERSION_NEGOTIATION;
    for (slot, version) in headers.offered.iter_mut().zip(rest.chunks_exact(4)) {
        *slot = u32::from_be_bytes([version[0], version[1], version[2], version[3]]);
        headers.offered_count += 1;
    }
}

/// Read both connection IDs of a long header; return them and the bytes behind.
fn connection_ids(payload: &[u8]) -> Option<([ConnectionId; 2], &[u8])> {
    let (destination, rest) = connection_id(payload.get(5..)?)?;
    let (source, rest) = connection_id(rest)?;
    Some(([destination, source], rest))
}

fn connection_id(bytes: &[u8]) -> Option<(ConnectionId, &[u8])> {
    let [length, rest @ ..] = bytes else {
        return None;
    };
    let (id, rest) = rest.split_at_checked(usize::from(*length))?;
    Some((ConnectionId::new(id)?, rest))
}

/// Read one packet with a long header; return the bytes behind it. None if it is the last one, or cut.
fn packet_of<'a>(packet: &'a [u8], version: u32, headers: &mut QuicHeaders) -> Option<&'a [u8]> {
    let own = u32::from_be_bytes(*packet.get(1..)?.first_chunk::<4>()?);
    if own != version {
        return None;
    }
    let kind = kind(packet[0], version);
    let (_, mut rest) = connection_ids(packet)?;
    headers.types.0 |= kind;
    if kind == PacketTypes::RETRY {
        return None;
    }
    if kind == PacketTypes::INITIAL {
        let (token_bytes, behind) = number(rest)?;
        rest = behind.get(usize::try_from(token_bytes).ok()?..)?;
    }
    let (length, rest) = number(rest)?;
    rest.get(usize::try_from(length).ok()?..)
}

/// Return the type of a long header, whose bits version 2 has in another order (RFC 9369 section 3.2).
fn kind(first: u8, version: u32) -> u8 {
    let bits = (first >> 4 & 3).wrapping_sub(u8::from(version == VERSION_2)) & 3;
    [
        PacketTypes::INITIAL,
        PacketTypes::ZERO_RTT,
        PacketTypes::HANDSHAKE,
        PacketTypes::RETRY,
    ][usize::from(bits)]
}

/// Read a variable-length integer (RFC 9000 section 16); return it and the bytes behind.
fn number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let first = *bytes.first()?;
    let (number, rest) = bytes.split_at_checked(1 << (first >> 6))?;
    let value = number[1..]
        .iter()
        .fold(u64::from(first & 0x3f), |value, &byte| {
            value << 8 | u64::from(byte)
        });
    Some((value, rest))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The start of a client's first Initial packet (RFC 9001 appendix A.2), with an empty token and this length.
    fn initial(first: u8, version: u32, length: u16) -> Vec<u8> {
        let mut packet = vec![first];
        packet.extend(version.to_be_bytes());
        packet.extend([8, 0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08, 0, 0]);
        packet.extend((0x4000 | length).to_be_bytes());
        packet.extend(vec![0; usize::from(length)]);
        packet
    }

    fn read(payload: &[u8]) -> QuicHeaders {
        headers(payload, payload.len() as u32)
    }

    #[test]
    fn a_clients_first_packet_has_both_connection_ids() {
        let packet = read(&initial(0xc0, 1, 30));
        let id = [0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08];
        assert_eq!(packet.types, PacketTypes(PacketTypes::INITIAL));
        assert_eq!(packet.version, Some(1));
        assert_eq!(packet.destination_id, ConnectionId::new(&id));
        assert_eq!(packet.source_id, ConnectionId::new(&[]));
        assert!(packet.has_published_version());
    }

    #[test]
    fn coalesced_packets_are_read_up_to_a_short_header() {
        let mut handshake = initial(0xe0, 1, 0);
        handshake.truncate(15); // up to the token's length
        handshake.extend([3, 1, 2, 3]);
        let payload = [initial(0xc0, 1, 5), handshake, vec![0x60, 9, 9]].concat();
        let expected = PacketTypes::INITIAL | PacketTypes::HANDSHAKE | PacketTypes::SHORT;
        assert_eq!(read(&payload).types, PacketTypes(expected));
        assert_eq!(read(&payload).spin, Some(true));
        let cut = headers(&payload[..20], payload.len() as u32);
        assert_eq!(cut.types, PacketTypes(PacketTypes::INITIAL));
    }

    /// RFC 9287: both kinds of headers without the fixed bit.
    #[test]
    fn the_fixed_bit_may_be_cleared() {
        assert_eq!(
            read(&initial(0x80, 1, 30)).types,
            PacketTypes(PacketTypes::INITIAL)
        );
        let short = read(&[0x20, 1, 2, 3]);
        assert_eq!(short.types, PacketTypes(PacketTypes::SHORT));
        assert_eq!(
            (short.spin, short.short_bytes),
            (Some(true), ConnectionId::new(&[1, 2, 3]))
        );
    }

    #[test]
    fn zeros_behind_a_packet_are_no_packet() {
        let payload = [initial(0xc0, 1, 5), vec![0; 50]].concat();
        assert_eq!(read(&payload).types, PacketTypes(PacketTypes::INITIAL));
    }

    /// RFC 9369 section 3.2: Initial 0b01, 0-RTT 0b10, Handshake 0b11, Retry 0b00.
    #[test]
    fn version_2_has_other_types() {
        let kinds = [0xd0, 0xe0, 0xf0, 0xc0].map(|first| kind(first, VERSION_2));
        let expected = [
            PacketTypes::INITIAL,
            PacketTypes::ZERO_RTT,
            PacketTypes::HANDSHAKE,
            PacketTypes::RETRY,
        ];
        assert_eq!(kinds, expected);
        assert_eq!(
            [0xc0, 0xd0, 0xe0, 0xf0].map(|first| kind(first, 1)),
            expected
        );
    }

    #[test]
    fn version_negotiation_lists_versions() {
        let packet = [
            0x80, 0, 0, 0, 0, 1, 7, 0, 0, 0, 0, 1, 0x6b, 0x33, 0x43, 0xcf,
        ];
        let negotiation = read(&packet);
        assert_eq!(
            negotiation.types,
            PacketTypes(PacketTypes::VERSION_NEGOTIATION)
        );
        assert_eq!(negotiation.offered(), [1, VERSION_2]);
        assert_eq!(read(&packet[..15]).version, None);
    }

    #[test]
    fn googles_versions_are_recognised_by_their_names() {
        let mut old = vec![0x09, 1, 2, 3, 4, 5, 6, 7, 8];
        old.extend(b"Q043\x01");
        assert_eq!(read(&old).version, Some(0x5130_3433));
        assert_eq!(read(&old).types, PacketTypes(PacketTypes::OTHER));
        assert_eq!(read(&old).destination_id, None);
        assert!(!is_published(0x1234_5678) && !is_google(0x5161_6161));
    }

    proptest! {
        #[test]
        fn any_payload_is_read(
            changes in prop::collection::vec((0_usize..60, any::<u8>()), 0..8),
            kept in 0_usize..60,
            random in prop::collection::vec(any::<u8>(), 0..60),
        ) {
            let mut packet = [initial(0xc0, 1, 5), initial(0xe0, 1, 9)].concat();
            for (at, value) in changes {
                if let Some(byte) = packet.get_mut(at) {
                    *byte = value;
                }
            }
            read(&packet[..kept.min(packet.len())]);
            headers(&random, u32::MAX);
            read(&random);
        }
    }
}
