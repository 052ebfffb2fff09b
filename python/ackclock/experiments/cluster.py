"""A cluster as an executor: a Dask scheduler (https://distributed.dask.org) and its workers.

Dask is the optional extra `ackclock[cluster]`; it is imported when a target is opened, and by nothing else. What runs
there is the same as in the processes of this machine, in the same order into the same tables, so the result has the
same bytes. A worker that is lost is replaced by another one, and what it had not given back is called again there.
Nothing is kept on the workers.
"""

from __future__ import annotations

import gc
import logging
import os
import re
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from ackclock import _core
from ackclock.dataset import folders
from ackclock.errors import AckclockError, InputError, first_line
from ackclock.experiments import executors
from ackclock.input.fields import nearest, shown
from ackclock.system import signals

#: Kinds of clusters: this machine, or a site's batch system by its class in `dask_jobqueue`.
KINDS = {
    "local": None,
    "slurm": "SLURMCluster",
    "pbs": "PBSCluster",
    "sge": "SGECluster",
    "lsf": "LSFCluster",
    "oar": "OARCluster",
    "moab": "MoabCluster",
    "htcondor": "HTCondorCluster",
}

#: Most workers that are started.
MAX_WORKERS = 10_000

#: A scheduler answers within this time, in seconds, or none listens there.
RESPONSE_S = 10.0

#: Time to wait for the first worker of a scheduler, in seconds. The queue of a batch system may take any time.
WORKERS_S = 30.0

#: All workers may be away for so long without a message, in seconds: one that restarts is back by then.
MAX_ABSENCE_S = 5.0

#: Intervals at which workers are counted, in seconds: until the first one comes, and while they work.
POLL_INTERVAL_S, COUNT_S = 0.1, 2.0

#: Largest number of workers that a message names.
MAX_NAMED = 3

#: Message when all workers are lost.
WORKERS_LOST = "all workers are lost; the rest waits until some come back (Ctrl-C keeps what is done)"

_KEPT = "what is done is kept: the same command resumes"

_ADDRESS = re.compile(r"(tcp|tls|ws|wss|ucx)://[^\s/]+:\d{1,5}", re.ASCII)
_STARTED = re.compile(r"([a-z]+):([1-9]\d{0,4})", re.ASCII)

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Target:
    """A scheduler's address; or else a key of `KINDS` and the number of workers to start."""

    address: str = ""
    kind: str = ""
    workers: int = 0

    def __str__(self) -> str:
        return self.address or f"{self.kind}:{self.workers}"

    @property
    def option(self) -> str:
        """The option of the command line that names it."""
        return "--scheduler" if self.address else "--cluster"


def target(scheduler: str | None, cluster: str | None) -> Target | None:
    """Parse the options `--scheduler` and `--cluster`; None without them. Raises `InputError`."""
    if scheduler is not None and cluster is not None:
        raise InputError("--scheduler: found --cluster beside it; expected one of them")
    if scheduler is not None:
        if not _ADDRESS.fullmatch(scheduler):
            expected = 'an address such as "tcp://192.0.2.1:8786"'
            raise InputError(f"--scheduler: found {shown(scheduler)}; expected {expected}")
        return Target(address=scheduler)
    return None if cluster is None else _parsed(cluster)


def _parsed(text: str) -> Target:
    """`slurm:8` → eight workers of that batch system."""
    kind = text.partition(":")[0]
    if kind not in KINDS:
        raise InputError(f"--cluster: found {shown(text)}; expected {nearest(kind, tuple(KINDS))}, with a number")
    match = _STARTED.fullmatch(text)
    if match is None or int(match[2]) > MAX_WORKERS:
        raise InputError(f'--cluster: found {shown(text)}; expected how many workers, such as "{kind}:8"')
    return Target(kind=kind, workers=int(match[2]))


class WorkersWarning(UserWarning):
    """Workers are lost, or back."""


class AbsenceMonitor:
    """Messages on lost workers: a line once all are lost for a while, and another when there are some again."""

    def __init__(self) -> None:
        self._lost_s: float | None = None
        self._is_reported = False

    def message(self, workers: int, now_s: float) -> str | None:
        """Return the message that is due, if any. `workers` are those connected."""
        if workers:
            was_reported, self._is_reported, self._lost_s = self._is_reported, False, None
            return (
                f"{workers} {'worker is' if workers == 1 else 'workers are'} connected again" if was_reported else None
            )
        self._lost_s = now_s if self._lost_s is None else self._lost_s
        if self._is_reported or now_s - self._lost_s < MAX_ABSENCE_S:
            return None
        self._is_reported = True
        return WORKERS_LOST


class DaskExecutor:
    """A connection to a scheduler, through which functions are called on its workers."""

    def __init__(self, client: Any, target: Target) -> None:
        self._client, self._target = client, target
        self._executor = client.get_executor(pure=False)
        self._counted_s, self._slots = -COUNT_S, 1
        self._absence = AbsenceMonitor()

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Call a function of ackclock's on some worker. Every failure is an `AckclockError` of the future."""
        handed: Future[Any] = Future()
        remote = self._executor.submit(call, _core.version, function, *arguments)
        remote.add_done_callback(lambda done: self._hand_over(done, handed))
        handed.add_done_callback(lambda each: remote.cancel() if each.cancelled() else None)
        return handed

    def _hand_over(self, done: Future[Any], handed: Future[Any]) -> None:
        if not handed.set_running_or_notify_cancel():
            return
        if done.cancelled():
            handed.set_exception(self._lost())
        elif (error := done.exception()) is None:
            handed.set_result(done.result())
        elif isinstance(error, AckclockError):
            handed.set_exception(error)
        else:
            handed.set_exception(AckclockError(f"{self._target}: {first_line(error)}; {_KEPT}"))

    @property
    def slots(self) -> int:
        """Number of threads of the connected workers, at least 1. Warns if all workers are lost, or back.

        Raises `AckclockError` without a scheduler.
        """
        now_s = time.monotonic()
        if self._client.status == "closed":
            raise self._lost()
        if now_s - self._counted_s >= COUNT_S:
            threads = self._threads()
            self._counted_s, self._slots = now_s, max(1, sum(threads.values()))
            if message := self._absence.message(len(threads), now_s):
                warnings.warn(f"{self._target}: {message}", WorkersWarning, stacklevel=2)
        return self._slots

    def _lost(self) -> AckclockError:
        return AckclockError(f"{self._target}: the scheduler no longer answers; {_KEPT}")

    def _threads(self) -> dict[str, int]:
        """Return the threads of each worker by its address; none while the scheduler does not answer."""
        if self._client.status != "running":
            return {}
        with suppress(OSError):
            found: dict[str, int] = self._client.nthreads()
            return found
        return {}

    def await_workers(self, until_s: float, interrupted: Callable[[], bool]) -> None:
        """Wait for the first worker. Raises `InputError` if none has come by then."""
        while not interrupted() and not self._threads():
            if time.monotonic() > until_s:
                raise InputError(f"{self._target.option}: found no worker at {self._target}; expected one or more")
            time.sleep(POLL_INTERVAL_S)

    def check(self, engines: Sequence[str]) -> None:
        """Raise `InputError` for workers with another ackclock, or without what an engine needs."""
        found = self._client.run(worker_probe(engines), on_error="return")
        problems = [problem for worker, facts in sorted(found.items()) if (problem := _problem(worker, facts))]
        if problems:
            more = f" (and {len(problems) - MAX_NAMED} more)" if len(problems) > MAX_NAMED else ""
            raise InputError("\n".join(problems[:MAX_NAMED]) + more)


@contextmanager
def opened(
    target: Target, engines: Sequence[str], interrupted: Callable[[], bool] = lambda: False
) -> Iterator[DaskExecutor]:
    """Connect to workers that can run these engines. Workers that are started for it end with the block.

    Raises `InputError` if no scheduler listens, without the extra, and for workers with another ackclock or without
    what an engine needs.
    """
    distributed = _imported(target, "distributed")
    with ExitStack() as stack, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of ports and versions, to a log that nobody reads
        warnings.simplefilter("always", WorkersWarning)
        with signals.block_terminal_signals():
            cluster = stack.enter_context(_started(target)) if target.kind else target.address
            client = _connected(distributed, cluster, target)
        stack.callback(client.close, timeout=1)
        executor = DaskExecutor(client, target)
        executor.await_workers(time.monotonic() + WORKERS_S if target.address else float("inf"), interrupted)
        if not interrupted():
            executor.check(engines)
        yield executor


def _connected(distributed: Any, cluster: Any, target: Target) -> Any:
    try:
        return distributed.Client(cluster, timeout=RESPONSE_S, set_as_default=False)
    except (OSError, ValueError) as error:
        found = f"{target.option}: found no scheduler at {target}"
        raise InputError(f"{found}; expected the address that `dask scheduler` prints") from error


@contextmanager
def _started(target: Target) -> Iterator[Any]:
    """Start workers that end with the block."""
    with ExitStack() as stack:
        stack.enter_context(executors.one_thread())
        if target.kind == "local":
            scratch = stack.enter_context(folders.temporary_folder())
            made = _imported(target, "distributed").LocalCluster(
                n_workers=target.workers,
                threads_per_worker=1,
                memory_limit=0,
                dashboard_address=None,
                local_directory=str(scratch),
                silence_logs=logging.CRITICAL,
            )
        else:
            kind = getattr(_imported(target, "dask_jobqueue"), KINDS[target.kind] or "")
            try:
                made = kind()
            except (ValueError, TypeError) as error:
                found = f"{target.option}: found for {target.kind}: {first_line(error).removesuffix(', for example:')}"
                raise InputError(f"{found}; expected the site's ~/.config/dask/jobqueue.yaml") from error
            made.scale(jobs=target.workers)
        stack.enter_context(signals.cleanup(lambda: _ended(made)))
        yield made


def _ended(cluster: Any) -> None:
    """End workers, and free the named semaphores of their processes."""
    cluster.close(timeout=5)
    gc.collect()


def _imported(target: Target, name: str) -> Any:
    """Import a package of the extra. Raises `InputError` if it is not there."""
    from importlib import import_module

    try:
        found = import_module(name)
    except ImportError as error:
        needs = f"{target.option}: found no package {error.name or name}"
        raise InputError(f"{needs}; expected the extra: pip install 'ackclock[cluster]'") from error
    for quiet in ("distributed", "tornado"):
        logging.getLogger(quiet).setLevel(logging.CRITICAL + 1)
    return found


@contextmanager
def opened_if(target: Target | None, engines: Sequence[str]) -> Iterator[DaskExecutor | None]:
    """Connect as `opened`; without a target yield None, for runs in this process."""
    if target is None:
        yield None
        return
    with opened(target, engines) as executor:
        yield executor


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


def call(version: str, function: Callable[..., _Result], *arguments: Any) -> _Result:
    """Call a function on a worker, unless the worker has another version of ackclock.

    Only this checks a worker that comes when the work is under way. Raises `AckclockError`, or what the function
    raises.
    """
    if _core.version != version:
        from distributed import get_worker

        raise AckclockError(_other_version(str(get_worker().address), _core.version, version))
    for name in executors.ONE_THREAD:
        os.environ.setdefault(name, "1")
    executors.obey(_Cancelled())
    return function(*arguments)


class _Cancelled:
    """Stop request of a worker's threads: set once no client waits for the result of this thread's task."""

    def is_set(self) -> bool:
        """Look the task up in the worker's state."""
        from distributed import get_worker

        worker = get_worker()
        task = worker.state.tasks.get(worker.get_current_task())
        return task is None or task.state == "cancelled"


def _problem(worker: str, facts: Any) -> str | None:
    """Return why a worker is rejected, on one line; None if it is accepted."""
    if isinstance(facts, Exception):
        return f"worker {worker}: {first_line(facts)}"
    found = WorkerFacts(*facts)
    name = f"{worker} ({found.host})"
    if found.version != _core.version:
        return _other_version(name, found.version, _core.version)
    return f"worker {name}: {found.missing}" if found.missing else None


def _other_version(worker: str, found: str | None, wanted: str) -> str:
    return f"worker {worker}: found {f'ackclock {found}' if found else 'no ackclock'}; expected {wanted}, as here"
