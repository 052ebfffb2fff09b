"""Traffic of a plan for another simulator: every TCP connection and UDP source, with what is drawn for it.

The draws are those of the packet engine (`_core.drawn`), so flows begin at the same times and transfers have the same
sizes. Flows are numbered as there: those of the plan, its UDP sources, the generated transfers. In a network of hosts
and switches each takes the ways that the packet engine's switches choose for it, link by link.

Used by the engines `ns2` and `ns3`, and by the exporters to both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from ackclock import _core
from ackclock.plan import DatagramPlan, EndsPlan, HopPlan, HostsPlan, PathPlan, Plan, TrafficPlan

#: Tables of `_core.drawn`.
Drawn: TypeAlias = Mapping[str, Mapping[str, Any]]

#: Value that means "no gate" in the drawn traffic.
NO_GATE = 2**32 - 1

#: The routing of which a flow has one way there and one back, from its first packet to its last.
KEPT_WAYS = ("single", "ecmp", "weighted")

#: Kinds of UDP sources whose datagrams leave at times that are known before a run.
SUPPORTED_TIMES = ("constant", "bursts", "on_off")


@dataclass(frozen=True, slots=True)
class Connection:
    """A TCP connection that carries data one way; one of those that are `generated`, or of the plan's flows.

    It begins at `start_s`, or when the gate `waits` opens; its end is one of those that the gate `completes` awaits.
    `ends` are the plan's nodes, where it has some.
    """

    number: int
    group: int
    start_s: float | None
    stop_s: float | None
    size_bytes: int | None
    forward: PathPlan
    reverse: PathPlan
    base_rtt_s: float
    generated: bool = False
    waits: int | None = None
    completes: int | None = None
    ends: EndsPlan | None = None


@dataclass(frozen=True, slots=True)
class Stream:
    """A UDP source: `periods` from one datagram to after another, between which they leave at a constant rate."""

    number: int
    group: int
    packet_bytes: int
    per_s: float
    departures_s: np.ndarray[Any, np.dtype[np.float64]]
    forward: PathPlan
    reverse: PathPlan
    base_rtt_s: float
    ends: EndsPlan | None = None

    @property
    def periods(self) -> Iterator[tuple[float, float]]:
        """Each from its first datagram to half a distance after its last, in seconds."""
        ends = np.flatnonzero(np.diff(self.departures_s, append=np.inf) > (1 + 1e-6) / self.per_s)
        begins = np.concatenate([[0], ends[:-1] + 1])
        firsts, lasts = (self.departures_s[at].tolist() for at in (begins[: ends.size], ends))
        return zip(firsts, (last + 0.5 / self.per_s for last in lasts), strict=True)


@dataclass(frozen=True, slots=True)
class Gate:
    """It opens `delay_s` after the last of so many transfers that it awaits is over, if that is before `stop_s`."""

    awaits: int
    delay_s: float
    stop_s: float


@dataclass(frozen=True, slots=True)
class PlannedTraffic:
    """All traffic of a run."""

    connections: Sequence[Connection]
    streams: Sequence[Stream]
    gates: Sequence[Gate]


#: The ways of a flow, there and back, and the sum of their delays.
Ways: TypeAlias = tuple[PathPlan, PathPlan, float]


def draw_traffic(plan: Plan, seed: int) -> PlannedTraffic:
    """The traffic of a run. The plan is one that `unsupported` finds nothing in."""
    drawn = _core.drawn(plan.engine_json, seed)
    gates = zip(*(drawn["gates"][name].tolist() for name in ("awaits", "delay_s", "stop_s")), strict=True)
    routed = _Routed(plan, drawn)
    connections = [*_flows(plan, drawn, routed), *_transfers(plan, drawn, routed)]
    return PlannedTraffic(connections, [*_streams(plan, drawn, routed)], [Gate(*row) for row in gates])


class _Routed:
    """The ways of flows between hosts, which the packet engine's switches choose."""

    def __init__(self, plan: Plan, drawn: Drawn) -> None:
        self._links, self._ways = plan.links, drawn["ways"]
        self._known: dict[bytes, tuple[PathPlan, float]] = {}

    def of(self, number: int) -> Ways:
        """The ways of the flow of this number, link by link: each link's own delay is behind its queue."""
        (there, there_s), (back, back_s) = (self._way(self._ways[name][number]) for name in ("forward", "reverse"))
        return there, back, there_s + back_s

    def _way(self, links: np.ndarray[Any, np.dtype[np.uint64]]) -> tuple[PathPlan, float]:
        key = links.tobytes()
        if key not in self._known:
            hops = tuple(HopPlan(0.0, number) for number in links.tolist())
            self._known[key] = PathPlan(hops, 0.0), sum(self._links[hop.link].delay_s for hop in hops)
        return self._known[key]


def _flows(plan: Plan, drawn: Drawn, routed: _Routed) -> Iterator[Connection]:
    for number, (flow, start_s) in enumerate(zip(plan.flows, drawn["flows"]["start_s"].tolist(), strict=True)):
        ways = routed.of(number) if flow.ends else (flow.forward, flow.reverse, flow.base_rtt_s)
        yield Connection(number, flow.group, start_s, flow.stop_s, flow.size_bytes, *ways, ends=flow.ends)


def _streams(plan: Plan, drawn: Drawn, routed: _Routed) -> Iterator[Stream]:
    departures = drawn["datagrams"]["departures_s"]
    for number, (source, times_s) in enumerate(zip(plan.datagrams, departures, strict=True), len(plan.flows)):
        size, per_s = source.payload_bytes + source.header_bytes, float(source.source.get("per_s", 1.0))
        ways = routed.of(number) if source.ends else (source.forward, source.reverse, source.base_rtt_s)
        yield Stream(number, source.group, size, per_s, times_s, *ways, source.ends)


def _transfers(plan: Plan, drawn: Drawn, routed: _Routed) -> Iterator[Connection]:
    names = ("traffic", "start_s", "size_bytes", "waits", "completes", "path", "source", "destination")
    rows = zip(*(drawn["transfers"][name].tolist() for name in names), strict=True)
    first = len(plan.flows) + len(plan.datagrams)
    for number, (traffic, start_s, size_bytes, waits, completes, *where) in enumerate(rows, first):
        of = plan.traffic[traffic]
        ways, ends = _taken(of, number, where, routed)
        yield Connection(
            number, of.group, None if waits != NO_GATE else start_s, None, size_bytes or None, *ways,
            True, _gate(waits), _gate(completes), ends,
        )  # fmt: skip


def _taken(of: TrafficPlan, number: int, where: Sequence[int], routed: _Routed) -> tuple[Ways, EndsPlan | None]:
    """The ways of a transfer, and the nodes between which it goes: one of the traffic's pairs, or routed."""
    path, source, destination = where
    if isinstance(of.population, HostsPlan):
        return routed.of(number), EndsPlan(source, destination)
    pair = of.population.paths[path]
    return (pair.forward, pair.reverse, pair.base_rtt_s), None


def _gate(number: int) -> int | None:
    return None if number == NO_GATE else number


def ways(plan: Plan) -> Iterator[tuple[PathPlan, PathPlan]]:
    """The ways that data may take, there and back; of what is routed none, since a run's seed chooses them."""
    yield from ((flow.forward, flow.reverse) for flow in plan.flows if not flow.ends)
    yield from ((source.forward, source.reverse) for source in plan.datagrams if not source.ends)
    populations = [traffic.population for traffic in plan.traffic]
    pairs = [pair for of in populations if not isinstance(of, HostsPlan) for pair in of.paths]
    yield from ((pair.forward, pair.reverse) for pair in pairs)


def is_stochastic(plan: Plan) -> bool:
    """Return True if any of the traffic is drawn."""
    jitter = any(flow.start_jitter_s for flow in plan.flows)
    hashed = bool(plan.nodes) and plan.routing != "single"
    return jitter or hashed or bool(plan.traffic) or any(source.source["kind"] == "on_off" for source in plan.datagrams)


def unsupported(plan: Plan) -> Iterator[str]:
    """Yield what of a plan's traffic no external simulator supports."""
    if plan.nodes and plan.routing not in KEPT_WAYS:
        yield f'routing = "{plan.routing}"'
    for traffic in plan.traffic:
        yield from _of_traffic(traffic)
    for source in plan.datagrams:
        yield from _of_source(source)


def _of_traffic(traffic: TrafficPlan) -> Iterator[str]:
    found = {
        "generated traffic with requests": traffic.request_bytes is not None,
        "generated traffic of slow applications": traffic.application_rate_bps is not None,
        "generated traffic with a priority": traffic.priority != 0,
    }
    return (name for name, there in found.items() if there)


def _of_source(source: DatagramPlan) -> Iterator[str]:
    if source.source["kind"] == "adaptive":
        yield "UDP at a rate that follows the delay"
    if source.priority:
        yield "UDP with a priority"


def unsupported_losses(plan: Plan) -> Iterator[str]:
    """Yield the random losses that no external simulator supports. They drop each packet with the same probability."""
    kinds = {link.loss["kind"] for link in plan.links if link.loss}
    if "every" in kinds:
        yield "loss of every n-th packet of a flow"
    if "by_kind" in kinds:
        yield "a loss of SYNs of its own"
