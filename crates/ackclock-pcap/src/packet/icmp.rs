//! ICMP errors that quote a TCP segment or a UDP datagram: ICMP (RFC 792, RFC 1191, RFC 1812 section 5.2.7.1) and
//! `ICMPv6` (RFC 4443).
//!
//! An error quotes at least eight bytes behind the IP header, so the ports are known, and TCP's sequence number
//! (RFC 792); routers quote more (RFC 1812 section 4.3.2.3).

use super::dissector::{u16_at, u32_at, Dissector, Layer};
use super::{network, tcp, transport, udp, Address, Endpoint, Skipped};
use crate::framing::Record;

/// The numbers of both protocols in an IP header.
pub const PROTOCOL: u8 = 1;
pub const PROTOCOL_6: u8 = 58;

/// The reason for an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum IcmpKind {
    /// The packet is larger than the next link's MTU, and may not be fragmented.
    TooBig,
    /// No route to the network, or it is unknown.
    NetworkUnreachable,
    /// The host does not answer on its link, or is unknown.
    HostUnreachable,
    /// The host does not know the transport protocol.
    ProtocolUnreachable,
    /// No process listens on the port, or a firewall pretends so.
    PortUnreachable,
    /// A firewall or a policy forbids it.
    Prohibited,
    /// The hop limit ran out: a loop of routes.
    TimeExceeded,
}

impl IcmpKind {
    /// The names, in their order.
    pub const NAMES: [&str; 7] = [
        "too_big",
        "network_unreachable",
        "host_unreachable",
        "protocol_unreachable",
        "port_unreachable",
        "prohibited",
        "time_exceeded",
    ];

    fn of(protocol: u8, kind: u8, code: u8) -> Option<Self> {
        Some(match (protocol, kind, code) {
            (PROTOCOL, 3, 4) | (PROTOCOL_6, 2, _) => Self::TooBig,
            (PROTOCOL, 3, 0 | 5 | 6 | 11) | (PROTOCOL_6, 1, 0 | 6) => Self::NetworkUnreachable,
            (PROTOCOL, 3, 1 | 7 | 8 | 12) | (PROTOCOL_6, 1, 2 | 3) => Self::HostUnreachable,
            (PROTOCOL, 3, 2) => Self::ProtocolUnreachable,
            (PROTOCOL, 3, 3) | (PROTOCOL_6, 1, 4) => Self::PortUnreachable,
            (PROTOCOL, 3, 9 | 10 | 13 | 14 | 15) | (PROTOCOL_6, 1, 1 | 5) => Self::Prohibited,
            (PROTOCOL, 11, 0) | (PROTOCOL_6, 3, 0) => Self::TimeExceeded,
            _ => return None,
        })
    }
}

/// An ICMP error that quotes a TCP segment or a UDP datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IcmpError {
    /// Nanoseconds since 1970, if the file has timestamps.
    pub time_ns: Option<i64>,
    /// The reason.
    pub kind: IcmpKind,
    /// The MTU of the next link in bytes, if the error has it.
    pub mtu: Option<u32>,
    /// The host or router that reports it.
    pub reporter: Address,
    /// True if it quotes a UDP datagram, false for a TCP segment.
    pub is_udp: bool,
    /// The sender of the quoted packet.
    pub source: Endpoint,
    /// Its receiver.
    pub destination: Endpoint,
}

/// Decode the ICMP error in a captured frame; none if it has no error, or one that quotes something else.
#[cold]
pub fn error(record: &Record) -> Option<IcmpError> {
    let mut dissector = Dissector::new(record);
    let protocol = transport(record, &mut dissector)
        .ok()
        .filter(|protocol| matches!(*protocol, PROTOCOL | PROTOCOL_6))?;
    let header = dissector.take::<8>().ok()?;
    let kind = IcmpKind::of(protocol, header[0], header[1])?;
    let mtu = match (kind, protocol) {
        (IcmpKind::TooBig, PROTOCOL) => u32::from(u16_at(header, 6)),
        (IcmpKind::TooBig, _) => u32_at(header, 4),
        _ => 0,
    };
    let reporter = dissector.ip.source;
    let (is_udp, [source, destination]) = quoted(&mut dissector).ok()?;
    Some(IcmpError {
        time_ns: record.time_ns,
        kind,
        mtu: Some(mtu).filter(|&mtu| mtu > 0),
        reporter,
        is_udp,
        source,
        destination,
    })
}

/// Return whether the quoted packet is a UDP datagram, and its ends.
fn quoted(dissector: &mut Dissector) -> Result<(bool, [Endpoint; 2]), Skipped> {
    let Layer::Protocol(protocol @ (tcp::PROTOCOL | udp::PROTOCOL)) = network::ip(dissector)?
    else {
        return Err(Skipped::NotTcp);
    };
    let ports = dissector.peek::<4>()?;
    let end = |address, at| Endpoint {
        address,
        port: u16_at(ports, at),
    };
    let ends = [
        end(dissector.ip.source, 0),
        end(dissector.ip.destination, 2),
    ];
    Ok((protocol == udp::PROTOCOL, ends))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::packet::decode;

    const RAW: u16 = 101;

    fn record(bytes: &[u8]) -> Record<'_> {
        Record {
            time_ns: Some(7),
            interface: 0,
            link: RAW,
            outbound: None,
            frame_bytes: bytes.len() as u32,
            bytes,
        }
    }

    /// An IPv4 header from 10.0.0.1 to 10.0.0.2.
    fn ip(protocol: u8, payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x45, 0, 0, 20 + payload.len() as u8, 0, 1, 0, 0, 64];
        packet.extend([protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        packet.extend(payload);
        packet
    }

    /// "Fragmentation needed", which quotes ports 443 and 40000, with an MTU of 1400 (RFC 1191 section 4).
    fn too_big(protocol: u8) -> Vec<u8> {
        let quoted = ip(protocol, &[1, 0xbb, 0x9c, 0x40, 0, 0, 0, 9]);
        ip(1, &[&[3, 4, 0, 0, 0, 0, 5, 0x78][..], &quoted].concat())
    }

    #[test]
    fn the_next_hops_mtu_and_the_quoted_ends_are_read() {
        let of_udp = too_big(udp::PROTOCOL);
        assert!(error(&record(&of_udp)).unwrap().is_udp);
        let packet = too_big(tcp::PROTOCOL);
        let error = error(&record(&packet)).unwrap();
        assert_eq!((error.kind, error.mtu), (IcmpKind::TooBig, Some(1400)));
        assert!(!error.is_udp);
        assert_eq!((error.source.port, error.destination.port), (443, 40000));
        assert_eq!(error.reporter.ip().to_string(), "10.0.0.1");
        assert_eq!(decode(&record(&packet)), Err(Skipped::Icmp));
    }

    #[test]
    fn an_error_without_an_mtu_or_about_another_protocol_has_none() {
        let mut old = too_big(tcp::PROTOCOL);
        old[26..28].fill(0);
        assert_eq!(error(&record(&old)).unwrap().mtu, None);
        assert_eq!(error(&record(&too_big(132))), None);
        let echo = ip(1, &[8, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(error(&record(&echo)), None);
    }

    proptest! {
        #[test]
        fn any_cut_and_changed_error_is_read_or_rejected(
            changes in prop::collection::vec((0_usize..56, any::<u8>()), 0..6),
            kept in 0_usize..=56,
        ) {
            let mut packet = too_big(tcp::PROTOCOL);
            for (place, value) in changes {
                packet[place] = value;
            }
            error(&record(&packet[..kept.min(packet.len())]));
        }
    }
}
