"""A task of a sweep, in a local process or on a worker of a cluster: makes some runs, and returns their tables' rows.

A point is checked here, when the first of its runs is dealt out.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import polars as pl

from ackclock import engines, metrics
from ackclock.dataset import Dataset
from ackclock.engines.engine import RunOptions, VectorisedEngine
from ackclock.errors import AckclockError, ScenarioError, UnsupportedError
from ackclock.experiments import executors
from ackclock.experiments.executors import StoppedError
from ackclock.experiments.sweep import spec
from ackclock.experiments.sweep.spec import Run, SweepSpec
from ackclock.metrics import METRICS
from ackclock.plan import Plan

#: Interval at which a run checks whether it shall stop, in seconds: the check takes a lock, and a small run reports
#: its progress a hundred times.
POLL_INTERVAL_S = 0.05

#: Number of plans kept for further runs of their points.
PLANS = 32

#: Number of sweeps whose scenario a worker keeps.
SWEEPS = 4


@dataclass(frozen=True, slots=True)
class Done:
    """Result of a task: rows by table, and the time it took."""

    rows: dict[str, pl.DataFrame]
    elapsed_s: float


def run_task(order: bytes, runs: Sequence[Run]) -> Done:
    """Make some runs of a pickled `SweepSpec`.

    Raises `ScenarioError` and `UnsupportedError` for a wrong point, `AckclockError` for a run that failed.
    """
    begun_s = time.perf_counter()
    if executors.is_stop_requested():
        raise StoppedError
    rows = _worker(order).rows(runs)
    return Done(rows, time.perf_counter() - begun_s)


@lru_cache(SWEEPS)
def _worker(order: bytes) -> Worker:
    return Worker(pickle.loads(order))


class Worker:
    """The scenario, the engine and the last plans of a sweep, kept from task to task."""

    def __init__(self, order: SweepSpec) -> None:
        self._order, self._checked_s = order, -POLL_INTERVAL_S
        self._loaded = order.scenario()
        self._engine = engines.engine(order.engine)
        self._plan = lru_cache(PLANS)(self._planned)

    def rows(self, runs: Sequence[Run]) -> dict[str, pl.DataFrame]:
        """Return the rows of all tables of some runs."""
        found = _KeptRows(self._order)
        for run, data in self._datasets(runs):
            with _naming_run(f"point {run.point}, seed {run.seed}"):
                found.add(run, data)
        return found.rows()

    def _datasets(self, runs: Sequence[Run]) -> Iterator[tuple[Run, Dataset]]:
        options = RunOptions(progress=self._on_progress, samples=self._order.samples)
        if isinstance(self._engine, VectorisedEngine):
            pairs = [(self._plan(run.point), run.seed) for run in runs]
            with _naming_run(f"points {runs[0].point} to {runs[-1].point}"):
                found = self._engine.run_many(pairs, options, jobs=1)  # the other cores have processes of their own
            yield from zip(runs, found, strict=True)
            return
        for run in runs:
            with _naming_run(f"point {run.point}, seed {run.seed}"):
                data = self._engine.run(self._plan(run.point), run.seed, options)
            yield run, data

    def _planned(self, number: int) -> Plan:
        (point,) = self._loaded.points([number])
        return engines.resolve_inputs(self._engine, spec.checked_plan(self._engine, self._order, point))

    def _on_progress(self, share: float) -> None:
        now_s = time.monotonic()
        if now_s - self._checked_s < POLL_INTERVAL_S:
            return
        self._checked_s = now_s
        if executors.is_stop_requested():
            raise StoppedError


class _KeptRows:
    """The rows that are kept of some runs."""

    def __init__(self, order: SweepSpec) -> None:
        self._order = order
        self._runs: list[Run] = []
        self._kept: list[Dataset] = []
        self._metrics: dict[str, list[Any]] = {name: [] for name in order.metrics}

    def add(self, run: Run, data: Dataset) -> None:
        """Keep tables of a run, and its metrics."""
        (view,) = metrics.runs(data)
        for name, values in self._metrics.items():
            values.append(metrics.value(view, name))
        self._kept.append(data.only(self._order.tables))
        self._runs.append(run)

    def rows(self) -> dict[str, pl.DataFrame]:
        """Return the tables with the numbers of run and point, and a row of metrics for each run."""
        numbers = {"run": pl.UInt32, "point": pl.UInt32, "seed": pl.Int64}
        of_runs = {"run": self._numbers, "point": self._points, "seed": [run.seed for run in self._runs]}
        of_metrics = pl.DataFrame({**of_runs, **self._metrics}, schema={**numbers, **_kinds(self._order)})
        together = Dataset.concat(self._kept)
        return {table: self._numbered(together.frame(table)) for table in self._order.tables} | {"runs": of_metrics}

    def _numbered(self, rows: pl.DataFrame) -> pl.DataFrame:
        """With the numbers of run and point in place of a run's number among these."""
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
    return {name: pl.List(pl.Float64) if METRICS[name].per_flow else pl.Float64 for name in order.metrics}


@contextmanager
def _naming_run(which: str) -> Iterator[None]:
    """Name the run that failed, in an error that can be pickled. A wrong point has its own message."""
    try:
        yield
    except (StoppedError, ScenarioError, UnsupportedError):
        raise
    except Exception as error:
        reason = str(error) if isinstance(error, AckclockError) else f"{type(error).__name__}: {error}"
        raise AckclockError(f"{which}: {reason}") from None
