"""The plans of `[[traffic]]`: generated transfers, and UDP."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ackclock.errors import ScenarioError
from ackclock.input.fields import Loc
from ackclock.input.source import Source
from ackclock.plan import (
    TIMESTAMPS_BYTES,
    DatagramPlan,
    GroupPlan,
    HostsPlan,
    PathPairPlan,
    PathPairsPlan,
    TcpPlan,
    TrafficPlan,
)
from ackclock.scenario.planning.flows import PICOSECOND_DIGITS, transfer_bytes
from ackclock.scenario.planning.sizes import congestion_plan
from ackclock.scenario.scenario import Scenario
from ackclock.scenario.topology.network import Drawing, Hosts, Way
from ackclock.scenario.topology.topology import Topology
from ackclock.scenario.traffic import AnyTraffic
from ackclock.scenario.traffic.datagrams import Datagrams
from ackclock.scenario.traffic.flows import Flows
from ackclock.scenario.traffic.generated import Generated, Poisson, Web
from ackclock.scenario.traffic.moments import Fixed, Law, mean_segments
from ackclock.scenario.traffic.sizes import AnySize

#: Most transfers that the engines draw for one `[[traffic]]`.
MAX_TRANSFERS = 10_000_000


@dataclass(frozen=True)
class Place:
    """One `[[traffic]]`: where it stands in the file, its number among the groups, and where its data goes."""

    source: Source
    loc: Loc
    group: int
    where: tuple[Way, ...] | Hosts

    def error(self, key: Loc, found: str, expected: str) -> ScenarioError:
        """A mistake at one of its keys."""
        return ScenarioError([self.source.problem((*self.loc, *key), found, expected)])


def placed(given: Scenario, drawing: Drawing, source: Source) -> Iterator[tuple[AnyTraffic, Place]]:
    """Each `[[traffic]]` and where it stands."""
    first = len(given.flows)
    for number, table in enumerate(given.traffic):
        yield table, Place(source, ("traffic", number), first + number, drawing.places[first + number])


def transfers(
    given: Scenario, groups: Sequence[GroupPlan], drawing: Drawing, traffic: Iterable[tuple[AnyTraffic, Place]]
) -> Iterator[TrafficPlan]:
    """Flows whose ends are drawn, then generated transfers."""
    for number, flows in enumerate(given.flows):
        where, tcp = drawing.places[number], groups[number].tcp
        if tcp and flows.transport == "tcp" and isinstance(where, Hosts):
            yield from _drawn_plans(flows, number, tcp, where)
    for table, place in traffic:
        tcp = groups[place.group].tcp
        if tcp and not isinstance(table, Datagrams):
            yield _generated_plan(table, tcp, given.network, given.duration, place)


def datagrams(traffic: Iterable[tuple[AnyTraffic, Place]]) -> Iterator[DatagramPlan]:
    """UDP sources."""
    for table, place in traffic:
        if isinstance(table, Datagrams):
            yield from _datagram_plans(table, place)


def _generated_plan(
    traffic: Generated, tcp: TcpPlan, network: Topology, duration_s: float, place: Place
) -> TrafficPlan:
    """Transfers that are generated from the seed."""
    law = _law("size", traffic.size, tcp, place)
    arrivals = dict(traffic.arrivals(_per_s(traffic, law, tcp, network, place)))
    if isinstance(traffic, Web) and traffic.main is not None:
        arrivals["size_main"] = _law("main", traffic.main, tcp, place).planned()
    _check_number(traffic, arrivals, duration_s, place)
    return TrafficPlan(
        group=place.group,
        priority=traffic.priority,
        request_bytes=None if traffic.request is None else int(traffic.request),
        application_rate_bps=traffic.application_rate,
        population=_population(place.where),
        workload=_workload(traffic.start, traffic.stop, arrivals, law),
    )


def _drawn_plans(flows: Flows, group: int, tcp: TcpPlan, hosts: Hosts) -> Iterator[TrafficPlan]:
    """Flows whose ends are drawn from the seed: `count` draws, each a transfer of every source."""
    size_bytes = transfer_bytes(flows.size.at(0, 1), tcp) if flows.size else None
    plan = TrafficPlan(
        group=group,
        priority=flows.priority,
        request_bytes=None if flows.request is None else int(flows.request),
        application_rate_bps=flows.application_rate.at(0, 1) if flows.application_rate else None,
        population=_population(hosts),
        workload=_workload(
            flows.start.at,
            None,
            {"kind": "once", "jitter_s": flows.start.jitter},
            None if size_bytes is None else Fixed(size_bytes),
        ),
    )
    for _ in range(flows.count):
        yield plan


def _datagram_plans(traffic: Datagrams, place: Place) -> Iterator[DatagramPlan]:
    """A UDP source for each way."""
    assert not isinstance(place.where, Hosts)
    source = traffic.source()
    if (congestion := source.get("congestion")) is not None:
        loc = (*place.loc, "congestion")
        congestion_plan(congestion["kind"], congestion["parameters"], loc, place.source)
    for number, way in enumerate(place.where):
        yield DatagramPlan(
            group=place.group,
            start_s=round(traffic.start.at + number * traffic.start.every, PICOSECOND_DIGITS),
            stop_s=traffic.stop,
            priority=traffic.priority,
            ends=way.ends,
            forward=way.forward,
            reverse=way.reverse,
            payload_bytes=int(traffic.packet),
            header_bytes=traffic.header_bytes,
            source=source,
            base_rtt_s=way.base_rtt_s,
        )


def wire_bytes(law: Law, tcp: TcpPlan, overhead_bytes: int) -> float:
    """Mean wire bytes of a transfer's data: its payload, and the headers of each segment.

    What opens and closes a connection, ACKs and what is sent again are not counted.
    """
    headers_bytes = tcp.header_bytes + TIMESTAMPS_BYTES * tcp.timestamps + overhead_bytes
    return law.mean_bytes + headers_bytes * mean_segments(law, tcp.mss_bytes)


def _check_number(traffic: Generated, arrivals: Mapping[str, Any], duration_s: float, place: Place) -> None:
    span_s = min(traffic.stop or duration_s, duration_s) - traffic.start
    pairs = len(place.where) if not isinstance(place.where, Hosts) else _pairs(place.where)
    if (transfers := traffic.transfers_of(arrivals, pairs, span_s)) > MAX_TRANSFERS:
        raise place.error((), f"about {transfers:.2g} transfers", f"at most {MAX_TRANSFERS:.0e} in a run")


def _pairs(hosts: Hosts) -> int:
    if hosts.pairing == "all":
        return len(hosts.sources) * len(hosts.destinations)
    return len(hosts.sources)


def _per_s(traffic: Generated, law: Law, tcp: TcpPlan, network: Topology, place: Place) -> float | None:
    if not isinstance(traffic, Poisson) or traffic.load is None:
        return None
    if not math.isfinite(law.mean_bytes):
        raise place.error(("load",), "sizes with an infinite mean", 'a rate = "…", or a max of the sizes')
    bits = 8 * wire_bytes(law, tcp, int(network.frame_overhead))
    return traffic.load * network.capacity_bps(traffic) / bits


def _law(key: str, size: AnySize, tcp: TcpPlan, place: Place) -> Law:
    try:
        return size.law(tcp.mss_bytes)
    except ValueError as error:
        raise place.error((key, "max"), str(size.max), str(error)) from None  # type: ignore[union-attr]


def _workload(start_s: float, stop_s: float | None, arrivals: Mapping[str, Any], size: Law | None) -> Mapping[str, Any]:
    return {"start_s": start_s, "stop_s": stop_s, "arrivals": arrivals, "size": size.planned() if size else None}


def _population(where: tuple[Way, ...] | Hosts) -> PathPairsPlan | HostsPlan:
    if isinstance(where, Hosts):
        return HostsPlan(where.sources, where.destinations, where.pairing)
    return PathPairsPlan(tuple(PathPairPlan(way.forward, way.reverse, way.base_rtt_s) for way in where))
