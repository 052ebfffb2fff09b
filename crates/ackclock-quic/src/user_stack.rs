//! Endpoints of a user's stack, which lives in a process of its own.
//!
//! The process hosts a shared library with the functions of `ackclock.h` and the applications at both ends
//! (`python/ackclock/stacks/host.py`). Each input of an endpoint, a datagram or a timer, is a request; its response has
//! all datagrams that leave at that time, so that the process keeps step with virtual time. What is wrong with the
//! library, from a broken contract to a crash, is a [`StackFailure`] and ends the run: an endpoint unwinds with it.

mod process;
mod wire;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use ackclock_core::Time;
use ackclock_plan::StackPlan;
use noq_proto::EcnCodepoint;

use crate::controller::{Change, Transport};
use crate::endpoint::{ConnectionEnd, Datagram, Role};
pub use process::{Stack, StackFailure};
use wire::{Request, State, CLOSED, ESTABLISHED, FINISHED};

/// One end of a connection of a user's stack.
pub struct UserStackEndpoint {
    stack: Stack,
    number: u32,
    role: Role,
    /// Datagrams that leave at `updated`.
    departing: VecDeque<Datagram>,
    updated: Time,
    timeout: Time,
    read_bytes: u64,
    transport: Transport,
    changes: Vec<(Time, Change)>,
}

impl UserStackEndpoint {
    /// An end that starts at `now` and stops sending at `stop`; `seed` is that of its random numbers, and `flow` the
    /// connection's number in the process.
    pub fn new(
        stack: &Stack,
        plan: &StackPlan,
        (role, flow): (Role, u64),
        now: Time,
        stop: Time,
        seed: u64,
    ) -> UserStackEndpoint {
        let mut endpoint = UserStackEndpoint {
            stack: stack.clone(),
            number: 2 * flow as u32 + u32::from(role == Role::Server),
            role,
            departing: VecDeque::new(),
            updated: now,
            timeout: Time::NEVER,
            read_bytes: 0,
            transport: Transport {
                datagram_bytes: u64::from(plan.max_payload_bytes),
                ..Transport::default()
            },
            changes: Vec::new(),
        };
        let opening = Request::New {
            plan,
            role,
            stop,
            seed,
        };
        endpoint.call(&opening, now);
        endpoint
    }

    /// Make a call and take over the state.
    fn call(&mut self, request: &Request, now: Time) {
        match self.stack.call(request, self.number, now) {
            Ok(state) => self.update(state, now),
            // The failure is the library's, not this program's: no panic message is printed.
            Err(failure) => std::panic::resume_unwind(Box::new(failure)),
        }
    }

    fn update(&mut self, state: State, now: Time) {
        self.updated = now;
        self.timeout = state.timeout;
        self.read_bytes = state.read_bytes;
        self.departing.extend(state.datagrams);
        let before = self.transport;
        let [cwnd, ssthresh, srtt_ns, in_flight, lost, recoveries, timeouts] = state.statistics;
        let count = |value: Option<u64>| value.map(|count| count as u32);
        let reached =
            |before: Option<Time>, bit| before.or((state.status & bit > 0).then_some(now));
        self.transport = Transport {
            cwnd_bytes: cwnd,
            ssthresh_bytes: ssthresh,
            datagram_bytes: before.datagram_bytes,
            srtt: srtt_ns.map(wire::time),
            in_flight_bytes: in_flight,
            lost_packets: lost,
            recoveries: count(recoveries),
            persistent_congestions: count(timeouts),
            established: reached(before.established, ESTABLISHED),
            finished: reached(before.finished, FINISHED),
            is_closed: before.is_closed || state.status & CLOSED > 0,
        };
        if self.role == Role::Client {
            self.record_changes(&before, now);
        }
    }

    fn record_changes(&mut self, before: &Transport, now: Time) {
        let after = &self.transport;
        let rises = |old: Option<u32>, new: Option<u32>| new.unwrap_or(0) > old.unwrap_or(0);
        let changes = [
            (Change::Established, before.established != after.established),
            (Change::Recovery, rises(before.recoveries, after.recoveries)),
            (
                Change::PersistentCongestion,
                rises(before.persistent_congestions, after.persistent_congestions),
            ),
            (Change::Finished, before.finished != after.finished),
        ];
        let new = changes.into_iter().filter(|(_, is_new)| *is_new);
        self.changes.extend(new.map(|(change, _)| (now, change)));
    }
}

impl ConnectionEnd for UserStackEndpoint {
    fn wake(&self) -> Time {
        if self.departing.is_empty() {
            self.timeout
        } else {
            self.updated
        }
    }

    fn on_datagram(&mut self, datagram: Vec<u8>, ecn: Option<EcnCodepoint>, now: Time) {
        self.call(&Request::Datagram(&datagram, ecn), now);
    }

    fn poll(&mut self, now: Time) -> Option<Datagram> {
        if self.departing.is_empty() && self.timeout <= now {
            self.call(&Request::Timer, now);
        }
        self.departing.pop_front()
    }

    fn read_bytes(&self) -> u64 {
        self.read_bytes
    }

    fn transport(&self) -> Option<Transport> {
        Some(self.transport)
    }

    fn take_changes(&mut self) -> Vec<(Time, Change)> {
        std::mem::take(&mut self.changes)
    }
}
