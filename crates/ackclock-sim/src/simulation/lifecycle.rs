//! How flows begin and end.
//!
//! A flow's sender, receiver and route are made when its start timer fires. They are dropped when both ends are
//! closed and every packet that they sent has arrived or is lost, so nothing can come late for a flow that is over.
//! (A flow whose very last packet is lost keeps them to the end of the run.)

use ackclock_core::tables::NONE;
use ackclock_core::Time;
use ackclock_traffic::{flow_stream, start_draw};
use rand_core::RngCore;

use super::connection::{Connection, Snapshot};
use super::rows::Row;
use super::stage::Stage;
use super::stream::Stream;
use super::transfers::Task;
use super::{receiver_timer, sender_timer, Simulation, MOST_FLOWS, SAMPLER};
use crate::datagram::{Sink, Source};
use crate::receiver::{Client, Receiver};
use crate::sender::Sender;

impl Simulation {
    pub(super) fn schedule_starts(&mut self) {
        self.timers.enrol(SAMPLER, u32::MAX);
        self.timers.set(SAMPLER, Time::ZERO);
        let flows = self.plan.flows.iter().zip(0..).map(|(flow, number)| {
            let draw = start_draw(self.seed, number);
            flow.start + flow.start_jitter.scaled(draw)
        });
        let datagrams = self.plan.datagrams.iter().map(|datagrams| datagrams.start);
        let starts: Vec<Time> = flows.chain(datagrams).collect();
        for (place, start) in starts.into_iter().enumerate() {
            self.await_start(place, start, None);
        }
        for traffic in self.transfers.traffic() {
            self.await_next_of(traffic);
        }
    }

    /// The next transfer of a traffic that begins at a time of its own waits for it.
    fn await_next_of(&mut self, traffic: usize) {
        if let Some((transfer, start, task)) = self.transfers.next(traffic) {
            self.await_transfer(transfer, start, task);
        }
    }

    /// A transfer gets a place and waits for its start.
    fn await_transfer(&mut self, transfer: usize, start: Time, task: Task) {
        let number = self.first_transfer() + transfer;
        let place = self.network.take_place(number as u32);
        self.await_start(place, start, Some(Box::new(task)));
    }

    /// The flow in a place waits for its start.
    fn await_start(&mut self, place: usize, start: Time, task: Option<Box<Task>>) {
        if place >= self.stages.len() {
            self.stages.resize_with(place + 1, || Stage::Nobody);
            self.timers.make_room(receiver_timer(place) + 1);
        }
        self.stages[place] = Stage::Waiting(task);
        let number = self.network.places().number(place);
        self.timers.enrol(sender_timer(place), number);
        self.timers
            .enrol(receiver_timer(place), MOST_FLOWS as u32 + number);
        self.timers.set(sender_timer(place), start);
    }

    /// The number of the first generated transfer.
    pub(super) fn first_transfer(&self) -> usize {
        self.plan.flows.len() + self.plan.datagrams.len()
    }

    /// The flow in a place begins now.
    pub(super) fn begin(&mut self, place: usize, task: Option<Box<Task>>) {
        let number = self.network.places().number(place);
        let streams = self.plan.flows.len()..self.first_transfer();
        if streams.contains(&(number as usize)) {
            self.begin_stream(place, place - streams.start);
        } else {
            self.begin_connection(place, task);
        }
        self.active.insert(number);
    }

    fn begin_connection(&mut self, place: usize, task: Option<Box<Task>>) {
        let number = self.network.places().number(place);
        let (plan, prototype, path) = match &task {
            None => (&self.plan.flows[place], &self.prototypes[place], number),
            Some(task) => {
                let (path, _) = self.transfers.ends(task);
                let (plan, prototype) = self.transfers.flow(task);
                (plan, prototype, path.unwrap_or(NONE))
            }
        };
        let choices = flow_stream(self.seed, u64::from(number)).next_u64();
        let (entrance, lead) = self.network.open_connection(place, path, plan);
        if self.plan.record.paths {
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
            is_awaited: awaited.is_some(),
            task,
        });
        if flow.receiver.client().is_some() {
            flow.sender.listen(self.now);
            if let Some(syn) = flow.receiver.open(self.now) {
                self.network.answer(number, &syn, self.now);
            }
            let due = flow.receiver_due().max(self.now);
            self.timers.set(receiver_timer(place), due);
        } else {
            let mut entrance = flow.entrance(&mut self.network);
            flow.sender.start(self.now, &mut entrance);
        }
        self.timers.set(sender_timer(place), flow.sender.wake());
        self.stages[place] = Stage::Connection(flow);
        if let Some(traffic) = follower {
            self.await_next_of(traffic);
        }
    }

    fn begin_stream(&mut self, place: usize, number: usize) {
        let plan = &self.plan.datagrams[number];
        let flow = place as u32;
        let (entrance, _) = self.network.open_route(place, flow, plan.ends);
        let stream = Stream {
            source: Source::new(flow, plan, self.now, self.seed, number as u64),
            entrance,
            sink: Sink::new(plan),
            started: self.now,
            at_warmup: (0, 0),
        };
        self.timers.set(sender_timer(place), stream.source.wake());
        self.stages[place] = Stage::Stream(Box::new(stream));
    }

    /// Something rare has happened to a connection: others may wait for it, or it may be over.
    #[cold]
    pub(super) fn follow(&mut self, place: usize) {
        let Stage::Connection(flow) = &mut self.stages[place] else {
            return;
        };
        let news = flow.receiver.client_mut().map(Client::take_news);
        for (time, happening) in news.unwrap_or_default() {
            let number = self.network.places().number(place);
            let events = &mut self.network.tables.events;
            events.push(time.seconds(), number, NONE, happening, f64::NAN);
        }
        if let Some(end) = flow.finished().filter(|_| flow.is_awaited) {
            flow.is_awaited = false;
            let traffic = flow.task.as_ref().map(|task| task.traffic);
            self.let_others_begin(place, traffic, end);
        }
        self.end_if_over(place);
    }

    /// A transfer that others wait for is complete.
    fn let_others_begin(&mut self, place: usize, traffic: Option<usize>, end: Time) {
        let Some(traffic) = traffic else { return };
        let transfer = self.network.places().number(place) as usize - self.first_transfer();
        if let Some((opens, waiting)) = self.transfers.complete(transfer, traffic, end) {
            for (transfer, task) in waiting {
                self.await_transfer(transfer, opens, task);
            }
        }
    }

    /// Ends a flow if both its ends are closed and none of its packets is under way.
    fn end_if_over(&mut self, place: usize) {
        let Stage::Connection(flow) = &mut self.stages[place] else {
            return;
        };
        let (sent, arrived) = flow.packets();
        let gone = self.network.gone(place);
        if !flow.is_closed() || sent + self.network.copies(place) != arrived + gone {
            return;
        }
        let mut row = Row::of(flow, gone, self.now);
        if !self.warmed_up {
            row.forget();
        }
        let task = flow.task.take();
        row = self.with_delays(row, place);
        if let Some(delays) = &mut self.delays {
            delays.end(place);
        }
        let number = self.network.places().number(place);
        self.active.remove(&number);
        self.network.close_route(place);
        self.timers.set(sender_timer(place), Time::NEVER);
        self.timers.set(receiver_timer(place), Time::NEVER);
        self.stages[place] = match task {
            None => Stage::Over(Box::new(row)),
            Some(task) => {
                self.network.give_place_back(place);
                self.keep(number, *task, row);
                Stage::Nobody
            }
        };
    }
}
