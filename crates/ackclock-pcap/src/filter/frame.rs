//! The layout of frames, as filters know it: where the outermost protocol number and the outermost network header are.
//!
//! Link types: <https://www.tcpdump.org/linktypes.html>.

use crate::framing::Record;

pub const IPV4: u16 = 0x0800;
pub const IPV6: u16 = 0x86dd;
pub const ARP: u16 = 0x0806;
pub const RARP: u16 = 0x8035;
pub const MPLS: u16 = 0x8847;
const APPLETALK: u16 = 0x809b;
const APPLETALK_ARP: u16 = 0x80f3;
const DECNET: u16 = 0x6003;
/// Service access points of LLC.
const SAP_IP: u16 = 0x06;
const SAP_NETBEUI: u16 = 0xf0;
const SAP_ISO: u16 = 0xfe;
const SAP_IPX: u16 = 0xe0;
const SAP_STP: u16 = 0x42;
const IPX: u16 = 0x8137;
/// `ETH_P_802_3` and `ETH_P_802_2` of Linux: IPX without an LLC header, and LLC.
const RAW_802_3: u16 = 0x0001;
const LLC: u16 = 0x0004;
/// The largest length field of IEEE 802.3; larger values are an `EtherType`.
const MAX_LENGTH_FIELD: u16 = 1500;
/// Address families of the loopback header: 2 everywhere, and those of Linux, BSD, FreeBSD and Darwin.
const FAMILY_IPV4: u32 = 2;
const FAMILIES_IPV6: [u32; 4] = [10, 24, 28, 30];

/// The VLAN tags and MPLS labels in front of a header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Nesting {
    pub tags: u16,
    pub labels: u16,
}

/// The place from which an index counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// The start of the frame.
    Link,
    /// The network header.
    Network(Nesting),
    /// Behind the IPv4 header.
    Transport(Nesting),
}

/// A frame and its layout.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    bytes: &'a [u8],
    /// The length on the link.
    pub length: u32,
    header: LinkHeader,
    /// The offset of the network header.
    network: u32,
}

/// The kind of link layer, with the offset of its protocol field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LinkHeader {
    Ethernet,
    Cooked(u32),
    /// An `EtherType`, never a length.
    Plain(u32),
    Ppp(u32),
    /// An address family.
    Family,
    /// The version in the IP header.
    Version,
    /// Always this protocol.
    Only(u16),
}

impl<'a> Frame<'a> {
    /// The layout of a frame; none for unsupported link types. PPP is expected with HDLC's address and control bytes.
    #[inline]
    pub fn new(record: &Record<'a>) -> Option<Self> {
        let (header, network) = match record.link {
            0 | 108 => (LinkHeader::Family, 4),
            1 => (LinkHeader::Ethernet, 14),
            9 | 50 => (LinkHeader::Ppp(2), 4),
            12 | 14 | 101 => (LinkHeader::Version, 0),
            51 => (LinkHeader::Ppp(6), 8),
            104 => (LinkHeader::Plain(2), 4),
            109 => (LinkHeader::Family, 12),
            113 => (LinkHeader::Cooked(14), 16),
            204 => (LinkHeader::Ppp(3), 5),
            228 => (LinkHeader::Only(IPV4), 0),
            229 => (LinkHeader::Only(IPV6), 0),
            276 => (LinkHeader::Plain(0), 20),
            _ => return None,
        };
        Some(Self {
            bytes: record.bytes,
            length: record.frame_bytes,
            header,
            network,
        })
    }

    pub fn is_ethernet(&self) -> bool {
        self.header == LinkHeader::Ethernet
    }

    /// Load one, two or four bytes; none if they were not captured. Offsets wrap around, as in BPF.
    #[inline]
    pub fn load(&self, base: Base, index: u32, size: u8) -> Option<u32> {
        let base = match base {
            Base::Link => 0,
            Base::Network(nesting) => self.network_at(nesting),
            Base::Transport(nesting) => {
                let network = self.network_at(nesting);
                network + 4 * (self.at(network, 1)? & 0xf)
            }
        };
        self.at(base.wrapping_add(index), size)
    }

    #[inline]
    fn at(&self, offset: u32, size: u8) -> Option<u32> {
        let start = offset as usize;
        let field = self.bytes.get(start..start.checked_add(size.into())?)?;
        Some(
            field
                .iter()
                .fold(0, |value, byte| value << 8 | u32::from(*byte)),
        )
    }

    fn network_at(&self, nesting: Nesting) -> u32 {
        self.network + 4 * (u32::from(nesting.tags) + u32::from(nesting.labels))
    }

    /// Return true if the header behind the tags and labels is of this protocol.
    #[inline]
    pub fn has_protocol(&self, nesting: Nesting, number: u16) -> Option<bool> {
        if nesting.labels > 0 {
            return self.has_labelled(self.network_at(nesting), number);
        }
        let tags = 4 * u32::from(nesting.tags);
        match self.header {
            LinkHeader::Ethernet => {
                let field = self.at(12 + tags, 2)? as u16;
                self.has_type(field, field <= MAX_LENGTH_FIELD, number, nesting)
            }
            LinkHeader::Cooked(at) => {
                let field = self.at(at, 2)? as u16;
                self.has_type(field, field == LLC, number, nesting)
            }
            LinkHeader::Plain(at) => Some(self.at(at, 2)? == number.into()),
            LinkHeader::Ppp(at) => Some(self.at(at, 2)? == ppp_number(number).into()),
            LinkHeader::Family => self.has_family(number),
            LinkHeader::Version => self.has_version(0, number),
            LinkHeader::Only(only) => Some(only == number),
        }
    }

    /// Return true if the type field, or the LLC header behind it, is of a protocol.
    fn has_type(&self, field: u16, is_llc: bool, number: u16, nesting: Nesting) -> Option<bool> {
        let at = self.network_at(nesting);
        let snap = |organisation: u32, number: u16| {
            let has_number = self.at(at + 4, 4)? == organisation << 16 | u32::from(number);
            Some(has_number && self.at(at, 4)? == 0xaaaa_0300 | organisation >> 16)
        };
        let points = |both: u16| Some(self.at(at, 2)? == both.into());
        match number {
            SAP_IP | SAP_ISO | SAP_NETBEUI => Some(is_llc && points(number << 8 | number)?),
            SAP_IPX => {
                let point = || Some(self.at(at, 1)? == SAP_IPX.into());
                let is_behind_llc = || {
                    Some(if self.is_ethernet() {
                        snap(0, IPX)? || point()? || points(0xffff)?
                    } else {
                        point()? || snap(0, IPX)?
                    })
                };
                let is_raw = !self.is_ethernet() && field == RAW_802_3;
                Some(field == IPX || is_raw || is_llc && is_behind_llc()?)
            }
            APPLETALK => Some(field == number || is_llc && snap(0x08_0007, number)?),
            APPLETALK_ARP => Some(field == number || is_llc && snap(0, number)?),
            ..=MAX_LENGTH_FIELD => Some(is_llc && self.at(at, 1)? == number.into()),
            _ => Some(field == number),
        }
    }

    /// IP behind the last label of a stack, told by its version.
    fn has_labelled(&self, network: u32, number: u16) -> Option<bool> {
        let is_last = self.at(network - 2, 1)? & 1 == 1;
        Some(is_last && self.has_version(network, number)?)
    }

    fn has_version(&self, network: u32, number: u16) -> Option<bool> {
        let version = match number {
            IPV4 => 4,
            IPV6 => 6,
            _ => return Some(false),
        };
        Some(self.at(network, 1)? >> 4 == version)
    }

    /// The family is in the byte order of the capturing host.
    fn has_family(&self, number: u16) -> Option<bool> {
        let families: &[u32] = match number {
            IPV4 => &[FAMILY_IPV4],
            IPV6 => &FAMILIES_IPV6,
            _ => return Some(false),
        };
        let family = self.at(0, 4)?;
        Some(families.contains(&family) || families.contains(&family.swap_bytes()))
    }
}

/// The number that PPP has for an `EtherType` or an access point (IANA, PPP DLL Protocol Numbers); for others, the same.
fn ppp_number(number: u16) -> u16 {
    match number {
        IPV4 => 0x0021,
        IPV6 => 0x0057,
        MPLS => 0x0281,
        SAP_ISO => 0x0023,
        DECNET => 0x0027,
        APPLETALK => 0x0029,
        SAP_IPX => 0x002b,
        SAP_STP => 0x0031,
        other => other,
    }
}
