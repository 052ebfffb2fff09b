//! The two ends of a TCP connection.

use ackclock_core::Time;

use super::transfers::Task;
use crate::network::{Network, NetworkOutlet};
use crate::path::Hop;
use crate::receiver::Receiver;
use crate::sender::{self, Sender};

/// The two ends of a connection.
pub struct Connection {
    pub sender: Sender,
    /// First hop of the sender's packets.
    pub entrance: Hop,
    pub receiver: Receiver,
    /// Time by which the receiver's clock runs ahead of the simulation's.
    pub lead: Time,
    pub at_warmup: Snapshot,
    /// Time that leaps had skipped when it began.
    pub skipped_before: Time,
    /// Task of a generated transfer.
    pub task: Option<Box<Task>>,
    /// True if other transfers wait for this one's completion.
    pub is_awaited: bool,
}

/// A flow's counts at the end of the warm-up.
#[derive(Clone, Copy, Default)]
pub struct Snapshot {
    pub delivered_bytes: u64,
    pub sent: sender::Counters,
}

impl Connection {
    /// Packets that the two ends have sent, and those that have arrived.
    pub fn packets(&self) -> (u64, u64) {
        let counters = self.sender.counters;
        (
            counters.sent_packets + self.receiver.sent_packets,
            counters.received_packets + self.receiver.received_packets,
        )
    }

    /// Time at which the connection was established, by its client.
    pub fn established(&self) -> Option<Time> {
        match self.receiver.client() {
            Some(client) => client.established,
            None => self.sender.established,
        }
    }

    /// Completion of the transfer: its last byte acknowledged, or received if its receiver has requested it.
    pub fn finished(&self) -> Option<Time> {
        match self.receiver.client() {
            Some(client) => client.finished,
            None => self.sender.finished,
        }
    }

    /// True if both ends are closed.
    pub fn is_closed(&self) -> bool {
        self.sender.is_done() && self.receiver.is_closed()
    }

    /// The counts so far.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            delivered_bytes: self.receiver.delivered_bytes(),
            sent: self.sender.counters,
        }
    }

    /// Time of the receiver's timer by the simulation's clock.
    #[inline]
    pub fn receiver_due(&self) -> Time {
        let wake = self.receiver.wake();
        if wake.is_never() {
            wake
        } else {
            wake.since(self.lead)
        }
    }

    /// Outlet of this flow's sender into the network.
    #[inline]
    pub fn entrance<'a>(&self, network: &'a mut Network) -> NetworkOutlet<'a> {
        NetworkOutlet {
            network,
            hop: self.entrance,
        }
    }
}
