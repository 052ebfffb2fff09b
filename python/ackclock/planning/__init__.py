"""From a scenario to a plan: defaults filled in from the cards, values spread over the flows, `bdp` resolved."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ackclock import scenario
from ackclock.errors import ScenarioError
from ackclock.fields import nearest, shown
from ackclock.plan import ChangePlan, FlowPlan, LinkPlan, Plan, RecordPlan, TcpPlan
from ackclock.planning.flows import flow_plans
from ackclock.planning.groups import group_plan
from ackclock.planning.sizes import Sizes
from ackclock.scenario import Scenario
from ackclock.source import Source
from ackclock.topology.parts import Drawing, Link


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
    groups = tuple(group_plan(flows, given.tcp, ("flows", number), source) for number, flows in enumerate(given.flows))
    tcps = [group.tcp for group in groups if group.tcp]
    drawing = given.network.draw(given.flows, ())
    mean_rtt_s = _mean_rtt_s(drawing)
    overhead_bytes = int(given.network.frame_overhead)
    packet_bytes = max(tcp.packet_bytes for tcp in tcps) + overhead_bytes
    sizes = Sizes(mean_rtt_s, packet_bytes, source)
    return Plan(
        name=given.name or Path(source.name).stem,
        duration_s=given.duration,
        warmup_s=given.warmup,
        seeds=_seeds(given),
        mean_base_rtt_s=mean_rtt_s,
        packet_bytes=packet_bytes,
        bottleneck=next(number for number, link in enumerate(drawing.links) if link.bottleneck),
        nodes=drawing.nodes,
        links=_links(drawing.links, sizes, overhead_bytes),
        routing=drawing.routing,
        changes=_changes(given, drawing.links, source),
        groups=groups,
        flows=tuple(_flows(given, tcps, drawing)),
        record=RecordPlan(given.record.interval, given.record.packets, given.record.pcap),
        scenario_name=Path(source.name).name,
        scenario_text=source.text,
    )


def _mean_rtt_s(drawing: Drawing) -> float:
    """Of all sources of the flows."""
    rtts_s = [way.base_rtt_s for ways in drawing.ways for way in ways]
    return math.fsum(rtts_s) / len(rtts_s)


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


def _flows(given: Scenario, tcps: Sequence[TcpPlan], drawing: Drawing) -> Iterator[FlowPlan]:
    for group, (flows, tcp) in enumerate(zip(given.flows, tcps, strict=True)):
        yield from flow_plans(flows, group, tcp, drawing.ways[group])


def _changes(given: Scenario, links: Sequence[Link], source: Source) -> tuple[ChangePlan, ...]:
    """In order of time. Raises `ScenarioError` for links that are not there."""
    numbers = {link.name: number for number, link in enumerate(links)}
    problems = [
        source.problem(("network", "changes", number, "link"), shown(change.link), nearest(change.link, tuple(numbers)))
        for number, change in enumerate(given.network.changes)
        if change.link not in numbers
    ]
    if problems:
        raise ScenarioError(problems)
    made = [
        ChangePlan(change.at, numbers[change.link], change.rate, change.delay, change.up)
        for change in given.network.changes
    ]
    return tuple(sorted(made, key=lambda change: change.at_s))
