"""Tracking of CUBIC's curve by its window, where `[record] cubic_state = true` recorded its state.

An epoch of a flow is a stretch of samples with the same curve: the same origin and K. The curve is the greater of
W_cubic(t) and W_est, which is where RFC 9438 wants the window. Belhareth 2014 section 5.5.2 finds that Linux runs ahead
of it: flows leave the plateau at W_max after 0.8 s of 1.35, which is a root cause of synchronised losses.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

from ackclock.metrics.protocols import Recorded
from ackclock.metrics.rows import Array, Column
from ackclock.metrics.view import RunView, runs

COLUMNS: dict[str, Any] = {
    "flow": pl.UInt32,
    "start_s": pl.Float64,
    "w_max": pl.Float64,
    "k_s": pl.Float64,
    "plateau_s": pl.Float64,
    "tracking_error": pl.Float64,
}
SCHEMA: dict[str, Any] = {"run": pl.UInt32, "seed": pl.Int64, **COLUMNS}


def epochs(view: RunView) -> pl.DataFrame:
    """Return `cubic_epochs` of one run."""
    samples = view.measured("cubic_samples").frame().sort("flow", "time_s", maintain_order=True)
    changes = pl.any_horizontal(pl.col(name).ne_missing(pl.col(name).shift()) for name in ("flow", "origin", "k_s"))
    numbered = samples.with_columns(changes.cum_sum().alias("epoch"))
    result = [_epoch(cell) for cell in numbered.partition_by("epoch", maintain_order=True)] if samples.height else []
    return pl.DataFrame(result, schema=COLUMNS, orient="row")


def cubic_epochs(data: Recorded, between: tuple[float, float] | None = None) -> pl.DataFrame:
    """Return a row for each flow's CUBIC epoch in the measured part: its plateau, and the distance from the curve.

    `run`, `seed`, `flow`; `start_s` (its first sample), `w_max` (the flat of the curve, segments), `k_s`;
    `plateau_s`, from there to a segment more (null: not reached), which takes the curve ∛(1/C), 1.36 s for C = 0.4, and
    twice that where whole segments are rounded towards the flat; and `tracking_error`, the mean distance from the
    curve, |cwnd − max(W_cubic(t), W_est)|, in segments. `between` looks at a part of each run (seconds). Source:
    Belhareth 2014 sections 5.5.1 and 5.5.2.
    """
    frames = [pl.DataFrame(schema=SCHEMA), *_of_runs(data, between)]
    return pl.concat(frames)


def _of_runs(data: Recorded, between: tuple[float, float] | None) -> Iterator[pl.DataFrame]:
    for view in runs(data, between):
        run, seed = pl.lit(view.run, pl.UInt32).alias("run"), pl.lit(view.seed, pl.Int64).alias("seed")
        yield view.cached(epochs).select(run, seed, *COLUMNS)


def _epoch(cell: pl.DataFrame) -> tuple[object, ...]:
    flow, start_s, origin, k_s = _first(cell)
    error = float(_off(*(cell[name].to_numpy() for name in _OFF)).mean())
    return flow, start_s, origin, k_s, _plateau_s(cell, origin), error


def _first(cell: pl.DataFrame) -> tuple[int, float, float, float]:
    first = cell.row(0, named=True)
    return first["flow"], first["time_s"], first["origin"], first["k_s"]


def _plateau_s(cell: pl.DataFrame, origin: float) -> float | None:
    times_s, cwnd = cell["time_s"].to_numpy(), cell["cwnd"].to_numpy()
    if not times_s.size or cwnd[0] >= origin:
        return None  # it was there before the epoch was seen
    at, above = (np.flatnonzero(cwnd >= level) for level in (origin, origin + 1))
    return float(times_s[above[0]] - times_s[at[0]]) if above.size else None


#: Columns of the distance from the curve.
_OFF = ("cwnd", "w_cubic", "w_est")


def _off(cwnd: Column, w_cubic: Column, w_est: Column) -> Array:
    return np.abs(np.asarray(cwnd - np.maximum(w_cubic, w_est), dtype=np.float64))
