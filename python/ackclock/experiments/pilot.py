"""Estimates of time and disk space from a pilot: the same run, cut short after a small part of its simulated time.

The pilot is made ever longer until it takes long enough to be measured; what its last two lengths took is continued in
a straight line to the whole duration. A run whose load changes later takes a different time, so an estimate is rough.
Nothing but `--dry-run` needs one: no result and no order of runs depends on it.

Used by `--dry-run` and before long commands: run, compare, sweep.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ackclock import engines, metrics, repr_format
from ackclock.dataset import Dataset, folders
from ackclock.engines.engine import Engine, RunOptions, cores
from ackclock.errors import AckclockError
from ackclock.experiments.runner import shortened
from ackclock.figures import numbers
from ackclock.plan import Plan

#: Engines that compute in this process. The others start programs, boot guests or use real hosts: they have no pilot.
PILOTED = ("packet", "fluid", "meanfield", "theory")

#: Factors by which pilots are shorter than the run, one after another until one takes `ENOUGH_S` of CPU time.
FACTORS, ENOUGH_S = (4096, 512, 64, 16, 4, 2), 0.25

#: No further points of a sweep have pilots after this time, in seconds.
BUDGET_S = 2.0

#: Bytes of a report: its script, and curves of each run.
REPORT_BYTES = 3.0e6


class Estimate(NamedTuple):
    """Estimate of one run: CPU time in seconds, and bytes of its result on disk."""

    cpu_s: float
    bytes: float


@dataclass(frozen=True, slots=True)
class Forecast:
    """Estimate of a number of runs, `jobs` of them at a time. What is not known is None.

    Attributes:
        cpu_s, bytes: of all runs together.
        wall_s: how long it takes, in seconds.
    """

    runs: int
    jobs: int
    cpu_s: float | None
    wall_s: float | None
    bytes: float | None

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    def plus(self, other: Forecast) -> Forecast:
        """Return the estimate of both, one after the other."""
        sums = [
            None if one is None or two is None else one + two
            for one, two in ((self.cpu_s, other.cpu_s), (self.wall_s, other.wall_s), (self.bytes, other.bytes))
        ]
        return Forecast(self.runs + other.runs, max(self.jobs, other.jobs), *sums)

    def shortage(self, folder: Path) -> str | None:
        """Return a sentence if the disk of `folder` has too little room."""
        try:
            there = next(place for place in (folder, *folder.absolute().parents) if place.exists())
            free = shutil.disk_usage(there).free
        except OSError:
            return None
        if self.bytes is None or free >= self.bytes:
            return None
        needed, left = numbers.value(self.bytes, "bytes"), numbers.value(free, "bytes")
        return f"{folder}: about {needed} will be written, and {left} are free"

    def __str__(self) -> str:
        runs = repr_format.counted(self.runs, "run")
        on = "on 1 core" if self.jobs == 1 else f"on {self.jobs} cores"
        if self.wall_s is None or self.bytes is None:
            return f"{runs} {on}; no estimate"
        about = f"about {duration(self.wall_s)}" if self.wall_s >= 1 else "less than a second"
        return f"{about} of work {on} ({runs}), about {numbers.value(self.bytes, 'bytes')} on disk"


def of_runs(pairs: Sequence[tuple[Plan, str]], jobs: int | None, *, report: bool) -> Forecast:
    """Estimate plans, each with an engine and all its seeds, and a report for each."""
    counts = [len(plan.seeds) if engines.engine(engine).is_stochastic(plan) else 1 for plan, engine in pairs]
    found = [pilot(plan, engine, _written_bytes) for plan, engine in pairs]
    return _total(list(zip(found, counts, strict=True)), jobs, REPORT_BYTES * len(pairs) if report else 0.0)


def of_sweep(
    pairs: Iterable[tuple[Plan, str]], runs: int, jobs: int | None, *, names: Sequence[str], tables: Sequence[str]
) -> Forecast:
    """Estimate a sweep of so many runs, with metrics by name and some tables, from a sample of its points."""

    def keep(data: Dataset) -> float:
        """Return the bytes in memory of what a sweep keeps, which are more than on disk."""
        for view in metrics.runs(data):
            for name in names:
                metrics.value(view, name)
        return sum(data.frame(table).estimated_size() for table in tables)

    begun_s = time.monotonic()
    found: list[Estimate | None] = []
    for plan, engine in pairs:
        found.append(pilot(plan, engine, keep))
        if found[-1] is None or time.monotonic() - begun_s > BUDGET_S:
            break
    return _total([(each, runs / len(found)) for each in found], jobs, 0.0)


def pilot(plan: Plan, engine: str, finish: Callable[[Dataset], float]) -> Estimate | None:
    """Estimate one run of a plan with its first seed. `finish` does with a result what follows; returns its bytes.

    Return None for an engine without pilots, or if all pilots fail, as for lack of a result that the plan needs.
    """
    if engine not in PILOTED:
        return None
    chosen = engines.engine(engine)
    lengths, measured = [0.0], [Estimate(0.0, 0.0)]
    for factor in FACTORS:
        begun_s = time.process_time()
        try:
            short = engines.resolve_inputs(chosen, shortened(plan, factor))
            size = _run(chosen, short, finish)
        except (AckclockError, ValueError):  # as where nothing starts in so short a time
            continue
        lengths.append(1.0 / factor)
        measured.append(Estimate(time.process_time() - begun_s, size))
        if measured[-1].cpu_s > ENOUGH_S:
            break
    if len(measured) == 1:
        return None
    step = (1.0 - lengths[-1]) / (lengths[-1] - lengths[-2])
    (before_s, before_bytes), (cpu_s, size) = measured[-2:]
    return Estimate(cpu_s + max(0.0, cpu_s - before_s) * step, size + max(0.0, size - before_bytes) * step)


def _run(engine: Engine, plan: Plan, finish: Callable[[Dataset], float]) -> float:
    """Run a plan with its first seed, and its packet captures if they are asked for; return the bytes."""
    if not plan.has_captures:
        return finish(engine.run(plan, plan.seeds[0]))
    with folders.temporary_folder() as place:
        size = finish(engine.run(plan, plan.seeds[0], RunOptions(captures=place)))
        return size + sum(path.stat().st_size for path in place.rglob("*") if path.is_file())


def _written_bytes(data: Dataset) -> float:
    with folders.temporary_folder() as place:
        data.write(place / "result")
        return sum(path.stat().st_size for path in place.rglob("*") if path.is_file())


def _total(estimates: Sequence[tuple[Estimate | None, float]], jobs: int | None, extra_bytes: float) -> Forecast:
    """Add up estimates of a run, each with a number of runs."""
    runs = round(sum(count for _, count in estimates))
    slots = max(1, min(jobs or cores(), runs))
    known = [(each, count) for each, count in estimates if each is not None]
    if len(known) < len(estimates):
        return Forecast(runs, slots, None, None, None)
    cpu_s = sum(each.cpu_s * count for each, count in known)
    wall_s = max(cpu_s / slots, max((each.cpu_s for each, _ in known), default=0.0))
    return Forecast(runs, slots, cpu_s, wall_s, sum(each.bytes * count for each, count in known) + extra_bytes)


def duration(seconds: float) -> str:
    """Return a time for people, with two numbers at most: `1 h 20 min`, `3 days 4 h`."""
    for unit_s, unit, part_s, part in ((86400, "days", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if seconds >= unit_s:
            whole, rest = divmod(round(seconds / part_s), unit_s // part_s)
            return f"{whole} {unit.removesuffix('s') if whole == 1 else unit}" + (f" {rest} {part}" if rest else "")
    return f"{seconds:.0f} s"
