//! The drop monitor: which packet the kernel dropped, where and when (include/uapi/linux/net_dropmon.h).
//!
//! It reports the drops of all namespaces, only in the first namespace. The link is found by the Ethernet address
//! that the queue's device wrote onto the packet.

use std::os::fd::AsFd;

use crate::frame::{headers, Headers};
use crate::netlink::{
    attribute, double, family_request, messages, parse_family, text, Message, Netlink, ACK,
};
use crate::Error;

const CONFIGURE: u8 = 2;
const START: u8 = 3;
const PACKET_ALERT: u8 = 5;

const ALERT_MODE: u16 = 1;
const SYMBOL: u16 = 3;
const TIMESTAMP: u16 = 5;
const PAYLOAD: u16 = 7;
const TRUNCATION: u16 = 9;
const QUEUE_LENGTH: u16 = 11;
const SOFTWARE: u16 = 20;
const REASON: u16 = 22;

const PACKET_MODE: u8 = 1;
/// Ethernet, IPv4 with options, the ports.
const HEADERS_BYTES: u32 = 80;
/// The maximum number of pending drops.
const MAX_PENDING: u32 = 100_000;
/// Buffer of the socket, in bytes: the alerts between two reads.
const SOCKET_BYTES: i32 = 16 << 20;

/// A packet that the kernel dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dropped {
    /// By the real-time clock.
    pub real_ns: u64,
    /// The headers of the dropped frame.
    pub headers: Headers,
    /// The kernel's word for the reason; empty if it has none.
    pub reason: String,
    /// The kernel function that dropped it.
    pub symbol: String,
}

/// Listens to the kernel's drops.
#[derive(Debug)]
pub struct Monitor {
    netlink: Netlink,
    family: u16,
}

impl Monitor {
    /// Begin to listen, in the thread's namespace.
    ///
    /// # Errors
    /// The kernel has no drop monitor, or not for this namespace or user.
    pub fn open() -> Result<Monitor, Error> {
        let mut netlink = Netlink::open(Some(rustix::net::netlink::GENERIC))?;
        let response = netlink.request("drop monitor", &family_request("NET_DM"))?;
        let (family, group) = parse_family(response).ok_or_else(|| {
            Error::RunSpec("the kernel's drop monitor does not describe itself".to_owned())
        })?;
        let configure = Message::new(family, ACK, &[CONFIGURE, 1, 0, 0])
            .with(ALERT_MODE, &[PACKET_MODE])
            .with(TRUNCATION, &HEADERS_BYTES.to_ne_bytes())
            .with(QUEUE_LENGTH, &MAX_PENDING.to_ne_bytes());
        netlink.request("drop monitor", &configure.finish())?;
        let socket = netlink.socket().as_fd();
        // Without the privilege the buffer stays as it is.
        let _ =
            crate::sys::set_option(socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, SOCKET_BYTES);
        let start = Message::new(family, ACK, &[START, 1, 0, 0]).with(SOFTWARE, &[]);
        netlink.request("drop monitor", &start.finish())?;
        netlink.join(group)?;
        Ok(Monitor { netlink, family })
    }

    /// Return the descriptor that becomes readable when drops are reported.
    pub fn socket(&self) -> impl AsFd + '_ {
        self.netlink.socket()
    }

    /// Return the drops reported since the last call.
    pub fn take(&mut self) -> Vec<Dropped> {
        let mut drops = Vec::new();
        while let Some(bytes) = self.netlink.poll() {
            let family = self.family;
            let has_event = messages(bytes).filter(|(kind, _)| *kind == family);
            drops.extend(has_event.filter_map(|(_, body)| parse(body)));
        }
        drops
    }
}

/// Parse a packet alert; none for anything but an IPv4 packet with ports.
fn parse(body: &[u8]) -> Option<Dropped> {
    if *body.first()? != PACKET_ALERT {
        return None;
    }
    let body = body.get(4..)?;
    let word = |wanted| attribute(body, wanted).map_or("", text).to_owned();
    Some(Dropped {
        real_ns: attribute(body, TIMESTAMP).and_then(|value| double(value, 0))?,
        headers: headers(attribute(body, PAYLOAD)?)?,
        reason: word(REASON),
        symbol: word(SYMBOL),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::frame::tests::{expected_headers, frame};

    const HEADER_BYTES: usize = 16;

    fn alert(frame: &[u8]) -> Vec<u8> {
        Message::new(30, 0, &[PACKET_ALERT, 1, 0, 0])
            .with(SYMBOL, b"__dev_queue_xmit+0x1\0")
            .with(TIMESTAMP, &1_500_000_000_u64.to_ne_bytes())
            .with(PAYLOAD, frame)
            .with(REASON, b"QDISC_DROP\0")
            .finish()
    }

    #[test]
    fn an_alert_names_the_packet() {
        let expected = Dropped {
            real_ns: 1_500_000_000,
            headers: expected_headers(),
            reason: "QDISC_DROP".to_owned(),
            symbol: "__dev_queue_xmit+0x1".to_owned(),
        };
        assert_eq!(parse(&alert(&frame())[HEADER_BYTES..]), Some(expected));
    }

    #[test]
    fn an_unrelated_alert_is_ignored() {
        let mut arp = frame();
        arp[13] = 6;
        assert_eq!(parse(&alert(&arp)[HEADER_BYTES..]), None);
    }

    proptest! {
        #[test]
        fn any_alert_is_a_packet_or_none(frame in prop::collection::vec(any::<u8>(), 0..90)) {
            let _ = parse(&alert(&frame)[HEADER_BYTES..]);
        }
    }
}
