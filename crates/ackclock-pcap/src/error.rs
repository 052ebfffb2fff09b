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
        "found only packets of link type {0}{name}; expected Ethernet, raw IP, loopback, Linux cooked, PPP or Cisco HDLC",
        name = name(*.0)
    )]
    LinkType(u16),
}

/// Link types that are met although no TCP of theirs is read, from tcpdump.org's list.
const LINKS: [(u16, &str); 15] = [
    (8, "SLIP"),
    (10, "FDDI"),
    (100, "ATM"),
    (105, "802.11"),
    (107, "frame relay"),
    (117, "pflog"),
    (119, "802.11 with a Prism header"),
    (127, "802.11 with radiotap"),
    (163, "802.11 with an AVS header"),
    (187, "Bluetooth"),
    (189, "USB"),
    (195, "802.15.4"),
    (220, "USB"),
    (239, "nflog"),
    (253, "netlink"),
];

/// The name of a link type in brackets, if it has one here.
fn name(link: u16) -> String {
    let named = LINKS.iter().find(|(number, _)| *number == link);
    named
        .map(|(_, name)| format!(" ({name})"))
        .unwrap_or_default()
}
