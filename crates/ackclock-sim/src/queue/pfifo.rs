//! `pfifo`: first in, first out, with a limit in packets.
//!
//! Behaviour: `tc-pfifo(8)`. A packet that finds the limit reached is dropped (tail drop).
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
}

/// A tail-drop queue that counts packets.
#[derive(Debug)]
pub struct Pfifo {
    limit_packets: u32,
    /// Most packets queued since the peak was last taken.
    peak_packets: u32,
    packets: Fifo,
}

/// Make the discipline; an error for parameters other than `limit_packets`, or a limit below 1.
pub fn make(parameters: &Value, _context: &QueueContext) -> Result<Queue, serde_json::Error> {
    let Parameters { limit_packets } = Parameters::deserialize(parameters)?;
    require(limit_packets > 0, "limit_packets must be at least 1")?;
    Ok(Queue::Pfifo(Pfifo {
        limit_packets,
        peak_packets: 0,
        packets: Fifo::default(),
    }))
}

impl Discipline for Pfifo {
    #[inline(always)]
    fn enqueue(&mut self, packet: Packet, _now: Time, drops: &mut Drops) {
        if self.packets.len() < self.limit_packets as usize {
            self.packets.push(packet);
            let packets = self.packets.len() as u32;
            if packets > self.peak_packets {
                self.peak_packets = packets;
            }
        } else {
            drops.push(packet);
        }
    }

    #[inline(always)]
    fn dequeue(&mut self, _now: Time, _drops: &mut Drops) -> Option<Packet> {
        self.packets.pop()
    }

    fn backlog(&self) -> Backlog {
        self.packets.backlog()
    }

    fn take_peak(&mut self) -> u32 {
        std::mem::replace(&mut self.peak_packets, self.packets.len() as u32)
    }

    fn is_fifo(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::testing::{packet, CONTEXT};
    use serde_json::json;

    fn pfifo(limit_packets: u32) -> Queue {
        make(&json!({ "limit_packets": limit_packets }), &CONTEXT).expect("valid parameters")
    }

    #[test]
    fn a_packet_above_the_limit_is_dropped() {
        let mut queue = pfifo(2);
        let mut drops = Drops::default();
        for sequence in 0..3 {
            queue.enqueue(packet(sequence, 1514), Time::ZERO, &mut drops);
        }
        let dropped: Vec<u64> = drops.drain().map(|packet| packet.sequence).collect();
        assert_eq!(dropped, [2]);
        assert_eq!(
            queue.backlog(),
            Backlog {
                packets: 2,
                bytes: 3028
            }
        );
    }

    #[test]
    fn packets_leave_in_the_order_of_arrival() {
        let mut queue = pfifo(10);
        let mut drops = Drops::default();
        for sequence in 0..5 {
            queue.enqueue(packet(sequence, 1514), Time::ZERO, &mut drops);
        }
        let left: Vec<u64> = std::iter::from_fn(|| queue.dequeue(Time::ZERO, &mut drops))
            .map(|packet| packet.sequence)
            .collect();
        assert_eq!(left, [0, 1, 2, 3, 4]);
        assert_eq!(queue.backlog(), Backlog::default());
        assert!(drops.is_empty());
    }

    #[test]
    fn the_peak_is_that_since_it_was_last_taken() {
        let mut queue = pfifo(5);
        let mut drops = Drops::default();
        for sequence in 0..3 {
            queue.enqueue(packet(sequence, 1514), Time::ZERO, &mut drops);
        }
        queue.dequeue(Time::ZERO, &mut drops);
        assert_eq!([queue.take_peak(), queue.take_peak()], [3, 2]);
        for sequence in 3..9 {
            queue.enqueue(packet(sequence, 1514), Time::ZERO, &mut drops);
        }
        assert_eq!(queue.take_peak(), 5);
        assert_eq!(drops.drain().count(), 3);
    }

    #[test]
    fn freed_space_is_reused() {
        let mut queue = pfifo(1);
        let mut drops = Drops::default();
        for sequence in 0..100 {
            queue.enqueue(packet(sequence, 1514), Time::ZERO, &mut drops);
            let left = queue
                .dequeue(Time::ZERO, &mut drops)
                .expect("one is queued");
            assert_eq!(left.sequence, sequence);
        }
        assert!(drops.is_empty());
    }

    #[test]
    fn wrong_parameters_are_rejected() {
        for parameters in [
            json!({ "limit_packets": 0 }),
            json!({ "limit_packets": -1 }),
            json!({ "limit_packets": 2.5 }),
            json!({ "limit_bytes": 1500 }),
            json!({ "limit_packets": 5, "target_s": 0.005 }),
            json!({}),
        ] {
            assert!(make(&parameters, &CONTEXT).is_err(), "{parameters}");
        }
    }
}
