//! pcapng files (draft-ietf-opsawg-pcapng): sections, interfaces, enhanced, simple and obsolete packets, statistics.
//! All other blocks are passed over.

use std::io::Read;

use super::read_buffer::ReadBuffer;
use super::{u16_at, u32_at, Interface, ReadError, RecordLayout, MAX_INTERFACES, MAX_RECORD_BYTES};

/// The type of a section header, which is the same in both byte orders.
pub const MAGIC: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
/// A block's type and length before its body, and the length repeated behind it.
const BODY: usize = 8;
const FRAME_BYTES: usize = 12;

const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const OBSOLETE_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;

/// The parser of pcapng blocks.
#[derive(Debug)]
pub struct Blocks {
    big_endian: bool,
    /// The first of this section's interfaces.
    section: usize,
    /// For each interface, the nanoseconds of a tick if they are whole: nearly all are.
    nanoseconds_per_tick: Vec<u64>,
    number: u64,
}

impl Blocks {
    /// Before the first section header.
    pub fn new() -> Self {
        Self {
            big_endian: false,
            section: 0,
            nanoseconds_per_tick: Vec::new(),
            number: 0,
        }
    }

    /// Return the layout of the next packet; none at the end of the file. Interface blocks before it go to
    /// `interfaces`.
    #[inline]
    pub fn next<R: Read>(
        &mut self,
        buffer: &mut ReadBuffer<R>,
        interfaces: &mut Vec<Interface>,
    ) -> Result<Option<RecordLayout>, ReadError> {
        loop {
            let Some((kind, length)) = self.begin(buffer)? else {
                return Ok(None);
            };
            if !matches!(
                kind,
                SECTION
                    | INTERFACE
                    | STATISTICS
                    | OBSOLETE_PACKET
                    | SIMPLE_PACKET
                    | ENHANCED_PACKET
            ) {
                self.skip_block(buffer, length)?;
                continue;
            }
            let length = self.buffer_block(buffer, length)?;
            let body = &buffer.available()[BODY..length - 4];
            let layout = match kind {
                ENHANCED_PACKET => self.enhanced(body, interfaces)?,
                SIMPLE_PACKET => self.simple(body, interfaces)?,
                OBSOLETE_PACKET => self.obsolete(body, interfaces)?,
                _ => {
                    self.describe(kind, body, interfaces)?;
                    buffer.take(length);
                    continue;
                }
            };
            return Ok(Some(RecordLayout {
                record_bytes: length,
                ..layout
            }));
        }
    }

    /// Read the type and length of the next block.
    #[inline]
    fn begin<R: Read>(
        &mut self,
        buffer: &mut ReadBuffer<R>,
    ) -> Result<Option<(u32, u32)>, ReadError> {
        self.number += 1;
        if !buffer.ensure(FRAME_BYTES).map_err(ReadError::System)? {
            return match buffer.available().len() {
                0 => Ok(None),
                actual => Err(self.cut_off(actual as u64, FRAME_BYTES as u64)),
            };
        }
        let bytes = buffer.available();
        if bytes.starts_with(&MAGIC) {
            self.big_endian = match [false, true].map(|big_endian| u32_at(bytes, BODY, big_endian))
            {
                [BYTE_ORDER_MAGIC, _] => false,
                [_, BYTE_ORDER_MAGIC] => true,
                [actual, _] => {
                    return Err(self.damaged(format!("byte order {actual:#010x}"), "0x1a2b3c4d"))
                }
            };
        }
        let (kind, length) = (
            u32_at(bytes, 0, self.big_endian),
            u32_at(bytes, 4, self.big_endian),
        );
        if (length as usize) < FRAME_BYTES || length % 4 != 0 {
            return Err(ReadError::Length {
                part: "block",
                number: self.number,
                bytes: u64::from(length),
                expected: "at least 12, and a multiple of 4",
            });
        }
        Ok(Some((kind, length)))
    }

    /// Create the whole block available; return its length.
    #[inline]
    fn buffer_block<R: Read>(
        &self,
        buffer: &mut ReadBuffer<R>,
        length: u32,
    ) -> Result<usize, ReadError> {
        let bytes = length as usize;
        if bytes > MAX_RECORD_BYTES {
            return Err(ReadError::Length {
                part: "block",
                number: self.number,
                bytes: u64::from(length),
                expected: "at most 16777216",
            });
        }
        if !buffer.ensure(bytes).map_err(ReadError::System)? {
            return Err(self.cut_off(buffer.available().len() as u64, bytes as u64));
        }
        let behind = u32_at(buffer.available(), bytes - 4, self.big_endian);
        if behind != length {
            return Err(self.damaged(
                format!("length {length} before and {behind} behind it"),
                "the same twice",
            ));
        }
        Ok(bytes)
    }

    /// Skip a block.
    fn skip_block<R: Read>(
        &self,
        buffer: &mut ReadBuffer<R>,
        length: u32,
    ) -> Result<(), ReadError> {
        let length = u64::from(length);
        let passed = buffer.skip(length).map_err(ReadError::System)?;
        if passed < length {
            return Err(self.cut_off(passed, length));
        }
        Ok(())
    }

    /// Process a section, interface or statistics block.
    fn describe(
        &mut self,
        kind: u32,
        body: &[u8],
        interfaces: &mut Vec<Interface>,
    ) -> Result<(), ReadError> {
        match kind {
            SECTION => self.section(body, interfaces.len()),
            INTERFACE => self.interface(body, interfaces),
            _ => self.statistics(body, interfaces),
        }
    }

    fn section(&mut self, body: &[u8], interfaces: usize) -> Result<(), ReadError> {
        self.long_enough(body, 16)?;
        let (major, minor) = (
            u16_at(body, 4, self.big_endian),
            u16_at(body, 6, self.big_endian),
        );
        if major != 1 {
            return Err(ReadError::Version {
                format: "pcapng",
                major,
                minor,
                expected: "1.0",
            });
        }
        self.section = interfaces;
        Ok(())
    }

    fn interface(&mut self, body: &[u8], interfaces: &mut Vec<Interface>) -> Result<(), ReadError> {
        self.long_enough(body, 8)?;
        if interfaces.len() == MAX_INTERFACES {
            return Err(self.damaged("one more interface".into(), "at most 65536"));
        }
        let mut interface = Interface {
            link: u16_at(body, 0, self.big_endian),
            snap_bytes: u32_at(body, 4, self.big_endian),
            name: None,
            ticks_per_second: Some(1_000_000),
            offset_s: 0,
            dropped: None,
            dropped_by_system: None,
            dropped_between: 0,
        };
        for (code, value) in options(&body[8..], self.big_endian) {
            match (code, value) {
                (2, name) => interface.name = Some(String::from_utf8_lossy(name).into_owned()),
                (9, [resolution]) => interface.ticks_per_second = ticks_per_second(*resolution),
                (14, value) => interface.offset_s = self.u64_option(value).unwrap_or(0) as i64,
                _ => {}
            }
        }
        self.nanoseconds_per_tick
            .push(match interface.ticks_per_second {
                Some(ticks) if interface.offset_s == 0 && 1_000_000_000 % ticks == 0 => {
                    1_000_000_000 / ticks as u64
                }
                _ => 0,
            });
        interfaces.push(interface);
        Ok(())
    }

    fn statistics(&self, body: &[u8], interfaces: &mut [Interface]) -> Result<(), ReadError> {
        self.long_enough(body, 12)?;
        let interface = self.number_of(u32_at(body, 0, self.big_endian), interfaces)?;
        for (code, value) in options(&body[12..], self.big_endian) {
            match code {
                5 => interfaces[interface].dropped = self.u64_option(value),
                7 => interfaces[interface].dropped_by_system = self.u64_option(value),
                _ => {}
            }
        }
        Ok(())
    }

    #[inline]
    fn enhanced(
        &self,
        body: &[u8],
        interfaces: &mut [Interface],
    ) -> Result<RecordLayout, ReadError> {
        self.long_enough(body, 20)?;
        let field = |at| u32_at(body, at, self.big_endian);
        let interface = self.number_of(field(0), interfaces)?;
        let captured_bytes = field(12) as usize;
        let mut layout = RecordLayout {
            time_ns: self.time_ns(interface, field(4), field(8), interfaces),
            interface: interface as u32,
            outbound: None,
            frame_bytes: field(16).max(field(12)),
            from: BODY + 20,
            captured_bytes,
            record_bytes: 0,
        };
        if captured_bytes > body.len() - 20 {
            return Err(self.too_long(captured_bytes, body.len() - 20));
        }
        let behind = 20 + captured_bytes.next_multiple_of(4);
        if behind < body.len() {
            for (code, value) in options(&body[behind..], self.big_endian) {
                match (code, value) {
                    (2, &[_, _, _, _]) => {
                        layout.outbound = outbound(u32_at(value, 0, self.big_endian));
                    }
                    (4, value) => self.dropped_between(value, &mut interfaces[interface]),
                    _ => {}
                }
            }
        }
        Ok(layout)
    }

    fn simple(&self, body: &[u8], interfaces: &[Interface]) -> Result<RecordLayout, ReadError> {
        self.long_enough(body, 4)?;
        let interface = self.number_of(0, interfaces)?;
        let frame_bytes = u32_at(body, 0, self.big_endian);
        let snap_bytes = match interfaces[interface].snap_bytes {
            0 => u32::MAX,
            bytes => bytes,
        };
        Ok(RecordLayout {
            time_ns: None,
            interface: interface as u32,
            outbound: None,
            frame_bytes,
            from: BODY + 4,
            captured_bytes: (body.len() - 4).min(frame_bytes.min(snap_bytes) as usize),
            record_bytes: 0,
        })
    }

    fn obsolete(&self, body: &[u8], interfaces: &[Interface]) -> Result<RecordLayout, ReadError> {
        self.long_enough(body, 20)?;
        let field = |at| u32_at(body, at, self.big_endian);
        let interface = self.number_of(u32::from(u16_at(body, 0, self.big_endian)), interfaces)?;
        let captured_bytes = field(12) as usize;
        if captured_bytes > body.len() - 20 {
            return Err(self.too_long(captured_bytes, body.len() - 20));
        }
        Ok(RecordLayout {
            time_ns: self.time_ns(interface, field(4), field(8), interfaces),
            interface: interface as u32,
            outbound: None,
            frame_bytes: field(16).max(field(12)),
            from: BODY + 20,
            captured_bytes,
            record_bytes: 0,
        })
    }

    /// Nanoseconds since 1970, if they fit into a number.
    #[inline]
    fn time_ns(
        &self,
        interface: usize,
        high: u32,
        low: u32,
        interfaces: &[Interface],
    ) -> Option<i64> {
        let ticks = u64::from(high) << 32 | u64::from(low);
        let factor = self.nanoseconds_per_tick[interface];
        if factor > 0 {
            return i64::try_from(ticks.checked_mul(factor)?).ok();
        }
        let Interface {
            ticks_per_second,
            offset_s,
            ..
        } = interfaces[interface];
        let nanoseconds =
            i128::try_from(u128::from(ticks) * 1_000_000_000 / ticks_per_second?).ok()?;
        i64::try_from(nanoseconds + i128::from(offset_s) * 1_000_000_000).ok()
    }

    /// An interface of this section among those of the file.
    #[inline]
    fn number_of(&self, number: u32, interfaces: &[Interface]) -> Result<usize, ReadError> {
        let index = self.section + number as usize;
        if index < interfaces.len() {
            return Ok(index);
        }
        Err(self.damaged(
            format!("interface {number} of {}", interfaces.len() - self.section),
            "an interface that was described before",
        ))
    }

    fn dropped_between(&self, value: &[u8], interface: &mut Interface) {
        let dropped = self.u64_option(value).unwrap_or(0);
        interface.dropped_between = interface.dropped_between.saturating_add(dropped);
    }

    fn u64_option(&self, value: &[u8]) -> Option<u64> {
        let bytes: [u8; 8] = value.try_into().ok()?;
        Some(if self.big_endian {
            u64::from_be_bytes(bytes)
        } else {
            u64::from_le_bytes(bytes)
        })
    }

    #[inline]
    fn long_enough(&self, body: &[u8], bytes: usize) -> Result<(), ReadError> {
        if body.len() >= bytes {
            return Ok(());
        }
        Err(ReadError::Length {
            part: "block",
            number: self.number,
            bytes: (body.len() + FRAME_BYTES) as u64,
            expected: "all fields of its type",
        })
    }

    #[cold]
    fn too_long(&self, captured_bytes: usize, room: usize) -> ReadError {
        let actual = format!("a packet of {captured_bytes} bytes with room for {room}");
        self.damaged(actual, "a packet that fits into its block")
    }

    #[cold]
    fn damaged(&self, actual: String, expected: &'static str) -> ReadError {
        ReadError::Damaged {
            number: self.number,
            actual,
            expected,
        }
    }

    #[cold]
    fn cut_off(&self, actual: u64, expected: u64) -> ReadError {
        ReadError::CutOff {
            part: "block",
            number: self.number,
            actual: actual as usize,
            expected,
        }
    }
}

/// `if_tsresol`: a negative power of ten, or with the upper bit set of two. None if it does not fit into 128 bits.
fn ticks_per_second(resolution: u8) -> Option<u128> {
    match resolution {
        0..=0x7f => 10_u128.checked_pow(u32::from(resolution)),
        _ => 1_u128.checked_shl(u32::from(resolution & 0x7f)),
    }
}

/// `epb_flags`: the lowest two bits.
fn outbound(flags: u32) -> Option<bool> {
    match flags & 3 {
        1 => Some(false),
        2 => Some(true),
        _ => None,
    }
}

/// The options of a block with their codes, up to the last whole one.
fn options(mut bytes: &[u8], big_endian: bool) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        if bytes.len() < 4 {
            return None;
        }
        let (code, length) = (
            u16_at(bytes, 0, big_endian),
            usize::from(u16_at(bytes, 2, big_endian)),
        );
        let value = bytes.get(4..4 + length)?;
        bytes = bytes
            .get(4 + length.next_multiple_of(4)..)
            .unwrap_or_default();
        (code != 0).then_some((code, value))
    })
}
