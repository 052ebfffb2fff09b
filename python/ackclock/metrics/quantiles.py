"""Exact quantiles of values that come in blocks, in the memory of a block, whatever their number.

The values are counted in bins, then those of the bin that holds the wanted one, until few enough are left to be sorted:
Munro and Paterson 1980 (selection with limited storage, a few passes over the data).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[np.float64]

#: The values, from the first, each time that they are asked for.
Values: TypeAlias = Callable[[], Iterator[Array]]

#: In how many bins values are counted.
BINS = 1 << 12


#: Maximum number of values sorted at a time.
MAX_SORTED = 1 << 18


def quantile(values: Values, share: float, max_sorted: int = MAX_SORTED) -> float | None:
    """Return the value that this share does not exceed, linear between two; None without values."""
    count, low, high = _span(values)
    if count <= max_sorted:
        return float(np.quantile(np.concatenate(list(values())), share)) if count else None
    place = share * (count - 1)
    before = _ranked(values, int(place), low, high, count, max_sorted)
    if place == int(place):
        return before
    upto, after = 0, np.inf
    for block in values():
        upto += int((block <= before).sum())
        after = min(after, block[block > before].min(initial=np.inf))
    return before if upto >= int(place) + 2 else before + (float(after) - before) * (place % 1)


def ranked(values: Values, rank: int, max_sorted: int = MAX_SORTED) -> float:
    """Return the value with this rank, from 0."""
    count, low, high = _span(values)
    return _ranked(values, rank, low, high, count, max_sorted)


def _span(values: Values) -> tuple[int, float, float]:
    """Return the number of values, the least and the greatest."""
    count, low, high = 0, np.inf, -np.inf
    for block in values():
        count += block.size
        low, high = min(low, block.min(initial=np.inf)), max(high, block.max(initial=-np.inf))
    return count, float(low), float(high)


def _ranked(values: Values, rank: int, low: float, high: float, count: int, max_sorted: int) -> float:
    """Return the value with this rank, from 0, among the `count` from `low` to `high`, both included."""
    if low == high:
        return low
    if count <= max_sorted:
        return float(np.partition(np.concatenate([_inside(block, low, high) for block in values()]), rank)[rank])
    edges = np.append(np.unique(np.linspace(low, high, BINS)), np.inf)
    counts = np.zeros(edges.size - 1, dtype=np.int64)
    for block in values():
        counts += np.histogram(_inside(block, low, high), edges)[0]
    upto = np.cumsum(counts)
    result = int(np.searchsorted(upto, rank, side="right"))
    top = min(float(np.nextafter(edges[result + 1], -np.inf)), high)
    return _ranked(
        values, rank - int(upto[result] - counts[result]), float(edges[result]), top, int(counts[result]), max_sorted
    )


def _inside(block: Array, low: float, high: float) -> Array:
    return block[(block >= low) & (block <= high)]
