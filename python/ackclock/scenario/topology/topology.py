"""Base class of topologies, and the tables that several of them share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import ClassVar

from pydantic import Field, model_validator
from pydantic_core import InitErrorDetails

from ackclock.algorithms.selection import Given
from ackclock.input.fields import Loc, Table, fault, fault_at
from ackclock.input.units import Size
from ackclock.scenario.keys import Delay, Moment, Name, Overhead, Rate
from ackclock.scenario.topology.endpoints import PLACING, Placed
from ackclock.scenario.topology.network import Drawing, Impaired

#: The queue of an access link or a network card that the scenario gives none: Linux's default transmit queue.
ACCESS_QUEUE = Given("pfifo", {"limit": Size(1000, "p")})


class Change(Impaired):
    """A change of a link at a given time. What is not written stays as it is."""

    at: Moment = Field(description='when, such as "30s"')
    link: Name = Field(description='a link, such as "bottleneck"')
    rate: Rate | None = Field(None, description="its rate from then on")
    delay: Delay | None = Field(None, description="its propagation delay from then on")
    up: bool | None = Field(None, description="false: it fails, and loses what it holds; true: it works again")

    @model_validator(mode="after")
    def _something_changes(self) -> Change:
        if all(value is None for value in (self.rate, self.delay, self.up, self.loss)) and not self.is_impaired:
            raise fault("no change", 'rate = "…", delay = "…", up = false or up = true, or a loss and the like')
        if self.tunnel is not None:
            raise fault("a tunnel in a change", "it at the link, for the whole run: packets in it keep their headers")
        return self


class Topology(Table):
    """Base class of topologies."""

    #: The keys of `Placed` that say where data goes here.
    placed_by: ClassVar[frozenset[str]] = frozenset()

    frame_overhead: Overhead = Field(
        "14B", validate_default=True, description="wire bytes beyond the IP packet; 14 is what tc counts"
    )
    changes: list[Change] = Field([], description="tables [[network.changes]]: changes to links at given times")

    def mistakes(self, flows: Sequence[Placed], traffic: Sequence[Placed]) -> Iterator[InitErrorDetails]:
        """Yield faults of groups: endpoints and keys that the topology lacks."""
        for name, groups in (("flows", flows), ("traffic", traffic)):
            for number, group in enumerate(groups):
                yield from self.misplaced(group, (name, number))

    def misplaced(self, group: Placed, place: Loc) -> Iterator[InitErrorDetails]:
        """Yield faults of one group. `place` is the group's."""
        for name, expected in PLACING.items():
            if name not in self.placed_by and getattr(group, name) is not None:
                yield fault_at((*place, name.removesuffix("_")), 0, expected, "a key that does not belong here")

    def moves(self, name: str) -> bool:
        """Return True if the delay of a link changes or varies."""
        return any(change.link == name and (change.delay is not None or change.is_impaired) for change in self.changes)

    def sources(self, group: Placed) -> int:
        """Return the number of sources of a group."""
        return group.count

    @abstractmethod
    def capacity_bps(self, group: Placed) -> float:
        """The rate that a group's `load` is a share of."""

    @abstractmethod
    def draw(self, flows: Sequence[Placed], traffic: Sequence[Placed]) -> Drawing:
        """Links and ways: first those of the flows, then those of the traffic."""
