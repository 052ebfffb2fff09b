//! The conditions that primitives stand for, as `tcpdump -d` prints them for libpcap.

use super::condition::{Comparison, Condition, Value};
use super::frame::{Base, Nesting, ARP, IPV4, IPV6, MPLS, RARP};
use super::names::{Protocol, Versions};

/// The end of a packet that must have a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Source,
    Destination,
    Either,
    Both,
}

/// The next header of a fragment of IPv6, and the places of header fields.
const FRAGMENT: u32 = 44;
const NEXT_HEADER: u32 = 6;
const IPV6_BYTES: u32 = 40;
/// The `EtherType`s of VLAN tags: 802.1Q, 802.1ad and its forerunner.
const TAGS: [u16; 3] = [0x8100, 0x88a8, 0x9100];

impl End {
    /// The condition that this end, of two, has a property.
    fn of(self, at: [u32; 2], property: impl Fn(u32) -> Condition) -> Condition {
        let [source, destination] = at.map(property);
        match self {
            Self::Source => source,
            Self::Destination => destination,
            Self::Either => source.or(destination),
            Self::Both => source.and(destination),
        }
    }
}

/// Builds conditions on the headers at a nesting.
#[derive(Clone, Copy, Debug, Default)]
pub struct Headers(pub Nesting);

impl Headers {
    /// A field of the network header.
    fn network(self, at: u32, size: u8) -> Value {
        Value::field(Base::Network(self.0), at, size)
    }

    fn is(self, protocol: u16) -> Condition {
        Condition::Protocol(self.0, protocol)
    }

    /// The protocol above the link layer, or above IP.
    pub fn protocol(self, protocol: Protocol) -> Condition {
        match protocol {
            Protocol::Link => Condition::Constant(true),
            Protocol::Network(number) => self.is(number),
            Protocol::Transport(number, versions) => self.above_ip(number.into(), versions),
        }
    }

    /// A protocol number of IPv4, or the next header of IPv6, there also behind a fragment header.
    pub fn above_ip(self, number: u32, versions: Versions) -> Condition {
        let four = || self.is(IPV4).and(self.network(9, 1).is(number));
        let six = || {
            let fragmented = self.network(NEXT_HEADER, 1).is(FRAGMENT);
            let behind = fragmented.and(self.network(IPV6_BYTES, 1).is(number));
            let next = self.network(NEXT_HEADER, 1).is(number).or(behind);
            self.is(IPV6).and(next)
        };
        match versions {
            Versions::Four => four(),
            Versions::Six => six(),
            Versions::Both => four().or(six()),
        }
    }

    /// The first bits of an address of IPv4; ARP has addresses too.
    pub fn address_4(self, only: Option<u16>, end: End, address: u32, mask: u32) -> Condition {
        let of = |protocol: u16| {
            let at = if protocol == IPV4 { [12, 16] } else { [14, 24] };
            let property = |at| match mask {
                0 => Condition::Constant(true),
                mask => self.network(at, 4).masked(mask).is(address),
            };
            self.is(protocol).and(end.of(at, property))
        };
        match only {
            Some(protocol) => of(protocol),
            None if self.0.labels > 0 => of(IPV4),
            None => of(IPV4).or(of(ARP)).or(of(RARP)),
        }
    }

    /// The first bits of an address of IPv6.
    pub fn address_6(self, end: End, address: u128, mask: u128) -> Condition {
        let word = |value: u128, number: u32| (value >> (96 - 32 * number)) as u32;
        let property = |at: u32| {
            let words = (0..4).filter(|number| word(mask, *number) != 0);
            words.fold(Condition::Constant(true), |before, number| {
                let field = self.network(at + 4 * number, 4).masked(word(mask, number));
                before.and(field.is(word(address, number)))
            })
        };
        self.is(IPV6).and(end.of([8, 24], property))
    }

    /// A MAC address.
    pub fn mac(end: End, address: [u8; 6]) -> Condition {
        let number = address
            .iter()
            .fold(0, |number, byte| number << 8 | u64::from(*byte));
        let property = |at: u32| {
            let low = Value::field(Base::Link, at + 2, 4).is(number as u32);
            low.and(Value::field(Base::Link, at, 2).is((number >> 32) as u32))
        };
        Condition::Ethernet.and(end.of([6, 0], property))
    }

    /// Ports from `low` to `high`, of some protocols.
    pub fn ports(self, protocols: &[u8], end: End, [low, high]: [u32; 2]) -> Condition {
        let between = |port: Value| {
            if low == high {
                return port.is(low);
            }
            let above =
                Condition::Compare(port.clone(), Comparison::Greater, Value::Constant(high));
            let at_least = Condition::Compare(port, Comparison::AtLeast, Value::Constant(low));
            at_least.and(above.negated())
        };
        let carries = |at: u32| {
            let numbers = protocols.iter();
            let is_number = |number: &u8| self.network(at, 1).is(u32::from(*number));
            Condition::Any(numbers.map(is_number).collect())
        };
        let behind_4 = |at| between(Value::field(Base::Transport(self.0), at, 2));
        let four = self.is(IPV4).and(carries(9)).and(self.is_first_fragment());
        let six = self.is(IPV6).and(carries(NEXT_HEADER));
        let behind_6 = |at| between(self.network(IPV6_BYTES + at, 2));
        four.and(end.of([0, 2], behind_4))
            .or(six.and(end.of([0, 2], behind_6)))
    }

    /// The fragment of IPv4 that has the transport header, or no fragment.
    fn is_first_fragment(self) -> Condition {
        self.network(6, 2).masked(0x1fff).is(0)
    }

    /// The base of a protocol's accessor, the offset there, and what a frame must be; none if it has no accessor.
    pub fn accessor(self, protocol: Protocol) -> Option<(Base, u32, Condition)> {
        let holds = self.protocol(protocol);
        match protocol {
            Protocol::Link => Some((Base::Link, 0, holds)),
            Protocol::Network(..=0xff | 0x80f3) | Protocol::Transport(50 | 51, _) => None,
            Protocol::Network(_) => Some((Base::Network(self.0), 0, holds)),
            Protocol::Transport(number, Versions::Six) => {
                let next = self.network(NEXT_HEADER, 1).is(number.into());
                let holds = self.is(IPV6).and(next);
                Some((Base::Network(self.0), IPV6_BYTES, holds))
            }
            Protocol::Transport(number, _) => {
                let holds = self.above_ip(number.into(), Versions::Four);
                let holds = holds.and(self.is_first_fragment());
                Some((Base::Transport(self.0), 0, holds))
            }
        }
    }

    /// A frame to the broadcast address of Ethernet.
    pub fn link_broadcast() -> Condition {
        Self::mac(End::Destination, [0xff; 6])
    }

    /// A frame to a group address of Ethernet.
    pub fn link_multicast() -> Condition {
        let first = Value::field(Base::Link, 0, 1).masked(1);
        Condition::Ethernet.and(first.is(1))
    }

    /// To all hosts, in the forms that need no netmask.
    pub fn broadcast(self) -> Condition {
        let destination = || self.network(16, 4);
        let either = destination().is(0).or(destination().is(u32::MAX));
        self.is(IPV4).and(either)
    }

    /// To a group of IPv4, or of IPv6.
    pub fn multicast(self, six: bool) -> Condition {
        if six {
            return self.is(IPV6).and(self.network(24, 1).is(0xff));
        }
        let first = self.network(16, 1);
        let is_group = Condition::Compare(first, Comparison::AtLeast, Value::Constant(224));
        self.is(IPV4).and(is_group)
    }

    /// A VLAN tag, of an identifier if there is one. What follows is behind it.
    pub fn vlan(&mut self, identifier: Option<u32>) -> Condition {
        let tagged = Condition::Any(TAGS.map(|tag| self.is(tag)).into());
        let mut found = Condition::Ethernet.and(tagged);
        if let Some(identifier) = identifier {
            found = found.and(self.network(0, 2).masked(0x0fff).is(identifier));
        }
        self.0.tags += 1;
        found
    }

    /// An MPLS label, of a value if there is one. What follows is behind it.
    pub fn mpls(&mut self, label: Option<u32>) -> Condition {
        let mut found = if self.0.labels == 0 {
            self.is(MPLS)
        } else {
            // The bottom-of-stack bit of the label before (RFC 3032).
            self.network(0_u32.wrapping_sub(2), 1).masked(1).is(0)
        };
        if let Some(label) = label {
            found = found.and(self.network(0, 4).masked(0xffff_f000).is(label << 12));
        }
        self.0.labels += 1;
        found
    }
}
