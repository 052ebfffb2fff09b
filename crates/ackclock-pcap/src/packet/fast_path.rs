//! Fast path for the common packet: Ethernet, IPv4 without options, TCP. Any other packet takes the dissector; both
//! give the same segment.

use super::dissector::{u16_at, u32_at};
use super::link::ETHERNET;
use super::{checksum, tcp, Address, Checksum, Endpoint, Flags, Options, Segment};
use crate::framing::Record;

const LINK_BYTES: usize = 14;
const NETWORK_BYTES: usize = 20;
/// All three headers, without TCP's options.
const HEADERS_BYTES: usize = LINK_BYTES + NETWORK_BYTES + 20;
/// The flag of more fragments, and where this one belongs.
const FRAGMENT: u16 = 0x3fff;

/// Decode an Ethernet, IPv4 and TCP packet without IP options; return false for any other.
#[inline]
pub fn segment(record: &Record, segment: &mut Segment) -> bool {
    let Some(headers) = record.bytes.first_chunk::<HEADERS_BYTES>() else {
        return false;
    };
    let total_bytes = u32::from(u16_at(headers, 16));
    let header_bytes = usize::from(headers[46] >> 4) * 4;
    let is_common = record.link == ETHERNET
        && u32_at(headers, 12) >> 8 == 0x0008_0045
        && u16_at(headers, 20) & FRAGMENT == 0
        && headers[23] == tcp::PROTOCOL
        && header_bytes >= 20
        && total_bytes as usize >= NETWORK_BYTES + header_bytes;
    if !is_common {
        return false;
    }
    let end = record.bytes.len().min(LINK_BYTES + total_bytes as usize);
    let bytes = &record.bytes[LINK_BYTES + NETWORK_BYTES..end];
    let endpoint = |address: usize, port: usize| Endpoint {
        address: Address::v4(u32_at(headers, address)),
        port: u16_at(headers, port),
    };
    let field = u16_at(headers, 50);
    let checksum = state(headers, bytes, total_bytes, field);
    *segment = Segment {
        time_ns: record.time_ns,
        file: 0,
        interface: record.interface,
        place: tcp::place(record.interface, record.outbound, 0),
        outbound: record.outbound,
        source: endpoint(26, 34),
        destination: endpoint(30, 36),
        sequence: u32_at(headers, 38),
        acknowledgement: u32_at(headers, 42),
        flags: Flags::of([headers[46], headers[47]]),
        window: u16_at(headers, 48),
        payload_bytes: total_bytes - (NETWORK_BYTES + header_bytes) as u32,
        options: Options::default(),
        identification: Some(u32::from(u16_at(headers, 18))),
        hops: headers[22],
        ecn: headers[15] & 3,
        packet_bytes: total_bytes,
        frame_bytes: record.frame_bytes,
        checksum_field: Some(field),
        checksum,
        encapsulations: 0,
        super_segment: record.frame_bytes > tcp::LARGEST_FRAME_BYTES,
        fragmented: false,
        duplicate: false,
    };
    tcp::options(bytes, header_bytes, &mut segment.options);
    true
}

/// Return the checksum state of a segment's captured `bytes`, as [`checksum::state`] does.
#[inline]
fn state(headers: &[u8; HEADERS_BYTES], bytes: &[u8], total_bytes: u32, field: u16) -> Checksum {
    let header = &headers[LINK_BYTES..LINK_BYTES + NETWORK_BYTES];
    if checksum::is_bad_header(header) {
        return Checksum::Bad;
    }
    let length = total_bytes - NETWORK_BYTES as u32;
    if bytes.len() != length as usize {
        return Checksum::Unknown;
    }
    let addresses = checksum::sum(&header[12..]);
    let pseudo = addresses + checksum::pseudo_rest(length, tcp::PROTOCOL);
    checksum::verdict(pseudo, bytes, field)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::packet::{dissect, Skipped};

    const RECORD: Record = Record {
        time_ns: Some(5),
        interface: 3,
        link: ETHERNET,
        outbound: None,
        frame_bytes: 0,
        bytes: &[],
    };

    /// A packet as Linux sends it: timestamps, and maybe a SACK block.
    fn packet(sack: bool, payload: usize) -> Vec<u8> {
        let options: &[u8] = if sack {
            &[
                1, 1, 8, 10, 0, 0, 0, 7, 0, 0, 0, 9, 1, 1, 5, 10, 0, 0, 1, 0, 0, 0, 2, 0,
            ]
        } else {
            &[1, 1, 8, 10, 0, 0, 0, 7, 0, 0, 0, 9]
        };
        let total = 40 + options.len() + payload;
        let mut bytes = vec![2; 12];
        bytes.extend([
            8,
            0,
            0x45,
            0,
            (total >> 8) as u8,
            total as u8,
            1,
            2,
            0x40,
            0,
            64,
            6,
        ]);
        bytes.extend([0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        bytes.extend([0x1f, 0x90, 0, 80, 0, 0, 0, 1, 0, 0, 0, 2]);
        bytes.extend([((20 + options.len()) << 2) as u8, 0x10, 1, 0, 0, 0, 0, 0]);
        bytes.extend(options);
        bytes.extend(vec![7; payload]);
        let sum = checksum::folded(checksum::sum(&bytes[14..34]));
        bytes[24..26].copy_from_slice(&(!sum).to_ne_bytes());
        let pseudo =
            checksum::sum(&bytes[26..34]) + checksum::pseudo_rest(total as u32 - 20, tcp::PROTOCOL);
        let sum = checksum::folded(pseudo + checksum::sum(&bytes[34..]));
        bytes[50..52].copy_from_slice(&(!sum).to_ne_bytes());
        bytes
    }

    fn both(bytes: &[u8], frame_bytes: u32) -> (Option<Segment>, Result<Segment, Skipped>) {
        let record = Record {
            frame_bytes,
            bytes,
            ..RECORD
        };
        let (mut quick, mut slow) = (Segment::default(), Segment::default());
        let is_common = segment(&record, &mut quick);
        let identity = dissect(&record, &mut slow).map(|()| slow);
        (is_common.then_some(quick), identity)
    }

    #[test]
    fn common_packets_take_the_fast_path() {
        for bytes in [packet(false, 0), packet(true, 0), packet(false, 900)] {
            let (quick, slow) = both(&bytes, bytes.len() as u32);
            let quick = quick.expect("a usual packet");
            assert_eq!(quick.checksum, Checksum::Good);
            assert_eq!(quick.options.timestamps, Some((7, 9)));
            assert_eq!(Ok(quick), slow);
        }
    }

    proptest! {
        /// A packet that takes the fast path gives the dissector's segment, however it is changed or cut off.
        #[test]
        fn the_fast_path_agrees_with_the_dissector(
            sack: bool,
            payload in 0_usize..64,
            changes in prop::collection::vec((12_usize..80, any::<u8>()), 0..4),
            cut in 0_usize..40,
            padding in 0_usize..8,
            longer in 0_u32..20_000,
        ) {
            let mut bytes = packet(sack, payload);
            bytes.extend(vec![0; padding]);
            for (place, value) in changes {
                if let Some(byte) = bytes.get_mut(place) {
                    *byte = value;
                }
            }
            bytes.truncate(bytes.len() - cut);
            let (quick, slow) = both(&bytes, bytes.len() as u32 + longer);
            if let Some(quick) = quick {
                prop_assert_eq!(Ok(quick), slow);
            }
        }
    }
}
