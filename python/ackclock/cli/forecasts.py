"""What each command is going to do: its plans' costs together, on this machine."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ackclock import engines
from ackclock.campaigns import running
from ackclock.campaigns.cost import cost, speed
from ackclock.campaigns.cost.forecast import REPORT_BYTES, Forecast, forecast
from ackclock.plan import Plan

if TYPE_CHECKING:
    from ackclock.campaigns.sweep.run import Job


def of_plans(pairs: Iterable[tuple[Plan, str]], jobs: int | None, *, report: bool) -> Forecast:
    """Of plans, each with an engine and all its seeds."""
    listed = [(cost(plan, engine), _runs(plan, engine)) for plan, engine in pairs]
    return forecast(
        listed, jobs or running.cores(), speed.speed(), extra_bytes=REPORT_BYTES * len(listed) if report else 0.0
    )


def of_sweep(job: Job) -> Forecast:
    """Of a sweep, from some of its points."""
    return forecast([*job.costs()], job.jobs or running.cores(), speed.speed())


def _runs(plan: Plan, engine: str) -> int:
    return len(plan.seeds) if engines.engine(engine).draws(plan) else 1
