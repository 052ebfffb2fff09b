//! UDP sources and sinks.

use std::cmp::Reverse;
use std::net::SocketAddrV4;
use std::os::fd::OwnedFd;

use ackclock_traffic::Departures;
use rustix::event::epoll::EventFlags;
use rustix::net::connect;

use super::{Run, Stage, Task, Token};
use crate::error::Tried;
use crate::run_spec::Host;
use crate::stream::Stream;
use crate::Error;

impl Run {
    /// A UDP source begins.
    pub(super) fn begin_stream(&mut self, flow: u32) -> Result<(), Error> {
        let number = flow as usize - self.plans.datagrams().start;
        let plan = self.spec.plan.datagrams[number].clone();
        let host_pair = self.spec.datagrams[number].clone();
        let class = (
            plan.priority,
            self.spec.plan.groups[plan.group as usize].dscp,
        );
        let start = self.plans.start(&self.spec, flow as usize).max(self.now);
        let (source, own) = self.end_of_stream(flow, &host_pair.source, class)?;
        let (sink, there) = self.end_of_stream(flow, &host_pair.destination, class)?;
        self.hosts.namespaces.enter("")?;
        if let Some(sink) = &sink {
            connect(sink, &own).tried(|| format!("UDP to {own}"))?;
            self.watch(sink, Token::Sink(flow), EventFlags::IN)?;
        }
        let schedule = plan.source.schedule(number)?;
        let has_responses = schedule.has_responses();
        let answered = source.as_ref().filter(|_| has_responses);
        if let Some(source) = &source {
            connect(source, &there).tried(|| format!("UDP to {there}"))?;
        }
        if let Some(source) = answered {
            self.watch(source, Token::Source(flow), EventFlags::IN)?;
        }
        let departures = Departures::new(schedule, start, plan.stop, self.spec.seed, number as u64);
        let sizes = (plan.payload_bytes, plan.header_bytes);
        let stream = Stream::new((source, sink), departures, sizes, has_responses, start);
        self.flows[flow as usize] = Stage::Stream(Box::new(stream));
        self.by_client.insert((own, there), flow);
        self.capture_flow(own, there);
        self.active.insert(flow);
        self.send_later(flow);
        Ok(())
    }

    /// The socket of one end, if it is here, and its address.
    fn end_of_stream(
        &mut self,
        flow: u32,
        host: &Host,
        (priority, dscp): (u8, u8),
    ) -> Result<(Option<OwnedFd>, SocketAddrV4), Error> {
        match self.hosts.datagrams_at(flow, host) {
            Some(address) if !self.spec.is_local(host) => Ok((None, address)),
            _ => {
                let (socket, own) = self.hosts.datagrams(flow, host, priority, dscp)?;
                Ok((Some(socket), own))
            }
        }
    }

    /// A datagram may be due.
    pub(super) fn send(&mut self, flow: u32) {
        let now = self.now;
        let Stage::Stream(stream) = &mut self.flows[flow as usize] else {
            return;
        };
        // The source may have slowed down since this was planned.
        if stream.departures.next() <= now {
            stream.send(now);
            self.send_later(flow);
        }
    }

    fn send_later(&mut self, flow: u32) {
        let Stage::Stream(stream) = &self.flows[flow as usize] else {
            return;
        };
        let next = stream.departures.next();
        if !next.is_never() && stream.source.is_some() {
            self.agenda.push(Reverse((next, Task::Send(flow))));
        }
    }

    /// Datagrams have reached their sink.
    pub(super) fn on_datagram(&mut self, flow: u32) {
        let now = self.now;
        if let Stage::Stream(stream) = &mut self.flows[flow as usize] {
            stream.receive(now);
        }
    }

    /// Answers have reached their source, which may change its rate.
    pub(super) fn on_response(&mut self, flow: u32) {
        let now = self.now;
        let Stage::Stream(stream) = &mut self.flows[flow as usize] else {
            return;
        };
        let before = stream.departures.next();
        stream.receive_responses(now);
        if stream.departures.next() != before {
            self.send_later(flow);
        }
    }
}
