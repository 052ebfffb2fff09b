//! `fq_pie`: a queue for each flow, each under PIE, in fair turns; a flow that has just begun goes first.
//!
//! Behaviour and parameters as `tc-fq_pie(8)` in Linux 6.1. The turns are those of RFC 8290, in `fq.rs`; the
//! control law is that of RFC 8033, in `pie/control.rs`, with a state for each queue. A packet that finds
//! the limit of all queues reached is dropped, whatever its flow.
//!
//! Deviations: those of `pie`. There is no `memory_limit`: Linux 6.1 counts what exceeds it and drops
//! nothing. Flows are identified by their number instead of addresses and ports.

use ackclock_core::Time;
use rand_pcg::Pcg64Mcg;
use serde::Deserialize;
use serde_json::Value;

use crate::packet::Packet;
use crate::queue::fq::FlowQueues;
use crate::queue::periodic::Updates;
use crate::queue::pie::control::{Control, Settings};
use crate::queue::{require, Backlog, Discipline, Drops, Queue, QueueContext};

#[cfg(test)]
mod tests;

/// Parameters, as in the algorithm's specification.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    /// Packets that fit, in all queues together.
    limit_packets: u32,
    /// Queues.
    flows: u32,
    /// Bytes of a turn.
    quantum_bytes: u32,
    /// True if packets of ECN-capable flows are marked instead of dropped.
    ecn: bool,
    /// The largest drop probability at which packets are marked, in percent.
    ecn_prob: f64,
    #[serde(flatten)]
    settings: Settings,
}

impl Parameters {
    fn check(&self) -> Result<(), serde_json::Error> {
        let is_percentage = (0.0..=100.0).contains(&self.ecn_prob);
        require(self.limit_packets > 0, "limit_packets must be at least 1")?;
        require(is_percentage, "ecn_prob must be from 0 to 100")?;
        self.settings.check()
    }
}

/// Queues, each under PIE.
#[derive(Debug)]
struct FqPie {
    parameters: Parameters,
    queues: FlowQueues,
    /// Control law of each queue.
    controls: Vec<Control>,
    /// Queues whose control law an update can change.
    stirred: Vec<usize>,
    /// True for those queues.
    is_stirred: Vec<bool>,
    updates: Updates,
    random: Pcg64Mcg,
}

/// Make the discipline; an error if parameters differ from the specification or are out of range.
pub fn make(parameters: &Value, context: &QueueContext) -> Result<Queue, serde_json::Error> {
    let parameters = Parameters::deserialize(parameters)?;
    parameters.check()?;
    Ok(Queue::other(FqPie::new(parameters, context)?))
}

impl FqPie {
    fn new(parameters: Parameters, context: &QueueContext) -> Result<FqPie, serde_json::Error> {
        let queues = FlowQueues::new(parameters.flows, parameters.quantum_bytes, context)?;
        let flows = parameters.flows as usize;
        Ok(FqPie {
            controls: vec![Control::new(parameters.settings); flows],
            stirred: Vec::new(),
            is_stirred: vec![false; flows],
            updates: parameters.settings.updates(),
            random: context.random(),
            parameters,
            queues,
        })
    }

    /// Apply the updates up to `now`; they change nothing while all queues are at rest.
    fn catch_up(&mut self, now: Time) {
        let FqPie {
            queues,
            controls,
            stirred,
            is_stirred,
            ..
        } = self;
        self.updates.catch_up(now, |_| {
            stirred.retain(|&queue| {
                let backlog = queues.bytes(queue);
                is_stirred[queue] = controls[queue].update(backlog) || backlog > 0;
                is_stirred[queue]
            });
            !stirred.is_empty()
        });
    }

    fn stir(&mut self, queue: usize) {
        if !self.is_stirred[queue] {
            self.is_stirred[queue] = true;
            self.stirred.push(queue);
        }
    }

    fn may_mark(&self, queue: usize) -> bool {
        let percent = 100.0 * self.controls[queue].probability();
        self.parameters.ecn && percent <= self.parameters.ecn_prob
    }
}

impl Discipline for FqPie {
    fn enqueue(&mut self, mut packet: Packet, now: Time, drops: &mut Drops) {
        self.catch_up(now);
        let queue = self.queues.queue_of(&packet);
        let is_full = self.queues.backlog().packets >= self.parameters.limit_packets;
        let backlog = self.queues.bytes(queue);
        self.stir(queue);
        let control = &mut self.controls[queue];
        if !is_full && !control.hits(&packet, backlog, &mut self.random) {
            self.queues.push(queue, packet);
            return;
        }
        control.on_hit();
        if !is_full && self.may_mark(queue) && drops.mark(&mut packet) {
            self.queues.push(queue, packet);
        } else {
            drops.push(packet);
        }
    }

    fn dequeue(&mut self, now: Time, _drops: &mut Drops) -> Option<Packet> {
        self.catch_up(now);
        while let Some(queue) = self.queues.turn() {
            if let Some(packet) = self.queues.pop(queue) {
                self.queues.charge(queue, packet.wire_bytes);
                let backlog = self.queues.bytes(queue);
                self.stir(queue);
                self.controls[queue].on_departure(&packet, now, backlog);
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
