//! What the UDP sources and their sinks do.

use std::cmp::Reverse;

use ackclock_traffic::Departures;
use rustix::event::epoll::EventFlags;
use rustix::net::connect;

use super::{Run, Stage, Task, Whose};
use crate::error::Tried;
use crate::stream::Stream;
use crate::Error;

impl Run {
    /// A UDP source begins.
    pub(super) fn begin_stream(&mut self, flow: u32) -> Result<(), Error> {
        let number = flow as usize - self.plans.datagrams().start;
        let (plan, way) = (
            &self.order.plan.datagrams[number],
            &self.order.datagrams[number],
        );
        let (source, own) = self.hosts.datagrams(&way.source, plan.priority)?;
        let (sink, there) = self.hosts.datagrams(&way.destination, plan.priority)?;
        self.hosts.namespaces.enter("")?;
        connect(&source, &there).tried(|| format!("UDP to {there}"))?;
        connect(&sink, &own).tried(|| format!("UDP to {own}"))?;
        let is_answered = plan.source.is_answered();
        self.watch(&sink, Whose::Sink(flow), EventFlags::IN)?;
        if is_answered {
            self.watch(&source, Whose::Source(flow), EventFlags::IN)?;
        }
        let departures = Departures::new(
            &plan.source,
            self.now,
            plan.stop,
            self.order.seed,
            number as u64,
        );
        let sizes = (plan.payload_bytes, plan.header_bytes);
        let stream = Stream::new((source, sink), departures, sizes, is_answered, self.now);
        self.flows[flow as usize] = Stage::Stream(Box::new(stream));
        self.by_client.insert((own, there), flow);
        self.follow(own, there);
        self.active.insert(flow);
        self.send_later(flow);
        Ok(())
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
        if !next.is_never() {
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
    pub(super) fn on_answer(&mut self, flow: u32) {
        let now = self.now;
        let Stage::Stream(stream) = &mut self.flows[flow as usize] else {
            return;
        };
        let before = stream.departures.next();
        stream.hear(now);
        if stream.departures.next() != before {
            self.send_later(flow);
        }
    }
}
