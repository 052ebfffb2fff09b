"""Addresses between which the data go: those given, or those by which ssh reaches the other host.

A host may have another address for its peer than for itself, behind a NAT. What is bound is its own; what a peer
connects to, or expects connections from, is the one that is seen.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path

from ackclock.errors import InputError
from ackclock.hosts import ssh
from ackclock.hosts.agent import Agent

#: What to do where no address is found.
GIVE = "expected --data HERE,THERE: IPv4 addresses of both hosts"


@dataclass(frozen=True, slots=True)
class Address:
    """A host's address on the host itself, and as its peer sees it behind a NAT."""

    own: str
    public: str


def addresses(
    host: str, config: Path | None, local: Agent, remote: Agent, given: Sequence[str]
) -> tuple[Address, Address]:
    """Return the addresses of this host and the other. Raises `InputError` if they are unknown or not IPv4."""
    if len(given) == 2:
        return Address(given[0], given[0]), Address(given[1], given[1])
    if given:
        own = _towards(local, given[0])
        return Address(own, own), Address(given[0], given[0])
    remote_seen = _resolved(host, config)
    client, server = _connection(host, remote)
    return Address(_towards(local, remote_seen), client), Address(server, remote_seen)


def checked(given: Sequence[str]) -> tuple[str, ...]:
    """Validate addresses of the command line. Raises `InputError`."""
    for each in given:
        if not _is_address(each):
            raise InputError(f"--data: found {each!r}; {GIVE}, or the other's alone")
    if len(given) > 2:
        raise InputError(f"--data: found {len(given)} addresses; {GIVE}, or the other's alone")
    return tuple(given)


def _resolved(host: str, config: Path | None) -> str:
    """Resolve the name that ssh connects to."""
    name = ssh.host_name(host, config)
    with suppress(OSError):
        return str(socket.getaddrinfo(name, None, socket.AF_INET)[0][4][0])
    raise InputError(f'host "{host}": found no IPv4 address of {name}; {GIVE}')


def _connection(host: str, remote: Agent) -> tuple[str, str]:
    """Return both ends of the ssh connection, as the other host sees them (`SSH_CONNECTION`, ssh(1))."""
    (environment,) = remote.read("/proc/self/environ")
    variables = dict(each.split("=", 1) for each in environment.split("\0") if "=" in each)
    words = variables.get("SSH_CONNECTION", "").split()
    if len(words) == 4 and _is_address(words[0]) and _is_address(words[2]):
        return words[0], words[2]
    raise InputError(f'host "{host}": found no IPv4 addresses of the ssh connection; {GIVE}')


def _towards(local: Agent, peer: str) -> str:
    """Return this host's source address on the route to a peer."""
    ((_, output, _),) = local.look(["ip", "-j", "route", "get", peer])
    with suppress(ValueError, LookupError, TypeError):
        return str(json.loads(output)[0]["prefsrc"])
    raise InputError(f"found no route from this host to {peer}; {GIVE}")


def _is_address(text: str) -> bool:
    with suppress(ValueError):
        return bool(IPv4Address(text))
    return False
