//! Errors of reading captures, one line each: the value found and the value expected.

use std::io;

/// The reason why reading a capture ends. The packets before it are complete.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The operating system or a decompressor reports an error.
    #[error("cannot be read: {0}")]
    System(#[source] io::Error),
    /// The file is empty.
    #[error("the file is empty; expected a capture (pcap or pcapng)")]
    Empty,
    /// Another kind of file.
    #[error("found {actual}; expected a capture (pcap or pcapng, also as gz, zst or xz)")]
    NotACapture {
        /// The file's first bytes, or the format they identify.
        actual: String,
    },
    /// An unsupported version of the format.
    #[error("found {format} version {major}.{minor}; expected {expected}")]
    Version {
        /// The format.
        format: &'static str,
        /// The value in the file.
        major: u16,
        /// The value in the file.
        minor: u16,
        /// The supported versions.
        expected: &'static str,
    },
    /// The file ends within a record: it is truncated, or still being written.
    #[error("{part} {number} breaks off: found {actual} of its {expected} bytes; what is before it is complete")]
    CutOff {
        /// `header`, `packet` or `block`.
        part: &'static str,
        /// Its number, counted from 1.
        number: u64,
        /// The bytes of it that are present.
        actual: usize,
        /// The length given in its header, in bytes.
        expected: u64,
    },
    /// An impossible length: the bytes are damaged.
    #[error("{part} {number} has a length of {bytes} bytes; expected {expected}; what is before it is complete")]
    Length {
        /// `packet` or `block`.
        part: &'static str,
        /// Its number, counted from 1.
        number: u64,
        /// The value in the file.
        bytes: u64,
        /// The valid range.
        expected: &'static str,
    },
    /// A block of pcapng that contradicts the format.
    #[error(
        "block {number} is damaged: found {actual}; expected {expected}; what is before it is complete"
    )]
    Damaged {
        /// Its number, counted from 1.
        number: u64,
        /// The value in the file.
        actual: String,
        /// A valid value.
        expected: &'static str,
    },
    /// All packets have unsupported link types.
    #[error(
        "found only packets of link type {0}{name}; expected Ethernet, raw IP, loopback, Linux cooked, PPP or Cisco HDLC",
        name = name(*.0)
    )]
    LinkType(u16),
}

/// Names of unsupported link types that occur in practice, from tcpdump.org's list.
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

/// Return the name of a link type in brackets, if it is listed.
fn name(link: u16) -> String {
    let named = LINKS.iter().find(|(number, _)| *number == link);
    named
        .map(|(_, name)| format!(" ({name})"))
        .unwrap_or_default()
}
