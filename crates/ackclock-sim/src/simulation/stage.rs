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
use super::transfers::Task;

/// Where a flow is in its life.
///
/// The two ends exist from the first packet to the last. Of generated transfers only those are here that are next or
/// have begun.
pub enum Stage {
    /// It has not begun. A generated transfer knows what it is to be.
    Waiting(Option<Box<Task>>),
    /// A connection, from its first packet to its last.
    Connection(Box<Connection>),
    /// Datagrams, from the first to the end of the run.
    Stream(Box<Stream>),
    /// Only its row is left.
    Over(Box<Row>),
    /// The place is free: the row of the transfer that had it is kept apart, until it is handed over.
    Vacant,
}

impl Stage {
    /// What a generated transfer that has begun is.
    pub fn task(&self) -> Option<&Task> {
        match self {
            Stage::Connection(flow) => flow.task.as_deref(),
            _ => None,
        }
    }

    /// Packets that the two ends of an active flow have sent, and those that have arrived.
    pub fn packets(&self) -> (u64, u64) {
        match self {
            Stage::Connection(flow) => flow.packets(),
            Stage::Stream(stream) => stream.packets(),
            _ => (0, 0),
        }
    }
}
