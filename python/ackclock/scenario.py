"""The scenario: what the user wrote, checked.

A scenario is a TOML file of tables whose every quantity carries its unit. Reading one reports all mistakes at once,
each as one line with the file, the line, the key, what was found and what is expected. What was not written is left
open: defaults of algorithms and TCP stacks are on their cards and are filled in by `ackclock.plan`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    ValidationError,
    model_validator,
)
from pydantic_core import InitErrorDetails, core_schema

from ackclock import catalog, units
from ackclock.catalog.given import FromCard, Given
from ackclock.errors import ScenarioError
from ackclock.fields import Quantity, SizeQuantity, Spread, Spreadable, Table, fault, fault_at, faults, shown
from ackclock.source import Source, source_text

#: Most flows in a scenario, and most runs.
MOST_FLOWS = 1_000_000
MOST_RUNS = 10_000

#: Most samples of all flows in one run: tens of gigabytes.
MOST_SAMPLES = 1e9

TOPOLOGIES = ("dumbbell",)
DEFAULT_STACK = "linux"

MOMENT = Quantity(units.time_s, "0s", "720h")
RATE = Quantity(units.rate_bps, "1kbit", "10Tbit")
RTT = Quantity(units.time_s, "0.1us", "1h")
TRANSFER = SizeQuantity(units.size, (("B", 1, 1e15), ("p", 1, 1e12)))


def _one_line(text: str) -> str:
    """A name goes into tables, figures and terminals."""
    if not text.isprintable():
        raise fault(shown(text), "one line without control characters")
    return text


Duration: TypeAlias = Annotated[float, Quantity(units.time_s, "1ms", "720h")]
Moment: TypeAlias = Annotated[float, MOMENT]
Interval: TypeAlias = Annotated[float, Quantity(units.time_s, "1us", "1h")]
Rate: TypeAlias = Annotated[float, RATE]
Burst: TypeAlias = Annotated[float, Quantity(units.bytes_of, "0B", "1GB")]
Overhead: TypeAlias = Annotated[float, Quantity(units.bytes_of, "0B", "1000B")]
Seed: TypeAlias = Annotated[int, Field(ge=0, lt=2**63)]
Name: TypeAlias = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_one_line)]
Congestion: TypeAlias = Annotated[Given, FromCard("congestion", short=True)]
Queue: TypeAlias = Annotated[Given, FromCard("queue")]
Tcp: TypeAlias = Annotated[Given, FromCard("stack", default=DEFAULT_STACK)]


class Loss(Table):
    """Random loss of data packets on the bottleneck link: each so many-th of a flow, or by chance."""

    every: Annotated[int, Field(ge=2, le=10**15)] | None = Field(None, description="each so many-th packet of a flow")
    probability: Annotated[float, Field(gt=0, lt=1)] | None = Field(None, description="chance of each packet")

    @model_validator(mode="after")
    def _one_of_both(self) -> Loss:
        if (self.every is None) == (self.probability is None):
            found = "neither of two keys" if self.every is None else "both of two keys"
            raise fault(found, "{ every = 1000 } or { probability = 1e-3 }")
        return self


class Reverse(Table):
    """A shared link on the way of the ACKs."""

    rate: Rate = Field(description='the rate of the ACKs\' way, such as "10Mbit"')
    queue: Queue = Field(description='its queue, such as { discipline = "pfifo", limit = "100p" }')


class Dumbbell(Table):
    """All flows through one bottleneck, each with its own base RTT."""

    topology: Literal["dumbbell"] = Field(description='a topology: "dumbbell"')
    rate: Rate = Field(description='the bottleneck\'s rate, such as "100Mbit"')
    rtt: Annotated[Spread, Spreadable(RTT)] = Field(
        description='the two-way propagation delay, such as "100ms", a list, or { from = "80ms", to = "260ms" }'
    )
    queue: Queue = Field(description='the bottleneck\'s queue, such as { discipline = "pfifo", limit = "1bdp" }')
    frame_overhead: Overhead = Field(
        "14B", validate_default=True, description="wire bytes beyond the IP packet; 14 is what tc counts"
    )
    burst: Burst | None = Field(
        None,
        description="burst of a token bucket in the link's place (htb and tbf of tc); absent: packets are transmitted",
    )
    loss: Loss | None = Field(None, description="random loss of data packets before the bottleneck's queue")
    access_rate: Rate | None = Field(None, description="rate of each flow's own access link; absent: infinite")
    access_queue: Queue | None = Field(None, description="queue of each access link; absent: pfifo of 1000 packets")
    reverse: Reverse | None = Field(None, description="a shared link on the way of the ACKs; absent: pure delay")

    @model_validator(mode="after")
    def _access_queue_has_a_link(self) -> Dumbbell:
        if self.access_queue is not None and self.access_rate is None:
            raise faults([fault_at(("access_queue",), {}, 'an access_rate = "…" beside it')])
        return self


class Start(Table):
    """When the flows of a group start: flow i at `at` + i × `every` + a draw from [0, `jitter`) of the run's seed."""

    at: Moment = Field("0s", validate_default=True, description="start of the first flow")
    every: Moment = Field("0s", validate_default=True, description="distance between one start and the next")
    jitter: Moment = Field("0s", validate_default=True, description="width of the draw that is added to each start")


class _StartAt:
    """An annotation: a bare time is the start of all."""

    @staticmethod
    def table(value: object) -> object:
        if isinstance(value, (dict, Start)):
            return value
        MOMENT.read(value)
        return {"at": value}

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        return core_schema.no_info_before_validator_function(self.table, handler(source))

    def __get_pydantic_json_schema__(self, schema: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"anyOf": [{"type": "string"}, handler(schema)]}


class Flows(Table):
    """A group of like flows."""

    hints: ClassVar[Mapping[str, str]] = {
        **{key: f"it in a table: tcp = {{ {key} = … }}" for key in catalog.card("stack", DEFAULT_STACK).parameters},
        "stack": 'it in a table: tcp = { stack = "…" }',
        "direction": "no direction: the data of a dumbbell goes one way",
    }

    count: Annotated[int, Field(ge=1, le=MOST_FLOWS)] = Field(1, description="number of flows")
    congestion: Congestion | None = Field(
        None, description='a congestion control, such as "cubic"; absent: that of the TCP stack'
    )
    label: Name | None = Field(None, description="name of the group; absent: its congestion control")
    start: Annotated[Start, _StartAt()] = Field(default_factory=Start, description="when the flows start")
    size: Annotated[Spread, Spreadable(TRANSFER)] | None = Field(
        None, description='data to transfer, such as "64KB" or "10p" (full segments); absent: endless'
    )
    application_rate: Annotated[Spread, Spreadable(RATE)] | None = Field(
        None, description="rate at which the application writes; absent: as fast as TCP takes it"
    )
    rtt: Annotated[Spread, Spreadable(RTT)] | None = Field(None, description="instead of network.rtt")
    priority: Annotated[int, Field(ge=0, le=15)] = Field(
        0, description="priority of the packets of these flows and of their ACKs, 0 to 15 as in tc-prio(8)"
    )
    tcp: Tcp | None = Field(None, description="what differs from [tcp] for these flows")

    @property
    def last_start_s(self) -> float:
        """The latest that a flow of the group may start, in seconds."""
        return self.start.at + (self.count - 1) * self.start.every + self.start.jitter


class Record(Table):
    """What is written down."""

    interval: Interval = Field("10ms", validate_default=True, description="period of the samples")
    packets: bool = Field(False, description="a per-packet log")
    pcap: bool = Field(False, description="a packet capture at the senders")


def _known_topology(value: object) -> object:
    """Refuses another topology before its keys look like mistakes."""
    if isinstance(value, dict) and "topology" in value and value["topology"] not in TOPOLOGIES:
        known = ", ".join(map(shown, TOPOLOGIES))
        raise faults([fault_at(("topology",), value["topology"], f"a topology of this version: {known}")])
    return value


class Scenario(Table):
    """The whole file."""

    hints: ClassVar[Mapping[str, str]] = {
        "sweep": "no sweep: this version runs one point; write a scenario for each",
        "traffic": "[[flows]]: this version has no generated traffic",
    }

    name: Name | None = Field(None, description="a title")
    duration: Duration = Field(description='how long to simulate, such as "60s"')
    warmup: Moment = Field("0s", validate_default=True, description="the beginning that is left out of the metrics")
    repeats: Annotated[int, Field(ge=1, le=MOST_RUNS)] | None = Field(None, description="runs with seeds 1, 2, 3 …")
    seeds: list[Seed] | None = Field(None, description="the seeds themselves, instead of repeats")
    network: Annotated[Dumbbell, BeforeValidator(_known_topology)] = Field(
        description='a table [network] with topology = "dumbbell"'
    )
    tcp: Tcp = Field(
        default_factory=lambda: Given(None, {}),
        description="the TCP of all flows: a stack and what differs from its card",
    )
    flows: list[Flows] = Field(description="at least one table [[flows]]")
    record: Record = Field(default_factory=Record, description="what is written down")

    @model_validator(mode="after")
    def _consistent(self) -> Scenario:
        if mistakes := [*_times(self), *_counts(self), *_seeds(self)]:
            raise faults(mistakes)
        return self


def read(path: str | Path) -> tuple[Scenario, Source]:
    """Reads a scenario file. Raises `ScenarioError` if it cannot be read, or with every mistake in it."""
    return parse(source_text(path), str(path))


def parse(text: str, name: str = "scenario") -> tuple[Scenario, Source]:
    """Reads a scenario from TOML text. Raises `ScenarioError` with every mistake in it."""
    source = Source(name, text)
    content = source.toml()
    try:
        return Scenario.model_validate(content), source
    except ValidationError as error:
        problems = [source.problem(d["loc"], d["ctx"]["found"], d["ctx"]["expected"]) for d in error.errors()]
        raise ScenarioError(sorted(problems, key=lambda problem: problem.line or 0)) from None


def json_schema() -> dict[str, Any]:
    """The JSON Schema of a scenario file, for editors."""
    schema = _without_nulls(Scenario.model_json_schema())
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "ackclock scenario"}


def _without_nulls(schema: Any) -> Any:
    """A TOML file cannot say null: what is optional is left out instead."""
    if isinstance(schema, list):
        return [_without_nulls(item) for item in schema if item != {"type": "null"}]
    if not isinstance(schema, dict):
        return schema
    kept = {key: _without_nulls(value) for key, value in schema.items() if (key, value) != ("default", None)}
    only = kept.get("anyOf")
    if isinstance(only, list) and len(only) == 1:
        del kept["anyOf"]
        return only[0] | kept
    return kept


def _times(scenario: Scenario) -> Iterator[InitErrorDetails]:
    duration = f"the duration ({scenario.duration:g} s)"
    if scenario.warmup >= scenario.duration:
        yield fault_at(("warmup",), 0, f"less than {duration}", f"{scenario.warmup:g} s")
    if scenario.record.interval > scenario.duration:
        yield fault_at(("record", "interval"), 0, f"at most {duration}", f"{scenario.record.interval:g} s")
    samples = sum(flows.count for flows in scenario.flows) * scenario.duration / scenario.record.interval
    if samples > MOST_SAMPLES:
        found = f"{samples:.1e} samples of the flows in a run"
        yield fault_at(("record", "interval"), 0, f"at most {MOST_SAMPLES:.0e}: a longer interval", found)
    for group, flows in enumerate(scenario.flows):
        if flows.last_start_s >= scenario.duration:
            found = f"a start as late as {flows.last_start_s:g} s"
            yield fault_at(("flows", group, "start"), 0, f"all starts before the end of {duration}", found)


def _counts(scenario: Scenario) -> Iterator[InitErrorDetails]:
    total = sum(flows.count for flows in scenario.flows)
    if not 1 <= total <= MOST_FLOWS:
        yield fault_at(("flows",), 0, f"1 to {MOST_FLOWS} flows", f"{total or 'no'} flows")
    for group, flows in enumerate(scenario.flows):
        for key in ("rtt", "size", "application_rate"):
            yield from _not_longer(getattr(flows, key), flows.count, ("flows", group, key))
    users = sum(flows.count for flows in scenario.flows if flows.rtt is None)
    yield from _not_longer(scenario.network.rtt, max(users, 1), ("network", "rtt"))


def _not_longer(spread: Spread | None, flows: int, loc: tuple[int | str, ...]) -> Iterator[InitErrorDetails]:
    if spread is not None and not spread.evenly and len(spread.values) > flows:
        yield fault_at(loc, 0, f"at most one for each of {flows} flows", f"{len(spread.values)} values")


def _seeds(scenario: Scenario) -> Iterator[InitErrorDetails]:
    seeds = scenario.seeds
    if seeds is not None and scenario.repeats is not None:
        yield fault_at(("repeats",), 0, "one of repeats and seeds", "both repeats and seeds")
    if seeds is not None and not 1 <= len(set(seeds)) == len(seeds) <= MOST_RUNS:
        yield fault_at(("seeds",), seeds, f"1 to {MOST_RUNS} different seeds")
