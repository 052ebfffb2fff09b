"""The two hosts: their addresses, kernel settings, and the offloads and queues of the data's interface."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

from ackclock.doctor import settings
from ackclock.doctor.settings import Settings
from ackclock.engines.linux.testbed import preflight
from ackclock.engines.linux.testbed.layout import RECEIVER, SENDER, Host, Testbed
from ackclock.engines.linux.testbed.preflight import Facts
from ackclock.errors import InputError
from ackclock.hosts import ssh
from ackclock.hosts.agent import Agent

#: Advice where no address is found.
GIVE = "expected --addresses LOCAL,REMOTE: IPv4 addresses of both hosts"


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
            raise InputError(f"--addresses: found {each!r}; {GIVE}, or the other's alone")
    if len(given) > 2:
        raise InputError(f"--addresses: found {len(given)} addresses; {GIVE}, or the other's alone")
    return tuple(given)


def _resolved(host: str, config: Path | None) -> str:
    """Resolve the name that ssh connects to."""
    name = ssh.host_name(host, config)
    with suppress(OSError):
        return str(socket.getaddrinfo(name, None, socket.AF_INET)[0][4][0])
    raise InputError(f'host "{host}": found no IPv4 address of {name}; {GIVE}')


def _connection(host: str, remote: Agent) -> tuple[str, str]:
    """Return both ends of the ssh connection, as the other host sees them (`SSH_CONNECTION`, ssh(1))."""
    (environment,) = remote.read_files("/proc/self/environ")
    variables = dict(each.split("=", 1) for each in environment.split("\0") if "=" in each)
    words = variables.get("SSH_CONNECTION", "").split()
    if len(words) == 4 and _is_address(words[0]) and _is_address(words[2]):
        return words[0], words[2]
    raise InputError(f'host "{host}": found no IPv4 addresses of the ssh connection; {GIVE}')


def _towards(local: Agent, peer: str) -> str:
    """Return this host's source address on the route to a peer."""
    ((_, output, _),) = local.run_commands(["ip", "-j", "route", "get", peer])
    with suppress(ValueError, LookupError, TypeError):
        return str(json.loads(output)[0]["prefsrc"])
    raise InputError(f"found no route from this host to {peer}; {GIVE}")


def _is_address(text: str) -> bool:
    with suppress(ValueError):
        return bool(IPv4Address(text))
    return False


#: Name of this host: not a valid ssh destination.
THIS = "this host"

#: Setting during the transfers, if root: the kernel keeps no metrics from one transfer to the next.
COLD = {"sysctl": "net.ipv4.tcp_no_metrics_save", "value": "1"}

#: The kernel counts processors' time in so many ticks a second (USER_HZ, proc(5)).
TICKS_HZ = 100

#: Its counters, in order; those of work, and those of the kernel's own work.
TICKS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
WORK = ("user", "nice", "system", "irq", "softirq", "steal")
KERNELS = ("system", "irq", "softirq", "steal")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A host; `hardware` is set when the data's interface is a physical device."""

    name: str
    address: Address
    facts: Facts
    settings: Settings
    hardware: bool

    @property
    def offloads(self) -> list[str]:
        """Return the enabled offloads of the data's interface."""
        return self.facts.offloads.get(self.facts.data or "", [])

    def max_bytes(self, name: str) -> int | None:
        """The most that `tcp_rmem` or `tcp_wmem` lets a connection buffer; None if it is not known."""
        fields = self.settings.sysctls.get(f"ipv4.{name}", "").split()
        return int(fields[2]) if len(fields) == 3 else None

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON object."""
        device = self.facts.data
        return {
            "address": self.address.own,
            "seen_as": self.address.public,
            "root": self.facts.root,
            "interface": device,
            "mtu_bytes": self.facts.interfaces.get(device or "", {}).get("mtu"),
            "offloads": self.offloads,
            "qdisc": self.facts.qdiscs.get(device or "") or None,
            **self.settings.as_dict(),
        }


def inspect(name: str, agent: Agent, own: Address, other: Address) -> Endpoint:
    """Inspect a host. Raises `HostError`, and `InputError` for a busy host or one without the address."""
    host, peer = Host(name, "", SENDER, own.own, None, None), Host("", "", RECEIVER, other.public, None, None)
    facts_of_host = preflight.probe(agent, host, Testbed((host, peer), existing_path=True, rtt_s=None, ssh_config=None))
    if facts_of_host.taken:
        raise InputError(f'host "{name}": found another run of ackclock at work; expected none')
    if "ip" not in facts_of_host.missing and facts_of_host.data is None:
        raise InputError(f'host "{name}": found no interface with the address {own.own}; expected one (--addresses)')
    (device,) = agent.read_files(str(settings.INTERFACES / (facts_of_host.data or "lo") / "device" / "uevent"))
    return Endpoint(name, own, facts_of_host, _settings(agent, facts_of_host), hardware=bool(device))


def make_cold(agent: Agent, side: Endpoint) -> None:
    """Make the kernel forget its peers' metrics until the agent ends. Raises `HostError`."""
    if side.facts.root:
        agent.change([COLD])


@dataclass(frozen=True, slots=True)
class CpuTime:
    """Seconds that each processor has worked since boot: in all, and in the kernel."""

    all_s: tuple[float, ...]
    kernel_s: tuple[float, ...]

    def busy(self, before: CpuTime, duration_s: float) -> float:
        """Return the share of the time for which a host had no processor left for its network.

        That is the case if all are busy, or one is with the kernel's work: a connection's packets are one processor's.
        """
        every_s = [after - earlier for after, earlier in zip(self.all_s, before.all_s, strict=False)]
        kernel_s = [after - earlier for after, earlier in zip(self.kernel_s, before.kernel_s, strict=False)]
        busy_s = max(sum(every_s) / max(1, len(every_s)), max(kernel_s, default=0.0))
        return min(1.0, busy_s / duration_s)


def read_cpu_time(agent: Agent) -> CpuTime:
    """Read the processors' times of a host (/proc/stat, proc(5)). Raises `HostError`."""
    (text,) = agent.read_files("/proc/stat")
    lines = [line.split() for line in text.splitlines() if line[:3] == "cpu" and line[3:4].isdigit()]
    ticks = [dict(zip(TICKS, map(int, fields[1:]), strict=False)) for fields in lines]
    all_s, kernel_s = (
        tuple(sum(of.get(kind, 0) for kind in kinds) / TICKS_HZ for of in ticks) for kinds in (WORK, KERNELS)
    )
    return CpuTime(all_s, kernel_s)


def _settings(agent: Agent, facts_of_host: Facts) -> Settings:
    paths = [str(settings.SYSCTLS / name.replace(".", "/")) for name in settings.NAMES]
    speed = str(settings.INTERFACES / (facts_of_host.data or "lo") / "speed")
    host_name, flags, rate, *values = agent.read_files("/proc/sys/kernel/hostname", "/proc/cpuinfo", speed, *paths)
    sysctls: Mapping[str, str] = {
        name: " ".join(value.split()) for name, value in zip(settings.NAMES, values, strict=True) if value
    }
    interfaces = {facts_of_host.data: settings.rate_bps(rate)} if facts_of_host.data else {}
    virtual = settings.is_virtual(flags)
    return Settings(host_name.strip(), facts_of_host.release, facts_of_host.cores, virtual, sysctls, interfaces)
