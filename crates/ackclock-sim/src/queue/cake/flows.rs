//! The queues of a tin: which one a packet enters, and whose turn it is.
//!
//! A set-associative hash finds the queue (Høiland-Jørgensen, Täht, Morton 2018 section III): the hash selects a set of
//! eight, in which the flow has the queue with its tag, else takes one that is idle. Only when all eight are in use two
//! flows share one.
//!
//! Turns are DRR++ (RFC 8290 section 4) with a quantum that is divided by the number of bulk flows of the flow's host, so
//! each host gets the same, and each flow of a host. Of two hosts, the source and the destination, the one with more
//! bulk flows counts (triple-isolate). A flow is bulk if it still has packets once its quantum is used up:
//!
//! ```text
//!   idle ─ packet ─▶ sparse ─ deficit ≤ 0, packets left ─▶ bulk ─┐ deficit ≤ 0:
//!    ▲ ▲               │ deficit ≤ 0, empty                ▲  ▲   │ += quantum,
//!    │ └─ its turn,    ▼                                   │  └───┘ to the end
//!    │    empty ── sparse, waits ───────── packet ─────────┘
//!    └──────────────────────────────────── its turn, empty ── sparse, bulk
//! ```

use std::cmp::Reverse;
use std::collections::VecDeque;

use serde::Deserialize;

use super::cobalt::Control;
use crate::packet::{Kind, Packet};
use crate::queue::fifo::Fifo;
use crate::queue::hash::FlowHash;

/// Queues of a tin, as in Linux.
const QUEUES: usize = 1024;
/// Queues of a set.
const WAYS: usize = 8;
/// Deficits count 2⁻¹⁶ bytes, so that a quantum can be divided.
const FRACTION: i64 = 1 << 16;

/// Definition of a flow, and the hosts between which turns are fair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Isolation {
    /// All packets are of one flow.
    Flowblind,
    /// A flow is a source.
    Srchost,
    /// A flow is a destination.
    Dsthost,
    /// A flow is a source and a destination.
    Hosts,
    /// Connections.
    Flows,
    /// Connections, in fair shares of their sources.
    DualSrchost,
    /// Connections, in fair shares of their destinations.
    DualDsthost,
    /// Connections, in fair shares of both.
    TripleIsolate,
}

impl Isolation {
    /// Key of a packet's flow; `hosts` are the packet's source and destination.
    pub fn key(self, flow: u32, [source, destination]: [u32; 2]) -> u64 {
        match self {
            Isolation::Flowblind => 0,
            Isolation::Srchost => u64::from(source),
            Isolation::Dsthost => u64::from(destination),
            Isolation::Hosts => u64::from(source) << 32 | u64::from(destination),
            _ => u64::from(flow),
        }
    }

    /// The hosts among whose flows a quantum is divided.
    pub fn fair_hosts(self, [source, destination]: [u32; 2]) -> [Option<u32>; 2] {
        match self {
            Isolation::DualSrchost => [Some(source), None],
            Isolation::DualDsthost => [None, Some(destination)],
            Isolation::TripleIsolate => [Some(source), Some(destination)],
            _ => [None, None],
        }
    }
}

/// State of a queue in the turns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Idle,
    Sparse,
    /// Sparse, without packets, in debt.
    Waiting,
    Bulk,
}

/// One queue.
#[derive(Debug, Default)]
struct FlowQueue {
    /// Key of its flow.
    key: Option<u64>,
    packets: Fifo,
    control: Control,
    stage: Stage,
    /// Rest of its turn, in 1/[`FRACTION`] bytes.
    deficit: i64,
    hosts: [Option<u32>; 2],
    /// Flow and number of the last ACK that left it.
    departed_ack: Option<(u32, u64)>,
}

/// The queues of a tin.
#[derive(Debug)]
pub struct FlowTable {
    /// Made when the first packet comes.
    queues: Vec<FlowQueue>,
    /// Sparse flows, which are served first.
    new: VecDeque<u32>,
    /// Flows that have used a quantum up.
    old: VecDeque<u32>,
    /// Bulk flows by host: as sources, and as destinations.
    bulk_flows: [Vec<u32>; 2],
    quantum_bytes: u32,
    packets: u32,
}

impl FlowTable {
    /// Empty queues.
    pub fn new(quantum_bytes: u32) -> FlowTable {
        FlowTable {
            queues: Vec::new(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            bulk_flows: [Vec::new(), Vec::new()],
            quantum_bytes,
            packets: 0,
        }
    }

    /// The queue of a flow.
    pub fn queue_of(&mut self, key: u64, hash: FlowHash) -> usize {
        if self.queues.is_empty() {
            self.queues.resize_with(QUEUES, FlowQueue::default);
        }
        let hashed = hash.queue(key as u32 ^ ((key >> 32) as u32).rotate_left(16), QUEUES);
        let set = hashed / WAYS * WAYS;
        let ways = &self.queues[set..set + WAYS];
        let own = ways.iter().position(|queue| queue.key == Some(key));
        let idle = || ways.iter().position(|queue| queue.stage == Stage::Idle);
        let Some(way) = own.or_else(idle) else {
            return hashed;
        };
        let queue = &mut self.queues[set + way];
        if queue.key != Some(key) {
            *queue = FlowQueue {
                key: Some(key),
                packets: std::mem::take(&mut queue.packets),
                ..FlowQueue::default()
            };
        }
        set + way
    }

    /// True if a queue is empty and not in the turns.
    pub fn is_idle(&self, queue: usize) -> bool {
        self.queues[queue].stage == Stage::Idle
    }

    /// True if a queue is in the turns.
    pub fn is_active(&self) -> bool {
        !(self.new.is_empty() && self.old.is_empty())
    }

    /// True if packets wait.
    pub fn has_packets(&self) -> bool {
        self.packets > 0
    }

    /// Append a packet of a flow between these hosts to its queue.
    pub fn push(&mut self, queue: usize, packet: Packet, hosts: [Option<u32>; 2]) {
        self.packets += 1;
        let flow = &mut self.queues[queue];
        flow.packets.push(packet);
        match flow.stage {
            Stage::Idle => {
                flow.stage = Stage::Sparse;
                flow.hosts = hosts;
                self.queues[queue].deficit = self.quantum(queue);
                self.new.push_back(queue as u32);
            }
            Stage::Waiting => self.become_bulk(queue),
            Stage::Sparse | Stage::Bulk => {}
        }
    }

    /// Take the first packet of a queue, regardless of turns.
    pub fn pop(&mut self, queue: usize) -> Option<Packet> {
        let flow = &mut self.queues[queue];
        let packet = flow.packets.pop()?;
        if packet.kind == Kind::Ack {
            flow.departed_ack = Some((packet.flow, packet.number()));
        }
        self.packets -= 1;
        Some(packet)
    }

    /// Take the packet at a position of a queue, regardless of turns.
    pub fn remove(&mut self, queue: usize, index: usize) -> Option<Packet> {
        let packet = self.queues[queue].packets.remove(index)?;
        self.packets -= 1;
        Some(packet)
    }

    /// The queue whose turn it is, which may be empty (then call [`FlowTable::leave`]); `None` if none is active.
    pub fn turn(&mut self) -> Option<usize> {
        loop {
            let first = self.new.front().or_else(|| self.old.front())?;
            let queue = *first as usize;
            if self.queues[queue].deficit > 0 {
                return Some(queue);
            }
            if self.queues[queue].stage == Stage::Sparse {
                if self.queues[queue].packets.is_empty() {
                    self.queues[queue].stage = Stage::Waiting;
                } else {
                    self.become_bulk(queue);
                }
            }
            self.queues[queue].deficit += self.quantum(queue);
            self.take_first();
            self.old.push_back(queue as u32);
        }
    }

    /// End the turns of the queue whose turn it is and which is empty.
    pub fn leave(&mut self, queue: usize) {
        self.take_first();
        let flow = &mut self.queues[queue];
        let was_bulk = flow.stage == Stage::Bulk;
        flow.stage = Stage::Idle;
        if was_bulk {
            self.count_bulk(queue, |count| *count -= 1);
        }
    }

    /// Charge the queue whose turn it is for a packet sent.
    pub fn charge(&mut self, queue: usize, bytes: u64) {
        self.queues[queue].deficit -= bytes as i64 * FRACTION;
    }

    fn take_first(&mut self) -> Option<u32> {
        self.new.pop_front().or_else(|| self.old.pop_front())
    }

    fn become_bulk(&mut self, queue: usize) {
        self.queues[queue].stage = Stage::Bulk;
        self.count_bulk(queue, |count| *count += 1);
    }

    fn count_bulk(&mut self, queue: usize, change: impl Fn(&mut u32)) {
        for (hosts, host) in self.bulk_flows.iter_mut().zip(self.queues[queue].hosts) {
            if let Some(host) = host.map(|host| host as usize) {
                if hosts.len() <= host {
                    hosts.resize(host + 1, 0);
                }
                change(&mut hosts[host]);
            }
        }
    }

    /// A queue's quantum, in 1/[`FRACTION`] bytes: divided by the bulk flows of its host, or of the one that has more.
    fn quantum(&self, queue: usize) -> i64 {
        let hosts = self.bulk_flows.iter().zip(self.queues[queue].hosts);
        let flows = hosts.filter_map(|(hosts, host)| hosts.get(host? as usize));
        let load = flows.copied().max().unwrap_or(1).max(1);
        i64::from(self.quantum_bytes) * FRACTION / i64::from(load)
    }

    /// The queue with the most bytes, and these; the first of equal ones.
    pub fn fattest(&self) -> Option<(u64, usize)> {
        let active = self.new.iter().chain(&self.old);
        active
            .map(|&queue| (self.queues[queue as usize].packets.bytes(), queue as usize))
            .filter(|&(bytes, _)| bytes > 0)
            .max_by_key(|&(bytes, queue)| (bytes, Reverse(queue)))
    }

    /// The packets of a queue.
    pub fn packets(&self, queue: usize) -> &Fifo {
        &self.queues[queue].packets
    }

    /// The state of a queue's COBALT.
    pub fn control(&mut self, queue: usize) -> &mut Control {
        &mut self.queues[queue].control
    }

    /// Flow and number of the last ACK that left a queue.
    pub fn departed_ack(&self, queue: usize) -> Option<(u32, u64)> {
        self.queues[queue].departed_ack
    }

    /// Bytes of a quantum that is not divided.
    #[cfg(test)]
    pub fn quantum_bytes(&self) -> u32 {
        self.quantum_bytes
    }

    /// Queues in the turns.
    #[cfg(test)]
    pub fn listed(&self) -> usize {
        self.new.len() + self.old.len()
    }
}
