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

/// Unsupported link types that occur in practice, from <https://www.tcpdump.org/linktypes.html>: their names without
/// `LINKTYPE_`, and what is captured.
const LINKS: [(u16, &str, &str); 36] = [
    (3, "AX25", "amateur radio"),
    (6, "IEEE802_5", "token ring"),
    (7, "ARCNET_BSD", "ARCNET"),
    (8, "SLIP", "serial lines"),
    (10, "FDDI", "FDDI"),
    (100, "ATM_RFC1483", "ATM"),
    (105, "IEEE802_11", "802.11"),
    (107, "FRELAY", "frame relay"),
    (114, "LTALK", "LocalTalk"),
    (117, "PFLOG", "OpenBSD's pf"),
    (119, "IEEE802_11_PRISM", "802.11 with a Prism header"),
    (122, "IP_OVER_FC", "Fibre Channel"),
    (123, "SUNATM", "ATM"),
    (127, "IEEE802_11_RADIOTAP", "802.11 with radiotap"),
    (138, "APPLE_IP_OVER_IEEE1394", "FireWire"),
    (140, "MTP2", "SS7"),
    (143, "DOCSIS", "cable modems"),
    (144, "LINUX_IRDA", "infrared"),
    (147, "USER0", "a private use"),
    (163, "IEEE802_11_AVS", "802.11 with an AVS header"),
    (166, "PPP_PPPD", "PPP of pppd"),
    (187, "BLUETOOTH_HCI_H4", "Bluetooth"),
    (189, "USB_LINUX", "USB"),
    (192, "PPI", "802.11 with PPI"),
    (195, "IEEE802_15_4_WITHFCS", "802.15.4"),
    (201, "BLUETOOTH_HCI_H4_WITH_PHDR", "Bluetooth"),
    (220, "USB_LINUX_MMAPPED", "USB"),
    (227, "CAN_SOCKETCAN", "a CAN bus"),
    (230, "IEEE802_15_4_NOFCS", "802.15.4"),
    (239, "NFLOG", "Linux's netfilter log"),
    (249, "USBPCAP", "USB"),
    (251, "BLUETOOTH_LE_LL", "Bluetooth"),
    (253, "NETLINK", "Linux's netlink"),
    (254, "BLUETOOTH_LINUX_MONITOR", "Bluetooth"),
    (258, "PKTAP", "Apple's packet tap"),
    (271, "VSOCK", "sockets of virtual machines"),
];

/// Return the name of a link type in brackets, if it is listed.
fn name(link: u16) -> String {
    let named = LINKS.iter().find(|(number, ..)| *number == link);
    named.map_or_else(String::new, |(_, name, what)| {
        format!(" (LINKTYPE_{name}, {what})")
    })
}
