//! Netlink messages: devices, qdisc, generic families.
//!
//! Sources: netlink(7), rtnetlink(7), include/uapi/linux/{rtnetlink,gen_stats,pkt_sched,genetlink}.h.

use std::os::fd::{AsFd, OwnedFd};

use ackclock_core::tables::UNKNOWN;
use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{
    bind, recv, send, socket_with, AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags,
    SocketType,
};

use crate::error::Tried;
use crate::{sys, Error};

const HEADER_BYTES: usize = 16;
const ERROR: u16 = 2;

/// Asks for something.
pub const REQUEST: u16 = 1;
/// Asks for the answer that others get, too.
const ECHO: u16 = 8;
/// Asks for an answer in any case.
pub const ACK: u16 = 4;

const NEW_LINK: u16 = 16;
const GET_LINK: u16 = 18;
const NEW_QDISC: u16 = 36;
const GET_QDISC: u16 = 38;

const SOL_NETLINK: i32 = 270;
const ADD_MEMBERSHIP: i32 = 1;

/// Largest message that is read.
const MAX_BYTES: usize = 1 << 16;

/// A netlink socket.
#[derive(Debug)]
pub struct Netlink {
    socket: OwnedFd,
    buffer: Vec<u8>,
}

impl Netlink {
    /// A socket in the thread's namespace.
    pub fn open(protocol: Option<Protocol>) -> Result<Netlink, Error> {
        let flags = SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, protocol)
            .tried(|| "netlink".to_owned())?;
        bind(&socket, &SocketAddrNetlink::new(0, 0)).tried(|| "netlink".to_owned())?;
        Ok(Netlink {
            socket,
            buffer: vec![0; MAX_BYTES],
        })
    }

    /// The socket.
    pub fn socket(&self) -> &OwnedFd {
        &self.socket
    }

    /// Subscribe to a multicast group.
    pub fn join(&self, group: u32) -> Result<(), Error> {
        sys::set_option(
            self.socket.as_fd(),
            SOL_NETLINK,
            ADD_MEMBERSHIP,
            group as i32,
        )
        .tried(|| format!("netlink group {group}"))
    }

    /// Request, and return the first message of the answer: its type and what follows the header.
    pub fn request(&mut self, what: &str, message: &[u8]) -> Result<(u16, &[u8]), Error> {
        send(&self.socket, message, SendFlags::empty()).tried(|| what.to_owned())?;
        let (_, length) = recv(&self.socket, self.buffer.as_mut_slice(), RecvFlags::empty())
            .tried(|| what.to_owned())?;
        let response = messages(&self.buffer[..length.min(MAX_BYTES)]).next();
        let (kind, body) = response.ok_or(Errno::BADMSG).tried(|| what.to_owned())?;
        if kind == ERROR {
            let code = word(body, 0).unwrap_or(0) as i32;
            if code != 0 {
                return Err(Errno::from_raw_os_error(-code)).tried(|| what.to_owned());
            }
        }
        Ok((kind, body))
    }

    /// The next datagram without waiting; none if there is none now.
    pub fn poll(&mut self) -> Option<&[u8]> {
        let read = recv(
            &self.socket,
            self.buffer.as_mut_slice(),
            RecvFlags::DONTWAIT,
        );
        let length = read.ok()?.1.min(MAX_BYTES);
        Some(&self.buffer[..length])
    }
}

/// A message that is being made.
#[derive(Debug)]
pub struct Message(Vec<u8>);

impl Message {
    /// A message of a type, with its family's header behind netlink's.
    pub fn new(kind: u16, flags: u16, header: &[u8]) -> Message {
        let mut bytes = vec![0; HEADER_BYTES];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes[6..8].copy_from_slice(&(flags | REQUEST).to_ne_bytes());
        bytes.extend(header);
        Message(bytes)
    }

    /// Add an attribute.
    #[must_use]
    pub fn with(mut self, kind: u16, value: &[u8]) -> Message {
        self.0.extend((4 + value.len() as u16).to_ne_bytes());
        self.0.extend(kind.to_ne_bytes());
        self.0.extend(value);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }

    /// The bytes.
    pub fn finish(mut self) -> Vec<u8> {
        let length = self.0.len() as u32;
        self.0[..4].copy_from_slice(&length.to_ne_bytes());
        self.0
    }
}

/// The messages of a datagram: type, and what follows the header.
pub fn messages(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = word(bytes, 0)? as usize;
        let body = bytes.get(HEADER_BYTES..length)?;
        let kind = u16_field(bytes, 4)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or(&[]);
        Some((kind, body))
    })
}

/// The attributes of a message: type without its flags, and value.
pub fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(u16_field(bytes, 0)?);
        let value = bytes.get(4..length)?;
        let kind = u16_field(bytes, 2)? & 0x3fff;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or(&[]);
        Some((kind, value))
    })
}

/// One attribute of those.
pub fn attribute(bytes: &[u8], wanted: u16) -> Option<&[u8]> {
    attributes(bytes)
        .find(|(kind, _)| *kind == wanted)
        .map(|(_, value)| value)
}

/// A text that ends at its zero byte.
pub fn text(bytes: &[u8]) -> &str {
    let end = bytes
        .iter()
        .position(|&byte| byte == 0)
        .unwrap_or(bytes.len());
    std::str::from_utf8(&bytes[..end]).unwrap_or("")
}

/// Four bytes as a number.
pub fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// Two bytes as a number.
pub fn u16_field(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

/// Eight bytes as a number.
pub fn double(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

/// A device: its number in the namespace and its Ethernet address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interface {
    /// Its number.
    pub index: u32,
    /// Its address.
    pub address: [u8; 6],
}

/// Request for a device by its name.
pub fn link_request(name: &str) -> Vec<u8> {
    const NAME: u16 = 3;
    let name = [name.as_bytes(), &[0]].concat();
    Message::new(GET_LINK, 0, &[0; 16])
        .with(NAME, &name)
        .finish()
}

/// The answer to [`link_request`].
pub fn parse_link((kind, body): (u16, &[u8])) -> Option<Interface> {
    const ADDRESS: u16 = 1;
    let is_link = kind == NEW_LINK;
    let address = attribute(body.get(16..)?, ADDRESS).and_then(|value| value.try_into().ok());
    is_link.then_some(Interface {
        index: word(body, 4)?,
        address: address.unwrap_or_default(),
    })
}

/// The counters of a qdisc; `marked_p` is [`UNKNOWN`] if the qdisc does not report it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct QueueCounters {
    pub backlog_p: u32,
    pub backlog_bytes: u32,
    pub departed_p: u64,
    pub departed_bytes: u64,
    pub dropped_p: u64,
    pub marked_p: u64,
}

/// Request for a qdisc by its device and handle.
pub fn queue_request(interface: u32, handle: u32) -> Vec<u8> {
    let mut header = [0; 20];
    header[4..8].copy_from_slice(&interface.to_ne_bytes());
    header[8..12].copy_from_slice(&handle.to_ne_bytes());
    Message::new(GET_QDISC, ECHO, &header).finish()
}

/// A handle as `tc` writes it: `10:`, hexadecimal.
pub fn parse_handle(handle: &str) -> Option<u32> {
    let (major, minor) = handle.split_once(':')?;
    let minor = if minor.is_empty() { "0" } else { minor };
    let (major, minor) = (
        u16::from_str_radix(major, 16).ok()?,
        u16::from_str_radix(minor, 16).ok()?,
    );
    Some(u32::from(major) << 16 | u32::from(minor))
}

/// The answer to [`queue_request`].
pub fn parse_queue((kind, body): (u16, &[u8])) -> Option<QueueCounters> {
    const KIND: u16 = 1;
    const STATISTICS: u16 = 7;
    const BASIC: u16 = 1;
    const QUEUE: u16 = 3;
    const APPLICATION: u16 = 4;
    const PACKETS: u16 = 8;
    if kind != NEW_QDISC {
        return None;
    }
    let body = body.get(20..)?;
    let statistics = attribute(body, STATISTICS)?;
    let basic = attribute(statistics, BASIC)?;
    let queue = attribute(statistics, QUEUE)?;
    let packets = attribute(statistics, PACKETS).and_then(|value| double(value, 0));
    let own = attribute(statistics, APPLICATION).unwrap_or_default();
    let marks = attribute(body, KIND).and_then(|name| marks(text(name), own));
    Some(QueueCounters {
        backlog_p: word(queue, 0)?,
        backlog_bytes: word(queue, 4)?,
        departed_p: packets.or(word(basic, 8).map(u64::from))?,
        departed_bytes: double(basic, 0)?,
        dropped_p: u64::from(word(queue, 8)?),
        marked_p: marks.unwrap_or(UNKNOWN),
    })
}

/// Packets that a discipline has marked itself, from its own statistics; none if it is not known where it counts them.
///
/// CoDel counts what its law marks (`ecn_mark`) and what it marks beyond `ce_threshold` (`ce_mark`), and a packet that
/// is both twice. A threshold below the target marks all that the law marks, so the larger count is that of the
/// packets.
fn marks(discipline: &str, counts: &[u8]) -> Option<u64> {
    let places: &[usize] = match discipline {
        "pfifo" | "bfifo" | "prio" | "sfq" | "tbf" => &[],
        "red" | "choke" => &[12],
        "fq_codel" => &[12, 28],
        "fq_pie" => &[16],
        "sfb" => &[20],
        "codel" => &[24, 32],
        "pie" => &[36],
        "fq" => return double(counts, 80),
        "cake" => return cake_marks(counts),
        _ => return None,
    };
    let mut counts = places.iter().map(|&at| word(counts, at).map(u64::from));
    counts.try_fold(0, |most, count| Some(most.max(count?)))
}

/// Packets that CAKE has marked, which it counts by tin.
fn cake_marks(counts: &[u8]) -> Option<u64> {
    const TINS: u16 = 10;
    const MARKED: u16 = 8;
    let tins = attributes(attribute(counts, TINS)?);
    let marked = tins.map(|(_, tin)| word(attribute(tin, MARKED)?, 0).map(u64::from));
    marked.sum()
}

/// Request for a generic family by its name.
pub fn family_request(name: &str) -> Vec<u8> {
    const CONTROL: u16 = 16;
    const GET_FAMILY: u8 = 3;
    const NAME: u16 = 2;
    let name = [name.as_bytes(), &[0]].concat();
    Message::new(CONTROL, 0, &[GET_FAMILY, 1, 0, 0])
        .with(NAME, &name)
        .finish()
}

/// The answer to [`family_request`]: the family's number and that of its first group.
pub fn parse_family((_, body): (u16, &[u8])) -> Option<(u16, u32)> {
    const NUMBER: u16 = 1;
    const GROUPS: u16 = 7;
    const GROUP_NUMBER: u16 = 2;
    let body = body.get(4..)?;
    let number = attribute(body, NUMBER).and_then(|value| u16_field(value, 0))?;
    let (_, group) = attributes(attribute(body, GROUPS)?).next()?;
    Some((
        number,
        attribute(group, GROUP_NUMBER).and_then(|value| word(value, 0))?,
    ))
}

/// Bytes of a test that are written as digits.
#[cfg(test)]
pub fn hexadecimal(digits: &str) -> Vec<u8> {
    let digits: Vec<u8> = digits.bytes().filter(u8::is_ascii_hexdigit).collect();
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).expect("ASCII"), 16);
    digits
        .chunks(2)
        .map(|digits| pair(digits).expect("digits"))
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The response of Linux 6.18 for `pfifo limit 42` with handle 10, after five packets of 142 B.
    const PFIFO: &str = "9c0000002400000000000000f45a000000000000030000000000100000000000030000000a000100706669666f000000\
        080002002a00000005000c00000000003000070014000100c6020000000000000500000000000000180003000000000000000000\
        0000000000000000000000002c000300c6020000000000000500000000000000000000000000000000000000000000000000000000000000";

    /// A qdisc's message, made by hand.
    fn queue(discipline: &str, application: &[u8]) -> Vec<u8> {
        let nested = |attributes: &[(u16, &[u8])]| {
            let made = attributes
                .iter()
                .fold(Message::new(0, 0, &[]), |made, (kind, value)| {
                    made.with(*kind, value)
                });
            made.finish()[HEADER_BYTES..].to_vec()
        };
        let words = |words: &[u32]| -> Vec<u8> {
            words.iter().flat_map(|word| word.to_ne_bytes()).collect()
        };
        let basic = words(&[3000, 0, 2, 0]);
        let counts = words(&[7, 10_500, 4, 0, 9]);
        let statistics = nested(&[(1, &basic), (3, &counts), (4, application)]);
        Message::new(NEW_QDISC, 0, &[0; 20])
            .with(1, discipline.as_bytes())
            .with(7, &statistics)
            .finish()
    }

    fn parsed(bytes: &[u8]) -> Option<QueueCounters> {
        parse_queue(messages(bytes).next()?)
    }

    #[test]
    fn a_recorded_queue_is_read() {
        let expected = QueueCounters {
            departed_p: 5,
            departed_bytes: 710,
            ..QueueCounters::default()
        };
        assert_eq!(parsed(&hexadecimal(PFIFO)), Some(expected));
    }

    #[test]
    fn backlog_drops_and_marks_are_read() {
        let red: Vec<u8> = [1_u32, 2, 3, 4]
            .iter()
            .flat_map(|word| word.to_ne_bytes())
            .collect();
        let expected = QueueCounters {
            backlog_p: 7,
            backlog_bytes: 10_500,
            departed_p: 2,
            departed_bytes: 3000,
            dropped_p: 4,
            marked_p: 4,
        };
        assert_eq!(parsed(&queue("red\0", &red)), Some(expected));
    }

    #[test]
    fn marks_are_counted_where_the_discipline_counts_them() {
        let counted = |discipline: &str, words: &[u32]| {
            let own: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
            let found = parsed(&queue(&format!("{discipline}\0"), &own));
            found.expect("counters").marked_p
        };
        // maxpacket, count, lastcount, ldelay, drop_next, drop_overlimit, ecn_mark, dropping, ce_mark.
        assert_eq!(counted("codel", &[1, 2, 3, 4, 5, 6, 70, 8, 0]), 70);
        assert_eq!(counted("codel", &[1, 2, 3, 4, 5, 6, 0, 8, 90]), 90);
        assert_eq!(counted("codel", &[1, 2, 3, 4, 5, 6, 70, 8, 90]), 90);
        // type, maxpacket, drop_overlimit, ecn_mark, new_flow_count, new_flows_len, old_flows_len, ce_mark,
        // memory_usage.
        assert_eq!(counted("fq_codel", &[0, 1, 2, 30, 4, 5, 6, 0, 8]), 30);
        assert_eq!(counted("fq_codel", &[0, 1, 2, 0, 4, 5, 6, 70, 8]), 70);
        assert_eq!(counted("sfq", &[1, 2, 3, 4]), 0);
        // Nested attributes, each with its type above its length: tins, and in each of two its marked packets.
        let (tins, tin, marked) = (0xa_001c, |number: u32| number << 16 | 0xc, 0x8_0008);
        let own = [tins, tin(1), marked, 30, tin(2), marked, 12];
        assert_eq!(counted("cake", &own), 42);
    }

    #[test]
    fn marks_of_an_unknown_discipline_are_unknown() {
        let other = parsed(&queue("hhf\0", &[0; 64])).expect("counters");
        assert_eq!((other.dropped_p, other.marked_p), (4, UNKNOWN));
        let short = parsed(&queue("codel\0", &[0; 8])).expect("counters");
        assert_eq!(short.marked_p, UNKNOWN);
    }

    #[test]
    fn handles_are_hexadecimal() {
        assert_eq!(parse_handle("10:"), Some(0x10_0000));
        assert_eq!(parse_handle("1:a"), Some(0x1_000a));
        assert_eq!(parse_handle("10"), None);
        assert_eq!(parse_handle("12345:"), None);
    }

    #[test]
    fn the_loopback_device_is_parsed() {
        let mut netlink = Netlink::open(None).expect("netlink");
        let loopback = parse_link(netlink.request("lo", &link_request("lo")).expect("lo"));
        assert_eq!(
            loopback,
            Some(Interface {
                index: 1,
                address: [0; 6]
            })
        );
        let error = netlink
            .request("no-device", &link_request("no-device"))
            .expect_err("there is none");
        assert!(error.to_string().starts_with("no-device: "), "{error}");
    }

    #[test]
    fn a_family_and_its_first_group_are_read() {
        let group = Message::new(0, 0, &[])
            .with(2, &5_u32.to_ne_bytes())
            .with(1, b"events\0")
            .finish();
        let groups = Message::new(0, 0, &[])
            .with(1, &group[HEADER_BYTES..])
            .finish();
        let family = Message::new(16, 0, &[1, 2, 0, 0])
            .with(1, &29_u16.to_ne_bytes())
            .with(7, &groups[HEADER_BYTES..])
            .finish();
        assert_eq!(
            messages(&family).next().and_then(parse_family),
            Some((29, 5))
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_messages(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            for message in messages(&bytes) {
                let _ = (parse_link(message), parse_family(message));
                for (_, value) in attributes(message.1) {
                    let _ = text(value);
                }
            }
        }

        #[test]
        fn a_damaged_queue_does_no_harm(place in 0_usize..156, byte: u8) {
            let mut bytes = hexadecimal(PFIFO);
            bytes[place] = byte;
            let _ = parsed(&bytes);
        }
    }
}
