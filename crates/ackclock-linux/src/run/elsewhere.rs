//! What differs where each host is a machine of its own: of most connections, one end is elsewhere.

use std::net::SocketAddrV4;
use std::thread;
use std::time::Duration;

use rustix::net::sockopt;

use super::serving::active;
use super::{Run, Stage};
use crate::connection::Connection;
use crate::order::Host;
use crate::plans::Description;
use crate::Error;

/// After its end a run's sockets stay open for so long: no other machine, whose clock is a little behind, shall see a
/// connection end before its own end. Clocks are related to far less.
const LINGER: Duration = Duration::from_millis(300);

impl Run {
    /// Whether a flow's client is here.
    pub(super) fn begins_here(&self, index: usize) -> Result<bool, Error> {
        if self.order.here.is_none() {
            return Ok(true);
        }
        let plan = self.plans.describe(&self.order, index)?;
        Ok(self.order.has(client(&plan)))
    }

    /// The flow of a connection that a client elsewhere has opened; none if it is not one that is expected.
    pub(super) fn begun_elsewhere(
        &mut self,
        listener: usize,
        from: SocketAddrV4,
    ) -> Result<Option<u32>, Error> {
        let index = self.hosts.ports.flow(from.port(), listener);
        let Some(index) = index.filter(|&index| self.is_awaited(index)) else {
            return Ok(None);
        };
        let plan = self.plans.describe(&self.order, index)?;
        if client(&plan).address != *from.ip() {
            return Ok(None);
        }
        let is_asked = plan.task.request_bytes.is_some();
        let own = if is_asked {
            plan.way.source.address
        } else {
            plan.way.destination.address
        };
        let port = self.hosts.ports.listening(listener).unwrap_or(0);
        let own = SocketAddrV4::new(own, port);
        let mut connection = Connection::new(plan.task, self.now, false);
        connection.established = self.now;
        let flow = index as u32;
        self.flows[index] = Stage::Active(Box::new(connection));
        self.active.insert(flow);
        if is_asked {
            self.follow(own, from);
        } else {
            self.follow(from, own);
        }
        Ok(Some(flow))
    }

    fn is_awaited(&self, index: usize) -> bool {
        matches!(self.flows.get(index), Some(Stage::Waiting))
    }

    /// Notes which ends of a flow are here; whether any is, and the flow is one that has begun or the plan names.
    pub(super) fn write_ends(&mut self, index: usize) -> Result<bool, Error> {
        let waits = self.is_awaited(index);
        if waits && index >= self.plans.first_transfer() {
            return Ok(false);
        }
        let plan = self.plans.describe(&self.order, index)?;
        let (sender, receiver) = (
            self.order.has(&plan.way.source),
            self.order.has(&plan.way.destination),
        );
        let is_client = self.order.has(client(&plan));
        let ends = &mut self.record.ends;
        if sender || receiver {
            ends.flow.push(index as u32);
            ends.sender.push(sender);
            ends.receiver.push(receiver);
            ends.client.push(is_client);
        }
        Ok(sender || receiver)
    }

    /// Lets go of all connections, so that nothing of them goes on: what is not sent by now is thrown away.
    pub(super) fn leave(&mut self) {
        thread::sleep(LINGER);
        let flows: Vec<u32> = self.active.iter().copied().collect();
        for flow in flows {
            let Some(connection) = active(&mut self.flows, flow) else {
                continue;
            };
            for socket in [&connection.sender, &connection.receiver]
                .into_iter()
                .flatten()
            {
                // A socket that the other side has reset needs it no more.
                let _ = sockopt::set_socket_linger(socket, Some(Duration::ZERO));
            }
        }
    }
}

/// Who opens a flow's connection.
fn client<'a>(plan: &Description<'a>) -> &'a Host {
    if plan.task.request_bytes.is_some() {
        &plan.way.destination
    } else {
        &plan.way.source
    }
}
