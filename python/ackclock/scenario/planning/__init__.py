"""From a scenario to a plan: defaults filled in from the specs, values spread over the flows, `bdp` resolved."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from ackclock import repr_format, stacks
from ackclock.errors import InputError, Problem, ScenarioError
from ackclock.input import arguments
from ackclock.input.arguments import checked, optional
from ackclock.input.fields import Loc
from ackclock.input.source import Source, named, source_text
from ackclock.plan import (
    UDP_HEADER_BYTES,
    DatagramPlan,
    FlowPlan,
    GroupPlan,
    LinkPlan,
    Plan,
    RecordPlan,
    TrafficPlan,
)
from ackclock.scenario import points, scenario
from ackclock.scenario.options import OPTIONS
from ackclock.scenario.overrides import rewritten, swept, without_file
from ackclock.scenario.planning.changes import change_plans, vantages
from ackclock.scenario.planning.flows import datagram_group, flow_plans, group_plan, quic_plans, spread
from ackclock.scenario.planning.sizes import Sizes
from ackclock.scenario.scenario import Scenario
from ackclock.scenario.topology.network import Drawing, Hosts, Link, Way
from ackclock.scenario.traces import OPPORTUNITY_BYTES, Traced, with_traces
from ackclock.scenario.traffic.flows import Transfers

#: The option that says where a testbed is, and the kernel that is its hosts'.
TESTBED, HOSTS = "testbed", "hosts"

#: Up to so many links, the queues of all are sampled unless the scenario says otherwise.
FEW_LINKS = 16


#: A sweep is given up after so many different mistakes.
MAX_PROBLEMS = 20

#: Limit of a sweep's points that are all checked before it begins, which takes about two seconds. Of more points a
#: sample is checked first: about `SAMPLED` points at random, and as many with each value of each key.
MAX_CHECKED, SAMPLED = 3_000, 500

_NUMBER = arguments.integer(0, points.MAX_POINTS - 1)


@dataclass(frozen=True)
class Point:
    """One point of a sweep: its number from 0, what it has at the swept keys (as written), and its plan."""

    number: int
    values: Mapping[str, Any]
    plan: Plan


@dataclass(frozen=True)
class Loaded:
    """A checked scenario and its text. One with a sweep has a scenario for each of its points, and none of its own.

    `kernel` replaces the scenario's `[linux] kernel` in every plan; `ssh_config` is the file by which ssh
    reaches the hosts of a testbed, instead of the user's own; `module` is the user's congestion control, and `stacks`
    are the user's transport stacks.
    """

    scenario: Scenario | None
    source: Source
    sweep: points.Sweep | None = None
    kernel: str | None = None
    ssh_config: str | None = None
    module: Mapping[str, str] | None = None
    stacks: Sequence[Mapping[str, str]] = ()

    def __repr__(self) -> str:
        what = repr_format.counted(self.count, "point") if self.sweep else "one scenario, no sweep"
        swept = f": {repr_format.listed(axis.key for axis in self.sweep.axes)}" if self.sweep else ""
        return repr_format.lines(self._title, what + swept, ".plan() completes it, .source.text is its file")

    def _repr_html_(self) -> str:
        return repr_format.text(self._title, self.source.text)

    @property
    def _title(self) -> str:
        name = self.scenario.name if self.scenario else self.sweep.base.get("name") if self.sweep else None
        return f'Scenario "{name or _path(self.source.name).stem}" ({self.source.name})'

    def plan(self) -> Plan:
        """The plan. Raises `ScenarioError` for values that do not fit together, and for a scenario with a sweep."""
        if self.scenario is None:
            raise ScenarioError([_is_a_sweep(self)])
        return self._planned(self.scenario, self.source)

    @checked(kernel=optional(arguments.WORD), ssh_config=optional(arguments.WORD))
    def on(self, kernel: str | None, ssh_config: str | None = None) -> Loaded:
        """The same for another kernel of the engine linux: "guest", "live", a version or a path; None: as it says.

        `ssh_config` is a configuration of ssh's for the hosts of a testbed; None: the user's own.
        """
        return replace(self, kernel=kernel, ssh_config=ssh_config)

    def with_(self, values: Mapping[str, Any], option: str = "with_") -> Loaded:
        """The same with other values at some keys: `{"network.rate": "1Gbit", "flows[0].count": 50}`.

        Values are written as in a file. `option` is what messages call them. Raises `InputError` for keys that have no
        place in the scenario or are swept, and `ScenarioError` with every mistake in the new one.
        """
        if not isinstance(values, Mapping):
            arguments.wrong_type("values", values, 'keys and values, such as {"network.rate": "1Gbit"}')
        if not values:
            return self
        made = loaded(rewritten(self.source, {str(key): value for key, value in values.items()}, option))
        return self.configured(made)

    def varied(self, key: str, values: Sequence[Any], option: str = "varied") -> Loaded:
        """The same with a sweep of one key over values, written as in a file; `option` is what messages call them.

        Raises `InputError` if there is a sweep, `ScenarioError` for a key or values that no sweep can have.
        """
        return self.configured(loaded(swept(self.source, key, values, option)))

    def configured(self, made: Loaded) -> Loaded:
        """Another scenario with what was given beside this one: kernel, ssh configuration, module and stacks."""
        given = {"kernel": self.kernel, "ssh_config": self.ssh_config, "module": self.module, "stacks": self.stacks}
        return replace(made, **given)  # type: ignore[arg-type]

    @checked(chosen=arguments.TEXTS_BY_KEY)
    def only(self, chosen: Mapping[str, Sequence[str]]) -> Loaded:
        """The sweep's points that have some of the values only: `{"network.queue.limit": ["1bdp"]}`.

        Raises `InputError` for keys and values that are not swept.
        """
        if not chosen:
            return self
        if self.sweep is None:
            raise InputError(f"{self.source.name}: found no table [sweep]; expected one with {', '.join(chosen)}")
        return replace(self, sweep=self.sweep.only(chosen))

    @property
    def count(self) -> int:
        """The number of points; 1 without a sweep."""
        return 1 if self.sweep is None else self.sweep.count

    def sample(self) -> list[int]:
        """Return the numbers of the points that are checked before a sweep begins: all, or a sample of very many.

        The sample has values of each axis with the others' first values, the last point, and random points.
        """
        if self.sweep is None or self.count <= MAX_CHECKED:
            return list(range(self.count))
        numbers, stride = {self.count - 1}, self.count
        for axis in self.sweep.axes:
            stride //= len(axis.values)
            step = math.ceil(len(axis.values) * len(self.sweep.axes) / SAMPLED)
            numbers.update(stride * place for place in range(0, len(axis.values), step))
        return sorted(numbers.union(random.Random(0).sample(range(self.count), min(SAMPLED, self.count))))

    def points(self, numbers: Sequence[int] | None = None) -> Iterator[Point]:
        """Every point of the sweep, or those with some numbers; of a scenario without one, the only point.

        Raises `ScenarioError` after the last point, with the mistakes of all points, each in its place.
        """
        if self.sweep is None:
            yield Point(0, {}, self.plan())
            return
        mistakes: dict[Problem, list[int]] = {}
        chosen = range(self.sweep.count) if numbers is None else numbers
        for number in chosen:
            try:
                planned = self.point(number)
            except ScenarioError as error:
                for problem in error.problems:
                    mistakes.setdefault(problem, []).append(number)
                if len(mistakes) >= MAX_PROBLEMS:
                    break
            else:
                yield planned
        if mistakes:
            raise ScenarioError(_of_points(mistakes, self.sweep, len(chosen)))

    @checked(number=_NUMBER)
    def point(self, number: int) -> Point:
        """One point of the sweep. Raises `ScenarioError` with its mistakes."""
        if number >= (self.sweep.count if self.sweep else 1):
            arguments.wrong_value("number", number, f"the number of one of {self.sweep.count if self.sweep else 1}")
        if self.sweep is None:
            return Point(0, {}, self.plan())
        content, source = self.sweep.content(number)
        return Point(number, self.sweep.values(number), self._planned(scenario.checked(content, source), source))

    def _planned(self, given: Scenario, source: Source) -> Plan:
        plan = _plan(given, source)
        options = dict(plan.options)
        if self.kernel is not None:
            options["linux"] = {**options["linux"], "kernel": self.kernel}
        if self.module is not None:
            engine = "packet" if self.module["file"].endswith(".py") else "linux"
            options[engine] = {**options.get(engine, {}), "module": dict(self.module)}
        if self.stacks:
            options["packet"] = {**options.get("packet", {}), "stacks": [dict(stack) for stack in self.stacks]}
        if self.ssh_config is not None and TESTBED in options:
            options[TESTBED] = {**options[TESTBED], "ssh_config": self.ssh_config}
        return plan if options == plan.options else replace(plan, options=options)


@checked(path=arguments.PATH)
def load(path: str | Path) -> Loaded:
    """Reads and checks a scenario file, `-` for standard input. Raises `ScenarioError` with every mistake in it.

    With a sweep, only the table `[sweep]` is checked; `Loaded.points` checks the points.
    """
    return loaded(source(path))


def source(path: str | Path) -> Source:
    """The text of a scenario file, `-` for standard input, with the traces that it names. Raises `ScenarioError`."""
    return with_traces(Source(named(path), source_text(path)), Path() if str(path) == "-" else Path(path).parent)


@checked(text=arguments.TEXT, name=arguments.TEXT)
def loads(text: str, name: str = "scenario") -> Loaded:
    """Load TOML text as `load` does; `name` is the file's name in messages and results. Traces must be in the text."""
    return loaded(Source(name, text))


def mapped(content: Mapping[str, Any], name: str = "scenario") -> Loaded:
    """Load a scenario from tables of Python values: `{"duration": "60s", "network": {…}, …}`.

    `name` is what messages and results call it. Raises `TypeError` for values that a scenario file cannot hold.
    """
    return loaded(without_file(content, name))


def loaded(source: Source) -> Loaded:
    """Check a scenario's source as `load` does."""
    content = source.toml()
    sweep = points.sweep(content, source)
    return Loaded(None if sweep else scenario.checked(content, source), source, sweep)


def _is_a_sweep(loaded: Loaded) -> Problem:
    name, count = loaded.source.name, loaded.sweep.count if loaded.sweep else 0
    return loaded.source.problem(("sweep",), f"a sweep of {count} points", f"one scenario; run `ackclock sweep {name}`")


def _of_points(mistakes: Mapping[Problem, list[int]], sweep: points.Sweep, of: int) -> Iterator[Problem]:
    """Mistakes in file order; one that is not in a swept value and not in every point says where it is made."""
    for problem, numbers in sorted(mistakes.items(), key=lambda item: item[0].line or 0):
        if problem.key.startswith("sweep.") or len(numbers) == of > (sweep.count > 1):
            yield problem
        else:
            where = points.described(sweep.values(numbers[0]))
            yield replace(problem, expected=f"{problem.expected} (where {where})")


@lru_cache(maxsize=16)
def _path(name: str) -> Path:
    """Return the path of a scenario's file, one object for all points."""
    return Path(name)


def _seeds(given: Scenario) -> tuple[int, ...]:
    return tuple(given.seeds) if given.seeds is not None else tuple(range(1, (given.repeats or 1) + 1))


def _plan(given: Scenario, source: Source) -> Plan:
    groups = tuple(_groups(given, source))
    drawing = given.network.draw(given.flows, given.traffic)
    mean_rtt_s = _mean_rtt_s(drawing, len(given.flows))
    drawing = _spread(given, drawing, source)
    packet_bytes = _packet_bytes(given, groups)
    flows, connections = tuple(_flows(given, groups, drawing)), tuple(_connections(given, drawing))
    sizes = Sizes(mean_rtt_s, packet_bytes, source, (*flows, *connections))
    traffic, datagrams = _traffic(given, groups, drawing, source)
    return Plan(
        name=given.name or _path(source.name).stem,
        duration_s=given.duration,
        warmup_s=given.warmup,
        seeds=_seeds(given),
        mean_base_rtt_s=mean_rtt_s,
        packet_bytes=packet_bytes,
        bottleneck=next((number for number, link in enumerate(drawing.links) if link.bottleneck), 0),
        load=drawing.load,
        nodes=drawing.nodes,
        links=_links(drawing.links, sizes, int(given.network.frame_overhead)),
        routing=drawing.routing,
        flowlet_gap_s=drawing.flowlet_gap_s,
        changes=change_plans(given.network.changes, drawing, given.duration, source),
        groups=groups,
        flows=flows,
        traffic=traffic,
        datagrams=(*connections, *datagrams),
        record=_record(given, drawing, source),
        epochs=given.record.epochs,
        options=_options(given, drawing),
        scenario_name=_path(source.name).name,
        scenario_text=source.text,
    )


def _spread(given: Scenario, drawing: Drawing, source: Source) -> Drawing:
    """Each source's own RTT; the bandwidth–delay product is that of the mean without it."""
    tables = [*_listed("flows", given.flows), *_listed("traffic", given.traffic)]
    return spread(drawing, tables, _seeds(given)[0], source)


def _options(given: Scenario, drawing: Drawing) -> dict[str, Any]:
    """Return each engine's options. A testbed is one more, and its kernels are the hosts' unless another is named."""
    options: dict[str, Any] = {name: getattr(given, name).planned() for name in OPTIONS}
    if drawing.testbed is None:
        return options
    kernel = given.linux.kernel if "kernel" in given.linux.model_fields_set else HOSTS
    return {
        **options,
        "linux": {**options["linux"], "kernel": kernel},
        TESTBED: {**drawing.testbed, "ssh_config": None},
    }


def _groups(given: Scenario, source: Source) -> Iterator[GroupPlan]:
    """First those of the flows, then those of the traffic."""
    for place, table in [*_listed("flows", given.flows), *_listed("traffic", given.traffic)]:
        if isinstance(table, Transfers):
            yield group_plan(table, given.tcp, place, source)
        else:
            yield datagram_group(table)


def _listed(key: str, tables: Sequence[Any]) -> Iterator[tuple[Loc, Any]]:
    return (((key, number), table) for number, table in enumerate(tables))


def _packet_bytes(given: Scenario, groups: Iterable[GroupPlan]) -> int:
    """The largest wire size of a full data packet; of a datagram if there is no TCP."""
    segments = [group.tcp.packet_bytes for group in groups if group.tcp]
    segments += [int(flows.mtu) for flows in given.flows if flows.transport == "quic"]
    datagrams = [int(table.packet) + UDP_HEADER_BYTES for table in given.traffic if not isinstance(table, Transfers)]
    return max(segments or datagrams) + int(given.network.frame_overhead)


def _mean_rtt_s(drawing: Drawing, flows: int) -> float:
    """Over all sources of the flows; without flows over those of the traffic. Of what is drawn, the longest way."""
    counts_s = [_rtts_s(where) for where in drawing.places[:flows] or drawing.places]
    return math.fsum(sum_s for _, sum_s in counts_s) / sum(count for count, _ in counts_s)


def _rtts_s(where: tuple[Way, ...] | Hosts) -> tuple[int, float]:
    """Return the number of flows and the sum of their base RTTs."""
    if isinstance(where, Hosts):
        return len(where.sources), len(where.sources) * where.longest_rtt_s
    return len(where), math.fsum(way.base_rtt_s for way in where)


def _flows(given: Scenario, groups: Sequence[GroupPlan], drawing: Drawing) -> Iterator[FlowPlan]:
    for number, flows in enumerate(given.flows):
        where, tcp = drawing.places[number], groups[number].tcp
        if tcp and flows.transport == "tcp" and not isinstance(where, Hosts):
            yield from flow_plans(flows, number, tcp, where)


def _connections(given: Scenario, drawing: Drawing) -> Iterator[DatagramPlan]:
    """Return the QUIC connections of the flows."""
    for number, flows in enumerate(given.flows):
        where = drawing.places[number]
        if flows.transport == "quic" and not isinstance(where, Hosts):
            yield from quic_plans(flows, number, where, qlog=given.record.qlog)


def _traffic(
    given: Scenario, groups: Sequence[GroupPlan], drawing: Drawing, source: Source
) -> tuple[tuple[TrafficPlan, ...], tuple[DatagramPlan, ...]]:
    """Return generated traffic and datagrams. Without any, the module that plans them is not imported."""
    if not given.traffic and not any(isinstance(where, Hosts) for where in drawing.places):
        return (), ()
    from ackclock.scenario.planning import traffic

    placed = [*traffic.placed(given, drawing, source)]
    return tuple(traffic.transfers(given, groups, drawing, placed)), tuple(traffic.datagrams(placed))


def _record(given: Scenario, drawing: Drawing, source: Source) -> RecordPlan:
    record = given.record
    if record.qlog and not any(flows.transport == "quic" and flows.is_built_in for flows in given.flows):
        expected = f"false: {stacks.BUILT_IN} writes logs, and no flow has it"
        raise ScenarioError([source.problem(("record", "qlog"), "true", expected)])
    all_links = len(drawing.links) <= FEW_LINKS if record.links is None else record.links == "all"
    pcap = vantages(record.pcap, drawing, source)
    asked = (record.delays, record.cubic_state, record.paths)
    return RecordPlan(record.interval, record.packets, pcap, record.traffic, all_links, *asked)


def _links(drawn: Iterable[Link], sizes: Sizes, overhead_bytes: int) -> tuple[LinkPlan, ...]:
    return tuple(
        LinkPlan(
            name=link.name,
            ends=link.ends,
            rate_bps=_mean_bps(link.rate_bps, overhead_bytes),
            delay_s=link.delay_s,
            weight=link.weight,
            burst_bytes=link.burst_bytes,
            frame_overhead_bytes=overhead_bytes,
            queue=sizes.queue(link.queue, number, _mean_bps(link.rate_bps, overhead_bytes), link.place),
            loss=link.loss,
            bottleneck=link.bottleneck,
            trace=link.rate_bps.trace if isinstance(link.rate_bps, Traced) else None,
            medium=link.medium,
        )
        for number, link in enumerate(drawn)
    )


def _mean_bps(rate_bps: float, overhead_bytes: int) -> float:
    """The rate; of opportunities the mean of wire bytes: each carries a packet's frame as well."""
    if isinstance(rate_bps, Traced) and rate_bps.trace.has_opportunities:
        return float(rate_bps) * (OPPORTUNITY_BYTES + overhead_bytes) / OPPORTUNITY_BYTES
    return float(rate_bps)
