//! Capture filters: the address and port primitives of pcap-filter(7).
//!
//! ```text
//! host 10.0.0.1 and port 443
//! src net 2001:db8::/32 and not (dst port 80 or 8080)
//! ```
//!
//! As there, `not` binds closest, `and` and `or` are equals that bind from left to right, `&&`, `||` and `!` are other
//! spellings, and a bare value inherits the qualifier before it (`port 80 or 8080`). Unlike there, names of hosts and
//! services are rejected, since their meaning depends on the machine; the innermost IP header is matched, not the
//! outermost; and primitives of other layers are rejected.

use std::fmt;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::str::FromStr;

use crate::packet::{Address, Endpoint, Segment};

#[cfg(test)]
mod tests;

/// The deepest nesting of parentheses that is accepted.
const MAX_NESTING: usize = 100;

/// Bits of an address as [`Address`] has it, and before those of an IPv4 address.
const BITS: u32 = 128;
const BITS_BEFORE_V4: u32 = 96;

/// A condition on segments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter(Node);

/// A syntax error in a filter expression.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("column {column}: found {actual}; expected {expected}")]
pub struct FilterError {
    /// The column, in characters from 1.
    pub column: usize,
    /// The text at that column.
    pub actual: String,
    /// The tokens that are valid at that column.
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

/// A property, and the end of the connection that must have it.
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
    /// Return true if every segment matches.
    pub fn matches_all(&self) -> bool {
        self.0 == Node::All
    }

    /// Return true if the segment matches.
    #[inline]
    pub fn matches(&self, segment: &Segment) -> bool {
        self.0.matches(segment)
    }
}

impl Node {
    fn matches(&self, segment: &Segment) -> bool {
        match self {
            Self::All => true,
            Self::Is(primitive) => primitive.matches(segment),
            Self::Not(inner) => !inner.matches(segment),
            Self::And(first, second) => first.matches(segment) && second.matches(segment),
            Self::Or(first, second) => first.matches(segment) || second.matches(segment),
        }
    }
}

impl Primitive {
    fn matches(&self, segment: &Segment) -> bool {
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

/// Return the first bits of an address; the others are 0.
fn first(bits: u32, address: u128) -> u128 {
    address & u128::MAX.checked_shl(BITS - bits).unwrap_or(0)
}

impl FromStr for Filter {
    type Err = FilterError;

    /// Parse an expression; the empty one matches everything.
    fn from_str(text: &str) -> Result<Self, FilterError> {
        let mut parser = Parser {
            tokens: tokens(text),
            place: 0,
            end: text.chars().count() + 1,
            qualifiers: None,
        };
        if parser.tokens.is_empty() {
            return Ok(Self(Node::All));
        }
        let node = parser.expression(0)?;
        match parser.peek() {
            None => Ok(Self(node)),
            Some(_) => Err(parser.error_at_token("and, or, or the end")),
        }
    }
}

/// A token and the column where it begins.
struct Token<'a> {
    text: &'a str,
    column: usize,
}

/// Split the text into words, parentheses and operators.
fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut actual = Vec::new();
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
        let (token, after) = rest.split_at(length);
        if !first.is_whitespace() {
            let column = 1 + text[..text.len() - rest.len()].chars().count();
            actual.push(Token {
                text: token,
                column,
            });
        }
        rest = after;
    }
    actual
}

/// The qualifiers of a value, as in `src host`.
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
    tokens: Vec<Token<'a>>,
    place: usize,
    /// The column behind the last character.
    end: usize,
    /// The qualifiers of the previous value, which a bare value inherits.
    qualifiers: Option<Qualifiers>,
}

const PRIMITIVE: &str = "host, net, port, portrange, src, dst, not, tcp, ip, ip6 or (";

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<&'a str> {
        self.tokens.get(self.place).map(|token| token.text)
    }

    /// Consume the next token if it is one of `any`; return true if it was.
    fn accept(&mut self, any: &[&str]) -> bool {
        let is_next = self.peek().is_some_and(|token| any.contains(&token));
        self.place += usize::from(is_next);
        is_next
    }

    fn error_at_token(&self, expected: &'static str) -> FilterError {
        let (actual, column) = match self.tokens.get(self.place) {
            Some(token) => (format!("{:?}", token.text), token.column),
            None => ("the end".into(), self.end),
        };
        FilterError {
            column,
            actual,
            expected,
        }
    }

    fn expression(&mut self, depth: usize) -> Result<Node, FilterError> {
        if depth > MAX_NESTING {
            return Err(self.error_at_token("fewer parentheses"));
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

    fn factor(&mut self, depth: usize) -> Result<Node, FilterError> {
        let mut is_negated = false;
        while self.accept(&["not", "!"]) {
            is_negated = !is_negated;
        }
        let node = if self.accept(&["("]) {
            let inner = self.expression(depth + 1)?;
            if !self.accept(&[")"]) {
                return Err(self.error_at_token("and, or, or )"));
            }
            inner
        } else {
            self.primitive()?
        };
        Ok(match node {
            node if !is_negated => node,
            Node::Not(inner) => *inner,
            node => Node::Not(node.into()),
        })
    }

    fn primitive(&mut self) -> Result<Node, FilterError> {
        if self.accept(&["tcp"]) {
            return Ok(Node::All);
        }
        for (token, six) in [("ip", false), ("ip6", true)] {
            if self.accept(&[token]) {
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
    fn qualifiers(&mut self) -> Result<Qualifiers, FilterError> {
        let end = self.direction();
        let kinds = [
            ("host", Kind::Host),
            ("net", Kind::Net),
            ("port", Kind::Port),
            ("portrange", Kind::Portrange),
        ];
        let kind = kinds
            .iter()
            .find(|(token, _)| self.accept(&[token]))
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
                let is_value = self.peek().is_some_and(|token| {
                    token.starts_with(|first: char| first.is_ascii_hexdigit())
                });
                self.qualifiers
                    .filter(|_| is_value)
                    .ok_or_else(|| self.error_at_token(PRIMITIVE))
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

    fn value(&self, kind: Kind) -> Result<Property, FilterError> {
        let token = self.peek().unwrap_or_default();
        let (actual, expected) = match kind {
            Kind::Host => (
                token.parse().ok().map(host),
                "an address such as 192.0.2.1 or 2001:db8::1",
            ),
            Kind::Net => (
                net(token),
                "a network such as 192.0.2.0/24, 192.0 or 2001:db8::/32, with no bit set behind it",
            ),
            Kind::Port => (
                port(token).map(|port| Property::Ports(port..=port)),
                "a number from 0 to 65535",
            ),
            Kind::Portrange => (
                ports(token).map(Property::Ports),
                "two numbers from 0 to 65535 such as 8000-8080",
            ),
        };
        actual.ok_or_else(|| self.error_at_token(expected))
    }
}

fn host(address: IpAddr) -> Property {
    Property::Net {
        address: Address::from(address).0,
        bits: BITS,
    }
}

/// `192.0.2.0/24`, `2001:db8::/32`, an address, or the first parts of one of IPv4.
fn net(token: &str) -> Option<Property> {
    let (written, length) = token
        .split_once('/')
        .map_or((token, None), |(written, length)| (written, Some(length)));
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

fn port(token: &str) -> Option<u16> {
    token
        .parse()
        .ok()
        .filter(|_| token.starts_with(|first: char| first.is_ascii_digit()))
}

fn ports(token: &str) -> Option<RangeInclusive<u16>> {
    let (low, high) = token.split_once('-')?;
    let (low, high) = (port(low)?, port(high)?);
    Some(low.min(high)..=low.max(high))
}

impl fmt::Display for Filter {
    /// Write the parsed expression with every parenthesis.
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
