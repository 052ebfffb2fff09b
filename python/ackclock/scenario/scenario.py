"""The scenario: what the user wrote, checked.

A scenario is a TOML file of tables whose every quantity carries its unit. Reading one reports all mistakes at once,
each as one line with the file, the line, the key, what was found and what is expected. What was not written is left
open: defaults of algorithms and TCP stacks are on their specs and are filled in by `ackclock.plan`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, model_validator
from pydantic_core import InitErrorDetails

from ackclock.algorithms.selection import Given
from ackclock.errors import ScenarioError
from ackclock.input.fields import Loc, Table, fault, fault_at, faults, shown, text_reader
from ackclock.input.source import Source
from ackclock.scenario.keys import Duration, Interval, Moment, Name, Pcap, Seed, Tcp
from ackclock.scenario.options import Fluid, Linux, MeanField, Theory
from ackclock.scenario.topology import Network
from ackclock.scenario.topology.topology import DRAWN, MAX_FLOWS, not_longer
from ackclock.scenario.traffic import AnyFlows, ListedFlows, Traffic

#: Most runs of a scenario.
MAX_RUNS = 10_000


#: Most samples of all flows in one run: tens of gigabytes.
MAX_SAMPLES = 1e9


class Record(Table):
    """Recorded data."""

    interval: Interval = Field("10ms", validate_default=True, description="sampling period")
    packets: bool = Field(False, description="a per-packet log")
    pcap: Pcap = Field(
        False,
        description='a packet capture at the senders; or at each place in a list: "senders", "receivers", "link:NAME"; '
        "and the fate of each packet",
    )
    qlog: bool = Field(False, description="logs of QUIC senders' stacks")
    traffic: bool = Field(False, description="samples of flows of [[traffic]] too")
    links: Literal["bottlenecks", "all"] | None = Field(
        None, description='links whose queues are sampled: "bottlenecks" or "all"; absent: all if 16 or fewer'
    )
    delays: bool = Field(False, description="delays of data packets: the table delays, and metrics")
    cubic_state: bool = Field(
        False, description="state of CUBIC and its variants at each sample: the table cubic_samples"
    )
    epochs: Literal["gap", "first", "per RTT"] = Field(
        "gap",
        description='losses of a congestion epoch: "gap", each within an RTT of the previous one; "first", '
        'within an RTT of the first; "per RTT", in the same RTT of a fixed clock',
    )
    paths: bool = Field(False, description="each flow's links in a routed network: the table paths")


class Evaluate(Table):
    """Judgement by `ackclock evaluate`: the flows that are tested, who may be harmed, and by which metrics."""

    section: Annotated[str, text_reader(r"\d+(\.\d+)*", "a section of RFC 9743")] = Field(
        description='the section of RFC 9743 that this scenario serves, such as "5.2.1"'
    )
    why: Name = Field(description="what the scenario shows, and which result would be harm, in a sentence")
    tested: Annotated[str, text_reader(r"(flows|traffic)\[\d+\]", 'a table such as "flows[0]"')] = Field(
        "flows[0]", validate_default=True, description="the table whose congestion control is the one under test"
    )
    victim: Name | None = Field(
        None,
        description="name of the group that the tested flows may harm; absent: all that share the network are judged",
    )
    harm: list[str] = Field([], description="metrics by which harm is judged, of the victim if there is one")
    performance: list[str] = Field([], description="metrics of what the tested flows themselves get")
    quick: bool = Field(False, description="whether it belongs to the short evaluation (--quick)")
    figure: Literal["harm", "share", "trade-off", "convergence"] | None = Field(
        None, description="the figure of the dossier that is drawn from it"
    )

    @model_validator(mode="after")
    def _judges(self) -> Evaluate:
        if not self.harm and not self.performance:
            raise fault("neither harm nor performance", 'metrics, such as harm = ["goodput_bps", "rtt_p95_s"]')
        return self


class Scenario(Table):
    """The whole file."""

    name: Name | None = Field(None, description="a title")
    duration: Duration = Field(description='how long to simulate, such as "60s"')
    warmup: Moment = Field("0s", validate_default=True, description="initial period left out of the metrics")
    repeats: Annotated[int, Field(ge=1, le=MAX_RUNS)] | None = Field(
        None, description="number of runs, with seeds 1, 2, 3 …"
    )
    seeds: list[Seed] | None = Field(None, description="explicit seeds, instead of repeats")
    network: Network = Field(description='a table [network] with a topology, such as topology = "dumbbell"')
    tcp: Tcp = Field(
        default_factory=lambda: Given(None, {}),
        description="the TCP of all flows: a stack, and values that override its defaults",
    )
    flows: list[ListedFlows] = Field([], description="tables [[flows]]: flows listed explicitly")
    traffic: list[Traffic] = Field([], description="tables [[traffic]]: generated transfers, and UDP")
    record: Record = Field(default_factory=Record, description="what is recorded")
    theory: Theory = Field(default_factory=Theory, description="options of the closed-form engine")
    fluid: Fluid = Field(default_factory=Fluid, description="options of the fluid engine")
    meanfield: MeanField = Field(default_factory=MeanField, description="options of the mean-field engine")
    linux: Linux = Field(default_factory=Linux, description="options of the Linux engine, which runs the real kernel")
    evaluate: Evaluate | None = Field(
        None, description="what `ackclock evaluate` judges in this scenario; other commands ignore it"
    )
    traces: dict[str, str] = Field(
        {},
        description="contents of rate traces by the names that rates refer to; absent: files in the scenario's folder",
    )
    sweep: dict[str, Any] = Field(
        {},
        description='lists of values by dotted path, such as "network.queue.limit": every combination is a point',
    )

    @model_validator(mode="after")
    def _consistent(self) -> Scenario:
        if mistakes := [*_mistakes(self)]:
            raise faults(mistakes)
        return self


def checked(content: Mapping[str, Any], source: Source) -> Scenario:
    """The scenario that a file's values are. Raises `ScenarioError` with every mistake, each in its place."""
    try:
        return Scenario.model_validate(content)
    except ValidationError as error:
        problems = [source.problem(d["loc"], d["ctx"]["found"], d["ctx"]["expected"]) for d in error.errors()]
        raise ScenarioError(sorted(problems, key=lambda problem: problem.line or 0)) from None


def json_schema() -> dict[str, Any]:
    """The JSON Schema of a scenario file, for editors."""
    from ackclock.input.patterns import TomlSchema

    schema = Scenario.model_json_schema(schema_generator=TomlSchema)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "ackclock scenario"}


# --- keys that are right one by one and do not fit together


def _mistakes(scenario: Scenario) -> Iterator[InitErrorDetails]:
    """Everything that does not fit together."""
    if scenario.sweep:
        yield fault_at(("sweep",), scenario.sweep, "one scenario here: a sweep is run by `ackclock sweep`", "a sweep")
    yield from _times(scenario)
    yield from _seeds(scenario)
    misplaced = [*scenario.network.mistakes(scenario.flows, scenario.traffic)]
    yield from misplaced or _groups(scenario)


def _times(scenario: Scenario) -> Iterator[InitErrorDetails]:
    duration = _duration(scenario)
    if scenario.warmup >= scenario.duration:
        yield fault_at(("warmup",), 0, f"less than {duration}", f"{scenario.warmup:g} s")
    if scenario.record.interval > scenario.duration:
        yield fault_at(("record", "interval"), 0, f"at most {duration}", f"{scenario.record.interval:g} s")
    for number, change in enumerate(scenario.network.changes):
        if change.at >= scenario.duration:
            place = ("network", "changes", number, "at")
            yield fault_at(place, 0, f"before the end of {duration}", f"{change.at:g} s")


def _duration(scenario: Scenario) -> str:
    return f"the duration ({scenario.duration:g} s)"


def _groups(scenario: Scenario) -> Iterator[InitErrorDetails]:
    """Yield faults that depend on the number of sources, once that is known."""
    sources = [scenario.network.sources(flows) for flows in scenario.flows]
    yield from _counts(scenario, sources)
    for group, (flows, number) in enumerate(zip(scenario.flows, sources, strict=True)):
        yield from _begins(scenario, ("flows", group), flows.stop, flows.last_start_s(number))
        yield from _drawn(flows, ("flows", group))
        for key in ("rtt", "size", "application_rate"):
            yield from not_longer(getattr(flows, key, None), number, ("flows", group, key))
    for group, traffic in enumerate(scenario.traffic):
        last_s = traffic.last_start_s(scenario.network.sources(traffic))
        yield from _begins(scenario, ("traffic", group), traffic.stop, last_s)
        yield from not_longer(traffic.rtt, scenario.network.sources(traffic), ("traffic", group, "rtt"))


def _counts(scenario: Scenario, sources: Sequence[int]) -> Iterator[InitErrorDetails]:
    total = sum(number * flows.connections for number, flows in zip(sources, scenario.flows, strict=True))
    if total > MAX_FLOWS:
        yield fault_at(("flows",), 0, f"at most {MAX_FLOWS} flows", f"{total} flows")
    if not scenario.flows and not scenario.traffic:
        yield fault_at(("flows",), 0, "at least one table [[flows]] or [[traffic]]", "nothing")
    samples = total * scenario.duration / scenario.record.interval
    if samples > MAX_SAMPLES:
        found = f"{samples:.1e} samples of the flows in a run"
        yield fault_at(("record", "interval"), 0, f"at most {MAX_SAMPLES:.0e}: a longer interval", found)


def _begins(scenario: Scenario, place: Loc, stop_s: float | None, last_s: float) -> Iterator[InitErrorDetails]:
    if last_s >= scenario.duration:
        found = f"a start as late as {last_s:g} s"
        yield fault_at((*place, "start"), 0, f"all starts before the end of {_duration(scenario)}", found)
    if stop_s is not None and stop_s <= last_s:
        yield fault_at((*place, "stop"), 0, f"after the last start ({last_s:g} s)", f"{stop_s:g} s")


def _drawn(flows: AnyFlows, place: Loc) -> Iterator[InitErrorDetails]:
    """Flows whose ends are drawn from the seed are alike."""
    if flows.between not in DRAWN or flows.transport != "tcp":
        return
    beside = f"beside between = {shown(flows.between)}"
    if flows.streams > 1:
        yield fault_at((*place, "streams"), flows.streams, f"no streams {beside}: count draws so many")
    if flows.stop is not None:
        yield fault_at((*place, "stop"), 0, f"no stop {beside}", f"{flows.stop:g} s")
    if flows.start.every:
        yield fault_at((*place, "start", "every"), 0, f"no distance {beside}", f"{flows.start.every:g} s")
    for key, spread in (("size", flows.size), ("application_rate", flows.application_rate)):
        if spread is not None and (spread.evenly or len(spread.values) > 1):
            yield fault_at((*place, key), 0, f"one value {beside}", "several values")


def _seeds(scenario: Scenario) -> Iterator[InitErrorDetails]:
    seeds = scenario.seeds
    if seeds is not None and scenario.repeats is not None:
        yield fault_at(("repeats",), 0, "one of repeats and seeds", "both repeats and seeds")
    if seeds is not None and not 1 <= len(set(seeds)) == len(seeds) <= MAX_RUNS:
        yield fault_at(("seeds",), seeds, f"1 to {MAX_RUNS} different seeds")
