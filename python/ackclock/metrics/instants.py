"""Means over the flows at each sampled instant."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ackclock.metrics.rows import Column, sampling_interval_s
from ackclock.metrics.view import Array, RunView


@dataclass(frozen=True, slots=True)
class Instants:
    """Sample times (s, ascending), and the mean window of the flows sampled then (NaN where none is known)."""

    times_s: Array
    cwnd: Array

    def between(self, low_s: float, high_s: float) -> Instants:
        """Return the instants from one time to another, both included."""
        chosen = slice(np.searchsorted(self.times_s, low_s), np.searchsorted(self.times_s, high_s, side="right"))
        return Instants(self.times_s[chosen], self.cwnd[chosen])

    @property
    def interval_s(self) -> float:
        """Return the median time between samples; NaN with fewer than two."""
        return sampling_interval_s(self.times_s)


def instants(view: RunView) -> Instants:
    """Return the instants of all flow samples, warm-up included."""
    times_s, cwnd = [np.empty(0)], [np.empty(0)]
    for sampled_s, means in mean_by_instant(view, "cwnd"):
        times_s.append(sampled_s)
        cwnd.append(means)
    return Instants(_joined(times_s), _joined(cwnd))


def mean_by_instant(view: RunView, column: str) -> Iterator[tuple[Array, Array]]:
    """Yield instants of flow samples and the means of a column over the flows, in blocks."""
    for block in view.rows("flow_samples").blocks(column):
        if block.size:
            first = np.flatnonzero(np.diff(block["time_s"], prepend=-np.inf) > 0)
            yield block["time_s"][first], mean_of_each(block[column], first)


def _joined(parts: list[Array]) -> Array:
    """Join the parts; each is released once it has been copied, since there may be many instants."""
    merged = np.empty(sum(part.size for part in parts))
    end = merged.size
    while parts:
        part = parts.pop()
        merged[end - part.size : end] = part
        end -= part.size
    return merged


def mean_of_each(values: Column, first: Column) -> Array:
    """Return the mean of the values from each of these places to the next, without NaN; NaN where none is left."""
    missing = np.isnan(values)
    sums = np.add.reduceat(np.where(missing, 0.0, values), first)
    counts = np.add.reduceat(~missing, first, dtype=np.int64)
    return np.asarray(np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0))
