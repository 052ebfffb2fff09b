//! Flow queueing: many queues, and a scheduler that gives each its turn (DRR++).
//!
//! T. Høiland-Jørgensen et al.: The Flow Queue CoDel Packet Scheduler and Active Queue Management Algorithm,
//! RFC 8290 section 4, and `sch_fq_codel` and `sch_fq_pie` of Linux 6.1, which share it.
//!
//! Deviations: a new queue that has become empty leaves immediately if there is no old queue, as in Linux; the
//! RFC puts it into the (empty) list of old queues, where its next turn would remove it.
//!
//! ```text
//!   not listed ── packet arrives ──▶ new, deficit = quantum ── deficit ≤ 0, or empty ──▶ old ─┐ deficit ≤ 0:
//!        ▲                                                                              │  ▲   │ += quantum,
//!        └────────────────────────────────────────────── empty ─────────────────────────┘  └───┘ to the end
//! ```

use std::cmp::Reverse;
use std::collections::VecDeque;

use serde::de::Error as _;

use crate::packet::Packet;
use crate::queue::codel::Source;
use crate::queue::fifo::Fifo;
use crate::queue::hash::FlowHash;
use crate::queue::{require, Backlog, QueueContext};

/// Most queues, as in Linux.
const MAX_QUEUES: u32 = 65_536;

/// The queues and the order of their turns.
#[derive(Debug)]
pub struct FlowQueues {
    queues: Vec<FlowQueue>,
    /// Queues that have just become active, which are served first.
    new: VecDeque<u32>,
    /// Queues that have had a turn.
    old: VecDeque<u32>,
    quantum: i64,
    hash: FlowHash,
    backlog: Backlog,
}

/// One queue.
#[derive(Debug, Default)]
struct FlowQueue {
    packets: Fifo,
    /// Bytes that it may still send in this turn.
    deficit: i64,
    listed: bool,
}

impl FlowQueues {
    /// Empty queues.
    pub fn new(
        queues: u32,
        quantum_bytes: u32,
        context: &QueueContext,
    ) -> Result<FlowQueues, serde_json::Error> {
        if queues == 0 || queues > MAX_QUEUES {
            let expected = format!("flows must be 1 to {MAX_QUEUES}, found {queues}");
            return Err(serde_json::Error::custom(expected));
        }
        require(quantum_bytes > 0, "quantum_bytes must be at least 1")?;
        Ok(FlowQueues {
            queues: std::iter::repeat_with(FlowQueue::default)
                .take(queues as usize)
                .collect(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            quantum: i64::from(quantum_bytes),
            hash: FlowHash::draw(&mut context.random()),
            backlog: Backlog::default(),
        })
    }

    /// The queue of a packet's flow.
    #[inline]
    pub fn queue_of(&self, packet: &Packet) -> usize {
        self.hash.queue(packet.flow, self.queues.len())
    }

    /// Append a packet to its queue, which becomes a new one if it was not active.
    #[inline]
    pub fn push(&mut self, queue: usize, packet: Packet) {
        self.backlog.packets += 1;
        self.backlog.bytes += u64::from(packet.wire_bytes);
        let flow = &mut self.queues[queue];
        flow.packets.push(packet);
        if !flow.listed {
            flow.listed = true;
            flow.deficit = self.quantum;
            self.new.push_back(queue as u32);
        }
    }

    /// Take the first packet of a queue, regardless of turns.
    #[inline]
    pub fn pop(&mut self, queue: usize) -> Option<Packet> {
        let packet = self.queues[queue].packets.pop()?;
        self.backlog.packets -= 1;
        self.backlog.bytes -= u64::from(packet.wire_bytes);
        Some(packet)
    }

    /// Queue whose turn it is, which may be empty (then call [`FlowQueues::pass`]); `None` if no queue is active.
    #[inline]
    pub fn turn(&mut self) -> Option<usize> {
        loop {
            let from_new = self.new.front();
            let queue = *from_new.or_else(|| self.old.front())?;
            let flow = &mut self.queues[queue as usize];
            if flow.deficit > 0 {
                return Some(queue as usize);
            }
            flow.deficit += self.quantum;
            self.take_first();
            self.old.push_back(queue);
        }
    }

    /// Charge the queue whose turn it is for a packet sent.
    #[inline]
    pub fn charge(&mut self, queue: usize, bytes: u32) {
        self.queues[queue].deficit -= i64::from(bytes);
    }

    /// End the turn of an empty queue. A new one passes through the old ones once, so that it
    /// cannot return as a new one ahead of them (RFC 8290 section 4.2).
    pub fn pass(&mut self) {
        let was_new = !self.new.is_empty();
        let Some(queue) = self.take_first() else {
            return;
        };
        if was_new && !self.old.is_empty() {
            self.old.push_back(queue);
        } else {
            self.queues[queue as usize].listed = false;
        }
    }

    fn take_first(&mut self) -> Option<u32> {
        self.new.pop_front().or_else(|| self.old.pop_front())
    }

    /// Queue with the most bytes; the first of equal ones.
    pub fn fattest(&self) -> Option<usize> {
        self.new
            .iter()
            .chain(&self.old)
            .map(|&queue| queue as usize)
            .max_by_key(|&queue| (self.bytes(queue), Reverse(queue)))
    }

    /// Bytes in a queue.
    pub fn bytes(&self, queue: usize) -> u64 {
        self.queues[queue].packets.bytes()
    }

    /// Packets and bytes in all queues.
    #[inline]
    pub fn backlog(&self) -> Backlog {
        self.backlog
    }

    /// Queue as a source for CoDel, whose backlog is that of all queues (as in Linux).
    #[inline]
    pub fn source(&mut self, queue: usize) -> FlowSource<'_> {
        FlowSource {
            queues: self,
            queue,
        }
    }
}

/// See [`FlowQueues::source`].
pub struct FlowSource<'a> {
    queues: &'a mut FlowQueues,
    queue: usize,
}

impl Source for FlowSource<'_> {
    #[inline]
    fn pop(&mut self) -> Option<Packet> {
        self.queues.pop(self.queue)
    }

    #[inline]
    fn bytes(&self) -> u64 {
        self.queues.backlog.bytes
    }
}

#[cfg(test)]
mod tests;
