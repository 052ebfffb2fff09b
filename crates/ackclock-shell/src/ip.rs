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

const TCP: u8 = 6;
const UDP: u8 = 17;

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
            let old = u16::from_be_bytes([packet[0], packet[1]]);
            packet[1] |= 3;
            let new = u16::from_be_bytes([packet[0], packet[1]]);
            let sum = u16::from_be_bytes([packet[10], packet[11]]);
            let mut next = u32::from(!sum) + u32::from(!old) + u32::from(new);
            while next > 0xffff {
                next = (next & 0xffff) + (next >> 16);
            }
            packet[10..12].copy_from_slice(&(!(next as u16)).to_be_bytes());
        }
        Some(6) if packet.len() >= 2 => packet[1] |= 3 << 4,
        _ => {}
    }
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
