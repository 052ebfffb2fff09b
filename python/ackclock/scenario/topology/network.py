"""A network as a topology draws it: links and ways, or hosts between which the ways are drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ackclock.algorithms.selection import Given
from ackclock.input.fields import Loc
from ackclock.plan import EndsPlan, LoadPlan, MediumPlan, NodePlan, PathPlan

#: The path of what names its ends instead.
NOWHERE = PathPlan((), 0.0)


@dataclass(frozen=True, slots=True)
class Link:
    """A link as a topology draws it: its queue is still as it was written, at `place`.

    `borrowed_s` of its delay is the ways', and not what is written as the link's.
    """

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
    medium: MediumPlan | None = None
    borrowed_s: float = 0.0


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
    """A network drawn for its groups: for each group, the ways of its sources, or its hosts.

    `testbed` is where it is, if it is made of real hosts.
    """

    links: tuple[Link, ...]
    places: tuple[tuple[Way, ...] | Hosts, ...]
    nodes: tuple[NodePlan, ...] = ()
    routing: str = "single"
    flowlet_gap_s: float | None = None
    load: LoadPlan | None = None
    testbed: Mapping[str, Any] | None = None
