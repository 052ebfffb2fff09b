"""The ways of a routed network, laid down before a fluid flows: from a flow's two hosts to the links on its path."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from ackclock.engines import features
from ackclock.plan import EndsPlan, FlowPlan, HopPlan, PathPlan, Plan

#: Feature of a plan whose hosts have equal-cost paths: a fluid takes one path.
SEVERAL_WAYS = "several equally short ways"


#: And where a way leads by a switch that is drawn.
BY_A_SWITCH = "Valiant's routing"


@dataclass(frozen=True, slots=True)
class _Reached:
    """The last link of a shortest path to a node (None: it is the start), and the number of shortest paths."""

    link: int | None
    ways: int


@dataclass(frozen=True, slots=True)
class _Way:
    """The links of a shortest way in their order, and whether there is no other."""

    links: tuple[int, ...]
    is_unique: bool


def laid(plan: Plan) -> Plan:
    """The plan with the links that each flow's data crosses; where the engine was to find them, it has.

    A way has the fewest links, and none leads through a host. Of several, it is one of them.
    """
    ways = _Ways(plan)

    def lay(flow: FlowPlan) -> FlowPlan:
        if flow.ends is None:
            return flow
        hops = tuple(_hop(plan, link) for link in ways.between(flow.ends).links)
        return replace(flow, forward=PathPlan(hops, 0.0))

    return replace(plan, flows=tuple(map(lay, plan.flows)))


def unsupported(plan: Plan) -> Iterator[str]:
    """Yield the features of paths that the fluid model lacks: equal-cost paths, and ACKs that wait behind data."""
    if plan.routing == "valiant":
        yield BY_A_SWITCH
        return
    ways = _Ways(plan)
    pairs = {flow.ends for flow in plan.flows if flow.ends}
    there = [ways.between(ends) for ends in pairs]
    back = [ways.between(EndsPlan(ends.destination, ends.source)) for ends in pairs]
    if not all(way.is_unique for way in (*there, *back)):
        yield SEVERAL_WAYS
    elif {link for way in there for link in way.links} & {link for way in back for link in way.links}:
        yield features.REVERSE


def _hop(plan: Plan, link: int) -> HopPlan:
    """A link as a hop; its propagation is in the flow's base RTT, which is all that a fluid knows of it."""
    return HopPlan(plan.links[link].delay_s, link)


@dataclass
class _Ways:
    """The shortest ways of a plan's network."""

    plan: Plan
    _cache: dict[int, Mapping[int, _Reached]] = field(default_factory=dict)
    _out: list[list[int]] = field(init=False)

    def __post_init__(self) -> None:
        self._out = [[] for _ in self.plan.nodes]
        for number, link in enumerate(self.plan.links):
            if link.ends:
                self._out[link.ends.source].append(number)

    def between(self, ends: EndsPlan) -> _Way:
        """The way from one host to another; `KeyError` if there is none, which no scenario's plan has."""
        first = self._out[ends.source]
        if len(first) == 1:  # all hosts of a switch share what is known of it
            next_hop = self._ends(first[0]).destination
            return self._way(next_hop, ends.destination, tuple(first))
        return self._way(ends.source, ends.destination, ())

    def _way(self, start: int, destination: int, before: tuple[int, ...]) -> _Way:
        reached = self._from(start)
        links: list[int] = []
        node = destination
        while (link := reached[node].link) is not None:
            links.append(link)
            node = self._ends(link).source
        return _Way((*before, *reversed(links)), reached[destination].ways == 1)

    def _from(self, start: int) -> Mapping[int, _Reached]:
        """Return how each node is reached from one, level by level."""
        if start in self._cache:
            return self._cache[start]
        found = {start: _Reached(None, 1)}
        edge = found
        while edge:
            next_edge: dict[int, _Reached] = {}
            for node, here in edge.items():
                if self.plan.nodes[node].host and node != start:
                    continue
                for link in self._out[node]:
                    reached = self._ends(link).destination
                    if reached not in found:
                        others = next_edge[reached].ways if reached in next_edge else 0
                        next_edge[reached] = _Reached(link, here.ways + others)
            found = found | next_edge
            edge = next_edge
        self._cache[start] = found
        return found

    def _ends(self, link: int) -> EndsPlan:
        ends = self.plan.links[link].ends
        assert ends is not None
        return ends
