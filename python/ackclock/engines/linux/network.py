"""A plan's network as nodes and cables: which namespaces there are, what joins them, and who goes where.

- `tx0`, `rx0`, `tx1` …: hosts, a pair for each set of host settings. Connections with the same settings share a pair;
  each path between two hosts has an address at either end.
- `q3`: in front of link 3; its only way out is the device `out`, where the link's rate and discipline are.
- `i3` and `f3`: behind link 3, if packets are delayed by chance there, reordered, doubled or damaged: in between.
- `w3`: behind link 3. Cables fan out from here, with the delays that follow the link.
- `e3`: before `q3`, if packets are lost at random there.
- `d0`: delays that follow no link begin here.

Only cables out of `w`, `i`, `f` and `d` nodes have delays: behind a delay on a host its TCP would wait for its own
packets, and one in front of a queue would be another queue. A host's processing time comes after all other delays.

Used by all that run a plan on Linux: guest, live kernel, testbeds, `doctor host network`; and by the exporter `tc`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from ackclock.engines.linux import disciplines
from ackclock.engines.linux.stack import HostSettings, settings
from ackclock.plan import (
    DatagramPlan,
    FlowPlan,
    HopPlan,
    LinkPlan,
    MediumPlan,
    Parameters,
    PathPairPlan,
    PathPairsPlan,
    PathPlan,
    Plan,
    TrafficPlan,
)

#: Ways that the addresses of one priority are enough for: 10.x.0.1 to 10.x.255.255.
MAX_WAYS = 65_535

#: Ethernet's header, which the kernel counts in a packet's length.
ETHERNET_BYTES = 14

#: The least MTU of a cable.
MIN_MTU_BYTES = 1500

DELAYS = "d0"


@dataclass(frozen=True, slots=True)
class Loss:
    """Random loss: chances of a packet with data, of a SYN, and of what is short.

    `bursts` stand in place of the chance of data: p, r, 1-h and 1-k of netem's Gilbert–Elliott model.
    """

    data: float
    syn: float
    short: float = 0.0
    bursts: tuple[float, float, float, float] | None = None


@dataclass(frozen=True, slots=True)
class Cable:
    """One direction from a node to another; what is sent arrives after `delay_s`.

    Behind a link that transmits, `rate_bps` is the link's: a packet arrives when its last bit does. Into a host, it
    then waits for a time between the two of `processing`, and overtakes no other.
    """

    source: str
    target: str
    delay_s: float = 0.0
    rate_bps: float | None = None
    overhead_bytes: int = ETHERNET_BYTES
    link: int | None = None
    loss: Loss | None = None
    processing: tuple[float, float] | None = None
    medium: MediumPlan | None = None

    @property
    def delays(self) -> bool:
        """Return True if it delays packets."""
        return bool(self.delay_s > 0 or self.rate_bps or self.medium or self.processing)


@dataclass(frozen=True, slots=True)
class End:
    """A socket's namespace and address."""

    namespace: str
    address: str


@dataclass(frozen=True, slots=True)
class Ends:
    """The two hosts of a connection; `nodes` are the plan's nodes for which they stand, in a routed network."""

    source: End
    destination: End
    nodes: tuple[int, int] | None = None


@dataclass(slots=True)
class Network:
    """All that is to be set up. `routes` are by node and address: the next cables' numbers, several where paths part.

    `defaults` are the only ways out of a node; `weights`, by cable, are 1 where there is none.
    """

    mtu_bytes: int
    nodes: list[str] = field(default_factory=list)
    hosts: dict[str, HostSettings] = field(default_factory=dict)
    cables: list[Cable] = field(default_factory=list)
    addresses: dict[str, list[str]] = field(default_factory=dict)
    routes: dict[str, dict[str, tuple[int, ...]]] = field(default_factory=dict)
    defaults: dict[str, int] = field(default_factory=dict)
    weights: dict[int, int] = field(default_factory=dict)
    sysctls: dict[str, dict[str, str]] = field(default_factory=dict)
    flows: list[Ends] = field(default_factory=list)
    datagrams: list[Ends] = field(default_factory=list)
    traffic: list[list[Ends]] = field(default_factory=list)
    priorities: set[int] = field(default_factory=set)
    _numbers: dict[Cable, int] = field(default_factory=dict)

    def device(self, cable: int) -> str:
        """The sending end's name."""
        return "out" if self.cables[cable].link is not None else f"c{cable}"

    def node(self, name: str) -> None:
        """Makes a node, if it is not there."""
        if name not in self.routes:
            self.nodes.append(name)
            self.routes[name] = {}

    def cable(self, cable: Cable) -> int:
        """The number of a cable, which is laid if it is not there."""
        if cable not in self._numbers:
            self.node(cable.source)
            self.node(cable.target)
            self._numbers[cable] = len(self.cables)
            self.cables.append(cable)
        return self._numbers[cable]


def lay(plan: Plan) -> Network:
    """Return the network of a plan. The plan must be one that `unsupported` finds nothing in."""
    return _Laying(plan).network


def unsupported(plan: Plan) -> Iterator[str]:
    """Yield the features of a plan's paths that cannot be built."""
    ways: dict[int, set[object]] = {}
    for item in (*_planned(plan), *_generated(plan)):
        ways.setdefault(item.priority, set()).add(item)
        if any(_twice(path.hops) for path in (item.forward, item.reverse)):
            yield "ways that cross a link twice"
            break
    if any(len(found) > MAX_WAYS for found in ways.values()):
        yield f"more than {MAX_WAYS} ways"


@dataclass(frozen=True, slots=True)
class _Way:
    """Two paths between a pair of hosts and a priority, which have addresses of their own.

    `group` is that of the flows where a qdisc distinguishes hosts, since the flows of two groups are between others.
    """

    forward: PathPlan
    reverse: PathPlan
    priority: int
    settings: HostSettings
    group: int | None


def _planned(plan: Plan) -> Iterator[_Way]:
    hosts = _hosts(plan)
    yield from (_way(hosts, flow, flow) for flow in plan.flows)
    yield from (_way(hosts, source, source) for source in plan.datagrams)


def _generated(plan: Plan) -> Iterator[_Way]:
    hosts = _hosts(plan)
    for traffic in plan.traffic:
        if isinstance(traffic.population, PathPairsPlan):
            for path in traffic.population.paths:
                yield _way(hosts, traffic, path)


def _hosts(plan: Plan) -> list[tuple[HostSettings, int | None]]:
    """The settings of each group's hosts, and its number if it has hosts of its own."""
    sees_hosts = any(link.queue.discipline in disciplines.HOST_AWARE for link in plan.links)
    return [(settings(group), number if sees_hosts else None) for number, group in enumerate(plan.groups)]


def _way(
    hosts: Sequence[tuple[HostSettings, int | None]],
    item: FlowPlan | DatagramPlan | TrafficPlan,
    path: FlowPlan | DatagramPlan | PathPairPlan,
) -> _Way:
    """Return the path of an item, given the hosts of each group."""
    return _Way(path.forward, path.reverse, item.priority, *hosts[item.group])


def _twice(hops: Sequence[HopPlan]) -> bool:
    links = [hop.link for hop in hops]
    return len(set(links)) < len(links)


class _Laying:
    """Ways become addresses, cables and routes; what is there already is used again."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.network = Network(mtu_bytes(plan))
        self._pairs: dict[HostSettings, int] = {}
        self._ways: dict[_Way, Ends] = {}
        self._counts: dict[int, int] = {}
        net = self.network
        hosts = _hosts(plan)
        net.flows = [self._ends(_way(hosts, flow, flow)) for flow in plan.flows]
        net.datagrams = [self._ends(_way(hosts, item, item)) for item in plan.datagrams]
        net.traffic = [[self._ends(_way(hosts, item, path)) for path in _paths(item)] for item in plan.traffic]

    def _ends(self, way: _Way) -> Ends:
        if way not in self._ways:
            self._ways[way] = self._connect(way)
        return self._ways[way]

    def _connect(self, way: _Way) -> Ends:
        pair = self._pairs.setdefault(way.settings, len(self._pairs))
        number = self._counts[way.priority] = self._counts.get(way.priority, 0) + 1
        self.network.priorities.add(way.priority)
        source, destination = (
            self._host(f"{end}{pair}", address(way.priority, side, number), way.settings)
            for side, end in ((1, "tx"), (2, "rx"))
        )
        self._route(source, way.forward, destination)
        self._route(destination, way.reverse, source)
        return Ends(source, destination)

    def _host(self, name: str, address: str, settings: HostSettings) -> End:
        self.network.node(name)
        self.network.hosts[name] = settings
        self.network.addresses.setdefault(name, []).append(address)
        return End(name, address)

    def _route(self, source: End, path: PathPlan, destination: End) -> None:
        processing = self.network.hosts[destination.namespace].processing
        for cable in road(source.namespace, path, destination.namespace, self.plan, processing):
            number = self.network.cable(cable)
            self.network.routes[cable.source][destination.address] = (number,)


def address(priority: int, side: int, number: int) -> str:
    """The address of a path's end: the priority is the upper half of the second byte, where a filter finds it."""
    return f"10.{16 * priority + side}.{number >> 8}.{number & 255}"


#: A shorter delay is none: handing a packet over takes as long.
MIN_DELAY_S = 1e-6


def road(
    source: str, path: PathPlan, target: str, plan: Plan, processing: tuple[float, float] | None
) -> Iterator[Cable]:
    """The cables of a path, in their order, to a host that takes between these times for a packet."""
    place, delay_s, before = source, 0.0, None
    for hop in path.hops:
        link = plan.links[hop.link]
        through = queued(hop.link, plan)
        yield from joined(place, through[0].source, delay_s + hop.delay_s, before)
        yield from through
        place, delay_s, before = through[-1].target, link.delay_s, link
        if harmed := impaired(hop.link, plan):
            yield from harmed
            place, delay_s, before = harmed[-1].target, 0.0, None
    if place == source and delay_s + path.delay_s < MIN_DELAY_S:
        yield Cable(source, DELAYS)
        place = DELAYS
    yield from entered(place, target, delay_s + path.delay_s, before, processing)


def entered(
    source: str, host: str, delay_s: float, link: LinkPlan | None, processing: tuple[float, float] | None
) -> Iterator[Cable]:
    """Yield cables as `joined` does, to a host whose processing time per packet is drawn between these times."""
    *before, last = joined(source, host, delay_s, link)
    yield from before
    yield replace(last, processing=processing)


def queued(number: int, plan: Plan) -> list[Cable]:
    """The cables from where a link's packets may be lost, or are queued, to where they have been transmitted."""
    out = Cable(f"q{number}", f"w{number}", link=number)
    changes = [change for change in plan.changes if change.link == number]
    fails = any(change.up is not None or change.loss is not None for change in changes)
    loss = plan.links[number].loss
    return [Cable(f"e{number}", f"q{number}", loss=loss_of(loss)), out] if loss or fails else [out]


def impaired(number: int, plan: Plan) -> list[Cable]:
    """The cables behind a transmitter whose medium does more than delay: of the transmission, and of the medium."""
    link = plan.links[number]
    later = any(change.link == number and change.medium for change in plan.changes)
    if link.medium is None and not later:
        return []
    rate_bps = transmission_bps(link)
    medium = link.medium or MediumPlan()
    return [
        Cable(f"w{number}", f"i{number}", 0.0, rate_bps, link.frame_overhead_bytes),
        Cable(f"i{number}", f"f{number}", link.delay_s, medium=medium),
    ]


def transmission_bps(link: LinkPlan) -> float | None:
    """The rate at which a packet's bits leave one after the other; none out of a bucket, or at an opportunity."""
    leaves_whole = link.burst_bytes is not None or (link.trace is not None and link.trace.has_opportunities)
    return None if leaves_whole else link.rate_bps


def joined(source: str, target: str, delay_s: float, link: LinkPlan | None) -> Iterator[Cable]:
    """From one node to another, after a delay; behind a link its packets are still being transmitted."""
    if delay_s < MIN_DELAY_S:
        delay_s = 0.0
    if link is not None:
        rate_bps = transmission_bps(link)
        yield Cable(source, target, delay_s, rate_bps, link.frame_overhead_bytes)
    elif delay_s > 0:
        yield Cable(source, DELAYS)
        yield Cable(DELAYS, target, delay_s)
    else:
        yield Cable(source, target)


def loss_of(given: Parameters | None) -> Loss:
    """The chances of a link's random loss; none if it has none."""
    if given is None:
        return Loss(0.0, 0.0)
    if given["kind"] == "gilbert_elliott":
        return Loss(
            0.0, 0.0, bursts=tuple(given[key] for key in ("p_good_to_bad", "p_bad_to_good", "in_bad", "in_good"))
        )
    return Loss(given["probability"], given.get("syn", 0.0), given.get("ack", 0.0))


def _paths(traffic: TrafficPlan) -> tuple[PathPairPlan, ...]:
    return traffic.population.paths if isinstance(traffic.population, PathPairsPlan) else ()


def mtu_bytes(plan: Plan) -> int:
    """Return the MTU of the largest packet, at least Ethernet's."""
    segments = (group.tcp.packet_bytes for group in plan.groups if group.tcp)
    datagrams = (item.payload_bytes + item.header_bytes for item in plan.datagrams)
    return max(MIN_MTU_BYTES, *segments, *datagrams)
