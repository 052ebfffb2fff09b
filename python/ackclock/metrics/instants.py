"""Means over the flows at each instant that was sampled."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ackclock.metrics.rows import Column
from ackclock.metrics.view import Array, RunView


@dataclass(frozen=True, slots=True)
class Instants:
    """Sample times (s, ascending), and the means over the flows that were sampled then (NaN where none is known)."""

    times_s: Array
    cwnd: Array
    srtt_s: Array

    def between(self, low_s: float, high_s: float) -> Instants:
        """Those from one time to another, both included."""
        chosen = slice(np.searchsorted(self.times_s, low_s), np.searchsorted(self.times_s, high_s, side="right"))
        return Instants(self.times_s[chosen], self.cwnd[chosen], self.srtt_s[chosen])

    @property
    def interval_s(self) -> float:
        """The usual time between samples; NaN with fewer than two."""
        return float(np.median(np.diff(self.times_s))) if self.times_s.size > 1 else float("nan")


def instants(view: RunView) -> Instants:
    """The instants of all flow samples, warm-up included."""
    times_s, cwnd, srtt_s = [np.empty(0)], [np.empty(0)], [np.empty(0)]
    for block in view.rows("flow_samples").blocks("cwnd", "srtt_s"):
        if block.size:
            first = np.flatnonzero(np.diff(block["time_s"], prepend=-np.inf) > 0)
            times_s.append(block["time_s"][first])
            cwnd.append(mean_of_each(block["cwnd"], first))
            srtt_s.append(mean_of_each(block["srtt_s"], first))
    return Instants(*map(_joined, (times_s, cwnd, srtt_s)))


def _joined(parts: list[Array]) -> Array:
    """The parts as one; they are given up, for there may be many instants."""
    whole = np.concatenate(parts)
    parts.clear()
    return whole


def mean_of_each(values: Column, first: Column) -> Array:
    """The mean of the values from each of these places to the next, without NaN; NaN where nothing is left."""
    missing = np.isnan(values)
    sums = np.add.reduceat(np.where(missing, 0.0, values), first)
    counts = np.add.reduceat(~missing, first, dtype=np.int64)
    return np.asarray(np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0))
