//! `$name`: a FIFO that marks packets from a threshold on.
//!
//! RFC 8257, section 3.1: a packet that finds at least `threshold` packets queued is marked, if its flow is capable of
//! ECN; one that finds the limit reached is dropped. (The paper or RFC that yours is written from belongs here.)
//!
//! Deviations: none. The packet in transmission is not in the queue and does not count.

use ackclock_core::Time;
use serde::Deserialize;
use serde_json::Value;

use crate::packet::Packet;
use crate::queue::fifo::Fifo;
use crate::queue::{require, Backlog, Discipline, Drops, Queue, QueueContext};

/// Parameters, as in the algorithm's specification.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    /// Packets that fit.
    limit_packets: u32,
    /// Packets in the queue from which on arriving packets are marked.
    threshold_packets: u32,
}

/// A FIFO with a marking threshold.
#[derive(Debug)]
struct ThresholdFifo {
    parameters: Parameters,
    packets: Fifo,
}

/// Make the discipline.
///
/// # Errors
/// Parameters other than those of the spec, or a limit below 1.
pub fn make(parameters: &Value, _context: &QueueContext) -> Result<Queue, serde_json::Error> {
    let parameters = Parameters::deserialize(parameters)?;
    require(
        parameters.limit_packets > 0,
        "limit_packets must be at least 1",
    )?;
    Ok(Queue::other(ThresholdFifo {
        parameters,
        packets: Fifo::default(),
    }))
}

impl Discipline for ThresholdFifo {
    fn enqueue(&mut self, mut packet: Packet, _now: Time, drops: &mut Drops) {
        let queued = self.packets.len();
        if queued >= self.parameters.limit_packets as usize {
            drops.push(packet);
            return;
        }
        if queued >= self.parameters.threshold_packets as usize {
            drops.mark(&mut packet);
        }
        self.packets.push(packet);
    }

    fn dequeue(&mut self, _now: Time, _drops: &mut Drops) -> Option<Packet> {
        self.packets.pop()
    }

    fn backlog(&self) -> Backlog {
        self.packets.backlog()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::testing::{packet, CONTEXT};
    use serde_json::json;

    #[test]
    fn packets_above_the_limit_are_dropped() {
        let parameters = json!({ "limit_packets": 2, "threshold_packets": 1 });
        let mut queue = make(&parameters, &CONTEXT).expect("valid parameters");
        let mut drops = Drops::default();
        for sequence in 0..3 {
            queue.enqueue(packet(sequence, 1514), Time::ZERO, &mut drops);
        }
        let dropped: Vec<u64> = drops.drain().map(|packet| packet.sequence).collect();
        assert_eq!(dropped, [2]);
        assert_eq!(queue.backlog().packets, 2);
    }

    #[test]
    fn other_parameters_are_rejected() {
        assert!(make(&json!({}), &CONTEXT).is_err());
    }
}
