//! `fq_codel`: a queue for each flow, each under CoDel, in fair turns; a flow that has just begun goes first.
//!
//! T. Høiland-Jørgensen et al.: The Flow Queue CoDel Packet Scheduler and Active Queue Management Algorithm,
//! RFC 8290; behaviour and defaults as `tc-fq_codel(8)` in Linux 6.1. The turns are in `fq.rs`, the control
//! law is in `codel.rs`.
//!
//! Deviations: those of `codel`. Memory is counted in wire bytes; Linux counts its buffers, about 2.3 KB for
//! a packet of 1.5 KB. Flows are identified by their number instead of addresses and ports.

use ackclock_core::Time;
use serde::Deserialize;
use serde_json::Value;

use crate::packet::Packet;
use crate::queue::codel::{Control, Law};
use crate::queue::fq::FlowQueues;
use crate::queue::{require, Backlog, Discipline, Drops, Queue, QueueContext};

/// Parameters, as in the algorithm's specification.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    /// Packets that fit.
    limit_packets: u32,
    /// Wire bytes that fit.
    memory_limit_bytes: u64,
    /// Queues.
    flows: u32,
    /// Bytes of a turn.
    quantum_bytes: u32,
    /// Target delay.
    target_s: f64,
    /// Time for which the delay may exceed the target before the first drop.
    interval_s: f64,
    /// True if packets of ECN-capable transports are marked instead of dropped.
    ecn: bool,
    /// Delay above which every packet is marked.
    ce_threshold_s: Option<f64>,
    /// Largest number of packets dropped together when the limit is exceeded.
    drop_batch: u32,
    /// True if 1/√count is approximated by Newton steps.
    newton: bool,
}

/// Queues under CoDel.
#[derive(Debug)]
struct FqCodel {
    limit_packets: u32,
    memory_limit_bytes: u64,
    drop_batch: u32,
    law: Law,
    controls: Vec<Control>,
    queues: FlowQueues,
}

/// Make the discipline; an error if parameters differ from the specification or are out of range.
pub fn make(parameters: &Value, context: &QueueContext) -> Result<Queue, serde_json::Error> {
    let given = Parameters::deserialize(parameters)?;
    require(
        given.limit_packets > 0 && given.memory_limit_bytes > 0 && given.drop_batch > 0,
        "limit_packets, memory_limit_bytes and drop_batch must be at least 1",
    )?;
    let queues = FlowQueues::new(given.flows, given.quantum_bytes, context)?;
    Ok(Queue::other(FqCodel {
        limit_packets: given.limit_packets,
        memory_limit_bytes: given.memory_limit_bytes,
        drop_batch: given.drop_batch,
        law: Law::new(given.target_s, given.interval_s)?
            .marking(given.ecn, given.ce_threshold_s)?
            .with_newton(given.newton),
        controls: vec![Control::default(); given.flows as usize],
        queues,
    }))
}

impl Discipline for FqCodel {
    #[inline]
    fn enqueue(&mut self, packet: Packet, _now: Time, drops: &mut Drops) {
        self.queues.push(self.queues.queue_of(&packet), packet);
        let held = self.queues.backlog();
        if held.packets > self.limit_packets || held.bytes > self.memory_limit_bytes {
            self.drop_from_fattest(drops);
        }
    }

    #[inline]
    fn dequeue(&mut self, now: Time, drops: &mut Drops) -> Option<Packet> {
        while let Some(queue) = self.queues.turn() {
            let mut source = self.queues.source(queue);
            let packet = self.controls[queue].dequeue(&self.law, &mut source, now, drops);
            if let Some(packet) = packet {
                self.queues.charge(queue, packet.wire_bytes);
                return Some(packet);
            }
            self.queues.pass();
        }
        None
    }

    fn backlog(&self) -> Backlog {
        self.queues.backlog()
    }
}

impl FqCodel {
    /// Drop half of the fattest queue from its head, up to a batch, when the limit is exceeded. Its CoDel is notified
    /// (RFC 8290 section 4.1.3 and Linux).
    #[cold]
    fn drop_from_fattest(&mut self, drops: &mut Drops) {
        let Some(queue) = self.queues.fattest() else {
            return;
        };
        let goal = self.queues.bytes(queue) / 2;
        let (mut packets, mut bytes) = (0, 0);
        while let Some(packet) = self.queues.pop(queue) {
            packets += 1;
            bytes += u64::from(packet.wire_bytes);
            drops.push(packet);
            if packets >= self.drop_batch || bytes >= goal {
                break;
            }
        }
        self.controls[queue].strengthen(packets);
    }
}

#[cfg(test)]
mod tests;
