"""What all topologies have in common, and the tables that several of them share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar

from pydantic import Field, model_validator
from pydantic_core import InitErrorDetails

from ackclock.catalog.given import Given
from ackclock.input.fields import Loc, Table, fault, fault_at
from ackclock.input.units import Size
from ackclock.scenario.keys import Delay, Moment, Name, Overhead, Rate
from ackclock.scenario.topology.drawing import Drawing
from ackclock.scenario.topology.placed import PLACING, Placed

#: The queue of an access link or a network card that the scenario gives none: Linux's default transmit queue.
ACCESS_QUEUE = Given("pfifo", {"limit": Size(1000, "p")})


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
