"""Any graph: nodes and links as they are written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Annotated, Literal

from pydantic import Field, model_validator
from pydantic_core import InitErrorDetails

from ackclock.input.fields import Table, closest, fault_at, faults, shown
from ackclock.scenario.keys import Name, Queue
from ackclock.scenario.topology.links import LinkTable
from ackclock.scenario.topology.routed import MAX_LINKS, MAX_NODES, Routed, Wiring


class Node(Table):
    """A node, or several."""

    name: Name = Field(
        description='its name; with a count, the common part of several names: "s" and 2 are "s-0" and "s-1"'
    )
    count: Annotated[int, Field(ge=1, le=MAX_NODES)] | None = Field(
        None, description="number of such nodes; absent: one"
    )
    host: bool = Field(False, description="true: flows may begin and end here; false: a switch")

    @property
    def names(self) -> list[str]:
        """Return all names."""
        return [self.name] if self.count is None else [f"{self.name}-{number}" for number in range(self.count)]


class Edge(LinkTable):
    """A link between two nodes; or one for each pair of two patterns' nodes."""

    from_: Name = Field(alias="from", description='a node, or a pattern such as "s-*"')
    to: Name = Field(description="a node, or a pattern")
    queue: Queue = Field(description="its queue, at each end that is a switch")
    one_way: bool = Field(False, description="true: from `from` to `to` only; absent: the same in both directions")
    weight: Annotated[float, Field(gt=0, le=1e6)] = Field(
        1.0, description='its share among equal-cost paths, for routing = "weighted"'
    )
    bottleneck: bool | None = Field(
        None, description="whether the metrics treat it as a bottleneck; absent: yes if a switch sends into it"
    )


class Graph(Routed):
    """Nodes and links as they are written."""

    topology: Literal["graph"] = Field(description='a topology: "graph"')
    nodes: Annotated[list[Node], Field(min_length=1)] = Field(description="tables [[network.nodes]]")
    links: Annotated[list[Edge], Field(min_length=1)] = Field(description="tables [[network.links]]")

    @model_validator(mode="after")
    def _can_be_built(self) -> Graph:
        if mistakes := [*self._wrong_nodes()] or [*self._wrong_links()]:
            raise faults(mistakes)
        return self

    def _wrong_nodes(self) -> Iterator[InitErrorDetails]:
        if (count := sum(node.count or 1 for node in self.nodes)) > MAX_NODES:
            yield fault_at(("nodes",), 0, f"at most {MAX_NODES} nodes", f"{count} nodes")
            return
        seen: set[str] = set()
        for number, node in enumerate(self.nodes):
            if twice := seen.intersection(node.names):
                yield fault_at(("nodes", number, "name"), min(twice), "another name: this one is taken")
            seen.update(node.names)
        if not any(node.host for node in self.nodes):
            yield fault_at(("nodes",), 0, "host = true for those between which data goes", "no host")

    def _wrong_links(self) -> Iterator[InitErrorDetails]:
        links = 0
        for number, edge in enumerate(self.links):
            for key, pattern in (("from", edge.from_), ("to", edge.to)):
                if not self._meant(pattern):
                    near = closest(pattern, self._names) or self._names[0]
                    yield fault_at(("links", number, key), pattern, f"a node such as {shown(near)}, or a pattern")
            pairs = len(self._meant(edge.from_)) * len(self._meant(edge.to))
            if pairs == 1 and self._meant(edge.from_) == self._meant(edge.to):
                yield fault_at(("links", number, "to"), edge.to, "another node than from")
            links += pairs * (1 if edge.one_way else 2)
        if links > MAX_LINKS:
            yield fault_at(("links",), 0, f"at most {MAX_LINKS} links", f"{links} links")

    @cached_property
    def _names(self) -> list[str]:
        return [name for node in self.nodes for name in node.names]

    def _meant(self, pattern: str) -> list[str]:
        """The nodes that a name or a pattern means."""
        if pattern in self._names:
            return [pattern]
        return [name for name in self._names if fnmatchcase(name, pattern)]

    def wire(self) -> Wiring:
        """Nodes in the order of their tables, then links."""
        wiring = Wiring()
        numbers: dict[str, int] = {}
        for node in self.nodes:
            for name in node.names:
                numbers[name] = wiring.host(name) if node.host else wiring.switch(name)
        for place, edge in enumerate(self.links):
            for source in self._meant(edge.from_):
                for destination in self._meant(edge.to):
                    if source != destination:
                        self._wire(wiring, edge, place, (numbers[source], numbers[destination]))
        return wiring

    def _wire(self, wiring: Wiring, edge: Edge, place: int, ends: tuple[int, int]) -> None:
        kind = replace(edge.link(("network", "links", place)), weight=edge.weight)
        card = self.card(edge.rate, edge.delay)
        at_host = replace(kind, queue=card.queue, place=card.place)
        for source, destination in [ends] if edge.one_way else [ends, ends[::-1]]:
            wiring.link(source, destination, at_host if wiring.nodes[source].host else kind, bottleneck=edge.bottleneck)
