"""From a scenario to a plan: defaults filled in from the cards, values spread over the flows, `bdp` resolved."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ackclock import scenario
from ackclock.plan import (
    UDP_HEADER_BYTES,
    FlowPlan,
    GroupPlan,
    LinkPlan,
    Plan,
    RecordPlan,
    TrafficPlan,
)
from ackclock.planning.changes import change_plans
from ackclock.planning.flows import flow_plans
from ackclock.planning.groups import group_plan
from ackclock.planning.sizes import Sizes
from ackclock.planning.traffic import Place, datagram_group, datagram_plans, drawn_plans, generated_plan
from ackclock.scenario import Scenario
from ackclock.source import Source
from ackclock.topology.parts import Drawing, Hosts, Link, Way
from ackclock.traffic import AnyTraffic
from ackclock.traffic.datagrams import Datagrams

#: Up to so many links, the queues of all are sampled unless the scenario says otherwise.
FEW_LINKS = 16


@dataclass(frozen=True)
class Loaded:
    """A checked scenario and its text."""

    scenario: Scenario
    source: Source

    def plan(self) -> Plan:
        """The plan. Raises `ScenarioError` for values that do not fit together."""
        return _plan(self.scenario, self.source)


def load(path: str | Path) -> Loaded:
    """Reads and checks a scenario file. Raises `ScenarioError` with every mistake in it."""
    return Loaded(*scenario.read(path))


def loads(text: str, name: str = "scenario") -> Loaded:
    """As `load`, from TOML text."""
    return Loaded(*scenario.parse(text, name))


def _seeds(given: Scenario) -> tuple[int, ...]:
    return tuple(given.seeds) if given.seeds is not None else tuple(range(1, (given.repeats or 1) + 1))


def _plan(given: Scenario, source: Source) -> Plan:
    groups = tuple(_groups(given, source))
    drawing = given.network.draw(given.flows, given.traffic)
    mean_rtt_s = _mean_rtt_s(drawing, len(given.flows))
    packet_bytes = _packet_bytes(given, groups)
    traffic = tuple(_placed_traffic(given, drawing, source))
    return Plan(
        name=given.name or Path(source.name).stem,
        duration_s=given.duration,
        warmup_s=given.warmup,
        seeds=_seeds(given),
        mean_base_rtt_s=mean_rtt_s,
        packet_bytes=packet_bytes,
        bottleneck=next((number for number, link in enumerate(drawing.links) if link.bottleneck), 0),
        load=drawing.load,
        nodes=drawing.nodes,
        links=_links(drawing.links, Sizes(mean_rtt_s, packet_bytes, source), int(given.network.frame_overhead)),
        routing=drawing.routing,
        changes=change_plans(given.network.changes, drawing, source),
        groups=groups,
        flows=tuple(_flows(given, groups, drawing)),
        traffic=tuple(_traffic(given, groups, drawing, traffic)),
        datagrams=tuple(
            plan for table, place in traffic if isinstance(table, Datagrams) for plan in datagram_plans(table, place)
        ),
        record=_record(given, drawing),
        scenario_name=Path(source.name).name,
        scenario_text=source.text,
    )


def _groups(given: Scenario, source: Source) -> Iterator[GroupPlan]:
    """First those of the flows, then those of the traffic."""
    for number, flows in enumerate(given.flows):
        yield group_plan(flows, given.tcp, ("flows", number), source)
    for number, traffic in enumerate(given.traffic):
        if isinstance(traffic, Datagrams):
            yield datagram_group(traffic)
        else:
            yield group_plan(traffic, given.tcp, ("traffic", number), source)


def _packet_bytes(given: Scenario, groups: Iterable[GroupPlan]) -> int:
    """The largest wire size of a full data packet; of a datagram if there is no TCP."""
    segments = [group.tcp.packet_bytes for group in groups if group.tcp]
    datagrams = [int(table.packet) + UDP_HEADER_BYTES for table in given.traffic if isinstance(table, Datagrams)]
    return max(segments or datagrams) + int(given.network.frame_overhead)


def _mean_rtt_s(drawing: Drawing, flows: int) -> float:
    """Over all sources of the flows; without flows over those of the traffic. Of what is drawn, the longest way."""
    counts_s = [_rtts_s(where) for where in drawing.places[:flows] or drawing.places]
    return math.fsum(sum_s for _, sum_s in counts_s) / sum(count for count, _ in counts_s)


def _rtts_s(where: tuple[Way, ...] | Hosts) -> tuple[int, float]:
    """How many, and the sum of their base RTTs."""
    if isinstance(where, Hosts):
        return len(where.sources), len(where.sources) * where.longest_rtt_s
    return len(where), math.fsum(way.base_rtt_s for way in where)


def _flows(given: Scenario, groups: Sequence[GroupPlan], drawing: Drawing) -> Iterator[FlowPlan]:
    for number, flows in enumerate(given.flows):
        where, tcp = drawing.places[number], groups[number].tcp
        if tcp and not isinstance(where, Hosts):
            yield from flow_plans(flows, number, tcp, where)


def _placed_traffic(given: Scenario, drawing: Drawing, source: Source) -> Iterator[tuple[AnyTraffic, Place]]:
    first = len(given.flows)
    for number, table in enumerate(given.traffic):
        yield table, Place(source, ("traffic", number), first + number, drawing.places[first + number])


def _traffic(
    given: Scenario, groups: Sequence[GroupPlan], drawing: Drawing, traffic: Iterable[tuple[AnyTraffic, Place]]
) -> Iterator[TrafficPlan]:
    """Flows whose ends are drawn, then generated transfers."""
    for number, flows in enumerate(given.flows):
        where, tcp = drawing.places[number], groups[number].tcp
        if tcp and isinstance(where, Hosts):
            yield from drawn_plans(flows, number, tcp, where)
    for table, place in traffic:
        tcp = groups[place.group].tcp
        if tcp and not isinstance(table, Datagrams):
            yield generated_plan(table, tcp, given.network, given.duration, place)


def _record(given: Scenario, drawing: Drawing) -> RecordPlan:
    record = given.record
    all_links = len(drawing.links) <= FEW_LINKS if record.links is None else record.links == "all"
    return RecordPlan(record.interval, record.packets, record.pcap, record.traffic, all_links)


def _links(drawn: Iterable[Link], sizes: Sizes, overhead_bytes: int) -> tuple[LinkPlan, ...]:
    return tuple(
        LinkPlan(
            name=link.name,
            ends=link.ends,
            rate_bps=link.rate_bps,
            delay_s=link.delay_s,
            weight=link.weight,
            burst_bytes=link.burst_bytes,
            frame_overhead_bytes=overhead_bytes,
            queue=sizes.queue(link.queue, link.rate_bps, link.place),
            loss=link.loss,
            bottleneck=link.bottleneck,
        )
        for link in drawn
    )
