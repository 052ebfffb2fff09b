"""Addresses of a network of `ackclock shell`: those of its ends, and those that stand for this machine.

Networks have the subnets 10.77.N.0/24 and fd00:77:0:M::/64. N is 0, or more where this machine itself is in such a
network: inside another `ackclock shell`, whose hosts an inner one with `--internet` can so reach.
"""

from __future__ import annotations

import socket
from contextlib import suppress
from typing import NamedTuple

#: Most networks, one in the other.
MAX_SUBNETS = 100


class Subnet(NamedTuple):
    """The addresses of a network."""

    number: int = 0

    def _ipv4(self, host: int) -> str:
        return f"10.77.{self.number}.{host}"

    def _ipv6(self, host: int) -> str:
        # fd00:77:0:1::/96 is the relay's (crates/ackclock-shell/src/outside.rs).
        return f"fd00:77:0:{self.number + 1:x}::{host:x}" if self.number else f"fd00:77::{host:x}"

    def end(self, number: int) -> tuple[str, str]:
        """Return the IPv4 and the IPv6 address of an end, which count from 1."""
        return self._ipv4(number), self._ipv6(number)

    @property
    def host(self) -> str:
        """This machine."""
        return self._ipv4(254)

    @property
    def host6(self) -> str:
        """This machine by IPv6."""
        return self._ipv6(254)

    @property
    def name_server(self) -> str:
        """The name server of this machine."""
        return self._ipv4(253)

    def local(self, address: str) -> str:
        """Return the address by which this machine reaches what has one in the network."""
        return {self.host: "127.0.0.1", self.host6: "::1"}.get(address, address)


def free_subnet() -> Subnet:
    """Return the first subnet in which this machine has no address."""
    for number in range(MAX_SUBNETS):
        subnet = Subnet(number)
        if _own_address(subnet.host).rpartition(".")[0] != subnet.host.rpartition(".")[0]:
            return subnet
    return Subnet()


def _own_address(destination: str) -> str:
    """Return the address from which this machine would send to another; nothing is sent."""
    with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.connect((destination, 9))
        return str(udp.getsockname()[0])
    return ""
