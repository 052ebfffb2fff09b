"""Facts about the hosts of a testbed, read before a run, and whether they can run its plan; nothing is changed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ackclock.engines import features
from ackclock.engines.linux.live import MINIMAL
from ackclock.engines.linux.network import mtu_bytes
from ackclock.engines.linux.testbed import layout, settings
from ackclock.engines.linux.testbed.layout import ROUTER, SENDER, Host, Testbed, peers
from ackclock.hosts.agent import Agent
from ackclock.hosts.clocks import Offset
from ackclock.plan import Plan

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
        _read_routes(agent, host, testbed, found)
    for device in [device for device in devices if device in every]:
        _device(agent, device, found)


def _device(agent: Agent, device: str, found: Facts) -> None:
    features, qdisc = agent.run_commands(
        ["ethtool", "-k", device], ["tc", "-j", "qdisc", "show", "dev", device, "root"]
    )
    found.offloads[device] = list(switchable(features[1]))
    set_up = [each for each in _json(qdisc[1]) if each.get("handle", "0:") != "0:"]
    found.qdiscs[device] = " ".join(f"{each.get('kind')} {each.get('handle')}" for each in set_up)


def _read_routes(agent: Agent, host: Host, testbed: Testbed, found: Facts) -> None:
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


#: A busy processor holds no rate: of each core, this much is to be free.
MAX_LOAD = 0.8


@dataclass(frozen=True, slots=True)
class Preflight:
    """The facts of each host, requirements that are not met, and warnings: a line each."""

    facts: Mapping[str, Facts]
    missing: tuple[str, ...]
    doubts: tuple[str, ...]


def probe_hosts(plan: Plan, testbed: Testbed, agents: Mapping[str, Agent]) -> Preflight:
    """Looks at each host. Raises `HostError`."""
    seen = {host.name: probe(agents[host.name], host, testbed) for host in testbed.hosts}
    lacking: list[str] = []
    doubts: list[str] = []
    for host in testbed.hosts:
        found, say = seen[host.name], partial("{}: {}".format, f'host "{host.name}"')
        lacking += map(say, missing(plan, testbed, host, found, agents[host.name]))
        doubts += map(say, _doubts(host, found))
    return Preflight(seen, tuple(lacking), tuple(doubts))


def missing(plan: Plan, testbed: Testbed, host: Host, found: Facts, agent: Agent) -> Iterator[str]:
    """Yield what one host lacks."""
    if found.taken:
        yield "found another run of ackclock at work; expected none"
    for package in sorted({PACKAGES[name] for name in found.missing}):
        yield f"found no {package}; expected this Debian package"
    if host.role == ROUTER:
        yield from _router(plan, testbed, host, found, agent)
    else:
        yield from _end(plan, testbed, host, found)


def _end(plan: Plan, testbed: Testbed, host: Host, found: Facts) -> Iterator[str]:
    if found.data is None:
        yield f"found no interface with the address {host.data}; expected one"
        return
    yield from _controls(plan, host, found)
    yield from _ways(testbed, host, found)
    if not found.root:
        yield from _root_problems(plan)
    if settings.metrics(plan, testbed, host, _mtu(found)) and found.own_routes:
        yield f"found a route to {', '.join(sorted(found.own_routes))} alone; expected none, where ours is to be"


def _controls(plan: Plan, host: Host, found: Facts) -> Iterator[str]:
    kinds = {group.congestion.kind for group in plan.groups if group.congestion}
    for kind in sorted(kinds - found.controls):
        yield f"found no {features.congestion(kind)} in its kernel; expected it (modprobe tcp_{kind})"
    if host.role == SENDER and not found.root and (kept := sorted(kinds & found.controls - found.allowed)):
        expected = "either (it is not in net.ipv4.tcp_allowed_congestion_control)"
        yield f"found no root, and {features.congestion(kept[0])} kept for it; expected {expected}"


def _ways(testbed: Testbed, host: Host, found: Facts) -> Iterator[str]:
    for peer in layout.peers(testbed, host):
        if peer not in found.routes:
            yield f"found no route from {host.data} to {peer}; expected one by the router"


def _root_problems(plan: Plan) -> Iterator[str]:
    if any(group.tcp and group.tcp.receive_window_bytes for group in plan.groups):
        yield "found no root; expected it, to give a receive window"
    if any(group.tcp and group.tcp.send_buffer_bytes for group in plan.groups):
        yield "found no root; expected it, to give a send buffer"
    if plan.record.pcap:
        yield "found no root; expected it, to capture packets"


def _router(plan: Plan, testbed: Testbed, host: Host, found: Facts, agent: Agent) -> Iterator[str]:
    if not found.root:
        yield "found no root; expected it, to set the router's rate and queue"
    if not found.forwards:
        yield "found no forwarding of IPv4; expected net.ipv4.ip_forward = 1"
    for device in dict.fromkeys((host.to_receivers, host.to_senders)):
        if device not in found.interfaces:
            there = ", ".join(sorted(found.interfaces))
            yield f'found no interface "{device}"; expected one of {there}'
        elif found.qdiscs.get(str(device)):
            yield (
                f'found the queue discipline {found.qdiscs[str(device)]} on "{device}"; expected the kernel\'s own, '
                "which can be given back"
            )
    if found.root and not {"ip", "tc"} & {*found.missing}:
        yield from _disciplines(plan, testbed, agent, found)
        if settings.loses(plan):
            yield from _losing(host, agent, found)
    yield from _granularity(plan, testbed, found)


def _disciplines(plan: Plan, testbed: Testbed, agent: Agent, found: Facts) -> Iterator[str]:
    """Tried in a network that is thrown away."""
    words = [" ".join(step["run"]) for step in settings.router_commands(plan, testbed)]
    kinds = [kind for kind in MINIMAL if any(re.search(rf" qdisc add .*\b{kind}\b", line) for line in words)]
    for kind in kinds:
        ((status, _, _),) = agent.run_commands(
            ["tc", "qdisc", "add", "dev", "lo", "root", *MINIMAL[kind].split()], apart=True
        )
        if status != 0:
            yield f"found no {features.queue(kind)} in its kernel {found.release}; expected it (modprobe sch_{kind})"


def _losing(host: Host, agent: Agent, found: Facts) -> Iterator[str]:
    """Yield what a host lacks to lead packets through a lossy device, tried in a temporary network."""
    ((_, there, _),) = agent.run_commands(["tc", "qdisc", "show", "dev", str(host.to_senders), "ingress"])
    if there:
        yield f'found {" ".join(there.split()[:3])} on "{host.to_senders}"; expected nothing where packets come in'
    tried = {
        f"ip link add {settings.LOSING} type ifb": ("ifb devices", "ifb"),
        f"ip link set {settings.LOSING} up": None,
        "tc qdisc add dev lo ingress": ('queue discipline "ingress"', "sch_ingress"),
        "tc filter add dev lo parent ffff: protocol ip u32 match u8 0 0 at 0": ("u32 filters", "cls_u32"),
        f"tc filter add dev lo parent ffff: protocol ip u32 match u8 0 0 at 0 action mirred egress redirect dev "
        f"{settings.LOSING}": ('action "mirred"', "act_mirred"),
    }
    said = agent.run_commands(*(line.split() for line in tried), apart=True)
    for (status, *_), lacks in zip(said, tried.values(), strict=True):
        if status != 0 and lacks:
            yield f"found no {lacks[0]} in its kernel {found.release}; expected it (modprobe {lacks[1]})"
            return


def _granularity(plan: Plan, testbed: Testbed, found: Facts) -> Iterator[str]:
    """A netem of a clock that ticks so often lets at most two packets go at a tick: C ≤ MTU × tick rate / 2."""
    if not settings.delays(plan, testbed):
        return
    most_bps = 8 * mtu_bytes(plan) * found.tick_hz / 2
    wanted_bps = max(plan.links[0].rate_bps, *(change.rate_bps or 0.0 for change in plan.changes), 0.0)
    if wanted_bps > most_bps:
        yield (
            f"found a clock of {found.tick_hz:g} ticks a second, with which netem delays at most "
            f"{most_bps / 1e6:g} Mb/s; expected one that holds {wanted_bps / 1e6:g} Mb/s"
        )


def _doubts(host: Host, found: Facts) -> Iterator[str]:
    if host.role != ROUTER and not found.root:
        yield "no root: its own TCP settings, routes and offloads stay; traffic and samples only"
    if found.cores and found.load > MAX_LOAD * found.cores:
        yield f"its load is {found.load:g}, of {found.cores} cores"


def changes(plan: Plan, testbed: Testbed, host: Host, found: Facts) -> list[dict[str, Any]]:
    """Return the changes of a run on a host, each with its undo command; none without root."""
    if not found.root:
        return []
    made: list[dict[str, Any]] = []
    if not plan.options["linux"]["offloads"]:
        made += [_off(device, names) for device, names in found.offloads.items() if names]
    if host.role == ROUTER:
        return made + settings.router_commands(plan, testbed)
    made += [{"sysctl": name, "value": value} for name, value in settings.sysctls(plan, testbed, host).items()]
    return made + list(_routes(settings.metrics(plan, testbed, host, _mtu(found)), found))


def _off(device: str, names: Iterable[str]) -> dict[str, Any]:
    """All at once: some of them are only on with others."""

    def command(state: str) -> list[str]:
        return ["ethtool", "-K", device, *(word for name in names for word in (name, state))]

    return {"run": command("off"), "undo": command("on")}


def _routes(metrics: Mapping[str, str], found: Facts) -> Iterator[dict[str, Any]]:
    """A route to each peer alone, with the metrics, beside the one that leads there."""
    if not metrics:
        return
    words = [word for pair in metrics.items() for word in pair]
    for peer, route in found.routes.items():
        gateway = ["via", str(route["gateway"])] if "gateway" in route else []
        to = [f"{peer}/32", *gateway, "dev", str(route["dev"])]
        yield {"run": ["ip", "route", "add", *to, *words], "undo": ["ip", "route", "del", *to]}


def _mtu(found: Facts) -> int:
    return int(found.interfaces.get(found.data or "", {}).get("mtu", 1500))
