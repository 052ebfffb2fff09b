//! The two ends of a UDP flow.

use ackclock_core::Time;

use crate::datagram::{Sink, Source};
use crate::network::{Network, NetworkOutlet};
use crate::path::Hop;

/// A source of datagrams and what receives them.
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
