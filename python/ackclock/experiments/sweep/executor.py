"""Run what is left of a sweep: deal out tasks of several runs to an executor, and keep what comes back."""

from __future__ import annotations

import gc
import math
import pickle
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from ackclock.engines.engine import Progress
from ackclock.experiments import cluster, executors
from ackclock.experiments.cluster import Target
from ackclock.experiments.executors import Executor
from ackclock.experiments.runner import WAKE_S
from ackclock.experiments.sweep import worker
from ackclock.experiments.sweep.folder import Parts
from ackclock.experiments.sweep.runs import Run
from ackclock.experiments.sweep.spec import SweepSpec
from ackclock.experiments.sweep.worker import Done
from ackclock.system import signals

#: A task is as many runs as take about so long, in seconds, and never more than `MAX_IN_TASK`.
TASK_S = 0.5
MAX_IN_TASK = 500


@dataclass(slots=True)
class Pool:
    """An executor that several sweeps may share, and whether a signal is pending that ends all of them."""

    executor: Executor
    interrupted: Callable[[], bool]


@contextmanager
def open_pool(jobs: int, engines: Sequence[str], target: Target | None = None) -> Iterator[Pool]:
    """Open `jobs` processes, or a cluster, for runs of these engines; signals are deferred to the end of the block."""
    with signals.defer_signals() as interrupted:
        with _opened(jobs, engines, target, interrupted) as executor:
            pool = Pool(executor, interrupted)
            del executor
            try:
                yield pool
            finally:
                del pool.executor  # whoever has the pool keeps no processes
        if interrupted():
            gc.collect()  # the processes' semaphores, which are named


def _opened(
    jobs: int, engines: Sequence[str], target: Target | None, interrupted: Callable[[], bool]
) -> AbstractContextManager[Executor]:
    return executors.local(jobs, interrupted) if target is None else cluster.opened(target, engines, interrupted)


def run_all(order: SweepSpec, runs: Sequence[Run], parts: Parts, progress: Progress, pool: Pool) -> None:
    """Make all runs, and give them to `parts`, which keeps them if one fails.

    `progress` is called with the share of the runs that is done. If a signal is pending some runs are not made. Raises
    `AckclockError` for a run that failed.
    """
    try:
        _drain(pool.executor, pickle.dumps(order), Tasks(runs), parts, progress, pool.interrupted)
    finally:
        parts.write()


def _drain(
    executor: Executor, order: bytes, tasks: Tasks, parts: Parts, progress: Progress, interrupted: Callable[[], bool]
) -> None:
    """Keep the executor busy until all is done. Progress is reported from the first result on, not during imports."""
    waiting: dict[Future[Done], Sequence[Run]] = {}
    while (waiting or tasks.left) and not interrupted():
        slots = executor.slots
        while tasks.left and len(waiting) < 2 * slots:
            task = tasks.next(slots)
            waiting[executor.submit(worker.run_task, order, task)] = task
        done, _ = wait(waiting, timeout=WAKE_S, return_when=FIRST_COMPLETED)
        ended = [(waiting.pop(future), future) for future in done]
        for task, found in [(task, future.result()) for task, future in ended if not future.exception()]:
            tasks.took(len(task), found.elapsed_s)
            parts.add(found.rows)
        if tasks.share:
            progress(tasks.share)
        for _, future in ended:
            future.result()


class Tasks:
    """Cuts runs into tasks that take about `TASK_S`, by the time that earlier ones took."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self._runs = runs
        self._next, self._done = 0, 0
        self._run_s: float | None = None

    @property
    def left(self) -> int:
        """Return the number of runs that are not yet dealt out."""
        return len(self._runs) - self._next

    @property
    def share(self) -> float:
        """Return the share of the runs that is done."""
        return self._done / len(self._runs)

    def next(self, slots: int) -> Sequence[Run]:
        """Return the next task: one run until its time is known; few at the end, for all `slots` to work."""
        wanted = 1.0 if self._run_s is None else TASK_S / max(self._run_s, 1e-9)
        count = max(1, math.floor(min(wanted, self.left / (2 * slots), MAX_IN_TASK)))
        self._next += count
        return self._runs[self._next - count : self._next]

    def took(self, runs: int, elapsed_s: float) -> None:
        """Record the time that a task of so many runs took."""
        self._done += runs
        last_s = elapsed_s / runs
        self._run_s = last_s if self._run_s is None else min(last_s, (self._run_s + last_s) / 2)
