"""A network of hosts and switches: the same nodes in the kernel, with routing tables of their own.

- `h4`: host 4 of the plan, with one address for each priority; `n7`: switch 7.
- Between the two ends of link 3: `q3`, `w3` and, with random loss, `e3`, as on a path (`network`).

A way has the fewest links and leads through no host. Of several ways the first is taken (`single`), or one that a hash
of addresses and ports names.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping

from ackclock.engines.linux.network import (
    MAX_WAYS,
    End,
    Ends,
    Network,
    address,
    entered,
    impaired,
    joined,
    mtu_bytes,
    queued,
)
from ackclock.engines.linux.stack import HostSettings, settings
from ackclock.plan import EndsPlan, HostsPlan, Plan, TrafficPlan

#: Fields that switches hash (`fib_multipath_hash_fields`), by their distance from the nearest host: the ports, and some
#: of source, destination and protocol. With the same fields everywhere, flows that share a path at one switch would
#: share it at the next one too.
FIELDS = tuple(0x30 | others for others in (7, 3, 1, 2, 5, 6, 4, 0))

#: Routing that the kernel has not.
OTHER_ROUTING = {
    "ecmp-packet": "routing packet by packet",
    "flowlet": "routing flowlet by flowlet",
    "valiant": "Valiant's routing",
}

#: The largest weight of a way.
HEAVIEST = 256


def unsupported(plan: Plan) -> Iterator[str]:
    """Yield what of a routed plan the kernel cannot do, or has no setting for."""
    if plan.routing in OTHER_ROUTING:
        yield OTHER_ROUTING[plan.routing]
    if any(change.up is not None for change in plan.changes):
        yield "links that fail in a routed network"
    if len(_settings(plan)) > 1:
        yield "different TCP settings in a routed network"
    if sum(node.host for node in plan.nodes) > MAX_WAYS:
        yield f"more than {MAX_WAYS} hosts"


def lay(plan: Plan) -> Network:
    """The network of a plan with nodes. The plan must be one that `unsupported` finds nothing in."""
    return _Laying(plan).network


def _settings(plan: Plan) -> list[HostSettings]:
    found = [settings(group) for group in plan.groups if group.tcp] or [HostSettings()]
    return list(dict.fromkeys(found))


class _Laying:
    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.network = net = Network(mtu_bytes(plan))
        self.names = [f"{'h' if node.host else 'n'}{number}" for number, node in enumerate(plan.nodes)]
        net.priorities = {flow.priority for flow in plan.flows} | {source.priority for source in plan.datagrams}
        net.priorities |= {traffic.priority for traffic in plan.traffic}
        self._nodes()
        first = {number: self._link(number) for number in range(len(plan.links))}
        self._tables(first)
        net.flows = [self._ends(flow.ends, flow.priority) for flow in plan.flows]
        net.datagrams = [self._ends(source.ends, source.priority) for source in plan.datagrams]
        net.traffic = [list(self._pairs(traffic)) for traffic in plan.traffic]

    def _nodes(self) -> None:
        (common,) = _settings(self.plan)
        away = _hops_from_hosts(self.plan)
        for number, name in enumerate(self.names):
            self.network.node(name)
            if self.plan.nodes[number].host:
                self.network.hosts[name] = common
                self.network.addresses[name] = [
                    _address(number, priority) for priority in sorted(self.network.priorities)
                ]
            elif self.plan.routing != "single":
                fields = FIELDS[away.get(number, 0) % len(FIELDS)]
                self.network.sysctls[name] = {
                    "net.ipv4.fib_multipath_hash_policy": "3",
                    "net.ipv4.fib_multipath_hash_fields": str(fields),
                }

    def _link(self, number: int) -> int:
        """Lays a link; returns the cable that leads to its queue."""
        link = self.plan.links[number]
        assert link.ends is not None
        harmed, goal = impaired(number, self.plan), self.names[link.ends.destination]
        place, delay_s, before = (f"f{number}", 0.0, None) if harmed else (f"w{number}", link.delay_s, link)
        behind = [*harmed, *entered(place, goal, delay_s, before, self._processing(link.ends))]
        entrance, *more = [
            *joined(self.names[link.ends.source], queued(number, self.plan)[0].source, 0.0, None),
            *queued(number, self.plan),
            *behind,
        ]
        first = self.network.cable(entrance)
        for cable in more:
            self.network.defaults[cable.source] = self.network.cable(cable)
        return first

    def _processing(self, ends: EndsPlan) -> tuple[float, float] | None:
        """Return the range of the processing time where the link ends; None if that is no host."""
        host = self.network.hosts.get(self.names[ends.destination])
        return host.processing if host else None

    def _tables(self, first: Mapping[int, int]) -> None:
        """Return for each node and host the links that begin a shortest path."""
        heaviest = max((link.weight for link in self.plan.links), default=1.0)
        if self.plan.routing == "weighted":
            for number, cable in first.items():
                share = self.plan.links[number].weight / heaviest
                self.network.weights[cable] = max(1, round(HEAVIEST * share))
        for number, node in enumerate(self.plan.nodes):
            if node.host:
                self._table(number, first)

    def _table(self, host: int, first: Mapping[int, int]) -> None:
        for node, links in _shortest(self.plan, host).items():
            taken = links[:1] if self.plan.routing == "single" else links
            for priority in self.network.priorities:
                self.network.routes[self.names[node]][_address(host, priority)] = tuple(first[link] for link in taken)

    def _ends(self, ends: EndsPlan | None, priority: int) -> Ends:
        assert ends is not None
        return self._between(ends.source, ends.destination, priority)

    def _pairs(self, traffic: TrafficPlan) -> Iterator[Ends]:
        """Every pair of hosts that may meet."""
        assert isinstance(traffic.population, HostsPlan)
        for source in traffic.population.sources:
            for destination in traffic.population.destinations:
                if source != destination:
                    yield self._between(source, destination, traffic.priority)

    def _between(self, source: int, destination: int, priority: int) -> Ends:
        start, goal = (End(self.names[node], _address(node, priority)) for node in (source, destination))
        return Ends(start, goal, (source, destination))


def _address(host: int, priority: int) -> str:
    return address(priority, 1, host + 1)


def _shortest(plan: Plan, host: int) -> dict[int, list[int]]:
    """By node: the links that begin a way to a host with the fewest links, the lowest number first."""
    distances = {host: 0}
    waiting = deque([host])
    entering = _entering(plan)
    while waiting:
        node = waiting.popleft()
        for link in entering.get(node, ()):
            before = _from(plan, link)
            if before not in distances:
                distances[before] = distances[node] + 1
                if not plan.nodes[before].host:
                    waiting.append(before)
    found: dict[int, list[int]] = {}
    for number, one in enumerate(plan.links):
        assert one.ends is not None
        before, after = one.ends.source, one.ends.destination
        passable = after == host or not plan.nodes[after].host
        if before != host and passable and distances.get(after, -1) + 1 == distances.get(before, 0):
            found.setdefault(before, []).append(number)
    return found


def _entering(plan: Plan) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for number, link in enumerate(plan.links):
        assert link.ends is not None
        found.setdefault(link.ends.destination, []).append(number)
    return found


def _from(plan: Plan, link: int) -> int:
    ends = plan.links[link].ends
    assert ends is not None
    return ends.source


def _hops_from_hosts(plan: Plan) -> dict[int, int]:
    """By node: links to the nearest host."""
    found = {number: 0 for number, node in enumerate(plan.nodes) if node.host}
    waiting, entering = deque(found), _entering(plan)
    while waiting:
        node = waiting.popleft()
        for link in entering.get(node, ()):
            before = _from(plan, link)
            if before not in found:
                found[before] = found[node] + 1
                waiting.append(before)
    return found
