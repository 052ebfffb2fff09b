"""Runs a plan with each of its seeds, several at a time, and puts the results together in the order of the seeds."""

from __future__ import annotations

import heapq
import math
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

from ackclock import engines
from ackclock.dataset import Dataset, folders
from ackclock.dataset.manifests import CAPTURES
from ackclock.engines.engine import Engine, Progress, RunOptions, no_progress
from ackclock.errors import UnsupportedError
from ackclock.experiments.cost.course import EVEN, Course, course
from ackclock.input import arguments
from ackclock.input.arguments import checked, optional
from ackclock.plan import Plan
from ackclock.scenario.coerce import Accepted, taken
from ackclock.scenario.planning import Loaded

#: Memory for the rows of all runs together, before they are written to disk.
SPOOL_BYTES = 8 << 20

#: Memory that a single run may always use for its rows.
MIN_SPOOL_BYTES = 2 << 20

#: Environment variables that keep libraries single-threaded in many processes.
ONE_THREAD = ("POLARS_MAX_THREADS", "RAYON_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")

#: By how much `--quick` shortens a run.
QUICK = 10

#: The waiting thread looks up so often: an interrupt may reach another thread and then wakes nobody.
WAKE_S = 0.2

T = TypeVar("T")


class _StoppedError(Exception):
    """Another run has failed, or the user has had enough."""


@checked(
    plan=taken,
    engine=arguments.WORD,
    seeds=optional(arguments.SEEDS),
    jobs=optional(arguments.JOBS),
    progress=arguments.CALL,
    captures=optional(arguments.PATH),
    command=arguments.TEXT,
)
def run(
    plan: Accepted,
    engine: str = "packet",
    seeds: Iterable[int] | None = None,
    *,
    jobs: int | None = None,
    progress: Progress = no_progress,
    captures: Path | None = None,
    command: str = "",
) -> Dataset:
    """Runs the plan once for each seed and returns all runs as one dataset.

    Values that the plan takes from other results are measured first. A deterministic engine runs once, with the first
    seed: all seeds have the same result.

    Args:
        plan: what to run: a plan; or a scenario, as `load` and `scenario` give, a file's path, its text as TOML, or its
            tables as a mapping.
        engine: name of the engine.
        seeds: the seeds to run, instead of the plan's own.
        jobs: runs at a time; by default one for each core.
        progress: called with the fraction completed, 0 to 1.
        captures: folder for packet captures, if the plan asks for them; without it there are none.
        command: the command recorded in the manifest.

    Raises:
        ScenarioError: a scenario whose values do not fit together, or one with a sweep.
        UnsupportedError: the engine cannot model something in the plan.
        InputError: an unknown engine, seeds that are not different whole numbers ≥ 0, `jobs` below 1, or a result that
            the plan needs and that is not there.
        TypeError: an argument of another type.
    """
    chosen = engines.engine(engine)
    complete = planned(plan, seeds)
    if reasons := engines.unsupported(chosen, complete):
        raise UnsupportedError(reasons)
    if not chosen.is_stochastic(complete):
        complete = replace(complete, seeds=complete.seeds[:1])
    complete = engines.resolve_inputs(chosen, complete)
    if captures is not None and complete.record.pcap:
        captures.mkdir(parents=True, exist_ok=True)
    spool_bytes = max(MIN_SPOOL_BYTES, SPOOL_BYTES // len(complete.seeds))
    options = RunOptions(captures=captures, spool_bytes=spool_bytes, command=command)
    at_a_time = 1 if chosen.exclusive(complete) else jobs or cores()
    workers = _remote.get()
    if workers is not None and captures is None and not chosen.exclusive(complete):
        return Dataset.concat(_run_seeds_remote(workers, chosen.name, complete, command, progress))
    return Dataset.concat(_all(chosen, complete, options, at_a_time, progress))


class Workers(Protocol):
    """Executor of functions on other machines."""

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Calls a function there."""

    def check_workers(self) -> None:
        """Tells if nobody is there any more."""


_remote: ContextVar[Workers | None] = ContextVar("elsewhere", default=None)


@contextmanager
def remote(workers: Workers | None) -> Iterator[None]:
    """In this block `run` has its runs made by these workers, but for those that write packet captures."""
    token = _remote.set(workers)
    try:
        yield
    finally:
        _remote.reset(token)


def _run_seeds_remote(workers: Workers, engine: str, plan: Plan, command: str, progress: Progress) -> list[Dataset]:
    """Every seed's result, in order, made by workers."""
    waiting = futures = [workers.submit(run_remote, engine, plan, seed, command) for seed in plan.seeds]
    try:
        while waiting:
            done, left = wait(waiting, timeout=WAKE_S, return_when=FIRST_EXCEPTION)
            _results(list(done))
            waiting = list(left)
            workers.check_workers()
            progress(1.0 - len(waiting) / len(futures))
    finally:
        for future in waiting:
            future.cancel()
    return _results(futures)


def run_remote(engine: str, plan: Plan, seed: int, command: str) -> Dataset:
    """One run on a worker: all of it in memory, since it goes over the connection."""
    return engines.engine(engine).run(plan, seed, RunOptions(spool_bytes=sys.maxsize, command=command))


def write_remote(engine: str, plan: Plan) -> dict[str, bytes]:
    """A result as a worker writes it, packet captures and all: its files by their paths, the same as written here."""
    with folders.temporary_folder() as place:
        captures, result = place / CAPTURES, place / "result"
        run(plan, engine, jobs=1, captures=captures).write(result, captures if captures.exists() else None)
        files = [path for path in sorted(result.rglob("*")) if path.is_file()]
        return {path.relative_to(result).as_posix(): path.read_bytes() for path in files}


def _all(engine: Engine, plan: Plan, options: RunOptions, jobs: int, progress: Progress) -> list[Dataset]:
    """Every seed's result, in order."""

    def one(seed: int, report: Progress) -> Dataset:
        return engine.run(plan, seed, replace(options, progress=report))

    return side_by_side([partial(one, seed) for seed in plan.seeds], jobs, progress, _course(plan, engine, progress))


def side_by_side(
    calls: Sequence[Callable[[Progress], T]], jobs: int, progress: Progress = no_progress, course: Course = EVEN
) -> list[T]:
    """Run calls, `jobs` at a time, and return their results in order.

    An exception in one, or in the waiting thread, stops the others when they next tell their progress. `course` is how
    the work of a call is spread over what it tells.
    """
    stop = threading.Event()
    jobs = min(jobs, len(calls))
    shares = _Shares(len(calls), jobs, progress, course)
    with ThreadPoolExecutor(max_workers=jobs) as pool:
        try:
            return _results(
                [pool.submit(copy_context().run, call, shares.of(number, stop)) for number, call in enumerate(calls)]
            )
        finally:
            stop.set()
            pool.shutdown(wait=True, cancel_futures=True)


def _course(plan: Plan, engine: Engine, progress: Progress) -> Course:
    """Return the distribution of a run's work over its time, if there is progress to report."""
    return EVEN if progress is no_progress else course(plan, engine.name)


def _results(futures: list[Future[T]]) -> list[T]:
    waiting = set(futures)
    while waiting:
        done, waiting = wait(waiting, timeout=WAKE_S, return_when=FIRST_EXCEPTION)
        for future in done:
            if (error := future.exception()) is not None:
                raise error
    return [future.result() for future in futures]


class _Shares:
    """Puts together how much of each run is done: the share of the time until the last of them ends.

    A run tells how far it is in the time that it simulates; `course` says how much of its work that is. With three
    runs on two cores, half of that time is over when two runs are done.
    """

    def __init__(self, runs: int, jobs: int, progress: Progress, course: Course = EVEN) -> None:
        self._jobs, self._course = jobs, course
        self._rounds = math.ceil(runs / jobs)
        self._waiting = set(range(runs))
        self._left: dict[int, float] = {}
        self._progress = progress
        self._lock = threading.Lock()

    def of(self, number: int, stop: threading.Event) -> Progress:
        """The progress of one run, which also ends it when `stop` is set."""

        def report(share: float) -> None:
            if stop.is_set():
                raise _StoppedError
            with self._lock:
                self._waiting.discard(number)
                self._left[number] = 1.0 - self._course.at(share)
                if share >= 1.0:
                    del self._left[number]
                self._progress(1.0 - self._time_left() / self._rounds)

        return report

    def _time_left(self) -> float:
        """Until all have ended, in times of a run: those that wait begin in the places that become free."""
        ends = [0.0] * (self._jobs - len(self._left)) + sorted(self._left.values())
        rounds, more = divmod(len(self._waiting), self._jobs)
        for _ in range(more):
            heapq.heapreplace(ends, ends[0] + 1.0)
        return max(ends) + rounds


def planned(given: Accepted, seeds: Iterable[int] | None = None) -> Plan:
    """The plan that is to be run, with `seeds` instead of its own. Raises `ScenarioError` and `InputError` as `run`."""
    found = taken("plan", given)
    plan = found.plan() if isinstance(found, Loaded) else found
    return plan if seeds is None else replace(plan, seeds=tuple(seeds))


def quick(plan: Plan) -> Plan:
    """A look: one seed, a tenth of the time. What begins later does not begin."""
    duration_s = plan.duration_s / QUICK
    record = replace(plan.record, interval_s=min(plan.record.interval_s, duration_s))
    return replace(plan, duration_s=duration_s, warmup_s=plan.warmup_s / QUICK, seeds=plan.seeds[:1], record=record)


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
