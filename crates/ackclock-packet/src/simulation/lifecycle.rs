//! How flows begin and end.
//!
//! A flow's sender, receiver and route are made when its start timer fires. They are dropped when both ends are
//! closed and every packet that they sent has arrived or is lost, so nothing can come late for a flow that is over.
//! (A flow whose very last packet is lost keeps them to the end of the run.)

use ackclock_record::NONE;
use ackclock_traffic::{flow_stream, start_draw};
use ackclock_units::Time;
use rand_core::RngCore;

use super::connection::{Connection, Snapshot};
use super::rows::Row;
use super::stage::Stage;
use super::stream::Stream;
use super::Simulation;
use crate::datagram::{Sink, Source};
use crate::receiver::{Client, Receiver};
use crate::sender::Sender;

impl Simulation {
    pub(super) fn schedule_starts(&mut self) {
        for (index, flow) in self.plan.flows.iter().enumerate() {
            let start = flow.start
                + flow
                    .start_jitter
                    .scaled(start_draw(self.seed, index as u64));
            self.timers.set(index, start);
        }
        let first = self.plan.flows.len();
        for (index, datagrams) in self.plan.datagrams.iter().enumerate() {
            self.timers.set(first + index, datagrams.start);
        }
        for index in 0..self.transfers.len() {
            let start = self.transfers.start(index);
            self.timers.set(self.first_transfer() + index, start);
        }
        self.timers.set(2 * self.flows.len(), Time::ZERO);
    }

    /// The number of the first generated transfer.
    pub(super) fn first_transfer(&self) -> usize {
        self.plan.flows.len() + self.plan.datagrams.len()
    }

    /// A flow begins now.
    pub(super) fn begin(&mut self, index: usize) {
        let flows = self.plan.flows.len();
        if index < flows || index >= self.first_transfer() {
            self.begin_connection(index);
        } else {
            self.begin_stream(index, index - flows);
        }
        self.active.insert(index as u32);
    }

    fn begin_connection(&mut self, index: usize) {
        let number = index as u32;
        let transfer = index.checked_sub(self.first_transfer());
        let (plan, prototype, path) = match transfer {
            None => (&self.plan.flows[index], &self.prototypes[index], number),
            Some(transfer) => {
                let (path, _) = self.transfers.ends(transfer);
                let (plan, prototype) = self.transfers.flow(transfer);
                (plan, prototype, path.unwrap_or(NONE))
            }
        };
        let choices = flow_stream(self.seed, index as u64).next_u64();
        let (entrance, lead) = self.network.open_connection(number, path, plan);
        let receiver = Receiver::new(plan);
        let mut flow = Box::new(Connection {
            sender: Sender::new(number, plan, prototype).with_seed(choices),
            entrance,
            receiver,
            lead,
            at_warmup: Snapshot::default(),
            is_awaited: transfer.is_some_and(|transfer| self.transfers.is_awaited(transfer)),
        });
        if flow.receiver.client().is_some() {
            flow.sender.listen(self.now);
            if let Some(syn) = flow.receiver.open(self.now) {
                self.network.answer(number, &syn, self.now);
            }
            let due = flow.receiver_due().max(self.now);
            self.timers.set(self.flows.len() + index, due);
        } else {
            let mut entrance = flow.entrance(&mut self.network);
            flow.sender.start(self.now, &mut entrance);
        }
        self.timers.set(index, flow.sender.wake());
        self.flows[index] = Stage::Connection(flow);
    }

    fn begin_stream(&mut self, index: usize, number: usize) {
        let plan = &self.plan.datagrams[number];
        let flow = index as u32;
        let (entrance, _) = self.network.open_route(flow, flow, plan.ends);
        let stream = Stream {
            source: Source::new(flow, plan, self.now, self.seed, number as u64),
            entrance,
            sink: Sink::new(plan),
            started: self.now,
            at_warmup: (0, 0),
        };
        self.timers.set(index, stream.source.wake());
        self.flows[index] = Stage::Stream(Box::new(stream));
    }

    /// Something rare has happened to a connection: others may wait for it, or it may be over.
    #[cold]
    pub(super) fn follow(&mut self, index: usize) {
        let Stage::Connection(flow) = &mut self.flows[index] else {
            return;
        };
        let news = flow.receiver.client_mut().map(Client::take_news);
        for (time, happening) in news.unwrap_or_default() {
            let events = &mut self.network.tables.events;
            events.push(time.seconds(), index as u32, NONE, happening, f64::NAN);
        }
        if let Some(end) = flow.finished().filter(|_| flow.is_awaited) {
            flow.is_awaited = false;
            self.let_others_begin(index, end);
        }
        self.end_if_over(index);
    }

    /// A transfer that others wait for is complete.
    fn let_others_begin(&mut self, index: usize, end: Time) {
        let first = self.first_transfer();
        if let Some((opens, waiting)) = self.transfers.complete(index - first, end) {
            for &transfer in waiting {
                self.timers.set(first + transfer as usize, opens);
            }
        }
    }

    /// Ends a flow if both its ends are closed and none of its packets is under way.
    fn end_if_over(&mut self, index: usize) {
        let Stage::Connection(flow) = &self.flows[index] else {
            return;
        };
        let (sent, arrived) = flow.packets();
        let gone = self.network.gone(index);
        if !flow.is_closed() || sent != arrived + gone {
            return;
        }
        let mut row = Row::of(flow, gone, self.now);
        if !self.warmed_up {
            row.forget();
        }
        self.flows[index] = Stage::Over(self.kept(index, row));
        self.active.remove(&(index as u32));
        self.network.close_route(index as u32);
        self.timers.set(index, Time::NEVER);
        self.timers.set(self.flows.len() + index, Time::NEVER);
    }
}
