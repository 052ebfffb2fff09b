"""Checks between keys of a scenario that are valid one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pydantic_core import InitErrorDetails

from ackclock.input.fields import Loc, fault_at, shown
from ackclock.scenario.file_schema import MAX_RUNS, Written
from ackclock.scenario.topology.endpoints import MAX_FLOWS, not_longer
from ackclock.scenario.topology.traffic_matrix import DRAWN
from ackclock.scenario.traffic.flows import Flows

#: Most samples of all flows in one run: tens of gigabytes.
MAX_SAMPLES = 1e9


def mistakes(scenario: Written) -> Iterator[InitErrorDetails]:
    """Everything that does not fit together."""
    if scenario.sweep:
        yield fault_at(("sweep",), scenario.sweep, "one scenario here: a sweep is run by `ackclock sweep`", "a sweep")
    yield from _times(scenario)
    yield from _seeds(scenario)
    misplaced = [*scenario.network.mistakes(scenario.flows, scenario.traffic)]
    yield from misplaced or _groups(scenario)


def _times(scenario: Written) -> Iterator[InitErrorDetails]:
    duration = _duration(scenario)
    if scenario.warmup >= scenario.duration:
        yield fault_at(("warmup",), 0, f"less than {duration}", f"{scenario.warmup:g} s")
    if scenario.record.interval > scenario.duration:
        yield fault_at(("record", "interval"), 0, f"at most {duration}", f"{scenario.record.interval:g} s")
    for number, change in enumerate(scenario.network.changes):
        if change.at >= scenario.duration:
            place = ("network", "changes", number, "at")
            yield fault_at(place, 0, f"before the end of {duration}", f"{change.at:g} s")


def _duration(scenario: Written) -> str:
    return f"the duration ({scenario.duration:g} s)"


def _groups(scenario: Written) -> Iterator[InitErrorDetails]:
    """Yield faults that depend on the number of sources, once that is known."""
    sources = [scenario.network.sources(flows) for flows in scenario.flows]
    yield from _counts(scenario, sources)
    for group, (flows, number) in enumerate(zip(scenario.flows, sources, strict=True)):
        yield from _begins(scenario, ("flows", group), flows.stop, flows.last_start_s(number))
        yield from _drawn(flows, ("flows", group))
        for key in ("rtt", "size", "application_rate"):
            yield from not_longer(getattr(flows, key), number, ("flows", group, key))
    for group, traffic in enumerate(scenario.traffic):
        last_s = traffic.last_start_s(scenario.network.sources(traffic))
        yield from _begins(scenario, ("traffic", group), traffic.stop, last_s)
        yield from not_longer(traffic.rtt, scenario.network.sources(traffic), ("traffic", group, "rtt"))


def _counts(scenario: Written, sources: Sequence[int]) -> Iterator[InitErrorDetails]:
    total = sum(number * flows.streams for number, flows in zip(sources, scenario.flows, strict=True))
    if total > MAX_FLOWS:
        yield fault_at(("flows",), 0, f"at most {MAX_FLOWS} flows", f"{total} flows")
    if not scenario.flows and not scenario.traffic:
        yield fault_at(("flows",), 0, "at least one table [[flows]] or [[traffic]]", "nothing")
    samples = total * scenario.duration / scenario.record.interval
    if samples > MAX_SAMPLES:
        found = f"{samples:.1e} samples of the flows in a run"
        yield fault_at(("record", "interval"), 0, f"at most {MAX_SAMPLES:.0e}: a longer interval", found)


def _begins(scenario: Written, place: Loc, stop_s: float | None, last_s: float) -> Iterator[InitErrorDetails]:
    if last_s >= scenario.duration:
        found = f"a start as late as {last_s:g} s"
        yield fault_at((*place, "start"), 0, f"all starts before the end of {_duration(scenario)}", found)
    if stop_s is not None and stop_s <= last_s:
        yield fault_at((*place, "stop"), 0, f"after the last start ({last_s:g} s)", f"{stop_s:g} s")


def _drawn(flows: Flows, place: Loc) -> Iterator[InitErrorDetails]:
    """Flows whose ends are drawn from the seed are alike."""
    if flows.between not in DRAWN:
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


def _seeds(scenario: Written) -> Iterator[InitErrorDetails]:
    seeds = scenario.seeds
    if seeds is not None and scenario.repeats is not None:
        yield fault_at(("repeats",), 0, "one of repeats and seeds", "both repeats and seeds")
    if seeds is not None and not 1 <= len(set(seeds)) == len(seeds) <= MAX_RUNS:
        yield fault_at(("seeds",), seeds, f"1 to {MAX_RUNS} different seeds")
