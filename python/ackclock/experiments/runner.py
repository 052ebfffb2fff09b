"""Run a plan with each of its seeds, several at a time, and join the results in the order of the seeds."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from ackclock import engines
from ackclock.dataset import Dataset, folders
from ackclock.dataset.manifests import CAPTURES
from ackclock.engines.engine import Progress, RunOptions, cores, no_progress
from ackclock.errors import UnsupportedError
from ackclock.experiments.executors import Executor, StoppedError
from ackclock.input import arguments
from ackclock.input.arguments import checked, optional
from ackclock.plan import Plan
from ackclock.scenario.builder import Accepted, taken
from ackclock.scenario.planning import Loaded

#: Memory for the rows of all runs together, before they are written to disk.
SPOOL_BYTES = 8 << 20

#: Memory that a single run may always use for its rows.
MIN_SPOOL_BYTES = 2 << 20

#: By how much `--quick` shortens a run.
QUICK = 10

#: The waiting thread looks up so often: an interrupt may reach another thread and then wakes nobody.
WAKE_S = 0.2

T = TypeVar("T")


@checked(
    plan=taken,
    engine=arguments.WORD,
    seeds=optional(arguments.SEEDS),
    jobs=optional(arguments.JOBS),
    threads=arguments.JOBS,
    progress=arguments.CALL,
    captures=optional(arguments.PATH),
    command=arguments.TEXT,
)
def run(  # noqa: PLR0913 (all but the first have defaults)
    plan: Accepted,
    engine: str = "packet",
    seeds: Iterable[int] | None = None,
    *,
    jobs: int | None = None,
    threads: int = 1,
    progress: Progress = no_progress,
    captures: Path | None = None,
    command: str = "",
    executor: Executor | None = None,
) -> Dataset:
    """Run the plan once for each seed and return all runs as one dataset.

    Values that the plan takes from other results are measured first. A deterministic engine runs once, with the first
    seed: all seeds have the same result.

    Args:
        plan: what to run: a plan; or a scenario, as `load` and `scenario` give, a file's path, its text as TOML, or its
            tables as a mapping.
        engine: name of the engine.
        seeds: the seeds to run, instead of the plan's own.
        jobs: runs at a time; by default as many as use all cores.
        threads: threads of each run, where the engine can divide it; the result is the same.
        progress: called with the fraction completed, 0 to 1.
        captures: folder for packet captures, if the plan asks for them; without it there are none.
        command: the command recorded in the manifest.
        executor: makes the runs elsewhere, but for those that write packet captures; by default threads make them.

    Raises:
        ScenarioError: a scenario whose values do not fit together, or one with a sweep.
        UnsupportedError: the engine cannot model something in the plan.
        InputError: an unknown engine, seeds that are not different whole numbers ≥ 0, `jobs` or `threads` below 1,
            or a result that the plan needs and that is not there.
        TypeError: an argument of another type.
    """
    chosen = engines.engine(engine)
    complete = planned(plan, seeds)
    if reasons := engines.unsupported(chosen, complete):
        raise UnsupportedError(reasons)
    if not chosen.is_stochastic(complete):
        complete = replace(complete, seeds=complete.seeds[:1])
    complete = engines.resolve_inputs(chosen, complete)
    if captures is not None and complete.has_captures:
        captures.mkdir(parents=True, exist_ok=True)
    spool_bytes = max(MIN_SPOOL_BYTES, SPOOL_BYTES // len(complete.seeds))
    options = RunOptions(captures=captures, spool_bytes=spool_bytes, command=command, threads=threads)
    is_alone = chosen.exclusive(complete)
    if executor is not None and captures is None and not is_alone:
        return Dataset.concat(_run_remotely(executor, chosen.name, complete, command, progress))

    def run_seed(seed: int, report: Progress) -> Dataset:
        return chosen.run(complete, seed, replace(options, progress=report))

    calls = [partial(run_seed, seed) for seed in complete.seeds]
    if is_alone or len(calls) == 1:
        jobs = 1
    elif jobs is None:
        used, _ = chosen.threads(complete, threads) if threads > 1 else (1, "")
        jobs = max(1, cores() // used)
    return Dataset.concat(run_parallel(calls, jobs, progress))


def _run_remotely(executor: Executor, engine: str, plan: Plan, command: str, progress: Progress) -> list[Dataset]:
    """Return every seed's result, in order."""
    futures = [executor.submit(run_remote, engine, plan, seed, command) for seed in plan.seeds]

    def report(waiting: int) -> None:
        _ = executor.slots  # raises if the executor is lost
        progress(1.0 - waiting / len(futures))

    return _results(futures, report)


def run_remote(engine: str, plan: Plan, seed: int, command: str) -> Dataset:
    """Make one run on a worker, with all rows in memory, since they go over the connection."""
    return engines.engine(engine).run(plan, seed, RunOptions(spool_bytes=sys.maxsize, command=command))


def write_remote(engine: str, plan: Plan) -> dict[str, bytes]:
    """Make a result on a worker, with packet captures; return the contents of its files by their paths."""
    with folders.temporary_folder() as place:
        captures, result = place / CAPTURES, place / "result"
        run(plan, engine, jobs=1, captures=captures).write(result, captures if captures.exists() else None)
        files = [path for path in sorted(result.rglob("*")) if path.is_file()]
        return {path.relative_to(result).as_posix(): path.read_bytes() for path in files}


def run_parallel(calls: Sequence[Callable[[Progress], T]], jobs: int, progress: Progress = no_progress) -> list[T]:
    """Make calls in threads, `jobs` at a time, and return their results in order.

    An exception in one, or in the waiting thread, stops the others when they next report their progress. `progress`
    gets the mean over all calls.
    """
    stop, lock = threading.Event(), threading.Lock()
    shares, total = [0.0] * len(calls), 0.0

    def report(number: int, share: float) -> None:
        nonlocal total
        if stop.is_set():
            raise StoppedError
        with lock:
            total += share - shares[number]
            shares[number] = share
            progress(min(1.0, total / len(shares)))

    with ThreadPoolExecutor(max_workers=min(jobs, len(calls))) as pool:
        try:
            return _results([pool.submit(call, partial(report, number)) for number, call in enumerate(calls)])
        finally:
            stop.set()
            pool.shutdown(wait=True, cancel_futures=True)


def _results(futures: list[Future[T]], report: Callable[[int], object] = lambda _: None) -> list[T]:
    """Wait for all results, and return them in order. `report` is called with the number that is still waited for."""
    waiting = set(futures)
    try:
        while waiting:
            done, waiting = wait(waiting, timeout=WAKE_S, return_when=FIRST_EXCEPTION)
            for future in done:
                if (error := future.exception()) is not None:
                    raise error
            report(len(waiting))
    finally:
        for future in waiting:
            future.cancel()
    return [future.result() for future in futures]


def planned(given: Accepted, seeds: Iterable[int] | None = None) -> Plan:
    """The plan that is to be run, with `seeds` instead of its own. Raises `ScenarioError` and `InputError` as `run`."""
    found = taken("plan", given)
    plan = found.plan() if isinstance(found, Loaded) else found
    return plan if seeds is None else replace(plan, seeds=tuple(seeds))


def quick(plan: Plan) -> Plan:
    """Return a preview of a plan: one seed, a tenth of the time. What begins later does not begin."""
    return replace(shortened(plan, QUICK), seeds=plan.seeds[:1])


def shortened(plan: Plan, factor: float) -> Plan:
    """Return a plan that simulates less time, by a factor."""
    duration_s = plan.duration_s / factor
    record = replace(plan.record, interval_s=min(plan.record.interval_s, duration_s))
    return replace(plan, duration_s=duration_s, warmup_s=plan.warmup_s / factor, record=record)
