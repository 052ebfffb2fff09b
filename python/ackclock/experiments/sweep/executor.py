"""Runs what is left of a sweep in processes of its own, or on a cluster.

The processes are spawned, not forked: they inherit nothing but what they are given, and each computes with one thread,
so a result depends neither on the number of processes nor on what ran before it. A process ends with its parent,
however that ends.
"""

from __future__ import annotations

import gc
import os
import pickle
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import active_children, get_context
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from ackclock.engines.engine import Progress
from ackclock.errors import AckclockError
from ackclock.experiments.runner import ONE_THREAD
from ackclock.experiments.sweep import worker
from ackclock.experiments.sweep.folder import Parts
from ackclock.experiments.sweep.runs import Run
from ackclock.experiments.sweep.spec import SweepSpec
from ackclock.experiments.sweep.worker import Done
from ackclock.system import signals

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

    from ackclock.experiments.cluster.pool import Pool
    from ackclock.experiments.cluster.target import Place

#: A task is as many runs as take about so long, and never more than `MAX_IN_TASK`.
TASK_S = 0.5
MAX_IN_TASK = 500

#: The waiting process looks up so often.
WAKE_S = 0.2

#: Processes that were told to end have so long for it.
END_S = 5.0


def run_all(order: SweepSpec, tasks: Tasks, parts: Parts, progress: Progress, place: Place | None = None) -> None:
    """Runs everything, at a `place` if one is given, and gives it to `parts`; what is done is kept if something fails.

    `progress` is called with the share of the work that is done. Raises `AckclockError` for a run that failed.
    """
    with signals.defer_signals() as interrupted:
        if place is not None:
            _run_remote(place, order, tasks, parts, progress, interrupted)
            return
        _run_all(order, tasks, parts, progress, interrupted)
        if interrupted():
            gc.collect()  # the processes' semaphores, which are named


def _run_remote(
    place: Place, order: SweepSpec, tasks: Tasks, parts: Parts, progress: Progress, interrupted: Callable[[], bool]
) -> None:
    from ackclock.experiments.cluster import pool

    with _one_thread(), pool.opened(place, [order.engine], interrupted) as workers:

        def report(share: float) -> None:
            tasks.jobs = workers.places
            progress(share)

        try:
            _drain(_RemoteExecutor(workers, order), tasks, parts, report, interrupted)
        finally:
            parts.write()


class _RemoteExecutor:
    """The workers of a cluster in the place of processes: with each task they are told what sweep it is of."""

    def __init__(self, workers: Pool, order: SweepSpec) -> None:
        self._workers, self._order = workers, pickle.dumps(order)

    def submit(self, _: Callable[..., Done], runs: Sequence[Run]) -> Future[Done]:
        return self._workers.submit(worker.run_task, self._order, runs)


def _run_all(order: SweepSpec, tasks: Tasks, parts: Parts, progress: Progress, interrupted: Callable[[], bool]) -> None:
    context = get_context("spawn")
    others = set(active_children())
    with signals.block_terminal_signals():
        stop = context.Event()
    with _one_thread(), ProcessPoolExecutor(tasks.jobs, context, worker.start, (order, stop)) as pool:
        try:
            _warm(pool, tasks.jobs, interrupted)
            _drain(pool, tasks, parts, progress, interrupted)
        except BrokenProcessPool:
            if not interrupted():  # else the workers heard it too
                raise AckclockError(_DIED) from None
        finally:
            if interrupted():
                _end(set(active_children()) - others)
            else:
                stop.set()
            pool.shutdown(wait=True, cancel_futures=True)
            parts.write()


def _end(processes: set[BaseProcess]) -> None:
    """They hold nothing that could be lost: one that does not end when it is told to is killed."""
    for process in processes:
        process.terminate()
    until_s = time.monotonic() + END_S
    for process in processes:
        process.join(max(0.0, until_s - time.monotonic()))
        process.kill()


_DIED = (
    "a process of the sweep was killed, perhaps for lack of memory; what is done is kept: the same command resumes "
    '(from a Python script, call it under `if __name__ == "__main__":`)'
)


def _warm(pool: ProcessPoolExecutor, jobs: int, interrupted: Callable[[], bool]) -> None:
    """Waits for the first process to have imported what it needs: what is told from then on is of the work alone."""
    with signals.block_terminal_signals():
        waiting = {pool.submit(worker.ready) for _ in range(jobs)}
    while not interrupted() and not wait(waiting, timeout=WAKE_S, return_when=FIRST_COMPLETED).done:
        pass


def _drain(
    pool: ProcessPoolExecutor | _RemoteExecutor,
    tasks: Tasks,
    parts: Parts,
    progress: Progress,
    interrupted: Callable[[], bool],
) -> None:
    waiting: dict[Future[Done], Task] = {}
    progress(tasks.share)
    while (waiting or tasks.left) and not interrupted():
        with signals.block_terminal_signals():
            while tasks.left and len(waiting) < 2 * tasks.jobs:
                task = tasks.next()
                waiting[pool.submit(worker.work, task.runs)] = task
        done, _ = wait(waiting, timeout=WAKE_S, return_when=FIRST_COMPLETED)
        ended = [(waiting.pop(future), future) for future in done]
        for task, found in [(task, future.result()) for task, future in ended if not future.exception()]:
            tasks.took(task, found.elapsed_s)
            parts.add(found.rows)
        progress(tasks.share)
        for _, future in ended:
            future.result()


class Task(NamedTuple):
    """Some runs, and what they weigh together."""

    runs: Sequence[Run]
    weight: float


class Tasks:
    """Cuts the runs into tasks of a good length. `weights` say what the runs cost beside each other."""

    def __init__(self, runs: Sequence[Run], weights: npt.ArrayLike, jobs: int) -> None:
        self.runs, self.jobs = runs, jobs
        self._sums = np.concatenate([[0.0], np.cumsum(weights)])
        self._next, self._done = 0, 0.0
        self._given: list[Task] = []
        self._unit_s: float | None = None

    @property
    def left(self) -> int:
        """Runs that are not yet handed out."""
        return len(self.runs) - self._next

    @property
    def share(self) -> float:
        """Return the completed share of the work. Once a task is done, what the processes work on counts half."""
        under_way = sum(task.weight for task in self._given[: self.jobs]) if self._done else 0.0
        return float((self._done + under_way / 2) / self._sums[-1])

    def next(self) -> Task:
        """The next task: one run until it is known what one takes, few when all processes shall end together."""
        first, before = self._next, float(self._sums[self._next])
        wanted = 0.0 if self._unit_s is None else TASK_S / max(self._unit_s, 1e-12)
        most = before + min(wanted, (float(self._sums[-1]) - before) / (2 * self.jobs))
        fitting = int(np.searchsorted(self._sums, most, side="right")) - 1
        self._next = min(max(fitting, first + 1), first + MAX_IN_TASK, len(self.runs))
        self._given.append(Task(self.runs[first : self._next], float(self._sums[self._next]) - before))
        return self._given[-1]

    def took(self, task: Task, elapsed_s: float) -> None:
        """Learns from a task that is done."""
        self._given.remove(task)
        self._done += task.weight
        last_s = elapsed_s / task.weight
        self._unit_s = last_s if self._unit_s is None else min(last_s, (self._unit_s + last_s) / 2)


@contextmanager
def _one_thread() -> Iterator[None]:
    """The environment of processes that are started meanwhile."""
    before = {name: os.environ.get(name) for name in ONE_THREAD}
    os.environ.update(dict.fromkeys(ONE_THREAD, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
