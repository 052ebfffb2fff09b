//! TCP sockets as the kernel reports them: the messages of `sock_diag`(7), which a namespace's own process receives.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::info::Info;
use crate::netlink::{attributes, messages, text};

/// Messages about sockets (`SOCK_DIAG_BY_FAMILY`).
const BY_FAMILY: u16 = 20;
/// Length of `struct inet_diag_msg` (include/uapi/linux/inet_diag.h), after which its attributes come.
const HEADER_BYTES: usize = 72;
/// Attributes with `TCP_INFO`, and with the name of the congestion control algorithm.
const INFO: u16 = 2;
const CONGESTION: u16 = 4;
const AF_INET: u8 = 2;

/// A TCP socket.
#[derive(Clone, Debug, PartialEq)]
pub struct TcpSocket {
    /// Address and port here, and of the other end.
    pub ends: [(IpAddr, u16); 2],
    /// Congestion control algorithm; empty if it was not reported, as of a socket that is over.
    pub congestion: String,
    /// The kernel's statistics.
    pub info: Info,
}

/// Return the sockets in the kernel's messages that were connected: their handshake gave a round-trip time. Anything else
/// is skipped.
pub fn tcp_sockets(bytes: &[u8]) -> Vec<TcpSocket> {
    messages(bytes)
        .filter(|(kind, _)| *kind == BY_FAMILY)
        .filter_map(|(_, body)| socket(body))
        .collect()
}

fn socket(body: &[u8]) -> Option<TcpSocket> {
    let header = body.get(..HEADER_BYTES)?;
    let ends = [(8, 4), (24, 6)].map(|(address, port)| {
        let port = u16::from_be_bytes([header[port], header[port + 1]]);
        (address_at(header, address), port)
    });
    let mut congestion = String::new();
    let mut info = None;
    for (kind, value) in attributes(&body[HEADER_BYTES..]) {
        match kind {
            INFO => info = Some(Info::parse(value)),
            CONGESTION => text(value).clone_into(&mut congestion),
            _ => {}
        }
    }
    info.filter(|info| info.rtt_us != 0).map(|info| TcpSocket {
        ends,
        congestion,
        info,
    })
}

/// The address at a place of the header, of the family that its first byte names.
fn address_at(header: &[u8], at: usize) -> IpAddr {
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&header[at..at + 16]);
    if header[0] == AF_INET {
        let [a, b, c, d, ..] = bytes;
        return Ipv4Addr::new(a, b, c, d).into();
    }
    // A socket of IPv6 may be connected by IPv4.
    Ipv6Addr::from(bytes).to_canonical()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::netlink::Message;

    /// A message about a socket from 127.0.0.1:40000 to a port there, with a window of 11 and an RTT in µs.
    fn message(port: u16, rtt_us: u8) -> Vec<u8> {
        let mut header = [0; HEADER_BYTES];
        header[0] = AF_INET;
        header[4..6].copy_from_slice(&40_000_u16.to_be_bytes());
        header[6..8].copy_from_slice(&port.to_be_bytes());
        header[8..12].copy_from_slice(&[127, 0, 0, 1]);
        header[24..28].copy_from_slice(&[127, 0, 0, 1]);
        let mut info = [0; 104];
        (info[68], info[80]) = (rtt_us, 11);
        Message::new(BY_FAMILY, 0, &header)
            .with(INFO, &info)
            .with(CONGESTION, b"cubic\0")
            .finish()
    }

    #[test]
    fn a_connected_socket_is_read() {
        let all = [message(80, 9), message(82, 0), message(81, 9)].concat();
        let found = tcp_sockets(&all);
        let ports: Vec<u16> = found.iter().map(|socket| socket.ends[1].1).collect();
        assert_eq!(ports, [80, 81], "one has no answer yet");
        let first = &found[0];
        assert_eq!(first.ends[0], (Ipv4Addr::LOCALHOST.into(), 40_000));
        assert_eq!((first.congestion.as_str(), first.info.cwnd), ("cubic", 11));
    }

    #[test]
    fn an_address_of_ipv4_within_ipv6_is_one_of_ipv4() {
        let mut header = [0; HEADER_BYTES];
        header[0] = 10;
        header[18..20].copy_from_slice(&[255, 255]);
        header[20..24].copy_from_slice(&[10, 77, 0, 1]);
        assert_eq!(address_at(&header, 8), Ipv4Addr::new(10, 77, 0, 1));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = tcp_sockets(&bytes);
        }

        #[test]
        fn a_damaged_message_does_no_harm(place in 0_usize..120, byte: u8) {
            let mut bytes = message(80, 9);
            bytes[place] = byte;
            let _ = tcp_sockets(&bytes);
        }
    }
}
