//! One end of a connection: the stack's endpoint, its connection, and the application.
//!
//! As the stack's documentation demands, a connection is asked for datagrams after each input until it has none: when
//! a datagram has arrived, and when its timer is due.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZeroUsize;

use ackclock_core::Time;
use ackclock_plan::QuicPlan;
use bytes::{Bytes, BytesMut};
use noq_proto::{
    Connection, ConnectionHandle, DatagramEvent, EcnCodepoint, Event, FourTuple, PathId, VarInt,
};

use crate::application::{Application, Reader, Writer};
use crate::clock::{instant, span, time};
use crate::config;
use crate::controller::{Change, Observer, Transport};
use crate::engine_controller::ControllerError;
use crate::log::Log;
use crate::seeds::Seeds;

/// A timer is not due again before the next nanosecond, the resolution of the stack's clock.
const TICK: Time = Time::from_picoseconds(1000);

/// Name of the server in the handshake.
const SERVER_NAME: &str = "example.org";

/// Role of an end in the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It opens the connection and sends the data.
    Client,
    /// It accepts the connection and receives the data.
    Server,
}

/// A UDP datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Payload.
    pub bytes: Vec<u8>,
    /// ECN bits.
    pub ecn: Option<EcnCodepoint>,
}

/// One end of a connection, as a network sees it.
pub trait ConnectionEnd: Send + Sync {
    /// Time at which [`ConnectionEnd::poll`] is to be called; [`Time::NEVER`] if there is none.
    fn wake(&self) -> Time;
    /// A datagram has arrived.
    fn on_datagram(&mut self, datagram: Vec<u8>, ecn: Option<EcnCodepoint>, now: Time);
    /// The next datagram that is due at `now`, if there is one.
    fn poll(&mut self, now: Time) -> Option<Datagram>;
    /// Bytes that the application has read.
    fn read_bytes(&self) -> u64;
    /// State of the transport; none before the first datagram.
    fn transport(&self) -> Option<Transport>;
    /// Take the changes of state since the last call.
    fn take_changes(&mut self) -> Vec<(Time, Change)>;
    /// Take what the stack has logged since the last call.
    fn take_log(&mut self) -> Vec<u8> {
        Vec::new()
    }
}

/// One end of a connection of noq-proto.
pub struct Endpoint {
    stack: noq_proto::Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    application: Application,
    observer: Observer,
    /// The stack's log, of a client whose plan asks for it.
    log: Option<Log>,
    /// Address of the other end.
    peer: FourTuple,
    /// True if datagrams are sent with ECN bits.
    ecn: bool,
    /// A response of the endpoint itself, to a datagram of no connection.
    response: Option<Vec<u8>>,
    established: Option<Time>,
    finished: Option<Time>,
    is_closed: bool,
    wake: Time,
}

impl Endpoint {
    /// An end that starts at `now` and stops sending at `stop`; `seed` is that of its random numbers.
    ///
    /// # Errors
    /// The plan's congestion control cannot work in the stack.
    pub fn new(
        plan: &QuicPlan,
        role: Role,
        now: Time,
        stop: Time,
        seed: u64,
    ) -> Result<Endpoint, ControllerError> {
        let (mut seeds, observer) = (Seeds::new(seed), Observer::default());
        let log = (plan.qlog && role == Role::Client).then(Log::default);
        let peer = FourTuple::new(address(role.other()), None);
        let (stack, connection, application) = match role {
            Role::Client => {
                let (mut endpoint, config) =
                    config::client(plan, &mut seeds, &observer, log.as_ref())?;
                let remote = address(Role::Server);
                let opened = endpoint.connect(instant(now), config, remote, SERVER_NAME);
                let writer = Writer::new(plan, stop);
                (endpoint, opened.ok(), Application::Writer(writer))
            }
            Role::Server => {
                let endpoint = config::server(plan, &mut seeds, &observer)?;
                (endpoint, None, Application::Reader(Reader::default()))
            }
        };
        Ok(Endpoint {
            wake: if connection.is_some() {
                now
            } else {
                Time::NEVER
            },
            stack,
            connection,
            application,
            observer,
            log,
            peer,
            ecn: plan.ecn,
            response: None,
            established: None,
            finished: None,
            is_closed: false,
        })
    }

    fn transmit(&mut self, now: Time) -> Option<Datagram> {
        let (_, connection) = self.connection.as_mut()?;
        let mut bytes = Vec::with_capacity(connection.current_mtu().into());
        let transmit = connection.poll_transmit(instant(now), NonZeroUsize::MIN, &mut bytes)?;
        bytes.truncate(transmit.size);
        let ecn = transmit.ecn.filter(|_| self.ecn);
        Some(Datagram { bytes, ecn })
    }

    /// Run timers, and pass events between the connection, its endpoint and the application.
    fn handle_events(&mut self, now: Time) {
        let Some((handle, connection)) = &mut self.connection else {
            return;
        };
        let at = instant(now);
        if connection.poll_timeout().is_some_and(|due| due <= at) {
            connection.handle_timeout(at);
        }
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = self.stack.handle_event(*handle, event) {
                connection.handle_event(event);
            }
        }
        while let Some(event) = connection.poll() {
            match (event, &mut self.application) {
                (Event::Connected, application) => {
                    self.established = Some(now);
                    self.observer.record(now, Change::Established);
                    if let Application::Writer(writer) = application {
                        writer.start(connection);
                    }
                }
                (Event::Stream(event), Application::Writer(writer)) => {
                    writer.on_event(connection, &event);
                }
                (Event::Stream(event), Application::Reader(reader)) => {
                    reader.on_event(connection, &event);
                }
                (Event::ConnectionLost { .. }, _) => self.is_closed = true,
                _ => {}
            }
        }
        self.end_application(now);
    }

    /// Close the connection when all is acknowledged, or when it is time to stop.
    fn end_application(&mut self, now: Time) {
        let (Some((_, connection)), Application::Writer(writer)) =
            (&mut self.connection, &mut self.application)
        else {
            return;
        };
        if self.is_closed || !(writer.is_finished() || writer.stop() <= now) {
            return;
        }
        if writer.is_finished() {
            self.finished = Some(now);
            self.observer.record(now, Change::Finished);
        }
        self.is_closed = true;
        connection.close(instant(now), VarInt::from_u32(0), Bytes::new());
    }

    fn next_timer(&self) -> Time {
        let connection = self.connection.as_ref();
        let timer = connection.and_then(|(_, connection)| connection.poll_timeout());
        let stop = match &self.application {
            Application::Writer(writer) if !self.is_closed => writer.stop(),
            Application::Writer(_) | Application::Reader(_) => Time::NEVER,
        };
        timer.map_or(Time::NEVER, time).min(stop)
    }
}

impl ConnectionEnd for Endpoint {
    fn wake(&self) -> Time {
        self.wake
    }

    fn on_datagram(&mut self, datagram: Vec<u8>, ecn: Option<EcnCodepoint>, now: Time) {
        let (at, mut response) = (instant(now), Vec::new());
        let bytes = BytesMut::from(Bytes::from(datagram));
        let event = self.stack.handle(at, self.peer, ecn, bytes, &mut response);
        match event {
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some((_, connection)) = &mut self.connection {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                match self.stack.accept(incoming, at, &mut response, None) {
                    Ok(accepted) => self.connection = Some(accepted),
                    Err(error) => {
                        self.response = error.response.map(|_| std::mem::take(&mut response));
                    }
                }
            }
            Some(DatagramEvent::Response(_)) => self.response = Some(response),
            None => {}
        }
        self.wake = now;
    }

    fn poll(&mut self, now: Time) -> Option<Datagram> {
        if let Some(bytes) = self.response.take() {
            return Some(Datagram { bytes, ecn: None });
        }
        self.handle_events(now);
        let datagram = self.transmit(now);
        self.wake = if datagram.is_some() {
            now
        } else {
            self.next_timer().max(now + TICK)
        };
        datagram
    }

    fn read_bytes(&self) -> u64 {
        match &self.application {
            Application::Reader(reader) => reader.read_bytes,
            Application::Writer(_) => 0,
        }
    }

    fn transport(&self) -> Option<Transport> {
        let (_, connection) = self.connection.as_ref()?;
        let mut transport = Transport {
            established: self.established,
            finished: self.finished,
            is_closed: self.is_closed,
            datagram_bytes: u64::from(connection.current_mtu()),
            ..Transport::default()
        };
        if let Some(controller) = connection.congestion_state(PathId::ZERO) {
            let metrics = controller.metrics();
            transport.cwnd_bytes = Some(metrics.congestion_window);
            transport.ssthresh_bytes = metrics.ssthresh.filter(|&bytes| bytes < u64::MAX);
        }
        transport.srtt = connection.rtt(PathId::ZERO).map(span);
        self.observer.write(&mut transport);
        Some(transport)
    }

    fn take_changes(&mut self) -> Vec<(Time, Change)> {
        self.observer.take_changes()
    }

    fn take_log(&mut self) -> Vec<u8> {
        self.log.as_ref().map(Log::take).unwrap_or_default()
    }
}

impl Role {
    fn other(self) -> Role {
        match self {
            Role::Client => Role::Server,
            Role::Server => Role::Client,
        }
    }
}

/// Address of an end. Each connection has a pair of endpoints of its own, so all connections have the same.
fn address(role: Role) -> SocketAddr {
    let host = match role {
        Role::Client => 1,
        Role::Server => 2,
    };
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, host)), 4433)
}
