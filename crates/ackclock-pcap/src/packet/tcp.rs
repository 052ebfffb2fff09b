//! The TCP header and its options (RFC 9293 section 3.1, 3.2; RFC 7323; RFC 2018; RFC 9768).

use super::dissector::{u16_at, u32_at, Dissector};
use super::{checksum, Checksum, Flags, Options, Segment, Skipped};
use crate::framing::Record;

/// The number of TCP in an IP header.
pub const PROTOCOL: u8 = 6;
/// The kinds of AccECN's option (RFC 9768 section 3.2.3).
const ACCECN_0: u8 = 172;
const ACCECN_1: u8 = 174;
/// The shortest usable header: all fields up to the window.
const MIN_CAPTURED_BYTES: usize = 16;
/// The largest frame of Ethernet that is in use, the jumbo frame: what is longer was never on a wire.
pub const LARGEST_FRAME_BYTES: u32 = 9216;

/// Decode the TCP segment at the dissector's position.
#[inline]
pub fn segment(
    dissector: &Dissector,
    record: &Record,
    segment: &mut Segment,
) -> Result<(), Skipped> {
    let header = dissector.peek::<MIN_CAPTURED_BYTES>()?;
    let header_bytes = usize::from(header[12] >> 4) * 4;
    if header_bytes < 20 || header_bytes as u32 > dissector.length {
        return Err(Skipped::Malformed);
    }
    let checksum_field = dissector.bytes.get(16..18).map(|field| u16_at(field, 0));
    let interface = dissector.kernel_interface.unwrap_or(record.interface);
    let [source, destination] = dissector.endpoints(header);
    *segment = Segment {
        time_ns: record.time_ns,
        file: 0,
        interface,
        place: place(interface, dissector.outbound, dissector.link_tag),
        outbound: dissector.outbound,
        source,
        destination,
        sequence: u32_at(header, 4),
        acknowledgement: u32_at(header, 8),
        flags: Flags::of([header[12], header[13]]),
        window: u16_at(header, 14),
        payload_bytes: dissector.length - header_bytes as u32,
        options: Options::default(),
        identification: dissector.ip.identification,
        hops: dissector.ip.hops,
        ecn: dissector.ip.ecn,
        packet_bytes: dissector.ip.packet_bytes,
        frame_bytes: record.frame_bytes,
        checksum_field,
        checksum: checksum_field.map_or(Checksum::Unknown, |field| {
            checksum::state(dissector, PROTOCOL, field)
        }),
        encapsulations: dissector.ip_headers - 1,
        super_segment: dissector.has_no_length || record.frame_bytes > LARGEST_FRAME_BYTES,
        fragmented: dissector.fragmented,
        duplicate: false,
    };
    options(dissector.bytes, header_bytes, &mut segment.options);
    Ok(())
}

/// Return a number that identifies the capture point of a frame.
#[inline]
pub fn place(interface: u32, outbound: Option<bool>, link_tag: u32) -> u32 {
    let direction = match outbound {
        None => 0,
        Some(false) => 1,
        Some(true) => 2,
    };
    (interface << 2 | direction) ^ link_tag
}

/// Parse the options between the header's twentieth byte and its end into `actual`, which has none. Returning them
/// would cost a copy, which stalls until the smaller stores before it are done: this is on the path of each packet.
#[inline]
pub fn options(bytes: &[u8], header_bytes: usize, actual: &mut Options) {
    match bytes.get(20..header_bytes) {
        Some([]) => {}
        // As most hosts write timestamps (RFC 7323 appendix A), and nothing else.
        Some([1, 1, 8, 10, value @ ..]) if value.len() == 8 => {
            actual.timestamps = Some((u32_at(value, 0), u32_at(value, 4)));
        }
        _ => each_option(bytes, header_bytes, actual),
    }
}

fn each_option(bytes: &[u8], header_bytes: usize, actual: &mut Options) {
    let captured = bytes.len().min(header_bytes);
    actual.cut = captured < header_bytes;
    let mut rest = bytes.get(20..captured).unwrap_or_default();
    while let [kind, behind @ ..] = rest {
        rest = match kind {
            0 => break,
            1 => behind,
            _ => {
                let Some(&length) = behind.first() else { break };
                let Some(value) = rest.get(2..usize::from(length)) else {
                    break;
                };
                actual.count(*kind, value);
                &rest[usize::from(length)..]
            }
        };
    }
}

impl Options {
    #[inline]
    fn count(&mut self, kind: u8, value: &[u8]) {
        match (kind, value.len()) {
            (2, 2) => self.mss = Some(u16_at(value, 0)),
            (3, 1) => self.window_scale = Some(value[0]),
            (4, 0) => self.sack_permitted = true,
            (5, 8 | 16 | 24 | 32) => {
                for block in value.chunks_exact(8).take(4) {
                    self.sack[usize::from(self.sack_blocks & 3)] =
                        (u32_at(block, 0), u32_at(block, 4));
                    self.sack_blocks = (self.sack_blocks + 1).min(4);
                }
            }
            (8, 8) => self.timestamps = Some((u32_at(value, 0), u32_at(value, 4))),
            // Both orders of the counters have that of CE second.
            (ACCECN_0 | ACCECN_1, 6 | 9) => self.marked_bytes = Some(u32_at(value, 2) & 0xff_ffff),
            _ => {}
        }
    }
}
