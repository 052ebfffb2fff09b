//! The network: everything that packets pass between a sender and its receiver.
//!
//! Two kinds of events happen in it: a link has sent off its packet, and the first packet of a flight
//! (a stretch of pure delay) arrives. What cannot queue is not an event: a packet that leaves its last
//! queue is handed over at once, with the local time of its arrival, and an answer goes straight
//! into the flight that leads back.

use std::collections::VecDeque;

use ackclock_units::Time;
use rand_core::RngCore;
use rand_pcg::Pcg64Mcg;

use crate::agenda::Agenda;
use crate::link::{Link, Offer};
use crate::packet::{Ecn, Kind, Packet, NO_SACK};
use crate::path::{Hop, Path};
use crate::pcap::Capture;
use crate::plan::{FlowPlan, Plan};
use crate::receiver::{Blocks, Reply};
use crate::record::{Action, Happening, Tables, NONE};
use crate::sender::{syn_option_bytes, Outlet, TIMESTAMPS_BYTES};
use crate::workload::Workload;
use crate::PlanError;

/// Where the packets of a flight arrive.
#[derive(Clone, Copy)]
enum Destination {
    Sender,
    /// At this link.
    Hop(u32),
}

/// A stretch of pure delay: packets in the order of their arrival.
struct Flight {
    packets: VecDeque<(Time, Packet)>,
    destination: Destination,
}

/// A flow's way there and back.
struct Route {
    forward: Path,
    reverse: Path,
    /// The flight that ends at the sender.
    home: u32,
    /// Bytes of an ACK without SACK blocks.
    header_bytes: u32,
    /// Bytes of a SYN/ACK.
    syn_header_bytes: u32,
    workload: Workload,
    /// Packets of the flow that a queue dropped or a link lost.
    gone: u64,
    /// Packets that reached the sender.
    returned: u64,
    /// Packets that the receiver sent.
    answered: u64,
}

/// SACK blocks of the ACKs on their way, each named by a packet's `sack`.
#[derive(Default)]
struct SackStore {
    slots: Vec<Blocks>,
    free: Vec<u32>,
}

impl SackStore {
    fn put(&mut self, blocks: Blocks) -> u32 {
        if let Some(slot) = self.free.pop() {
            self.slots[slot as usize] = blocks;
            slot
        } else {
            self.slots.push(blocks);
            (self.slots.len() - 1) as u32
        }
    }

    #[inline]
    fn take(&mut self, slot: u32) -> Option<Blocks> {
        (slot != NO_SACK).then(|| {
            self.free.push(slot);
            self.slots[slot as usize]
        })
    }
}

/// Links, delays and the packets in them.
pub struct Network {
    now: Time,
    links: Vec<Link>,
    routes: Vec<Route>,
    flights: Vec<Flight>,
    /// By link: when the packet in transmission has left.
    transmissions: Agenda,
    /// By flight: when the first packet arrives.
    arrivals: Agenda,
    sacks: SackStore,
    log_packets: bool,
    capture: Option<Capture>,
    /// Rows since the last drain.
    pub tables: Tables,
}

impl Network {
    /// The network of a plan.
    ///
    /// # Errors
    /// If a queue discipline or its parameters are not known, or a path names a link that is not there.
    pub fn new(plan: &Plan, seed: u64) -> Result<Network, PlanError> {
        let mut seeds = Pcg64Mcg::new(u128::from(seed) << 1 | 1);
        seeds.next_u64();
        let links = plan
            .links
            .iter()
            .map(|link| Link::new(link, plan.flows.len(), seeds.next_u64()))
            .collect::<Result<Vec<_>, _>>()?;
        let mut flights = Vec::new();
        let routes: Vec<_> = plan
            .flows
            .iter()
            .map(|flow| Route::new(flow, &mut flights))
            .collect();
        Ok(Network {
            now: Time::ZERO,
            transmissions: Agenda::new(links.len()),
            arrivals: Agenda::new(flights.len()),
            links,
            routes,
            flights,
            sacks: SackStore::default(),
            log_packets: plan.record.packets,
            capture: plan.record.pcap.then(|| Capture::new(&plan.flows)),
            tables: Tables::default(),
        })
    }

    /// When the next link has sent off its packet, and which link that is.
    #[inline]
    pub fn next_transmission(&self) -> (Time, usize) {
        self.transmissions.next()
    }

    /// When the next packet arrives at the end of a flight, and of which.
    #[inline]
    pub fn next_arrival(&self) -> (Time, usize) {
        self.arrivals.next()
    }

    /// Sets the clock, for packets that are sent at `now`.
    #[inline]
    pub fn set_time(&mut self, now: Time) {
        self.now = now;
    }

    /// A link's packet has left it. If its receiver is next, returns it with its local time of arrival.
    #[inline(always)]
    pub fn on_transmitted(&mut self, link: usize) -> Option<(Packet, Time)> {
        let (packet, next) = self.links[link].finish(self.now);
        self.transmissions.set(link, next.unwrap_or(Time::NEVER));
        self.settle_drops(link);
        let packet = packet?;
        self.log(self.now, link as u32, &packet, Action::Dequeue);
        self.pass_on(packet, packet.hop + 1)
    }

    /// The first packet of a flight arrives. If that is at its sender, returns it with the SACK blocks
    /// it carries.
    #[inline(always)]
    pub fn on_arrival(&mut self, index: usize) -> Option<(Packet, Option<Blocks>)> {
        let flight = &mut self.flights[index];
        let (_, packet) = flight.packets.pop_front()?;
        let next = flight
            .packets
            .front()
            .map_or(Time::NEVER, |&(time, _)| time);
        let destination = flight.destination;
        self.arrivals.set(index, next);
        match destination {
            Destination::Sender => Some(self.reach_sender(packet)),
            Destination::Hop(link) => {
                self.offer(packet, link);
                None
            }
        }
    }

    /// Sends a packet on towards hop number `hop` of its path, or to the far end after the last.
    #[inline(always)]
    fn pass_on(&mut self, mut packet: Packet, hop: u8) -> Option<(Packet, Time)> {
        let route = &self.routes[packet.flow as usize];
        let forward = packet.kind.is_forward();
        let path = if forward {
            &route.forward
        } else {
            &route.reverse
        };
        if let Some(next) = path.hop(hop) {
            let next = *next;
            packet.hop = hop;
            self.head_for(&next, packet);
            None
        } else if forward {
            let local = self.now + path.delay;
            self.log(local, NONE, &packet, Action::Arrive);
            Some((packet, local))
        } else {
            let (home, due) = (route.home, self.now + path.delay);
            self.fly(home, due, packet);
            None
        }
    }

    /// Sends a packet to a hop: into the delay before it, or at once.
    #[inline(always)]
    fn head_for(&mut self, hop: &Hop, packet: Packet) {
        match hop.flight {
            Some(flight) => self.fly(flight, self.now + hop.delay, packet),
            None => self.offer(packet, hop.link),
        }
    }

    #[inline]
    fn fly(&mut self, flight: u32, due: Time, packet: Packet) {
        let packets = &mut self.flights[flight as usize].packets;
        packets.push_back((due, packet));
        if packets.len() == 1 {
            self.arrivals.set(flight as usize, due);
        }
    }

    /// Offers a packet to a link.
    #[inline(always)]
    fn offer(&mut self, packet: Packet, link: u32) {
        let link = link as usize;
        let (offer, begun) = self.links[link].offer(packet, self.now);
        if let Some(done) = begun {
            self.transmissions.set(link, done);
        }
        if offer == Offer::Lost {
            self.lose(link as u32, &packet, Happening::Loss);
            return;
        }
        self.log(self.now, link as u32, &packet, Action::Enqueue);
        self.settle_drops(link);
    }

    #[inline(always)]
    fn settle_drops(&mut self, link: usize) {
        if !self.links[link].drops.is_empty() {
            self.record_drops(link);
        }
    }

    #[cold]
    fn record_drops(&mut self, link: usize) {
        let mut drops = std::mem::take(&mut self.links[link].drops);
        for packet in drops.drain() {
            self.lose(link as u32, &packet, Happening::Drop);
        }
        self.links[link].drops = drops;
    }

    #[cold]
    fn lose(&mut self, link: u32, packet: &Packet, happening: Happening) {
        let action = if happening == Happening::Drop {
            Action::Drop
        } else {
            Action::Loss
        };
        self.log(self.now, link, packet, action);
        self.sacks.take(packet.sack);
        self.routes[packet.flow as usize].gone += 1;
        let value = packet.sequence as f64;
        self.tables
            .events
            .push(self.now, packet.flow, link, happening, value);
    }

    /// Sends the receiver's answer off, at the receiver's local time.
    #[inline]
    pub fn answer(&mut self, flow: u32, reply: &Reply, local: Time) {
        let route = &mut self.routes[flow as usize];
        route.answered += 1;
        let options = match reply.kind {
            Kind::SynAck => route.syn_header_bytes - route.header_bytes,
            _ => reply.blocks.as_ref().map_or(0, sack_option_bytes),
        };
        let packet = Packet {
            sequence: reply.ack,
            timestamp: reply.echo,
            enqueued: local,
            flow,
            wire_bytes: route.header_bytes + options,
            sack: reply
                .blocks
                .map_or(NO_SACK, |blocks| self.sacks.put(blocks)),
            kind: reply.kind,
            ecn: Ecn::NotCapable,
            hop: 0,
            again: reply.duplicate,
        };
        let (flight, due) = match route.reverse.hop(0) {
            None => (route.home, local + route.reverse.delay),
            Some(hop) => (hop.flight.unwrap_or(route.home), local + hop.delay),
        };
        self.fly(flight, due, packet);
    }

    #[inline(always)]
    fn reach_sender(&mut self, packet: Packet) -> (Packet, Option<Blocks>) {
        self.log(self.now, NONE, &packet, Action::Arrive);
        let blocks = self.sacks.take(packet.sack);
        let route = &mut self.routes[packet.flow as usize];
        route.returned += 1;
        if let Some(capture) = &mut self.capture {
            capture.record_packet(&packet, blocks.as_ref(), &route.workload, self.now);
        }
        (packet, blocks)
    }

    #[inline(always)]
    fn log(&mut self, time: Time, link: u32, packet: &Packet, action: Action) {
        if self.log_packets {
            self.tables.packets.push(time, link, packet, action);
        }
    }

    /// Takes the bytes captured since the last call; empty unless a capture was asked for.
    pub fn take_capture(&mut self) -> Vec<u8> {
        self.capture.as_mut().map(Capture::take).unwrap_or_default()
    }

    /// How far a flow's receiver's clock runs ahead of the network's.
    #[inline]
    pub fn lead(&self, flow: usize) -> Time {
        self.routes[flow].forward.delay
    }

    /// The links.
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// The links, to read their counts at the present time.
    pub fn links_mut(&mut self) -> &mut [Link] {
        &mut self.links
    }

    /// Packets of a flow that a queue dropped or a link lost.
    pub fn gone(&self, flow: usize) -> u64 {
        self.routes[flow].gone
    }

    /// Packets of a flow that its receiver sent, and those that reached its sender.
    pub fn answered_and_returned(&self, flow: usize) -> (u64, u64) {
        (self.routes[flow].answered, self.routes[flow].returned)
    }

    /// Packets in queues, transmitters and flights.
    pub fn packets_under_way(&self) -> u64 {
        let queued: u64 = self.links.iter().map(Link::holds).sum();
        let flying: usize = self.flights.iter().map(|flight| flight.packets.len()).sum();
        queued + flying as u64
    }
}

impl Outlet for Network {
    #[inline(always)]
    fn send(&mut self, packet: Packet) {
        if let Some(capture) = &mut self.capture {
            let workload = &self.routes[packet.flow as usize].workload;
            capture.record_packet(&packet, None, workload, self.now);
        }
        // Every path has a first hop: `Plan::check`.
        if let Some(&hop) = self.routes[packet.flow as usize].forward.hop(0) {
            self.head_for(&hop, packet);
        }
    }

    fn report(&mut self, flow: u32, happening: Happening, value: f64) {
        self.tables
            .events
            .push(self.now, flow, NONE, happening, value);
    }
}

impl Route {
    fn new(plan: &FlowPlan, flights: &mut Vec<Flight>) -> Route {
        let mut flight_to = |destination| {
            flights.push(Flight {
                packets: VecDeque::new(),
                destination,
            });
            (flights.len() - 1) as u32
        };
        let timestamps = u32::from(plan.tcp.timestamps) * TIMESTAMPS_BYTES;
        Route {
            forward: Path::new(&plan.forward, false, |link| {
                flight_to(Destination::Hop(link))
            }),
            reverse: Path::new(&plan.reverse, true, |link| {
                flight_to(Destination::Hop(link))
            }),
            home: flight_to(Destination::Sender),
            header_bytes: plan.tcp.header_bytes + timestamps,
            syn_header_bytes: plan.tcp.header_bytes + syn_option_bytes(&plan.tcp),
            workload: Workload::new(plan),
            gone: 0,
            returned: 0,
            answered: 0,
        }
    }
}

/// Bytes of the SACK option: 4 with padding, and 8 for each block.
fn sack_option_bytes(blocks: &Blocks) -> u32 {
    4 + 8 * blocks.as_slice().len() as u32
}
