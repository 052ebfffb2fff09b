"""Runs what is left of a sweep in processes of its own.

The processes are spawned, not forked: they inherit nothing but what they are given, and each computes with one thread,
so a result depends neither on the number of processes nor on what ran before it. A process ends with its parent,
however that ends.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import active_children, get_context

from ackclock.campaigns.sweep import worker
from ackclock.campaigns.sweep.folder import Parts
from ackclock.campaigns.sweep.order import Order
from ackclock.campaigns.sweep.runs import Run
from ackclock.campaigns.sweep.worker import Done
from ackclock.engines.engine import Progress
from ackclock.errors import AckclockError
from ackclock.system import signals

#: A task is as many runs as take about so long, and never more than `MOST_IN_TASK`.
TASK_S = 0.5
MOST_IN_TASK = 500

#: The waiting process looks up so often.
WAKE_S = 0.2

#: What keeps libraries from threads of their own.
ONE_THREAD = ("POLARS_MAX_THREADS", "RAYON_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def run_all(order: Order, runs: Sequence[Run], parts: Parts, jobs: int, progress: Progress) -> None:
    """Runs everything and gives it to `parts`; what is done is kept even if something fails.

    `progress` is called with the share that is done. Raises `AckclockError` for a run that failed.
    """
    if runs:
        with signals.whole() as interrupted:
            _run_all(order, _Tasks(runs, jobs), parts, progress, interrupted)
            if interrupted():
                gc.collect()  # the processes' semaphores, which are named


def _run_all(order: Order, tasks: _Tasks, parts: Parts, progress: Progress, interrupted: Callable[[], bool]) -> None:
    context = get_context("spawn")
    others = set(active_children())
    with signals.unheard_by_children():
        stop = context.Event()
    with _one_thread(), ProcessPoolExecutor(tasks.jobs, context, worker.start, (order, stop)) as pool:
        try:
            _drain(pool, tasks, parts, progress, interrupted)
        except BrokenProcessPool:
            if not interrupted():  # else the workers heard it too
                raise AckclockError(_DIED) from None
        finally:
            if interrupted():
                for process in set(active_children()) - others:
                    process.terminate()
            else:
                stop.set()
            pool.shutdown(wait=True, cancel_futures=True)
            parts.write()


_DIED = (
    "a process of the sweep was killed, perhaps for want of memory; what is done is kept: the same command goes on "
    '(from a Python script, call it under `if __name__ == "__main__":`)'
)


def _drain(
    pool: ProcessPoolExecutor, tasks: _Tasks, parts: Parts, progress: Progress, interrupted: Callable[[], bool]
) -> None:
    waiting: set[Future[Done]] = set()
    total = len(tasks.runs)
    while (waiting or tasks.left) and not interrupted():
        with signals.unheard_by_children():
            while tasks.left and len(waiting) < 2 * tasks.jobs:
                waiting.add(pool.submit(worker.work, tasks.next()))
        done, waiting = wait(waiting, timeout=WAKE_S, return_when=FIRST_COMPLETED)
        for found in (future.result() for future in done if not future.exception()):
            tasks.took(found)
            parts.add(found.rows)
        progress(tasks.done / total)
        for future in done:
            future.result()


class _Tasks:
    """Cuts the runs into tasks of a good length."""

    def __init__(self, runs: Sequence[Run], jobs: int) -> None:
        self.runs, self.jobs = runs, jobs
        self.done = self._next = 0
        self._run_s: float | None = None

    @property
    def left(self) -> int:
        """Runs that are not yet handed out."""
        return len(self.runs) - self._next

    def next(self) -> Sequence[Run]:
        """The next task's runs: one until it is known how long one takes, few when all processes shall end together."""
        wanted = 1 if self._run_s is None else int(TASK_S / max(self._run_s, 1e-9))
        size = max(1, min(wanted, MOST_IN_TASK, self.left // (2 * self.jobs)))
        self._next += size
        return self.runs[self._next - size : self._next]

    def took(self, found: Done) -> None:
        """Learns from a task that is done. The first one of a process is slow: it imports the packages."""
        self.done += found.count
        last_s = found.elapsed_s / found.count
        self._run_s = last_s if self._run_s is None else min(last_s, (self._run_s + last_s) / 2)


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
