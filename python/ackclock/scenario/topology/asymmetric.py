"""An access line whose two directions differ in rate, delay and queue, such as ADSL.

R. Braud: the antiparallel flows of chapters 4 to 7. Data of one direction and ACKs of the other share a queue, so both
links are bottlenecks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import ClassVar, Literal

from pydantic import Field
from pydantic_core import InitErrorDetails

from ackclock.input.fields import Loc, fault_at
from ackclock.plan import HopPlan, PathPlan
from ackclock.scenario.topology.network import Drawing, LinkTable, Way
from ackclock.scenario.topology.topology import Placed, Topology

DOWN, UP = 0, 1


class Asymmetric(Topology):
    """A line whose two directions differ; data and ACKs share them."""

    placed_by: ClassVar[frozenset[str]] = frozenset({"direction", "rtt", "rtt_spread"})

    topology: Literal["asymmetric"] = Field(description='a topology: "asymmetric"')
    down: LinkTable = Field(description="one direction: { rate, delay, queue }")
    up: LinkTable = Field(description="the other: { rate, delay, queue }")

    @property
    def rtt_s(self) -> float:
        """The base RTT of the line alone."""
        return self.down.delay + self.up.delay

    def misplaced(self, group: Placed, place: Loc) -> Iterator[InitErrorDetails]:
        """No path is shorter than the line."""
        yield from super().misplaced(group, place)
        least_s = min(group.rtt.values) if group.rtt else self.rtt_s
        if least_s < self.rtt_s:
            expected = f"at least {self.rtt_s:g} s, the two delays of the line"
            yield fault_at((*place, "rtt"), 0, expected, f"{least_s:g} s")

    def capacity_bps(self, group: Placed) -> float:
        """The rate of the link that the data goes over."""
        return self.up.rate if group.direction == "up" else self.down.rate

    def draw(self, flows: Sequence[Placed], traffic: Sequence[Placed]) -> Drawing:
        """Two links; each source's data goes over one of them, its ACKs over the other."""
        links = tuple(
            replace(side.link(("network", name), name), delay_s=self._own_s(name), bottleneck=True)
            for name, side in (("down", self.down), ("up", self.up))
        )
        ways = []
        for group in (*flows, *traffic):
            count = self.sources(group)
            rtts_s = group.rtt.over(count) if group.rtt else [self.rtt_s] * count
            ways.append(tuple(self._way(group.direction, rtt_s) for rtt_s in rtts_s))
        return Drawing(links, tuple(ways))

    def _own_s(self, name: str) -> float:
        """The delay of a link whose delay changes or varies; one that does not is cheaper in the paths."""
        side = self.down if name == "down" else self.up
        return side.delay if side.medium() or self.moves(name) else 0.0

    def _way(self, direction: str | None, rtt_s: float) -> Way:
        """Return the path of a flow. What its RTT has beyond the line is split evenly behind both links."""
        rest_s = (rtt_s - self.rtt_s) / 2
        down = PathPlan((HopPlan(0.0, DOWN),), self.down.delay - self._own_s("down") + rest_s)
        up = PathPlan((HopPlan(0.0, UP),), self.up.delay - self._own_s("up") + rest_s)
        return Way(up, down, rtt_s) if direction == "up" else Way(down, up, rtt_s)
