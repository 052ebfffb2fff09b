//! Connections of the programs, each with a flow of the simulation, and their counts.

use std::collections::BTreeMap;

use ackclock_core::Time;
use ackclock_sim::external::FlowEnd;

use crate::ip::Key;

/// Counts of one direction.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Packets that entered.
    pub sent_packets: u64,
    /// Their payload.
    pub sent_bytes: u64,
    /// Packets that left.
    pub delivered_packets: u64,
    /// Their payload.
    pub delivered_bytes: u64,
    /// Sum of their times in the network, ps.
    pub delay_ps: u128,
}

impl Counts {
    /// Mean time in the network, in seconds; `None` before the first packet has left.
    pub fn delay_mean_s(&self) -> Option<f64> {
        let mean = self
            .delay_ps
            .checked_div(u128::from(self.delivered_packets))?;
        Some(Time::from_picoseconds(mean as u64).seconds())
    }
}

/// A connection: how the first packet named it, and its two directions.
#[derive(Clone, Copy, Debug)]
pub struct Connection {
    /// Its ends, the peer's first.
    pub key: Key,
    /// The flow of the simulation.
    pub flow: u32,
    /// Time of its first packet.
    pub start: Time,
    /// From the sender's end to the receiver's, then the other way.
    pub directions: [Counts; 2],
}

/// Index of the direction of packets that enter at an end.
pub fn direction(entered: FlowEnd) -> usize {
    match entered {
        FlowEnd::Sender => 0,
        FlowEnd::Receiver => 1,
    }
}

/// All connections.
pub struct Connections {
    flows: std::ops::Range<u32>,
    numbers: BTreeMap<Key, u32>,
    /// The connections, in the order of their first packets.
    pub all: Vec<Connection>,
}

impl Connections {
    /// No connections yet; `flows` are the flows of the simulation that they may have. When there are more, they share.
    pub fn new(flows: std::ops::Range<u32>) -> Connections {
        Connections {
            flows,
            numbers: BTreeMap::new(),
            all: Vec::new(),
        }
    }

    /// The number of the connection of a packet that enters at an end at `now`.
    pub fn number(&mut self, key: Key, end: FlowEnd, now: Time) -> u32 {
        let key = match end {
            FlowEnd::Sender => key,
            FlowEnd::Receiver => key.reversed(),
        };
        let next = self.all.len() as u32;
        let number = *self.numbers.entry(key).or_insert(next);
        if number == next {
            self.all.push(Connection {
                key,
                flow: self.flows.start + number % self.flows.len() as u32,
                start: now,
                directions: [Counts::default(); 2],
            });
        }
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{IpAddr, Ipv4Addr};

    fn key(port: u16) -> Key {
        let address = |last| IpAddr::V4(Ipv4Addr::new(10, 0, 0, last));
        Key {
            protocol: 6,
            source: (address(1), 80),
            destination: (address(2), port),
        }
    }

    #[test]
    fn both_directions_are_one_connection() {
        let mut connections = Connections::new(3..5);
        let there = connections.number(key(1).reversed(), FlowEnd::Receiver, Time::ZERO);
        let back = connections.number(key(1), FlowEnd::Sender, Time::ZERO);
        assert_eq!((there, back), (0, 0));
        assert_eq!(connections.all[0].key, key(1));
    }

    #[test]
    fn flows_are_shared_when_they_run_out() {
        let mut connections = Connections::new(3..5);
        for port in 0..3 {
            connections.number(key(port), FlowEnd::Sender, Time::ZERO);
        }
        let flows: Vec<u32> = connections.all.iter().map(|one| one.flow).collect();
        assert_eq!(flows, [3, 4, 3]);
    }
}
