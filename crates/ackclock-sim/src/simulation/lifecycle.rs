//! Start and end of flows.
//!
//! A flow's sender, receiver and route are made when its start timer fires. They are dropped when both ends are
//! closed and every packet that they sent has arrived or is lost, so nothing can come late for a flow that is over.
//! (A flow whose very last packet is lost keeps them to the end of the run.)
//!
//! ```text
//!             first packet                both ends closed, no packet in transit
//!   Waiting ──────────────▶ Connection ───────────────────────────────────────▶ Over
//!      └──────────────────▶ Stream, to the end of the run
//! ```

use ackclock_core::tables::NONE;
use ackclock_core::Time;
use ackclock_traffic::{flow_stream, start_draw};
use rand_core::RngCore;

use super::connection::{Connection, Snapshot};
use super::rows::Row;
use super::stream::Stream;
use super::transfers::Task;
use super::{receiver_timer, sender_timer, Simulation, MAX_FLOWS, SAMPLER};
use crate::receiver::{Client, Receiver};
use crate::sender::Sender;

/// Stage of a flow.
///
/// The two ends exist from the first packet to the last. Of generated transfers only those are here that are next or
/// have begun.
pub enum Stage {
    /// Not begun; with the task of a generated transfer.
    Waiting(Option<Box<Task>>),
    /// A connection, from its first packet to its last.
    Connection(Box<Connection>),
    /// Datagrams, from the first to the end of the run.
    Stream(Box<Stream>),
    /// Ended; only its row is left.
    Over(Box<Row>),
    /// The slot is free. The row of its transfer is stored elsewhere until it is handed over.
    Vacant,
}

impl Stage {
    /// Task of a generated transfer that has begun.
    pub fn task(&self) -> Option<&Task> {
        match self {
            Stage::Connection(flow) => flow.task.as_deref(),
            _ => None,
        }
    }

    /// Packets that the two ends of an active flow have sent, and those that have arrived.
    pub fn packets(&self) -> (u64, u64) {
        match self {
            Stage::Connection(flow) => flow.packets(),
            Stage::Stream(stream) => stream.packets(),
            _ => (0, 0),
        }
    }
}

impl Simulation {
    pub(super) fn schedule_starts(&mut self) {
        self.timers.register(SAMPLER, u32::MAX);
        self.timers.set(SAMPLER, Time::ZERO);
        let flows = self.plan.flows.iter().zip(0..).map(|(flow, number)| {
            let draw = start_draw(self.seed, number);
            flow.start + flow.start_jitter.scaled(draw)
        });
        let numbers = self.plan.flows.len() as u64..;
        let datagrams = self.plan.datagrams.iter().zip(numbers);
        let datagrams = datagrams.map(|(flow, number)| {
            let jitter = flow.source.start_jitter();
            let draw = start_draw(self.seed, number);
            jitter.map_or(flow.start, |jitter| flow.start + jitter.scaled(draw))
        });
        let starts: Vec<Time> = flows.chain(datagrams).collect();
        for (slot, start) in starts.into_iter().enumerate() {
            self.await_start(slot, start, None);
        }
        for traffic in self.transfers.traffic() {
            self.await_next_of(traffic);
        }
    }

    /// Schedule the next transfer of a traffic with start times.
    fn await_next_of(&mut self, traffic: usize) {
        if let Some((transfer, start, task)) = self.transfers.next(traffic) {
            self.await_transfer(transfer, start.since(self.skipped), task);
        }
    }

    /// Assign a slot to a transfer and schedule its start.
    fn await_transfer(&mut self, transfer: usize, start: Time, task: Task) {
        let number = self.first_transfer() + transfer;
        let slot = self.network.assign_slot(number as u32);
        self.await_start(slot, start, Some(Box::new(task)));
    }

    /// Schedule the start of the flow in a slot.
    fn await_start(&mut self, slot: usize, start: Time, task: Option<Box<Task>>) {
        if slot >= self.stages.len() {
            self.stages.resize_with(slot + 1, || Stage::Vacant);
            self.timers.reserve(receiver_timer(slot) + 1);
        }
        self.stages[slot] = Stage::Waiting(task);
        let number = self.network.slots().number(slot);
        self.timers.register(sender_timer(slot), number);
        self.timers
            .register(receiver_timer(slot), MAX_FLOWS as u32 + number);
        self.timers.set(sender_timer(slot), start);
    }

    /// Number of the first generated transfer.
    pub(super) fn first_transfer(&self) -> usize {
        self.plan.flows.len() + self.plan.datagrams.len()
    }

    /// Begin the flow in a slot.
    pub(super) fn begin(&mut self, slot: usize, task: Option<Box<Task>>) {
        let number = self.network.slots().number(slot);
        let streams = self.plan.flows.len()..self.first_transfer();
        if streams.contains(&(number as usize)) {
            self.begin_stream(slot, slot - streams.start);
        } else {
            self.begin_connection(slot, task);
        }
        self.active.insert(number);
    }

    fn begin_connection(&mut self, slot: usize, task: Option<Box<Task>>) {
        let number = self.network.slots().number(slot);
        let (plan, prototype, path) = match &task {
            None => (&self.plan.flows[slot], &self.prototypes[slot], number),
            Some(task) => {
                let (path, _) = self.transfers.ends(task);
                let (plan, prototype) = self.transfers.flow(task);
                (plan, prototype, path.unwrap_or(NONE))
            }
        };
        let choices = flow_stream(self.seed, u64::from(number)).next_u64();
        let (has_sender, has_receiver) = match (&self.share, plan.ends) {
            (Some(share), Some(ends)) => share.owns_ends(ends),
            _ => (true, true),
        };
        let (entrance, lead) = self.network.open_connection(slot, path, plan);
        if self.plan.record.paths && has_sender {
            self.network.write_path(number, plan.ends);
        }
        let receiver = Receiver::new(plan);
        let awaited = task.as_ref().and_then(|task| task.transfer.completes);
        let follower = task.as_ref().and_then(|task| task.follower());
        let mut flow = Box::new(Connection {
            sender: Sender::new(number, plan, prototype).with_seed(choices),
            entrance,
            receiver,
            lead,
            at_warmup: Snapshot::default(),
            skipped_before: self.skipped,
            is_awaited: awaited.is_some(),
            task,
        });
        flow.sender.bring_forward(self.skipped);
        let is_client = flow.receiver.client().is_some();
        if is_client && has_receiver {
            if let Some(syn) = flow.receiver.open(self.now) {
                self.network.send_reply(number, &syn, self.now);
            }
            let due = flow.receiver_due().max(self.now);
            self.timers.set(receiver_timer(slot), due);
        }
        let mut due = Time::NEVER;
        if has_sender {
            if is_client {
                flow.sender.listen(self.now);
            } else {
                let mut entrance = flow.entrance(&mut self.network);
                flow.sender.start(self.now, &mut entrance);
            }
            due = flow.sender.wake();
        }
        self.timers.set(sender_timer(slot), due);
        self.stages[slot] = Stage::Connection(flow);
        if let Some(traffic) = follower {
            self.await_next_of(traffic);
        }
    }

    /// Follow up on an event of a connection: others may wait for it, or it may have ended.
    #[cold]
    pub(super) fn follow(&mut self, slot: usize) {
        let Stage::Connection(flow) = &mut self.stages[slot] else {
            return;
        };
        let events = flow.receiver.client_mut().map(Client::take_events);
        for (time, happening) in events.unwrap_or_default() {
            let number = self.network.slots().number(slot);
            let events = &mut self.network.tables.events;
            events.push(time.seconds(), number, NONE, happening, f64::NAN);
        }
        if let Some(end) = flow.finished().filter(|_| flow.is_awaited) {
            flow.is_awaited = false;
            let traffic = flow.task.as_ref().map(|task| task.traffic);
            self.let_others_begin(slot, traffic, end);
        }
        if self.share.is_none() {
            self.end_if_over(slot);
        }
    }

    /// Let others begin that wait for the completion of a transfer.
    fn let_others_begin(&mut self, slot: usize, traffic: Option<usize>, end: Time) {
        let Some(traffic) = traffic else { return };
        let transfer = self.network.slots().number(slot) as usize - self.first_transfer();
        if let Some((opens, waiting)) = self.transfers.complete(transfer, traffic, end) {
            for (transfer, task) in waiting {
                self.await_transfer(transfer, opens, task);
            }
        }
    }

    /// End a flow if both its ends are closed and none of its packets is in transit.
    pub(super) fn end_if_over(&mut self, slot: usize) {
        let Stage::Connection(flow) = &mut self.stages[slot] else {
            return;
        };
        let (sent, arrived) = flow.packets();
        let gone = self.network.lost_packets(slot);
        if !flow.is_closed() || sent + self.network.copies(slot) != arrived + gone {
            return;
        }
        let mut row = Row::of(flow, gone, self.now);
        if !self.warmed_up {
            row.forget();
        }
        let task = flow.task.take();
        row = self.with_delays(row, slot);
        if let Some(delays) = &mut self.delays {
            delays.end(slot);
        }
        let number = self.network.slots().number(slot);
        self.active.remove(&number);
        self.network.close_route(slot);
        self.timers.set(sender_timer(slot), Time::NEVER);
        self.timers.set(receiver_timer(slot), Time::NEVER);
        self.stages[slot] = match task {
            None => Stage::Over(Box::new(row)),
            Some(task) => {
                self.network.release_slot(slot);
                self.keep(number, *task, row);
                Stage::Vacant
            }
        };
    }
}
