//! One run on several threads: parts of a graph, each a simulation restricted to its own nodes.
//!
//! Every part has the whole plan and begins every flow, but an end of a flow sends and receives only in the part of its
//! host, and a link is used only in the part of the node that it leaves ([`crate::partition`]). The parts simulate
//! windows of the lookahead: what enters a cut link within a window arrives after it, so packets are exchanged between
//! windows ([`exchange`]; R. Fujimoto: Parallel discrete event simulation, CACM 33(10), 1990). An event changes only its
//! own part, and within each part the order of events is that of a run on one thread, so the results are the same. Rows
//! are merged in that order ([`merge`]).
//!
//! A flow ends between two calls, when both its ends are closed and none of its packets is in transit: nothing depends on
//! when that is. Two packets of one flow that reach its two ends at the same picosecond are in no common order; they
//! cannot affect each other, only the order of rows that both write.

use std::mem::swap;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread;

use ackclock_core::Time;
use ackclock_plan::{EndsPlan, Plan};

use super::connection::Connection;
use super::lifecycle::Stage;
use super::sampling::MAX_ENDED;
use super::{receiver_timer, sender_timer, Simulation, Stacks, MAX_FLOWS, SAMPLER};
use crate::network::Handover;
use crate::partition::Partition;
use crate::PlanError;

mod exchange;
mod merge;

use exchange::{Exchange, PollLimit};
use merge::Stamps;

/// Events that a window counts for besides its own, so that a call of many short windows ends in time.
const WINDOW_EVENTS: u64 = 64;

/// Kinds of events, in their order at equal times.
const TRANSMISSION: u64 = 0;
pub const LINK: u64 = 1;
const ARRIVAL: u64 = 2;
const TIMER: u64 = 3;

/// Rank of an event among those at the same time: its kind, then its number.
pub fn rank(kind: u64, number: u32) -> u64 {
    kind << 32 | u64::from(number)
}

/// Nodes and links that a part simulates.
pub struct Share {
    part: u16,
    partition: Arc<Partition>,
    /// Part that owns each link.
    link_owners: Vec<u16>,
    /// Links to other parts, with those parts.
    cut: Vec<(usize, u16)>,
    /// Packets to be handed over, by part.
    outgoing: Vec<Vec<Handover>>,
    /// Order of the rows since the last drain.
    stamps: Stamps,
    work: Work,
}

/// Work of a run on several threads, counted in events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Windows in which the parts advanced together.
    pub windows: u64,
    /// Events of all parts. What every part does, as starts of flows and samples, is counted in each.
    pub events: u64,
    /// Sum over the windows of the events of the part that had most: the critical path.
    pub critical_events: u64,
}

/// The parts but the first.
pub struct Parts {
    others: Vec<Simulation>,
}

impl Share {
    fn new(part: u16, partition: &Arc<Partition>, plan: &Plan) -> Share {
        let owner = |node: u32| partition.owners[node as usize];
        let ends = || plan.links.iter().filter_map(|link| link.ends);
        let cut = ends()
            .enumerate()
            .filter(|(_, ends)| owner(ends.source) == part && owner(ends.destination) != part);
        Share {
            part,
            link_owners: ends().map(|ends| owner(ends.source)).collect(),
            cut: cut
                .map(|(link, ends)| (link, owner(ends.destination)))
                .collect(),
            outgoing: (0..partition.parts).map(|_| Vec::new()).collect(),
            partition: Arc::clone(partition),
            stamps: Stamps::default(),
            work: Work::default(),
        }
    }

    /// True if this part simulates the link.
    pub fn owns_link(&self, link: usize) -> bool {
        self.link_owners[link] == self.part
    }

    fn owner(&self, node: u32) -> usize {
        usize::from(self.partition.owners[node as usize])
    }

    /// Return whether the sender and the receiver of a flow between two nodes are simulated here.
    pub fn owns_ends(&self, ends: EndsPlan) -> (bool, bool) {
        let is_own = |node| self.owner(node) == usize::from(self.part);
        (is_own(ends.source), is_own(ends.destination))
    }
}

impl Simulation {
    /// Simulate on up to `threads` threads (at least 1); call it before the run begins. Returns the number of threads.
    ///
    /// # Errors
    /// The reason why the run has to stay on one thread.
    pub fn enable_threads(&mut self, threads: usize) -> Result<usize, &'static str> {
        if let Some(reason) = self.obstacle_to_threads() {
            return Err(reason);
        }
        if threads <= 1 {
            return Ok(1);
        }
        let partition = Partition::new(&self.plan, threads)
            .ok_or("its hosts are all at one switch, or joined by links without delay")?;
        let partition = Arc::new(partition);
        let others = self
            .others(&partition)
            .map_err(|_| "a part of it cannot be set up")?;
        self.restrict(0, &partition);
        self.parts = Some(Box::new(Parts { others }));
        Ok(partition.parts)
    }

    /// Set up the parts but the first, each on a separate thread: each has the state of the whole network.
    fn others(&self, partition: &Arc<Partition>) -> Result<Vec<Simulation>, PlanError> {
        let (plan, seed) = (&self.plan, self.seed);
        let set_up = |part: u16| -> Result<Simulation, PlanError> {
            let mut other = Simulation::with_stacks(plan, seed, Stacks::new())?;
            other.restrict(part, partition);
            Ok(other)
        };
        thread::scope(|scope| {
            let parts = 1..partition.parts as u16;
            let threads: Vec<_> = parts
                .map(|part| scope.spawn(move || set_up(part)))
                .collect();
            let joined = threads.into_iter().map(thread::ScopedJoinHandle::join);
            joined
                .map(|part| part.unwrap_or_else(|panic| resume_unwind(panic)))
                .collect()
        })
    }

    /// Work of the run so far; `None` on one thread.
    pub fn work(&self) -> Option<Work> {
        self.share.as_ref().map(|share| share.work)
    }

    /// Reason why a run cannot be divided.
    fn obstacle_to_threads(&self) -> Option<&'static str> {
        let plan = &self.plan;
        let has_paths = plan.flows.iter().any(|flow| flow.ends.is_none())
            || plan
                .traffic
                .iter()
                .any(|traffic| !traffic.paths().is_empty());
        let record = &plan.record;
        let reasons = [
            (
                plan.nodes.is_empty() || has_paths,
                "its flows have fixed paths, not routes between nodes",
            ),
            (
                plan.links.iter().any(|link| link.ends.is_none()),
                "a link has no nodes",
            ),
            (
                self.share.is_some() || self.now > Time::ZERO,
                "it has begun",
            ),
            (self.leaps.is_some(), "the engine is hybrid"),
            (!plan.datagrams.is_empty(), "it has flows over UDP"),
            (!plan.changes.is_empty(), "its links change"),
            (
                plan.links.iter().any(|link| link.medium.is_some()),
                "it has impairments",
            ),
            (
                record.packets || record.delays || !record.pcap.vantages().is_empty(),
                "it records single packets or their delays",
            ),
            (
                !self.transfers.are_independent(),
                "transfers begin when others are complete",
            ),
            (
                self.transfers.len() >= MAX_ENDED,
                "it has more than 65,535 generated transfers",
            ),
        ];
        let first = reasons.into_iter().find(|(applies, _)| *applies);
        first.map(|(_, reason)| reason)
    }

    fn restrict(&mut self, part: u16, partition: &Arc<Partition>) {
        let share = Share::new(part, partition, &self.plan);
        for &(link, _) in &share.cut {
            self.network.cut(link);
        }
        self.share = Some(Box::new(share));
    }

    /// Advance all parts, each on a separate thread; stops after the window in which the events of all parts and the
    /// work of the windows reach `max_events`. Returns whether all events up to `until` have been handled.
    pub(super) fn advance_parts(&mut self, until: Time, max_events: u32) -> bool {
        let Some(mut parts) = self.parts.take() else {
            return true;
        };
        let exchange = Exchange::new(parts.others.len() + 1);
        let all = thread::scope(|scope| {
            let others = parts.others.iter_mut();
            let threads: Vec<_> = others
                .map(|part| scope.spawn(|| part.advance_part(&exchange, until, max_events)))
                .collect();
            let all = self.advance_part(&exchange, until, max_events);
            for thread in threads {
                if let Err(panic) = thread.join() {
                    resume_unwind(panic);
                }
            }
            all
        });
        self.end_flows(&mut parts);
        self.parts = Some(parts);
        all
    }

    /// Advance this part, in step with the others.
    fn advance_part(&mut self, exchange: &Exchange, until: Time, max_events: u32) -> bool {
        let _guard = exchange.guard();
        let Some(share) = &self.share else {
            return true;
        };
        let (part, lookahead) = (usize::from(share.part), share.partition.lookahead);
        let mut events = 0;
        let mut total = 0;
        let mut poll_limit = PollLimit::default();
        for round in 0.. {
            let next = self.send_handovers(exchange, round);
            exchange.post(round, part, next, events);
            if !exchange.wait(round, &mut poll_limit) {
                break;
            }
            exchange.receive(round, part, |handover| self.network.take_over(handover));
            let start = exchange.earliest(round);
            let (sum, largest) = exchange.events(round);
            total += sum + u64::from(round > 0) * WINDOW_EVENTS;
            if let Some(share) = &mut self.share {
                share.work.windows += u64::from(round > 0);
                share.work.events += sum;
                share.work.critical_events += largest;
            }
            if start > until {
                self.now = until;
                self.network.catch_up(until);
                return true;
            }
            if total >= u64::from(max_events) {
                break;
            }
            let end = start + lookahead - Time::from_picoseconds(1);
            events = self.run_window(end.min(until));
        }
        false
    }

    /// Send the packets on cut links to the other parts. Returns the earliest time of an event here, or of one of
    /// theirs that it causes.
    fn send_handovers(&mut self, exchange: &Exchange, round: u64) -> Time {
        let mut earliest = self.next_event();
        let Some(share) = &mut self.share else {
            return earliest;
        };
        for &(link, part) in &share.cut {
            let handovers = &mut share.outgoing[usize::from(part)];
            earliest = earliest.min(self.network.hand_over(link, self.now, handovers));
        }
        for (to, handovers) in share.outgoing.iter_mut().enumerate() {
            if !handovers.is_empty() {
                exchange.send(round, (usize::from(share.part), to), handovers);
            }
        }
        earliest
    }

    /// Handle the events up to `until`; returns how many there were.
    fn run_window(&mut self, until: Time) -> u64 {
        let mut events = 0;
        while self.step::<true, true>(until) {
            events += 1;
            if let Some(share) = &mut self.share {
                let tables = &self.network.tables;
                share.stamps.record(self.now, self.rank, tables);
            }
        }
        self.now = until;
        events
    }

    /// Rank of the next event that is not of a link with propagation delay: of one without it that has transmitted a
    /// packet, of an arrival, or of a timer.
    pub(super) fn rank_of(&self, transmitted: Option<usize>, is_arrival: bool) -> u64 {
        let number = |slot: usize| self.network.slots().number(slot);
        if let Some(link) = transmitted {
            return rank(TRANSMISSION, link as u32);
        }
        if is_arrival {
            let (_, source) = self.network.next_arrival();
            return rank(ARRIVAL, number(source));
        }
        let (_, owner) = self.timers.next();
        if owner == SAMPLER {
            rank(TIMER, u32::MAX)
        } else if owner == sender_timer(owner / 2 - 1) {
            rank(TIMER, number(owner / 2 - 1))
        } else {
            rank(TIMER, MAX_FLOWS as u32 + number(owner / 2 - 1))
        }
    }

    /// End the flows of which both ends are closed and no packet is in transit.
    fn end_flows(&mut self, parts: &mut Parts) {
        let closed = |&number: &u32| {
            let (sender, receiver) = self.ends_in(parts, number)?;
            let lost: u64 = self
                .all_of(parts)
                .map(|part| part.lost_packets(number))
                .sum();
            let sent = sender.sender.counters.sent_packets + receiver.receiver.sent_packets;
            let arrived =
                sender.sender.counters.received_packets + receiver.receiver.received_packets;
            let is_over = sender.sender.is_done() && receiver.receiver.is_closed();
            (is_over && sent == arrived + lost).then_some(number)
        };
        let ended: Vec<u32> = self.active.iter().filter_map(closed).collect();
        for number in ended {
            self.swap_flow(parts, number);
            for other in &mut parts.others {
                other.forget_flow(other.network.slots().slot_of(number));
            }
            self.end_if_over(self.network.slots().slot_of(number));
        }
    }

    /// All parts, this one first.
    fn all_of<'a>(&'a self, parts: &'a Parts) -> impl Iterator<Item = &'a Simulation> {
        std::iter::once(self).chain(&parts.others)
    }

    fn lost_packets(&self, number: u32) -> u64 {
        self.network
            .lost_packets(self.network.slots().slot_of(number))
    }

    /// The connection of an active flow in the parts of its sender and of its receiver.
    fn ends_in<'a>(
        &'a self,
        parts: &'a Parts,
        number: u32,
    ) -> Option<(&'a Connection, &'a Connection)> {
        let (sender, receiver) = self.parts_of(number)?;
        let part = |index| self.all_of(parts).nth(index);
        Some((
            part(sender)?.connection(number)?,
            part(receiver)?.connection(number)?,
        ))
    }

    fn connection(&self, number: u32) -> Option<&Connection> {
        match &self.stages[self.network.slots().slot_of(number)] {
            Stage::Connection(flow) => Some(flow),
            _ => None,
        }
    }

    /// Parts of the sender and of the receiver of an active flow.
    fn parts_of(&self, number: u32) -> Option<(usize, usize)> {
        let share = self.share.as_ref()?;
        let ends = match self.plan.flows.get(number as usize) {
            Some(plan) => plan.ends,
            None => {
                self.transfers
                    .ends(self.connection(number)?.task.as_ref()?)
                    .1
            }
        }?;
        Some((share.owner(ends.source), share.owner(ends.destination)))
    }

    /// Exchange the two ends of an active flow with the parts that simulate them, and take the losses that all count.
    fn swap_flow(&mut self, parts: &mut Parts, number: u32) {
        let Some((sender, receiver)) = self.parts_of(number) else {
            return;
        };
        let slot = self.network.slots().slot_of(number);
        let Stage::Connection(own) = &mut self.stages[slot] else {
            return;
        };
        if let Some(flow) = parts.connection_mut(sender, number) {
            swap(&mut own.sender, &mut flow.sender);
            swap(&mut own.at_warmup.sent, &mut flow.at_warmup.sent);
        }
        if let Some(flow) = parts.connection_mut(receiver, number) {
            swap(&mut own.receiver, &mut flow.receiver);
            let (here, there) = (&mut own.at_warmup, &mut flow.at_warmup);
            swap(&mut here.delivered_bytes, &mut there.delivered_bytes);
        }
        for other in &mut parts.others {
            let other_slot = other.network.slots().slot_of(number);
            self.network
                .move_losses(slot, &mut other.network, other_slot);
        }
    }

    /// Forget a flow that another part writes the row of.
    fn forget_flow(&mut self, slot: usize) {
        let number = self.network.slots().number(slot);
        self.active.remove(&number);
        self.network.close_route(slot);
        self.timers.set(sender_timer(slot), Time::NEVER);
        self.timers.set(receiver_timer(slot), Time::NEVER);
        self.stages[slot] = Stage::Vacant;
        if number as usize >= self.first_transfer() {
            self.network.release_slot(slot);
        }
    }

    /// Read the whole network: its links and flows are moved into this part, and back to theirs afterwards.
    pub(super) fn with_all_parts<T>(&mut self, read: impl FnOnce(&mut Simulation) -> T) -> T {
        let Some(mut parts) = self.parts.take() else {
            return read(self);
        };
        self.swap_all(&mut parts);
        let result = read(self);
        self.swap_all(&mut parts);
        self.parts = Some(parts);
        result
    }

    fn swap_all(&mut self, parts: &mut Parts) {
        let owners = self.share.as_ref().map(|share| share.link_owners.clone());
        for (link, part) in owners.into_iter().flatten().enumerate() {
            if let Some(other) = usize::from(part).checked_sub(1) {
                let other = &mut parts.others[other];
                self.network.swap_link(link, &mut other.network);
                swap(
                    &mut self.links_at_warmup[link],
                    &mut other.links_at_warmup[link],
                );
            }
        }
        let active: Vec<u32> = self.active.iter().copied().collect();
        for number in active {
            self.swap_flow(parts, number);
        }
    }
}

impl Parts {
    /// The connection of a flow in a part other than the first.
    fn connection_mut(&mut self, part: usize, number: u32) -> Option<&mut Connection> {
        let other = &mut self.others[part.checked_sub(1)?];
        let slot = other.network.slots().slot_of(number);
        match &mut other.stages[slot] {
            Stage::Connection(flow) => Some(flow),
            _ => None,
        }
    }
}
