//! pcap files (pcap-savefile(5), draft-ietf-opsawg-pcap), also those of before version 2.4, whose two lengths may be
//! exchanged, and those with Kuznetzov's longer records.

use std::io::Read;

use super::read_buffer::ReadBuffer;
use super::{u16_at, u32_at, Interface, ReadError, RecordLayout, MAX_RECORD_BYTES};

const HEADER_BYTES: usize = 24;
/// The fields common to all record headers: seconds, ticks and both lengths.
const FIELDS_BYTES: usize = 16;
const NANOSECONDS_PER_SECOND: i64 = 1_000_000_000;
/// Other kinds of files that are handed over as captures, by their first bytes.
const FOREIGN: [(&[u8], &str); 9] = [
    (
        b"version https://git-lfs",
        "a Git LFS pointer instead of the file (`git lfs pull` fetches it)",
    ),
    (b"snoop\0\0\0", "a snoop file (Solaris)"),
    (b"GMBU", "a file of Microsoft Network Monitor"),
    (b"RTSS", "a file of Microsoft Network Monitor 1"),
    (b"XCP\0", "a file of NetXRay"),
    (b"BZh", "bzip2 data"),
    (b"\x04\x22\x4d\x18", "lz4 data"),
    (b"PK\x03\x04", "a zip archive"),
    (b"\x7fELF", "a program"),
];

/// A pcap file's header: byte order, time resolution and record layout.
#[derive(Debug)]
pub struct Savefile {
    big_endian: bool,
    nanoseconds_per_tick: i64,
    record_header_bytes: usize,
    lengths: Lengths,
    number: u64,
}

/// The order of a record's two lengths.
#[derive(Debug, PartialEq)]
enum Lengths {
    CapturedFirst,
    CapturedLast,
    /// Version 2.3: either, and the captured one is the smaller.
    SmallerCaptured,
}

impl Savefile {
    /// Read the header, and describe the one interface.
    pub fn open<R: Read>(
        buffer: &mut ReadBuffer<R>,
        interfaces: &mut Vec<Interface>,
    ) -> Result<Self, ReadError> {
        let is_complete = buffer.ensure(HEADER_BYTES).map_err(ReadError::System)?;
        let bytes = buffer.available();
        let (big_endian, nanoseconds_per_tick, record_header_bytes) = kind(bytes)?;
        if !is_complete {
            return Err(ReadError::CutOff {
                part: "header",
                number: 1,
                actual: bytes.len(),
                expected: HEADER_BYTES as u64,
            });
        }
        let (major, minor) = (u16_at(bytes, 4, big_endian), u16_at(bytes, 6, big_endian));
        if major != 2 {
            return Err(ReadError::Version {
                format: "pcap",
                major,
                minor,
                expected: "2.4 or an earlier 2",
            });
        }
        interfaces.push(Interface {
            // The upper bits have the length of the frame check sequence, which follows what is of interest.
            link: u32_at(bytes, 20, big_endian) as u16,
            snap_bytes: u32_at(bytes, 16, big_endian),
            name: None,
            ticks_per_second: Some((NANOSECONDS_PER_SECOND / nanoseconds_per_tick) as u128),
            offset_s: 0,
            dropped: None,
            dropped_by_system: None,
            dropped_between: 0,
        });
        buffer.take(HEADER_BYTES);
        Ok(Self {
            big_endian,
            nanoseconds_per_tick,
            record_header_bytes,
            lengths: match minor {
                0..=2 => Lengths::CapturedLast,
                3 => Lengths::SmallerCaptured,
                _ => Lengths::CapturedFirst,
            },
            number: 0,
        })
    }

    /// Return the layout of the next record; none at the end of the file.
    #[inline(always)]
    pub fn next<R: Read>(
        &mut self,
        buffer: &mut ReadBuffer<R>,
    ) -> Result<Option<RecordLayout>, ReadError> {
        self.number += 1;
        let header_bytes = self.record_header_bytes;
        if !buffer.ensure(header_bytes).map_err(ReadError::System)? {
            return match buffer.available().len() {
                0 => Ok(None),
                actual => Err(self.cut_off(actual, header_bytes)),
            };
        }
        let Some(header) = buffer.available().first_chunk::<FIELDS_BYTES>() else {
            return Ok(None); // it is shorter than any record's header
        };
        let [seconds, ticks, first, second] = fields(header, self.big_endian);
        let (captured_bytes, frame_bytes) = self.lengths(first, second);
        if captured_bytes as usize > MAX_RECORD_BYTES {
            return Err(self.too_long(captured_bytes));
        }
        let record_bytes = header_bytes + captured_bytes as usize;
        if !buffer.ensure(record_bytes).map_err(ReadError::System)? {
            return Err(self.cut_off(buffer.available().len(), record_bytes));
        }
        Ok(Some(RecordLayout {
            time_ns: Some(
                i64::from(seconds) * NANOSECONDS_PER_SECOND
                    + i64::from(ticks) * self.nanoseconds_per_tick,
            ),
            interface: 0,
            outbound: None,
            frame_bytes: frame_bytes.max(captured_bytes),
            from: header_bytes,
            captured_bytes: captured_bytes as usize,
            record_bytes,
        }))
    }

    /// Return the captured length and the frame's length.
    #[inline]
    fn lengths(&self, first: u32, second: u32) -> (u32, u32) {
        match self.lengths {
            Lengths::CapturedFirst => (first, second),
            Lengths::CapturedLast => (second, first),
            Lengths::SmallerCaptured => (first.min(second), first.max(second)),
        }
    }

    #[cold]
    fn too_long(&self, bytes: u32) -> ReadError {
        ReadError::Length {
            part: "packet",
            number: self.number,
            bytes: u64::from(bytes),
            expected: "at most 16777216",
        }
    }

    #[cold]
    fn cut_off(&self, actual: usize, expected: usize) -> ReadError {
        ReadError::CutOff {
            part: "packet",
            number: self.number,
            actual,
            expected: expected as u64,
        }
    }
}

/// Read the four fields of a record header.
#[inline]
fn fields(header: &[u8; FIELDS_BYTES], big_endian: bool) -> [u32; 4] {
    let each = |at: usize| [header[at], header[at + 1], header[at + 2], header[at + 3]];
    let all = [each(0), each(4), each(8), each(12)];
    if big_endian {
        all.map(u32::from_be_bytes)
    } else {
        all.map(u32::from_le_bytes)
    }
}

/// Identify the format: byte order, nanoseconds per tick, record header length.
fn kind(bytes: &[u8]) -> Result<(bool, i64, usize), ReadError> {
    let magic = bytes.get(..4).unwrap_or(bytes);
    Ok(match magic {
        [0xd4, 0xc3, 0xb2, 0xa1] => (false, 1000, 16),
        [0xa1, 0xb2, 0xc3, 0xd4] => (true, 1000, 16),
        [0x4d, 0x3c, 0xb2, 0xa1] => (false, 1, 16),
        [0xa1, 0xb2, 0x3c, 0x4d] => (true, 1, 16),
        [0x34, 0xcd, 0xb2, 0xa1] => (false, 1000, 24),
        [0xa1, 0xb2, 0xcd, 0x34] => (true, 1000, 24),
        _ => {
            let known = FOREIGN.iter().find(|(begin, _)| bytes.starts_with(begin));
            return Err(ReadError::NotACapture {
                actual: match known {
                    Some((_, name)) => (*name).to_string(),
                    None => format!("a file that begins with {magic:02x?}"),
                },
            });
        }
    })
}
