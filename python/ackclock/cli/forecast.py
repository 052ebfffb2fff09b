"""The cost of a command before it runs: CPU time, wall-clock time, disk space and memory on this machine."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ackclock import engines
from ackclock.experiments import runner
from ackclock.experiments.cost import Cost, cost, speed
from ackclock.experiments.cost.forecast import REPORT_BYTES, Forecast, forecast
from ackclock.plan import Plan

if TYPE_CHECKING:
    from ackclock.experiments.sweep.run import Job
    from ackclock.gallery.runner import Case

#: Shorter work is not announced, in seconds.
MIN_ANNOUNCED_S = 60.0

#: Planning the whole gallery would take longer than the estimate is worth.
MAX_PLANNED = 240

#: For shorter work the machine's speed is not measured, in seconds.
MIN_MEASURED_S = 5.0


def of_plans(pairs: Iterable[tuple[Plan, str]], jobs: int | None, *, report: bool) -> Forecast:
    """Forecast plans, each with an engine and all its seeds."""
    costs = [(cost(plan, engine), _runs(plan, engine)) for plan, engine in pairs]
    return _on_this_machine(costs, jobs, REPORT_BYTES * len(costs) if report else 0.0)


def of_entries(entries: Iterable[Sequence[Case]], jobs: int | None) -> Forecast:
    """Forecast gallery entries by their cases; of very many cases a sample is planned."""
    listed = list(entries)
    size = 1 + sum(map(len, listed)) // MAX_PLANNED
    chunks = [cases[first : first + size] for cases in listed for first in range(0, len(cases), size)]
    return _on_this_machine(list(map(_chunk_cost, chunks)), jobs, 0.0)


def _chunk_cost(chunk: Sequence[Case]) -> tuple[Cost, int]:
    """Return the cost of a run of the chunk's middle case, and the chunk's number of runs."""
    middle = chunk[len(chunk) // 2]
    plan = middle.plan()
    is_stochastic = engines.engine(middle.engine).is_stochastic(plan)
    return cost(plan, middle.engine), sum(case.seeds if is_stochastic else 1 for case in chunk)


def of_sweep(job: Job) -> Forecast:
    """Forecast a sweep from a sample of its points."""
    return _on_this_machine([*job.costs()], job.jobs, 0.0)


def _on_this_machine(costs: Sequence[tuple[Cost, int]], jobs: int | None, extra_bytes: float) -> Forecast:
    parallel = jobs or runner.cores()
    nominal = forecast(costs, parallel, 1.0, extra_bytes=extra_bytes)
    if nominal.wall_s < MIN_MEASURED_S:
        return nominal
    return forecast(costs, parallel, speed.speed(), extra_bytes=extra_bytes)


def _runs(plan: Plan, engine: str) -> int:
    return len(plan.seeds) if engines.engine(engine).is_stochastic(plan) else 1


def announce(expected: Forecast, folder: Path) -> None:
    """Print long work, and scarce resources, to standard error."""
    if expected.wall_s > MIN_ANNOUNCED_S:
        click.echo(str(expected), err=True)
    warn_scarce(expected, folder)


def show(expected: Forecast, folder: Path, plan: str | Mapping[str, Any]) -> None:
    """Print what would be run: a text followed by the forecast, or JSON that includes it."""
    click.echo(f"{plan}\n{expected}" if isinstance(plan, str) else json.dumps(plan, default=str))
    warn_scarce(expected, folder)


def warn_scarce(expected: Forecast, folder: Path) -> None:
    """Print a warning for each resource of which there is too little."""
    for what in expected.shortages(folder):
        click.echo(f"warning: {what}", err=True)
