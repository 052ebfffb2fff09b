//! Stages of a flow.
//!
//! ```text
//!             first packet                both ends closed, no packet in transit
//!   Waiting ──────────────▶ Connection ───────────────────────────────────────▶ Over
//!      └──────────────────▶ Stream, to the end of the run
//! ```

use ackclock_core::Time;

use super::connection::Connection;
use super::rows::Row;
use super::transfers::Task;
use crate::datagram::{Sink, Source};
use crate::network::{Network, NetworkOutlet};
use crate::path::Hop;

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

/// A UDP flow: a source of datagrams and their sink.
pub struct Stream {
    pub source: Source,
    /// First hop of the source's packets.
    pub entrance: Hop,
    pub sink: Sink,
    pub started: Time,
    /// Payload received and datagrams sent by the end of the warm-up.
    pub at_warmup: (u64, u64),
}

impl Stream {
    /// Packets that the two ends have sent, and those that have arrived.
    pub fn packets(&self) -> (u64, u64) {
        (
            self.source.sent_packets() + self.sink.sent_packets(),
            self.source.received_packets() + self.sink.received_packets(),
        )
    }

    /// Payload received and datagrams sent.
    pub fn snapshot(&self) -> (u64, u64) {
        (self.sink.delivered_bytes(), self.source.sent_packets())
    }

    /// The network as the source sees it.
    pub fn entrance<'a>(&self, network: &'a mut Network) -> NetworkOutlet<'a> {
        NetworkOutlet {
            network,
            hop: self.entrance,
        }
    }
}
