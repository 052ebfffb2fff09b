"""Topologies of several bottlenecks: the Y and the parking lot.

In the Y, branches join in one trunk. In the parking lot, bottlenecks stand in a row; flows go through all of them, or
cross one each.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from ackclock.scenario.keys import Delay, LinkRate, Queue
from ackclock.scenario.topology.network import Link, LinkTable
from ackclock.scenario.topology.routed import Routed, Wiring


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
