//! The records of a capture file, parsed in place in the read buffer: pcap (pcap-savefile(5)) and pcapng
//! (draft-ietf-opsawg-pcapng).
//!
//! The parser is our own. `pcap-parser` 0.17, tried first, allocates a list for each packet that has options, rejects
//! timestamps in powers of two, and reads the time offsets and drop counts of big-endian files for little-endian.
//!
//! Memory is bounded: a record has at most [`MAX_RECORD_BYTES`], a file at most [`MAX_INTERFACES`].

use std::io::Read;

use crate::error::ReadError;
use read_buffer::ReadBuffer;

mod pcap;
mod pcapng;
mod read_buffer;

/// The longest packet or block, in bytes. Captures have up to the largest snaplen, 256 KiB, or a super-segment of 512
/// KiB; a longer one is a damaged length.
pub const MAX_RECORD_BYTES: usize = 16 << 20;
/// The maximum number of interfaces, more than any machine has; each takes memory.
pub const MAX_INTERFACES: usize = 1 << 16;

/// A packet as it was captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Nanoseconds since 1970, if the file has a time for it.
    pub time_ns: Option<i64>,
    /// The index of its [`Interface`] in the file.
    pub interface: u32,
    /// The link type (LINKTYPE_…) of the interface.
    pub link: u16,
    /// True if the host sent it, if the file records it.
    pub outbound: Option<bool>,
    /// The length of the frame on the link.
    pub frame_bytes: u32,
    /// The captured bytes.
    pub bytes: &'a [u8],
}

/// An interface as described in the file. A pcap file has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// The link type (LINKTYPE_…).
    pub link: u16,
    /// The snapshot length; 0 is no limit.
    pub snap_bytes: u32,
    /// Its name.
    pub name: Option<String>,
    /// Ticks per second of its clock; none if the file's number is absurd.
    pub ticks_per_second: Option<u128>,
    /// Seconds to be added to its times.
    pub offset_s: i64,
    /// Packets that the interface lost, as last counted.
    pub dropped: Option<u64>,
    /// Packets that the operating system lost, as last counted.
    pub dropped_by_system: Option<u64>,
    /// Packets lost in between, as recorded with packets.
    pub dropped_between: u64,
}

/// Reads the records of one file.
#[derive(Debug)]
pub struct Records<R> {
    buffer: ReadBuffer<R>,
    format: Format,
    interfaces: Vec<Interface>,
    over: bool,
}

#[derive(Debug)]
enum Format {
    Savefile(pcap::Savefile),
    Blocks(pcapng::Blocks),
}

/// The layout of the record at the start of the read buffer.
struct RecordLayout {
    time_ns: Option<i64>,
    interface: u32,
    outbound: Option<bool>,
    frame_bytes: u32,
    /// The offset of the packet in the record.
    from: usize,
    captured_bytes: usize,
    /// The length of the record with its header.
    record_bytes: usize,
}

impl<R: Read> Records<R> {
    /// Read the header of an uncompressed file.
    ///
    /// # Errors
    /// The stream is no capture, or its header is incomplete.
    pub fn new(source: R) -> Result<Self, ReadError> {
        let mut buffer = ReadBuffer::new(source);
        if !buffer.ensure(4).map_err(ReadError::System)? && buffer.available().is_empty() {
            return Err(ReadError::Empty);
        }
        let mut interfaces = Vec::new();
        let format = if buffer.available().starts_with(&pcapng::MAGIC) {
            Format::Blocks(pcapng::Blocks::new())
        } else {
            Format::Savefile(pcap::Savefile::open(&mut buffer, &mut interfaces)?)
        };
        Ok(Self {
            buffer,
            format,
            interfaces,
            over: false,
        })
    }

    /// Return the next record; none at the end.
    ///
    /// # Errors
    /// The reason why nothing more can be read. It is reported once; then the file is at its end.
    #[inline]
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>, ReadError> {
        if self.over {
            return Ok(None);
        }
        // One arm per format, so that the layout is not moved through a common type for every packet.
        let layout = match &mut self.format {
            Format::Savefile(savefile) => match savefile.next(&mut self.buffer) {
                Ok(Some(layout)) => layout,
                last => return self.end(last),
            },
            Format::Blocks(blocks) => match blocks.next(&mut self.buffer, &mut self.interfaces) {
                Ok(Some(layout)) => layout,
                last => return self.end(last),
            },
        };
        let record = self.buffer.take(layout.record_bytes);
        Ok(Some(Record {
            time_ns: layout.time_ns,
            interface: layout.interface,
            link: self.interfaces[layout.interface as usize].link,
            outbound: layout.outbound,
            frame_bytes: layout.frame_bytes,
            bytes: &record[layout.from..layout.from + layout.captured_bytes],
        }))
    }

    #[cold]
    fn end(
        &mut self,
        last: Result<Option<RecordLayout>, ReadError>,
    ) -> Result<Option<Record<'_>>, ReadError> {
        self.over = true;
        last.map(|_| None)
    }

    /// Return the interfaces described so far, over all sections.
    pub fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }
}

#[inline]
fn u16_at(bytes: &[u8], at: usize, big_endian: bool) -> u16 {
    let field = [bytes[at], bytes[at + 1]];
    if big_endian {
        u16::from_be_bytes(field)
    } else {
        u16::from_le_bytes(field)
    }
}

#[inline]
fn u32_at(bytes: &[u8], at: usize, big_endian: bool) -> u32 {
    let field = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
    if big_endian {
        u32::from_be_bytes(field)
    } else {
        u32::from_le_bytes(field)
    }
}

#[cfg(test)]
mod tests;
