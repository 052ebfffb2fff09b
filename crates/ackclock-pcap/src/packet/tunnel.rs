//! Tunnels inside IP: IP in IP (RFC 2003, 4213), GRE (RFC 2784, 2890; version 1 of RFC 2637), ERSPAN (draft-foschiano-
//! erspan), VXLAN (RFC 7348) and its generic form, Geneve (RFC 8926), MPLS in IP (RFC 4023), EtherIP (RFC 3378),
//! Ethernet in SRv6 (RFC 8986).

use super::dissector::{u16_at, Dissector, Layer};
use super::link;
use super::Skipped;

const ERSPAN: u16 = 0x88be;
const ERSPAN_3: u16 = 0x22eb;
const PPP_IN_GRE: u16 = 0x880b;
const VXLAN_PORT: u16 = 4789;
/// Linux's default of before the port was assigned.
const VXLAN_PORT_OF_LINUX: u16 = 8472;
const VXLAN_GENERIC_PORT: u16 = 4790;
const GENEVE_PORT: u16 = 6081;

/// Dissect the header of a tunnel.
#[inline]
pub fn enter(protocol: u8, dissector: &mut Dissector) -> Result<Layer, Skipped> {
    match protocol {
        4 | 41 => Ok(Layer::Ip),
        17 => udp(dissector),
        47 => gre(dissector),
        97 => dissector.skip(2).map(|()| Layer::Ethernet),
        137 => link::mpls(dissector),
        143 => Ok(Layer::Ethernet),
        _ => Err(Skipped::NotTcp),
    }
}

/// Return true if the UDP header at the dissector's position is that of a tunnel.
pub fn is_in_udp(dissector: &Dissector) -> bool {
    let port = dissector.peek::<4>().map(|ports| u16_at(ports, 2));
    matches!(
        port,
        Ok(VXLAN_PORT | VXLAN_PORT_OF_LINUX | VXLAN_GENERIC_PORT | GENEVE_PORT)
    )
}

/// Dissect a tunnel over UDP, identified by its destination port.
fn udp(dissector: &mut Dissector) -> Result<Layer, Skipped> {
    let header = dissector.take::<8>()?;
    match u16_at(header, 2) {
        VXLAN_PORT | VXLAN_PORT_OF_LINUX => dissector.skip(8).map(|()| Layer::Ethernet),
        VXLAN_GENERIC_PORT => match dissector.take::<8>()?[3] {
            1 | 2 => Ok(Layer::Ip),
            3 => Ok(Layer::Ethernet),
            5 => link::mpls(dissector),
            _ => Err(Skipped::NotTcp),
        },
        GENEVE_PORT => geneve(dissector),
        _ => Err(Skipped::NotTcp),
    }
}

fn geneve(dissector: &mut Dissector) -> Result<Layer, Skipped> {
    let header = dissector.take::<8>()?;
    dissector.skip(usize::from(header[0] & 0x3f) * 4)?;
    Ok(Layer::EtherType(u16_at(header, 2)))
}

fn gre(dissector: &mut Dissector) -> Result<Layer, Skipped> {
    let header = dissector.take::<4>()?;
    let (flags, kind) = (u16_at(header, 0), u16_at(header, 2));
    let numbered = flags & 0x1000 != 0;
    let mut fields = 0;
    if flags & 0xc000 != 0 {
        // A checksum, or the routing of RFC 1701: both have the place of both.
        fields += 4;
    }
    if flags & 0x2000 != 0 {
        fields += 4;
    }
    if numbered {
        fields += 4;
    }
    if flags & 7 == 1 && flags & 0x0080 != 0 {
        // Version 1 has an acknowledgement number.
        fields += 4;
    }
    dissector.skip(fields)?;
    match kind {
        ERSPAN => dissector
            .skip(if numbered { 8 } else { 0 })
            .map(|()| Layer::Ethernet),
        ERSPAN_3 => erspan_3(dissector),
        PPP_IN_GRE => Ok(Layer::Ppp),
        _ => Ok(Layer::EtherType(kind)),
    }
}

/// Twelve bytes, and eight of the platform if the last bit is set; a frame of IP or Ethernet.
fn erspan_3(dissector: &mut Dissector) -> Result<Layer, Skipped> {
    let header = dissector.take::<12>()?;
    if header[11] & 1 != 0 {
        dissector.skip(8)?;
    }
    match header[10] >> 2 & 0x1f {
        2 => Ok(Layer::Ip),
        _ => Ok(Layer::Ethernet),
    }
}
