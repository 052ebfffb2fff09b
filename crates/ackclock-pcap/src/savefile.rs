//! The file format of pcap-savefile(5), with nanoseconds and Ethernet frames.

/// Bytes kept of a frame. The longest headers are 14 + 20 + 60.
pub const SNAP_BYTES: u32 = 128;
/// Nanosecond timestamps, in the writer's (little-endian) byte order.
const MAGIC_NANOSECONDS: u32 = 0xa1b2_3c4d;
/// `LINKTYPE_ETHERNET`.
const LINK_TYPE: u32 = 1;
const NANOSECONDS_PER_SECOND: u64 = 1_000_000_000;

/// The header of a file whose frames are cut at [`SNAP_BYTES`].
pub fn header() -> Vec<u8> {
    let mut bytes = MAGIC_NANOSECONDS.to_le_bytes().to_vec();
    bytes.extend(2_u16.to_le_bytes());
    bytes.extend(4_u16.to_le_bytes());
    for field in [0, 0, SNAP_BYTES, LINK_TYPE] {
        bytes.extend(field.to_le_bytes());
    }
    bytes
}

/// The header before a frame of `frame_bytes`, of which the first `kept_bytes` follow.
pub fn record_header(nanoseconds: u64, kept_bytes: u32, frame_bytes: u32) -> [u8; 16] {
    let fields = [
        (nanoseconds / NANOSECONDS_PER_SECOND) as u32,
        (nanoseconds % NANOSECONDS_PER_SECOND) as u32,
        kept_bytes,
        frame_bytes,
    ];
    let mut header = [0; 16];
    for (place, field) in header.chunks_exact_mut(4).zip(fields) {
        place.copy_from_slice(&field.to_le_bytes());
    }
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_header_follows_pcap_savefile_5() {
        let header = header();
        assert_eq!(header.len(), 24);
        assert_eq!(header[..8], [0x4d, 0x3c, 0xb2, 0xa1, 2, 0, 4, 0]);
        assert_eq!(header[16..], [128, 0, 0, 0, 1, 0, 0, 0]);
    }

    #[test]
    fn a_record_has_its_time_in_seconds_and_nanoseconds() {
        let header = record_header(3_000_000_002, 60, 1514);
        let field = |index: usize| u32::from_le_bytes(header[4 * index..][..4].try_into().unwrap());
        assert_eq!([0, 1, 2, 3].map(field), [3, 2, 60, 1514]);
    }
}
