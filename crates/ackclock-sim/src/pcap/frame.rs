//! A TCP segment or a UDP datagram as the bytes of an Ethernet frame in a capture file.
//!
//! Sources: RFC 791 (IPv4), RFC 6864 (identification of unfragmented datagrams), RFC 9293 section
//! 3.1 (TCP), RFC 1071 (checksum), RFC 2018 (SACK), RFC 7323 (window scale, timestamps), RFC 3168 and 9768
//! (ECN).
//!
//! Payload is all zeros but that of QUIC, whose datagrams are real: a frame is cut at [`SNAP_BYTES`].

use ackclock_core::Time;
use ackclock_pcap::savefile::{record_header, SNAP_BYTES};

use super::ground_truth::Header;
use crate::external::ExternalPacket;
use crate::packet::{Ecn, Packet};

const ETHERNET_BYTES: usize = 14;
/// Types of Ethernet frames with IPv4 and with IPv6 (RFC 894, RFC 2464).
const ETHER_TYPES: [u16; 2] = [0x0800, 0x86dd];
const IP_BYTES: usize = 20;
const TCP_BYTES: usize = 20;
/// Offset of the DS field in a frame, with the ECN bits.
const DS_FIELD: usize = ETHERNET_BYTES + 1;
/// Offset of the time to live in a frame, and its initial value, as in Linux.
const TIME_TO_LIVE: usize = ETHERNET_BYTES + 8;
const FIRST_TIME_TO_LIVE: u8 = 64;
const UDP_BYTES: u32 = 8;
const UDP_IP_BYTES: u32 = IP_BYTES as u32 + UDP_BYTES;
/// Protocol numbers in the IP header.
const TCP: u8 = 6;
const UDP: u8 = 17;
/// Largest size of the TCP options, bytes.
pub const OPTION_BYTES_MAX: usize = 40;
/// Port of every receiver; ports of the senders follow from the flow.
const RECEIVER_PORT: u16 = 5001;
/// First of the senders' ports (RFC 6335: the dynamic range), and how many there are.
const SENDER_PORTS: (u16, u32) = (49_152, 16_384);

/// FIN flag.
pub const FIN: u16 = 0x01;
/// SYN flag.
pub const SYN: u16 = 0x02;
/// ACK flag.
pub const ACK: u16 = 0x10;
/// ECE flag (RFC 3168).
pub const ECE: u16 = 0x40;
/// CWR flag (RFC 3168).
pub const CWR: u16 = 0x80;
/// AE flag (RFC 9768).
pub const AE: u16 = 0x100;

/// A segment to be captured.
#[derive(Clone, Copy, Debug)]
pub struct Segment<'a> {
    /// The connection; addresses and ports follow from it.
    pub flow: u32,
    /// True if it is from the sender.
    pub forward: bool,
    /// [`SYN`], [`ACK`], [`FIN`], [`ECE`], [`CWR`], [`AE`].
    pub flags: u16,
    /// Sequence number.
    pub sequence: u32,
    /// Acknowledgement number; 0 without [`ACK`].
    pub acknowledgement: u32,
    /// The window field.
    pub window: u16,
    /// Payload, bytes.
    pub payload_bytes: u32,
    /// Identification in the IP header.
    pub identification: u16,
    /// TCP options.
    pub options: Options<'a>,
}

/// The options of a segment.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options<'a> {
    /// Maximum segment size.
    pub mss: Option<u16>,
    /// SACK permitted.
    pub sack_permitted: bool,
    /// Window scale.
    pub window_shift: Option<u8>,
    /// Timestamp value and echo reply.
    pub timestamps: Option<(u32, u32)>,
    /// Left and right edges of SACK blocks. Those that do not fit are left out.
    pub sack: &'a [(u32, u32)],
    /// Padded size of the options, at least.
    pub min_bytes: usize,
}

/// A frame as composed by its sending host, cut at [`SNAP_BYTES`]: headers, and a payload, of zeros where none is
/// given.
#[derive(Clone, Debug, Default)]
pub struct Frame {
    bytes: Vec<u8>,
    /// Bytes of the whole frame.
    length: u32,
    /// True for a program's packet, of which only the ECN bits change on its way.
    is_external: bool,
}

impl Frame {
    /// Make it the frame of a segment; returns its header fields.
    pub fn set_segment(&mut self, segment: &Segment) -> Header {
        let direction = segment.direction();
        let tcp = tcp_header(segment);
        let carried = tcp.len() as u32 + segment.payload_bytes;
        let ip = ip_header(direction, TCP, segment.identification, carried);
        self.set(direction, &[&ip, &tcp], segment.payload_bytes);
        Header {
            identification: segment.identification,
            sequence: Some(segment.sequence),
            payload_bytes: segment.payload_bytes,
        }
    }

    /// Make it the frame of a UDP datagram (RFC 768) with this content. Wire bytes beyond 28 bytes of headers are
    /// payload: the content, and zeros.
    pub fn set_datagram(&mut self, packet: &Packet, content: &[u8]) -> Header {
        let direction = Direction {
            flow: packet.flow,
            forward: packet.kind.is_forward(),
        };
        let payload_bytes = packet.wire_bytes.saturating_sub(UDP_IP_BYTES);
        let carried = UDP_BYTES + payload_bytes;
        let content = &content[..content.len().min(payload_bytes as usize)];
        let (source, destination) = ports(direction);
        let mut udp = [0; UDP_BYTES as usize];
        udp[..2].copy_from_slice(&source.to_be_bytes());
        udp[2..4].copy_from_slice(&destination.to_be_bytes());
        udp[4..6].copy_from_slice(&length_field(carried).to_be_bytes());
        // RFC 768: a checksum of 0 means none, so a computed 0 is written as all ones.
        let (even, odd) = content.split_at(content.len() & !1);
        let last = odd.first().map_or([0; 2], |&byte| [byte, 0]);
        let pseudo = pseudo_header(direction, UDP, carried);
        let parts = [&pseudo[..], &udp, even, &last];
        let checksum = match !sum(&parts) {
            0 => 0xffff,
            checksum => checksum,
        };
        udp[6..].copy_from_slice(&checksum.to_be_bytes());
        let identification = packet.sequence as u16;
        let ip = ip_header(direction, UDP, identification, carried);
        self.set(
            direction,
            &[&ip, &udp, content],
            payload_bytes - content.len() as u32,
        );
        Header {
            identification,
            sequence: None,
            payload_bytes,
        }
    }

    /// Make it the frame of a program's IP packet, as the packet is.
    pub fn set_external(&mut self, packet: &ExternalPacket) -> Header {
        let ip = &packet.bytes[..];
        let is_ipv4 = ip.first().is_some_and(|byte| byte >> 4 == 4);
        let mut ethernet = ethernet_header(Direction {
            flow: 0,
            forward: true,
        });
        let ether_type = if is_ipv4 {
            ETHER_TYPES[0]
        } else {
            ETHER_TYPES[1]
        };
        ethernet[ETHERNET_BYTES - 2..].copy_from_slice(&ether_type.to_be_bytes());
        self.bytes.clear();
        self.bytes.extend(ethernet);
        self.bytes.extend(ip);
        self.length = self.bytes.len() as u32;
        self.bytes.truncate(SNAP_BYTES as usize);
        self.is_external = true;
        let identification = ip.get(4..6).filter(|_| is_ipv4);
        Header {
            identification: identification
                .map_or(0, |bytes| u16::from_be_bytes([bytes[0], bytes[1]])),
            sequence: None,
            payload_bytes: packet.payload_bytes,
        }
    }

    /// Set the codepoint of the DS field (RFC 2474).
    pub fn set_codepoint(&mut self, dscp: u8) {
        if let Some(field) = self.bytes.get_mut(DS_FIELD) {
            *field = dscp << 2;
        }
    }

    /// Decrement the time to live, as a router does; a program's packet keeps it.
    pub fn pass_router(&mut self) {
        if self.is_external {
            return;
        }
        if let Some(time_to_live) = self.bytes.get_mut(TIME_TO_LIVE) {
            *time_to_live = time_to_live.saturating_sub(1);
        }
    }

    /// Append its record with this time and these ECN bits, which the checksum of the IP header includes.
    pub fn append_to(&self, file: &mut Vec<u8>, time: Time, ecn: Ecn) {
        let kept = self.bytes.len() as u32;
        file.extend(record_header(time.nanoseconds(), kept, self.length));
        let start = file.len();
        file.extend(&self.bytes);
        let ip = &mut file[start + ETHERNET_BYTES..];
        if ip[0] >> 4 == 6 {
            ip[1] = ip[1] & !(3 << 4) | ecn_bits(ecn) << 4; // RFC 8200 section 3: the traffic class
            return;
        }
        let header_bytes = usize::from(ip[0] & 15) * 4;
        let ip = &mut ip[..header_bytes];
        ip[1] = ip[1] & !3 | ecn_bits(ecn);
        ip[10..12].fill(0);
        let checksum = !sum(&[ip]);
        ip[10..12].copy_from_slice(&checksum.to_be_bytes());
    }

    /// Set the headers of IP and its payload protocol, the payload, and its zeros.
    fn set(&mut self, direction: Direction, headers: &[&[u8]], payload_bytes: u32) {
        self.bytes.clear();
        self.bytes.extend(ethernet_header(direction));
        for header in headers {
            self.bytes.extend(*header);
        }
        self.length = self.bytes.len() as u32 + payload_bytes;
        self.is_external = false;
        self.bytes.resize(self.length.min(SNAP_BYTES) as usize, 0);
    }
}

/// Flow and direction of a packet.
#[derive(Clone, Copy, Debug)]
struct Direction {
    flow: u32,
    forward: bool,
}

impl Segment<'_> {
    fn direction(&self) -> Direction {
        Direction {
            flow: self.flow,
            forward: self.forward,
        }
    }
}

/// Source and destination address.
fn addresses(direction: Direction) -> ([u8; 4], [u8; 4]) {
    let host = direction.flow.wrapping_add(1).to_be_bytes();
    let sender = [10, host[1] & 0x7f, host[2], host[3]];
    let receiver = [10, host[1] | 0x80, host[2], host[3]];
    if direction.forward {
        (sender, receiver)
    } else {
        (receiver, sender)
    }
}

/// Source and destination port.
fn ports(direction: Direction) -> (u16, u16) {
    let (first, count) = SENDER_PORTS;
    let sender = first + (direction.flow % count) as u16;
    if direction.forward {
        (sender, RECEIVER_PORT)
    } else {
        (RECEIVER_PORT, sender)
    }
}

/// Locally administered addresses that contain the IP addresses.
fn ethernet_header(direction: Direction) -> [u8; ETHERNET_BYTES] {
    let (source, destination) = addresses(direction);
    let mut header = [0; ETHERNET_BYTES];
    header[0] = 2;
    header[2..6].copy_from_slice(&destination);
    header[6] = 2;
    header[8..12].copy_from_slice(&source);
    header[12..].copy_from_slice(&ETHER_TYPES[0].to_be_bytes());
    header
}

/// The header before `bytes` of a protocol, but for the ECN bits and the checksum, which change on the way.
fn ip_header(
    direction: Direction,
    protocol: u8,
    identification: u16,
    bytes: u32,
) -> [u8; IP_BYTES] {
    let (source, destination) = addresses(direction);
    let length = length_field(IP_BYTES as u32 + bytes);
    let mut header = [0; IP_BYTES];
    header[0] = 0x45;
    header[2..4].copy_from_slice(&length.to_be_bytes());
    header[4..6].copy_from_slice(&identification.to_be_bytes());
    header[6] = 0x40; // don't fragment
    header[TIME_TO_LIVE - ETHERNET_BYTES] = FIRST_TIME_TO_LIVE;
    header[9] = protocol;
    header[12..16].copy_from_slice(&source);
    header[16..].copy_from_slice(&destination);
    header
}

/// The header with its options and checksum.
fn tcp_header(segment: &Segment) -> Vec<u8> {
    let (source, destination) = ports(segment.direction());
    let options = option_bytes(&segment.options);
    let mut header = Vec::with_capacity(TCP_BYTES + OPTION_BYTES_MAX);
    header.extend(source.to_be_bytes());
    header.extend(destination.to_be_bytes());
    header.extend(segment.sequence.to_be_bytes());
    header.extend(segment.acknowledgement.to_be_bytes());
    let offset = ((TCP_BYTES + options.len()) / 4) as u16;
    header.extend((offset << 12 | segment.flags).to_be_bytes());
    header.extend(segment.window.to_be_bytes());
    header.extend([0; 4]); // checksum, urgent pointer
    header.extend(options);
    let carried = header.len() as u32 + segment.payload_bytes;
    let pseudo = pseudo_header(segment.direction(), TCP, carried);
    let checksum = !sum(&[&pseudo, &header]);
    header[16..18].copy_from_slice(&checksum.to_be_bytes());
    header
}

fn pseudo_header(direction: Direction, protocol: u8, bytes: u32) -> [u8; 12] {
    let (source, destination) = addresses(direction);
    let length = length_field(bytes);
    let mut header = [0; 12];
    header[..4].copy_from_slice(&source);
    header[4..8].copy_from_slice(&destination);
    header[9] = protocol;
    header[10..].copy_from_slice(&length.to_be_bytes());
    header
}

/// Options in the order in which Linux writes them, each aligned to four bytes with what it needs.
fn option_bytes(options: &Options) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(OPTION_BYTES_MAX);
    if let Some(mss) = options.mss {
        bytes.extend([2, 4]);
        bytes.extend(mss.to_be_bytes());
    }
    match (options.sack_permitted, options.timestamps.is_some()) {
        (true, true) => bytes.extend([4, 2]),
        (true, false) => bytes.extend([1, 1, 4, 2]),
        (false, true) => bytes.extend([1, 1]),
        (false, false) => {}
    }
    if let Some((value, echo)) = options.timestamps {
        bytes.extend([8, 10]);
        bytes.extend(value.to_be_bytes());
        bytes.extend(echo.to_be_bytes());
    }
    if let Some(shift) = options.window_shift {
        bytes.extend([1, 3, 3, shift]);
    }
    append_sack(&mut bytes, options.sack);
    let min_bytes = options.min_bytes.next_multiple_of(4).min(OPTION_BYTES_MAX);
    bytes.resize(bytes.len().max(min_bytes), 1);
    bytes
}

fn append_sack(bytes: &mut Vec<u8>, blocks: &[(u32, u32)]) {
    let room = (OPTION_BYTES_MAX - bytes.len()).saturating_sub(4) / 8;
    let count = blocks.len().min(room);
    if count == 0 {
        return;
    }
    bytes.extend([1, 1, 5, 2 + 8 * count as u8]);
    for (left, right) in &blocks[..count] {
        bytes.extend(left.to_be_bytes());
        bytes.extend(right.to_be_bytes());
    }
}

fn ecn_bits(ecn: Ecn) -> u8 {
    match ecn {
        Ecn::NotEct => 0b00,
        Ecn::Ect1 => 0b01,
        Ecn::Ect0 => 0b10,
        Ecn::Ce => 0b11,
    }
}

/// A 16-bit length; 0 for what does not fit, as captures of offloaded segments have it.
fn length_field(bytes: u32) -> u16 {
    u16::try_from(bytes).unwrap_or(0)
}

/// The ones' complement sum (RFC 1071) of parts of even length.
fn sum(parts: &[&[u8]]) -> u16 {
    let words = parts.iter().flat_map(|part| part.chunks_exact(2));
    let mut total: u32 = words
        .map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])))
        .sum();
    while total > 0xffff {
        total = (total & 0xffff) + (total >> 16);
    }
    total as u16
}

#[cfg(test)]
mod tests;
