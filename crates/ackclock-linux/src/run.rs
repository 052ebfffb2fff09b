//! A run inside the kernel: one loop that waits for sockets and for its own times.
//!
//! ```text
//!   flow:  Waiting ── SYN ──▶ Active ── both ends closed ──▶ Over
//!             └──── first datagram ──▶ Stream, to the end of the run
//! ```

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap};
use std::net::SocketAddrV4;
use std::os::fd::{AsFd, OwnedFd};

use ackclock_core::tables::{EventKind, NamedTables, NONE};
use ackclock_core::Time;
use rustix::event::epoll;

use crate::capture::{self, Capture};
use crate::clock::{Clock, Lateness};
use crate::connection::Connection;
use crate::drops::Monitor;
use crate::error::Tried;
use crate::frame::Headers;
use crate::hosts::{Hosts, Ports, Service};
use crate::namespaces::Namespaces;
use crate::plans::Plans;
use crate::queues::{Fate, Queues};
use crate::rows::Row;
use crate::run_spec::{AppTiming, RunSpec};
use crate::store::Store;
use crate::stream::Stream;
use crate::tables::Record;
use crate::{opportunities, setup, Error};

mod datagrams;
mod remote;
mod sampling;
mod serving;

/// Events that are taken from the kernel at once, at most.
const MAX_EVENTS: usize = 256;
/// The number of progress reports.
const STEPS: f64 = 50.0;

/// A scheduled task; tasks at the same time run in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Task {
    /// A change of the network, by its number.
    Change(usize),
    /// A flow begins.
    Start(u32),
    /// The application of a flow stops.
    Stop(u32),
    /// An application of a given rate writes.
    Write(u32),
    /// One that writes to a disk goes on.
    Read(u32),
    /// A UDP source sends.
    Send(u32),
    /// Lazy applications write and read.
    Serve,
    /// The captured packets are taken.
    Capture,
    Sample,
    EndWarmup,
    End,
}

/// The token of a file descriptor's events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    Clock,
    Monitor,
    Listener(u32),
    Sender(u32),
    Receiver(u32),
    Source(u32),
    Sink(u32),
}

impl Token {
    fn data(self) -> epoll::EventData {
        let (kind, number) = match self {
            Token::Clock => (0, 0),
            Token::Monitor => (1, 0),
            Token::Listener(number) => (2, number),
            Token::Sender(flow) => (3, flow),
            Token::Receiver(flow) => (4, flow),
            Token::Source(flow) => (5, flow),
            Token::Sink(flow) => (6, flow),
        };
        epoll::EventData::new_u64(kind << 32 | u64::from(number))
    }

    fn of(data: epoll::EventData) -> Token {
        let number = data.u64() as u32;
        match data.u64() >> 32 {
            0 => Token::Clock,
            1 => Token::Monitor,
            2 => Token::Listener(number),
            3 => Token::Sender(number),
            4 => Token::Receiver(number),
            5 => Token::Source(number),
            _ => Token::Sink(number),
        }
    }
}

/// A flow in its stages.
#[derive(Debug)]
enum Stage {
    Waiting,
    Active(Box<Connection>),
    Stream(Box<Stream>),
    Over(Box<Row>),
}

/// A run in progress.
pub struct Run {
    spec: RunSpec,
    clock: Clock,
    poll: OwnedFd,
    agenda: BinaryHeap<Reverse<(Time, Task)>>,
    hosts: Hosts,
    plans: Plans,
    flows: Vec<Stage>,
    active: BTreeSet<u32>,
    /// By the two addresses of the one that opened it: the connection.
    by_client: HashMap<(SocketAddrV4, SocketAddrV4), u32>,
    /// By address and port of the one that opened it, among those that are not accepted.
    unaccepted: HashMap<SocketAddrV4, u32>,
    queues: Queues,
    monitor: Option<Monitor>,
    /// By flow; without a monitor, none.
    dropped: Vec<u64>,
    captures: Vec<Capture>,
    /// Disks at the ends of the flows that are here; perhaps none.
    store: Store,
    record: Record,
    /// The lateness of samples; zero in virtual time.
    lateness: Lateness,
    /// Samples skipped because their time had passed.
    left_out: u64,
    now: Time,
    warmed_up: bool,
    is_over: bool,
    reported: f64,
    /// The receiver of progress reports.
    on_progress: Box<dyn FnMut(f64) + Send>,
}

impl Run {
    /// Set the network up and open the listeners; `on_progress` gets the finished share of the run.
    pub fn new(run_spec: RunSpec, on_progress: Box<dyn FnMut(f64) + Send>) -> Result<Run, Error> {
        let plans = Plans::new(&run_spec)?;
        let own = run_spec.local.as_ref().map(|local| local.host.as_str());
        let mut namespaces = Namespaces::new(own)?;
        setup::run(&run_spec.setup, &mut namespaces)?;
        // It reports all drops of the machine, so it is used only in private namespaces.
        let monitor = Monitor::open().ok().filter(|_| own.is_none());
        let captures = Capture::open_all(&run_spec, &mut namespaces)?;
        let queues = Queues::open(&run_spec, &mut namespaces)?;
        let store = remote::store(&run_spec)?;
        let poll = epoll::create(epoll::CreateFlags::CLOEXEC).tried(|| "epoll".to_owned())?;
        let count = plans.len();
        let mut run = Run {
            clock: Clock::new(run_spec.clock)?,
            poll,
            agenda: BinaryHeap::new(),
            hosts: Hosts::new(namespaces, Ports::of(&run_spec, count), run_spec.reader),
            flows: std::iter::repeat_with(|| Stage::Waiting)
                .take(count)
                .collect(),
            active: BTreeSet::new(),
            by_client: HashMap::new(),
            unaccepted: HashMap::new(),
            queues,
            dropped: vec![0; if monitor.is_some() { count } else { 0 }],
            monitor,
            captures,
            store,
            record: Record::default(),
            lateness: Lateness::default(),
            left_out: 0,
            now: Time::ZERO,
            warmed_up: false,
            is_over: false,
            reported: 0.0,
            on_progress,
            plans,
            spec: run_spec,
        };
        run.listen()?;
        run.schedule()?;
        run.open_sinks()?;
        if let Some(monitor) = &run.monitor {
            run.watch(monitor.socket(), Token::Monitor, epoll::EventFlags::IN)?;
        }
        Ok(run)
    }

    /// It begins: now that all is ready, or at a time to come of the kernel's monotonic clock.
    pub fn begin_at(&mut self, zero_ns: Option<i64>) -> Result<(), Error> {
        self.clock = match zero_ns {
            Some(zero_ns) => Clock::at(self.spec.clock, zero_ns)?,
            None => Clock::new(self.spec.clock)?,
        };
        opportunities::write_traces(&self.spec.plan, self.clock.zero_ns())?;
        self.watch(self.clock.timer(), Token::Clock, epoll::EventFlags::IN)
    }

    /// Open the listeners of all services.
    fn listen(&mut self) -> Result<(), Error> {
        let flows = self.spec.plan.flows.iter().zip(&self.spec.flows);
        let flows = flows
            .map(|(flow, host_pair)| (flow.group, flow.priority, flow.request_bytes, host_pair));
        let traffic = self.spec.plan.traffic.iter().zip(&self.spec.traffic);
        let traffic = traffic.flat_map(|(traffic, host_pairs)| {
            let of = (traffic.group, traffic.priority, traffic.request_bytes);
            host_pairs
                .iter()
                .map(move |host_pair| (of.0, of.1, of.2, host_pair))
        });
        let mut listeners = Vec::new();
        for (group, priority, request, host_pair) in flows.chain(traffic) {
            let server = if request.is_some() {
                &host_pair.source
            } else {
                &host_pair.destination
            };
            let service = Service {
                namespace: server.namespace.clone(),
                group,
                priority,
                dscp: self.spec.plan.groups[group as usize].dscp,
            };
            let options = self.spec.sockets_of_group(group)?.0;
            let is_here = self.spec.is_local(server);
            listeners.extend(self.hosts.serve(service, options, is_here)?);
        }
        self.hosts.namespaces.enter("")?;
        for number in listeners {
            let token = Token::Listener(number as u32);
            if let Some(listener) = self.hosts.listener(number) {
                self.watch(listener, token, epoll::EventFlags::IN)?;
            }
        }
        Ok(())
    }

    fn schedule(&mut self) -> Result<(), Error> {
        let plan = &self.spec.plan;
        for index in 0..self.plans.len() {
            let start = self.plans.start(&self.spec, index);
            if start <= plan.duration && self.is_client_local(index)? {
                self.agenda
                    .push(Reverse((start, Task::Start(index as u32))));
            }
        }
        let changes = self.spec.changes.iter().enumerate();
        let changes = changes.map(|(number, change)| (change.at, Task::Change(number)));
        let others = [
            (Time::ZERO, Task::Sample),
            (plan.warmup, Task::EndWarmup),
            (plan.duration, Task::End),
        ];
        self.agenda.extend(changes.chain(others).map(Reverse));
        if [self.spec.writer, self.spec.reader].contains(&AppTiming::Periodic) {
            self.agenda
                .push(Reverse((self.spec.app_interval, Task::Serve)));
        }
        if !self.captures.is_empty() {
            self.agenda
                .push(Reverse((capture::INTERVAL, Task::Capture)));
        }
        Ok(())
    }

    fn watch(
        &self,
        source: impl AsFd,
        token: Token,
        flags: epoll::EventFlags,
    ) -> Result<(), Error> {
        epoll::add(&self.poll, source, token.data(), flags).tried(|| "epoll".to_owned())
    }

    /// Run to the end; return the tables of the run.
    pub fn finish(mut self) -> Result<NamedTables, Error> {
        self.go_on_to_the_end()?;
        if self.spec.local.is_some() {
            self.abort_connections();
        }
        Ok(self.record.tables())
    }

    fn go_on_to_the_end(&mut self) -> Result<(), Error> {
        let mut events = Vec::with_capacity(MAX_EVENTS);
        while !self.is_over {
            if let Some(&Reverse((next, _))) = self.agenda.peek() {
                self.clock.arm(next)?;
            }
            events.clear();
            let room = rustix::buffer::spare_capacity(&mut events);
            match epoll::wait(&self.poll, room, None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error).tried(|| "epoll".to_owned()),
            }
            self.handle(&events)?;
        }
        Ok(())
    }

    fn handle(&mut self, events: &[epoll::Event]) -> Result<(), Error> {
        let rang = events
            .iter()
            .any(|event| Token::of(event.data) == Token::Clock);
        self.now = if rang {
            self.clock.rung()
        } else {
            self.clock.now()
        };
        for event in events {
            match Token::of(event.data) {
                Token::Clock => {}
                Token::Monitor => self.on_drops(),
                Token::Listener(number) => self.accept(number as usize)?,
                Token::Sender(flow) => self.on_sender(flow, event.flags)?,
                Token::Receiver(flow) => self.on_receiver(flow, event.flags)?,
                Token::Source(flow) => self.on_response(flow),
                Token::Sink(flow) => self.on_datagram(flow),
            }
        }
        while let Some(&Reverse((at, task))) = self.agenda.peek() {
            if at > self.now || self.is_over {
                break;
            }
            self.agenda.pop();
            self.perform(at, task)?;
        }
        Ok(())
    }

    fn perform(&mut self, at: Time, task: Task) -> Result<(), Error> {
        match task {
            Task::Change(number) => self.change(number),
            Task::Start(flow) if self.plans.datagrams().contains(&(flow as usize)) => {
                self.begin_stream(flow)
            }
            Task::Start(flow) => self.begin(flow),
            Task::Stop(flow) => self.stop(flow),
            Task::Write(flow) => self.write(flow),
            Task::Read(flow) => self.read(flow, false),
            Task::Send(flow) => {
                self.send(flow);
                Ok(())
            }
            Task::Serve => {
                self.agenda
                    .push(Reverse((at + self.spec.app_interval, Task::Serve)));
                self.serve_all()
            }
            Task::Capture => {
                self.agenda
                    .push(Reverse((at + capture::INTERVAL, Task::Capture)));
                self.capture()
            }
            Task::Sample => {
                self.report_progress(at);
                let now = self.clock.moment(at);
                self.lateness.add(now.since(at));
                self.schedule_sample(at, now);
                self.sample(now)
            }
            Task::EndWarmup => self.end_warmup(),
            Task::End => {
                self.is_over = true;
                self.total(self.clock.moment(at))
            }
        }
    }

    /// The next sample after the one that was due, in time.
    fn schedule_sample(&mut self, due: Time, now: Time) {
        let interval = self.spec.plan.record.interval;
        let mut next = due + interval;
        while next < now {
            next += interval;
            self.left_out += 1;
        }
        if next <= self.spec.plan.duration {
            self.agenda.push(Reverse((next, Task::Sample)));
        }
    }

    /// The network changes.
    fn change(&mut self, number: usize) -> Result<(), Error> {
        let change = &self.spec.changes[number];
        setup::run(&change.commands, &mut self.hosts.namespaces)?;
        let (link, rate_bps, is_told) = (change.link, change.rate_bps, change.has_event);
        if rate_bps > 0.0 {
            self.queues.set_rate(link, rate_bps)?;
        }
        if is_told {
            self.event(NONE, link, EventKind::LinkChange, rate_bps);
        }
        Ok(())
    }

    /// Take the packets that were captured.
    fn capture(&mut self) -> Result<(), Error> {
        for capture in &mut self.captures {
            capture.take(self.now, &self.clock)?;
        }
        Ok(())
    }

    /// The packets of a flow are captured from now on.
    fn capture_flow(&mut self, sender: SocketAddrV4, receiver: SocketAddrV4) {
        for capture in &mut self.captures {
            capture.add_flow(sender, receiver);
        }
    }

    /// Something happened now.
    fn event(&mut self, flow: u32, link: u32, happening: EventKind, value: f64) {
        self.record
            .events
            .push(self.now.seconds(), flow, link, happening, value);
    }

    /// Packets were dropped, each at its time.
    fn on_drops(&mut self) {
        let Some(monitor) = &mut self.monitor else {
            return;
        };
        for drop in monitor.take() {
            let Headers {
                from,
                source,
                destination,
            } = drop.headers;
            let Some((link, fate)) = self.queues.origin(from) else {
                continue;
            };
            let there = self.by_client.get(&(source, destination));
            let flow = there
                .or_else(|| self.by_client.get(&(destination, source)))
                .copied();
            if let Some(count) = flow.and_then(|flow| self.dropped.get_mut(flow as usize)) {
                *count += 1;
            }
            let happening = match fate {
                Fate::Dropped => EventKind::Drop,
                Fate::Lost => EventKind::Loss,
            };
            let time_s = self.clock.of_real(drop.real_ns).seconds();
            self.record
                .events
                .push(time_s, flow.unwrap_or(NONE), link, happening, f64::NAN);
        }
    }

    /// Report how far the run is.
    fn report_progress(&mut self, at: Time) {
        let share = at.seconds() / self.spec.plan.duration.seconds();
        if share >= self.reported + 1.0 / STEPS {
            self.reported = (share * STEPS).floor() / STEPS;
            (self.on_progress)(self.reported);
        }
    }
}
