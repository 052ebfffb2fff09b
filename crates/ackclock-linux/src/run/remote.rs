//! Runs with one machine per host: most connections have one remote end.

use std::net::SocketAddrV4;
use std::thread;
use std::time::Duration;

use rustix::net::sockopt;

use super::serving::active;
use super::{Run, Stage};
use crate::connection::Connection;
use crate::error::Tried;
use crate::plans::Description;
use crate::run_spec::{Host, HostPair, RunSpec};
use crate::store::Store;
use crate::Error;

/// After its end a run's sockets stay open for so long: no other machine, whose clock is a little behind, shall see a
/// connection end before its own end. Clocks are related to far less.
const LINGER: Duration = Duration::from_millis(300);

/// The bytes a flow writes before the others are served: 3 ms at 10 Gb/s.
const TURN_BYTES: u64 = 4 << 20;

impl Run {
    /// Return how much a flow may write at a time. In virtual time, and on slow links, there is no limit.
    pub(super) fn max_write_bytes(&self) -> u64 {
        if self.spec.local.is_some() {
            TURN_BYTES
        } else {
            u64::MAX
        }
    }

    /// Return whether a flow's client is on this machine.
    pub(super) fn is_client_local(&self, index: usize) -> Result<bool, Error> {
        if self.spec.local.is_none() {
            return Ok(true);
        }
        let (_, client) = self.host_pair(index)?;
        Ok(self.spec.is_local(client))
    }

    /// Begin the flow of a connection that a remote client has opened; none if it is not expected.
    pub(super) fn begin_remote(
        &mut self,
        listener: usize,
        from: SocketAddrV4,
    ) -> Result<Option<u32>, Error> {
        let index = self.hosts.ports.flow(from.port(), listener);
        let Some(index) = index.filter(|&index| self.is_awaited(index)) else {
            return Ok(None);
        };
        let plan = self.plans.describe(&self.spec, index)?;
        if client(&plan).address != *from.ip() {
            return Ok(None);
        }
        let is_receiver_initiated = plan.task.request_bytes.is_some();
        let own = if is_receiver_initiated {
            plan.host_pair.source.address
        } else {
            plan.host_pair.destination.address
        };
        let port = self.hosts.ports.listening(listener).unwrap_or(0);
        let own = SocketAddrV4::new(own, port);
        let mut connection = Connection::new(plan.task, self.now, false);
        connection.established = self.now;
        let flow = index as u32;
        self.flows[index] = Stage::Active(Box::new(connection));
        self.active.insert(flow);
        if is_receiver_initiated {
            self.capture_flow(own, from);
        } else {
            self.capture_flow(from, own);
        }
        Ok(Some(flow))
    }

    /// The two hosts of a flow of any kind, and the one that begins.
    fn host_pair(&self, index: usize) -> Result<(&HostPair, &Host), Error> {
        let datagrams = self.plans.datagrams();
        if datagrams.contains(&index) {
            let host_pair = &self.spec.datagrams[index - datagrams.start];
            return Ok((host_pair, &host_pair.source));
        }
        let plan = self.plans.describe(&self.spec, index)?;
        Ok((plan.host_pair, client(&plan)))
    }

    /// Open UDP sinks with remote sources at the start: clocks differ a little.
    pub(super) fn open_sinks(&mut self) -> Result<(), Error> {
        for index in self.plans.datagrams() {
            let (host_pair, source) = self.host_pair(index)?;
            if self.spec.is_local(&host_pair.destination) && !self.spec.is_local(source) {
                self.begin_stream(index as u32)?;
            }
        }
        Ok(())
    }

    fn is_awaited(&self, index: usize) -> bool {
        matches!(self.flows.get(index), Some(Stage::Waiting))
    }

    /// Record which ends of a flow are here; whether any is, and the flow is one that has begun or the plan names.
    pub(super) fn write_ends(&mut self, index: usize) -> Result<bool, Error> {
        let waits = self.is_awaited(index);
        if waits && index >= self.plans.first_transfer() {
            return Ok(false);
        }
        let (host_pair, client) = self.host_pair(index)?;
        let (sender, receiver) = (
            self.spec.is_local(&host_pair.source),
            self.spec.is_local(&host_pair.destination),
        );
        let is_client = self.spec.is_local(client);
        let ends = &mut self.record.ends;
        if sender || receiver {
            ends.flow.push(index as u32);
            ends.sender.push(sender);
            ends.receiver.push(receiver);
            ends.client.push(is_client);
        }
        Ok(sender || receiver)
    }

    /// Abort all connections: unsent data are discarded.
    pub(super) fn abort_connections(&mut self) {
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

/// The disks that a run spec names, at the ends of its flows that are here.
pub(super) fn store(run_spec: &RunSpec) -> Result<Store, Error> {
    let Some(local) = &run_spec.local else {
        return Ok(Store::default());
    };
    let places = [&local.source, &local.sink].into_iter().flatten();
    let what = || {
        let places: Vec<String> = places.map(|of| of.place.display().to_string()).collect();
        places.join(", ")
    };
    Store::open(
        local.source.as_ref(),
        local.sink.as_ref(),
        run_spec.flows.len(),
    )
    .tried(what)
}

/// Return the host that opens a flow's connection.
fn client<'a>(plan: &Description<'a>) -> &'a Host {
    if plan.task.request_bytes.is_some() {
        &plan.host_pair.destination
    } else {
        &plan.host_pair.source
    }
}
