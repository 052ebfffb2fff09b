"""What must fit together in a scenario whose keys are right one by one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pydantic_core import InitErrorDetails

from ackclock.fields import Loc, fault_at
from ackclock.topology.parts import MOST_FLOWS, not_longer

if TYPE_CHECKING:
    from ackclock.scenario import Scenario
    from ackclock.traffic.flows import Flows

#: Most runs of a scenario.
MOST_RUNS = 10_000

#: Most samples of all flows in one run: tens of gigabytes.
MOST_SAMPLES = 1e9


def mistakes(scenario: Scenario) -> Iterator[InitErrorDetails]:
    """Everything that does not fit together."""
    yield from _times(scenario)
    yield from _counts(scenario)
    yield from _seeds(scenario)


def _times(scenario: Scenario) -> Iterator[InitErrorDetails]:
    duration = f"the duration ({scenario.duration:g} s)"
    if scenario.warmup >= scenario.duration:
        yield fault_at(("warmup",), 0, f"less than {duration}", f"{scenario.warmup:g} s")
    if scenario.record.interval > scenario.duration:
        yield fault_at(("record", "interval"), 0, f"at most {duration}", f"{scenario.record.interval:g} s")
    samples = _flows(scenario) * scenario.duration / scenario.record.interval
    if samples > MOST_SAMPLES:
        found = f"{samples:.1e} samples of the flows in a run"
        yield fault_at(("record", "interval"), 0, f"at most {MOST_SAMPLES:.0e}: a longer interval", found)
    for number, change in enumerate(scenario.network.changes):
        if change.at >= scenario.duration:
            place = ("network", "changes", number, "at")
            yield fault_at(place, 0, f"before the end of {duration}", f"{change.at:g} s")
    for group, flows in enumerate(scenario.flows):
        yield from _starts(flows, scenario.network.sources(flows), ("flows", group), scenario.duration)


def _starts(flows: Flows, sources: int, place: Loc, duration_s: float) -> Iterator[InitErrorDetails]:
    last_s = flows.last_start_s(sources)
    if last_s >= duration_s:
        found = f"a start as late as {last_s:g} s"
        yield fault_at((*place, "start"), 0, f"all starts before the end of the duration ({duration_s:g} s)", found)
    if flows.stop is not None and flows.stop <= last_s:
        yield fault_at((*place, "stop"), 0, f"after the last start ({last_s:g} s)", f"{flows.stop:g} s")


def _flows(scenario: Scenario) -> int:
    return sum(scenario.network.sources(flows) * flows.streams for flows in scenario.flows)


def _counts(scenario: Scenario) -> Iterator[InitErrorDetails]:
    total = _flows(scenario)
    if not 1 <= total <= MOST_FLOWS:
        yield fault_at(("flows",), 0, f"1 to {MOST_FLOWS} flows", f"{total or 'no'} flows")
    for group, flows in enumerate(scenario.flows):
        for key in ("rtt", "size", "application_rate"):
            yield from not_longer(getattr(flows, key), scenario.network.sources(flows), ("flows", group, key))
    yield from scenario.network.mistakes(scenario.flows, ())


def _seeds(scenario: Scenario) -> Iterator[InitErrorDetails]:
    seeds = scenario.seeds
    if seeds is not None and scenario.repeats is not None:
        yield fault_at(("repeats",), 0, "one of repeats and seeds", "both repeats and seeds")
    if seeds is not None and not 1 <= len(set(seeds)) == len(seeds) <= MOST_RUNS:
        yield fault_at(("seeds",), seeds, f"1 to {MOST_RUNS} different seeds")
