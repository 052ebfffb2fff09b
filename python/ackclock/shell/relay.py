"""A relay between programs in the network and real servers.

The bridge redirects packets whose destination is no end to the first end's sockets (`host.relay_sockets`), and rewrites
their source to an address that `relayed` maps to the original ends. TCP is terminated there, so the kernel's TCP
crosses the simulated network; its data are copied to a second connection, of this machine. Datagrams are forwarded one
by one; those that full socket buffers lose are counted. Echo requests of ICMP take a socket of the bridge (`echo`).
Special destinations (`addresses`) are this machine, and its name server.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from ackclock.shell.addresses import Subnet
from ackclock.shell.echo import Echo
from ackclock.shell.sockets import Address, Relayed

#: An address of the Internet (RFC 3513 section 2.4), to which no packet is sent.
SOME_GLOBAL = ("2000::1", 9)

#: Bytes that are read at a time, and UDP flows that are carried at a time: a further one ends the oldest.
READ_BYTES, MAX_UDP_FLOWS = 1 << 16, 1024

#: The option SO_MEMINFO of a socket (Linux 4.12), and the place of its count of dropped packets in the 9 words.
SO_MEMINFO, MEMINFO, DROPS = 55, struct.Struct("9I"), 8

#: A value of SO_LINGER: closing the socket resets its connection.
RESET = struct.pack("ii", 1, 0)


class Relay:
    """A thread that relays connections until it is stopped."""

    def __init__(
        self,
        tcp: Sequence[socket.socket],
        udp: Sequence[socket.socket],
        relayed: Relayed,
        icmp: socket.socket,
        subnet: Subnet = Subnet(),  # noqa: B008 (a constant)
    ) -> None:
        self._udp, self._relayed, self._subnet = udp, relayed, subnet
        self._udp_flows: dict[Address, socket.socket] = {}
        #: Datagrams that a full socket buffer has lost; complete when it is stopped.
        self.lost_datagrams = 0
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(lambda *_: None)  # a connection that fails is reset, and no more is said
        for each in udp:
            each.setblocking(False)
            self._loop.add_reader(each, self._send, each)
        self._echo = Echo(self._loop, icmp, subnet.local)
        self._tasks: set[asyncio.Task[None]] = set()
        self._servers = [self._loop.run_until_complete(asyncio.start_server(self._accept, sock=each)) for each in tcp]
        self._thread = threading.Thread(target=self._loop.run_forever, name="relay", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End all connections."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        for server in self._servers:
            server.close()
        for task in tuple(self._tasks):
            task.cancel()
            with suppress(asyncio.CancelledError, OSError):
                self._loop.run_until_complete(task)
        for each in (*self._udp, *self._udp_flows.values()):
            self._close(each)
        self._echo.close()
        self._loop.close()

    def _close(self, udp: socket.socket) -> None:
        """Close a socket of UDP, and count what its buffer has lost."""
        self._loop.remove_reader(udp)
        self.lost_datagrams += _dropped(udp)
        udp.close()

    def _destination(self, address: str) -> Address | None:
        """Return the destination, in this machine's networks, of the connection that has an address here."""
        found = self._relayed(address)
        if found is None:
            return None
        host, port = found[0]
        if host == self._subnet.name_server:
            host = _name_server()
        return self._subnet.local(host), port

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Relay a TCP connection in a task."""
        task = self._loop.create_task(self._relay(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Relay a TCP connection until both sides have closed it, or one has reset it."""
        destination = self._destination(writer.get_extra_info("peername")[0])
        far: asyncio.StreamWriter | None = None
        try:
            if destination is None:
                raise ConnectionRefusedError
            far_reader, far = await asyncio.open_connection(*destination)
            await asyncio.gather(_copy(reader, far), _copy(far_reader, writer))
        except OSError:
            for each in filter(None, (writer, far)):
                _reset(each)
        finally:
            writer.close()
            if far is not None:
                far.close()

    @property
    def forbidden_echoes(self) -> int:
        """Echo requests that this machine does not let its user send."""
        return self._echo.forbidden

    def _send(self, udp: socket.socket) -> None:
        """Forward the datagrams that programs have sent."""
        while True:
            try:
                content, program = udp.recvfrom(READ_BYTES)
            except OSError:  # none is left
                return
            with suppress(OSError):  # no route, or a port that nobody listens at
                flow = self._udp_flows.get(program) or self._udp_flow(udp, program)
                if flow is not None:
                    self._forward(flow, content)

    def _forward(self, udp: socket.socket, content: bytes, *address: Address) -> None:
        """Send a datagram, which is lost if the buffer is full."""
        try:
            udp.sendto(content, *address) if address else udp.send(content)
        except BlockingIOError:
            self.lost_datagrams += 1

    def _udp_flow(self, udp: socket.socket, program: Address) -> socket.socket | None:
        """Return a new socket for the datagrams of a program's socket; None for an unknown address."""
        destination = self._destination(program[0])
        if destination is None:
            return None
        flow = socket.socket(udp.family, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        try:
            flow.connect(destination)
        except OSError:
            flow.close()
            raise
        self._udp_flows[program] = flow
        self._loop.add_reader(flow, self._return, udp, flow, program)
        while len(self._udp_flows) > MAX_UDP_FLOWS:
            self._close(self._udp_flows.pop(next(iter(self._udp_flows))))
        return flow

    def _return(self, udp: socket.socket, flow: socket.socket, program: Address) -> None:
        """Forward a datagram from outside to the program."""
        with suppress(OSError):
            self._forward(udp, flow.recv(READ_BYTES), program)


def has_ipv6_route() -> bool:
    """Return whether this machine has a route to the Internet for IPv6."""
    with suppress(OSError), socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as udp:
        udp.connect(SOME_GLOBAL)
        return True
    return False


def _dropped(udp: socket.socket) -> int:
    """Return how many datagrams the kernel has dropped since the receive buffer of a socket was full."""
    try:
        counts = udp.getsockopt(socket.SOL_SOCKET, SO_MEMINFO, MEMINFO.size)
    except OSError:  # a kernel without the option
        return 0
    return int(MEMINFO.unpack(counts)[DROPS])


def _reset(writer: asyncio.StreamWriter) -> None:
    """Reset a connection, unless it is closed."""
    with suppress(OSError):
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    writer.transport.abort()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy what is read, and the end of it."""
    while content := await reader.read(READ_BYTES):
        writer.write(content)
        await writer.drain()
    writer.write_eof()


def _name_server() -> str:
    """Return this machine's first name server of IPv4."""
    with suppress(OSError):
        for line in Path("/etc/resolv.conf").read_text().splitlines():
            match line.split():
                case ["nameserver", address, *_] if ":" not in address:
                    return address
    return "127.0.0.1"
