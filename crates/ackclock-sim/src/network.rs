//! The network: everything that packets pass between a sender and its receiver.
//!
//! Two kinds of events happen in it: a link has sent off its packet, and the first packet of a flight
//! (a delay line) arrives. What cannot queue is not an event: a packet that leaves its last
//! queue is handed over at once, with the local time of its arrival, and an answer goes straight
//! into the flight that leads back.
//!
//! Links between nodes are apart, in `propagation`: each has a flight behind it that all packets share, and at
//! its end a packet is routed on, or has arrived.

use ackclock_core::tables::{EventKind, PacketAction, Tables, NONE};
use ackclock_plan::{PathPlan, Plan};
use std::collections::BTreeMap;

use ackclock_core::Time;
use rand_core::RngCore;
use rand_pcg::Pcg64Mcg;

use crate::flow_slots::FlowSlots;
use crate::link::{DropLog, Due, Link};
use crate::options::Blocks;
use crate::packet::{Ecn, Packet, NO_SACK};
use crate::path::{first_due, push_delayed, DelayLine, Hop, Path, Route};
use crate::pcap::Captures;
use crate::queue::Priorities;
use crate::receiver::Reply;
use crate::routing::{Next, Routing};
use crate::sender::{Outlet, SendReason};
use crate::timing_wheel::TimingWheel;
use crate::tournament_tree::TournamentTree;
use crate::PlanError;

mod changes;
mod flows;
mod impairment;
mod propagation;
mod sacks;
mod tracing;

use changes::Changes;
use impairment::Impairment;
pub use impairment::ImpairmentCounters;
use sacks::SackStore;

/// Links, delays and the packets in them.
pub struct Network {
    now: Time,
    links: Vec<Link>,
    /// Links to be looked at, then flights by link, then the change of a link that comes next.
    link_events: TimingWheel,
    changes: Changes,
    /// By link: what is behind its transmitter, where that is more than a delay.
    impairments: BTreeMap<usize, Impairment>,
    /// Whether any link has one.
    has_impairments: bool,
    /// By flow: how many of its packets media have made.
    copies: BTreeMap<u32, u64>,
    routing: Routing,
    /// The paths that are given, of which flows take one.
    paths: Vec<Path>,
    /// Where the flows have their places.
    slots: FlowSlots,
    /// By place: the flow's route, from its first packet to its last.
    routes: Vec<Option<Box<Route>>>,
    /// By place: packets of the flow that a queue dropped or a link lost.
    lost_packets: Vec<u64>,
    /// Delays before queueing links.
    delay_lines: Vec<DelayLine>,
    /// By link: when the packet in transmission has left.
    transmissions: TournamentTree,
    /// By delay line, then by place: when the first packet arrives at its end. At equal times flows come first.
    arrivals: TournamentTree,
    seed: u64,
    sacks: SackStore,
    /// Room for what a link has dropped and marked, while it is recorded.
    spare_drop_log: DropLog,
    /// Whether packets are logged or captured.
    is_traced: bool,
    log_packets: bool,
    /// By link with a flight: the packet whose departure is still to be logged.
    departing: BTreeMap<usize, Packet>,
    captures: Option<Captures>,
    /// Rows since the last drain.
    pub tables: Tables,
}

impl Network {
    /// The network of a plan, with the paths that flows may take, there and back, and the priorities of their
    /// packets. The first `given` flows have their places from the beginning.
    ///
    /// # Errors
    /// If a queue discipline or its parameters are not known.
    pub fn new<'a>(
        plan: &Plan,
        paths: impl Iterator<Item = (&'a PathPlan, &'a PathPlan)>,
        priorities: Priorities<'_>,
        given: usize,
        seed: u64,
    ) -> Result<Network, PlanError> {
        let mut seeds = Pcg64Mcg::new(u128::from(seed) << 1 | 1);
        seeds.next_u64();
        let seeds: Vec<u64> = plan.links.iter().map(|_| seeds.next_u64()).collect();
        let links = plan.links.iter().zip(&seeds);
        let links = links.map(|(link, &seed)| Link::new(link, priorities, seed));
        let mut links = links.collect::<Result<Vec<_>, _>>()?;
        for change in plan.changes.iter().filter(|change| change.delay.is_some()) {
            links[change.link as usize].enable_propagation();
        }
        let impairments = Impairment::all(plan, &seeds);
        for &link in impairments.keys() {
            links[link].disable_propagation();
        }
        let paths: Vec<_> = paths.collect();
        let captures = Captures::of(plan, &paths, seed);
        let is_traced = plan.record.packets || captures.is_some();
        if is_traced {
            links.iter_mut().for_each(Link::enable_tracing);
        }
        let mut delay_lines = Vec::new();
        let paths = paths.into_iter();
        let paths = paths.map(|(forward, reverse)| Path::new(forward, reverse, &mut delay_lines));
        let paths = paths.collect();
        let mut network = Network {
            now: Time::ZERO,
            link_events: propagation::timing_wheel(plan),
            changes: Changes::new(plan, priorities, &seeds)?,
            has_impairments: !impairments.is_empty(),
            impairments,
            copies: BTreeMap::new(),
            routing: Routing::new(plan, seed),
            transmissions: TournamentTree::new(links.len()),
            paths,
            arrivals: TournamentTree::new(delay_lines.len()),
            links,
            slots: FlowSlots::new(given),
            routes: Vec::new(),
            lost_packets: Vec::new(),
            delay_lines,
            seed,
            sacks: SackStore::default(),
            spare_drop_log: DropLog::default(),
            is_traced,
            log_packets: plan.record.packets,
            departing: BTreeMap::new(),
            captures,
            tables: Tables::default(),
        };
        for line in 0..network.delay_lines.len() {
            let rank = u32::MAX - (network.delay_lines.len() - line) as u32;
            network.arrivals.register(line, rank);
        }
        (0..given).for_each(|slot| network.init_slot(slot));
        network.schedule_change();
        Ok(network)
    }

    /// Whether any link has a flight behind it, or changes.
    pub fn has_propagation(&self) -> bool {
        let has_impairments = !self.impairments.is_empty();
        self.changes.is_pending()
            || has_impairments
            || self.links.iter().any(|link| link.propagation.exists)
    }

    /// What happens next at links with a flight, and when, if that is before everything else: no later than
    /// `other`, and earlier than the next link without a flight has sent off its packet.
    #[inline(always)]
    pub fn link_event_before(&mut self, other: Time, transmitted: Time) -> Option<(Time, usize)> {
        if self.link_events.is_empty() {
            return None;
        }
        let (time, source) = self.link_events.first();
        (time <= other && time < transmitted).then_some((time, source))
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
        let (packet, due) = self.links[link].finish(self.now);
        self.transmissions.set(link, due.next());
        self.record_drops_if_any(link);
        let packet = packet?;
        self.log(self.now, link as u32, &packet, PacketAction::Dequeue);
        if self.has_impairments && self.enter_impairment(link, packet.for_record(), packet.hop) {
            return None;
        }
        self.forward_on_path(packet)
    }

    /// The first packet of a flight arrives. If that is at its sender, or at a receiver that took time for it (and has
    /// been written down), returns it with the flow's place;
    /// [`Network::take_blocks`] and [`Network::schedule_next_return`] are to follow.
    #[inline(always)]
    pub fn on_arrival(&mut self, index: usize) -> Option<(usize, Packet)> {
        let Some(slot) = index.checked_sub(self.delay_lines.len()) else {
            self.leave_delay_line(index);
            return None;
        };
        let (_, packet) = self.routes[slot].as_mut()?.return_queue.pop_front()?;
        if self.is_traced && !packet.kind.is_forward() {
            self.write_log(self.now, NONE, packet.for_record(), PacketAction::Arrive);
        }
        Some((slot, packet))
    }

    /// Takes the SACK blocks that a packet carries.
    #[inline(always)]
    pub fn take_blocks(&mut self, packet: &Packet) -> Option<Blocks> {
        self.sacks.remove(packet.sack)
    }

    /// Schedules the next arrival at a sender. Apart from [`Network::on_arrival`], because where the next
    /// packet lies is often not in the cache: the sender can be served meanwhile.
    #[inline]
    pub fn schedule_next_return(&mut self, slot: usize) {
        let route = self.routes[slot].as_ref();
        let next = route.map_or(Time::NEVER, |route| first_due(&route.return_queue));
        self.arrivals.set(self.delay_lines.len() + slot, next);
    }

    /// The first packet of a delay line arrives at the link.
    fn leave_delay_line(&mut self, index: usize) {
        let delay_line = &mut self.delay_lines[index];
        let link = delay_line.link;
        if let Some((_, packet)) = delay_line.flight.pop_front() {
            self.arrivals.set(index, first_due(&delay_line.flight));
            self.offer(packet, link);
        }
    }

    /// Sends a packet on from a link of its path: to the next one, or to the far end after the last.
    #[inline(always)]
    fn forward_on_path(&mut self, mut packet: Packet) -> Option<(Packet, Time)> {
        let slot = self.slots.slot_of(packet.flow);
        let route = self.routes.get_mut(slot)?.as_deref_mut()?;
        let forward = packet.kind.is_forward();
        if let Some(hop) = route.hop_after(packet.hop, forward) {
            packet.hop += 1;
            self.send_to_hop(hop, packet);
            None
        } else if packet.ecn == Ecn::Damaged {
            self.discard_corrupted(packet.for_record())
        } else if forward {
            let local = self.now + route.forward_delay;
            let ready = match &mut route.hosts {
                Some(hosts) => hosts.receiver.ready(local),
                None => local,
            };
            self.log(local, NONE, &packet, PacketAction::Arrive);
            Some((packet, ready))
        } else {
            let due = self.now + route.reverse_delay;
            let first = route.queue_return(due, packet);
            self.schedule_return(slot, first);
            if self.is_traced {
                self.log_return(packet.for_record(), self.now, due);
            }
            None
        }
    }

    /// Sends a packet to a hop: into the delay before it, or at once.
    #[inline(always)]
    fn send_to_hop(&mut self, hop: Hop, packet: Packet) {
        match hop {
            Hop::Direct(link) => self.offer(packet, link),
            Hop::Delayed { delay, delay_line } => {
                self.enter_delay_line(delay_line, self.now + delay, packet)
            }
            Hop::Routed => self.push_delayed(packet.entering(self.now)),
        }
    }

    #[inline(always)]
    fn enter_delay_line(&mut self, delay_line: u32, due: Time, packet: Packet) {
        let flight = &mut self.delay_lines[delay_line as usize].flight;
        if push_delayed(flight, due, packet) {
            self.arrivals.set(delay_line as usize, due);
        }
    }

    /// Schedules the arrival of a packet at its sender, if it is the first on its way there.
    #[inline(always)]
    fn schedule_return(&mut self, slot: usize, first: Option<Time>) {
        if let Some(due) = first {
            self.arrivals.set(self.delay_lines.len() + slot, due);
        }
    }

    /// Offers a packet to a link.
    #[inline(always)]
    fn offer(&mut self, packet: Packet, link: u32) {
        let link = link as usize;
        if self.links[link].propagation.exists {
            self.admit_with_propagation(packet.entering(self.now), link);
        } else {
            self.admit::<false>(packet, link, self.is_traced);
        }
    }

    /// A link, with a flight behind it or without one, takes a packet or loses it. `log`: whether packets are watched.
    #[inline(always)]
    fn admit<const FLIGHT: bool>(&mut self, packet: Packet, link: usize, log: bool) {
        let Some(due) = self.links[link].offer::<FLIGHT>(packet, self.now) else {
            return self.lose(link as u32, packet.for_record(), EventKind::Loss);
        };
        if log {
            self.write_log(
                self.now,
                link as u32,
                packet.for_record(),
                PacketAction::Enqueue,
            );
        }
        if FLIGHT {
            if log {
                self.schedule_departure(link, due.departure);
            }
            self.schedule_link(link, due);
        } else if !due.next().is_never() {
            self.transmissions.set(link, due.next());
        }
        self.record_drops_if_any(link);
    }

    #[inline(always)]
    fn record_drops_if_any(&mut self, link: usize) {
        if self.links[link].has_drops() {
            self.record_drops(link);
        }
    }

    #[cold]
    fn record_drops(&mut self, link: usize) {
        let empty = std::mem::take(&mut self.spare_drop_log);
        let mut drop_log = self.links[link].take_drop_log(empty);
        for packet in drop_log.dropped.drain(..) {
            self.lose(link as u32, packet, EventKind::Drop);
        }
        for packet in drop_log.marked.drain(..) {
            let (flow, value) = (packet.flow, packet.sequence as f64);
            let events = &mut self.tables.events;
            events.push(
                self.now.seconds(),
                flow,
                link as u32,
                EventKind::Mark,
                value,
            );
        }
        self.spare_drop_log = drop_log;
    }

    #[cold]
    fn lose(&mut self, link: u32, packet: Packet, kind: EventKind) {
        let action = if kind == EventKind::Drop {
            PacketAction::Drop
        } else {
            PacketAction::Loss
        };
        self.log(self.now, link, &packet, action);
        self.sacks.remove(packet.sack);
        let slot = self.slots.slot_of(packet.flow);
        if let Some(Some(_)) = self.routes.get(slot) {
            self.lost_packets[slot] += 1;
        }
        let value = packet.sequence as f64;
        self.tables
            .events
            .push(self.now.seconds(), packet.flow, link, kind, value);
    }

    /// Sends the receiver's answer off, at the receiver's local time.
    #[inline]
    pub fn send_reply(&mut self, flow: u32, reply: &Reply, local: Time) {
        let packet = Packet {
            sequence: reply.ack,
            timestamp: reply.echo,
            enqueued: local,
            flow,
            wire_bytes: reply.wire_bytes,
            sack: reply
                .blocks
                .map_or(NO_SACK, |blocks| self.sacks.insert(blocks)),
            kind: reply.kind,
            ecn: reply.ecn,
            hop: 0,
            flags: reply.flags,
        };
        if self.captures.is_some() {
            return self.send_reply_captured(packet.for_record(), local);
        }
        self.forward_reply(packet, local);
    }

    /// A receiver's packet sets off at its local time.
    #[inline(always)]
    fn forward_reply(&mut self, packet: Packet, local: Time) {
        let slot = self.slots.slot_of(packet.flow);
        let Some(Some(route)) = self.routes.get_mut(slot) else {
            return;
        };
        match route.first_reverse_hop() {
            Some(Hop::Delayed { delay, delay_line }) => {
                self.enter_delay_line(delay_line, local + delay, packet)
            }
            Some(Hop::Direct(_) | Hop::Routed) => self.push_delayed(packet.entering(self.now)),
            None => {
                let first = route.queue_return(local + route.reverse_delay, packet);
                self.schedule_return(slot, first);
            }
        }
    }

    #[inline(always)]
    fn log(&mut self, time: Time, link: u32, packet: &Packet, action: PacketAction) {
        if self.is_traced {
            self.write_log(time, link, packet.for_record(), action);
        }
    }

    /// The links.
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// The links, to read their counts at the present time.
    pub fn links_mut(&mut self) -> &mut [Link] {
        &mut self.links
    }

    /// Packets that a queue dropped or a link lost, of the flow in a place.
    pub fn lost_packets(&self, slot: usize) -> u64 {
        self.lost_packets[slot]
    }

    /// The places of flows.
    #[inline(always)]
    pub fn slots(&self) -> &FlowSlots {
        &self.slots
    }

    /// Packets in queues, transmitters and flights.
    pub fn packets_in_transit(&self) -> u64 {
        let queued: u64 = self.links.iter().map(Link::waiting_packets).sum();
        let routes = self.routes.iter().flatten();
        let return_queue = routes.map(|route| route.return_queue.len());
        let between = self
            .delay_lines
            .iter()
            .map(|delay_line| delay_line.flight.len());
        let behind = self.links.iter().map(|link| link.propagation.len());
        let flying = self.impairments.values().map(Impairment::len);
        queued
            + return_queue
                .chain(between)
                .chain(behind)
                .chain(flying)
                .sum::<usize>() as u64
    }
}

/// The network as one sender sees it.
pub struct NetworkOutlet<'a> {
    /// What is behind it.
    pub network: &'a mut Network,
    /// Where the sender's packets go first.
    pub hop: Hop,
}

impl Outlet for NetworkOutlet<'_> {
    #[inline(always)]
    fn send(&mut self, packet: Packet, reason: impl FnOnce() -> SendReason) {
        if self.network.captures.is_some() {
            let packet = packet.for_record();
            return self.network.send_captured(self.hop, packet, reason());
        }
        self.network.send_to_hop(self.hop, packet);
    }

    fn report(&mut self, flow: u32, kind: EventKind, value: f64) {
        let now = self.network.now;
        let events = &mut self.network.tables.events;
        events.push(now.seconds(), flow, NONE, kind, value);
    }
}
