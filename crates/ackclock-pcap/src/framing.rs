//! The records of a capture file, one by one, where they lie in the read buffer: pcap (pcap-savefile(5)) and pcapng
//! (draft-ietf-opsawg-pcapng).
//!
//! The framing is our own. `pcap-parser` 0.17, tried first, allocates a list for each packet that has options, refuses
//! time in powers of two, and takes the time offsets and drop counts of big-endian files for little-endian.
//!
//! Memory is bounded: a record has at most [`MOST_BYTES`], a file at most [`MOST_INTERFACES`].

use std::io::Read;

use crate::error::Unreadable;
use window::Window;

mod pcap;
mod pcapng;
mod window;

/// The longest packet or block that is kept in one piece. What captures have is the largest snaplen, 256 KiB, or a
/// super-segment of 512 KiB; more is a damaged length.
pub const MOST_BYTES: usize = 16 << 20;
/// More interfaces than any machine has; each costs memory.
pub const MOST_INTERFACES: usize = 1 << 16;

/// A packet as it was captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Nanoseconds since 1970, if the file has a time for it.
    pub time_ns: Option<i64>,
    /// Which of the file's [`Interface`]s.
    pub interface: u32,
    /// The link type (LINKTYPE_…) of the interface.
    pub link: u16,
    /// Whether the host sent it, if the file says so.
    pub outbound: Option<bool>,
    /// The length that it had.
    pub frame_bytes: u32,
    /// What was captured of it.
    pub bytes: &'a [u8],
}

/// What a file says about an interface. A pcap file has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// The link type (LINKTYPE_…).
    pub link: u16,
    /// At most so many bytes of a packet were captured; 0 is no limit.
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
    /// Packets lost before those that say so themselves.
    pub dropped_between: u64,
}

/// Reads the records of one file.
#[derive(Debug)]
pub struct Records<R> {
    window: Window<R>,
    format: Format,
    interfaces: Vec<Interface>,
    over: bool,
}

#[derive(Debug)]
enum Format {
    Savefile(pcap::Savefile),
    Blocks(pcapng::Blocks),
}

/// Where a record lies at the beginning of the window.
struct Placed {
    time_ns: Option<i64>,
    interface: u32,
    outbound: Option<bool>,
    frame_bytes: u32,
    /// The first byte of the packet.
    from: usize,
    captured_bytes: usize,
    /// The record as a whole.
    whole_bytes: usize,
}

impl<R: Read> Records<R> {
    /// Reads the beginning of a file, which is not compressed (any more).
    ///
    /// # Errors
    /// It is no capture, or has no whole header.
    pub fn new(source: R) -> Result<Self, Unreadable> {
        let mut window = Window::new(source);
        if !window.ensure(4).map_err(Unreadable::System)? && window.available().is_empty() {
            return Err(Unreadable::Empty);
        }
        let mut interfaces = Vec::new();
        let format = if window.available().starts_with(&pcapng::MAGIC) {
            Format::Blocks(pcapng::Blocks::new())
        } else {
            Format::Savefile(pcap::Savefile::open(&mut window, &mut interfaces)?)
        };
        Ok(Self {
            window,
            format,
            interfaces,
            over: false,
        })
    }

    /// The next packet; none at the end.
    ///
    /// # Errors
    /// Why nothing more can be read. It is said once: then the file is at its end.
    #[inline]
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>, Unreadable> {
        if self.over {
            return Ok(None);
        }
        // Each format by itself, so that what it found need not be put together and taken apart for every packet.
        let placed = match &mut self.format {
            Format::Savefile(savefile) => match savefile.next(&mut self.window) {
                Ok(Some(placed)) => placed,
                last => return self.end(last),
            },
            Format::Blocks(blocks) => match blocks.next(&mut self.window, &mut self.interfaces) {
                Ok(Some(placed)) => placed,
                last => return self.end(last),
            },
        };
        let whole = self.window.take(placed.whole_bytes);
        Ok(Some(Record {
            time_ns: placed.time_ns,
            interface: placed.interface,
            link: self.interfaces[placed.interface as usize].link,
            outbound: placed.outbound,
            frame_bytes: placed.frame_bytes,
            bytes: &whole[placed.from..placed.from + placed.captured_bytes],
        }))
    }

    #[cold]
    fn end(
        &mut self,
        last: Result<Option<Placed>, Unreadable>,
    ) -> Result<Option<Record<'_>>, Unreadable> {
        self.over = true;
        last.map(|_| None)
    }

    /// The interfaces described so far, over all sections.
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
