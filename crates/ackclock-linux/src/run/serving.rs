//! The applications: connect, write, read, close.

use std::cmp::Reverse;
use std::io;

use ackclock_core::tables::{EventKind, NONE};
use ackclock_core::Time;
use rustix::event::epoll::EventFlags;

use super::{Run, Stage, Task, Token};
use crate::connection::{Connection, ReadOutcome};
use crate::error::Tried;
use crate::hosts::{Hosts, Service, UNTHROTTLED_BYTES};
use crate::rows::Row;
use crate::run_spec::AppTiming;
use crate::Error;

/// Told once for each change: writable, readable, closed by the other side.
const SENDERS: EventFlags = EventFlags::OUT.union(EventFlags::ET);
const RECEIVER_INITIATED_SENDERS: EventFlags = SENDERS.union(EventFlags::IN);
const LAZY_RECEIVERS: EventFlags = EventFlags::RDHUP.union(EventFlags::ET);
const PROMPT_RECEIVERS: EventFlags = LAZY_RECEIVERS.union(EventFlags::IN);

impl Run {
    /// A flow begins: its client connects.
    pub(super) fn begin(&mut self, flow: u32) -> Result<(), Error> {
        let index = flow as usize;
        let plan = self.plans.describe(&self.spec, index)?;
        let (options, _) = self.spec.sockets_of_group(plan.about.group)?;
        let is_receiver_initiated = plan.task.request_bytes.is_some();
        let (client, server) = if is_receiver_initiated {
            (&plan.host_pair.destination, &plan.host_pair.source)
        } else {
            (&plan.host_pair.source, &plan.host_pair.destination)
        };
        let service = Service {
            namespace: server.namespace.clone(),
            group: plan.about.group,
            priority: plan.priority,
            dscp: self.spec.plan.groups[plan.about.group as usize].dscp,
        };
        let (socket, own, there) =
            self.hosts
                .connect(flow, client, server.address, &service, options)?;
        self.hosts.namespaces.enter("")?;
        let transfer = index.checked_sub(self.plans.first_transfer());
        let is_awaited = transfer.is_some_and(|transfer| self.plans.schedule.is_awaited(transfer));
        let mut connection = Connection::new(plan.task, self.now, is_awaited);
        let stop = plan.stop;
        if is_receiver_initiated {
            self.watch(
                &socket,
                Token::Receiver(flow),
                self.receiving() | EventFlags::OUT,
            )?;
            if plan.task.has_low_water() {
                self.hosts.set_low_water(&socket, 0, plan.task.size_bytes)?;
            }
            connection.receiver = Some(socket);
        } else {
            self.watch(&socket, Token::Sender(flow), SENDERS)?;
            if stop.is_some() {
                Hosts::limit_unsent(&socket)?;
            }
            connection.sender = Some(socket);
        }
        self.by_client.insert((own, there), flow);
        if is_receiver_initiated {
            self.capture_flow(there, own);
        } else {
            self.capture_flow(own, there);
        }
        self.unaccepted.insert(own, flow);
        self.flows[index] = Stage::Active(Box::new(connection));
        self.active.insert(flow);
        if let Some(stop) = stop.filter(|&stop| stop <= self.spec.plan.duration) {
            self.agenda
                .push(Reverse((stop.max(self.now), Task::Stop(flow))));
        }
        Ok(())
    }

    /// A client's connection has come to a service.
    pub(super) fn accept(&mut self, number: usize) -> Result<(), Error> {
        let Some((socket, client)) = self.hosts.accept(number) else {
            return Ok(());
        };
        let flow = match self.unaccepted.remove(&client) {
            Some(flow) => Some(flow),
            None => self.begin_remote(number, client)?,
        };
        let Some(flow) = flow else { return Ok(()) };
        let Some(connection) = active(&mut self.flows, flow) else {
            return Ok(());
        };
        if connection.is_receiver_initiated() {
            connection.sender = Some(socket);
            self.watch_socket(flow, Token::Sender(flow), RECEIVER_INITIATED_SENDERS)
        } else {
            connection.receiver = Some(socket);
            self.watch_socket(flow, Token::Receiver(flow), self.receiving())
        }
    }

    fn watch_socket(&mut self, flow: u32, token: Token, flags: EventFlags) -> Result<(), Error> {
        let Stage::Active(connection) = &self.flows[flow as usize] else {
            return Ok(());
        };
        let socket = match token {
            Token::Sender(_) => &connection.sender,
            _ => &connection.receiver,
        };
        let Some(socket) = socket else { return Ok(()) };
        self.watch(socket, token, flags)
    }

    fn receiving(&self) -> EventFlags {
        match self.spec.reader {
            AppTiming::Immediate => PROMPT_RECEIVERS,
            AppTiming::Periodic => LAZY_RECEIVERS,
        }
    }

    /// Process an event of a sender's socket: connected, writable, request received, or everything acknowledged.
    pub(super) fn on_sender(&mut self, flow: u32, flags: EventFlags) -> Result<(), Error> {
        let now = self.now;
        let Some(connection) = active(&mut self.flows, flow) else {
            return Ok(());
        };
        let outcome = (|| {
            if flags.contains(EventFlags::ERR) {
                connection.drain_error_queue()?;
            }
            if flags.contains(EventFlags::IN) {
                connection.read_request()?;
            }
            if connection.established.is_never() || connection.is_shut() {
                connection.sample()?;
            }
            Ok(())
        })();
        if self.failed(flow, &outcome)? {
            return Ok(());
        }
        let Some(connection) = active(&mut self.flows, flow) else {
            return Ok(());
        };
        if connection.established.is_never()
            && !connection.is_receiver_initiated()
            && connection.info.is_open()
        {
            connection.established = now;
            self.opened(flow);
        }
        if self.spec.writer == AppTiming::Immediate {
            self.write(flow)?;
        }
        self.close_sender(flow)
    }

    /// The client sees that its connection is open.
    fn opened(&mut self, flow: u32) {
        let Some(connection) = active(&mut self.flows, flow) else {
            return;
        };
        let again = connection.counts.syn_retransmissions;
        for _ in 0..again {
            self.event(flow, NONE, EventKind::SynRetransmission, f64::NAN);
        }
        self.event(flow, NONE, EventKind::Established, f64::NAN);
    }

    /// The application writes what it has and TCP takes.
    pub(super) fn write(&mut self, flow: u32) -> Result<(), Error> {
        let (now, serve) = (self.now, self.spec.app_interval);
        let most_bytes = self.max_write_bytes();
        let Some(connection) = active(&mut self.flows, flow) else {
            return Ok(());
        };
        if connection.established.is_never() {
            return Ok(());
        }
        let from = self.store.source.as_mut().map(|source| (source, flow));
        let outcome = connection.write(now, most_bytes, from);
        let next = connection.next_write(now, serve);
        // The others first.
        let again = matches!(outcome, Ok(true)).then_some(now + Time::from_picoseconds(1000));
        let writes = next.into_iter().chain(again);
        self.agenda
            .extend(writes.map(|at| Reverse((at, Task::Write(flow)))));
        self.failed(flow, &outcome.map(drop)).map(drop)
    }

    /// The application has no more to send.
    pub(super) fn stop(&mut self, flow: u32) -> Result<(), Error> {
        let now = self.now;
        let Some(connection) = active(&mut self.flows, flow) else {
            return Ok(());
        };
        let outcome = connection.stop(now);
        self.failed(flow, &outcome).map(drop)
    }

    /// A transfer is complete when its data are acknowledged; when its FIN is too, the sender is closed.
    fn close_sender(&mut self, flow: u32) -> Result<(), Error> {
        let now = self.now;
        let Some(connection) = active(&mut self.flows, flow) else {
            return Ok(());
        };
        if connection.sender.is_none() || !connection.is_acknowledged() {
            return Ok(());
        }
        let is_closed = connection.info.is_closed();
        if is_closed {
            connection.sender = None;
        }
        if !connection.is_receiver_initiated() && connection.finished.is_never() {
            connection.finished = now;
            self.completed(flow);
        }
        if is_closed {
            self.end_if_over(flow)?;
        }
        Ok(())
    }

    /// Process an event of a receiver's socket: connected, readable, or end of data.
    pub(super) fn on_receiver(&mut self, flow: u32, flags: EventFlags) -> Result<(), Error> {
        let now = self.now;
        let Some(connection) = active(&mut self.flows, flow) else {
            return Ok(());
        };
        let opens = connection.is_receiver_initiated() && connection.established.is_never();
        if opens && flags.contains(EventFlags::OUT) && !flags.contains(EventFlags::ERR) {
            connection.established = now;
            let outcome = connection.send_request();
            if self.failed(flow, &outcome)? {
                return Ok(());
            }
            self.opened(flow);
        }
        if flags.intersects(EventFlags::IN | EventFlags::RDHUP | EventFlags::ERR | EventFlags::HUP)
        {
            let to_the_end = flags.intersects(EventFlags::RDHUP | EventFlags::HUP);
            self.read(flow, to_the_end)?;
        }
        Ok(())
    }

    /// The receiver of a flow reads.
    pub(super) fn read(&mut self, flow: u32, to_the_end: bool) -> Result<(), Error> {
        let now = self.now;
        let Some(connection) = active(&mut self.flows, flow) else {
            return Ok(());
        };
        let before = connection.received;
        let outcome = connection.read(to_the_end, now, self.store.sink.as_mut());
        let next = connection.next_read();
        self.agenda
            .extend(next.map(|at| Reverse((at, Task::Read(flow)))));
        let found = *outcome.as_ref().unwrap_or(&ReadOutcome::Drained);
        let at_end = found == ReadOutcome::End;
        if found == ReadOutcome::More {
            let again = now + Time::from_picoseconds(1000);
            self.agenda.push(Reverse((again, Task::Read(flow))));
        }
        if self.failed(flow, &outcome.map(drop))? {
            return Ok(());
        }
        let Some(connection) = active(&mut self.flows, flow) else {
            return Ok(());
        };
        if at_end {
            connection
                .close_receiver()
                .tried(|| "TCP_INFO".to_owned())?;
        }
        let received = connection.received;
        let asked = connection.is_receiver_initiated() && connection.finished.is_never();
        let size = connection.task.size_bytes.filter(|_| asked);
        let missing = size.map(|size| size.saturating_sub(received));
        if asked && (at_end || missing == Some(0)) {
            connection.finished = now;
            self.completed(flow);
        } else if let Some(receiver) = &connection.receiver {
            if connection.task.has_low_water() && (missing.is_some() || before < UNTHROTTLED_BYTES)
            {
                self.hosts.set_low_water(receiver, received, missing)?;
            }
        }
        self.end_if_over(flow)
    }

    /// Lazy applications write what they have, and then read what there is.
    pub(super) fn serve_all(&mut self) -> Result<(), Error> {
        let flows: Vec<u32> = self.active.iter().copied().collect();
        if self.spec.writer == AppTiming::Periodic {
            flows.iter().try_for_each(|&flow| self.write(flow))?;
        }
        if self.spec.reader == AppTiming::Periodic {
            flows.iter().try_for_each(|&flow| self.read(flow, false))?;
        }
        Ok(())
    }

    /// A transfer is complete: others may begin.
    fn completed(&mut self, flow: u32) {
        self.event(flow, NONE, EventKind::Finished, f64::NAN);
        let first = self.plans.first_transfer();
        let Some(connection) = active(&mut self.flows, flow) else {
            return;
        };
        if !std::mem::take(&mut connection.is_awaited) {
            return;
        }
        if let Some((opens, waiting)) = self
            .plans
            .schedule
            .complete(flow as usize - first, self.now)
        {
            let starts = waiting
                .iter()
                .map(|transfer| Task::Start(first as u32 + transfer));
            self.agenda
                .extend(starts.map(|start| Reverse((opens, start))));
        }
    }

    /// A connection that the kernel gave up is over, unfinished.
    fn failed(&mut self, flow: u32, outcome: &io::Result<()>) -> Result<bool, Error> {
        if outcome.is_ok() {
            return Ok(false);
        }
        if let Some(connection) = active(&mut self.flows, flow) {
            connection.sender = None;
            // Data received by then count, if the kernel still reports them.
            let _ = connection.close_receiver();
            connection.receiver = None;
        }
        self.end_if_over(flow)?;
        Ok(true)
    }

    /// Replace a connection whose ends are both closed by its row.
    fn end_if_over(&mut self, flow: u32) -> Result<(), Error> {
        let Some(connection) = active(&mut self.flows, flow) else {
            return Ok(());
        };
        if !connection.is_closed() {
            return Ok(());
        }
        connection
            .count_delivered()
            .tried(|| "TCP_INFO".to_owned())?;
        let mut row = Row::of(connection);
        if !self.warmed_up {
            row.forget();
        }
        self.flows[flow as usize] = Stage::Over(Box::new(row));
        self.active.remove(&flow);
        Ok(())
    }
}

/// Return a flow's connection, if it is open.
pub(super) fn active(flows: &mut [Stage], flow: u32) -> Option<&mut Connection> {
    match flows.get_mut(flow as usize) {
        Some(Stage::Active(connection)) => Some(connection),
        _ => None,
    }
}
