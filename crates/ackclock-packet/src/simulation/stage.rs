//! A flow in the stages of its life.
//!
//! ```text
//!             first packet                both ends closed, no packet under way
//!   Waiting ──────────────▶ Connection ───────────────────────────────────────▶ Over
//!      └──────────────────▶ Stream, to the end of the run
//! ```

use super::connection::Connection;
use super::rows::Row;
use super::stream::Stream;

/// Where a flow is in its life.
///
/// The two ends exist from the first packet to the last; a flow that waits or is over takes as little room as
/// possible, because there may be a million of them.
pub enum Stage {
    /// It has not begun.
    Waiting,
    /// A connection, from its first packet to its last.
    Connection(Box<Connection>),
    /// Datagrams, from the first to the end of the run.
    Stream(Box<Stream>),
    /// Only its row is left; that of a generated transfer is kept apart, until it is handed over.
    Over(Option<Box<Row>>),
}

impl Stage {
    /// Packets that the two ends of an active flow have sent, and those that have arrived.
    pub fn packets(&self) -> (u64, u64) {
        match self {
            Stage::Connection(flow) => flow.packets(),
            Stage::Stream(stream) => stream.packets(),
            _ => (0, 0),
        }
    }
}
