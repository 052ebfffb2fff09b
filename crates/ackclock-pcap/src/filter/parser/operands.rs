//! Primitives, their qualifiers and their operands.

use std::net::Ipv6Addr;

use super::{Kind, Parser, Qualifiers, PRIMITIVE};
use crate::filter::condition::{Comparison, Condition, Value};
use crate::filter::frame::{ARP, RARP};
use crate::filter::names::{self, Protocol, Versions, IP, IP6};
use crate::filter::primitives::{End, Headers};
use crate::filter::tokens;
use crate::filter::FilterError;

const ADDRESS: &str = "an address such as 192.0.2.1 or 2001:db8::1";
const NETWORK: &str =
    "a network such as 192.0.2.0/24, 192.0 or 2001:db8::/32, with no bit set behind it";
const PORT: &str = "a number from 0 to 65535, or a service such as http";
const PORTS: &str = "two ports from 0 to 65535 such as 8000-8080";
const MAC: &str = "a link address such as 00:11:22:33:44:55";
const PROTOCOL: &str = "a protocol's number, or a name such as \\tcp";

impl Parser<'_> {
    /// Parse a condition that is no comparison: a protocol, a length, a tag, or an operand with qualifiers.
    pub(super) fn primitive(&mut self) -> Result<Condition, FilterError> {
        let place = self.place;
        let token = self.peek().unwrap_or_default();
        let condition = match token {
            "less" | "greater" => self.length(token == "less")?,
            "vlan" if self.headers.0.labels > 0 => {
                return Err(self.error_at_token("vlan before mpls"))
            }
            "vlan" => {
                let identifier = self.tag(0x0fff, "an identifier from 0 to 4095")?;
                self.headers.vlan(identifier)
            }
            "mpls" => {
                let label = self.tag(0x000f_ffff, "a label from 0 to 1048575")?;
                self.headers.mpls(label)
            }
            _ => return self.qualified(place),
        };
        self.qualifiers = None;
        Ok(condition)
    }

    fn length(&mut self, is_less: bool) -> Result<Condition, FilterError> {
        self.place += 1;
        let Some(length) = self.peek().and_then(tokens::number) else {
            return Err(self.error_at_token("a length in bytes"));
        };
        self.place += 1;
        let (comparison, length) = (Comparison::AtLeast, u64::from(length) + u64::from(is_less));
        Ok(match u32::try_from(length) {
            Ok(length) => {
                let least = Condition::Compare(Value::Length, comparison, Value::Constant(length));
                if is_less {
                    least.negated()
                } else {
                    least
                }
            }
            Err(_) => Condition::Constant(true),
        })
    }

    /// The number behind `vlan` or `mpls`, if there is one.
    fn tag(&mut self, max: u32, expected: &'static str) -> Result<Option<u32>, FilterError> {
        self.place += 1;
        let is_bracketed = self.peek() == Some("(");
        let place = self.place + usize::from(is_bracketed);
        let token = self.tokens.get(place).map(|token| token.text);
        let Some(number) = token.and_then(tokens::number) else {
            return Ok(None);
        };
        if number > max {
            return Err(self.error_at(place, place + 1, expected));
        }
        self.place = place + 1;
        if is_bracketed {
            self.expect(")", ")")?;
        }
        Ok(Some(number))
    }

    /// A protocol alone, or an operand with its qualifiers.
    fn qualified(&mut self, place: usize) -> Result<Condition, FilterError> {
        let protocol = self.peek().and_then(names::protocol);
        self.place += usize::from(protocol.is_some());
        if let Some(condition) = self.group_address(protocol)? {
            self.qualifiers = None;
            return Ok(condition);
        }
        let end = self.end();
        let kind = self.kind();
        let qualifiers = match (protocol, end, kind) {
            (Some(Protocol::Link), None, None) => {
                return Err(self.error_at_token("host, src, dst, proto, broadcast or multicast"))
            }
            (Some(protocol), None, None) => {
                self.qualifiers = None;
                return Ok(self.headers.protocol(protocol));
            }
            (None, None, None) => self
                .qualifiers
                .filter(|_| self.is_operand())
                .ok_or_else(|| self.error_at_token(PRIMITIVE))?,
            (protocol, end, kind) => Qualifiers {
                protocol,
                end,
                kind: kind.unwrap_or(Kind::Host),
            },
        };
        self.check(qualifiers, place)?;
        let condition = self.operands(qualifiers)?;
        self.qualifiers = Some(qualifiers);
        Ok(condition)
    }

    /// `broadcast` or `multicast`, of the link layer or of IP.
    fn group_address(
        &mut self,
        protocol: Option<Protocol>,
    ) -> Result<Option<Condition>, FilterError> {
        let is_broadcast = match self.peek() {
            Some("broadcast") => true,
            Some("multicast") => false,
            _ => return Ok(None),
        };
        let condition = match protocol {
            None | Some(Protocol::Link) if is_broadcast => Headers::link_broadcast(),
            None | Some(Protocol::Link) => Headers::link_multicast(),
            Some(IP) if is_broadcast => self.headers.broadcast(),
            Some(IP) => self.headers.multicast(false),
            Some(IP6) if !is_broadcast => self.headers.multicast(true),
            _ => return Err(self.error_at_token("a qualifier of that protocol")),
        };
        self.place += 1;
        Ok(Some(condition))
    }

    fn end(&mut self) -> Option<End> {
        let first = match self.peek() {
            Some("src") => End::Source,
            Some("dst") => End::Destination,
            _ => return None,
        };
        self.place += 1;
        let other = if first == End::Source { "dst" } else { "src" };
        let before = self.place;
        let end = match self.peek() {
            Some("or" | "||") => End::Either,
            Some("and" | "&&") => End::Both,
            _ => return Some(first),
        };
        self.place += 1;
        if self.accept(&[other]) {
            return Some(end);
        }
        self.place = before;
        Some(first)
    }

    fn kind(&mut self) -> Option<Kind> {
        let kinds = [
            ("host", Kind::Host),
            ("net", Kind::Net),
            ("port", Kind::Port),
            ("portrange", Kind::Portrange),
            ("proto", Kind::Proto),
        ];
        let kind = kinds.iter().find(|(token, _)| self.accept(&[token]));
        kind.map(|(_, kind)| *kind)
    }

    /// The next token may be a name, an address or a number.
    fn is_operand(&self) -> bool {
        self.tokens.get(self.place).is_some_and(|token| {
            let is_name = token
                .text
                .starts_with(|first: char| first.is_alphanumeric() || first == ':');
            is_name
                && !names::is_unsupported(token.text)
                && token.text != "and"
                && token.text != "or"
        })
    }

    /// Reject qualifiers that contradict each other.
    fn check(&self, qualifiers: Qualifiers, place: usize) -> Result<(), FilterError> {
        let Qualifiers {
            protocol,
            end,
            kind,
        } = qualifiers;
        let (is_valid, expected) = match kind {
            Kind::Host => (
                matches!(protocol, None | Some(Protocol::Link | IP | IP6)) || is_arp(protocol),
                "host with ether, ip, ip6, arp, rarp or nothing before it",
            ),
            Kind::Net => (
                matches!(protocol, None | Some(IP | IP6)) || is_arp(protocol),
                "net with ip, ip6, arp, rarp or nothing before it",
            ),
            Kind::Port | Kind::Portrange => (
                with_ports(protocol).is_some(),
                "port with tcp, udp, sctp or nothing before it",
            ),
            Kind::Proto => (
                end.is_none() && matches!(protocol, None | Some(Protocol::Link | IP | IP6)),
                "proto with ether, ip, ip6 or nothing before it",
            ),
        };
        if is_valid {
            return Ok(());
        }
        Err(self.error_at(place, self.place, expected))
    }

    /// An operand, or several in parentheses.
    fn operands(&mut self, qualifiers: Qualifiers) -> Result<Condition, FilterError> {
        if !self.accept(&["("]) {
            return self.operand(qualifiers);
        }
        self.qualifiers = Some(qualifiers);
        let item = self.nested(Self::expression)?;
        let condition = self.condition(item)?;
        self.expect(")", "and, or, or )")?;
        Ok(condition)
    }

    /// One operand; the current token is its first.
    pub(super) fn operand(&mut self, qualifiers: Qualifiers) -> Result<Condition, FilterError> {
        let end = qualifiers.end.unwrap_or(End::Either);
        let place = self.place;
        let (condition, expected) = match (qualifiers.kind, qualifiers.protocol) {
            (Kind::Host, Some(Protocol::Link)) => {
                let address = tokens::mac(self.word());
                (address.map(|address| Headers::mac(end, address)), MAC)
            }
            (Kind::Host, protocol) => (self.address(protocol, end, false), ADDRESS),
            (Kind::Net, protocol) => (self.address(protocol, end, true), NETWORK),
            (Kind::Port, protocol) => {
                let port = port(self.word());
                (port.map(|port| self.ports(protocol, end, [port; 2])), PORT)
            }
            (Kind::Portrange, protocol) => {
                let range = ports(self.word());
                (range.map(|range| self.ports(protocol, end, range)), PORTS)
            }
            (Kind::Proto, protocol) => (self.protocol_number(protocol), PROTOCOL),
        };
        match condition {
            Some(condition) => {
                self.place += 1;
                Ok(condition)
            }
            None => Err(self.error_at(place, self.place + 1, expected)),
        }
    }

    /// The current token.
    fn word(&self) -> &str {
        self.tokens.get(self.place).map_or("", |token| token.text)
    }

    fn ports(&self, protocol: Option<Protocol>, end: End, range: [u32; 2]) -> Condition {
        let protocols = with_ports(protocol).unwrap_or_default();
        self.headers.ports(protocols, end, range)
    }

    fn protocol_number(&self, protocol: Option<Protocol>) -> Option<Condition> {
        let token = self.word();
        let number = tokens::number(token);
        if protocol == Some(Protocol::Link) {
            let number = number.or_else(|| names::link_protocol(token))?;
            let number = u16::try_from(number).ok()?;
            return Some(self.headers.protocol(Protocol::Network(number)));
        }
        let number = number.or_else(|| names::ip_protocol(token))?;
        let versions = match protocol {
            Some(IP) => Versions::Four,
            Some(IP6) => Versions::Six,
            _ => Versions::Both,
        };
        Some(self.headers.above_ip(number, versions))
    }

    /// An address or a network of either version; the place is left at its last token.
    fn address(&mut self, protocol: Option<Protocol>, end: End, is_net: bool) -> Option<Condition> {
        let token = self.word().to_owned();
        let length = self.prefix_length();
        if let Ok(address) = token.parse::<Ipv6Addr>() {
            let bits = match length {
                Some(Prefix::Length(bits)) => bits,
                Some(Prefix::Mask(_)) => return None,
                None => 128,
            };
            let mask = u128::MAX
                .checked_shl(128_u32.checked_sub(bits)?)
                .unwrap_or(0);
            let is_valid = matches!(protocol, None | Some(IP6))
                && address.to_bits() & !mask == 0
                && (is_net || bits == 128);
            return is_valid.then(|| self.headers.address_6(end, address.to_bits(), mask));
        }
        let (address, own_mask) = address_4(&token, is_net)?;
        let mask = match length {
            Some(Prefix::Length(bits)) => {
                u32::MAX.checked_shl(32_u32.checked_sub(bits)?).unwrap_or(0)
            }
            Some(Prefix::Mask(mask)) => mask,
            None => own_mask,
        };
        let is_valid =
            protocol != Some(IP6) && address & !mask == 0 && (is_net || length.is_none());
        let only = match protocol {
            Some(Protocol::Network(number)) => Some(number),
            _ => None,
        };
        is_valid.then(|| self.headers.address_4(only, end, address, mask))
    }

    /// `/24` or `mask 255.255.255.0` behind the current token; the place moves to its last token.
    fn prefix_length(&mut self) -> Option<Prefix> {
        let operator = self.tokens.get(self.place + 1)?.text;
        let value = self.tokens.get(self.place + 2)?.text;
        let prefix = match operator {
            "/" => Prefix::Length(tokens::number(value).unwrap_or(u32::MAX)),
            "mask" => Prefix::Mask(address_4(value, true)?.0),
            _ => return None,
        };
        self.place += 2;
        Some(prefix)
    }
}

/// The length of a network's prefix, in bits or as a mask.
#[derive(Clone, Copy)]
enum Prefix {
    Length(u32),
    Mask(u32),
}

fn is_arp(protocol: Option<Protocol>) -> bool {
    matches!(protocol, Some(Protocol::Network(ARP | RARP)))
}

/// The protocols whose ports are meant; none if this one has no ports.
fn with_ports(protocol: Option<Protocol>) -> Option<&'static [u8]> {
    let Some(protocol) = protocol else {
        return Some(&names::WITH_PORTS);
    };
    let Protocol::Transport(own, _) = protocol else {
        return None;
    };
    let place = names::WITH_PORTS.iter().position(|number| *number == own)?;
    Some(&names::WITH_PORTS[place..=place])
}

/// Parts of an address of IPv4 and the mask of those that are there. A number alone is the whole address; as a network,
/// its first parts.
fn address_4(token: &str, is_net: bool) -> Option<(u32, u32)> {
    if let Some(mut number) = tokens::number(token) {
        let mut mask = u32::MAX;
        while is_net && number != 0 && number >> 24 == 0 {
            (number, mask) = (number << 8, mask << 8);
        }
        return Some((number, mask));
    }
    let parts: Vec<&str> = token.split('.').collect();
    let mut address = 0;
    for part in &parts {
        let is_number = !part.is_empty() && part.chars().all(|digit| digit.is_ascii_digit());
        address = address << 8 | u32::from(part.parse::<u8>().ok().filter(|_| is_number)?);
    }
    let missing = 4_u32.checked_sub(parts.len() as u32)?;
    let mask = u32::MAX << (8 * missing);
    Some((address << (8 * missing), mask))
}

/// A port by its number or its name.
fn port(token: &str) -> Option<u32> {
    let number = tokens::number(token).or_else(|| names::port(token));
    number
        .or_else(|| names::constant(token))
        .filter(|port| *port <= 0xffff)
}

/// Two ports with a dash between them, which names may have too; or one.
fn ports(token: &str) -> Option<[u32; 2]> {
    if let Some(port) = port(token) {
        return Some([port; 2]);
    }
    let mut dashes = token.match_indices('-').map(|(place, _)| place);
    dashes.find_map(|dash| {
        let (low, high) = (port(&token[..dash])?, port(&token[dash + 1..])?);
        Some([low.min(high), low.max(high)])
    })
}
