"""What topologies are made of: tables that several of them share, and links and ways as they draw them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import BeforeValidator, Field, model_validator
from pydantic_core import InitErrorDetails

from ackclock.catalog.given import Given
from ackclock.input.fields import Loc, Spread, Spreadable, Table, fault, fault_at, shown
from ackclock.input.units import Size
from ackclock.plan import EndsPlan, LoadPlan, NodePlan, PathPlan
from ackclock.scenario.keys import RTT, Delay, Moment, Name, Overhead, Rate

#: The queue of an access link or a network card that the scenario gives none: Linux's default transmit queue.
ACCESS_QUEUE = Given("pfifo", {"limit": Size(1000, "p")})

#: Most flows of a scenario, and most ways of its generated traffic.
MOST_FLOWS = 1_000_000

#: The path of what names its ends instead.
NOWHERE = PathPlan((), 0.0)

Direction: TypeAlias = Literal["down", "up"]


class Loss(Table):
    """Random loss of data packets on a link: each so many-th of a flow, or by chance; of SYNs if it says so."""

    every: Annotated[int, Field(ge=2, le=10**15)] | None = Field(None, description="each so many-th packet of a flow")
    probability: Annotated[float, Field(gt=0, lt=1)] | None = Field(None, description="chance of each packet")
    syn: Annotated[float, Field(gt=0, lt=1)] | None = Field(
        None, description="beside a probability: chance of each SYN and SYN/ACK; without it they pass"
    )

    @model_validator(mode="after")
    def _one_of_both(self) -> Loss:
        if (self.every is None) == (self.probability is None):
            found = "neither of two keys" if self.every is None else "both of two keys"
            raise fault(found, "{ every = 1000 } or { probability = 1e-3 }")
        if self.syn is not None and self.probability is None:
            raise fault("syn beside every", "syn beside a probability")
        return self

    def planned(self) -> Mapping[str, Any]:
        """As a plan has it."""
        if self.every is not None:
            return {"kind": "every", "packets": self.every}
        if self.syn is not None:
            return {"kind": "with_syn", "probability": self.probability, "syn": self.syn}
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


def _names(value: object) -> object:
    """One name, or a list of them."""
    if isinstance(value, str) or (isinstance(value, list) and all(isinstance(name, str) for name in value)):
        return value
    raise fault(shown(value), 'the name of a host, a pattern such as "h*", or a list of them')


HostNames: TypeAlias = Annotated[str | list[str], BeforeValidator(_names)]


class Placed(Table):
    """Where a group's data goes, and how many send it. Which of the keys there are depends on the topology."""

    count: Annotated[int, Field(ge=1, le=MOST_FLOWS)] = Field(
        1, description="number of sources; between hosts: of each pair"
    )
    congestion_factor: Annotated[float, Field(gt=0, le=1000)] | None = Field(
        None,
        description=(
            "instead of count: so many sources that their access rates together are this multiple of the rate of the "
            "link that their data shares; dumbbell with access_rate or aggregation"
        ),
    )
    direction: Direction | None = Field(
        None, description='way of the data: "down" (absent), or "up", against it; dumbbell and asymmetric'
    )
    rtt: Annotated[Spread, Spreadable(RTT)] | None = Field(
        None,
        description="base RTT of these flows, instead of network.rtt; on an asymmetric line with what lies beyond it",
    )
    from_: HostNames | None = Field(None, alias="from", description='sending hosts: a name, "h*", a list; absent: all')
    to: HostNames | None = Field(None, description="receiving hosts, as from")
    between: Literal["all", "in-turn", "permutation", "random"] | None = Field(
        None,
        description=(
            'who sends to whom: "all" (absent), "in-turn" (first to first, second to second …), "permutation" or '
            '"random" (drawn from the seed)'
        ),
    )
    path: Name | None = Field(None, description='a way by its name, such as "long" or "hop-2" of a parking lot')

    #: Whether the transfers and their ends are drawn from the seed.
    generated: ClassVar[bool] = False

    def between_hosts(
        self, sources: Sequence[int], destinations: Sequence[int], place: Loc
    ) -> Iterator[InitErrorDetails]:
        """What the group asks for that cannot be between these hosts."""
        yield from ()

    @property
    def pattern(self) -> str:
        """Who may send to whom, as the scenario says it."""
        return self.between or "all"

    @property
    def pairing(self) -> str:
        """Who sends to whom, as a plan says it of what is drawn."""
        return self.pattern.replace("-", "_")


#: The fields of `Placed` that only some topologies have: the key, and what to write where there is none.
PLACING: Mapping[str, tuple[str, str]] = {
    "congestion_factor": ("congestion_factor", "count = …: a congestion factor is that of a dumbbell's access links"),
    "direction": ("direction", "no direction: name hosts with from and to"),
    "rtt": ("rtt", "no rtt: the delays of the links make it"),
    "from_": ("from", "no from: this topology has no hosts to name"),
    "to": ("to", "no to: this topology has no hosts to name"),
    "between": ("between", "no between: this topology has no hosts to name"),
    "path": ("path", "no path: this topology has none to name"),
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
class Hosts:
    """The hosts between which a group sends, and who sends to whom; the ways are drawn from the seed."""

    sources: tuple[int, ...]
    destinations: tuple[int, ...]
    pairing: str
    longest_rtt_s: float


@dataclass(frozen=True, slots=True)
class Drawing:
    """A network drawn for its groups: for each group, the ways of its sources, or its hosts."""

    links: tuple[Link, ...]
    places: tuple[tuple[Way, ...] | Hosts, ...]
    nodes: tuple[NodePlan, ...] = ()
    routing: str = "single"
    load: LoadPlan | None = None


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
        for name, (key, told) in PLACING.items():
            if name not in self.placed_by and getattr(group, name) is not None:
                yield fault_at((*place, key), 0, told, "a key that does not belong here")

    def sources(self, group: Placed) -> int:
        """How many sources a group has."""
        return group.count

    @abstractmethod
    def capacity_bps(self, group: Placed) -> float:
        """The rate that a group's `load` is a share of."""

    @abstractmethod
    def draw(self, flows: Sequence[Placed], traffic: Sequence[Placed]) -> Drawing:
        """Links and ways: first those of the flows, then those of the traffic."""


def not_longer(spread: Spread | None, flows: int, loc: Loc) -> Iterator[InitErrorDetails]:
    """A list is not longer than the flows that it is for."""
    if spread is not None and not spread.evenly and len(spread.values) > flows:
        yield fault_at(loc, 0, f"at most one for each of {flows} flows", f"{len(spread.values)} values")
