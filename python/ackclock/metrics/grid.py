"""Flow samples as matrices."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from ackclock.metrics.rows import Array, sampling_interval_s


@dataclass(frozen=True)
class Grid:
    """Flow samples on a grid: `times_s` (T), `flows` (F), and matrices of T × F with NaN where there is no sample."""

    times_s: Array
    flows: npt.NDArray[np.uint32]
    _rows: npt.NDArray[np.intp]
    _columns: npt.NDArray[np.intp]
    _samples: pl.DataFrame

    @staticmethod
    def of(samples: pl.DataFrame) -> Grid:
        """Return the grid that holds all the samples of one run."""
        times, flows = samples["time_s"], samples["flow"]
        grid_times, rows = _ranked(times)
        grid_flows, columns = _ranked(flows)
        return Grid(grid_times, grid_flows, rows, columns, samples)

    def matrix(self, column: str) -> Array:
        """Return a column of `flow_samples` as a T × F matrix."""
        matrix = np.full((self.times_s.size, self.flows.size), np.nan)
        matrix[self._rows, self._columns] = self._samples[column].cast(pl.Float64).to_numpy()
        return matrix

    @cached_property
    def delivered_bytes(self) -> Array:
        """Return bytes acknowledged so far; 0 before a flow's first sample, the last value after its last."""
        return _filled(self.matrix("delivered_bytes"))

    @property
    def interval_s(self) -> float:
        """Return the median time between samples."""
        return sampling_interval_s(self.times_s)

    def rates_bps(self, window_s: float) -> Array:
        """Return each flow's goodput over the `window_s` before each sample time (shorter at the start)."""
        first = np.searchsorted(self.times_s, self.times_s - window_s * (1 + 1e-9))
        span = self.times_s - self.times_s[first]
        bits = 8 * (self.delivered_bytes - self.delivered_bytes[first])
        return np.divide(bits, span[:, None], out=np.zeros_like(bits), where=span[:, None] > 0)


def _ranked(series: pl.Series) -> tuple[npt.NDArray[Any], npt.NDArray[np.intp]]:
    """Return the distinct values in ascending order, and the place of each row's value among them."""
    values, result = series.unique().sort().to_numpy(), series.to_numpy()
    if result.size and np.issubdtype(result.dtype, np.integer) and int(values[-1]) < 4 * result.size:
        places = np.empty(int(values[-1]) + 1, dtype=np.intp)
        places[values] = np.arange(values.size)
        return values, places[result]
    if np.all(result[1:] >= result[:-1]):
        return values, np.cumsum(np.diff(result, prepend=result[:1]) > 0)
    return values, np.searchsorted(values, result)


def _filled(matrix: Array) -> Array:
    valid = np.where(np.isnan(matrix), -1, np.arange(matrix.shape[0])[:, None])
    last = np.maximum.accumulate(valid, axis=0)
    return np.where(last < 0, 0.0, np.take_along_axis(matrix, np.maximum(last, 0), axis=0))
