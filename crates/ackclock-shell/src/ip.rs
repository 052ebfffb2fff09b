//! IP packets as far as the bridge reads them: connection, payload, ECN bits (RFC 791, RFC 8200, RFC 3168).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ackclock_sim::packet::Ecn;

/// The two ends of a connection as a packet names them; ports are 0 where the protocol has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// Protocol of the transport, such as 6 for TCP.
    pub protocol: u8,
    /// Address and port from which the packet comes.
    pub source: (IpAddr, u16),
    /// Address and port to which it goes.
    pub destination: (IpAddr, u16),
}

impl Key {
    /// The key of packets the other way.
    #[must_use]
    pub fn reversed(self) -> Key {
        Key {
            source: self.destination,
            destination: self.source,
            ..self
        }
    }
}

/// Description of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Its connection.
    pub key: Key,
    /// Payload of the transport; of a protocol that is neither TCP nor UDP, all after the IP header.
    pub payload_bytes: u32,
    /// ECN bits.
    pub ecn: Ecn,
    /// DS codepoint (RFC 2474).
    pub dscp: u8,
    /// Flags of a TCP segment (RFC 9293 section 3.1), such as [`FIN`]; 0 of others.
    pub tcp_flags: u8,
}

/// The flag of a segment that is its sender's last.
pub const FIN: u8 = 1;
/// The flag of a segment that ends or refuses a connection.
pub const RST: u8 = 4;

/// Protocol number of TCP.
pub const TCP: u8 = 6;
const UDP: u8 = 17;
/// Protocol numbers of ICMP and ICMPv6.
pub const ICMP: [u8; 2] = [1, 58];

/// Read the header of an IP packet; `None` if it is none or damaged. Extension headers of IPv6 are not followed: their
/// connections have no ports.
pub fn header(packet: &[u8]) -> Option<Header> {
    match packet.first()? >> 4 {
        4 => ipv4(packet),
        6 => ipv6(packet),
        _ => None,
    }
}

fn ipv4(packet: &[u8]) -> Option<Header> {
    let header_bytes = usize::from(packet[0] & 15) * 4;
    if header_bytes < 20 {
        return None;
    }
    let content = packet.get(header_bytes..)?;
    let address = |at: usize| {
        let octets: [u8; 4] = packet[at..at + 4].try_into().ok()?;
        Some(IpAddr::V4(Ipv4Addr::from(octets)))
    };
    // Fragments but the first have no ports.
    let is_later_fragment = (packet[6] & 0x1f, packet[7]) != (0, 0);
    let transport = (!is_later_fragment).then_some(content);
    Some(of(
        packet[9],
        (address(12)?, address(16)?),
        content,
        transport,
        packet[1],
    ))
}

fn ipv6(packet: &[u8]) -> Option<Header> {
    let content = packet.get(40..)?;
    let address = |at: usize| {
        let octets: [u8; 16] = packet[at..at + 16].try_into().ok()?;
        Some(IpAddr::V6(Ipv6Addr::from(octets)))
    };
    let class = packet[0] << 4 | packet[1] >> 4;
    Some(of(
        packet[6],
        (address(8)?, address(24)?),
        content,
        Some(content),
        class,
    ))
}

fn of(
    protocol: u8,
    (source, destination): (IpAddr, IpAddr),
    content: &[u8],
    transport: Option<&[u8]>,
    class: u8,
) -> Header {
    let port = |at: usize| {
        let bytes = transport?.get(at..at + 2)?;
        Some(u16::from_be_bytes([bytes[0], bytes[1]]))
    };
    let is_tcp = protocol == TCP;
    let flags = transport
        .filter(|_| is_tcp)
        .and_then(|segment| segment.get(13));
    let (ports, header_bytes) = match protocol {
        TCP => {
            let offset = transport.and_then(|content| content.get(12));
            (
                (port(0), port(2)),
                offset.map_or(0, |byte| usize::from(byte >> 4) * 4),
            )
        }
        UDP => ((port(0), port(2)), 8),
        _ => ((None, None), 0),
    };
    Header {
        key: Key {
            protocol,
            source: (source, ports.0.unwrap_or(0)),
            destination: (destination, ports.1.unwrap_or(0)),
        },
        payload_bytes: content.len().saturating_sub(header_bytes) as u32,
        ecn: [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce][usize::from(class & 3)],
        dscp: class >> 2,
        tcp_flags: flags.copied().unwrap_or(0),
    }
}

/// Write CE into the header of a packet that a link has marked (RFC 3168 section 5), with the checksum of IPv4
/// (RFC 1624, equation 3).
pub fn mark(packet: &mut [u8]) {
    match packet.first().map(|first| first >> 4) {
        Some(4) if packet.len() >= 20 => {
            let changed = [packet[0], packet[1] | 3];
            replace(packet, 0, &changed, &[10]);
        }
        Some(6) if packet.len() >= 2 => packet[1] |= 3 << 4,
        _ => {}
    }
}

/// Write other addresses and ports into a packet of TCP or UDP, with its checksums; returns false for any other packet,
/// for fragments, IPv6 with extension headers and addresses of the other version, and leaves it as it is.
pub fn readdress(packet: &mut [u8], source: (IpAddr, u16), destination: (IpAddr, u16)) -> bool {
    let Some(protocol) = header(packet).map(|header| header.key.protocol) else {
        return false;
    };
    let (addresses_at, addresses, at) = match (packet[0] >> 4, source.0, destination.0) {
        (4, IpAddr::V4(from), IpAddr::V4(to)) => {
            let is_fragment = (packet[6] & 0x3f, packet[7]) != (0, 0);
            if is_fragment {
                return false;
            }
            let addresses = [from.octets(), to.octets()].concat();
            (12, addresses, usize::from(packet[0] & 15) * 4)
        }
        (6, IpAddr::V6(from), IpAddr::V6(to)) => (8, [from.octets(), to.octets()].concat(), 40),
        _ => return false,
    };
    let (least, sum) = match protocol {
        TCP => (20, at + 16),
        UDP => (8, at + 6),
        _ => return false,
    };
    if packet.len() < at + least {
        return false;
    }
    let has_sum = protocol == TCP || packet[sum..sum + 2] != [0, 0]; // RFC 768: none
    let sums: &[usize] = if has_sum { &[sum] } else { &[] };
    // The pseudo header has the addresses, too; IPv6 has no checksum of its header.
    let header_sums: &[usize] = if addresses_at == 12 { &[10] } else { &[] };
    replace(
        packet,
        addresses_at,
        &addresses,
        &[header_sums, sums].concat(),
    );
    let ports = [source.1.to_be_bytes(), destination.1.to_be_bytes()].concat();
    replace(packet, at, &ports, sums);
    if protocol == UDP && has_sum && packet[sum..sum + 2] == [0, 0] {
        packet[sum..sum + 2].fill(0xff);
    }
    true
}

/// Put bytes at an even place of a packet, and correct the checksums at the places of them.
fn replace(packet: &mut [u8], at: usize, bytes: &[u8], sums: &[usize]) {
    let old = packet[at..at + bytes.len()].to_vec();
    packet[at..at + bytes.len()].copy_from_slice(bytes);
    for &sum in sums {
        correct(packet, sum, &old, bytes);
    }
}

/// Correct the checksum at a place for words that have changed (RFC 1624, equation 3).
fn correct(packet: &mut [u8], at: usize, old: &[u8], new: &[u8]) {
    let words = |bytes: &[u8]| -> Vec<u16> {
        let pairs = bytes.chunks_exact(2);
        pairs
            .map(|pair| u16::from_be_bytes([pair[0], pair[1]]))
            .collect()
    };
    let mut sum = u32::from(!u16::from_be_bytes([packet[at], packet[at + 1]]));
    sum += words(old).iter().map(|word| u32::from(!word)).sum::<u32>();
    sum += words(new).iter().map(|word| u32::from(*word)).sum::<u32>();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    packet[at..at + 2].copy_from_slice(&(!(sum as u16)).to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An IPv4 packet with the bytes of RFC 1071's sum in its header.
    fn ipv4_packet(protocol: u8, class: u8, content: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x45, class, 0, 0, 0, 0, 0x40, 0, 64, protocol, 0, 0];
        packet.extend([10, 0, 0, 1, 10, 0, 0, 2]);
        packet.extend(content);
        let length = packet.len() as u16;
        packet[2..4].copy_from_slice(&length.to_be_bytes());
        let sum = !checksum(&packet[..20]);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        packet
    }

    fn checksum(header: &[u8]) -> u16 {
        let words = header
            .chunks(2)
            .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
        let sum: u32 = words.sum();
        ((sum & 0xffff) + (sum >> 16)) as u16
    }

    #[test]
    fn a_tcp_segment_has_ports_and_payload() {
        let mut segment = vec![0x1f, 0x90, 0xd4, 0x31];
        segment.extend([0; 8]);
        segment.extend([0x80, 0x10 | FIN]);
        segment.extend([0; 18 + 100]);
        let found = header(&ipv4_packet(TCP, 46 << 2 | 2, &segment)).expect("a packet");
        assert_eq!((found.key.source.1, found.key.destination.1), (8080, 54321));
        assert_eq!((found.payload_bytes, found.ecn), (100, Ecn::Ect0));
        assert_eq!((found.dscp, found.tcp_flags), (46, 0x10 | FIN));
        assert_eq!(found.key.reversed().reversed(), found.key);
    }

    #[test]
    fn a_later_fragment_has_no_ports() {
        let mut packet = ipv4_packet(UDP, 0, &[9; 40]);
        packet[7] = 185;
        assert_eq!(header(&packet).expect("a packet").key.source.1, 0);
    }

    #[test]
    fn an_ipv6_datagram_has_ports_and_a_class() {
        let mut packet = vec![0x60, 0x10, 0, 0, 0, 12, UDP, 64];
        packet.extend([0xfd; 32]);
        packet.extend([0, 53, 0, 99, 0, 12, 0, 0, 1, 2, 3, 4]);
        let found = header(&packet).expect("a packet");
        assert_eq!((found.key.source.1, found.key.destination.1), (53, 99));
        assert_eq!((found.payload_bytes, found.ecn), (4, Ecn::Ect1));
        assert_eq!((found.dscp, found.tcp_flags), (0, 0));
        mark(&mut packet);
        assert_eq!(header(&packet).expect("a packet").ecn, Ecn::Ce);
    }

    #[test]
    fn a_mark_keeps_the_checksum_right() {
        for class in [1, 2, 0xb8 | 2] {
            let mut packet = ipv4_packet(UDP, class, &[7; 12]);
            mark(&mut packet);
            assert_eq!(packet[1], class | 3);
            assert_eq!(checksum(&packet[..20]), 0xffff);
        }
    }

    /// The sum of a segment with its pseudo header (RFC 9293 section 3.1): 0xffff if its checksum is right.
    fn transport_sum(packet: &[u8]) -> u16 {
        let content = &packet[20..];
        let mut summed = packet[12..20].to_vec();
        summed.extend([0, packet[9]]);
        summed.extend((content.len() as u16).to_be_bytes());
        summed.extend(content);
        checksum(&summed)
    }

    #[test]
    fn another_address_keeps_the_checksums_right() {
        let outside = (IpAddr::from([198, 51, 100, 255]), 443);
        let relay = (IpAddr::from([10, 77, 0, 1]), 65535);
        for (protocol, sum_at) in [(TCP, 36), (UDP, 26)] {
            for byte in [0, 1, 0x7f, 0xff] {
                let mut content = vec![0x1f, 0x90, 0xd4, 0x31];
                content.extend([byte; 30]);
                content[sum_at - 20..sum_at - 18].fill(0);
                let mut packet = ipv4_packet(protocol, 0, &content);
                let sum = !transport_sum(&packet);
                packet[sum_at..sum_at + 2].copy_from_slice(&sum.to_be_bytes());
                assert_eq!(transport_sum(&packet), 0xffff);
                assert!(readdress(&mut packet, outside, relay));
                let key = header(&packet).expect("a packet").key;
                assert_eq!((key.source, key.destination), (outside, relay));
                assert_eq!(checksum(&packet[..20]), 0xffff);
                assert_eq!(transport_sum(&packet), 0xffff);
            }
        }
    }

    #[test]
    fn another_address_of_ipv6_keeps_the_checksum_right() {
        let outside = ("2001:db8::443".parse().expect("an address"), 443);
        let relay = ("fd00:77::1".parse().expect("an address"), 65535);
        for (protocol, sum_at) in [(TCP, 56), (UDP, 46)] {
            let mut packet = vec![0x60, 0, 0, 0, 0, 34, protocol, 64];
            packet.extend([0xfd; 32]);
            packet.extend([0x1f, 0x90, 0xd4, 0x31]);
            packet.extend([7; 30]);
            packet[sum_at..sum_at + 2].fill(0);
            // RFC 8200 section 8.1: addresses, length, protocol; the words' order does not matter to the sum.
            let pseudo_sum = |packet: &[u8]| {
                let mut summed = packet[8..].to_vec();
                summed.extend([0, 34, 0, protocol]);
                checksum(&summed)
            };
            let sum = !pseudo_sum(&packet);
            packet[sum_at..sum_at + 2].copy_from_slice(&sum.to_be_bytes());
            assert!(readdress(&mut packet, outside, relay));
            let key = header(&packet).expect("a packet").key;
            assert_eq!((key.source, key.destination), (outside, relay));
            assert_eq!(pseudo_sum(&packet), 0xffff);
            let ipv4 = (IpAddr::from([127, 0, 0, 1]), 9);
            assert!(!readdress(&mut packet, ipv4, ipv4));
        }
    }

    #[test]
    fn a_datagram_without_checksum_gets_none() {
        let end = (IpAddr::from([127, 0, 0, 1]), 9);
        let mut packet = ipv4_packet(UDP, 0, &[0, 1, 0, 2, 0, 12, 0, 0, 7, 7, 7, 7]);
        assert!(readdress(&mut packet, end, end));
        assert_eq!(packet[26..28], [0, 0]);
        assert_eq!(checksum(&packet[..20]), 0xffff);
    }

    #[test]
    fn fragments_and_other_protocols_keep_their_addresses() {
        let end = (IpAddr::from([127, 0, 0, 1]), 9);
        let mut fragment = ipv4_packet(UDP, 0, &[9; 40]);
        fragment[6] = 0x20;
        for packet in [
            fragment,
            ipv4_packet(1, 0, &[8; 8]),
            ipv4_packet(TCP, 0, &[1; 19]),
        ] {
            let mut changed = packet.clone();
            assert!(!readdress(&mut changed, end, end));
            assert_eq!(changed, packet);
        }
    }

    #[test]
    fn what_is_no_packet_is_none() {
        for bytes in [&[][..], &[0x45], &[0x41; 30], &[0x60; 39], &[0x10; 60]] {
            assert_eq!(header(bytes), None);
        }
        let whole = ipv4_packet(TCP, 0, &[]);
        assert_eq!(header(&whole).expect("a packet").payload_bytes, 0);
        for length in 0..whole.len() {
            assert_eq!(header(&whole[..length]), None);
        }
    }
}
