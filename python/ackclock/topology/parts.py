"""What topologies are made of: tables that several of them share, and links and ways as they draw them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import Field, model_validator
from pydantic_core import InitErrorDetails

from ackclock.catalog.given import Given
from ackclock.fields import Loc, Spread, Spreadable, Table, fault, fault_at
from ackclock.keys import RTT, Delay, Moment, Name, Overhead, Rate
from ackclock.plan import EndsPlan, NodePlan, PathPlan
from ackclock.units import Size

#: The queue of an access link or a network card that the scenario gives none: Linux's default transmit queue.
ACCESS_QUEUE = Given("pfifo", {"limit": Size(1000, "p")})

#: Most flows of a scenario, and most ways of its generated traffic.
MOST_FLOWS = 1_000_000

Direction: TypeAlias = Literal["down", "up"]


class Loss(Table):
    """Random loss of data packets on a link: each so many-th of a flow, or by chance."""

    every: Annotated[int, Field(ge=2, le=10**15)] | None = Field(None, description="each so many-th packet of a flow")
    probability: Annotated[float, Field(gt=0, lt=1)] | None = Field(None, description="chance of each packet")

    @model_validator(mode="after")
    def _one_of_both(self) -> Loss:
        if (self.every is None) == (self.probability is None):
            found = "neither of two keys" if self.every is None else "both of two keys"
            raise fault(found, "{ every = 1000 } or { probability = 1e-3 }")
        return self

    def planned(self) -> Mapping[str, Any]:
        """As a plan has it."""
        if self.every is not None:
            return {"kind": "every", "packets": self.every}
        return {"kind": "bernoulli", "probability": self.probability}


class Change(Table):
    """A change of a link at a given time. What is not written stays as it is."""

    at: Moment = Field(description='when, such as "30s"')
    link: Name = Field(description='a link, such as "bottleneck"')
    rate: Rate | None = Field(None, description="its rate from then on")
    delay: Delay | None = Field(None, description="its propagation delay from then on")
    up: bool | None = Field(None, description="false: it fails, and loses what it holds; true: it works again")

    @model_validator(mode="after")
    def _something_changes(self) -> Change:
        if self.rate is None and self.delay is None and self.up is None:
            raise fault("no change", 'rate = "…", delay = "…", up = false or up = true')
        return self


class Placed(Table):
    """Where a group's data goes, and how many send it. Which of the keys there are depends on the topology."""

    count: Annotated[int, Field(ge=1, le=MOST_FLOWS)] = Field(1, description="number of sources")
    direction: Direction | None = Field(
        None, description='way of the data: "down" (absent), or "up", against it; dumbbell and asymmetric'
    )
    rtt: Annotated[Spread, Spreadable(RTT)] | None = Field(
        None,
        description="base RTT of these flows, instead of network.rtt; on an asymmetric line with what lies beyond it",
    )


#: The keys of `Placed` that only some topologies have, and what to write where they have not.
PLACING: Mapping[str, str] = {
    "direction": "no direction on this topology",
    "rtt": "no rtt: the delays of the links make it",
}


@dataclass(frozen=True, slots=True)
class Link:
    """A link as a topology draws it: its queue is still as it was written, at `place`."""

    name: str
    rate_bps: float
    queue: Given
    place: Loc
    ends: EndsPlan | None = None
    delay_s: float = 0.0
    weight: float = 1.0
    burst_bytes: int | None = None
    loss: Mapping[str, Any] | None = None
    bottleneck: bool = False


@dataclass(frozen=True, slots=True)
class Way:
    """The way of one source's data and that of the ACKs; with `ends`, the engine finds both."""

    forward: PathPlan
    reverse: PathPlan
    base_rtt_s: float
    ends: EndsPlan | None = None


@dataclass(frozen=True, slots=True)
class Drawing:
    """A network drawn for its groups: for each group, the ways of its sources."""

    links: tuple[Link, ...]
    ways: tuple[tuple[Way, ...], ...]
    nodes: tuple[NodePlan, ...] = ()
    routing: str = "single"


class Topology(Table):
    """What all topologies have in common."""

    #: The keys of `Placed` that say where data goes here.
    placed_by: ClassVar[frozenset[str]] = frozenset()

    frame_overhead: Overhead = Field(
        "14B", validate_default=True, description="wire bytes beyond the IP packet; 14 is what tc counts"
    )
    changes: list[Change] = Field([], description="tables [[network.changes]]: changes of links at given times")

    def mistakes(self, flows: Sequence[Placed], traffic: Sequence[Placed]) -> Iterator[InitErrorDetails]:
        """What groups ask for that is not there."""
        for name, groups in (("flows", flows), ("traffic", traffic)):
            for number, group in enumerate(groups):
                yield from self.misplaced(group, (name, number))

    def misplaced(self, group: Placed, place: Loc) -> Iterator[InitErrorDetails]:
        """What one group asks for that is not there. `place` is the group's."""
        for key in PLACING.keys() - self.placed_by:
            if getattr(group, key) is not None:
                yield fault_at((*place, key), 0, PLACING[key], "a key that does not belong here")

    def sources(self, group: Placed) -> int:
        """How many sources a group has."""
        return group.count

    def draw(self, flows: Sequence[Placed], traffic: Sequence[Placed]) -> Drawing:
        """Links and ways: first those of the flows, then those of the traffic."""
        raise NotImplementedError


def not_longer(spread: Spread | None, flows: int, loc: Loc) -> Iterator[InitErrorDetails]:
    """A list is not longer than the flows that it is for."""
    if spread is not None and not spread.evenly and len(spread.values) > flows:
        yield fault_at(loc, 0, f"at most one for each of {flows} flows", f"{len(spread.values)} values")
