"""The two hosts: their addresses, kernel settings and disks, and the offloads and queues of the data's interface.

Transfers may go between disks. The agent reads a file again and again, and has the system forget what it has read; what
it receives it writes into a file without a name, again and again, and waits every 8 MiB until the disk has it
(fdatasync). How long it waited for the disk is what tells a slow disk from a slow network.
"""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

from ackclock.doctor import settings
from ackclock.doctor.disk import OF_FREE
from ackclock.doctor.network.test_matrix import FILE, LOCAL, MEMORY, REMOTE, TO, Cell, CellResult, TestPlan
from ackclock.doctor.settings import Finding, Settings
from ackclock.engines.linux.testbed import preflight
from ackclock.engines.linux.testbed.layout import RECEIVER, SENDER, Host, Testbed
from ackclock.engines.linux.testbed.preflight import Facts
from ackclock.errors import InputError
from ackclock.figures import numbers
from ackclock.hosts import ssh
from ackclock.hosts.agent import Agent
from ackclock.input.fields import shown
from ackclock.system.files import readable

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


#: Bytes of a disk that are read or written repeatedly, at most and at least.
MAX_BYTES, MIN_BYTES = 256 << 20, 16 << 20

#: Bytes that are filled before they are read, which takes time.
FILLED_BYTES = 64 << 20

#: A disk for which a host waits this share of the time holds it back; from this share of the memory's goodput on, a
#: transfer between disks is as fast as one between memories.
MOST, SAME = 0.5, 0.9


@dataclass(frozen=True, slots=True)
class Store:
    """Data of a host: the source that is read and the sink that is written, with their byte limits."""

    source: Mapping[str, Any]
    sink: Mapping[str, Any]


def parse_files(given: Iterable[str]) -> dict[str, str]:
    """Parse `--file` by side: `PATH` is this host's, `:PATH` the other's. Raises `InputError`."""
    places: dict[str, str] = {}
    for text in given:
        endpoint, place = (REMOTE, text[1:]) if text.startswith(":") else (LOCAL, text)
        if not place or not place.isprintable():
            raise InputError(
                f"--file: found {shown(text)}; expected a folder or file here, or :PATH for the other host"
            )
        if endpoint in places:
            side = "here" if endpoint == LOCAL else "there"
            raise InputError(f"--file: found two places {side}; expected one on each side (:PATH is the other host's)")
        places[endpoint] = place
    return places


def stores(plan: TestPlan, remote_agents: Mapping[str, Agent]) -> dict[str, Store]:
    """Return what may be used of each disk: a tenth of its free space at most. Raises `InputError`, `HostError`."""
    names = _names(plan)
    return {name: _store(name, plan.files[endpoint], remote_agents[name]) for endpoint, name in names.items()}


def _names(plan: TestPlan) -> dict[str, str]:
    """Return the hosts with a disk, by side."""
    return {endpoint: name for endpoint, name in ((LOCAL, THIS), (REMOTE, plan.host)) if endpoint in plan.files}


def _store(name: str, place: str, agent: Agent) -> Store:
    result = agent.disk_space(place)
    where = f"--file: {place}" if name == THIS else f'host "{name}": --file: {place}'
    if result["why"]:
        why = re.sub(r" \(os error \d+\)$", "", readable(str(result["why"])))
        raise InputError(f"{where}: found {why}; expected a folder to write in, or a file in one")
    fitting = int(OF_FREE * result["free_bytes"])
    if fitting < MIN_BYTES:
        raise InputError(
            f"{where}: found {numbers.value(result['free_bytes'], 'bytes')} of room; expected "
            f"{numbers.value(MIN_BYTES / OF_FREE, 'bytes')} or more"
        )
    length = result["file_bytes"]
    if length == 0:
        raise InputError(f"{where}: found an empty file; expected one with data")
    read = min(fitting // 2, FILLED_BYTES) if length is None else length
    return Store({"place": place, "bytes": read}, {"place": place, "bytes": min(fitting // 2, MAX_BYTES)})


def here(name: str, port: int, cell: Cell, stores: Mapping[str, Store], *, sends: bool) -> dict[str, Any]:
    """Return the part of a run spec that concerns its own host."""
    store = stores.get(name) if cell.medium == FILE else None
    source, sink = (store.source if sends else None, None if sends else store.sink) if store else (None, None)
    return {"host": name, "first_port": port, "source": source, "sink": sink}


def waits(plan: TestPlan, cell: Cell, result: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """Return the share of a disk transfer's time for which each host waited for its disk."""
    if cell.medium == MEMORY:
        return {}
    kernels = {name: result[name]["kernel"] for name in _names(plan).values()}
    spent = {name: float(of["file_read_s"][0] + of["file_write_s"][0]) for name, of in kernels.items()}
    return {"waits": {name: min(1.0, seconds / plan.duration_s) for name, seconds in spent.items()}}


def disk_findings(
    cells: Iterable[CellResult], endpoints: tuple[Endpoint, Endpoint], files: Mapping[str, str]
) -> Iterator[Finding]:
    """Yield for each direction and number of flows whether the disk or the network is the limit."""
    by_cell = {tuple(asdict(result.cell).values()): result for result in cells}
    for (direction, flows, medium), result in by_cell.items():
        if medium == FILE:
            yield _finding(result, by_cell[direction, flows, MEMORY], endpoints, files)


def _finding(
    result: CellResult, memory: CellResult, endpoints: tuple[Endpoint, Endpoint], files: Mapping[str, str]
) -> Finding:
    sender, receiver = endpoints if result.cell.direction == TO else (endpoints[1], endpoints[0])
    with_bps, without_bps = result.mean("goodput_bps"), memory.mean("goodput_bps")
    slowest = max(result.waits, key=lambda name: result.waits[name])
    share = result.waits[slowest]
    flows = "one flow" if result.cell.flows == 1 else f"{result.cell.flows} flows"
    between = f"{numbers.value(with_bps, 'bit/s')} with a file, {numbers.value(without_bps, 'bit/s')} without"
    evidence = {
        "file_bps": with_bps, "memory_bps": without_bps, "flows": result.cell.flows,
        **{f"disk of {name}": of for name, of in result.waits.items()},
    }  # fmt: skip
    sentence = f"From {sender.name} to {receiver.name} {flows} got {between}: "
    wait_sentence = f"{slowest} waited for its disk for {numbers.value(share, 'share')} of the time"
    if share >= MOST and with_bps < SAME * without_bps:
        place = files[LOCAL if slowest == THIS else REMOTE]
        advice = f"What that disk can do: ackclock doctor host disk {place}, on {slowest}."
        return Finding(
            "network", f"{sentence}the disk holds the transfer back; {wait_sentence}.", evidence, advice, bad=True
        )
    if with_bps >= SAME * without_bps:
        return Finding("network", f"{sentence}not the disk but the path is the limit; {wait_sentence}.", evidence)
    return Finding("network", f"{sentence}disk and network take turns in one program; {wait_sentence}.", evidence)
