"""Echo requests of programs to real hosts: ICMP (RFC 792) and ICMPv6 (RFC 4443) between the bridge and this machine.

The bridge hands over whole IP packets. A request is sent by a socket of this machine, one for each program's identifier
and destination, and its reply becomes a packet to the program. The kernel's sockets for echo requests need no rights
where `net.ipv4.ping_group_range` has the user's group; root takes raw ones elsewhere.

Deviations: other messages of ICMP, options and extension headers do not pass; a reply's time to live is 64.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

#: Length of an IP packet, and sockets at a time: a further one ends the oldest.
MAX_BYTES, MAX_SOCKETS = 1 << 16, 1024

#: An IPv4 header without options (RFC 791 section 3.1), an IPv6 header (RFC 8200 section 3), and that of an echo
#: message: type, code, checksum, identifier, sequence number.
IPV4, IPV6, ECHO = struct.Struct("!BBHHHBBH4s4s"), struct.Struct("!IHBB16s16s"), struct.Struct("!BBHHH")

#: Hops that a reply may take, as Linux begins.
HOPS = 64


class Version(NamedTuple):
    """The numbers of a version of IP: family, protocol, and the types of requests and replies."""

    family: socket.AddressFamily
    protocol: int
    request: int
    reply: int


#: By the version of IP.
VERSIONS = {
    4: Version(socket.AF_INET, socket.IPPROTO_ICMP, 8, 0),
    6: Version(socket.AF_INET6, socket.IPPROTO_ICMPV6, 128, 129),
}


@dataclass(frozen=True, slots=True)
class Request:
    """An echo request: the version of IP, the addresses of program and destination, the identifier, and the message."""

    version: int
    source: bytes
    destination: bytes
    identifier: int
    message: bytes

    @property
    def key(self) -> tuple[bytes, bytes, int]:
        """Source, destination and identifier, which replies have in common with it."""
        return self.source, self.destination, self.identifier


class Echo:
    """Echo requests of one network. `local` maps a destination to the address that it has on this machine."""

    def __init__(self, loop: asyncio.AbstractEventLoop, bridge: socket.socket, local: Callable[[str], str]) -> None:
        self._loop, self._bridge, self._local = loop, bridge, local
        self._sockets: dict[tuple[bytes, bytes, int], socket.socket] = {}
        #: Requests for which this machine gave no socket.
        self.forbidden = 0
        loop.add_reader(bridge, self._send)

    def close(self) -> None:
        """End all exchanges."""
        self._loop.remove_reader(self._bridge)
        for each in self._sockets.values():
            self._close(each)

    def _close(self, one: socket.socket) -> None:
        self._loop.remove_reader(one)
        one.close()

    def _send(self) -> None:
        """Send the requests that have crossed the network."""
        while True:
            try:
                packet = self._bridge.recv(MAX_BYTES)
            except OSError:  # none is left
                return
            request = parse(packet)
            if request is None:
                continue
            try:
                one = self._sockets.get(request.key) or self._socket(request)
            except OSError:  # no socket, no route, or a broadcast, which is not permitted
                continue
            with suppress(OSError):  # a full buffer
                one.send(request.message)

    def _socket(self, request: Request) -> socket.socket:
        """Return a new socket for requests like this one."""
        try:
            one = _open(VERSIONS[request.version])
        except PermissionError:
            self.forbidden += 1
            raise
        try:
            one.setblocking(False)
            one.connect((self._local(str(ipaddress.ip_address(request.destination))), 0))
        except OSError:
            one.close()
            raise
        self._sockets[request.key] = one
        self._loop.add_reader(one, self._return, one, request)
        while len(self._sockets) > MAX_SOCKETS:
            self._close(self._sockets.pop(next(iter(self._sockets))))
        return one

    def _return(self, one: socket.socket, request: Request) -> None:
        """Send a reply to the program; an error is none."""
        with suppress(OSError):
            message = one.recv(MAX_BYTES)
            is_raw = one.type == socket.SOCK_RAW
            if is_raw and request.version == 4:  # raw(7): with the IP header
                message = message[4 * (message[0] & 15) :]
            if len(message) < ECHO.size:
                return
            kind, code, _, identifier, _ = ECHO.unpack_from(message)
            is_own = not is_raw or identifier == request.identifier  # other sockets have numbers of the kernel's
            if is_own and (kind, code) == (VERSIONS[request.version].reply, 0):
                self._bridge.send(reply(request, message))


def _open(version: Version) -> socket.socket:
    """Return a socket for echo messages. Raises `PermissionError`."""
    try:
        return socket.socket(version.family, socket.SOCK_DGRAM, version.protocol)
    except PermissionError:
        return socket.socket(version.family, socket.SOCK_RAW, version.protocol)


def parse(packet: bytes) -> Request | None:
    """Return the echo request in an IP packet; None for any other packet, and for fragments."""
    number = packet[0] >> 4 if packet else 0
    if number == 4 and len(packet) >= IPV4.size:
        fields = IPV4.unpack_from(packet)
        protocol, source, destination = fields[6], *fields[8:]
        start = 4 * (packet[0] & 15)
        is_fragment = bool(fields[4] & 0x3FFF)
    elif number == 6 and len(packet) >= IPV6.size:
        _, _, protocol, _, source, destination = IPV6.unpack_from(packet)
        start, is_fragment = IPV6.size, False
    else:
        return None
    message = packet[start:]
    version = VERSIONS[number]
    if protocol != version.protocol or is_fragment or len(message) < ECHO.size:
        return None
    kind, code, _, identifier, _ = ECHO.unpack_from(message)
    return Request(number, source, destination, identifier, message) if (kind, code) == (version.request, 0) else None


def reply(request: Request, message: bytes) -> bytes:
    """Return the IP packet to a program with an echo reply, under the identifier of its request."""
    version = VERSIONS[request.version]
    addresses = request.destination, request.source
    _, _, _, _, sequence = ECHO.unpack_from(message)
    pseudo = b""
    if request.version == 6:  # RFC 8200 section 8.1
        pseudo = b"".join(addresses) + struct.pack("!II", len(message), version.protocol)
    fields = version.reply, 0, 0, request.identifier, sequence
    content = ECHO.pack(*fields) + message[ECHO.size :]
    content = content[:2] + checksum(pseudo + content).to_bytes(2, "big") + content[4:]
    if request.version == 6:
        return IPV6.pack(6 << 28, len(content), version.protocol, HOPS, *addresses) + content
    header = IPV4.pack(0x45, 0, IPV4.size + len(content), 0, 0, HOPS, version.protocol, 0, *addresses)
    return header[:10] + checksum(header).to_bytes(2, "big") + header[12:] + content


def checksum(content: bytes) -> int:
    """Return the Internet checksum (RFC 1071) of bytes whose own checksum is 0."""
    padded = content + bytes(len(content) % 2)
    total: int = sum(struct.unpack(f"!{len(padded) // 2}H", padded))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
