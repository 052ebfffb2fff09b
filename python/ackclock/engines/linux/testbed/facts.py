"""Facts about a host, read before a run without changing anything."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from ackclock.engines.linux.testbed.layout import ROUTER, Host, Testbed, peers
from ackclock.hosts.agent import Agent
from ackclock.hosts.clocks import Offset

CONTROLS = "/proc/sys/net/ipv4/tcp_available_congestion_control"
ALLOWED = "/proc/sys/net/ipv4/tcp_allowed_congestion_control"
FORWARD = "/proc/sys/net/ipv4/ip_forward"
CLOCKSOURCE = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
PSCHED, LOAD, CPU = "/proc/net/psched", "/proc/loadavg", "/proc/stat"

#: Offloads that put segments together, by the names under which each is switched alone.
OFFLOADS = (
    "tx-tcp-segmentation", "tx-tcp-ecn-segmentation", "tx-tcp-mangleid-segmentation", "tx-tcp6-segmentation",
    "generic-segmentation-offload", "generic-receive-offload", "large-receive-offload",
)  # fmt: skip

#: Programs, how they are asked whether they are there, and the Debian packages that have them.
PROGRAMS = {"ip": ("ip", "-V"), "tc": ("tc", "-V"), "ethtool": ("ethtool", "--version")}
PACKAGES = {"ip": "iproute2", "tc": "iproute2", "ethtool": "ethtool"}


@dataclass(slots=True)
class Facts:
    """Facts about a host; interfaces by name, with the offloads that are on and may be switched off."""

    root: bool
    taken: bool
    release: str
    machine: str
    missing: list[str]
    controls: frozenset[str]
    allowed: frozenset[str]
    forwards: bool
    clock: str
    tick_hz: float
    cores: int
    load: float
    offset: Offset
    interfaces: dict[str, Mapping[str, Any]]
    data: str | None = None
    offloads: dict[str, list[str]] = field(default_factory=dict)
    qdiscs: dict[str, str] = field(default_factory=dict)
    routes: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    own_routes: set[str] = field(default_factory=set)

    def as_dict(self) -> dict[str, Any]:
        """For a manifest."""
        return {
            "release": self.release,
            "machine": self.machine,
            "root": self.root,
            "clocksource": self.clock,
            "cores": self.cores,
            "load": self.load,
            "offloads": self.offloads,
        }

    def line(self) -> str:
        """For people."""
        offloads = ", ".join(f"{device}: {len(on)} on" for device, on in self.offloads.items()) or "none"
        return (
            f"Linux {self.release} {self.machine}, {'root' if self.root else 'no root'}; clock {self.clock}, "
            f"{abs(self.offset.ahead_ns) * 1e-9:.6g} s {'ahead' if self.offset.ahead_ns >= 0 else 'behind'} "
            f"± {self.offset.error_ns * 1e-6:.2g} ms; offloads {offloads}; load {self.load:g} of {self.cores} cores"
        )


def probe(agent: Agent, host: Host, testbed: Testbed) -> Facts:
    """Looks at a host. Raises `HostError`."""
    paths = (CONTROLS, ALLOWED, FORWARD, CLOCKSOURCE, PSCHED, LOAD, CPU)
    controls, allowed, forward, clock, psched, load, cpu = agent.read_files(*paths)
    lacks = _missing_programs(agent)
    found = Facts(
        root=agent.hello["user"] == 0,
        taken=agent.hello["taken"],
        release=agent.hello["release"],
        machine=agent.hello["machine"],
        missing=lacks,
        controls=frozenset(controls.split()),
        allowed=frozenset(allowed.split()),
        forwards=forward.strip() == "1",
        clock=clock.strip() or "unknown",
        tick_hz=_tick_hz(psched),
        cores=_cores(cpu),
        load=float(load.split()[0]) if load else 0.0,
        offset=agent.clock(),
        interfaces={},
    )
    if "ip" not in lacks:
        _network(agent, host, testbed, found)
    return found


def _missing_programs(agent: Agent) -> list[str]:
    """Programs that cannot be run there."""
    said = agent.run_commands(*PROGRAMS.values())
    return [name for name, (status, *_) in zip(PROGRAMS, said, strict=True) if status is None]


def _tick_hz(psched: str) -> float:
    """Return the frequency of the packet scheduler's clock from /proc/net/psched, in Hz."""
    words = psched.split()
    return float(int(words[3], 16)) if len(words) > 3 else 1e9


def _cores(cpu: str) -> int:
    """Return the number of processors in /proc/stat."""
    return sum(line[3:4].isdigit() for line in cpu.splitlines() if line.startswith("cpu"))


def _network(agent: Agent, host: Host, testbed: Testbed, found: Facts) -> None:
    (said,) = agent.run_commands(["ip", "-j", "-4", "address", "show"])
    every: dict[str, Mapping[str, Any]] = {each["ifname"]: each for each in _json(said[1])}
    found.interfaces = every
    if host.role == ROUTER:
        devices = [str(host.to_receivers), str(host.to_senders)]
    else:
        having = (name for name, each in every.items() if host.data in _addresses(each))
        found.data = next(having, None)
        devices = [found.data] if found.data else []
        _routes(agent, host, testbed, found)
    for device in [device for device in devices if device in every]:
        _device(agent, device, found)


def _device(agent: Agent, device: str, found: Facts) -> None:
    features, qdisc = agent.run_commands(
        ["ethtool", "-k", device], ["tc", "-j", "qdisc", "show", "dev", device, "root"]
    )
    found.offloads[device] = list(switchable(features[1]))
    set_up = [each for each in _json(qdisc[1]) if each.get("handle", "0:") != "0:"]
    found.qdiscs[device] = " ".join(f"{each.get('kind')} {each.get('handle')}" for each in set_up)


def _routes(agent: Agent, host: Host, testbed: Testbed, found: Facts) -> None:
    others = peers(testbed, host)
    asked: list[Sequence[str]] = []
    for peer in others:
        asked += [["ip", "-j", "route", "get", peer, "from", str(host.data)]]
        asked += [["ip", "-j", "route", "show", "exact", f"{peer}/32"]]
    said = agent.run_commands(*asked)
    for peer, (_, got, _), (_, own, _) in zip(others, said[::2], said[1::2], strict=True):
        if route := next(iter(_json(got)), None):
            found.routes[peer] = route
        if _json(own):
            found.own_routes.add(peer)


def _json(text: str) -> list[dict[str, Any]]:
    """Parse the output of iproute2's -j; an empty output is an empty list."""
    with suppress(ValueError):
        found = json.loads(text or "[]")
        return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []
    return []


def _addresses(interface: Mapping[str, Any]) -> set[str]:
    return {str(address.get("local")) for address in interface.get("addr_info", ())}


def switchable(text: str) -> Iterator[str]:
    """The offloads that are on, of what `ethtool -k` says."""
    for line in text.splitlines():
        name, _, state = line.strip().partition(": ")
        if name in OFFLOADS and state == "on":
            yield name
