"""Responsiveness at given instants: how long until a changed network is steady again.

Guillier 2008 studies how a protocol adapts to abrupt changes: light congestion until T1, heavy until T2, light again
until T3, and asks for the responsiveness. She gives no formula. Ours is control theory's settling time: from the
change until the quantity enters a band around its new level and stays there until the phase's end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

from ackclock.errors import InputError
from ackclock.input.arguments import checked, number, several
from ackclock.metrics.dynamics import window
from ackclock.metrics.protocols import Recorded
from ackclock.metrics.throughput import rates_between_bps
from ackclock.metrics.view import Array, RunView, runs

#: A phase is cut into this many stretches or more.
MIN_STRETCHES = 10

SCHEMA = {
    "run": pl.UInt32,
    "seed": pl.Int64,
    "at_s": pl.Float64,
    "until_s": pl.Float64,
    "utilisation_s": pl.Float64,
    "queue_s": pl.Float64,
    "jain_s": pl.Float64,
}


@checked(
    instants=several(number(expected="a time in seconds"), "ascending times in seconds, such as [20, 40]"),
    within=number(0, 1, "a share from 0 to 1"),
)
def responsiveness_at(data: Recorded, instants: Sequence[float], within: float = 0.1) -> pl.DataFrame:
    """Return the settling time of utilisation, queue and Jain's index after each instant (s), a row a phase.

    A phase lasts from `at_s` to the next instant, or to the run's end (`until_s`). It is cut into stretches of the
    averaging window (20 mean RTTs, at least 1 s), at least ten. A quantity has settled from the first stretch on whose
    mean, and those of all later ones, are within 10 % (`within`) of the phase's new level: the mean of the stretches in
    its second half, so that the transient is not in it. The value is the time from `at_s` to the start of that stretch,
    0 for an immediate change, and no finer than a stretch; null if the last stretch is not within, or if nothing is
    known. The queue is the bottleneck's backlog; Jain's index is of the sampled flows that are there for a stretch.

    Raises `InputError` for instants that are not ascending and inside the run.
    """
    rows = [row for view in runs(data) for row in _of_run(view, instants, within)]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def steady_from(values: Array, within: float) -> int | None:
    """Return the index from which all values are within a share of the second half's mean; None if the last is not."""
    level = float(np.nanmean(values[values.size // 2 :])) if (~np.isnan(values[values.size // 2 :])).any() else np.nan
    off = np.flatnonzero(~(np.abs(values - level) <= within * abs(level) + 1e-12))
    first = int(off[-1]) + 1 if off.size else 0
    return first if first < values.size else None


def _of_run(view: RunView, instants: Sequence[float], within: float) -> Iterator[tuple[Any, ...]]:
    bounds = np.array([*instants, view.duration_s], dtype=float)
    if not instants or bounds[0] < 0 or (np.diff(bounds) <= 0).any():
        expected = f"ascending times from 0 s to {view.duration_s:g} s"
        raise InputError(f"instants: found {list(instants)}; expected {expected}")
    for at_s, until_s in pairwise(bounds):
        phase = replace(view, between=(float(at_s), float(until_s)), _cache={})
        count = max(MIN_STRETCHES, int((until_s - at_s) / window(view)))
        edges_s = np.linspace(at_s, until_s, count + 1)
        series = (_sampled(phase, "utilisation", edges_s), _sampled(phase, "backlog_p", edges_s), _jain(phase, edges_s))
        result = (steady_from(values, within) for values in series)
        times_s = [None if first is None else float(edges_s[first] - at_s) for first in result]
        yield (view.run, view.seed, float(at_s), float(until_s), *times_s)


def _sampled(view: RunView, column: str, edges_s: Array) -> Array:
    """Return the mean of a column of the bottleneck's samples in each interval, whose end is included."""
    sums, counts = np.zeros(edges_s.size - 1), np.zeros(edges_s.size - 1)
    for block in view.measured("queue_samples").blocks(column):
        places = np.searchsorted(edges_s, block["time_s"] - 1e-9, side="right") - 1
        inside = (places >= 0) & (places < edges_s.size - 1) & ~np.isnan(block[column])
        sums += np.bincount(places[inside], block[column][inside], edges_s.size - 1)
        counts += np.bincount(places[inside], minlength=edges_s.size - 1)
    return np.asarray(np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0))


def _jain(view: RunView, edges_s: Array) -> Array:
    """Return Jain's index of the goodputs in each interval (NaN where nothing was delivered)."""
    rates = rates_between_bps(view, edges_s)
    squares = (~np.isnan(rates)).sum(axis=1) * np.nansum(rates**2, axis=1)
    result = np.divide(np.nansum(rates, axis=1) ** 2, squares, out=np.full(squares.shape, np.nan), where=squares > 0)
    return np.asarray(result)
