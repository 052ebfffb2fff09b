//! Which segments are looked at: the words of pcap-filter(7) that speak of addresses and ports.
//!
//! ```text
//! host 10.0.0.1 and port 443
//! src net 2001:db8::/32 and not (dst port 80 or 8080)
//! ```
//!
//! As there, `not` binds closest, `and` and `or` are equals that bind from left to right, `&&`, `||` and `!` are other
//! spellings, and a value without a word takes the word before it (`port 80 or 8080`). Unlike there, names of hosts and
//! services are refused, since what they mean depends on the machine; what is looked at is the innermost IP header, not
//! the outermost; and words about other layers are refused.

use std::fmt;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::str::FromStr;

use crate::packet::{Address, Endpoint, Segment};

#[cfg(test)]
mod tests;

/// Deeper expressions are refused.
const MOST_NESTED: usize = 100;

/// Bits of an address as [`Address`] has it, and before those of an IPv4 address.
const BITS: u32 = 128;
const BITS_BEFORE_V4: u32 = 96;

/// A condition on segments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter(Node);

/// What is no filter: at which letter (from 1 on), what was found there and what would be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("column {column}: found {found}; expected {expected}")]
pub struct NoFilter {
    /// Where, in letters from 1 on.
    pub column: usize,
    /// What stands there.
    pub found: String,
    /// What may stand there.
    pub expected: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Node {
    All,
    Is(Primitive),
    Not(Box<Node>),
    And(Box<Node>, Box<Node>),
    Or(Box<Node>, Box<Node>),
}

/// A property of one end, and which end has it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Primitive {
    end: End,
    property: Property,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Source,
    Destination,
    Either,
    Both,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Property {
    /// The first `bits` of the address are these.
    Net {
        address: u128,
        bits: u32,
    },
    Ports(RangeInclusive<u16>),
    /// IPv4 or IPv6.
    Version {
        six: bool,
    },
}

impl Filter {
    /// Whether every segment is looked at.
    pub fn takes_all(&self) -> bool {
        self.0 == Node::All
    }

    /// Whether the segment is looked at.
    #[inline]
    pub fn takes(&self, segment: &Segment) -> bool {
        self.0.takes(segment)
    }
}

impl Node {
    fn takes(&self, segment: &Segment) -> bool {
        match self {
            Self::All => true,
            Self::Is(primitive) => primitive.takes(segment),
            Self::Not(inner) => !inner.takes(segment),
            Self::And(first, second) => first.takes(segment) && second.takes(segment),
            Self::Or(first, second) => first.takes(segment) || second.takes(segment),
        }
    }
}

impl Primitive {
    fn takes(&self, segment: &Segment) -> bool {
        let source = || self.property.is_of(segment.source);
        let destination = || self.property.is_of(segment.destination);
        match self.end {
            End::Source => source(),
            End::Destination => destination(),
            End::Either => source() || destination(),
            End::Both => source() && destination(),
        }
    }
}

impl Property {
    fn is_of(&self, end: Endpoint) -> bool {
        match self {
            Self::Net { address, bits } => {
                let is_other_version = *bits < BITS_BEFORE_V4 && end.address.ip().is_ipv4();
                first(*bits, end.address.0 ^ address) == 0 && !is_other_version
            }
            Self::Ports(ports) => ports.contains(&end.port),
            Self::Version { six } => end.address.ip().is_ipv6() == *six,
        }
    }
}

/// The first bits of an address; the others are 0.
fn first(bits: u32, address: u128) -> u128 {
    address & u128::MAX.checked_shl(BITS - bits).unwrap_or(0)
}

impl FromStr for Filter {
    type Err = NoFilter;

    /// Reads an expression; the empty one takes everything.
    fn from_str(text: &str) -> Result<Self, NoFilter> {
        let mut parser = Parser {
            words: words(text),
            place: 0,
            end: text.chars().count() + 1,
            qualifiers: None,
        };
        if parser.words.is_empty() {
            return Ok(Self(Node::All));
        }
        let node = parser.expression(0)?;
        match parser.peek() {
            None => Ok(Self(node)),
            Some(_) => Err(parser.refuse("and, or, or the end")),
        }
    }
}

/// A word and the column where it begins.
struct Word<'a> {
    text: &'a str,
    column: usize,
}

/// Words, parentheses and operators.
fn words(text: &str) -> Vec<Word<'_>> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            _ if first.is_whitespace() => first.len_utf8(),
            '(' | ')' | '!' => 1,
            '&' | '|' => 1 + usize::from(rest[1..].starts_with(first)),
            _ => rest
                .find(|letter: char| letter.is_whitespace() || "()!&|".contains(letter))
                .unwrap_or(rest.len()),
        };
        let (word, after) = rest.split_at(length);
        if !first.is_whitespace() {
            let column = 1 + text[..text.len() - rest.len()].chars().count();
            found.push(Word { text: word, column });
        }
        rest = after;
    }
    found
}

/// What a value is of, as `src host` says.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Qualifiers {
    end: End,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Host,
    Net,
    Port,
    Portrange,
}

struct Parser<'a> {
    words: Vec<Word<'a>>,
    place: usize,
    /// The column behind the last letter.
    end: usize,
    /// Those of the value before, which one without its own takes.
    qualifiers: Option<Qualifiers>,
}

const PRIMITIVE: &str = "host, net, port, portrange, src, dst, not, tcp, ip, ip6 or (";

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<&'a str> {
        self.words.get(self.place).map(|word| word.text)
    }

    /// Whether one of these words is next, which is then read.
    fn accept(&mut self, any: &[&str]) -> bool {
        let is_next = self.peek().is_some_and(|word| any.contains(&word));
        self.place += usize::from(is_next);
        is_next
    }

    fn refuse(&self, expected: &'static str) -> NoFilter {
        let (found, column) = match self.words.get(self.place) {
            Some(word) => (format!("{:?}", word.text), word.column),
            None => ("the end".into(), self.end),
        };
        NoFilter {
            column,
            found,
            expected,
        }
    }

    fn expression(&mut self, depth: usize) -> Result<Node, NoFilter> {
        if depth > MOST_NESTED {
            return Err(self.refuse("fewer parentheses"));
        }
        let mut node = self.factor(depth)?;
        loop {
            if self.accept(&["and", "&&"]) {
                node = Node::And(node.into(), self.factor(depth)?.into());
            } else if self.accept(&["or", "||"]) {
                node = Node::Or(node.into(), self.factor(depth)?.into());
            } else {
                return Ok(node);
            }
        }
    }

    fn factor(&mut self, depth: usize) -> Result<Node, NoFilter> {
        let mut is_denied = false;
        while self.accept(&["not", "!"]) {
            is_denied = !is_denied;
        }
        let node = if self.accept(&["("]) {
            let inner = self.expression(depth + 1)?;
            if !self.accept(&[")"]) {
                return Err(self.refuse("and, or, or )"));
            }
            inner
        } else {
            self.primitive()?
        };
        Ok(match node {
            node if !is_denied => node,
            Node::Not(inner) => *inner,
            node => Node::Not(node.into()),
        })
    }

    fn primitive(&mut self) -> Result<Node, NoFilter> {
        if self.accept(&["tcp"]) {
            return Ok(Node::All);
        }
        for (word, six) in [("ip", false), ("ip6", true)] {
            if self.accept(&[word]) {
                return Ok(Node::Is(Primitive {
                    end: End::Either,
                    property: Property::Version { six },
                }));
            }
        }
        let qualifiers = self.qualifiers()?;
        let property = self.value(qualifiers.kind)?;
        self.place += 1;
        self.qualifiers = Some(qualifiers);
        Ok(Node::Is(Primitive {
            end: qualifiers.end,
            property,
        }))
    }

    /// `[src|dst|src or dst|src and dst] [host|net|port|portrange]`, or those before.
    fn qualifiers(&mut self) -> Result<Qualifiers, NoFilter> {
        let end = self.direction();
        let kinds = [
            ("host", Kind::Host),
            ("net", Kind::Net),
            ("port", Kind::Port),
            ("portrange", Kind::Portrange),
        ];
        let kind = kinds
            .iter()
            .find(|(word, _)| self.accept(&[word]))
            .map(|(_, kind)| *kind);
        match (end, kind) {
            (_, Some(kind)) => Ok(Qualifiers {
                end: end.unwrap_or(End::Either),
                kind,
            }),
            (Some(end), None) => Ok(Qualifiers {
                end,
                kind: Kind::Host,
            }),
            (None, None) => {
                let is_value = self
                    .peek()
                    .is_some_and(|word| word.starts_with(|first: char| first.is_ascii_hexdigit()));
                self.qualifiers
                    .filter(|_| is_value)
                    .ok_or_else(|| self.refuse(PRIMITIVE))
            }
        }
    }

    fn direction(&mut self) -> Option<End> {
        let (is_source, is_destination) = (self.accept(&["src"]), self.accept(&["dst"]));
        if !is_source {
            return is_destination.then_some(End::Destination);
        }
        let before = self.place;
        let end = if self.accept(&["or", "||"]) {
            End::Either
        } else {
            End::Both
        };
        if end == End::Either || self.accept(&["and", "&&"]) {
            if self.accept(&["dst"]) {
                return Some(end);
            }
            self.place = before;
        }
        Some(End::Source)
    }

    fn value(&self, kind: Kind) -> Result<Property, NoFilter> {
        let word = self.peek().unwrap_or_default();
        let (found, expected) = match kind {
            Kind::Host => (
                word.parse().ok().map(host),
                "an address such as 192.0.2.1 or 2001:db8::1",
            ),
            Kind::Net => (
                net(word),
                "a network such as 192.0.2.0/24, 192.0 or 2001:db8::/32, with no bit set behind it",
            ),
            Kind::Port => (
                port(word).map(|port| Property::Ports(port..=port)),
                "a number from 0 to 65535",
            ),
            Kind::Portrange => (
                ports(word).map(Property::Ports),
                "two numbers from 0 to 65535 such as 8000-8080",
            ),
        };
        found.ok_or_else(|| self.refuse(expected))
    }
}

fn host(address: IpAddr) -> Property {
    Property::Net {
        address: Address::from(address).0,
        bits: BITS,
    }
}

/// `192.0.2.0/24`, `2001:db8::/32`, an address, or the first parts of one of IPv4.
fn net(word: &str) -> Option<Property> {
    let (written, length) = word
        .split_once('/')
        .map_or((word, None), |(written, length)| (written, Some(length)));
    let parts = written.split('.').count();
    let is_short = !written.contains(':') && parts < 4;
    let padded = if is_short {
        format!("{written}{}", ".0".repeat(4 - parts))
    } else {
        written.into()
    };
    let address: IpAddr = padded.parse().ok()?;
    let (before, most) = if address.is_ipv4() {
        (BITS_BEFORE_V4, 32)
    } else {
        (0, BITS)
    };
    let bits = match length {
        Some(length) => length.parse().ok().filter(|bits| *bits <= most)?,
        None if is_short => 8 * parts as u32,
        None => most,
    };
    let (address, bits) = (Address::from(address).0, before + bits);
    (first(bits, address) == address).then_some(Property::Net { address, bits })
}

fn port(word: &str) -> Option<u16> {
    word.parse()
        .ok()
        .filter(|_| word.starts_with(|first: char| first.is_ascii_digit()))
}

fn ports(word: &str) -> Option<RangeInclusive<u16>> {
    let (low, high) = word.split_once('-')?;
    let (low, high) = (port(low)?, port(high)?);
    Some(low.min(high)..=low.max(high))
}

impl fmt::Display for Filter {
    /// As it was understood, with every parenthesis.
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(to)
    }
}

impl fmt::Display for Node {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => to.write_str("tcp"),
            Self::Is(primitive) => primitive.fmt(to),
            Self::Not(inner) => write!(to, "not {inner}"),
            Self::And(first, second) => write!(to, "({first} and {second})"),
            Self::Or(first, second) => write!(to, "({first} or {second})"),
        }
    }
}

impl fmt::Display for Primitive {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = match self.end {
            End::Source => "src ",
            End::Destination => "dst ",
            End::Either => "",
            End::Both => "src and dst ",
        };
        match &self.property {
            Property::Version { six } => to.write_str(if *six { "ip6" } else { "ip" }),
            Property::Ports(ports) => {
                write!(to, "{end}portrange {}-{}", ports.start(), ports.end())
            }
            Property::Net { address, bits } => {
                let ip = Address(*address).ip();
                let is_v4 = ip.is_ipv4() && *bits >= BITS_BEFORE_V4;
                write!(
                    to,
                    "{end}net {ip}/{}",
                    if is_v4 { bits - BITS_BEFORE_V4 } else { *bits }
                )
            }
        }
    }
}
