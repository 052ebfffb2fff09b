"""Functions that run on a worker of a cluster."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from ackclock.errors import AckclockError
from ackclock.experiments.runner import ONE_THREAD

_Result = TypeVar("_Result")


class WorkerFacts(NamedTuple):
    """Facts about a worker: its host, its version of ackclock (None: not installed), and why it cannot run engines."""

    host: str
    version: str | None
    missing: str | None


def worker_probe(names: Sequence[str]) -> Callable[[], tuple[str, str | None, str | None]]:
    """Return a function that examines a worker.

    It is sent by value, since a worker may lack ackclock, or have another one.
    """

    def probe() -> tuple[str, str | None, str | None]:
        import socket

        try:
            import ackclock._core
        except ImportError:
            return socket.gethostname(), None, None
        from ackclock import engines

        reason = next(filter(None, map(engines.unavailable, names)), None)
        return socket.gethostname(), ackclock._core.version, reason

    return probe


def called(version: str, function: Callable[..., _Result], *arguments: Any) -> _Result:
    """A task: calls the function, unless this worker has another ackclock. Raises `AckclockError`, or what it raises.

    A worker that comes when the work is under way is asked by this alone.
    """
    from ackclock import _core

    if _core.version != version:
        raise AckclockError(other_version(_here(), _core.version, version))
    for name in ONE_THREAD:
        os.environ.setdefault(name, "1")
    return function(*arguments)


def other_version(worker: str, found: str | None, wanted: str) -> str:
    """Return the message on a worker with another version of ackclock."""
    return f"worker {worker}: found {f'ackclock {found}' if found else 'no ackclock'}; expected {wanted}, as here"


class Unwanted:
    """Event that is set once no client waits for this thread's result any more."""

    def is_set(self) -> bool:
        """Asks the worker, by its own books."""
        from distributed import get_worker

        worker = get_worker()
        task = worker.state.tasks.get(worker.get_current_task())
        return task is None or task.state == "cancelled"


def _here() -> str:
    from distributed import get_worker

    return str(get_worker().address)
