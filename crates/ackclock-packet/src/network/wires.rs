//! Links with a flight behind them: those between nodes, and those with a propagation delay.
//!
//! All packets of a link share its flight. At the end of it a packet goes on: by its flow's path, to the link
//! that the routing names, or to the sender or receiver, whose clock is the simulation's.
//!
//! A packet is in the flight from the beginning of its transmission ([`crate::link::Launch`]), so most hops
//! cost one event.

use super::{first_due, Action, Calendar, Happening, Network, Next, Packet, Plan, Time, NONE};
use crate::link::Launch;
use crate::path::Flight;
use crate::plan::LinkPlan;

/// Wire bytes by which the calendar's horizon is reckoned.
const TYPICAL_BYTES: u64 = 1500;

/// What is behind a link's transmitter.
pub struct Wire {
    /// The packets in it, and the one in transmission.
    pub flight: Flight,
    /// The propagation delay; `None` if there is no flight: packets go on by their paths at once.
    pub delay: Option<Time>,
    /// The node at its end, [`NONE`] if it has none.
    end: u32,
    /// Whether the last packet's departure is still to be logged.
    departing: bool,
}

impl Wire {
    fn new(plan: &LinkPlan, may_have_delay: bool) -> Wire {
        Wire {
            flight: Flight::new(),
            delay: (plan.ends.is_some() || may_have_delay).then_some(plan.delay),
            end: plan.ends.map_or(NONE, |ends| ends.destination),
            departing: false,
        }
    }

    /// Whether packets go through a flight.
    #[inline(always)]
    pub fn exists(&self) -> bool {
        self.delay.is_some()
    }

    /// Packets in the flight and in transmission.
    pub fn holds(&self) -> usize {
        self.flight.len()
    }

    /// When a packet that leaves the transmitter arrives: it does not overtake those before it.
    #[inline(always)]
    pub fn due(&self, done: Time) -> Time {
        let due = done + self.delay.unwrap_or(Time::ZERO);
        self.flight.back().map_or(due, |&(last, _)| due.max(last))
    }
}

/// The wires of a plan's links.
pub fn all(plan: &Plan) -> Vec<Wire> {
    let mut delayed: Vec<bool> = plan
        .links
        .iter()
        .map(|link| link.delay > Time::ZERO)
        .collect();
    for change in &plan.changes {
        delayed[change.link as usize] |= change.delay.is_some();
    }
    plan.links
        .iter()
        .zip(delayed)
        .map(|(link, delayed)| Wire::new(link, delayed))
        .collect()
}

/// The calendar of a plan's wires: most events are no further ahead than a transmission and a delay.
pub fn calendar(plan: &Plan) -> Calendar {
    let hop = |link: &LinkPlan| link.delay + link.rate.transmission_time(TYPICAL_BYTES);
    let sum = plan.links.iter().map(hop).fold(Time::ZERO, |a, b| a + b);
    let mean = sum.picoseconds() / plan.links.len().max(1) as u64;
    Calendar::new(2 * plan.links.len() + 1, Time::from_picoseconds(mean))
}

impl Network {
    /// Handles the event that [`Network::next_hop`] tells of. If a packet has arrived, returns it with the local
    /// time of its arrival; for one that has arrived at its sender, [`Network::take_blocks`] is to follow.
    #[inline(always)]
    pub fn on_hop(&mut self, source: usize) -> Option<(Packet, Time)> {
        self.hops.take();
        let links = self.links.len();
        if source < links {
            self.look_at(source);
            None
        } else if source < 2 * links {
            self.on_flown(source - links)
        } else {
            self.on_change();
            None
        }
    }

    /// The first packet of a link's flight arrives at its end.
    #[inline(always)]
    fn on_flown(&mut self, link: usize) -> Option<(Packet, Time)> {
        let wire = &mut self.wires[link];
        let (_, packet) = wire.flight.pop_front()?;
        let (end, next) = (wire.end, first_due(&wire.flight));
        self.hops.set(self.links.len() + link, next);
        match self.routing.next(&packet, end) {
            Next::Link(next) => {
                let hop = packet.hop.wrapping_add(1);
                self.offer_wire(Packet { hop, ..packet }, next as usize);
                None
            }
            Next::Arrived => {
                self.log(self.now, NONE, &packet, Action::Arrive);
                Some((packet, self.now))
            }
            Next::Nowhere => {
                self.lose(NONE, packet, Happening::Loss);
                None
            }
            Next::NotRouted => self.pass_on(packet),
        }
    }

    /// Sends a packet of a routed flow off from its host.
    #[inline(never)]
    pub(super) fn set_off(&mut self, packet: Packet) {
        let forward = packet.kind.is_forward();
        match self.routing.first(packet.flow as usize, forward) {
            Next::Link(link) => self.offer_wire(packet, link as usize),
            _ => self.lose(NONE, packet, Happening::Loss),
        }
    }

    /// Offers a packet to a link with a flight.
    #[inline(always)]
    pub(super) fn offer_wire(&mut self, packet: Packet, link: usize) {
        let Some(launch) = self.links[link].admit(packet, self.now) else {
            self.lose(link as u32, packet.for_record(), Happening::Loss);
            return;
        };
        self.log(self.now, link as u32, &packet, Action::Enqueue);
        self.carry_out(link, launch);
    }

    /// A link's transmitter is free, or its discipline may give a packet.
    #[inline]
    fn look_at(&mut self, link: usize) {
        self.log_departure(link);
        let launch = self.links[link].resume(self.now);
        self.carry_out(link, launch);
    }

    #[inline(always)]
    fn carry_out(&mut self, link: usize, launch: Launch) {
        if let Some((packet, done)) = launch.packet {
            if self.log_packets {
                self.log_departure(link);
            }
            let wire = &mut self.wires[link];
            let due = wire.due(done);
            wire.flight.push_back((due, packet));
            if wire.flight.len() == 1 {
                self.hops.set(self.links.len() + link, due);
            }
            if self.log_packets {
                self.await_departure(link, done);
            }
        }
        if let Some(again) = launch.again {
            self.hops.set(link, again);
        }
        self.settle_drops(link);
    }

    /// The log says when a packet leaves, so that has to be an event.
    #[cold]
    fn await_departure(&mut self, link: usize, done: Time) {
        self.wires[link].departing = true;
        if done > self.now {
            self.hops.set(link, done);
        } else {
            self.log_departure(link);
        }
    }

    /// Writes down that the packet that was launched last has left.
    #[inline(always)]
    fn log_departure(&mut self, link: usize) {
        if self.log_packets {
            self.write_departure(link);
        }
    }

    #[cold]
    fn write_departure(&mut self, link: usize) {
        let wire = &mut self.wires[link];
        if std::mem::take(&mut wire.departing) {
            if let Some(&(_, packet)) = wire.flight.back() {
                self.write_log(self.now, link as u32, packet, Action::Dequeue);
            }
        }
    }

    /// The packet that a link was transmitting will not leave it: takes it back.
    pub(super) fn recall(&mut self, link: usize) -> Option<Packet> {
        if self.links[link].busy_until() <= self.now {
            return None;
        }
        self.links[link].recall(self.now);
        let wire = &mut self.wires[link];
        wire.departing = false;
        let (_, packet) = wire.flight.pop_back()?;
        let next = first_due(&wire.flight);
        self.hops.set(self.links.len() + link, next);
        Some(packet)
    }

    /// Sets the propagation delay, for packets that have not yet left the transmitter.
    pub(super) fn set_delay(&mut self, link: usize, delay: Time) {
        let busy_until = self.links[link].busy_until();
        let wire = &mut self.wires[link];
        wire.delay = Some(delay);
        if busy_until <= self.now {
            return;
        }
        if let Some((_, packet)) = wire.flight.pop_back() {
            let due = wire.due(busy_until);
            wire.flight.push_back((due, packet));
            let next = first_due(&wire.flight);
            self.hops.set(self.links.len() + link, next);
        }
    }
}
