"""A process of a sweep: it is given runs, and gives back the rows of their tables.

Heavy packages are imported when it gets `ready`, after `start` has said how.
"""

from __future__ import annotations

import os
import pickle
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from multiprocessing import parent_process
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any

from ackclock.errors import AckclockError
from ackclock.system import signals

if TYPE_CHECKING:
    from multiprocessing.synchronize import Event

    import polars as pl

    from ackclock.dataset import Dataset
    from ackclock.experiments.cluster.remote import Unwanted
    from ackclock.experiments.sweep.runs import Run
    from ackclock.experiments.sweep.spec import SweepSpec
    from ackclock.plan import Plan


@dataclass(frozen=True, slots=True)
class Done:
    """Result of a task: rows by table, the number of runs, and the time it took."""

    rows: dict[str, pl.DataFrame]
    count: int
    elapsed_s: float


class StoppedError(Exception):
    """Another run has failed, or the user has had enough."""


#: A run looks so often whether it shall stop, in seconds: to ask takes a lock, and a small run tells a hundred times
#: how far it is.
POLL_INTERVAL_S = 0.05

#: Number of plans kept for further runs of their points.
PLANS = 32

#: State of this process, set by `start`.
_given: dict[str, Any] = {}


def start(order: SweepSpec, stop: Event) -> None:
    """Called once in each process."""
    signals.install_handlers(silent=True)  # SIGTERM; the parent handles the others and prints what to do
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _given.update(order=order, stop=stop)


def ready() -> None:
    """Imports what runs need, and reads the scenario."""
    from ackclock import metrics  # noqa: F401

    _worker()


def work(runs: Sequence[Run]) -> Done:
    """Runs a task. Raises `AckclockError` for a run that failed."""
    begun_s = time.perf_counter()
    if _given["stop"].is_set():
        raise StoppedError
    rows = _worker().rows(runs)
    return Done(rows, len(runs), time.perf_counter() - begun_s)


def run_task(order: bytes, runs: Sequence[Run]) -> Done:
    """Runs a task of a sweep on a worker of a cluster. Raises `AckclockError` for a run that failed."""
    begun_s = time.perf_counter()
    rows = _worker_of(order).rows(runs)
    return Done(rows, len(runs), time.perf_counter() - begun_s)


#: A worker of a cluster keeps so many sweeps in mind.
SWEEPS = 4


@lru_cache(SWEEPS)
def _worker_of(order: bytes) -> _Worker:
    from ackclock.experiments.cluster.remote import Unwanted

    return _Worker(pickle.loads(order), Unwanted())


def _worker() -> _Worker:
    """Return the worker of this process."""
    if "worker" not in _given:
        _given["worker"] = _Worker(_given["order"], _given["stop"])
    worker: _Worker = _given["worker"]
    return worker


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


class _Worker:
    """The scenario, the engine and the last plans, kept from task to task."""

    def __init__(self, order: SweepSpec, stop: Event | Unwanted) -> None:
        from ackclock import engines

        self._order, self._stop, self._looked_s = order, stop, -POLL_INTERVAL_S
        self._loaded = order.scenario()
        self._engine = engines.engine(order.engine)
        self._plan = lru_cache(PLANS)(self._planned)

    def rows(self, runs: Sequence[Run]) -> dict[str, pl.DataFrame]:
        """The rows of all tables of some runs."""
        found = _KeptRows(self._order)
        for run, data in self._datasets(runs):
            with _naming_run(f"point {run.point}, seed {run.seed}"):
                found.add(run, data)
        return found.rows()

    def _datasets(self, runs: Sequence[Run]) -> Iterator[tuple[Run, Dataset]]:
        from ackclock.engines.engine import RunOptions

        options = RunOptions(progress=self._on_progress, samples=self._order.samples)
        if self._engine.vectorised:
            pairs = [(self._plan(run.point), run.seed) for run in runs]
            with _naming_run(f"points {runs[0].point} to {runs[-1].point}"):
                found = self._engine.run_many(pairs, options, jobs=1)  # the other cores have processes of their own
            yield from zip(runs, found, strict=True)
            return
        for run in runs:
            with _naming_run(f"point {run.point}, seed {run.seed}"):
                data = self._engine.run(self._plan(run.point), run.seed, options)
            yield run, data

    def _planned(self, point: int) -> Plan:
        from ackclock import engines

        return engines.resolve_inputs(self._engine, self._order.plan(self._loaded.point(point)))

    def _on_progress(self, share: float) -> None:
        now_s = time.monotonic()
        if now_s - self._looked_s < POLL_INTERVAL_S:
            return
        self._looked_s = now_s
        if self._stop.is_set():
            raise StoppedError


class _KeptRows:
    """Rows that are kept of some runs."""

    def __init__(self, order: SweepSpec) -> None:
        self._order = order
        self._runs: list[Run] = []
        self._kept: list[Dataset] = []
        self._metrics: dict[str, list[Any]] = {name: [] for name in order.metrics}

    def add(self, run: Run, data: Dataset) -> None:
        """Keeps tables of a run, and its metrics."""
        from ackclock import metrics

        (view,) = metrics.runs(data)
        for name, values in self._metrics.items():
            values.append(metrics.value(view, name))
        self._kept.append(data.only(self._order.tables))
        self._runs.append(run)

    def rows(self) -> dict[str, pl.DataFrame]:
        """The tables with the numbers of run and point, and a row of metrics for each run."""
        import polars as pl

        from ackclock.dataset import Dataset

        numbers = {"run": pl.UInt32, "point": pl.UInt32, "seed": pl.Int64}
        of_runs = {"run": self._numbers, "point": self._points, "seed": [run.seed for run in self._runs]}
        metrics = pl.DataFrame({**of_runs, **self._metrics}, schema={**numbers, **_kinds(self._order)})
        together = Dataset.concat(self._kept)
        return {table: self._numbered(together.frame(table)) for table in self._order.tables} | {"runs": metrics}

    def _numbered(self, rows: pl.DataFrame) -> pl.DataFrame:
        """With the numbers of run and point in place of a run's number among these."""
        import polars as pl

        run, point = (pl.Series(of, dtype=pl.UInt32).gather(rows["run"]) for of in (self._numbers, self._points))
        return rows.with_columns(run.alias("run")).insert_column(1, point.alias("point"))

    @property
    def _numbers(self) -> list[int]:
        return [run.number for run in self._runs]

    @property
    def _points(self) -> list[int]:
        return [run.point for run in self._runs]


def _kinds(order: SweepSpec) -> dict[str, Any]:
    """The types of metrics."""
    import polars as pl

    from ackclock.metrics import METRICS

    return {name: pl.List(pl.Float64) if METRICS[name].per_flow else pl.Float64 for name in order.metrics}


@contextmanager
def _naming_run(which: str) -> Iterator[None]:
    """Says which run failed; errors of other kinds do not survive the way to the parent."""
    try:
        yield
    except StoppedError:
        raise
    except Exception as error:
        reason = str(error) if isinstance(error, AckclockError) else f"{type(error).__name__}: {error}"
        raise AckclockError(f"{which}: {reason}") from None
