"""Any graph: nodes and links as they are written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from typing import Annotated, Literal

from pydantic import Field, model_validator
from pydantic_core import InitErrorDetails

from ackclock.input.fields import Table, closest, fault_at, faults, shown
from ackclock.scenario.keys import Name, Queue
from ackclock.scenario.topology.network import LinkTable
from ackclock.scenario.topology.routed import MAX_LINKS, MAX_NODES, Routed, Wiring
from ackclock.scenario.topology.topology import matching, pairs


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
            sources, destinations = matching(edge.from_, self._numbers), matching(edge.to, self._numbers)
            for key, pattern, meant in (("from", edge.from_, sources), ("to", edge.to, destinations)):
                if not meant:
                    near = closest(pattern, [*self._numbers]) or next(iter(self._numbers))
                    yield fault_at(("links", number, key), pattern, f"a node such as {shown(near)}, or a pattern")
            if len(sources) == 1 and sources == destinations:
                yield fault_at(("links", number, "to"), edge.to, "another node than from")
            links += len(sources) * len(destinations) * (1 if edge.one_way else 2)
        if links > MAX_LINKS:
            yield fault_at(("links",), 0, f"at most {MAX_LINKS} links", f"{links} links")

    @cached_property
    def _numbers(self) -> dict[str, int]:
        """Return the number of each node by its name."""
        return {name: number for number, name in enumerate(name for node in self.nodes for name in node.names)}

    def wire(self) -> Wiring:
        """Nodes in the order of their tables, then links."""
        wiring = Wiring()
        for node in self.nodes:
            for name in node.names:
                _ = wiring.host(name) if node.host else wiring.switch(name)
        for place, edge in enumerate(self.links):
            at_switch = replace(edge.link(("network", "links", place)), weight=edge.weight)
            card = self.card(edge.rate, edge.delay)
            at_host = replace(at_switch, queue=card.queue, place=card.place)
            for one, other in pairs(matching(edge.from_, self._numbers), matching(edge.to, self._numbers), "all"):
                for source, destination in [(one, other)] if edge.one_way else [(one, other), (other, one)]:
                    kind = at_host if wiring.nodes[source].host else at_switch
                    wiring.link(source, destination, kind, bottleneck=edge.bottleneck)
        return wiring
