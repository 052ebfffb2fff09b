//! Capture filters in the language of pcap-filter(7), with the semantics of libpcap.
//!
//! ```text
//! src net 10.0.0.0/8 and not port (22 or 443)
//! tcp[tcpflags] & (tcp-syn|tcp-fin) != 0
//! vlan 100 and host 2001:db8::1
//! ```
//!
//! The compiler is our own: libpcap is a system library, which a wheel cannot expect, and its classic BPF programs
//! would need an interpreter. An expression becomes a tree of conditions on the bytes of a frame (`condition`), which
//! `tests/filters.rs` compares with tcpdump's selection. As there:
//!
//! - Addresses, ports and protocols are those of the outermost headers; `vlan` and `mpls` move everything to their
//!   right, even behind `or`, past one tag or label.
//! - `and` and `or` are equals that bind from left to right; a bare value inherits the qualifiers of the primitive
//!   before it (`port 80 or 8080`).
//! - Fragments without the ports match no port, and extension headers of IPv6 hide the ports behind them.
//! - A frame whose captured part ends before a field that the expression loads does not match, not even negated.
//!
//! Deviations: names of hosts and networks are rejected, since their meaning depends on the machine; names of services
//! and protocols are those of a fixed table, and stand for all transports; the backslash before a protocol's name may be
//! left out; a primitive that a link type lacks matches none of its frames, where libpcap rejects the expression.
//! Primitives of other kinds of capture (the direction, 802.11, ATM, PPPoE, Geneve, the packet filter's) are rejected.

use std::str::FromStr;

use crate::framing::Record;
use condition::Condition;
use frame::Frame;
use parser::Parser;

mod condition;
mod frame;
mod names;
mod parser;
mod primitives;
mod tokens;

#[cfg(test)]
mod tests;

/// A condition on frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter(Condition);

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

impl Default for Filter {
    /// The filter that every frame matches.
    fn default() -> Self {
        Self(Condition::Constant(true))
    }
}

impl Filter {
    /// Return true if the frame matches. Frames of unsupported link types do, so that they are counted as such.
    #[inline]
    pub fn matches(&self, record: &Record) -> bool {
        if self.0 == Condition::Constant(true) {
            return true;
        }
        Frame::new(record).is_none_or(|frame| self.0.holds(&frame).unwrap_or(false))
    }
}

impl FromStr for Filter {
    type Err = FilterError;

    /// Compile an expression; the empty one matches everything.
    fn from_str(text: &str) -> Result<Self, FilterError> {
        Parser::new(text).filter().map(Self)
    }
}
