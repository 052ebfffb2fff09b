"""The Y: branches that join in one trunk."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from ackclock.input.fields import Loc
from ackclock.scenario.keys import Burst, Delay, LinkRate, Queue
from ackclock.scenario.topology.impairments import Impaired
from ackclock.scenario.topology.routed import Routed
from ackclock.scenario.topology.wiring import Cable, Wiring


class Leg(Impaired):
    """A branch or the trunk. The way back has the same rate, delay and queue, and is unimpaired."""

    rate: LinkRate = Field(description='its rate, such as "100Mbit"')
    delay: Delay = Field(description='its propagation delay, such as "10ms"')
    queue: Queue = Field(description='its queue, such as { discipline = "pfifo", limit = "100p" }')
    burst: Burst | None = Field(
        None, description="burst of a token bucket that replaces the transmitter; absent: a transmitter"
    )

    def cables(self, place: Loc) -> tuple[Cable, Cable]:
        """Return the cables forward and back."""
        burst_bytes = None if self.burst is None else int(self.burst)
        place = (*place, "queue")
        loss, medium = self.loss_planned(), self.medium()
        there = Cable(self.rate, self.delay, self.queue, place, burst_bytes=burst_bytes, loss=loss, medium=medium)
        return there, Cable(self.rate, self.delay, self.queue, place)


class Y(Routed):
    """Several branches, one trunk."""

    placed_by: ClassVar[frozenset[str]] = Routed.placed_by | {"path"}

    topology: Literal["y"] = Field(description='a topology: "y"')
    branches: Annotated[list[Leg], Field(min_length=2, max_length=1000)] = Field(
        description="two or more [[network.branches]]: { rate, delay, queue }"
    )
    trunk: Leg = Field(description="the link into which they merge: { rate, delay, queue }")

    def wire(self) -> Wiring:
        """Hosts `branch-0` … and `end`, and a switch `join`; the branch's queue is at its host.

        The trunk is a bottleneck, and so is each branch that is not faster.
        """
        wiring = Wiring()
        join, end = wiring.switch("join"), wiring.host("end")
        there, back = self.trunk.cables(("network", "trunk"))
        wiring.link(join, end, there, "trunk", bottleneck=True)
        wiring.link(end, join, back)
        for number, leg in enumerate(self.branches):
            host = wiring.host(f"branch-{number}")
            there, back = leg.cables(("network", "branches", number))
            wiring.link(host, join, there, f"branch-{number}", bottleneck=leg.rate <= self.trunk.rate)
            wiring.link(join, host, back, bottleneck=False)
        return wiring

    def named_ways(self) -> dict[str, tuple[str, str]]:
        """From each branch to the end."""
        return {f"branch-{number}": (f"branch-{number}", "end") for number in range(len(self.branches))}
