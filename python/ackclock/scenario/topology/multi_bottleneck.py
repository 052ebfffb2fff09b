"""Topologies of several bottlenecks: the Y, the parking lot, and the asymmetric line.

In the Y, branches join in one trunk. In the parking lot, bottlenecks stand in a row; flows go through all of them, or
cross one each. The asymmetric line is an access line whose two directions differ in rate, delay and queue, such as
ADSL: data of one direction and ACKs of the other share a queue, so both links are bottlenecks (Braud 2016, chapters 4
to 7).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Annotated, ClassVar, Literal

from pydantic import Field
from pydantic_core import InitErrorDetails

from ackclock.input.fields import Loc, fault_at
from ackclock.plan import HopPlan, PathPlan
from ackclock.scenario.keys import Delay, LinkRate, Queue
from ackclock.scenario.topology.network import Drawing, Link, LinkTable, Way
from ackclock.scenario.topology.routed import Routed, Wiring
from ackclock.scenario.topology.topology import Placed, Topology


class Y(Routed):
    """Several branches, one trunk."""

    placed_by: ClassVar[frozenset[str]] = Routed.placed_by | {"path"}

    topology: Literal["y"] = Field(description='a topology: "y"')
    branches: Annotated[list[LinkTable], Field(min_length=2, max_length=1000)] = Field(
        description="two or more [[network.branches]]: { rate, delay, queue }"
    )
    trunk: LinkTable = Field(description="the link into which they merge: { rate, delay, queue }")

    def wire(self) -> Wiring:
        """Hosts `branch-0` … and `end`, and a switch `join`; the branch's queue is at its host.

        The trunk is a bottleneck, and so is each branch that is not faster.
        """
        wiring = Wiring()
        join, end = wiring.switch("join"), wiring.host("end")
        there = self.trunk.link(("network", "trunk"))
        wiring.link(join, end, there, "trunk", bottleneck=True)
        wiring.link(end, join, unimpaired(there))
        for number, leg in enumerate(self.branches):
            host = wiring.host(f"branch-{number}")
            there = leg.link(("network", "branches", number))
            wiring.link(host, join, there, f"branch-{number}", bottleneck=leg.rate <= self.trunk.rate)
            wiring.link(join, host, unimpaired(there), bottleneck=False)
        return wiring

    def named_ways(self) -> dict[str, tuple[str, str]]:
        """From each branch to the end."""
        return {f"branch-{number}": (f"branch-{number}", "end") for number in range(len(self.branches))}


def unimpaired(link: Link) -> Link:
    """The way back of a link: the same rate, delay and queue."""
    return replace(link, burst_bytes=None, loss=None, medium=None)


class ParkingLot(Routed):
    """Bottlenecks in a row."""

    placed_by: ClassVar[frozenset[str]] = Routed.placed_by | {"path"}

    topology: Literal["parking-lot"] = Field(description='a topology: "parking-lot"')
    hops: Annotated[int, Field(ge=1, le=100)] = Field(description="number of bottlenecks in a row")
    rate: LinkRate = Field(description='rate of each bottleneck, such as "100Mbit"')
    delay: Delay = Field(description='propagation delay of each bottleneck, such as "10ms"')
    queue: Queue = Field(description='queue of each bottleneck, such as { discipline = "pfifo", limit = "100p" }')
    access_rate: LinkRate = Field(description='rate of the hosts\' links, such as "1Gbit"')
    access_delay: Delay = Field("0s", validate_default=True, description="propagation delay of the hosts' links")

    def wire(self) -> Wiring:
        """Switches `s0` … in a row; for each way, a host that sends and one that receives at its ends."""
        wiring = Wiring()
        switches = [wiring.switch(f"s{number}") for number in range(self.hops + 1)]
        place = ("network", "queue")
        along = Link("", self.rate, self.queue, place, delay_s=self.delay)
        for number, (one, other) in enumerate(pairwise(switches), start=1):
            wiring.link(one, other, along, f"hop-{number}")
            wiring.link(other, one, along, bottleneck=False)
        port = Link("", self.access_rate, self.queue, place, delay_s=self.access_delay)
        card = self.card(self.access_rate, self.access_delay)
        spans = [(switches[0], switches[-1]), *pairwise(switches)]
        for span, hosts in zip(spans, self.named_ways().values(), strict=True):
            for switch, name in zip(span, hosts, strict=True):
                host = wiring.host(name)
                wiring.link(host, switch, card)
                wiring.link(switch, host, port, bottleneck=False)
        return wiring

    def named_ways(self) -> dict[str, tuple[str, str]]:
        """`long` through all, `hop-1` … across one each."""
        names = ["long", *(f"hop-{number}" for number in range(1, self.hops + 1))]
        return {name: (f"{name}-source", f"{name}-sink") for name in names}


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
