//! Link layers: the link types of tcpdump.org, Ethernet with tags and labels, PPP.

use super::dissector::{u16_at, u32_at, Dissector, Layer};
use super::Skipped;

const NULL: u16 = 0;
pub const ETHERNET: u16 = 1;
const PPP: u16 = 9;
/// `DLT_RAW`, which some systems write where [`RAW`] is meant.
const RAW_OF_BSD: u16 = 12;
const RAW_OF_OPENBSD: u16 = 14;
const PPP_SERIAL: u16 = 50;
const PPP_OVER_ETHERNET: u16 = 51;
const RAW: u16 = 101;
const CISCO_HDLC: u16 = 104;
const LOOP: u16 = 108;
const ENC: u16 = 109;
const LINUX_COOKED: u16 = 113;
const PPP_WITH_DIRECTION: u16 = 204;
const IPV4: u16 = 228;
const IPV6: u16 = 229;
const LINUX_COOKED_2: u16 = 276;

/// The link types that are read.
pub const SUPPORTED: [u16; 16] = [
    NULL,
    ETHERNET,
    PPP,
    RAW_OF_BSD,
    RAW_OF_OPENBSD,
    PPP_SERIAL,
    PPP_OVER_ETHERNET,
    RAW,
    CISCO_HDLC,
    LOOP,
    ENC,
    LINUX_COOKED,
    PPP_WITH_DIRECTION,
    IPV4,
    IPV6,
    LINUX_COOKED_2,
];

/// `PACKET_OUTGOING` of Linux, in cooked headers.
const OUTGOING: u16 = 4;

/// Continue past the header of a link type.
#[inline]
pub fn enter(link: u16, dissector: &mut Dissector) -> Result<Layer, Skipped> {
    match link {
        ETHERNET => Ok(Layer::Ethernet),
        RAW | RAW_OF_BSD | RAW_OF_OPENBSD | IPV4 | IPV6 => Ok(Layer::Ip),
        // The address family, in the byte order and with the numbers of the host: the IP header says the version too.
        NULL | LOOP => dissector.skip(4).map(|()| Layer::Ip),
        LINUX_COOKED => linux_cooked(dissector),
        LINUX_COOKED_2 => linux_cooked_2(dissector),
        ENC => dissector.skip(12).map(|()| Layer::Ip),
        PPP | PPP_SERIAL => Ok(Layer::Ppp),
        PPP_OVER_ETHERNET => pppoe(dissector),
        PPP_WITH_DIRECTION => {
            dissector.outbound = Some(dissector.take::<1>()? != &[0]);
            Ok(Layer::Ppp)
        }
        CISCO_HDLC => Ok(Layer::EtherType(u16_at(dissector.take::<4>()?, 2))),
        _ => Err(Skipped::LinkType),
    }
}

/// `LINKTYPE_LINUX_SLL`, which has no interface: its own address identifies it, or the sender's.
fn linux_cooked(dissector: &mut Dissector) -> Result<Layer, Skipped> {
    let header = dissector.take::<16>()?;
    dissector.outbound = Some(u16_at(header, 0) == OUTGOING);
    dissector.link_tag =
        u32_at(header, 6) ^ u32_at(header, 10).rotate_left(7) ^ u32::from(u16_at(header, 2));
    Ok(Layer::EtherType(u16_at(header, 14)))
}

/// `LINKTYPE_LINUX_SLL2`.
fn linux_cooked_2(dissector: &mut Dissector) -> Result<Layer, Skipped> {
    let header = dissector.take::<20>()?;
    dissector.kernel_interface = Some(u32_at(header, 4));
    dissector.outbound = Some(u16::from(header[10]) == OUTGOING);
    Ok(Layer::EtherType(u16_at(header, 0)))
}

/// Ethernet II, or 802.3 with a length.
#[inline]
pub fn ethernet(dissector: &mut Dissector) -> Result<Layer, Skipped> {
    Ok(Layer::EtherType(u16_at(dissector.take::<14>()?, 12)))
}

/// Return the layer that an `EtherType` names, skipping VLAN tags and MPLS labels.
#[inline]
pub fn ether_type(kind: u16, dissector: &mut Dissector) -> Result<Layer, Skipped> {
    match kind {
        0x0800 | 0x86dd => Ok(Layer::Ip),
        0x8100 | 0x88a8 | 0x9100 | 0x9200 => {
            Ok(Layer::EtherType(u16_at(dissector.take::<4>()?, 2)))
        }
        0x8847 | 0x8848 => mpls(dissector),
        0x8864 => pppoe(dissector),
        0x6558 => Ok(Layer::Ethernet),
        0..=1500 => subnetwork(dissector),
        _ => Err(Skipped::NotIp),
    }
}

/// LLC with SNAP (RFC 1042).
fn subnetwork(dissector: &mut Dissector) -> Result<Layer, Skipped> {
    match dissector.take::<8>()? {
        [0xaa, 0xaa, 3, 0, 0, 0, high, low] => {
            Ok(Layer::EtherType(u16::from_be_bytes([*high, *low])))
        }
        _ => Err(Skipped::NotIp),
    }
}

/// Labels (RFC 3032) down to the last; behind them IP, or Ethernet with or without a control word (RFC 4448).
pub fn mpls(dissector: &mut Dissector) -> Result<Layer, Skipped> {
    while dissector.take::<4>()?[2] & 1 == 0 {}
    match dissector.peek::<1>()?[0] >> 4 {
        4 | 6 => Ok(Layer::Ip),
        0 => dissector.skip(4).map(|()| Layer::Ethernet),
        _ => Ok(Layer::Ethernet),
    }
}

/// The session stage of PPPoE (RFC 2516).
fn pppoe(dissector: &mut Dissector) -> Result<Layer, Skipped> {
    let header = dissector.take::<6>()?;
    match header[1] {
        0 => Ok(Layer::Ppp),
        _ => Err(Skipped::NotIp),
    }
}

/// PPP (RFC 1661), with or without HDLC's address (RFC 1662) and compressed numbers.
pub fn ppp(dissector: &mut Dissector) -> Result<Layer, Skipped> {
    if dissector.bytes.starts_with(&[0xff, 3]) {
        dissector.skip(2)?;
    }
    let number = match dissector.take::<1>()?[0] {
        compressed if compressed & 1 == 1 => u16::from(compressed),
        high => u16::from_be_bytes([high, dissector.take::<1>()?[0]]),
    };
    match number {
        0x0021 | 0x0057 => Ok(Layer::Ip),
        0x0281 | 0x0283 => mpls(dissector),
        _ => Err(Skipped::NotIp),
    }
}
