//! Connections of the programs, each with a flow of the simulation, and their counts.

use std::collections::BTreeMap;
use std::ops::Range;

use ackclock_core::Time;
use ackclock_sim::external::FlowEnd;

use crate::ip::{Header, Key, FIN, RST};

/// A way between two devices, by their numbers, and the flows of the simulation that connections on it may have. When
/// there are more connections, they share.
#[derive(Clone, Debug)]
pub struct Route {
    /// Devices of the flows' senders' and receivers' end.
    pub ends: [usize; 2],
    /// The flows.
    pub flows: Range<u32>,
}

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
    /// True if a FIN has entered.
    pub is_closed: bool,
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
    /// Its addresses and ports, those of the sender's end first.
    pub key: Key,
    /// Devices of the sender's and of the receiver's end.
    pub ends: [usize; 2],
    /// The flow of the simulation.
    pub flow: u32,
    /// Time of its first packet.
    pub start: Time,
    /// Time of its last packet so far.
    pub last: Time,
    /// True if a reset has entered.
    pub is_reset: bool,
    /// From the sender's end to the receiver's, then the other way.
    pub directions: [Counts; 2],
}

impl Connection {
    /// Count a packet that enters at an end.
    pub fn count_entered(&mut self, header: &Header, end: FlowEnd, now: Time) {
        let counts = &mut self.directions[direction(end)];
        counts.sent_packets += 1;
        counts.sent_bytes += u64::from(header.payload_bytes);
        counts.is_closed |= header.tcp_flags & FIN != 0;
        self.is_reset |= header.tcp_flags & RST != 0;
        self.last = now;
    }

    /// Count a packet that has entered at an end and left, after a time in the network.
    pub fn count_delivered(
        &mut self,
        payload_bytes: u32,
        entered: FlowEnd,
        crossed: Time,
        now: Time,
    ) {
        let counts = &mut self.directions[direction(entered)];
        counts.delivered_packets += 1;
        counts.delivered_bytes += u64::from(payload_bytes);
        counts.delay_ps += u128::from(crossed.picoseconds());
        self.last = now;
    }

    /// True if both sides of a TCP connection have closed it, or one has reset it.
    pub fn is_closed(&self) -> bool {
        self.is_reset || self.directions.iter().all(|counts| counts.is_closed)
    }

    /// True if a TCP connection was reset before it carried anything.
    pub fn is_rejected(&self) -> bool {
        let is_empty = self.directions.iter().all(|counts| counts.sent_bytes == 0);
        self.is_reset && is_empty
    }
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
    routes: Vec<Route>,
    /// Connections on each route so far.
    counts: Vec<u32>,
    numbers: BTreeMap<(usize, Key), u32>,
    /// The connections, in the order of their first packets.
    pub all: Vec<Connection>,
}

impl Connections {
    /// No connections yet on some routes.
    pub fn new(routes: Vec<Route>) -> Connections {
        Connections {
            counts: vec![0; routes.len()],
            routes,
            numbers: BTreeMap::new(),
            all: Vec::new(),
        }
    }

    /// The route between two devices, and the end of its flows at the first of them; `None` if there is none.
    pub fn route(&self, from: usize, to: usize) -> Option<(usize, FlowEnd)> {
        let of = |ends| self.routes.iter().position(|route| route.ends == ends);
        of([from, to])
            .map(|route| (route, FlowEnd::Sender))
            .or_else(|| of([to, from]).map(|route| (route, FlowEnd::Receiver)))
    }

    /// The number of the connection of a packet that enters a route at an end at `now`.
    pub fn number(&mut self, (route, end): (usize, FlowEnd), key: Key, now: Time) -> u32 {
        let key = match end {
            FlowEnd::Sender => key,
            FlowEnd::Receiver => key.reversed(),
        };
        let next = self.all.len() as u32;
        let number = *self.numbers.entry((route, key)).or_insert(next);
        if number == next {
            let Route { ends, flows } = &self.routes[route];
            let flow = flows.start + self.counts[route] % flows.len() as u32;
            self.counts[route] += 1;
            self.all.push(Connection {
                key,
                ends: *ends,
                flow,
                start: now,
                last: now,
                is_reset: false,
                directions: [Counts::default(); 2],
            });
        }
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackclock_sim::packet::Ecn;
    use std::net::{IpAddr, Ipv4Addr};

    fn key(port: u16) -> Key {
        let address = |last| IpAddr::V4(Ipv4Addr::new(10, 0, 0, last));
        Key {
            protocol: 6,
            source: (address(1), 80),
            destination: (address(2), port),
        }
    }

    fn segment(tcp_flags: u8, payload_bytes: u32) -> Header {
        Header {
            key: key(1),
            payload_bytes,
            ecn: Ecn::NotEct,
            dscp: 0,
            tcp_flags,
        }
    }

    fn between(ends: [usize; 2], flows: Range<u32>) -> Route {
        Route { ends, flows }
    }

    #[test]
    fn both_directions_are_one_connection() {
        let mut connections = Connections::new(vec![between([0, 1], 3..5)]);
        let there = connections.number((0, FlowEnd::Receiver), key(1).reversed(), Time::ZERO);
        let back = connections.number((0, FlowEnd::Sender), key(1), Time::ZERO);
        assert_eq!((there, back), (0, 0));
        assert_eq!(connections.all[0].key, key(1));
    }

    #[test]
    fn flows_are_shared_when_they_run_out() {
        let mut connections = Connections::new(vec![between([0, 1], 3..5), between([0, 2], 5..6)]);
        for port in 0..3 {
            connections.number((0, FlowEnd::Sender), key(port), Time::ZERO);
        }
        connections.number((1, FlowEnd::Sender), key(9), Time::ZERO);
        let flows: Vec<u32> = connections.all.iter().map(|one| one.flow).collect();
        assert_eq!(flows, [3, 4, 3, 5]);
    }

    #[test]
    fn a_route_joins_two_devices_in_either_order() {
        let connections = Connections::new(vec![between([0, 1], 0..1), between([0, 2], 1..2)]);
        assert_eq!(connections.route(0, 2), Some((1, FlowEnd::Sender)));
        assert_eq!(connections.route(2, 0), Some((1, FlowEnd::Receiver)));
        assert_eq!(connections.route(1, 2), None);
    }

    #[test]
    fn a_connection_ends_when_both_sides_have_closed_it_or_one_resets_it() {
        let mut connections = Connections::new(vec![between([0, 1], 0..1)]);
        connections.number((0, FlowEnd::Sender), key(1), Time::ZERO);
        let mut one = connections.all[0];
        let mut refused = one;
        one.count_entered(&segment(FIN, 5), FlowEnd::Sender, Time::from_seconds(1.0));
        assert!(!one.is_closed());
        one.count_entered(&segment(FIN, 0), FlowEnd::Receiver, Time::from_seconds(2.0));
        assert!(one.is_closed() && !one.is_rejected());
        assert_eq!(one.last, Time::from_seconds(2.0));
        refused.count_entered(&segment(2, 0), FlowEnd::Receiver, Time::ZERO);
        assert!(!refused.is_closed());
        refused.count_entered(&segment(RST, 0), FlowEnd::Sender, Time::ZERO);
        assert!(refused.is_closed() && refused.is_rejected());
    }
}
