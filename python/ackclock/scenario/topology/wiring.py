"""Nodes and links put together one by one, and the shortest ways between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ackclock.algorithms.selection import Given
from ackclock.input.fields import Loc
from ackclock.plan import EndsPlan, MediumPlan, NodePlan
from ackclock.scenario.topology.network import Link


@dataclass(frozen=True, slots=True)
class Cable:
    """Properties of a link, whichever its direction."""

    rate_bps: float
    delay_s: float
    queue: Given
    place: Loc
    weight: float = 1.0
    burst_bytes: int | None = None
    loss: Mapping[str, Any] | None = None
    medium: MediumPlan | None = None


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

    def link(self, source: int, destination: int, cable: Cable, name: str = "", bottleneck: bool | None = None) -> None:
        """A link one way. Unless said otherwise it is a bottleneck if a switch sends into it."""
        self.links.append(
            Link(
                name=name or f"{self.nodes[source].name}>{self.nodes[destination].name}",
                rate_bps=cable.rate_bps,
                queue=cable.queue,
                place=cable.place,
                ends=EndsPlan(source, destination),
                delay_s=cable.delay_s,
                weight=cable.weight,
                burst_bytes=cable.burst_bytes,
                loss=cable.loss,
                medium=cable.medium,
                bottleneck=not self.nodes[source].host if bottleneck is None else bottleneck,
            )
        )

    def both_ways(self, one: int, other: int, there: Cable, back: Cable | None = None) -> None:
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
