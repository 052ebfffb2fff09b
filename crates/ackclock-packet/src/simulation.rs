//! The simulation: the only place where anything is scheduled.
//!
//! Sources of events, in the order in which they take a tie: links (the packet in transmission has
//! left), flights (the first packet of a stretch of delay arrives), then, after all of these, timers of
//! senders, timers of receivers, and the sampler. Each has at most one pending event ([`Agenda`]).
//!
//! What cannot queue is not an event: a receiver answers at the moment its packet leaves the last
//! queue, with its clock running ahead by the delay in between, and the answer goes straight into the
//! stretch of delay that leads back. Nothing else reads a receiver's state, so no result depends on it.

use std::collections::VecDeque;

use ackclock_units::Time;
use rand_core::RngCore;
use rand_pcg::Pcg64Mcg;

use crate::agenda::Agenda;
use crate::link::{self, Link, Offer};
use crate::packet::{Kind, Packet, NO_SACK};
use crate::path::Path;
use crate::pcap::Capture;
use crate::plan::{FlowPlan, Plan};
use crate::receiver::{Blocks, Receiver, Reply};
use crate::record::{Action, Happening, Tables, Totals, NONE};
use crate::sender::{self, Output, Sender, TIMESTAMPS_BYTES};
use crate::PlanError;

mod sampling;

/// A stretch of pure delay: packets in the order of their arrival.
#[derive(Default)]
struct Flight {
    packets: VecDeque<(Time, Packet)>,
}

/// Where the packets of a flight arrive.
#[derive(Clone, Copy)]
enum Destination {
    /// At the sender.
    Sender,
    /// At the next hop of their path.
    Hop,
}

struct Flow {
    sender: Sender,
    receiver: Receiver,
    forward: Path,
    reverse: Path,
    /// The flight that ends at the sender.
    home: u32,
    header_bytes: u32,
    /// Packets of it that a queue dropped or a link lost.
    dropped: u64,
    /// Packets that reached the sender.
    returned: u64,
    /// Packets that the receiver sent.
    answered: u64,
    at_warmup: Snapshot,
}

/// A flow's counts at the end of the warm-up.
#[derive(Clone, Copy, Default)]
struct Snapshot {
    delivered_bytes: u64,
    sent: sender::Counters,
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

    fn take(&mut self, slot: u32) -> Option<Blocks> {
        (slot != NO_SACK).then(|| {
            self.free.push(slot);
            self.slots[slot as usize]
        })
    }
}

/// A run in progress.
pub struct Simulation {
    now: Time,
    plan: Plan,
    links: Vec<Link>,
    flows: Vec<Flow>,
    flights: Vec<Flight>,
    destinations: Vec<Destination>,
    /// Links: the packet in transmission leaves.
    transmissions: Agenda,
    /// Flights: the first packet arrives.
    arrivals: Agenda,
    /// Timers of senders and receivers, and the sampler.
    timers: Agenda,
    sacks: SackStore,
    output: Output,
    tables: Tables,
    capture: Option<Capture>,
    sampled: Vec<link::Counters>,
    links_at_warmup: Vec<link::Counters>,
    warmed_up: bool,
}

impl Simulation {
    /// Prepares a run.
    ///
    /// # Errors
    /// If the plan names an algorithm or a link that is not there, or parameters that are not the
    /// card's.
    pub fn new(plan: &Plan, seed: u64) -> Result<Simulation, PlanError> {
        if plan.record.interval == Time::ZERO {
            return Err(PlanError::NotPositive("record.interval_s"));
        }
        let mut seeds = Pcg64Mcg::new(u128::from(seed) << 1 | 1);
        seeds.next_u64();
        let links = plan
            .links
            .iter()
            .map(|link| Link::new(link, plan.flows.len(), seeds.next_u64()))
            .collect::<Result<Vec<_>, _>>()?;
        let mut destinations = Vec::new();
        let mut flows = Vec::with_capacity(plan.flows.len());
        for (index, flow) in plan.flows.iter().enumerate() {
            check_path(plan, index, flow)?;
            flows.push(Flow::new(index as u32, flow, &mut destinations)?);
        }
        let timers = Agenda::new(2 * flows.len() + 1);
        let mut simulation = Simulation {
            now: Time::ZERO,
            plan: plan.clone(),
            transmissions: Agenda::new(links.len()),
            arrivals: Agenda::new(destinations.len()),
            timers,
            flights: destinations.iter().map(|_| Flight::default()).collect(),
            destinations,
            sacks: SackStore::default(),
            output: Output::default(),
            tables: Tables::default(),
            capture: plan.record.pcap.then(Capture::new),
            sampled: vec![link::Counters::default(); links.len()],
            links_at_warmup: vec![link::Counters::default(); links.len()],
            warmed_up: false,
            links,
            flows,
        };
        simulation.schedule_starts(seed);
        Ok(simulation)
    }

    fn schedule_starts(&mut self, seed: u64) {
        for (index, flow) in self.plan.flows.iter().enumerate() {
            let start = flow.start + flow.start_jitter.scaled(uniform(seed, index as u64));
            self.timers.set(index, start);
        }
        let sampler = 2 * self.flows.len();
        self.timers.set(sampler, Time::ZERO);
    }

    /// Handles all events up to and including `until`, at most the end of the run; returns the time
    /// reached.
    pub fn advance(&mut self, until: Time) -> Time {
        let until = until.min(self.plan.duration);
        while self.step(until) {}
        self.now = until;
        until
    }

    /// Handles the next event unless it lies beyond `until`.
    #[inline]
    fn step(&mut self, until: Time) -> bool {
        let (transmitted, link) = self.transmissions.next();
        let (arrival, flight) = self.arrivals.next();
        let (timer, owner) = self.timers.next();
        let next = transmitted.min(arrival).min(timer);
        if next > until || next.is_never() {
            return false;
        }
        self.now = next;
        if transmitted == next {
            self.on_transmitted(link);
        } else if arrival == next {
            self.on_arrival(flight);
        } else {
            self.handle_timer(owner);
        }
        true
    }

    /// Takes the rows recorded since the last call.
    pub fn drain(&mut self) -> Tables {
        std::mem::take(&mut self.tables)
    }

    /// Takes the bytes captured since the last call; empty unless a capture was asked for.
    pub fn take_capture(&mut self) -> Vec<u8> {
        self.capture.as_mut().map(Capture::take).unwrap_or_default()
    }

    /// Counts of the whole run and of its measured part, at the present time.
    pub fn finish(&mut self) -> Totals {
        self.totals()
    }

    // ---- events ----

    /// A link's packet has left it.
    #[inline]
    fn on_transmitted(&mut self, link: usize) {
        let (packet, next) = self.links[link].finish(self.now);
        self.transmissions.set(link, next.unwrap_or(Time::NEVER));
        self.settle_drops(link);
        if let Some(packet) = packet {
            self.log(link as u32, &packet, Action::Dequeue);
            self.pass_on(packet, packet.hop + 1);
        }
    }

    /// The first packet of a flight arrives.
    #[inline]
    fn on_arrival(&mut self, flight: usize) {
        let Some((_, packet)) = self.flights[flight].packets.pop_front() else {
            return;
        };
        let next = self.flights[flight].packets.front();
        let due = next.map_or(Time::NEVER, |&(time, _)| time);
        self.arrivals.set(flight, due);
        match self.destinations[flight] {
            Destination::Sender => self.reach_sender(packet),
            Destination::Hop => self.offer(packet),
        }
    }

    fn handle_timer(&mut self, owner: usize) {
        let flows = self.flows.len();
        if owner < flows {
            self.on_sender_timer(owner);
        } else if owner < 2 * flows {
            self.on_receiver_timer(owner - flows);
        } else {
            self.on_sampler();
        }
    }

    fn on_sender_timer(&mut self, index: usize) {
        let sender = &mut self.flows[index].sender;
        let due = sender.wake();
        if sender.started().is_never() {
            sender.start(self.now, &mut self.output);
        } else if due <= self.now {
            sender.on_timer(self.now, &mut self.output);
        }
        let wake = sender.wake();
        self.timers.set(index, wake);
        self.send_output(index);
    }

    /// A receiver's clock runs ahead of the simulation's by the delay from the last queue to it.
    fn on_receiver_timer(&mut self, index: usize) {
        let flow = &mut self.flows[index];
        let local = self.now + flow.forward.delay;
        let reply = if flow.receiver.wake() <= local {
            flow.receiver.on_timer(local)
        } else {
            None
        };
        self.timers.set(self.flows.len() + index, Time::NEVER);
        self.watch_receiver(index);
        if let Some(reply) = reply {
            self.answer(index, &reply, local);
        }
    }

    // ---- the way of a packet ----

    /// Sends a packet on towards hop number `hop` of its path, or to the far end after the last.
    #[inline]
    fn pass_on(&mut self, mut packet: Packet, hop: u8) {
        let flow = &self.flows[packet.flow as usize];
        let forward = packet.kind.is_forward();
        let path = if forward {
            &flow.forward
        } else {
            &flow.reverse
        };
        packet.hop = hop;
        if let Some(hop) = path.hops.get(usize::from(hop)) {
            let due = self.now + hop.delay;
            match hop.flight {
                Some(flight) => self.fly(flight, due, packet),
                None => self.offer(packet),
            }
        } else if forward {
            let local = self.now + path.delay;
            self.reach_receiver(&packet, local);
        } else {
            let (home, due) = (flow.home, self.now + path.delay);
            self.fly(home, due, packet);
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

    /// Offers a packet to the link of its present hop.
    #[inline]
    fn offer(&mut self, packet: Packet) {
        let flow = &self.flows[packet.flow as usize];
        let path = if packet.kind.is_forward() {
            &flow.forward
        } else {
            &flow.reverse
        };
        let link = path.hops[usize::from(packet.hop)].link as usize;
        let (offer, begun) = self.links[link].offer(packet, self.now);
        if let Some(done) = begun {
            self.transmissions.set(link, done);
        }
        if offer == Offer::Lost {
            self.lose(link as u32, &packet, Happening::Loss);
            return;
        }
        self.log(link as u32, &packet, Action::Enqueue);
        self.settle_drops(link);
    }

    #[inline]
    fn settle_drops(&mut self, link: usize) {
        if self.links[link].drops.is_empty() {
            return;
        }
        let dropped: Vec<Packet> = self.links[link].drops.drain().collect();
        for packet in &dropped {
            self.lose(link as u32, packet, Happening::Drop);
        }
    }

    fn lose(&mut self, link: u32, packet: &Packet, happening: Happening) {
        let action = if happening == Happening::Drop {
            Action::Drop
        } else {
            Action::Loss
        };
        self.log(link, packet, action);
        self.sacks.take(packet.sack);
        self.flows[packet.flow as usize].dropped += 1;
        let value = packet.sequence as f64;
        self.tables
            .events
            .push(self.now, packet.flow, link, happening, value);
    }

    /// A packet reaches the receiver at its local time; a delayed ACK that was due before goes first.
    #[inline]
    fn reach_receiver(&mut self, packet: &Packet, local: Time) {
        self.log_at(local, NONE, packet, Action::Arrive);
        let index = packet.flow as usize;
        let receiver = &mut self.flows[index].receiver;
        if receiver.wake() < local {
            let due = receiver.wake();
            if let Some(reply) = receiver.on_timer(due) {
                self.answer(index, &reply, due);
            }
        }
        let receiver = &mut self.flows[index].receiver;
        if let Some(reply) = receiver.on_packet(packet, local) {
            self.answer(index, &reply, local);
        }
        self.watch_receiver(index);
    }

    /// Keeps the receiver's entry in the agenda no later than its timer.
    #[inline]
    fn watch_receiver(&mut self, index: usize) {
        let flow = &self.flows[index];
        let wake = flow.receiver.wake();
        if !wake.is_never() {
            self.timers
                .advance(self.flows.len() + index, wake - flow.forward.delay);
        }
    }

    /// Sends the receiver's answer off at its local time.
    #[inline]
    fn answer(&mut self, index: usize, reply: &Reply, local: Time) {
        let flow = &mut self.flows[index];
        flow.answered += 1;
        let blocks = reply
            .blocks
            .as_ref()
            .map_or(0, |blocks| blocks.as_slice().len());
        let packet = Packet {
            sequence: reply.ack,
            timestamp: reply.echo,
            enqueued: local,
            flow: index as u32,
            wire_bytes: flow.header_bytes + option_bytes(reply, blocks as u32),
            sack: reply
                .blocks
                .map_or(NO_SACK, |blocks| self.sacks.put(blocks)),
            kind: reply.kind,
            ecn: crate::packet::Ecn::NotCapable,
            hop: 0,
            again: reply.duplicate,
        };
        let (flight, due) = match flow.reverse.hops.first() {
            None => (flow.home, local + flow.reverse.delay),
            Some(hop) => (hop.flight.unwrap_or(flow.home), local + hop.delay),
        };
        self.fly(flight, due, packet);
    }

    #[inline]
    fn reach_sender(&mut self, packet: Packet) {
        self.log(NONE, &packet, Action::Arrive);
        let blocks = self.sacks.take(packet.sack);
        let index = packet.flow as usize;
        if let Some(capture) = &mut self.capture {
            capture_packet(
                capture,
                &self.flows[index],
                &packet,
                blocks.as_ref(),
                self.now,
            );
        }
        let flow = &mut self.flows[index];
        flow.returned += 1;
        flow.sender
            .on_packet(&packet, blocks.as_ref(), self.now, &mut self.output);
        self.timers.advance(index, flow.sender.wake());
        self.send_output(index);
    }

    /// Sends what a sender has put out, and records what it reports.
    #[inline]
    fn send_output(&mut self, index: usize) {
        for position in 0..self.output.packets.len() {
            let packet = self.output.packets[position];
            if let Some(capture) = &mut self.capture {
                capture_packet(capture, &self.flows[index], &packet, None, self.now);
            }
            self.pass_on(packet, 0);
        }
        self.output.packets.clear();
        if !self.output.happenings.is_empty() {
            for &(happening, value) in &self.output.happenings {
                let events = &mut self.tables.events;
                events.push(self.now, index as u32, NONE, happening, value);
            }
            self.output.happenings.clear();
        }
    }

    // ---- the packet log ----

    #[inline]
    fn log(&mut self, link: u32, packet: &Packet, action: Action) {
        self.log_at(self.now, link, packet, action);
    }

    #[inline]
    fn log_at(&mut self, time: Time, link: u32, packet: &Packet, action: Action) {
        if self.plan.record.packets {
            self.tables.packets.push(time, link, packet, action);
        }
    }

    // ---- for tests: where the packets are ----

    /// Packets in queues, transmitters and flights.
    pub fn packets_under_way(&self) -> u64 {
        let queued: u64 = self.links.iter().map(Link::holds).sum();
        let flying: usize = self.flights.iter().map(|flight| flight.packets.len()).sum();
        queued + flying as u64
    }

    /// Packets sent, by senders and receivers, and packets gone: arrived, dropped or lost.
    pub fn packets_sent_and_gone(&self) -> (u64, u64) {
        self.flows.iter().fold((0, 0), |(sent, gone), flow| {
            let out = flow.sender.counters().sent_packets + flow.answered;
            let arrived = flow.receiver.received_packets() + flow.returned;
            (sent + out, gone + arrived + flow.dropped)
        })
    }

    /// The links, for inspection.
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// The senders, for inspection.
    pub fn senders(&self) -> impl Iterator<Item = &Sender> {
        self.flows.iter().map(|flow| &flow.sender)
    }
}

impl Flow {
    fn new(
        index: u32,
        plan: &FlowPlan,
        destinations: &mut Vec<Destination>,
    ) -> Result<Flow, PlanError> {
        let mut flight_to = |destination| {
            destinations.push(destination);
            (destinations.len() - 1) as u32
        };
        let forward = Path::new(&plan.forward, false, || flight_to(Destination::Hop));
        let reverse = Path::new(&plan.reverse, true, || flight_to(Destination::Hop));
        let home = flight_to(Destination::Sender);
        let timestamps = u32::from(plan.tcp.timestamps) * TIMESTAMPS_BYTES;
        Ok(Flow {
            sender: Sender::new(index, plan)?,
            receiver: Receiver::new(plan),
            forward,
            reverse,
            home,
            header_bytes: plan.tcp.header_bytes + timestamps,
            dropped: 0,
            returned: 0,
            answered: 0,
            at_warmup: Snapshot::default(),
        })
    }
}

fn check_path(plan: &Plan, index: usize, flow: &FlowPlan) -> Result<(), PlanError> {
    let hops = flow.forward.hops.iter().chain(&flow.reverse.hops);
    for hop in hops {
        if hop.link as usize >= plan.links.len() {
            return Err(PlanError::UnknownLink {
                flow: index,
                link: hop.link,
                links: plan.links.len(),
            });
        }
    }
    Ok(())
}

/// Bytes of the options that an answer carries beyond timestamps: those of a SYN/ACK, or the SACK
/// option (4 bytes with padding and 8 for each block, the one that reports a duplicate included).
fn option_bytes(reply: &Reply, blocks: u32) -> u32 {
    if reply.kind == Kind::SynAck {
        return sender::SYN_OPTIONS_BYTES - TIMESTAMPS_BYTES;
    }
    match blocks + u32::from(reply.duplicate) {
        0 => 0,
        blocks => 4 + 8 * blocks,
    }
}

/// A uniform draw from [0, 1) that depends on the seed and an index alone.
fn uniform(seed: u64, index: u64) -> f64 {
    let mut stream = Pcg64Mcg::new((u128::from(seed) << 64 | u128::from(index)) << 1 | 1);
    stream.next_u64();
    stream.next_u64();
    (stream.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

fn capture_packet(
    capture: &mut Capture,
    flow: &Flow,
    packet: &Packet,
    blocks: Option<&Blocks>,
    now: Time,
) {
    capture.record_packet(packet, blocks, flow.receiver.workload(), now);
}
