//! `bfifo`: first in, first out, with a limit in bytes.
//!
//! Behaviour: `tc-bfifo(8)`. A packet with which the backlog would exceed the limit is dropped (tail
//! drop), so a small packet may still enter where a large one does not.
//!
//! Deviations: none. Bytes are wire bytes, as `tc` counts them when the link's frame overhead is that
//! of the device. The packet in transmission is not in the queue and does not count.

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
    /// Wire bytes that fit.
    limit_bytes: u64,
}

/// A tail-drop queue that counts bytes.
#[derive(Debug)]
struct Bfifo {
    limit_bytes: u64,
    /// Most packets queued since the peak was last taken.
    peak_packets: u32,
    packets: Fifo,
}

/// Make the discipline; an error for parameters other than `limit_bytes`, or a limit below 1.
pub fn make(parameters: &Value, _context: &QueueContext) -> Result<Queue, serde_json::Error> {
    let Parameters { limit_bytes } = Parameters::deserialize(parameters)?;
    require(limit_bytes > 0, "limit_bytes must be at least 1")?;
    Ok(Queue::other(Bfifo {
        limit_bytes,
        peak_packets: 0,
        packets: Fifo::default(),
    }))
}

impl Discipline for Bfifo {
    fn enqueue(&mut self, packet: Packet, _now: Time, drops: &mut Drops) {
        if self.packets.bytes() + u64::from(packet.wire_bytes) <= self.limit_bytes {
            self.packets.push(packet);
            self.peak_packets = self.peak_packets.max(self.packets.backlog().packets);
        } else {
            drops.push(packet);
        }
    }

    fn dequeue(&mut self, _now: Time, _drops: &mut Drops) -> Option<Packet> {
        self.packets.pop()
    }

    fn backlog(&self) -> Backlog {
        self.packets.backlog()
    }

    fn take_peak(&mut self) -> u32 {
        std::mem::replace(&mut self.peak_packets, self.packets.backlog().packets)
    }

    fn is_fifo(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::testing::{packet, CONTEXT};
    use proptest::prelude::*;
    use serde_json::json;
    use std::collections::VecDeque;

    fn bfifo(limit_bytes: u64) -> Queue {
        make(&json!({ "limit_bytes": limit_bytes }), &CONTEXT).expect("valid parameters")
    }

    #[test]
    fn a_packet_that_would_exceed_the_limit_is_dropped_and_a_smaller_one_fits() {
        let mut queue = bfifo(3094);
        let mut drops = Drops::default();
        for (sequence, wire_bytes) in [(0, 1514), (1, 1514), (2, 1514), (3, 66), (4, 66)] {
            queue.enqueue(packet(sequence, wire_bytes), Time::ZERO, &mut drops);
        }
        let dropped: Vec<u64> = drops.drain().map(|packet| packet.sequence).collect();
        assert_eq!(dropped, [2, 4]);
        assert_eq!(
            queue.backlog(),
            Backlog {
                packets: 3,
                bytes: 3094
            }
        );
    }

    #[test]
    fn wrong_parameters_are_rejected() {
        for parameters in [
            json!({ "limit_bytes": 0 }),
            json!({ "limit_bytes": -1 }),
            json!({ "limit_packets": 5 }),
            json!({ "limit_bytes": 3000, "limit_packets": 5 }),
            json!({}),
        ] {
            assert!(make(&parameters, &CONTEXT).is_err(), "{parameters}");
        }
    }

    proptest! {
        /// Whatever arrives and leaves: order is kept, the limit holds, no packet is lost unseen, and
        /// the backlog is what the queue holds.
        #[test]
        fn order_limit_and_conservation(
            limit_bytes in 1_u64..20_000,
            steps in proptest::collection::vec((40_u32..1600, any::<bool>()), 0..200),
        ) {
            let mut queue = bfifo(limit_bytes);
            let mut drops = Drops::default();
            let mut expected = VecDeque::new();
            for (sequence, (wire_bytes, leaves)) in steps.into_iter().enumerate() {
                queue.enqueue(packet(sequence as u64, wire_bytes), Time::ZERO, &mut drops);
                if drops.drain().next().is_none() {
                    expected.push_back((sequence as u64, wire_bytes));
                }
                if leaves {
                    let left = queue.dequeue(Time::ZERO, &mut drops);
                    let left = left.map(|packet| (packet.sequence, packet.wire_bytes));
                    prop_assert_eq!(left, expected.pop_front());
                }
                let held: u64 = expected.iter().map(|(_, bytes)| u64::from(*bytes)).sum();
                prop_assert_eq!(queue.backlog().bytes, held);
                prop_assert_eq!(queue.backlog().packets as usize, expected.len());
                prop_assert!(held <= limit_bytes);
            }
        }
    }
}
