"""A process of a sweep: it is given runs, and gives back the rows of their tables.

Heavy packages are imported at the first task, when `start` has said how.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import parent_process
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any

from ackclock.errors import AckclockError

if TYPE_CHECKING:
    from multiprocessing.synchronize import Event

    import polars as pl

    from ackclock.campaigns.sweep.order import Order
    from ackclock.campaigns.sweep.runs import Run
    from ackclock.dataset import Dataset
    from ackclock.plan import Plan


@dataclass(frozen=True, slots=True)
class Done:
    """What a task gives back: rows by table, how many runs they are of, and how long it took."""

    rows: dict[str, pl.DataFrame]
    count: int
    elapsed_s: float


class StoppedError(Exception):
    """Another run has failed, or the user has had enough."""


#: What this process works on, once it is started.
_given: dict[str, Any] = {}


def start(order: Order, stop: Event) -> None:
    """Called once in each process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent hears it and says what to do
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _given.update(order=order, stop=stop)


def work(runs: Sequence[Run]) -> Done:
    """Runs a task. Raises `AckclockError` for a run that failed."""
    begun_s = time.perf_counter()
    worker: _Worker = _given.setdefault("worker", None) or _Worker(_given["order"], _given["stop"])
    _given["worker"] = worker
    rows = worker.rows(runs)
    return Done(rows, len(runs), time.perf_counter() - begun_s)


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


class _Worker:
    """The scenario, the engine and the last plan, kept from task to task."""

    def __init__(self, order: Order, stop: Event) -> None:
        from ackclock import engines
        from ackclock.scenario import planning

        self._order, self._stop = order, stop
        self._loaded = planning.loads(order.text, order.name).only(order.where).on(order.kernel)
        self._engine = engines.engine(order.engine)
        self._planned: tuple[int, Plan] | None = None

    def rows(self, runs: Sequence[Run]) -> dict[str, pl.DataFrame]:
        """The rows of all tables of some runs."""
        import polars as pl

        parts = [self._of_run(run, data) for run, data in self._datasets(runs)]
        return {table: pl.concat([part[table] for part in parts]) for table in parts[0]}

    def _datasets(self, runs: Sequence[Run]) -> Iterator[tuple[Run, Dataset]]:
        from ackclock.engines.engine import RunOptions

        options = RunOptions(progress=self._heard, samples=self._order.samples)
        many = getattr(self._engine, "run_many", None)
        if many is not None:
            pairs = [(self._plan(run.point), run.seed) for run in runs]
            with _told(f"points {runs[0].point} to {runs[-1].point}"):
                found = many(pairs, options, jobs=1)  # the other cores have processes of their own
            yield from zip(runs, found, strict=True)
            return
        for run in runs:
            with _told(f"point {run.point}, seed {run.seed}"):
                data = self._engine.run(self._plan(run.point), run.seed, options)
            yield run, data

    def _of_run(self, run: Run, data: Dataset) -> dict[str, pl.DataFrame]:
        """The tables that are kept, with the numbers of run and point, and the metrics as a row."""
        import polars as pl

        with _told(f"point {run.point}, seed {run.seed}"):
            numbers = (pl.lit(run.number, pl.UInt32).alias("run"), pl.lit(run.point, pl.UInt32).alias("point"))
            kept = {table: data.frame(table).select(*numbers, pl.exclude("run")) for table in self._order.tables}
            return {**kept, "runs": self._metrics(run, data)}

    def _metrics(self, run: Run, data: Dataset) -> pl.DataFrame:
        import polars as pl

        from ackclock import metrics

        (view,) = metrics.runs(data)
        found = {name: [metrics.value(view, name)] for name in self._order.metrics}
        numbers = {"run": [run.number], "point": [run.point], "seed": [run.seed]}
        return pl.DataFrame({**numbers, **found}, schema=_schema(self._order))

    def _plan(self, point: int) -> Plan:
        from ackclock import engines

        if self._planned is None or self._planned[0] != point:
            self._planned = (point, engines.fed(self._engine, self._loaded.point(point).plan))
        return self._planned[1]

    def _heard(self, share: float) -> None:
        if self._stop.is_set():
            raise StoppedError


def _schema(order: Order) -> dict[str, Any]:
    """Of the rows of metrics."""
    import polars as pl

    from ackclock.metrics import METRICS

    kinds = {name: pl.List(pl.Float64) if METRICS[name].per_flow else pl.Float64 for name in order.metrics}
    return {"run": pl.UInt32, "point": pl.UInt32, "seed": pl.Int64, **kinds}


@contextmanager
def _told(which: str) -> Iterator[None]:
    """Says which run failed; errors of other kinds do not survive the way to the parent."""
    try:
        yield
    except StoppedError:
        raise
    except Exception as error:
        reason = str(error) if isinstance(error, AckclockError) else f"{type(error).__name__}: {error}"
        raise AckclockError(f"{which}: {reason}") from None
