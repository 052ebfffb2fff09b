"""A connection to a cluster, through which functions are called on its workers.

A worker that is lost is replaced by another one, and what it had not given back is called again there. Nothing is kept
on the workers.
"""

from __future__ import annotations

import gc
import logging
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

from ackclock import _core
from ackclock.dataset import folders
from ackclock.errors import AckclockError, InputError, first_line
from ackclock.experiments import runner
from ackclock.experiments.cluster import remote
from ackclock.experiments.cluster.remote import WorkerFacts
from ackclock.experiments.cluster.target import KINDS, Place
from ackclock.system import signals

#: A scheduler answers within this time, or nobody listens there.
RESPONSE_S = 10.0

#: A scheduler that has no workers is waited for so long. The queue of a batch system may take any time.
WORKERS_S = 30.0

#: All workers may be away for so long without a word: one that is started anew is back by then.
MAX_ABSENCE_S = 5.0

#: It is looked so often how many workers there are, while they come and while they work.
POLL_INTERVAL_S, COUNT_S = 0.1, 2.0

#: Largest number of workers that a message names.
MAX_NAMED = 3


class Watched(UserWarning):
    """Messages on workers that are lost or back."""


class Watch:
    """Messages on lost workers: a line once all are lost for a while, and another when there are some again."""

    def __init__(self) -> None:
        self._gone_s: float | None = None
        self._said = False

    def line(self, workers: int, now_s: float) -> str | None:
        """Return the message that is due, if any. `workers` are those connected."""
        if workers:
            said, self._said, self._gone_s = self._said, False, None
            return f"{workers} {'worker is' if workers == 1 else 'workers are'} there again" if said else None
        self._gone_s = now_s if self._gone_s is None else self._gone_s
        if self._said or now_s - self._gone_s < MAX_ABSENCE_S:
            return None
        self._said = True
        return WORKERS_LOST


#: Message when all workers are lost.
WORKERS_LOST = "all workers are lost; the rest waits until some come back (Ctrl-C keeps what is done)"


class Pool:
    """A connection. `submit` as of an executor, `places` as many calls go on at a time."""

    def __init__(self, client: Any, place: Place) -> None:
        self._client, self._place = client, place
        self._executor = client.get_executor(pure=False)
        self._counted_s, self._places = -COUNT_S, 1
        self._watch = Watch()

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Calls a function of ackclock's on some worker. All that goes wrong is an `AckclockError` of the future's."""
        found: Future[Any] = Future()
        there = self._executor.submit(remote.called, _core.version, function, *arguments)
        there.add_done_callback(lambda done: self._hand_over(done, found))
        return found

    def _hand_over(self, done: Future[Any], found: Future[Any]) -> None:
        if done.cancelled():
            found.set_exception(self._lost())
        elif (error := done.exception()) is None:
            found.set_result(done.result())
        elif isinstance(error, AckclockError):
            found.set_exception(error)
        else:
            found.set_exception(AckclockError(f"{self._place}: {first_line(error)}; {KEPT}"))

    @property
    def places(self) -> int:
        """Threads of the workers that are there now, and at least one. Raises `AckclockError` without a scheduler."""
        now_s = time.monotonic()
        if self._client.status == "closed":
            raise self._lost()
        if now_s - self._counted_s >= COUNT_S:
            threads = self._threads()
            self._counted_s, self._places = now_s, max(1, sum(threads.values()))
            if line := self._watch.line(len(threads), now_s):
                warnings.warn(f"{self._place}: {line}", Watched, stacklevel=2)
        return self._places

    def check_workers(self) -> None:
        """Says a line if all workers are gone, or back. Raises `AckclockError` without a scheduler."""
        _ = self.places

    def _lost(self) -> AckclockError:
        """The scheduler has gone."""
        return AckclockError(f"{self._place}: the scheduler no longer answers; {KEPT}")

    def _threads(self) -> dict[str, int]:
        """By the workers' addresses; none while the scheduler does not answer."""
        if self._client.status != "running":
            return {}
        with suppress(OSError):
            found: dict[str, int] = self._client.nthreads()
            return found
        return {}

    def await_workers(self, until_s: float, interrupted: Callable[[], bool]) -> None:
        """Waits for the first worker. Raises `InputError` if none has come by then."""
        while not interrupted() and not self._threads():
            if time.monotonic() > until_s:
                raise InputError(f"{self._place.option}: found no worker at {self._place}; expected one or more")
            time.sleep(POLL_INTERVAL_S)

    def check(self, engines: Sequence[str]) -> None:
        """Raises `InputError` for workers with another ackclock, or without what an engine needs."""
        found = self._client.run(remote.worker_probe(engines), on_error="return")
        problems = [problem for worker, seen in sorted(found.items()) if (problem := _problem(worker, seen))]
        if problems:
            more = f" (and {len(problems) - MAX_NAMED} more)" if len(problems) > MAX_NAMED else ""
            raise InputError("\n".join(problems[:MAX_NAMED]) + more)


KEPT = "what is done is kept: the same command resumes"


@contextmanager
def opened(place: Place, engines: Sequence[str], interrupted: Callable[[], bool] = lambda: False) -> Iterator[Pool]:
    """A connection, whose workers are able to run these engines. What is started for it ends with the block.

    Raises `InputError` if nobody listens, without the extra, and for workers with another ackclock or without what an
    engine needs.
    """
    distributed = _imported(place, "distributed")
    with ExitStack() as stack, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of ports and versions, to a log that nobody reads
        warnings.simplefilter("always", Watched)
        with signals.block_terminal_signals():
            cluster = stack.enter_context(_started(place)) if place.kind else place.address
            client = _connected(distributed, cluster, place)
        stack.callback(client.close, timeout=1)
        pool = Pool(client, place)
        pool.await_workers(time.monotonic() + WORKERS_S if place.address else float("inf"), interrupted)
        if not interrupted():
            pool.check(engines)
        yield pool


def _connected(distributed: Any, cluster: Any, place: Place) -> Any:
    try:
        return distributed.Client(cluster, timeout=RESPONSE_S, set_as_default=False)
    except (OSError, ValueError) as error:
        found = f"{place.option}: found no scheduler at {place}"
        raise InputError(f"{found}; expected the address that `dask scheduler` prints") from error


@contextmanager
def _started(place: Place) -> Iterator[Any]:
    """Workers that are there for this alone."""
    with ExitStack() as stack:
        if place.kind == "local":
            scratch = stack.enter_context(folders.temporary_folder())
            made = _imported(place, "distributed").LocalCluster(
                n_workers=place.workers,
                threads_per_worker=1,
                memory_limit=0,
                dashboard_address=None,
                local_directory=str(scratch),
                silence_logs=logging.CRITICAL,
            )
        else:
            kind = getattr(_imported(place, "dask_jobqueue"), KINDS[place.kind] or "")
            try:
                made = kind()
            except (ValueError, TypeError) as error:
                found = f"{place.option}: found for {place.kind}: {first_line(error).removesuffix(', for example:')}"
                raise InputError(f"{found}; expected the site's ~/.config/dask/jobqueue.yaml") from error
            made.scale(jobs=place.workers)
        stack.enter_context(signals.cleanup(lambda: _ended(made)))
        yield made


def _ended(cluster: Any) -> None:
    """Ends workers, and what is named of the processes that they were."""
    cluster.close(timeout=5)
    gc.collect()


def _imported(place: Place, name: str) -> Any:
    """A package of the extra. Raises `InputError` if it is not there."""
    from importlib import import_module

    try:
        found = import_module(name)
    except ImportError as error:
        needs = f"{place.option}: found no package {error.name or name}"
        raise InputError(f"{needs}; expected the extra: pip install 'ackclock[cluster]'") from error
    for quiet in ("distributed", "tornado"):
        logging.getLogger(quiet).setLevel(logging.CRITICAL + 1)
    return found


def _problem(worker: str, seen: Any) -> str | None:
    """Return why a worker is rejected, on one line; None if it is accepted."""
    if isinstance(seen, Exception):
        return f"worker {worker}: {first_line(seen)}"
    found = WorkerFacts(*seen)
    name = f"{worker} ({found.host})"
    if found.version != _core.version:
        return remote.other_version(name, found.version, _core.version)
    return f"worker {name}: {found.missing}" if found.missing else None


@contextmanager
def running_at(place: Place | None, engines: Sequence[str]) -> Iterator[None]:
    """In this block `running.run` has its runs made at a place, or without one here. Raises as `opened`."""
    if place is None:
        yield
        return
    with opened(place, engines) as pool, runner.remote(pool):
        yield
