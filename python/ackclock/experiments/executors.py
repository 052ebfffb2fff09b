"""Executors: where the calls of an experiment are made, in processes of this machine or by the workers of a cluster.

Local processes are spawned, not forked: they inherit nothing but what they are given, and each computes with one
thread, so a result depends neither on the number of processes nor on what ran before it. A process ends with its
parent, however that ends. This module is the first that such a process imports, so it imports nothing heavy.

Used by whatever makes many runs: `runner`, sweeps, searches, the gallery.
"""

from __future__ import annotations

import os
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import active_children, get_context, parent_process
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any, Protocol

from ackclock.errors import AckclockError
from ackclock.system import signals

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess
    from multiprocessing.synchronize import Event

#: Environment variables that keep libraries single-threaded in many processes.
ONE_THREAD = ("POLARS_MAX_THREADS", "RAYON_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")

#: Processes that were told to end have so long for it, in seconds.
END_S = 5.0

_DIED = (
    "a process of the sweep was killed, perhaps for lack of memory; what is done is kept: the same command resumes "
    '(from a Python script, call it under `if __name__ == "__main__":`)'
)


class Executor(Protocol):
    """Makes calls elsewhere: `LocalExecutor` or `cluster.DaskExecutor`."""

    @property
    def slots(self) -> int:
        """Number of calls that go on at a time now. Raises `AckclockError` if the executor is lost."""

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Call a function of a module of ackclock; its arguments and its result are pickled."""


class StopRequest(Protocol):
    """An event that is set when nobody waits for a call's result any more."""

    def is_set(self) -> bool:
        """Return True if the call shall end."""


class StoppedError(Exception):
    """Another run has failed, or the user has interrupted the work."""


#: The stop request of the calls that this process makes for another one, if it does.
_stop: list[StopRequest] = []


def obey(stop: StopRequest) -> None:
    """Make `is_stop_requested` ask this from now on."""
    _stop[:] = [stop]


def is_stop_requested() -> bool:
    """Return True if nobody waits any more for the result of the call that this thread makes."""
    return any(stop.is_set() for stop in _stop)


class LocalExecutor:
    """A pool of `slots` processes on this machine."""

    def __init__(self, pool: ProcessPoolExecutor, slots: int) -> None:
        self._pool, self.slots = pool, slots

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Call a function in a process, which is started if all are busy and there may be more."""
        with signals.block_terminal_signals():
            return self._pool.submit(function, *arguments)


@contextmanager
def local(jobs: int, interrupted: Callable[[], bool]) -> Iterator[LocalExecutor]:
    """Open a pool of processes on this machine. They are ended at once if `interrupted` says that a signal is pending.

    Raises `AckclockError` if a process is killed.
    """
    context = get_context("spawn")
    others = set(active_children())
    with signals.block_terminal_signals():
        stop = context.Event()
    with one_thread(), ProcessPoolExecutor(jobs, context, _start_process, (stop,)) as pool:
        executor = LocalExecutor(pool, jobs)
        try:
            yield executor
        except BrokenProcessPool as error:
            if not interrupted():  # else the processes received the signal, too
                raise AckclockError(_DIED) from None
            traceback.clear_frames(error.__traceback__)  # which hold the pool, and its semaphores
        finally:
            if interrupted():
                _end(set(active_children()) - others)
            else:
                stop.set()
            pool.shutdown(wait=True, cancel_futures=True)
            # Whoever still holds the executor, or this frame by an exception, does not hold the semaphores.
            del executor._pool, pool, stop


def _start_process(stop: Event) -> None:
    """Prepare a process, before it imports anything else."""
    signals.install_handlers(silent=True)  # SIGTERM; the parent handles the others and prints what to do
    threading.Thread(target=_end_with_parent, daemon=True).start()
    obey(stop)


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def _end(processes: set[BaseProcess]) -> None:
    """End processes, which hold nothing that could be lost; kill those that ignore it."""
    for process in processes:
        process.terminate()
    until_s = time.monotonic() + END_S
    for process in processes:
        process.join(max(0.0, until_s - time.monotonic()))
        process.kill()


@contextmanager
def one_thread() -> Iterator[None]:
    """Set the environment of processes that are started in this block."""
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
