//! Sockets in the namespaces of the hosts: who listens where, and which ports connections have.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    acceptfrom_with, bind, connect, listen, socket_with, sockopt, AddressFamily, SocketFlags,
    SocketType,
};

use crate::error::Tried;
use crate::namespaces::Namespaces;
use crate::run_spec::{AppTiming, Host, RunSpec, SocketOptions};
use crate::{sys, Error};

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 4096;
/// The first port that listens, in namespaces.
const FIRST_SERVER_PORT: u16 = 1024;
/// The first port of those that connect.
const FIRST_CLIENT_PORT: u16 = 8192;
/// The low-water mark of an immediate reader: it is not woken at every segment, but before the data press on the
/// window. With more than half of the receive buffer (`tcp_rmem`) the kernel would enlarge the buffer, and acknowledge
/// each segment that opens the window so far at once.
const LOW_WATER_BYTES: u32 = 16 << 10;
/// The bytes that are read without a low-water mark: the kernel sizes the receive buffer by the bytes read in a round
/// trip, and the first round trips have less than [`LOW_WATER_BYTES`].
pub const UNTHROTTLED_BYTES: u64 = 256 << 10;
/// The initial receive buffer, within which every byte is read at the low-water mark.
const BUFFERED_BYTES: u64 = 64 << 10;
/// The unsent bytes that a flow with a stop time may write ahead of TCP.
const AHEAD_BYTES: i32 = 64 << 10;

const NONBLOCKING: SocketFlags = SocketFlags::NONBLOCK.union(SocketFlags::CLOEXEC);

/// A listening service: flows of a group with a priority, in a namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Service {
    /// The namespace in which it listens.
    pub namespace: String,
    /// The group whose sockets are like it.
    pub group: u32,
    /// Priority of its packets.
    pub priority: u8,
    /// Codepoint of the DS field of its packets.
    pub dscp: u8,
}

/// The assignment of ports to connections.
///
/// In namespaces, a client takes the next free port and reports it here. Between machines the ports are fixed: a flow's
/// number modulo `SPAN` gives the client's port, the quotient the server's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ports {
    /// The first that listens.
    first: u16,
    /// The number of listeners of each service; 1 in namespaces.
    turns: usize,
    is_numbered: bool,
}

impl Ports {
    /// Ports below those that Linux takes by itself (`ip_local_port_range` begins with 32768).
    const FIRST_NUMBERED: u16 = 20_000;
    const SPAN: usize = 12_000;

    /// Return the ports of a run spec with `flows` flows.
    pub fn of(run_spec: &RunSpec, flows: usize) -> Ports {
        run_spec.local.as_ref().map_or(
            Ports {
                first: FIRST_SERVER_PORT,
                turns: 1,
                is_numbered: false,
            },
            |local| Ports {
                first: local.first_port,
                turns: flows.div_ceil(Ports::SPAN).max(1),
                is_numbered: true,
            },
        )
    }

    /// The flow of a connection between a client's port and a listener, if they say.
    pub fn flow(&self, client: u16, listener: usize) -> Option<usize> {
        let rest = usize::from(client.checked_sub(Ports::FIRST_NUMBERED)?);
        let is_one = self.is_numbered && rest < Ports::SPAN;
        is_one.then_some(listener % self.turns * Ports::SPAN + rest)
    }

    /// A flow's listener among those of its service, and its client's port.
    fn of_flow(&self, flow: usize) -> (usize, Option<u16>) {
        if !self.is_numbered {
            return (0, None);
        }
        let client = Ports::FIRST_NUMBERED + (flow % Ports::SPAN) as u16;
        (flow / Ports::SPAN, Some(client))
    }

    /// The port of a listener.
    pub fn listening(&self, number: usize) -> Option<u16> {
        let port = u16::try_from(number).ok()?.checked_add(self.first)?;
        let most = if self.is_numbered {
            Ports::FIRST_NUMBERED
        } else {
            FIRST_CLIENT_PORT
        };
        (port < most).then_some(port)
    }
}

/// The socket option that sets a codepoint: level, name and value. The kernel keeps its own ECN bits.
fn tos(dscp: u8) -> (i32, i32, u32) {
    (libc::IPPROTO_IP, libc::IP_TOS, u32::from(dscp) << 2)
}

/// The hosts' sockets.
#[derive(Debug)]
pub struct Hosts {
    pub namespaces: Namespaces,
    pub ports: Ports,
    /// By service, its place among the services.
    services: BTreeMap<Service, usize>,
    /// `turns` for each service; none where the host is remote.
    listeners: Vec<Option<OwnedFd>>,
    /// By address, the port of its next connection.
    next: BTreeMap<Ipv4Addr, u16>,
    reader: AppTiming,
}

impl Hosts {
    /// Create the hosts without listeners.
    pub fn new(namespaces: Namespaces, ports: Ports, reader: AppTiming) -> Hosts {
        Hosts {
            namespaces,
            ports,
            services: BTreeMap::new(),
            listeners: Vec::new(),
            next: BTreeMap::new(),
            reader,
        }
    }

    /// Have a service listen, if its host is here; the numbers of its listeners, if it did not.
    pub fn serve(
        &mut self,
        service: Service,
        options: &SocketOptions,
        is_here: bool,
    ) -> Result<Range<usize>, Error> {
        let begin = self.listeners.len();
        if self.services.contains_key(&service) {
            return Ok(begin..begin);
        }
        for number in begin..begin + self.ports.turns {
            let socket = is_here.then(|| self.listening(&service, options, number));
            self.listeners.push(socket.transpose()?);
        }
        self.services.insert(service, begin / self.ports.turns);
        Ok(begin..self.listeners.len())
    }

    fn listening(
        &mut self,
        service: &Service,
        options: &SocketOptions,
        number: usize,
    ) -> Result<OwnedFd, Error> {
        let socket = self.socket(&service.namespace, options, service)?;
        let what = || format!("listening in {}", service.namespace);
        let port = self.ports.listening(number);
        let port = port.ok_or(Errno::ADDRNOTAVAIL).tried(what)?;
        bind(&socket, &SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port)).tried(what)?;
        listen(&socket, BACKLOG).tried(what)?;
        Ok(socket)
    }

    /// A listener's socket, if it is here.
    pub fn listener(&self, number: usize) -> Option<&OwnedFd> {
        self.listeners[number].as_ref()
    }

    /// Take a connection of a service: the socket and who has connected; none if there is none.
    pub fn accept(&self, number: usize) -> Option<(OwnedFd, SocketAddrV4)> {
        let (socket, peer) = acceptfrom_with(self.listener(number)?, NONBLOCKING).ok()?;
        Some((socket, peer?.try_into().ok()?))
    }

    /// Begin to connect a host with a service at another for a flow: the socket, and its address.
    pub fn connect(
        &mut self,
        flow: u32,
        from: &Host,
        to: Ipv4Addr,
        service: &Service,
        options: &SocketOptions,
    ) -> Result<(OwnedFd, SocketAddrV4, SocketAddrV4), Error> {
        let what = || {
            format!(
                "connecting {} in {} with {to}",
                from.address, from.namespace
            )
        };
        let (turn, client) = self.ports.of_flow(flow as usize);
        let number = self.services.get(service).copied();
        let port = number
            .and_then(|number| self.ports.listening(number * self.ports.turns + turn))
            .ok_or(Errno::CONNREFUSED)
            .tried(what)?;
        let socket = self.socket(&from.namespace, options, service)?;
        sockopt::set_socket_reuseaddr(&socket, true).tried(what)?;
        let (own, there) = (
            match client {
                Some(port) => {
                    bind_to(&socket, SocketAddrV4::new(from.address, port)).tried(what)?
                }
                None => self.bind(&socket, from.address).tried(what)?,
            },
            SocketAddrV4::new(to, port),
        );
        match connect(&socket, &there) {
            Ok(()) | Err(Errno::INPROGRESS) => Ok((socket, own, there)),
            Err(error) => Err(error).tried(what),
        }
    }

    /// A UDP socket of a host, and its address. Between machines both ends have the port of the flow's client.
    pub fn datagrams(
        &mut self,
        flow: u32,
        host: &Host,
        priority: u8,
        dscp: u8,
    ) -> Result<(OwnedFd, SocketAddrV4), Error> {
        self.namespaces.enter(&host.namespace)?;
        let what = || format!("a UDP socket of {} in {}", host.address, host.namespace);
        let socket =
            socket_with(AddressFamily::INET, SocketType::DGRAM, NONBLOCKING, None).tried(what)?;
        let (level, name, value) = tos(dscp);
        sys::set_option(socket.as_fd(), level, name, value as i32).tried(what)?;
        sys::set_option(
            socket.as_fd(),
            libc::SOL_SOCKET,
            libc::SO_PRIORITY,
            i32::from(priority),
        )
        .tried(what)?;
        let own = match self.datagrams_at(flow, host) {
            Some(own) => bind_to(&socket, own),
            None => self.bind(&socket, host.address),
        };
        Ok((socket, own.tried(what)?))
    }

    /// The address of a flow's datagrams at a host that may be remote; none if it takes the next that is free.
    pub fn datagrams_at(&self, flow: u32, host: &Host) -> Option<SocketAddrV4> {
        let port = self.ports.of_flow(flow as usize).1;
        port.map(|port| SocketAddrV4::new(host.address, port))
    }

    /// Bind to the next port of an address that is free.
    fn bind(&mut self, socket: &OwnedFd, address: Ipv4Addr) -> Result<SocketAddrV4, Errno> {
        let next = self.next.entry(address).or_insert(FIRST_CLIENT_PORT);
        for _ in FIRST_CLIENT_PORT..=u16::MAX {
            let own = SocketAddrV4::new(address, *next);
            *next = next.checked_add(1).unwrap_or(FIRST_CLIENT_PORT);
            match bind(socket, &own) {
                Err(Errno::ADDRINUSE) => {}
                outcome => return outcome.map(|()| own),
            }
        }
        Err(Errno::ADDRINUSE)
    }

    /// A TCP socket in a namespace.
    fn socket(
        &mut self,
        namespace: &str,
        options: &SocketOptions,
        service: &Service,
    ) -> Result<OwnedFd, Error> {
        self.namespaces.enter(namespace)?;
        let what = || format!("a socket in {namespace}");
        let socket =
            socket_with(AddressFamily::INET, SocketType::STREAM, NONBLOCKING, None).tried(what)?;
        match sockopt::set_tcp_congestion(&socket, &options.congestion) {
            // Without rights only some can be chosen; of a machine that receives none matters, and anyone who sent it
            // the run spec has looked whether one that sends may have it.
            Err(Errno::PERM) if self.ports.is_numbered => {}
            set => set.tried(|| format!("congestion control {}", options.congestion))?,
        }
        let (level, name, tos) = tos(service.dscp);
        let settings = [
            // Before the priority, which it sets as well.
            (level, name, Some(tos).filter(|&tos| tos > 0)),
            (libc::IPPROTO_TCP, libc::TCP_MAXSEG, options.mss_bytes),
            (
                libc::SOL_SOCKET,
                libc::SO_SNDBUFFORCE,
                options.send_buffer_bytes,
            ),
            (
                libc::SOL_SOCKET,
                libc::SO_RCVBUFFORCE,
                options.receive_buffer_bytes,
            ),
            (
                libc::IPPROTO_TCP,
                libc::TCP_WINDOW_CLAMP,
                options.window_clamp_bytes,
            ),
            (
                libc::SOL_SOCKET,
                libc::SO_PRIORITY,
                Some(u32::from(service.priority)).filter(|&priority| priority > 0),
            ),
        ];
        for (level, name, value) in settings {
            if let Some(value) = value {
                sys::set_option(socket.as_fd(), level, name, value as i32).tried(what)?;
            }
        }
        Ok(socket)
    }

    /// Set when a receiver's application is woken that has read so much: `expected` bytes are to come, if that is
    /// known.
    pub fn set_low_water(
        &self,
        socket: &OwnedFd,
        received: u64,
        expected: Option<u64>,
    ) -> Result<(), Error> {
        let is_small = expected.is_some_and(|expected| received + expected <= BUFFERED_BYTES);
        if self.reader == AppTiming::Periodic || (received < UNTHROTTLED_BYTES && !is_small) {
            return Ok(());
        }
        let most = u64::from(LOW_WATER_BYTES);
        let bytes = expected.map_or(most, |expected| expected.clamp(1, most));
        sys::set_option(
            socket.as_fd(),
            libc::SOL_SOCKET,
            libc::SO_RCVLOWAT,
            bytes as i32,
        )
        .tried(|| "SO_RCVLOWAT".to_owned())
    }

    /// Keep the application of a flow that stops from writing far ahead of TCP.
    pub fn limit_unsent(socket: &OwnedFd) -> Result<(), Error> {
        sys::set_option(
            socket.as_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_NOTSENT_LOWAT,
            AHEAD_BYTES,
        )
        .tried(|| "TCP_NOTSENT_LOWAT".to_owned())
    }
}

fn bind_to(socket: &OwnedFd, own: SocketAddrV4) -> Result<SocketAddrV4, Errno> {
    bind(socket, &own).map(|()| own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn between_machines_a_flow_is_in_its_two_ports() {
        let ports = Ports {
            first: 10_000,
            turns: 3,
            is_numbered: true,
        };
        for flow in [0, 1, 11_999, 12_000, 35_999] {
            let (turn, client) = ports.of_flow(flow);
            let (service, client) = (4, client.expect("a port"));
            assert!((20_000..32_000).contains(&client));
            assert_eq!(ports.flow(client, service * 3 + turn), Some(flow));
        }
        assert_eq!(ports.flow(19_999, 0), None);
        assert_eq!(ports.flow(32_000, 0), None);
        assert_eq!(ports.listening(10_000), None);
    }

    #[test]
    fn in_namespaces_ports_do_not_encode_flows() {
        let ports = Ports {
            first: FIRST_SERVER_PORT,
            turns: 1,
            is_numbered: false,
        };
        assert_eq!(ports.flow(20_000, 0), None);
        assert_eq!(ports.listening(0), Some(FIRST_SERVER_PORT));
        assert_eq!(ports.listening(8192 - 1024), None);
    }
}
