//! Headers of an Ethernet frame: the sending device, and the endpoints of the packet in it.

use std::net::{Ipv4Addr, SocketAddrV4};

use crate::netlink::u16_field;

const IPV4: u16 = 0x0800;
const TCP: u8 = 6;
const UDP: u8 = 17;

/// The headers of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headers {
    /// The Ethernet address of the device that sends it.
    pub from: [u8; 6],
    pub source: SocketAddrV4,
    pub destination: SocketAddrV4,
}

/// The headers of a frame with IPv4 (RFC 791) and TCP or UDP; none of any other.
pub fn headers(frame: &[u8]) -> Option<Headers> {
    if u16_field(frame, 12).map(u16::from_be)? != IPV4 {
        return None;
    }
    let packet = frame.get(14..)?;
    if !matches!(*packet.get(9)?, TCP | UDP) {
        return None;
    }
    let ports = usize::from(packet[0] & 0xf) * 4;
    let end = |address: usize, port: usize| {
        let bytes: [u8; 4] = packet.get(address..address + 4)?.try_into().ok()?;
        let port = u16::from_be(u16_field(packet, port)?);
        Some(SocketAddrV4::new(Ipv4Addr::from(bytes), port))
    };
    Some(Headers {
        from: frame.get(6..12)?.try_into().ok()?,
        source: end(12, ports)?,
        destination: end(16, ports + 2)?,
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A TCP segment from 10.1.0.1:8192 to 10.2.0.1:1024 in an Ethernet frame.
    pub fn frame() -> Vec<u8> {
        let mut frame = vec![2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 7, 8, 0];
        frame.extend([
            0x45, 0, 0, 40, 0, 0, 0x40, 0, 63, 6, 0, 0, 10, 1, 0, 1, 10, 2, 0, 1,
        ]);
        frame.extend([0x20, 0, 4, 0, 0, 0, 0, 1]);
        frame
    }

    /// Return the headers of [`frame`].
    pub fn expected_headers() -> Headers {
        Headers {
            from: [2, 0, 0, 0, 0, 7],
            source: SocketAddrV4::new(Ipv4Addr::new(10, 1, 0, 1), 8192),
            destination: SocketAddrV4::new(Ipv4Addr::new(10, 2, 0, 1), 1024),
        }
    }

    #[test]
    fn the_headers_name_both_ends() {
        assert_eq!(headers(&frame()), Some(expected_headers()));
    }

    #[test]
    fn frames_without_ipv4_ports_have_no_headers() {
        let mut arp = frame();
        arp[13] = 6;
        assert_eq!(headers(&arp), None);
        let mut icmp = frame();
        icmp[14 + 9] = 1;
        assert_eq!(headers(&icmp), None);
    }

    proptest! {
        #[test]
        fn any_frame_has_headers_or_none(frame in prop::collection::vec(any::<u8>(), 0..90)) {
            let _ = headers(&frame);
        }

        #[test]
        fn a_cut_frame_has_none(length in 0_usize..38) {
            prop_assert_eq!(headers(&frame()[..length]), None);
        }
    }
}
