//! Why a capture, or the rest of one, cannot be read: a line each, with what was found and what would be right.

use std::io;

/// Why nothing more is read of a capture. What came before is whole.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// The operating system or a decompressor gives nothing, or nothing more.
    #[error("cannot be read: {0}")]
    System(#[source] io::Error),
    /// No byte at all.
    #[error("the file is empty; expected a capture (pcap or pcapng)")]
    Empty,
    /// Another kind of file.
    #[error("found {found}; expected a capture (pcap or pcapng, also as gz, zst or xz)")]
    Foreign {
        /// What it begins with, or what it is.
        found: String,
    },
    /// A version of the format that is not described anywhere.
    #[error("found {format} version {major}.{minor}; expected {expected}")]
    Version {
        /// The format.
        format: &'static str,
        /// As the file has it.
        major: u16,
        /// As the file has it.
        minor: u16,
        /// Those that are read.
        expected: &'static str,
    },
    /// The file ends within a record: it is cut off, or still being written.
    #[error("{part} {number} breaks off: found {found} of its {expected} bytes; what is before it is whole")]
    CutOff {
        /// `header`, `packet` or `block`.
        part: &'static str,
        /// Which, from 1 on.
        number: u64,
        /// Its bytes that are there.
        found: usize,
        /// How long it says that it is.
        expected: u64,
    },
    /// A length that no capture has: the bytes are damaged.
    #[error("{part} {number} says that it has {bytes} bytes; expected {expected}; what is before it is whole")]
    Length {
        /// `packet` or `block`.
        part: &'static str,
        /// Which, from 1 on.
        number: u64,
        /// As the file has it.
        bytes: u64,
        /// What a length may be.
        expected: &'static str,
    },
    /// A block of pcapng that contradicts the format.
    #[error(
        "block {number} is damaged: found {found}; expected {expected}; what is before it is whole"
    )]
    Damaged {
        /// Which, from 1 on.
        number: u64,
        /// What is there.
        found: String,
        /// What would be right.
        expected: &'static str,
    },
    /// All packets are of link types that are not known here.
    #[error(
        "found only packets of link type {0}; expected Ethernet, raw IP, loopback, Linux cooked, PPP or Cisco HDLC"
    )]
    LinkType(u16),
}
