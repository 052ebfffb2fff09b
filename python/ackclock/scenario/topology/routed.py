"""Topologies of hosts and switches, in which flows name hosts and the engine computes the paths."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Literal

from pydantic import Field
from pydantic_core import InitErrorDetails

from ackclock.input.fields import Loc, fault_at, nearest, shown
from ackclock.plan import EndsPlan, NodePlan
from ackclock.scenario.keys import Interval, Queue
from ackclock.scenario.topology.network import NOWHERE, Drawing, Hosts, Link, Way
from ackclock.scenario.topology.topology import (
    ACCESS_QUEUE,
    DRAWN,
    Placed,
    Topology,
    matching,
    pairs,
    unmatched,
    unpaired,
)

#: Most nodes and links of a network.
MAX_NODES = 100_000
MAX_LINKS = 1_000_000


@dataclass
class Wiring:
    """A network that is being put together."""

    nodes: list[NodePlan] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)

    def host(self, name: str) -> int:
        """A new host; its number."""
        return self._node(name, host=True)

    def switch(self, name: str) -> int:
        """A new switch; its number."""
        return self._node(name, host=False)

    def _node(self, name: str, *, host: bool) -> int:
        self.nodes.append(NodePlan(name, host))
        return len(self.nodes) - 1

    def link(self, source: int, destination: int, kind: Link, name: str = "", bottleneck: bool | None = None) -> None:
        """A link of a kind, one way. Unless said otherwise it is a bottleneck if a switch sends into it."""
        self.links.append(
            Link(  # faster than `replace` by a third
                name=name or f"{self.nodes[source].name}>{self.nodes[destination].name}",
                rate_bps=kind.rate_bps,
                queue=kind.queue,
                place=kind.place,
                ends=EndsPlan(source, destination),
                delay_s=kind.delay_s,
                weight=kind.weight,
                burst_bytes=kind.burst_bytes,
                loss=kind.loss,
                medium=kind.medium,
                bottleneck=not self.nodes[source].host if bottleneck is None else bottleneck,
            )
        )

    def both_ways(self, one: int, other: int, there: Link, back: Link | None = None) -> None:
        """A link each way."""
        self.link(one, other, there)
        self.link(other, one, back or there)

    @cached_property
    def hosts(self) -> dict[str, int]:
        """Name of each host → its number."""
        return {node.name: number for number, node in enumerate(self.nodes) if node.host}

    @cached_property
    def _out(self) -> list[list[Link]]:
        out: list[list[Link]] = [[] for _ in self.nodes]
        for link in self.links:
            if link.ends:
                out[link.ends.source].append(link)
        return out

    @cached_property
    def _cache(self) -> dict[int, Mapping[int, float]]:
        return {}

    def rtt_s(self, source: int, destination: int) -> float | None:
        """Propagation there and back; None if there is no way."""
        there, back = self.delay_s(source, destination), self.delay_s(destination, source)
        return None if there is None or back is None else there + back

    def delay_s(self, source: int, destination: int) -> float | None:
        """Propagation one way, along the least delay of the ways with the fewest links; None if there is none."""
        out = self._out[source]
        if len(out) == 1 and out[0].ends:  # all hosts of a switch share what is known of it
            next_hop = out[0].ends.destination
            if next_hop == destination:
                return out[0].delay_s
            if self.nodes[next_hop].host:
                return None
            beyond = self._from(next_hop).get(destination)
            return None if beyond is None else out[0].delay_s + beyond
        return self._from(source).get(destination)

    def _from(self, source: int) -> Mapping[int, float]:
        """The delay to each node that can be reached, level by level. No way leads through a host."""
        if source in self._cache:
            return self._cache[source]
        delays, edge = {source: 0.0}, {source: 0.0}
        while edge:
            beyond: dict[int, float] = {}
            for node, delay_s in edge.items():
                if self.nodes[node].host and node != source:
                    continue
                for link in self._out[node]:
                    assert link.ends
                    reached = link.ends.destination
                    if reached not in delays:
                        beyond[reached] = min(beyond.get(reached, float("inf")), delay_s + link.delay_s)
            delays |= beyond
            edge = beyond
        self._cache[source] = delays
        return delays

    def attachments(self, hosts: tuple[int, ...]) -> tuple[int, ...]:
        """One host of those whose links join the same nodes at the same delays."""
        around: dict[int, list[tuple[int, float]]] = {host: [] for host in hosts}
        for link in self.links:
            if link.ends and link.ends.source in around:
                around[link.ends.source].append((link.ends.destination, link.delay_s))
            if link.ends and link.ends.destination in around:
                around[link.ends.destination].append((link.ends.source, -1 - link.delay_s))
        return tuple({tuple(links): host for host, links in around.items()}.values())


class Routed(Topology):
    """A network of hosts and switches."""

    placed_by: ClassVar[frozenset[str]] = frozenset({"from_", "to", "between"})

    routing: Literal["single", "ecmp", "ecmp-packet", "weighted", "flowlet", "valiant"] = Field(
        "ecmp",
        description=(
            'choice among equal-cost paths: "single" takes one for all flows, "ecmp" one per flow, "ecmp-packet" one '
            'per packet, "weighted" one per flow in proportion to the weights of the links, "flowlet" one per '
            'flowlet; "valiant" routes each flow through a switch drawn at random'
        ),
    )
    flowlet_gap: Interval = Field(
        "500us",
        validate_default=True,
        description='least gap between two packets of a flow that starts a new flowlet, for routing = "flowlet"',
    )
    host_queue: Queue | None = Field(
        None, description="queue of each host's network card; absent: pfifo of 1000 packets"
    )

    @abstractmethod
    def wire(self) -> Wiring:
        """Nodes and links."""

    def named_ways(self) -> dict[str, tuple[str, str]]:
        """Ways that `path` may name → the hosts at their ends."""
        return {}

    @cached_property
    def wiring(self) -> Wiring:
        """Nodes and links, put together once."""
        return self.wire()

    def card(self, rate_bps: float, delay_s: float) -> Link:
        """A host's link into the network."""
        return Link("", rate_bps, self.host_queue or ACCESS_QUEUE, ("network", "host_queue"), delay_s=delay_s)

    def mistakes(self, flows: Sequence[Placed], traffic: Sequence[Placed]) -> Iterator[InitErrorDetails]:
        """Yield faults that do not fit the routing."""
        yield from super().mistakes(flows, traffic)
        if "flowlet_gap" in self.model_fields_set and self.routing != "flowlet":
            expected = 'routing = "flowlet" beside it'
            yield fault_at(("network", "flowlet_gap"), 0, expected, f"a gap with routing = {shown(self.routing)}")
        if self.routing == "valiant" and any(change.up is not None for change in self.changes):
            yield fault_at(("network", "routing"), self.routing, "another one where links fail")

    # --- what is wrong ------------------------------------------------------------------------------------

    def misplaced(self, group: Placed, place: Loc) -> Iterator[InitErrorDetails]:
        """Hosts that are not there, patterns that cannot be, ends without a way."""
        wrong = [*super().misplaced(group, place), *self._unnamed(group, place)]
        if not wrong:
            wrong += unpaired(*self._ends(group), group.pattern, place)
            wrong += group.between_hosts(*self._ends(group), place)
        yield from wrong or self._unconnected(group, place)

    def _unnamed(self, group: Placed, place: Loc) -> Iterator[InitErrorDetails]:
        if group.path is not None:
            yield from self._wrong_path(group, place) if self.named_ways() else ()
            return
        may_be_all = group.generated and not self.named_ways()
        if not may_be_all and group.between is None and group.from_ is None and group.to is None:
            way = f"path = {shown(next(iter(self.named_ways())))}, or " if self.named_ways() else ""
            yield fault_at((*place, "from"), 0, f'{way}hosts: from, to, or between = "all"', "nothing")
        for key, wanted in (("from", group.from_), ("to", group.to)):
            if wanted is not None:
                yield from unmatched(wanted, self.wiring.hosts, self.wiring.nodes, (*place, key))

    def _wrong_path(self, group: Placed, place: Loc) -> Iterator[InitErrorDetails]:
        known = self.named_ways()
        if group.path not in known:
            yield fault_at((*place, "path"), group.path, nearest(group.path, tuple(known)))
        for key, given in (("from", group.from_), ("to", group.to), ("between", group.between)):
            if given is not None:
                yield fault_at((*place, key), given, f"one of path and {key}", f"both path and {key}")

    def _unconnected(self, group: Placed, place: Loc) -> Iterator[InitErrorDetails]:
        for source, destination in self._extremes(group):
            if self.wiring.rtt_s(source, destination) is None:
                names = (shown(self.wiring.nodes[node].name) for node in (source, destination))
                yield fault_at(place, 0, "links that join them", f"no way from {' to '.join(names)} and back")
                return

    # --- where data goes ----------------------------------------------------------------------------------

    def sources(self, group: Placed) -> int:
        """A source for each pair, `count` times; what is drawn has one for each sending host."""
        sources, destinations = self._ends(group)
        if group.pattern in (*DRAWN, "round-robin"):
            return len(sources) * group.count
        return group.count * (len(sources) * len(destinations) - len({*sources} & {*destinations}))

    def draw(self, flows: Sequence[Placed], traffic: Sequence[Placed]) -> Drawing:
        """Nodes and links; flows with their ends, traffic and what is drawn with its hosts."""
        nodes, links = tuple(self.wiring.nodes), tuple(self.wiring.links)
        places = (
            self._drawn(group) if group.generated or group.pattern in DRAWN else self._ways(group)
            for group in (*flows, *traffic)
        )
        gap_s = self.flowlet_gap if self.routing == "flowlet" else None
        return Drawing(links, tuple(places), nodes, self.routing, gap_s)

    def _ways(self, group: Placed) -> tuple[Way, ...]:
        made = []
        for source, destination in pairs(*self._ends(group), group.pattern):
            rtt_s = self.wiring.rtt_s(source, destination) or 0.0
            made += [Way(NOWHERE, NOWHERE, rtt_s, EndsPlan(source, destination))] * group.count
        return tuple(made)

    def _drawn(self, group: Placed) -> Hosts:
        longest_s = max(self.wiring.rtt_s(*ends) or 0.0 for ends in self._extremes(group))
        return Hosts(*self._ends(group), group.pairing, longest_s)

    def _extremes(self, group: Placed) -> Iterator[tuple[int, int]]:
        """Pairs among which the longest way is: of the hosts of a switch, one is enough."""
        sources, destinations = self._ends(group)
        if group.pattern == "round-robin":
            yield from zip(sources, destinations, strict=True)
            return
        few = self.wiring.attachments(sources), self.wiring.attachments(destinations)
        yield next(pairs(sources, destinations, "all"))
        yield from pairs(*few, "all")

    def _ends(self, group: Placed) -> tuple[tuple[int, ...], tuple[int, ...]]:
        hosts = self.wiring.hosts
        if group.path is not None:
            ends = self.named_ways().get(group.path)
            return ((hosts[ends[0]],), (hosts[ends[1]],)) if ends else ((), ())
        every = tuple(hosts.values())
        sources = every if group.from_ is None else matching(group.from_, hosts)
        return sources, every if group.to is None else matching(group.to, hosts)

    def capacity_bps(self, group: Placed) -> float:
        """Return the capacity of the hosts' own links: of the senders or of the receivers, whichever is less."""
        sources, destinations = ({*ends} for ends in self._ends(group))
        out = math.fsum(link.rate_bps for link in self.wiring.links if link.ends and link.ends.source in sources)
        into = math.fsum(
            link.rate_bps for link in self.wiring.links if link.ends and link.ends.destination in destinations
        )
        return min(out, into)
