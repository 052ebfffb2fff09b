"""Base class of topologies, the tables that several of them share, and the endpoints of a group's data in a network."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import BeforeValidator, Field, model_validator
from pydantic_core import InitErrorDetails

from ackclock.algorithms.selection import Given
from ackclock.input.fields import Loc, Spread, Spreadable, Table, closest, fault, fault_at, shown
from ackclock.input.units import Size
from ackclock.plan import NodePlan
from ackclock.scenario.keys import RTT, Delay, Moment, Name, Overhead, Rate
from ackclock.scenario.topology.network import Drawing, Impaired

#: Most flows of a scenario, and most ways of its generated traffic.
MAX_FLOWS = 1_000_000

#: Patterns that are drawn from the run's seed.
DRAWN = ("permutation", "random")

Direction: TypeAlias = Literal["down", "up"]


def _names(value: object) -> object:
    """One name, or a list of them."""
    if isinstance(value, str) or (isinstance(value, list) and all(isinstance(name, str) for name in value)):
        return value
    raise fault(shown(value), 'the name of a host, a pattern such as "h*", or a list of them')


HostNames: TypeAlias = Annotated[str | list[str], BeforeValidator(_names)]


class Placed(Table):
    """Endpoints of a group, and the number of its senders. Which keys exist depends on the topology."""

    count: Annotated[int, Field(ge=1, le=MAX_FLOWS)] = Field(
        1, description="number of sources; between hosts: for each pair"
    )
    congestion_factor: Annotated[float, Field(ge=0, le=1000)] | None = Field(
        None,
        description=(
            "instead of count: as many sources as make their total access rate this multiple of the rate of the "
            "link that their data share, none for 0; dumbbell with access_rate or aggregation"
        ),
    )
    direction: Direction | None = Field(
        None, description='direction of the data: "down" (the default) or "up"; dumbbell and asymmetric'
    )
    rtt: Annotated[Spread, Spreadable(RTT)] | None = Field(
        None,
        description="base RTT of these flows, instead of network.rtt; on an asymmetric line, including all beyond it",
    )
    rtt_spread: Delay | None = Field(
        None,
        description=(
            "how much longer or shorter the base RTT of each source may be: drawn uniformly from the scenario's first "
            "seed, so the same in all runs"
        ),
    )
    from_: HostNames | None = Field(
        None,
        alias="from",
        description=(
            'sending hosts: a name, "h*", a list; absent: all (flows between hosts need one of from, to and between)'
        ),
    )
    to: HostNames | None = Field(None, description="receiving hosts, as from")
    between: Literal["all", "round-robin", "permutation", "random"] | None = Field(
        None,
        description=(
            'who sends to whom: "all" (absent), "round-robin" (first to first, second to second …), "permutation" or '
            '"random" (drawn from the seed)'
        ),
    )
    path: Name | None = Field(None, description='a path by its name, such as "long" or "hop-2" of a parking lot')

    #: True if the transfers and their ends are drawn from the seed.
    generated: ClassVar[bool] = False

    def between_hosts(
        self, sources: Sequence[int], destinations: Sequence[int], place: Loc
    ) -> Iterator[InitErrorDetails]:
        """Yield the faults of a group between these hosts."""
        yield from ()

    @property
    def pattern(self) -> str:
        """Return the pattern of who may send to whom, as the scenario writes it."""
        return self.between or "all"

    @property
    def pairing(self) -> str:
        """Return the pattern as a plan writes it for drawn pairs."""
        return self.pattern.replace("-", "_")


#: The fields of `Placed` that only some topologies have, and what to write where there is none.
PLACING: Mapping[str, str] = {
    "congestion_factor": "count = …: a congestion factor is that of a dumbbell's access links",
    "direction": "no direction: name hosts with from and to",
    "rtt": "no rtt: the delays of the links make it",
    "rtt_spread": "no rtt_spread: the delays of the links make the RTT",
    "from_": "no from: this topology has no hosts to name",
    "to": "no to: this topology has no hosts to name",
    "between": "no between: this topology has no hosts to name",
    "path": "no path: this topology has none to name",
}


def not_longer(spread: Spread | None, flows: int, loc: Loc) -> Iterator[InitErrorDetails]:
    """A list is not longer than the flows that it is for."""
    if spread is not None and not spread.evenly and len(spread.values) > flows:
        yield fault_at(loc, 0, f"at most one for each of {flows} flows", f"{len(spread.values)} values")


def matching(wanted: str | Sequence[str], hosts: dict[str, int]) -> tuple[int, ...]:
    """The hosts that a name, a glob, or a list of them means, each once."""
    patterns = [wanted] if isinstance(wanted, str) else wanted
    found: dict[int, None] = {}
    for pattern in patterns:
        if pattern in hosts:
            found[hosts[pattern]] = None
        else:
            found |= {number: None for name, number in hosts.items() if fnmatchcase(name, pattern)}
    return tuple(found)


def unmatched(
    wanted: str | Sequence[str], hosts: dict[str, int], nodes: Sequence[NodePlan], place: Loc
) -> Iterator[InitErrorDetails]:
    """Yield faults of names that match no host."""
    if not isinstance(wanted, str) and not wanted:
        yield fault_at(place, wanted, "at least one host")
    for pattern in [wanted] if isinstance(wanted, str) else wanted:
        if not matching(pattern, hosts):
            is_switch = any(node.name == pattern for node in nodes)
            found = f"{shown(pattern)}, which is a switch" if is_switch else shown(pattern)
            yield fault_at(place, pattern, expected_host(pattern, hosts), found)


def expected_host(name: str, hosts: dict[str, int]) -> str:
    """Return the expectation in place of an unknown host: the nearest, or the first and the last."""
    if close := closest(name, tuple(hosts)):
        return f"a host such as {shown(close)}"
    first, last = next(iter(hosts)), next(reversed(hosts))
    return f"a host: {shown(first)} to {shown(last)}, or a pattern such as {shown(first[:1] + '*')}"


def pairs(sources: Sequence[int], destinations: Sequence[int], pattern: str) -> Iterator[tuple[int, int]]:
    """The pairs of a pattern that is not drawn."""
    if pattern == "round-robin":
        yield from zip(sources, destinations, strict=True)
        return
    for source in sources:
        for destination in destinations:
            if source != destination:
                yield source, destination


def unpaired(
    sources: Sequence[int], destinations: Sequence[int], pattern: str, place: Loc
) -> Iterator[InitErrorDetails]:
    """Yield the reasons that make a pattern impossible."""
    place = (*place, "between")
    if pattern in ("round-robin", "permutation") and len(sources) != len(destinations):
        found = f"{shown(pattern)} with {len(sources)} sources and {len(destinations)} destinations"
        yield fault_at(place, pattern, "as many of both", found)
    elif pattern == "round-robin" and any(one == two for one, two in zip(sources, destinations, strict=True)):
        yield fault_at(place, pattern, "lists whose hosts at the same place differ", f"{shown(pattern)} to itself")
    elif pattern == "permutation" and set(sources) == set(destinations) and len(sources) == 1:
        yield fault_at(place, pattern, "two or more hosts", f"{shown(pattern)} of one host")
    elif pattern in ("all", "random") and not any(True for _ in pairs(sources, destinations, "all")):
        yield fault_at(place, pattern, "a source and another destination", "one host with itself")
    elif pattern == "random" and len(set(destinations)) == 1 and destinations[0] in sources:
        yield fault_at(
            place, pattern, "two or more destinations, or one that is no source", f"{shown(pattern)} to itself"
        )


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
