//! The network: everything that packets pass between a sender and its receiver.
//!
//! It has two kinds of events: the end of a transmission, and the arrival of the first packet of a delay line. Whatever
//! cannot queue is not an event: a packet that leaves its last queue is handed over immediately, with the local time of
//! its arrival, and a reply goes straight into the return queue.
//!
//! Links have a module of their own, `links`. Between nodes all packets of a link share its propagation delay, and at the
//! end a packet is routed to the next link, or has arrived.

use ackclock_core::tables::{EventKind, PacketAction, Tables, NONE};
use ackclock_plan::{PathPlan, Plan};
use std::collections::BTreeMap;

use ackclock_core::Time;
use rand_core::RngCore;
use rand_pcg::Pcg64Mcg;

use crate::endpoint::Payload;
use crate::flow_slots::FlowSlots;
use crate::link::{DropLog, Due, Link};
use crate::options::Blocks;
use crate::packet::{acknowledgement, Kind, Packet, NO_ATTACHMENT};
use crate::path::{DelayLine, Hop, Path, Route};
use crate::pcap::Captures;
use crate::queue::FlowHeaders;
use crate::receiver::Reply;
use crate::routing::{Next, Routing};
use crate::sender::{Outlet, SendReason};
use crate::timing_wheel::TimingWheel;
use crate::tournament_tree::TournamentTree;
use crate::PlanError;

mod attachments;
mod changes;
mod flows;
mod handover;
mod impairment;
mod links;
mod tracing;

use attachments::Attachments;
use changes::Changes;
pub use handover::Handover;
use impairment::Impairment;

/// Links, delays and the packets in them.
pub struct Network {
    now: Time,
    /// Time that leaps have skipped.
    skipped: Time,
    links: Vec<Link>,
    /// Polls of links, then arrivals by link, then the next change of a link, then impairments by link.
    link_events: TimingWheel,
    changes: Changes,
    /// Impairment behind a link's transmitter, by link.
    impairments: BTreeMap<usize, Impairment>,
    /// True if any link has one.
    has_impairments: bool,
    /// Packets that impairments duplicated, by flow.
    copies: BTreeMap<u32, u64>,
    routing: Routing,
    /// Explicit paths, of which each unrouted flow takes one.
    paths: Vec<Path>,
    /// Slots of the flows.
    slots: FlowSlots,
    /// Route of the flow in a slot, from its first packet to its last.
    routes: Vec<Option<Box<Route>>>,
    /// Packets that a queue dropped or a link lost, of the flow in a slot.
    losses: Vec<Losses>,
    /// Delays before queueing links.
    delay_lines: Vec<DelayLine>,
    /// End of the transmission in progress, by link.
    transmissions: TournamentTree,
    /// Arrival of the first packet, by delay line, then by flow slot. At equal times flows come first.
    arrivals: TournamentTree,
    seed: u64,
    attachments: Attachments,
    /// Spare log that replaces a link's while that is recorded.
    spare_drop_log: DropLog,
    /// True if packets are logged or captured.
    is_traced: bool,
    log_packets: bool,
    /// Packet whose departure is still to be logged, by link with propagation delay.
    departing: BTreeMap<usize, Packet>,
    captures: Option<Captures>,
    /// Rows since the last drain.
    pub tables: Tables,
}

/// Packets lost in each direction.
#[derive(Clone, Copy, Default)]
struct Losses {
    forward: u64,
    backward: u64,
}

impl Losses {
    fn count(&mut self, kind: Kind) {
        if kind.is_forward() {
            self.forward += 1;
        } else {
            self.backward += 1;
        }
    }
}

impl Network {
    /// Make the network of a plan, with the forward and reverse paths of its flows and the headers of their
    /// packets. The first `given` flows have their slots from the start.
    ///
    /// # Errors
    /// If a queue discipline or its parameters are not known.
    pub fn new<'a>(
        plan: &Plan,
        paths: impl Iterator<Item = (&'a PathPlan, &'a PathPlan)>,
        headers: &FlowHeaders,
        given: usize,
        seed: u64,
    ) -> Result<Network, PlanError> {
        let mut seeds = Pcg64Mcg::new(u128::from(seed) << 1 | 1);
        seeds.next_u64();
        let seeds: Vec<u64> = plan.links.iter().map(|_| seeds.next_u64()).collect();
        let links = plan.links.iter().zip(&seeds);
        let links = links.map(|(link, &seed)| Link::new(link, headers, seed));
        let mut links = links.collect::<Result<Vec<_>, _>>()?;
        for change in plan.changes.iter().filter(|change| change.delay.is_some()) {
            links[change.link as usize].enable_propagation();
        }
        let impairments = Impairment::all(plan, &seeds);
        for &link in impairments.keys() {
            links[link].disable_propagation();
        }
        let paths: Vec<_> = paths.collect();
        let captures = Captures::of(plan, &paths, headers, seed);
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
            skipped: Time::ZERO,
            link_events: links::timing_wheel(plan),
            changes: Changes::new(plan, headers, &seeds)?,
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
            losses: Vec::new(),
            delay_lines,
            seed,
            attachments: Attachments::default(),
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

    /// True if any link has a propagation delay, or changes.
    pub fn has_propagation(&self) -> bool {
        let has_impairments = !self.impairments.is_empty();
        self.changes.is_pending()
            || has_impairments
            || self.links.iter().any(|link| link.propagation.exists)
    }

    /// Return the next event at links with propagation delay if it precedes all others: no later than
    /// `other`, and before the next end of a transmission on a link without propagation delay.
    #[inline(always)]
    pub fn link_event_before(&mut self, other: Time, transmitted: Time) -> Option<(Time, usize)> {
        if self.link_events.is_empty() {
            return None;
        }
        let (time, source) = self.link_events.first();
        (time <= other && time < transmitted).then_some((time, source))
    }

    /// Next end of a transmission on a link without propagation delay, and that link.
    #[inline]
    pub fn next_transmission(&self) -> (Time, usize) {
        self.transmissions.next()
    }

    /// Next arrival at the end of a delay line or return queue, and its index.
    #[inline]
    pub fn next_arrival(&self) -> (Time, usize) {
        self.arrivals.next()
    }

    /// Set the clock, for packets that are sent at `now`.
    #[inline]
    pub fn set_time(&mut self, now: Time) {
        self.now = now;
    }

    /// Let leaps have skipped this time so far.
    pub fn set_skipped(&mut self, skipped: Time) {
        self.skipped = skipped;
    }

    /// Time of an event for the tables, by the plan's clock.
    fn plan_time_s(&self) -> f64 {
        (self.now + self.skipped).seconds()
    }

    /// Handle the end of a transmission. If the packet's receiver is next, returns it with its local time of arrival.
    #[inline(always)]
    pub fn on_transmitted(&mut self, link: usize) -> Option<(Packet, Time)> {
        let this = &mut self.links[link];
        let (packet, due) = this.finish(self.now);
        let has_drops = this.has_drops();
        self.transmissions.set(link, due.next());
        if has_drops {
            self.record_drops(link);
        }
        let packet = packet?;
        self.log(self.now, link as u32, &packet, PacketAction::Dequeue);
        if self.has_impairments && self.enter_impairment(link, packet.for_record(), packet.hop) {
            return None;
        }
        self.forward_on_path(packet)
    }

    /// Handle an arrival. If it is at the packet's sender, or at a receiver after its host delay (and already
    /// logged), returns the packet with the flow's slot;
    /// [`Network::take_blocks`] and [`Network::schedule_next_return`] are to follow.
    #[inline(always)]
    pub fn on_arrival(&mut self, index: usize) -> Option<(usize, Packet)> {
        let Some(slot) = index.checked_sub(self.delay_lines.len()) else {
            self.leave_delay_line(index);
            return None;
        };
        let (_, packet) = self.routes[slot].as_mut()?.return_queue.pop()?;
        if self.is_traced && !packet.kind.is_forward() {
            self.write_log(self.now, NONE, packet.for_record(), PacketAction::Arrive);
        }
        Some((slot, packet))
    }

    /// Take the SACK blocks that a packet carries.
    #[inline(always)]
    pub fn take_blocks(&mut self, packet: &Packet) -> Option<Blocks> {
        self.attachments.remove(packet.attachment)
    }

    /// Store what a packet carries, if anything; returns the packet's attachment.
    pub fn attach(&mut self, payload: Option<Payload>) -> u32 {
        payload.map_or(NO_ATTACHMENT, |payload| {
            self.attachments.insert_payload(payload)
        })
    }

    /// Take what a packet of a receiver carries, whose slot [`Network::take_blocks`] has released.
    pub fn take_payload(&mut self, packet: &Packet) -> Option<Payload> {
        self.attachments.take_payload(packet.attachment)
    }

    /// Take what a packet of a sender carries, and release its slot.
    pub fn take_forward_payload(&mut self, packet: &Packet) -> Option<Payload> {
        let payload = self.attachments.take_payload(packet.attachment)?;
        self.attachments.remove(packet.attachment);
        Some(payload)
    }

    /// Schedule the next arrival at a sender. Separate from [`Network::on_arrival`], because the next
    /// packet is often not in the cache: the sender can be served meanwhile.
    #[inline(always)]
    pub fn schedule_next_return(&mut self, slot: usize) {
        let route = self.routes[slot].as_ref();
        let next = route.map_or(Time::NEVER, |route| route.return_queue.first_due());
        self.arrivals.set(self.delay_lines.len() + slot, next);
    }

    /// Offer the first packet of a delay line to its link.
    fn leave_delay_line(&mut self, index: usize) {
        let delay_line = &mut self.delay_lines[index];
        let link = delay_line.link;
        if let Some((_, packet)) = delay_line.packets.pop() {
            self.arrivals.set(index, delay_line.packets.first_due());
            self.offer(packet, link as usize);
        }
    }

    /// Forward a packet on its path: to the next link, or to its destination after the last.
    #[inline(always)]
    fn forward_on_path(&mut self, mut packet: Packet) -> Option<(Packet, Time)> {
        let slot = self.slots.slot_of(packet.flow);
        let route = self.routes.get_mut(slot)?.as_deref_mut()?;
        // Most packets are data.
        let forward = packet.kind == Kind::Data || packet.kind.is_forward();
        if let Some(hop) = route.hop_after(packet.hop, forward) {
            packet.hop += 1;
            self.send_to_hop(hop, packet);
            None
        } else if packet.is_corrupted() {
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

    /// Send a packet to a hop: into the delay line before it, or directly.
    #[inline(always)]
    fn send_to_hop(&mut self, hop: Hop, packet: Packet) {
        match hop {
            Hop::Direct(link) => self.offer(packet, link as usize),
            Hop::Delayed { delay, delay_line } => {
                self.enter_delay_line(delay_line, self.now + delay, packet);
            }
            Hop::Routed => self.send_from_host(packet.entering(self.now)),
        }
    }

    #[inline(always)]
    fn enter_delay_line(&mut self, delay_line: u32, due: Time, packet: Packet) {
        let packets = &mut self.delay_lines[delay_line as usize].packets;
        if packets.push(due, packet) {
            self.arrivals.set(delay_line as usize, due);
        }
    }

    /// Schedule the arrival of a packet at its sender, if it is the first in the return queue.
    #[inline(always)]
    fn schedule_return(&mut self, slot: usize, first: Option<Time>) {
        if let Some(due) = first {
            self.arrivals.set(self.delay_lines.len() + slot, due);
        }
    }

    #[cold]
    fn lose(&mut self, link: u32, packet: Packet, kind: EventKind) {
        let action = if kind == EventKind::Drop {
            PacketAction::Drop
        } else {
            PacketAction::Loss
        };
        self.log(self.now, link, &packet, action);
        self.attachments.discard(packet.attachment);
        let slot = self.slots.slot_of(packet.flow);
        if let Some(Some(_)) = self.routes.get(slot) {
            self.losses[slot].count(packet.kind);
        }
        let (time_s, value) = (self.plan_time_s(), packet.number() as f64);
        let events = &mut self.tables.events;
        events.push(time_s, packet.flow, link, kind, value);
    }

    /// Send a receiver's reply at the receiver's local time.
    #[inline(always)]
    pub fn send_reply(&mut self, flow: u32, reply: &Reply, local: Time) {
        let packet = Packet {
            sequence: acknowledgement(reply.ack, reply.window),
            timestamp: reply.echo,
            enqueued: local,
            flow,
            wire_bytes: reply.wire_bytes,
            attachment: reply
                .blocks
                .map_or(NO_ATTACHMENT, |blocks| self.attachments.insert(blocks)),
            kind: reply.kind,
            hop: 0,
            flags: reply.flags,
        };
        self.send_from_receiver(packet, local);
    }

    /// Send a receiver's packet at the receiver's local time.
    #[inline(always)]
    pub fn send_from_receiver(&mut self, packet: Packet, local: Time) {
        if self.captures.is_some() {
            return self.send_reply_captured(packet.for_record(), local);
        }
        self.forward_reply(packet, local);
    }

    /// Forward a receiver's packet at its local time.
    #[inline(always)]
    fn forward_reply(&mut self, packet: Packet, local: Time) {
        let slot = self.slots.slot_of(packet.flow);
        let Some(Some(route)) = self.routes.get_mut(slot) else {
            return;
        };
        match route.first_reverse_hop() {
            Some(Hop::Delayed { delay, delay_line }) => {
                self.enter_delay_line(delay_line, local + delay, packet);
            }
            Some(Hop::Direct(_) | Hop::Routed) => self.send_from_host(packet.entering(self.now)),
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

    /// Packets that a queue dropped or a link lost, of the flow in a slot.
    pub fn lost_packets(&self, slot: usize) -> u64 {
        self.losses[slot].forward + self.losses[slot].backward
    }

    /// Return the number of lost packets on the way from the sender to the receiver.
    pub fn lost_forward_packets(&self, slot: usize) -> u64 {
        self.losses[slot].forward
    }

    /// Slots of the flows.
    #[inline(always)]
    pub fn slots(&self) -> &FlowSlots {
        &self.slots
    }

    /// Packets in queues, transmitters and delays.
    pub fn packets_in_transit(&self) -> u64 {
        let queued: u64 = self.links.iter().map(Link::waiting_packets).sum();
        let routes = self.routes.iter().flatten();
        let return_queue = routes.map(|route| route.return_queue.len());
        let between = self
            .delay_lines
            .iter()
            .map(|delay_line| delay_line.packets.len());
        let behind = self.links.iter().map(|link| link.propagation.len());
        let flying = self.impairments.values().map(Impairment::len);
        let delayed = return_queue.chain(between).chain(behind).chain(flying);
        queued + delayed.sum::<usize>() as u64
    }
}

/// Outlet of one sender into the network.
pub struct NetworkOutlet<'a> {
    /// The network.
    pub network: &'a mut Network,
    /// First hop of the sender's packets.
    pub hop: Hop,
}

impl Outlet for NetworkOutlet<'_> {
    #[inline(always)]
    fn send(&mut self, packet: Packet, reason: impl FnOnce() -> SendReason) {
        if self.network.is_traced {
            let packet = packet.for_record();
            return self.network.send_traced(self.hop, packet, reason);
        }
        self.network.send_to_hop(self.hop, packet);
    }

    fn report(&mut self, flow: u32, kind: EventKind, value: f64) {
        let time_s = self.network.plan_time_s();
        let events = &mut self.network.tables.events;
        events.push(time_s, flow, NONE, kind, value);
    }
}
