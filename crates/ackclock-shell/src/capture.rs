//! Captures of programs' packets, as pcap files of raw IP (link type 101).

use std::fs::File;
use std::io::{self, BufWriter, Write};

use ackclock_core::Time;

/// The header of a pcap file with times in nanoseconds: magic number, version 2.4, snap length, link type.
const HEADER: [u32; 6] = [0xa1b2_3c4d, 0x0004_0002, 0, 0, 0xffff, 101];

/// A capture file; its first second is that of the run.
pub struct Capture(BufWriter<File>);

impl Capture {
    /// Begin a file.
    pub fn new(file: File) -> io::Result<Capture> {
        let mut writer = BufWriter::new(file);
        for word in HEADER {
            writer.write_all(&word.to_le_bytes())?;
        }
        Ok(Capture(writer))
    }

    /// Write a packet.
    pub fn write(&mut self, time: Time, packet: &[u8]) -> io::Result<()> {
        let nanoseconds = time.picoseconds() / 1000;
        let length = packet.len() as u32;
        let seconds = (nanoseconds / 1_000_000_000) as u32;
        for word in [
            seconds,
            (nanoseconds % 1_000_000_000) as u32,
            length,
            length,
        ] {
            self.0.write_all(&word.to_le_bytes())?;
        }
        self.0.write_all(packet)
    }

    /// Write what is buffered.
    pub fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
