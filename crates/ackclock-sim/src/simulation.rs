//! The simulation: senders and receivers around the [`Network`], and the order of events.
//!
//! At equal times links come first, then arrivals, then timers of senders, timers of
//! receivers, and the sampler; among links, arrivals or flows the lower number comes first. Links with
//! propagation delay come after other links and before other arrivals, and changes of links after them.
//!
//! A receiver handles a packet at the moment it leaves its last queue, with its clock running ahead by
//! the delay in between. Nothing else reads a receiver's state, so no result depends on it.

use std::collections::BTreeSet;
use std::sync::Arc;

use ackclock_congestion::Prototype;
use ackclock_core::tables::{Flows, Tables, Totals};
use ackclock_core::Time;
use ackclock_plan::{EndsPlan, FlowPlan, PathPlan, Plan, TrafficPlan};

use crate::link;
use crate::network::Network;
use crate::packet::Packet;
use crate::receiver::{Receiver, Reply};
use crate::sender::Sender;
use crate::tournament_tree::TournamentTree;
use crate::PlanError;

mod agent;
mod connection;
mod delays;
mod external;
mod headers;
mod inspection;
mod leap;
mod lifecycle;
mod parts;
mod rows;
mod sampling;
mod stream;
mod streams;
mod transfers;

use delays::Delays;
use leap::Leaps;
use lifecycle::Stage;
pub use parts::Work;
use parts::{Parts, Share};
use rows::Row;
pub use stream::Stacks;
use transfers::{Task, Transfers};

/// Largest number of flows of a run: timers of receivers come after those of senders.
const MAX_FLOWS: usize = 1 << 31;
/// Index of the sampler's timer.
const SAMPLER: usize = 0;

/// Index of a sender's timer, by its flow's slot.
#[inline(always)]
fn sender_timer(slot: usize) -> usize {
    2 * slot + 2
}

/// Index of a receiver's timer, by its flow's slot.
#[inline(always)]
fn receiver_timer(slot: usize) -> usize {
    2 * slot + 3
}

/// A run in progress.
pub struct Simulation {
    now: Time,
    /// Time that leaps have skipped.
    skipped: Time,
    plan: Plan,
    seed: u64,
    /// Prototypes of the controllers, by flow of the plan.
    prototypes: Vec<Arc<Prototype>>,
    stacks: Stacks,
    network: Network,
    /// Stage of the flow in each slot.
    stages: Vec<Stage>,
    transfers: Transfers,
    /// Numbers of the flows that have begun and not ended.
    active: BTreeSet<u32>,
    /// Generated transfers that have ended, with their rows.
    ended: Vec<(u32, Task, Row)>,
    ready: Flows,
    /// The sampler, and by slot the timers of the sender and of the receiver. At equal times the senders come first,
    /// then the receivers, among them the lower number of a flow, and the sampler last.
    timers: TournamentTree,
    sampled: Vec<link::Counters>,
    links_at_warmup: Vec<link::Counters>,
    warmed_up: bool,
    /// One-way delays of packets, if they are recorded.
    delays: Option<Box<Delays>>,
    /// The leaps of the `hybrid` engine.
    leaps: Option<Box<Leaps>>,
    /// Packets and bytes of the bottleneck's queue in a leap.
    computed_backlog: Option<(u32, u64)>,
    /// Rank of the last event among those at the same time, in a run on several threads.
    rank: u64,
    /// Nodes and links of this part of a run on several threads.
    share: Option<Box<Share>>,
    /// The other parts of a run on several threads.
    parts: Option<Box<Parts>>,
}

impl Simulation {
    /// Prepare a run.
    ///
    /// # Errors
    /// An unknown algorithm or link, or parameters that differ from the algorithm's
    /// specification.
    pub fn new(plan: &Plan, seed: u64) -> Result<Simulation, PlanError> {
        Simulation::with_stacks(plan, seed, Stacks::new())
    }

    /// Prepare a run with users' stacks, each of which has a process of its own.
    ///
    /// # Errors
    /// Those of [`Simulation::new`], and a stack that is not given.
    pub fn with_stacks(plan: &Plan, seed: u64, stacks: Stacks) -> Result<Simulation, PlanError> {
        plan.check()?;
        let prototypes = prototypes(&plan.flows)?;
        plan.datagrams
            .iter()
            .try_for_each(|datagrams| stream::check(datagrams, &stacks))?;
        let given = plan.flows.len() + plan.datagrams.len();
        let transfers = Transfers::new(plan, seed, given as u32)?;
        let flows = given + transfers.len();
        if flows > MAX_FLOWS {
            return Err(PlanError::TooManyFlows {
                count: flows,
                max: MAX_FLOWS,
            });
        }
        let headers = headers::flow_headers(plan, &transfers, given);
        let mut network = Network::new(plan, paths(plan), &headers, given, seed)?;
        for ends in ends(plan, &transfers) {
            network.check_ends(ends)?;
        }
        let mut simulation = Simulation {
            now: Time::ZERO,
            skipped: Time::ZERO,
            seed,
            network,
            timers: TournamentTree::new(1),
            sampled: vec![link::Counters::default(); plan.links.len()],
            links_at_warmup: vec![link::Counters::default(); plan.links.len()],
            warmed_up: plan.warmup == Time::ZERO,
            delays: Delays::of_plan(plan),
            leaps: None,
            computed_backlog: None,
            rank: 0,
            share: None,
            parts: None,
            plan: plan.clone(),
            stacks,
            prototypes,
            stages: Vec::new(),
            transfers,
            active: BTreeSet::new(),
            ended: Vec::new(),
            ready: Flows::default(),
        };
        simulation.schedule_starts();
        Ok(simulation)
    }

    /// Handle all events up to and including `until`, at most the end of the run; returns the time
    /// reached.
    pub fn advance(&mut self, until: Time) -> Time {
        while !self.advance_within(until, u32::MAX) {}
        self.now()
    }

    /// Handle events up to `until`, but at most `max_events`, so that rows can be drained. Returns
    /// whether all events up to `until` have been handled.
    pub fn advance_within(&mut self, until: Time, max_events: u32) -> bool {
        let until = until.min(self.plan.duration).max(self.now());
        if self.parts.is_some() {
            self.advance_parts(until, max_events)
        } else if self.leaps.is_some() {
            self.advance_with_leaps(until, max_events)
        } else {
            self.handle_events(until, max_events)
        }
    }

    /// Handle at most `max_events` events up to `until` by the engine's clock.
    fn handle_events(&mut self, until: Time, max_events: u32) -> bool {
        if self.network.has_propagation() {
            self.steps::<true>(until, max_events)
        } else {
            self.steps::<false>(until, max_events)
        }
    }

    /// Run the event loop. It is compiled twice, because without propagation delays one test less for each
    /// event and one branch less for a packet to its sender pay off.
    #[inline(never)]
    fn steps<const FLIGHTS: bool>(&mut self, until: Time, max_events: u32) -> bool {
        for _ in 0..max_events {
            if !self.step::<FLIGHTS, false>(until) {
                self.now = until;
                self.network.catch_up(until);
                return true;
            }
        }
        false
    }

    /// The present time; during a leap the time up to which the run has been asked for.
    pub fn now(&self) -> Time {
        let reached = self
            .leaps
            .as_ref()
            .map_or(Time::ZERO, |leaps| leaps.reached());
        self.plan_time().max(reached)
    }

    /// Handle the next event unless it is later than `until`; record its rank if that is `RANKED`.
    #[inline(always)]
    fn step<const FLIGHTS: bool, const RANKED: bool>(&mut self, until: Time) -> bool {
        let (transmitted, link) = self.network.next_transmission();
        let (arrival, flight) = self.network.next_arrival();
        let (due, owner) = self.timers.next();
        let next = transmitted.min(arrival).min(due);
        if FLIGHTS {
            if let Some((time, source)) = self.network.link_event_before(next, transmitted) {
                if RANKED {
                    self.rank = parts::rank(parts::LINK, source as u32);
                }
                return time <= until && self.on_link_event(time, source);
            }
        }
        if next > until || next.is_never() {
            return false;
        }
        self.set_time(next);
        if RANKED {
            self.rank = self.rank_of((transmitted == next).then_some(link), arrival == next);
        }
        if transmitted == next {
            if let Some((packet, local)) = self.network.on_transmitted(link) {
                self.reach_receiver(&packet, local);
            }
        } else if arrival == next {
            if let Some((slot, packet)) = self.network.on_arrival(flight) {
                if FLIGHTS && packet.kind.is_forward() {
                    self.reach_receiver(&packet, next);
                } else {
                    self.reach_sender(slot, &packet);
                }
                self.network.schedule_next_return(slot);
            }
        } else {
            self.handle_timer(owner);
        }
        true
    }

    #[inline(always)]
    fn set_time(&mut self, now: Time) {
        debug_assert!(now >= self.now, "time runs back to {now:?}");
        self.now = now;
        self.network.set_time(now);
    }

    /// Handle an event of a link with propagation delay.
    #[inline(never)]
    fn on_link_event(&mut self, now: Time, source: usize) -> bool {
        self.set_time(now);
        if let Some((packet, local)) = self.network.on_link_event(source) {
            if packet.kind.is_forward() {
                self.reach_receiver(&packet, local);
            } else {
                self.reach_sender(self.network.slots().slot_of(packet.flow), &packet);
            }
        }
        true
    }

    /// Take the rows recorded since the last call.
    pub fn drain(&mut self) -> Tables {
        if self.parts.is_some() {
            return self.drain_parts();
        }
        let mut rows = self.network.take_rows();
        if let Some(delays) = &mut self.delays {
            rows.delays = delays.take_rows(self.now >= self.plan.duration);
        }
        rows
    }

    /// Take rows of generated transfers that have ended. They come when there are many, each time in the order of
    /// their numbers; what is left of them comes with [`Simulation::finish`].
    pub fn take_ended(&mut self) -> Flows {
        std::mem::take(&mut self.ready)
    }

    /// Totals of the run and of its measured part, at the present time. The last rows may be taken then.
    pub fn finish(&mut self) -> Totals {
        self.network.finish_ground_truth();
        self.with_all_parts(Simulation::totals)
    }

    // ---- packets at their ends ----

    #[inline(always)]
    fn reach_sender(&mut self, slot: usize, packet: &Packet) {
        let blocks = self.network.take_blocks(packet);
        let Stage::Connection(flow) = &mut self.stages[slot] else {
            return self.reach_source(slot, packet.for_record());
        };
        let mut entrance = flow.entrance(&mut self.network);
        flow.sender
            .on_packet(packet, blocks.as_ref(), self.now, &mut entrance);
        self.timers.advance(sender_timer(slot), flow.sender.wake());
        if flow.is_awaited || flow.sender.is_done() {
            self.follow(slot);
        }
    }

    /// Deliver a packet to the receiver at its local time; timers that were due before go first.
    #[inline(always)]
    fn reach_receiver(&mut self, packet: &Packet, local: Time) {
        let slot = self.network.slots().slot_of(packet.flow);
        if let Some(delays) = &mut self.delays {
            delays.on_arrival(slot, &packet.for_record(), local);
        }
        let Stage::Connection(flow) = &mut self.stages[slot] else {
            return self.reach_sink(slot, packet.for_record(), local);
        };
        let receiver = &mut flow.receiver;
        if receiver.wake() < local {
            fire_timers(receiver, &mut self.network, packet.flow, local);
        }
        if let Some(reply) = receiver.on_packet(packet, local) {
            if let Some(earlier) = receiver.take_earlier() {
                send_rare_reply(receiver, &mut self.network, packet.flow, &earlier, local);
            }
            send_reply(receiver, &mut self.network, packet.flow, &reply, local);
        }
        let is_rare = receiver.is_closed() || receiver.client().is_some();
        // The receiver's entry in the tree is no later than its timer.
        let due = flow.receiver_due();
        if !due.is_never() {
            self.timers.advance(receiver_timer(slot), due);
        }
        if is_rare {
            self.follow(slot);
        }
    }

    // ---- timers ----

    fn handle_timer(&mut self, owner: usize) {
        if owner == SAMPLER {
            self.on_sampler();
        } else if owner == sender_timer(owner / 2 - 1) {
            self.on_sender_timer(owner / 2 - 1);
        } else {
            self.on_receiver_timer(owner / 2 - 1);
        }
    }

    /// Handle a sender's timer. Timers are lazy: an entry may be earlier than its deadline, never later.
    fn on_sender_timer(&mut self, slot: usize) {
        match &mut self.stages[slot] {
            Stage::Waiting(task) => {
                let task = task.take();
                self.begin(slot, task);
            }
            Stage::Connection(flow) => {
                if flow.sender.wake() <= self.now {
                    let mut entrance = flow.entrance(&mut self.network);
                    flow.sender.on_timer(self.now, &mut entrance);
                }
                self.timers.set(sender_timer(slot), flow.sender.wake());
            }
            Stage::Stream(_) => self.on_source_timer(slot),
            Stage::Over(_) | Stage::Vacant => self.timers.set(sender_timer(slot), Time::NEVER),
        }
    }

    /// Handle a receiver's timer. Its clock runs ahead of the simulation's by the delay from the last queue to it; only
    /// its first SYN is sent by the simulation's clock, so a timer may be due before the clocks have come apart.
    fn on_receiver_timer(&mut self, slot: usize) {
        if matches!(self.stages[slot], Stage::Stream(_)) {
            return self.on_sink_timer(slot);
        }
        let mut due = Time::NEVER;
        if let Stage::Connection(flow) = &mut self.stages[slot] {
            let local = (self.now + flow.lead).min(flow.receiver.wake());
            if flow.receiver.wake() <= local {
                if let Some(reply) = flow.receiver.on_timer(local) {
                    let number = self.network.slots().number(slot);
                    send_rare_reply(&mut flow.receiver, &mut self.network, number, &reply, local);
                }
            }
            due = flow.receiver_due().max(self.now);
            if flow.receiver.client().is_some() {
                self.follow(slot);
            }
        }
        self.timers.set(receiver_timer(slot), due);
    }
}

/// Fire the receiver's timers that are due before `local`.
#[cold]
fn fire_timers(receiver: &mut Receiver, network: &mut Network, flow: u32, local: Time) {
    while receiver.wake() < local {
        let due = receiver.wake();
        if let Some(reply) = receiver.on_timer(due) {
            send_rare_reply(receiver, network, flow, &reply, due);
        }
    }
}

/// Send a reply other than that to the packet just received, out of line.
#[inline(never)]
fn send_rare_reply(
    receiver: &mut Receiver,
    network: &mut Network,
    flow: u32,
    reply: &Reply,
    local: Time,
) {
    send_reply(receiver, network, flow, reply, local);
}

/// Send a receiver's reply, or what a misbehaving one sends in its place.
#[inline(always)]
fn send_reply(
    receiver: &mut Receiver,
    network: &mut Network,
    flow: u32,
    reply: &Reply,
    local: Time,
) {
    if !receiver.misbehaves() {
        return network.send_reply(flow, reply, local);
    }
    for ack in receiver.misbehave(reply) {
        network.send_reply(flow, &ack, local);
    }
}

/// Prototypes of the controllers, by flow. Neighbours with the same algorithm share one.
fn prototypes(flows: &[FlowPlan]) -> Result<Vec<Arc<Prototype>>, PlanError> {
    let same = |one: &FlowPlan, next: &FlowPlan| {
        one.congestion == next.congestion && one.tcp.initial_window == next.tcp.initial_window
    };
    let mut prototypes = Vec::with_capacity(flows.len());
    for neighbours in flows.chunk_by(same) {
        let prototype = Sender::prototype(&neighbours[0])?;
        prototypes.resize(prototypes.len() + neighbours.len(), prototype);
    }
    Ok(prototypes)
}

/// Explicit paths: of the flows, of the datagrams, of the traffic.
fn paths(plan: &Plan) -> impl Iterator<Item = (&PathPlan, &PathPlan)> {
    let flows = plan.flows.iter().map(|flow| (&flow.forward, &flow.reverse));
    let datagrams = plan.datagrams.iter();
    let datagrams = datagrams.map(|datagrams| (&datagrams.forward, &datagrams.reverse));
    let traffic = plan.traffic.iter().flat_map(TrafficPlan::paths);
    let traffic = traffic.map(|path| (&path.forward, &path.reverse));
    flows.chain(datagrams).chain(traffic)
}

/// Hosts between which flows are routed.
fn ends<'a>(plan: &'a Plan, transfers: &'a Transfers) -> impl Iterator<Item = EndsPlan> + 'a {
    let flows = plan.flows.iter().map(|flow| flow.ends);
    let datagrams = plan.datagrams.iter().map(|datagrams| datagrams.ends);
    flows.chain(datagrams).flatten().chain(transfers.nodes())
}
