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

use crate::agenda::Agenda;
use crate::calendar::Calendar;
use crate::link::{Due, Link, Settled};
use crate::options::Blocks;
use crate::packet::{Ecn, Packet, NO_SACK};
use crate::path::{first_due, set_off, DelayLine, Hop, Path, Route};
use crate::pcap::Captures;
use crate::places::Places;
use crate::queue::Priorities;
use crate::receiver::Reply;
use crate::routing::{Next, Routing};
use crate::sender::{Outlet, Reasons};
use crate::PlanError;

mod changes;
mod medium;
mod opening;
mod propagation;
mod sacks;
mod watching;

use changes::Changes;
pub use medium::Harm;
use medium::Medium;
use sacks::SackStore;

/// Links, delays and the packets in them.
pub struct Network {
    now: Time,
    links: Vec<Link>,
    /// Links to be looked at, then flights by link, then the change of a link that comes next.
    link_events: Calendar,
    changes: Changes,
    /// By link: what is behind its transmitter, where that is more than a delay.
    media: BTreeMap<usize, Medium>,
    /// Whether any link has one.
    has_media: bool,
    /// By flow: how many of its packets media have made.
    copies: BTreeMap<u32, u64>,
    routing: Routing,
    /// The paths that are given, of which flows take one.
    paths: Vec<Path>,
    /// Where the flows have their places.
    places: Places,
    /// By place: the flow's route, from its first packet to its last.
    routes: Vec<Option<Box<Route>>>,
    /// By place: packets of the flow that a queue dropped or a link lost.
    gone: Vec<u64>,
    /// Delays before queueing links.
    delay_lines: Vec<DelayLine>,
    /// By link: when the packet in transmission has left.
    transmissions: Agenda,
    /// By delay line, then by place: when the first packet arrives at its end. At equal times flows come first.
    arrivals: Agenda,
    seed: u64,
    sacks: SackStore,
    /// Room for what a link has dropped and marked, while it is recorded.
    spare: Settled,
    /// Whether packets are logged or captured.
    is_watched: bool,
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
            links[change.link as usize].give_flight();
        }
        let media = Medium::all(plan, &seeds);
        for &link in media.keys() {
            links[link].give_medium();
        }
        let paths: Vec<_> = paths.collect();
        let captures = Captures::of(plan, &paths, seed);
        let is_watched = plan.record.packets || captures.is_some();
        if is_watched {
            links.iter_mut().for_each(Link::watch);
        }
        let mut delay_lines = Vec::new();
        let paths = paths.into_iter();
        let paths = paths.map(|(forward, reverse)| Path::new(forward, reverse, &mut delay_lines));
        let paths = paths.collect();
        let mut network = Network {
            now: Time::ZERO,
            link_events: propagation::calendar(plan),
            changes: Changes::new(plan, priorities, &seeds)?,
            has_media: !media.is_empty(),
            media,
            copies: BTreeMap::new(),
            routing: Routing::new(plan, seed),
            transmissions: Agenda::new(links.len()),
            paths,
            arrivals: Agenda::new(delay_lines.len()),
            links,
            places: Places::new(given),
            routes: Vec::new(),
            gone: Vec::new(),
            delay_lines,
            seed,
            sacks: SackStore::default(),
            spare: Settled::default(),
            is_watched,
            log_packets: plan.record.packets,
            departing: BTreeMap::new(),
            captures,
            tables: Tables::default(),
        };
        for line in 0..network.delay_lines.len() {
            let rank = u32::MAX - (network.delay_lines.len() - line) as u32;
            network.arrivals.enrol(line, rank);
        }
        (0..given).for_each(|place| network.furnish(place));
        network.schedule_change();
        Ok(network)
    }

    /// Whether any link has a flight behind it, or changes.
    pub fn has_flights(&self) -> bool {
        let has_media = !self.media.is_empty();
        self.changes.are_planned()
            || has_media
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
        self.settle_drops(link);
        let packet = packet?;
        self.log(self.now, link as u32, &packet, PacketAction::Dequeue);
        if self.has_media && self.enter_medium(link, packet.for_record(), packet.hop) {
            return None;
        }
        self.pass_on(packet)
    }

    /// The first packet of a flight arrives. If that is at its sender, or at a receiver that took time for it (and has
    /// been written down), returns it with the flow's place;
    /// [`Network::take_blocks`] and [`Network::await_next`] are to follow.
    #[inline(always)]
    pub fn on_arrival(&mut self, index: usize) -> Option<(usize, Packet)> {
        let Some(place) = index.checked_sub(self.delay_lines.len()) else {
            self.leave_delay_line(index);
            return None;
        };
        let (_, packet) = self.routes[place].as_mut()?.home.pop_front()?;
        if self.is_watched && !packet.kind.is_forward() {
            self.write_log(self.now, NONE, packet.for_record(), PacketAction::Arrive);
        }
        Some((place, packet))
    }

    /// Takes the SACK blocks that a packet carries.
    #[inline(always)]
    pub fn take_blocks(&mut self, packet: &Packet) -> Option<Blocks> {
        self.sacks.take(packet.sack)
    }

    /// Schedules the next arrival at a sender. Apart from [`Network::on_arrival`], because where the next
    /// packet lies is often not in the cache: the sender can be served meanwhile.
    #[inline]
    pub fn await_next(&mut self, place: usize) {
        let route = self.routes[place].as_ref();
        let next = route.map_or(Time::NEVER, |route| first_due(&route.home));
        self.arrivals.set(self.delay_lines.len() + place, next);
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
    fn pass_on(&mut self, mut packet: Packet) -> Option<(Packet, Time)> {
        let place = self.places.of(packet.flow);
        let route = self.routes.get_mut(place)?.as_deref_mut()?;
        let forward = packet.kind.is_forward();
        if let Some(hop) = route.hop_after(packet.hop, forward) {
            packet.hop += 1;
            self.head_for(hop, packet);
            None
        } else if packet.ecn == Ecn::Damaged {
            self.discard(packet.for_record())
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
            let first = route.fly_home(due, packet);
            self.await_home(place, first);
            if self.is_watched {
                self.write_way_home(packet.for_record(), self.now, due);
            }
            None
        }
    }

    /// Sends a packet to a hop: into the delay before it, or at once.
    #[inline(always)]
    fn head_for(&mut self, hop: Hop, packet: Packet) {
        match hop {
            Hop::Here(link) => self.offer(packet, link),
            Hop::After { delay, delay_line } => self.fly(delay_line, self.now + delay, packet),
            Hop::Routed => self.set_off(packet.entering(self.now)),
        }
    }

    #[inline(always)]
    fn fly(&mut self, delay_line: u32, due: Time, packet: Packet) {
        let flight = &mut self.delay_lines[delay_line as usize].flight;
        if set_off(flight, due, packet) {
            self.arrivals.set(delay_line as usize, due);
        }
    }

    /// Schedules the arrival of a packet at its sender, if it is the first on its way there.
    #[inline(always)]
    fn await_home(&mut self, place: usize, first: Option<Time>) {
        if let Some(due) = first {
            self.arrivals.set(self.delay_lines.len() + place, due);
        }
    }

    /// Offers a packet to a link.
    #[inline(always)]
    fn offer(&mut self, packet: Packet, link: u32) {
        let link = link as usize;
        if self.links[link].propagation.exists {
            self.admit_flying(packet.entering(self.now), link);
        } else {
            self.admit::<false>(packet, link, self.is_watched);
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
                self.await_departure(link, due.departure);
            }
            self.schedule_flight(link, due);
        } else if !due.next().is_never() {
            self.transmissions.set(link, due.next());
        }
        self.settle_drops(link);
    }

    #[inline(always)]
    fn settle_drops(&mut self, link: usize) {
        if self.links[link].has_settled() {
            self.record_drops(link);
        }
    }

    #[cold]
    fn record_drops(&mut self, link: usize) {
        let empty = std::mem::take(&mut self.spare);
        let mut settled = self.links[link].take_settled(empty);
        for packet in settled.dropped.drain(..) {
            self.lose(link as u32, packet, EventKind::Drop);
        }
        for packet in settled.marked.drain(..) {
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
        self.spare = settled;
    }

    #[cold]
    fn lose(&mut self, link: u32, packet: Packet, happening: EventKind) {
        let action = if happening == EventKind::Drop {
            PacketAction::Drop
        } else {
            PacketAction::Loss
        };
        self.log(self.now, link, &packet, action);
        self.sacks.take(packet.sack);
        let place = self.places.of(packet.flow);
        if let Some(Some(_)) = self.routes.get(place) {
            self.gone[place] += 1;
        }
        let value = packet.sequence as f64;
        self.tables
            .events
            .push(self.now.seconds(), packet.flow, link, happening, value);
    }

    /// Sends the receiver's answer off, at the receiver's local time.
    #[inline]
    pub fn answer(&mut self, flow: u32, reply: &Reply, local: Time) {
        let packet = Packet {
            sequence: reply.ack,
            timestamp: reply.echo,
            enqueued: local,
            flow,
            wire_bytes: reply.wire_bytes,
            sack: reply
                .blocks
                .map_or(NO_SACK, |blocks| self.sacks.put(blocks)),
            kind: reply.kind,
            ecn: reply.ecn,
            hop: 0,
            flags: reply.flags,
        };
        if self.captures.is_some() {
            return self.answer_captured(packet.for_record(), local);
        }
        self.start_back(packet, local);
    }

    /// A receiver's packet sets off at its local time.
    #[inline(always)]
    fn start_back(&mut self, packet: Packet, local: Time) {
        let place = self.places.of(packet.flow);
        let Some(Some(route)) = self.routes.get_mut(place) else {
            return;
        };
        match route.first_hop_back() {
            Some(Hop::After { delay, delay_line }) => self.fly(delay_line, local + delay, packet),
            Some(Hop::Here(_) | Hop::Routed) => self.set_off(packet.entering(self.now)),
            None => {
                let first = route.fly_home(local + route.reverse_delay, packet);
                self.await_home(place, first);
            }
        }
    }

    #[inline(always)]
    fn log(&mut self, time: Time, link: u32, packet: &Packet, action: PacketAction) {
        if self.is_watched {
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
    pub fn gone(&self, place: usize) -> u64 {
        self.gone[place]
    }

    /// The places of flows.
    #[inline(always)]
    pub fn places(&self) -> &Places {
        &self.places
    }

    /// Packets in queues, transmitters and flights.
    pub fn packets_under_way(&self) -> u64 {
        let queued: u64 = self.links.iter().map(Link::keeps).sum();
        let routes = self.routes.iter().flatten();
        let home = routes.map(|route| route.home.len());
        let between = self
            .delay_lines
            .iter()
            .map(|delay_line| delay_line.flight.len());
        let behind = self.links.iter().map(|link| link.propagation.holds());
        let flying = self.media.values().map(Medium::holds);
        queued
            + home
                .chain(between)
                .chain(behind)
                .chain(flying)
                .sum::<usize>() as u64
    }
}

/// The network as one sender sees it.
pub struct Entrance<'a> {
    /// What is behind it.
    pub network: &'a mut Network,
    /// Where the sender's packets go first.
    pub hop: Hop,
}

impl Outlet for Entrance<'_> {
    #[inline(always)]
    fn send(&mut self, packet: Packet, reasons: impl FnOnce() -> Reasons) {
        if self.network.captures.is_some() {
            let packet = packet.for_record();
            return self.network.send_captured(self.hop, packet, reasons());
        }
        self.network.head_for(self.hop, packet);
    }

    fn report(&mut self, flow: u32, happening: EventKind, value: f64) {
        let now = self.network.now;
        let events = &mut self.network.tables.events;
        events.push(now.seconds(), flow, NONE, happening, value);
    }
}
