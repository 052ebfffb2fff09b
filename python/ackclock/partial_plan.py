"""The known part of the plan behind a result: all that views use of it.

The result of an engine has a whole plan in its manifest. A capture was never planned: perhaps a name is known, or
a link, or nothing. Unknown parts are None or empty, and a view that requires one reports that.

Used by datasets, metrics and importers; engines have the whole plan.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ackclock.errors import InputError
from ackclock.plan import CongestionPlan, Parameters, QueuePlan, RecordPlan
from ackclock.plan.records import record

#: Longest duration of a result: 30 days, the limit of a scenario.
LONGEST_S = 720.0 * 3600

#: Qdiscs that may shape to a rate below that of their link, and the parameter that has it.
SHAPERS: Mapping[str, str] = {"tbf": "rate_bps", "cake": "bandwidth_bps"}


def groups_of(name: str, names: Sequence[str | None]) -> list[int]:
    """Return the places of a group's name, or if it is none, of the names with that last word: `web` is `cubic web`.

    The first word of a default name is an algorithm: where another choice's group is `cubic`, it is not `cubic web`.
    """
    exact = [number for number, known in enumerate(names) if known == name]
    return exact or [number for number, known in enumerate(names) if (known or "").split()[-1:] == [name]]


@dataclass(frozen=True, slots=True)
class PartialLink:
    """A link; its number is its place in the plan."""

    name: str | None = None
    rate_bps: float | None = None
    queue: QueuePlan | None = None
    frame_overhead_bytes: int | None = None
    bottleneck: bool = False
    trace: Parameters | None = None


@dataclass(frozen=True, slots=True)
class PartialChange:
    """A change of a link at a given time."""

    at_s: float = 0.0
    link: int | None = None
    rate_bps: float | None = None


@dataclass(frozen=True, slots=True)
class PartialTcp:
    """A TCP apart from its congestion control."""

    mss_bytes: int | None = None
    header_bytes: int | None = None
    timestamps: bool = False
    initial_window: int | None = None
    initial_rto_s: float | None = None
    receive_window_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class PartialGroup:
    """Common properties of a group of flows. `direction` is "up" or "down", as the measuring host sees its data."""

    name: str | None = None
    direction: str | None = None
    congestion: CongestionPlan | None = None
    tcp: PartialTcp | None = None
    slow_reader: Parameters | None = None
    writes: Parameters | None = None


@dataclass(frozen=True, slots=True)
class PartialHop:
    """A link on a path, by its number."""

    link: int | None = None


@dataclass(frozen=True, slots=True)
class PartialPath:
    """The way of a flow's packets."""

    hops: tuple[PartialHop, ...] = ()


@dataclass(frozen=True, slots=True)
class PartialFlow:
    """A TCP connection that is written one by one."""

    group: int = 0
    size_bytes: int | None = None
    application_rate_bps: float | None = None
    base_rtt_s: float | None = None
    forward: PartialPath | None = None


@dataclass(frozen=True, slots=True)
class PartialPathPair:
    """The way of a source's data."""

    forward: PartialPath | None = None


@dataclass(frozen=True, slots=True)
class PartialPopulation:
    """The endpoints of generated transfers: as pairs of paths, if they are written one by one."""

    paths: tuple[PartialPathPair, ...] = ()


@dataclass(frozen=True, slots=True)
class PartialTraffic:
    """Transfers that are generated."""

    group: int = 0
    population: PartialPopulation = field(default_factory=PartialPopulation)


@dataclass(frozen=True, slots=True)
class PartialDatagrams:
    """A source over UDP: datagrams by a schedule, media, or QUIC."""

    group: int = 0
    start_s: float = 0.0
    stop_s: float | None = None
    base_rtt_s: float | None = None
    forward: PartialPath | None = None
    payload_bytes: int | None = None
    header_bytes: int | None = None
    source: Parameters = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PartialPlan:
    """The fields of `Plan` that views use, each of which may be unknown."""

    name: str | None = None
    duration_s: float | None = None
    warmup_s: float = 0.0
    mean_base_rtt_s: float | None = None
    packet_bytes: int | None = None
    bottleneck: int | None = None
    links: tuple[PartialLink, ...] = ()
    changes: tuple[PartialChange, ...] = ()
    groups: tuple[PartialGroup, ...] = ()
    flows: tuple[PartialFlow, ...] = ()
    traffic: tuple[PartialTraffic, ...] = ()
    datagrams: tuple[PartialDatagrams, ...] = ()
    record: RecordPlan | None = None
    epochs: str = "gap"
    options: Mapping[str, Parameters] = field(default_factory=dict)

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> PartialPlan:
        """Read the plan of a manifest. Raises `InputError` for what is no plan, nor a part of one."""
        plan: PartialPlan = record(PartialPlan, values)
        duration_s = LONGEST_S if plan.duration_s is None else plan.duration_s
        if not 0 <= plan.warmup_s < duration_s <= LONGEST_S:
            found = f"{plan.warmup_s:g} s of {duration_s:g} s"
            raise InputError(f"plan: found a warm-up of {found}; expected a part of at most {LONGEST_S:g} s")
        return plan

    def groups_of(self, name: str) -> list[int]:
        """Return the numbers of the groups of a name, or if there are none, of those with this last word."""
        return groups_of(name, [group.name for group in self.groups])

    @property
    def group_names(self) -> list[str]:
        """Names of the groups of flows, each once."""
        return list(dict.fromkeys(group.name for group in self.groups if group.name))

    @property
    def bottlenecks(self) -> list[int]:
        """Numbers of the links that the metrics look at."""
        return [number for number, link in enumerate(self.links) if link.bottleneck]

    def link_number(self, name: str) -> int | None:
        """Return the number of the bottleneck of this name; None if there is none."""
        return next((number for number in self.bottlenecks if self.links[number].name == name), None)

    def capacity_bps(self, number: int, measured_bps: float = math.nan) -> float | None:
        """Return what a link can carry: its rate, or that of its qdisc's shaper if that is less.

        Where changes set the rate it is the mean over the measured part. With a trace, and where the plan has no rate,
        it is `measured_bps`, which an engine has computed for that part; without it, the mean of the trace.
        """
        link = self.links[number] if number < len(self.links) else PartialLink()
        rate_bps = self._mean_rate_bps(number, link.rate_bps)
        if (link.trace is not None or rate_bps is None) and not math.isnan(measured_bps):
            rate_bps = measured_bps
        if link.queue is None or link.queue.discipline not in SHAPERS:
            return rate_bps
        buckets = 1
        if link.queue.parameters.get("per_flow"):
            paths = [flow.forward.hops for flow in self.flows if flow.forward]
            buckets = sum(any(hop.link == number for hop in hops) for hops in paths)
        shaped_bps = buckets * float(link.queue.parameters.get(SHAPERS[link.queue.discipline]) or 0.0)
        rates = [rate for rate in (shaped_bps, rate_bps) if rate]
        return min(rates, default=None)

    def _mean_rate_bps(self, number: int, rate_bps: float | None) -> float | None:
        """Return the mean over the measured part of a rate that changes."""
        changes = [change for change in self.changes if change.link == number and change.rate_bps is not None]
        if not changes or rate_bps is None or self.duration_s is None:
            return rate_bps
        begun_s, bits = self.warmup_s, 0.0
        for change in sorted(changes, key=lambda change: change.at_s):
            until_s = min(max(change.at_s, begun_s), self.duration_s)
            bits, begun_s, rate_bps = bits + rate_bps * (until_s - begun_s), until_s, change.rate_bps or 0.0
        return (bits + rate_bps * (self.duration_s - begun_s)) / (self.duration_s - self.warmup_s)
