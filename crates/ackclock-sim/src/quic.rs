//! QUIC, and users' stacks: endpoints whose datagrams are those of the network.
//!
//! A datagram has the size that the stack gave it and the headers of IPv4 and UDP, and its ECN bits go both ways. The
//! client sends the data.

use std::convert::Infallible;

use ackclock_core::tables::{EventKind, Tables, NONE};
use ackclock_core::Time;
use ackclock_plan::{DatagramPlan, QuicPlan, StackPlan};
use ackclock_quic::{
    Change, ConnectionEnd, ControllerError, Datagram, EcnCodepoint, Role, Stack, Transport,
    UserStackEndpoint,
};
use ackclock_traffic::{stream, Purpose};
use rand_core::RngCore;

use crate::endpoint::{Endpoint, Outgoing, Payload};
use crate::packet::{Ecn, Flags, Packet};

/// One end of a connection.
pub struct QuicEndpoint<E> {
    endpoint: E,
    role: Role,
    header_bytes: u32,
    sent: u64,
}

/// The sender and the receiver of a flow.
type Ends = (Box<dyn Endpoint>, Box<dyn Endpoint>);

/// The two ends of a connection that starts at `now`; `number` is the flow's among those over UDP.
///
/// # Errors
/// The plan's congestion control cannot work in the stack.
pub fn endpoints(
    plan: &DatagramPlan,
    quic: &QuicPlan,
    now: Time,
    seed: u64,
    number: u64,
) -> Result<Ends, ControllerError> {
    let stop = plan.stop.unwrap_or(Time::NEVER);
    ends(plan, seed, number, |role, seed| {
        ackclock_quic::Endpoint::new(quic, role, now, stop, seed)
    })
}

/// The two ends of a connection of a user's stack, as [`endpoints`].
pub fn external_endpoints(
    plan: &DatagramPlan,
    (stack, config): (&Stack, &StackPlan),
    now: Time,
    seed: u64,
    number: u64,
) -> Ends {
    let stop = plan.stop.unwrap_or(Time::NEVER);
    let made = ends(plan, seed, number, |role, seed| {
        let end = UserStackEndpoint::new(stack, config, (role, number), now, stop, seed);
        Ok::<_, Infallible>(end)
    });
    let Ok(made) = made;
    made
}

fn ends<E: ConnectionEnd + 'static, Error>(
    plan: &DatagramPlan,
    seed: u64,
    number: u64,
    make: impl Fn(Role, u64) -> Result<E, Error>,
) -> Result<Ends, Error> {
    let mut seeds = stream(seed, number, Purpose::Quic);
    let mut end = |role| {
        Ok(Box::new(QuicEndpoint {
            endpoint: make(role, seeds.next_u64())?,
            role,
            header_bytes: plan.header_bytes,
            sent: 0,
        }))
    };
    Ok((end(Role::Client)?, end(Role::Server)?))
}

impl<E: ConnectionEnd> Endpoint for QuicEndpoint<E> {
    fn wake(&self) -> Time {
        self.endpoint.wake()
    }

    fn poll(&mut self, now: Time) -> Option<Outgoing> {
        let Datagram { bytes, ecn } = self.endpoint.poll(now)?;
        let sequence = self.sent;
        self.sent += 1;
        Some(Outgoing {
            sequence,
            timestamp: now,
            wire_bytes: self.header_bytes + bytes.len() as u32,
            flags: Flags::of(bits(ecn)),
            payload: Some(Payload::Quic(bytes)),
        })
    }

    fn on_packet(&mut self, packet: &Packet, payload: Option<Payload>, now: Time) {
        if let Some(Payload::Quic(bytes)) = payload {
            self.endpoint
                .on_datagram(bytes, codepoint(packet.flags.ecn()), now);
        }
    }

    fn delivered_bytes(&self) -> u64 {
        self.endpoint.read_bytes()
    }

    fn rtt(&self) -> Option<Time> {
        self.transport()?.srtt
    }

    fn transport(&self) -> Option<Transport> {
        self.endpoint.transport()
    }

    fn take_log(&mut self) -> Vec<u8> {
        self.endpoint.take_log()
    }

    /// The sender's events.
    fn write_rows(&mut self, flow: u32, _until: Time, tables: &mut Tables) {
        let changes = self.endpoint.take_changes();
        for (time, change) in changes.into_iter().filter(|_| self.role == Role::Client) {
            let (at_s, kind) = (time.seconds(), event(change));
            tables.events.push(at_s, flow, NONE, kind, f64::NAN);
        }
    }
}

/// The event of a change.
fn event(change: Change) -> EventKind {
    match change {
        Change::Established => EventKind::Established,
        Change::Recovery => EventKind::Recovery,
        Change::MarkReaction => EventKind::MarkReaction,
        Change::PersistentCongestion => EventKind::Timeout,
        Change::Undo => EventKind::Undo,
        Change::Finished => EventKind::Finished,
    }
}

fn bits(ecn: Option<EcnCodepoint>) -> Ecn {
    match ecn {
        None => Ecn::NotEct,
        Some(EcnCodepoint::Ect0) => Ecn::Ect0,
        Some(EcnCodepoint::Ect1) => Ecn::Ect1,
        Some(EcnCodepoint::Ce) => Ecn::Ce,
    }
}

fn codepoint(ecn: Ecn) -> Option<EcnCodepoint> {
    match ecn {
        Ecn::NotEct => None,
        Ecn::Ect0 => Some(EcnCodepoint::Ect0),
        Ecn::Ect1 => Some(EcnCodepoint::Ect1),
        Ecn::Ce => Some(EcnCodepoint::Ce),
    }
}
