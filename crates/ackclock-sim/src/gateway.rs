//! The two ends of a flow of programs' packets, which come from outside.

use std::collections::VecDeque;

use ackclock_core::Time;

use crate::endpoint::{Endpoint, Outgoing, Payload};
use crate::external::{Delivered, ExternalPacket, FlowEnd};
use crate::packet::{Flags, Packet};

/// One end of a flow of programs' packets.
pub struct Gateway {
    end: FlowEnd,
    entering: VecDeque<(Time, ExternalPacket)>,
    entered: u64,
    delivered: Vec<Delivered>,
    delivered_bytes: u64,
}

impl Gateway {
    /// An end without packets.
    pub fn new(end: FlowEnd) -> Gateway {
        Gateway {
            end,
            entering: VecDeque::new(),
            entered: 0,
            delivered: Vec::new(),
            delivered_bytes: 0,
        }
    }
}

impl Endpoint for Gateway {
    fn wake(&self) -> Time {
        self.entering.front().map_or(Time::NEVER, |&(time, _)| time)
    }

    fn poll(&mut self, now: Time) -> Option<Outgoing> {
        if self.wake() > now {
            return None;
        }
        let (_, packet) = self.entering.pop_front()?;
        let sequence = self.entered;
        self.entered += 1;
        Some(Outgoing {
            sequence,
            timestamp: now,
            wire_bytes: packet.bytes.len() as u32,
            flags: Flags::of(packet.ecn).with_dscp(packet.dscp),
            payload: Some(Payload::External(Box::new(packet))),
        })
    }

    fn on_packet(&mut self, packet: &Packet, payload: Option<Payload>, now: Time) {
        if let Some(Payload::External(mut content)) = payload {
            self.delivered_bytes += u64::from(content.payload_bytes);
            content.ecn = packet.ecn();
            self.delivered.push(Delivered {
                sent: packet.timestamp,
                due: now,
                end: self.end,
                packet: *content,
            });
        }
    }

    /// Payload of all packets that have arrived: what programs retransmit counts again.
    fn delivered_bytes(&self) -> u64 {
        self.delivered_bytes
    }

    fn enter(&mut self, packet: ExternalPacket, now: Time) {
        self.entering.push_back((now, packet));
    }

    fn take_delivered(&mut self, all: &mut Vec<Delivered>) {
        all.append(&mut self.delivered);
    }
}
