//! Stages of a flow.
//!
//! ```text
//!             first packet                both ends closed, no packet in transit
//!   Waiting ──────────────▶ Connection ───────────────────────────────────────▶ Over
//!      └──────────────────▶ Stream, to the end of the run
//! ```

use super::connection::Connection;
use super::rows::Row;
use super::stream::Stream;
use super::transfers::Task;

/// Stage of a flow.
///
/// The two ends exist from the first packet to the last. Of generated transfers only those are here that are next or
/// have begun.
pub enum Stage {
    /// Not begun; with the task of a generated transfer.
    Waiting(Option<Box<Task>>),
    /// A connection, from its first packet to its last.
    Connection(Box<Connection>),
    /// Datagrams, from the first to the end of the run.
    Stream(Box<Stream>),
    /// Ended; only its row is left.
    Over(Box<Row>),
    /// The slot is free. The row of its transfer is stored elsewhere until it is handed over.
    Vacant,
}

impl Stage {
    /// Task of a generated transfer that has begun.
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
