//! `sfq`: stochastic fairness queueing. Flows are hashed to queues, the queues take turns, and the queue with
//! the most packets drops one when there is no room.
//!
//! P. E. McKenney: Stochastic Fairness Queueing, IEEE INFOCOM 1990; behaviour and defaults as `tc-sfq(8)` in
//! Linux 6.1.
//!
//! Deviations: a flow is identified by its number instead of addresses and ports. Among queues of the same length, the
//! one that came to it last loses the packet, as in Linux. RED within the queues (`redflowlimit`) is left
//! out.

use std::collections::VecDeque;

use ackclock_core::Time;
use rand_pcg::Pcg64Mcg;
use serde::Deserialize;
use serde_json::Value;

use crate::packet::Packet;
use crate::queue::fifo::Fifo;
use crate::queue::hash::FlowHash;
use crate::queue::{require, Backlog, Discipline, Drops, Queue, QueueContext};

/// A bucket of the hash table without a queue.
const NONE: u32 = u32::MAX;

/// Parameters, as in the algorithm's specification.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    /// Packets that fit into all queues.
    limit_packets: u32,
    /// Packets that fit into one.
    depth_packets: u32,
    /// Queues.
    flows: u32,
    /// Buckets of the hash table.
    divisor: u32,
    /// Bytes of a turn.
    quantum_bytes: u32,
    /// Interval of changes of the hash; never if 0.
    perturb_s: f64,
    /// True if the oldest packet of a queue is dropped; else the newest.
    headdrop: bool,
}

/// Queues in turns.
#[derive(Debug)]
struct Sfq {
    limit_packets: u32,
    depth_packets: usize,
    quantum: i64,
    headdrop: bool,
    hashing: Hashing,
    /// Bucket → queue in use.
    table: Vec<u32>,
    queues: Vec<FlowQueue>,
    /// Queues not in use.
    free: Vec<u32>,
    /// Queues in use, in the order of their turns.
    turns: VecDeque<u32>,
    /// Counts changes of queues' lengths.
    changes: u64,
    backlog: Backlog,
}

/// One queue.
#[derive(Debug, Default)]
struct FlowQueue {
    packets: Fifo,
    /// Bytes that it may still send in this turn.
    allotment: i64,
    bucket: u32,
    /// The change at which it came to its length.
    changed: u64,
}

/// The hash and when it changes.
#[derive(Debug)]
struct Hashing {
    hash: FlowHash,
    period: Time,
    next: Time,
    random: Pcg64Mcg,
}

/// Make the discipline; an error if parameters differ from the specification or are out of range.
pub fn make(parameters: &Value, context: &QueueContext) -> Result<Queue, serde_json::Error> {
    let given = Parameters::deserialize(parameters)?;
    given.check()?;
    let mut random = context.random();
    let period = if given.perturb_s > 0.0 {
        Time::from_seconds(given.perturb_s)
    } else {
        Time::NEVER
    };
    Ok(Queue::other(Sfq {
        limit_packets: given
            .limit_packets
            .min(given.depth_packets.saturating_mul(given.flows)),
        depth_packets: given.depth_packets as usize,
        quantum: i64::from(given.quantum_bytes),
        headdrop: given.headdrop,
        hashing: Hashing {
            hash: FlowHash::draw(&mut random),
            period,
            next: period,
            random,
        },
        table: vec![NONE; given.divisor as usize],
        queues: std::iter::repeat_with(FlowQueue::default)
            .take(given.flows as usize)
            .collect(),
        free: (0..given.flows).rev().collect(),
        turns: VecDeque::new(),
        changes: 0,
        backlog: Backlog::default(),
    }))
}

impl Parameters {
    fn check(&self) -> Result<(), serde_json::Error> {
        let numbers = [
            self.limit_packets,
            self.depth_packets,
            self.flows,
            self.quantum_bytes,
        ];
        let never = self.perturb_s == 0.0;
        require(
            !numbers.contains(&0),
            "limit, depth, flows and quantum must be at least 1",
        )?;
        require(
            self.divisor.is_power_of_two() && self.divisor <= 65_536,
            "divisor must be a power of two up to 65536",
        )?;
        require(self.flows <= 65_408, "flows must be at most 65408")?;
        require(
            never || (self.perturb_s >= 1e-3 && self.perturb_s.is_finite()),
            "perturb must be 0 (never) or at least 1 ms",
        )
    }
}

impl Discipline for Sfq {
    fn enqueue(&mut self, packet: Packet, now: Time, drops: &mut Drops) {
        self.perturb(now, drops);
        let Some(queue) = self.queue_of(packet.flow) else {
            drops.push(packet);
            return;
        };
        if self.queues[queue].packets.len() >= self.depth_packets {
            if !self.headdrop {
                drops.push(packet);
                return;
            }
            drops.extend(self.take(queue, true));
        }
        self.put(queue, packet);
        if self.backlog.packets > self.limit_packets {
            self.drop_from_longest(drops);
        }
    }

    fn dequeue(&mut self, now: Time, drops: &mut Drops) -> Option<Packet> {
        self.perturb(now, drops);
        loop {
            let queue = *self.turns.front()? as usize;
            if self.queues[queue].allotment > 0 {
                let packet = self.take(queue, true)?;
                self.queues[queue].allotment -= i64::from(packet.wire_bytes);
                self.release_if_empty(queue);
                return Some(packet);
            }
            self.queues[queue].allotment += self.quantum;
            self.turns.rotate_left(1);
        }
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }
}

impl Sfq {
    /// The queue of a flow; one that was not in use begins its turn last. None if all are in use.
    fn queue_of(&mut self, flow: u32) -> Option<usize> {
        let bucket = self.hashing.hash.queue(flow, self.table.len());
        if self.table[bucket] == NONE {
            let queue = self.free.pop()?;
            self.table[bucket] = queue;
            self.turns.push_back(queue);
            let flow_queue = &mut self.queues[queue as usize];
            flow_queue.bucket = bucket as u32;
            flow_queue.allotment = self.quantum;
        }
        Some(self.table[bucket] as usize)
    }

    fn put(&mut self, queue: usize, packet: Packet) {
        self.backlog.packets += 1;
        self.backlog.bytes += u64::from(packet.wire_bytes);
        self.queues[queue].packets.push(packet);
        self.changed(queue);
    }

    fn take(&mut self, queue: usize, first: bool) -> Option<Packet> {
        let packets = &mut self.queues[queue].packets;
        let packet = if first {
            packets.pop()
        } else {
            packets.pop_last()
        }?;
        self.backlog.packets -= 1;
        self.backlog.bytes -= u64::from(packet.wire_bytes);
        self.changed(queue);
        Some(packet)
    }

    fn changed(&mut self, queue: usize) {
        self.changes += 1;
        self.queues[queue].changed = self.changes;
    }

    /// Drop from the longest queue; if all queues hold one packet, from the one whose turn it is.
    #[cold]
    fn drop_from_longest(&mut self, drops: &mut Drops) {
        let longest = self.turns.iter().max_by_key(|&&queue| {
            let FlowQueue {
                packets, changed, ..
            } = &self.queues[queue as usize];
            (packets.len(), if packets.len() > 1 { *changed } else { 0 })
        });
        let Some(mut queue) = longest.map(|&queue| queue as usize) else {
            return;
        };
        if self.queues[queue].packets.len() == 1 {
            queue = self.turns[0] as usize;
        }
        drops.extend(self.take(queue, self.headdrop));
        self.release_if_empty(queue);
    }

    fn release_if_empty(&mut self, queue: usize) {
        if self.queues[queue].packets.is_empty() {
            self.table[self.queues[queue].bucket as usize] = NONE;
            self.free.push(queue as u32);
            if self.turns.front() == Some(&(queue as u32)) {
                self.turns.pop_front();
            } else {
                self.turns.retain(|&other| other as usize != queue);
            }
        }
    }

    /// The hash changes if it is time, and all packets are hashed anew, so that no flow is reordered.
    #[inline]
    fn perturb(&mut self, now: Time, drops: &mut Drops) {
        while self.hashing.next <= now {
            self.hashing.next += self.hashing.period;
            self.hashing.hash = FlowHash::draw(&mut self.hashing.random);
            self.rehash(drops);
        }
    }

    #[cold]
    fn rehash(&mut self, drops: &mut Drops) {
        let mut packets = Vec::with_capacity(self.backlog.packets as usize);
        for queue in 0..self.queues.len() {
            while let Some(packet) = self.take(queue, true) {
                packets.push(packet);
            }
        }
        self.table.fill(NONE);
        self.free.extend(self.turns.drain(..));
        for packet in packets {
            match self.queue_of(packet.flow) {
                Some(queue) if self.queues[queue].packets.len() < self.depth_packets => {
                    self.put(queue, packet);
                }
                _ => drops.push(packet),
            }
        }
    }
}

#[cfg(test)]
mod tests;
