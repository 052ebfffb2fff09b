"""What each command is going to do: its plans' costs together, on this machine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ackclock import engines
from ackclock.experiments import runner
from ackclock.experiments.cost import Cost, cost, speed
from ackclock.experiments.cost.forecast import REPORT_BYTES, Forecast, forecast
from ackclock.plan import Plan

if TYPE_CHECKING:
    from ackclock.experiments.sweep.run import Job
    from ackclock.gallery.runner import Case


#: To plan the whole gallery takes longer than anybody would wait for an estimate.
MOST_PLANNED = 240


def of_plans(pairs: Iterable[tuple[Plan, str]], jobs: int | None, *, report: bool) -> Forecast:
    """Of plans, each with an engine and all its seeds."""
    listed = [(cost(plan, engine), _runs(plan, engine)) for plan, engine in pairs]
    return _on_this_machine(listed, jobs, REPORT_BYTES * len(listed) if report else 0.0)


def of_entries(entries: Iterable[Sequence[Case]], jobs: int | None) -> Forecast:
    """Of published results that are reproduced, entry by entry: of very many, from some of each that are planned."""
    listed = list(entries)
    size = 1 + sum(map(len, listed)) // MOST_PLANNED
    stretches = [cases[first : first + size] for cases in listed for first in range(0, len(cases), size)]
    return _on_this_machine([_of_stretch(stretch) for stretch in stretches], jobs, 0.0)


def _of_stretch(stretch: Sequence[Case]) -> tuple[Cost, int]:
    """What a run costs of the case in the middle, and how many runs there are."""
    middle = stretch[len(stretch) // 2]
    plan = middle.plan()
    draws = engines.engine(middle.engine).draws(plan)
    return cost(plan, middle.engine), sum(case.seeds if draws else 1 for case in stretch)


def of_sweep(job: Job) -> Forecast:
    """Of a sweep, from some of its points."""
    return _on_this_machine([*job.costs()], job.jobs, 0.0)


def _on_this_machine(costs: Sequence[tuple[Cost, int]], jobs: int | None, extra_bytes: float) -> Forecast:
    """How fast it is does not matter where there is little to do."""
    at_a_time = jobs or runner.cores()
    found = forecast(costs, at_a_time, 1.0, extra_bytes=extra_bytes)
    if found.wall_s < LITTLE_S:
        return found
    return forecast(costs, at_a_time, speed.speed(), extra_bytes=extra_bytes)


#: Work for which the machine's speed is not measured, in seconds.
LITTLE_S = 5.0


def _runs(plan: Plan, engine: str) -> int:
    return len(plan.seeds) if engines.engine(engine).draws(plan) else 1
