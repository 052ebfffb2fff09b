//! Sockets in the namespaces of the hosts: who listens where, and which ports connections have.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    acceptfrom_with, bind, connect, listen, socket_with, sockopt, AddressFamily, SocketFlags,
    SocketType,
};

use crate::error::Tried;
use crate::namespaces::Namespaces;
use crate::order::{Care, Host, SocketOptions};
use crate::{sys, Error};

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 4096;
/// The first port that listens.
const FIRST_SERVER_PORT: u16 = 1024;
/// The first port of those that connect.
const FIRST_CLIENT_PORT: u16 = 8192;
/// A prompt reader reads when so many bytes are there: not at every segment, but before they press on the window. Of more
/// than half of the receive buffer (`tcp_rmem`) the kernel would make the buffer larger, and acknowledge each segment that
/// opens the window so far at once.
const PROMPT_BYTES: u32 = 16 << 10;
/// What a flow that stops before its end may have written ahead of TCP.
const AHEAD_BYTES: i32 = 64 << 10;

const NONBLOCKING: SocketFlags = SocketFlags::NONBLOCK.union(SocketFlags::CLOEXEC);

/// Who serves whom: flows of a group with a priority, in a namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Service {
    /// Where it listens.
    pub namespace: String,
    /// The group whose sockets are like it.
    pub group: u32,
    /// Priority of its packets.
    pub priority: u8,
}

/// The hosts' sockets.
#[derive(Debug)]
pub struct Hosts {
    pub namespaces: Namespaces,
    /// By service, its place among the listeners.
    services: BTreeMap<Service, usize>,
    listeners: Vec<OwnedFd>,
    /// By address, the port of its next connection.
    ports: BTreeMap<Ipv4Addr, u16>,
    reader: Care,
}

impl Hosts {
    /// Nobody listens yet.
    pub fn new(namespaces: Namespaces, reader: Care) -> Hosts {
        Hosts {
            namespaces,
            services: BTreeMap::new(),
            listeners: Vec::new(),
            ports: BTreeMap::new(),
            reader,
        }
    }

    /// Has a service listen; its number, if it did not.
    pub fn serve(
        &mut self,
        service: Service,
        options: &SocketOptions,
    ) -> Result<Option<usize>, Error> {
        if self.services.contains_key(&service) {
            return Ok(None);
        }
        let number = self.listeners.len();
        let socket = self.socket(&service.namespace, options, service.priority)?;
        let what = || format!("listening in {}", service.namespace);
        let port = server_port(number).ok_or(Errno::ADDRNOTAVAIL).tried(what)?;
        bind(&socket, &SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port)).tried(what)?;
        listen(&socket, BACKLOG).tried(what)?;
        self.listeners.push(socket);
        self.services.insert(service, number);
        Ok(Some(number))
    }

    /// A service's socket.
    pub fn listener(&self, number: usize) -> &OwnedFd {
        &self.listeners[number]
    }

    /// Takes a connection of a service: the socket and who has connected; none if there is none.
    pub fn accept(&self, number: usize) -> Option<(OwnedFd, SocketAddrV4)> {
        let (socket, peer) = acceptfrom_with(&self.listeners[number], NONBLOCKING).ok()?;
        Some((socket, peer?.try_into().ok()?))
    }

    /// Begins to connect a host with a service at another: the socket, and its address.
    pub fn connect(
        &mut self,
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
        let number = self.services.get(service).copied();
        let port = number
            .and_then(server_port)
            .ok_or(Errno::CONNREFUSED)
            .tried(what)?;
        let socket = self.socket(&from.namespace, options, service.priority)?;
        sockopt::set_socket_reuseaddr(&socket, true).tried(what)?;
        let (own, there) = (
            self.bind(&socket, from.address).tried(what)?,
            SocketAddrV4::new(to, port),
        );
        match connect(&socket, &there) {
            Ok(()) | Err(Errno::INPROGRESS) => Ok((socket, own, there)),
            Err(error) => Err(error).tried(what),
        }
    }

    /// A UDP socket of a host, and its address.
    pub fn datagrams(
        &mut self,
        host: &Host,
        priority: u8,
    ) -> Result<(OwnedFd, SocketAddrV4), Error> {
        self.namespaces.enter(&host.namespace)?;
        let what = || format!("a UDP socket of {} in {}", host.address, host.namespace);
        let socket =
            socket_with(AddressFamily::INET, SocketType::DGRAM, NONBLOCKING, None).tried(what)?;
        sys::set_option(
            socket.as_fd(),
            libc::SOL_SOCKET,
            libc::SO_PRIORITY,
            i32::from(priority),
        )
        .tried(what)?;
        let own = self.bind(&socket, host.address).tried(what)?;
        Ok((socket, own))
    }

    /// Binds to the next port of an address that is free.
    fn bind(&mut self, socket: &OwnedFd, address: Ipv4Addr) -> Result<SocketAddrV4, Errno> {
        let next = self.ports.entry(address).or_insert(FIRST_CLIENT_PORT);
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
        priority: u8,
    ) -> Result<OwnedFd, Error> {
        self.namespaces.enter(namespace)?;
        let what = || format!("a socket in {namespace}");
        let socket =
            socket_with(AddressFamily::INET, SocketType::STREAM, NONBLOCKING, None).tried(what)?;
        sockopt::set_tcp_congestion(&socket, &options.congestion)
            .tried(|| format!("congestion control {}", options.congestion))?;
        let settings = [
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
                Some(u32::from(priority)).filter(|&priority| priority > 0),
            ),
        ];
        for (level, name, value) in settings {
            if let Some(value) = value {
                sys::set_option(socket.as_fd(), level, name, value as i32).tried(what)?;
            }
        }
        Ok(socket)
    }

    /// Sets when a receiver's application is woken: `expected` bytes are to come, if that is known.
    pub fn await_data(&self, socket: &OwnedFd, expected: Option<u64>) -> Result<(), Error> {
        if self.reader == Care::Lazy {
            return Ok(());
        }
        let most = u64::from(PROMPT_BYTES);
        let bytes = expected.map_or(most, |expected| expected.clamp(1, most));
        sys::set_option(
            socket.as_fd(),
            libc::SOL_SOCKET,
            libc::SO_RCVLOWAT,
            bytes as i32,
        )
        .tried(|| "SO_RCVLOWAT".to_owned())
    }

    /// Keeps the application of a flow that stops from writing far ahead of TCP.
    pub fn write_late(socket: &OwnedFd) -> Result<(), Error> {
        sys::set_option(
            socket.as_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_NOTSENT_LOWAT,
            AHEAD_BYTES,
        )
        .tried(|| "TCP_NOTSENT_LOWAT".to_owned())
    }
}

fn server_port(number: usize) -> Option<u16> {
    let port = u16::try_from(number).ok()?.checked_add(FIRST_SERVER_PORT)?;
    (port < FIRST_CLIENT_PORT).then_some(port)
}
