"""Curves thinned while samples are read: their memory does not depend on the number of samples.

Of many samples only some instants are kept: of each stretch of so many, the first and the last, and those at which a
curve or the sum of all is lowest and highest. What is kept was sampled at one time, so sums over the curves are right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ackclock.metrics.view import Array, Rows

#: Values that are kept of all curves together; a million are 8 MB.
CELLS = 2 << 20

#: Up to this many curves each keep their extremes; of more only their sum does: they are drawn as a cloud.
FEW = 16

#: Values above which a distribution is counted in `BINS` equal bins instead of being sorted.
SORTED = 1 << 18

#: Bins between the smallest and the greatest value, many times what an axis can show.
BINS = 1 << 16

#: Instants (T), and a matrix of T × curves with NaN where there is no sample.
Matrix: TypeAlias = tuple[Array, Array]


def of_flows(rows: Rows, flows: npt.NDArray[np.uint32], instants: int, column: str) -> Matrix:
    """Return a column of the samples of ascending flows as curves, thinned if the instants are many."""
    return thinned(_matrices(rows, flows, column), instants, flows.size)


def _matrices(rows: Rows, flows: npt.NDArray[np.uint32], column: str) -> Iterator[Matrix]:
    for block in rows.blocks("flow", column):
        times_s = block["time_s"][np.diff(block["time_s"], prepend=-np.inf) > 0]
        matrix = np.full((times_s.size, flows.size), np.nan)
        matrix[np.searchsorted(times_s, block["time_s"]), np.searchsorted(flows, block["flow"])] = block[column]
        yield times_s, matrix


def thinned(result: Iterable[Matrix], instants: int, curves: int) -> Matrix:
    """Keep some of the instants of curves that come in blocks in the order of time."""
    each = 2 * curves + 4 if curves <= FEW else 4
    stretch = 1 if instants * curves <= CELLS else -(-instants * each * curves // CELLS)
    parts = [kept(times_s, matrix, stretch) for times_s, matrix in _stretches(result, stretch)]
    if not parts:
        return np.empty(0), np.empty((0, curves))
    return np.concatenate([times_s for times_s, _ in parts]), np.concatenate([matrix for _, matrix in parts])


def distribution(values: Callable[[], Iterable[Array]]) -> Matrix:
    """Return ascending values and the share at or below each, of values that come in blocks.

    Of many, the values are the upper ends of bins, at which the shares are exact.
    """
    count, low, high = 0, np.inf, -np.inf
    for block in values():
        count, low, high = count + block.size, min(low, block.min(initial=low)), max(high, block.max(initial=high))
    if count <= SORTED or low == high:
        ascending = np.sort(np.concatenate([np.empty(0), *values()]), kind="stable")
        return ascending, np.arange(1, ascending.size + 1) / max(ascending.size, 1)
    edges = np.linspace(low, high, BINS)
    counts = np.zeros(BINS)
    for block in values():
        counts += np.bincount(np.searchsorted(edges, block), minlength=BINS)
    return edges[counts > 0], (np.cumsum(counts) / count)[counts > 0]


def _stretches(result: Iterable[Matrix], stretch: int) -> Iterator[Matrix]:
    """Regroup blocks into whole stretches; the rest comes at the end."""
    rest: Matrix | None = None
    for times_s, matrix in result:
        if rest is not None:
            times_s, matrix = np.concatenate([rest[0], times_s]), np.concatenate([rest[1], matrix])  # noqa: PLW2901
        complete = times_s.size - times_s.size % stretch
        if complete:
            yield times_s[:complete], matrix[:complete]
        rest = times_s[complete:], matrix[complete:]
    if rest is not None and rest[0].size:
        yield rest


def kept(times_s: Array, matrix: Array, stretch: int) -> Matrix:
    """Select the instants to keep of whole stretches, or of less than one: their ends, and where a curve is extreme."""
    if stretch == 1 or not times_s.size:
        return times_s, matrix
    stretch = min(stretch, times_s.size)
    first = np.arange(0, times_s.size, stretch)
    rows = [first, first + stretch - 1]
    total = np.nansum(matrix, axis=1)
    for curve in (total, *(matrix.T if matrix.shape[1] <= FEW else ())):
        for extreme, nothing in ((np.argmin, np.inf), (np.argmax, -np.inf)):
            valid = np.where(np.isnan(curve), nothing, curve)
            rows.append(first + extreme(valid.reshape(-1, stretch), axis=1))
    chosen = np.unique(np.concatenate(rows))
    return times_s[chosen], matrix[chosen]
