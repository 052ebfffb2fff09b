//! UDP: a source of datagrams and what receives them.
//!
//! UDP retransmits nothing and has no window. A source that adapts its rate to the delay (`adaptive`) has each of its
//! datagrams answered.

use ackclock_core::Time;
use ackclock_plan::{DatagramPlan, DatagramSource};
use ackclock_traffic::Departures;

use crate::distinct::DistinctNumbers;
use crate::endpoint::{Endpoint, Outgoing, Payload};
use crate::packet::{Flags, Packet};

/// Bytes that an echo carries besides its headers.
const ECHO_BYTES: u32 = 1;

/// Source of datagrams.
#[derive(Debug)]
pub struct Source {
    wire_bytes: u32,
    departures: Departures,
}

impl Source {
    /// The source that starts at `now`; `number` is the source's among those of the plan and separates its random
    /// numbers from theirs.
    pub fn new(
        plan: &DatagramPlan,
        source: &DatagramSource,
        now: Time,
        seed: u64,
        number: u64,
    ) -> Source {
        Source {
            wire_bytes: plan.payload_bytes + plan.header_bytes,
            departures: Departures::new(source, now, plan.stop, seed, number),
        }
    }
}

impl Endpoint for Source {
    fn wake(&self) -> Time {
        self.departures.next()
    }

    fn poll(&mut self, now: Time) -> Option<Outgoing> {
        if self.wake() > now {
            return None;
        }
        let sequence = self.departures.count();
        self.departures.sent(now);
        Some(Outgoing {
            sequence,
            timestamp: now,
            wire_bytes: self.wire_bytes,
            flags: Flags::NONE,
            payload: None,
        })
    }

    /// An echo has arrived.
    fn on_packet(&mut self, packet: &Packet, _payload: Option<Payload>, now: Time) {
        self.departures.on_rtt(now.since(packet.timestamp), now);
    }

    fn rtt(&self) -> Option<Time> {
        self.departures.rtt()
    }
}

/// Receiver of datagrams.
#[derive(Debug)]
pub struct Sink {
    payload_bytes: u32,
    /// Bytes of an echo; none where there are no echoes.
    echo_bytes: Option<u32>,
    /// The echo to send.
    echo: Option<Outgoing>,
    received: DistinctNumbers,
    delivered_bytes: u64,
}

impl Sink {
    /// A receiver for the datagrams of a plan.
    pub fn new(plan: &DatagramPlan, source: &DatagramSource) -> Sink {
        let echoes = source.has_responses();
        Sink {
            payload_bytes: plan.payload_bytes,
            echo_bytes: echoes.then_some(plan.header_bytes + ECHO_BYTES),
            echo: None,
            received: DistinctNumbers::default(),
            delivered_bytes: 0,
        }
    }
}

impl Endpoint for Sink {
    fn wake(&self) -> Time {
        Time::NEVER
    }

    fn poll(&mut self, _now: Time) -> Option<Outgoing> {
        self.echo.take()
    }

    fn on_packet(&mut self, packet: &Packet, _payload: Option<Payload>, _now: Time) {
        if self.received.insert(packet.number()) {
            self.delivered_bytes += u64::from(self.payload_bytes);
        }
        self.echo = self.echo_bytes.map(|wire_bytes| Outgoing {
            sequence: packet.sequence,
            timestamp: packet.timestamp,
            wire_bytes,
            flags: Flags::NONE,
            payload: None,
        });
    }

    fn delivered_bytes(&self) -> u64 {
        self.delivered_bytes
    }
}

#[cfg(test)]
mod tests;
