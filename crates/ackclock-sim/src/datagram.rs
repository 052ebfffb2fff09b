//! UDP: a source of datagrams and what receives them.
//!
//! UDP retransmits nothing and has no window. A source that adapts its rate to the delay (`adaptive`) has each of its
//! datagrams answered.

use ackclock_core::Time;
use ackclock_plan::DatagramPlan;
use ackclock_traffic::Departures;

use crate::packet::{Flags, Kind, Packet, NO_PACKET};
use crate::receiver::Reply;

/// Bytes that an echo carries besides its headers.
const ECHO_BYTES: u32 = 1;

/// Source of datagrams.
#[derive(Debug)]
pub struct Source {
    flow: u32,
    wire_bytes: u32,
    departures: Departures,
    /// Bytes of them, headers included.
    pub sent_bytes: u64,
    /// Echoes that have arrived.
    pub received_packets: u64,
}

impl Source {
    /// The source of flow number `flow`, which starts at `now`; `number` is the source's among those of the plan
    /// and separates its random numbers from theirs.
    pub fn new(flow: u32, plan: &DatagramPlan, now: Time, seed: u64, number: u64) -> Source {
        Source {
            flow,
            wire_bytes: plan.payload_bytes + plan.header_bytes,
            departures: Departures::new(&plan.source, now, plan.stop, seed, number),
            sent_bytes: 0,
            received_packets: 0,
        }
    }

    /// Time of the next datagram; [`Time::NEVER`] if there is none.
    pub fn wake(&self) -> Time {
        self.departures.next()
    }

    /// The datagram that is due at `now`.
    pub fn send(&mut self, now: Time) -> Packet {
        let sequence = self.sent_packets();
        self.sent_bytes += u64::from(self.wire_bytes);
        self.departures.sent(now);
        Packet {
            sequence,
            timestamp: now,
            enqueued: now,
            flow: self.flow,
            wire_bytes: self.wire_bytes,
            kind: Kind::Datagram,
            ..NO_PACKET
        }
    }

    /// An echo has arrived.
    pub fn on_echo(&mut self, packet: &Packet, now: Time) {
        self.received_packets += 1;
        self.departures.on_rtt(now.since(packet.timestamp), now);
    }

    /// The last round-trip time, where it is measured.
    pub fn rtt(&self) -> Option<Time> {
        self.departures.rtt()
    }

    /// Datagrams sent.
    pub fn sent_packets(&self) -> u64 {
        self.departures.count()
    }
}

/// Receiver of datagrams.
#[derive(Clone, Copy, Debug)]
pub struct Sink {
    payload_bytes: u32,
    /// Bytes of an echo; none where there are no echoes.
    echo_bytes: Option<u32>,
    /// Datagrams that have arrived.
    pub received_packets: u64,
    /// Echoes sent.
    pub sent_packets: u64,
    /// Sum of the delays from the source, ps.
    delays: u128,
}

impl Sink {
    /// A receiver for the datagrams of a plan.
    pub fn new(plan: &DatagramPlan) -> Sink {
        let echoes = plan.source.has_responses();
        Sink {
            payload_bytes: plan.payload_bytes,
            echo_bytes: echoes.then_some(plan.header_bytes + ECHO_BYTES),
            received_packets: 0,
            sent_packets: 0,
            delays: 0,
        }
    }

    /// A datagram has arrived; returns its echo.
    pub fn on_packet(&mut self, packet: &Packet, now: Time) -> Option<Reply> {
        self.received_packets += 1;
        self.delays += u128::from(now.since(packet.timestamp).picoseconds());
        let wire_bytes = self.echo_bytes?;
        self.sent_packets += 1;
        Some(Reply {
            kind: Kind::Echo,
            ack: packet.sequence,
            window: 0,
            echo: packet.timestamp,
            wire_bytes,
            blocks: None,
            flags: Flags::NONE,
        })
    }

    /// Payload of them.
    pub fn delivered_bytes(&self) -> u64 {
        self.received_packets * u64::from(self.payload_bytes)
    }

    /// Mean time from the source to here; none before the first datagram.
    pub fn delay_mean(&self) -> Option<Time> {
        let mean = self.delays.checked_div(u128::from(self.received_packets))?;
        Some(Time::from_picoseconds(mean as u64))
    }
}

#[cfg(test)]
mod tests;
