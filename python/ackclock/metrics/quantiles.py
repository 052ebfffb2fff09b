"""Exact quantiles of values that come in blocks, and the Kaplan–Meier estimate of right-censored times.

Both need the memory of a block, whatever the number of values. They are counted in bins, then those of the bin that
holds the wanted one, until few enough are left to be sorted: Munro and Paterson 1980 (selection with limited storage, a
few passes over the data).

A transfer that is under way when the run ends has taken at least as long as it was watched. To leave it out makes the
mean too small, for it is the long ones that do not end: Braud 2016 section 7.4.1 calls those that do the lucky ones.
The estimate (Kaplan and Meier 1958) uses each transfer for as long as it was watched. It assumes that censoring is
independent of how much longer a transfer would have taken, as the end of a run is.

Used by the metrics of completion times, slowdowns and distributions, and by `rows`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
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


#: Function that yields in blocks how long each was watched, and whether it ended then.
Watched: TypeAlias = Callable[[], Iterable[tuple[Array, npt.NDArray[np.bool_]]]]


def kaplan_meier(times_s: Array, ended: npt.NDArray[np.bool_]) -> tuple[Array, Array]:
    """Return the ascending times of ends, and the estimated share that lasts longer than each.

    `times_s` is how long each was watched, `ended` whether it ended then. S(t) = Π (1 − d_i / n_i) over t_i ≤ t, with
    d_i that ended at t_i out of n_i still watched just before.
    """
    at_s, ends = np.unique(times_s[ended], return_counts=True)
    watched = times_s.size - np.searchsorted(np.sort(times_s), at_s, side="left")
    return at_s, np.asarray(np.cumprod(1 - ends / watched), dtype=np.float64)


def restricted_mean(watched: Watched) -> float | None:
    """Return the area under the estimate up to the longest time watched; None without values."""
    spans = _spans(watched)
    longest_s = max((float(times_s.max()) for times_s, _ in watched() if times_s.size), default=None)
    if longest_s is None:
        return None
    sums_s = _of_spans(watched, spans.cut_s, lambda times_s: times_s)
    return float(sums_s @ spans.weights + spans.lasting[-1] * longest_s)


def median(watched: Watched) -> float | None:
    """Return the first time that no more than half outlast; None if more than half outlast all times watched."""
    spans = _spans(watched)
    reached = np.flatnonzero(spans.lasting[1:] <= 0.5 + 1e-12)
    if not reached.size:
        return None
    number = int(reached[0])
    min_deaths = (spans.lasting[number] - 0.5 - 1e-12) / spans.weights[number]
    rank = max(1, math.ceil(min_deaths)) - 1
    return ranked(lambda: _ended_in(watched, spans.cut_s, number), rank)


def ended_by(watched: Watched, at_s: Array) -> Array:
    """Return the estimated share that has ended by each of these ascending times."""
    spans, shares = _spans(watched), np.zeros(at_s.size + 1)
    for times_s, ended in watched():
        done_s = times_s[ended]
        weights = spans.weights[np.searchsorted(spans.cut_s, done_s)]
        shares += np.bincount(np.searchsorted(at_s, done_s), weights, shares.size)
    return np.asarray(np.cumsum(shares)[:-1])


@dataclass(frozen=True, slots=True)
class _Spans:
    """The time divided at the moments `cut_s` of censoring.

    In a span all that end weigh the same: the share that lasts to its start, over those still watched then. So a span
    needs no more than counts, and the times need not be sorted (Efron 1967, redistribution to the right).
    """

    cut_s: Array
    lasting: Array
    weights: Array


def _spans(watched: Watched) -> _Spans:
    cuts = [np.unique(times_s[~ended], return_counts=True) for times_s, ended in watched()]
    cut_s, places = np.unique(np.concatenate([np.empty(0), *(times_s for times_s, _ in cuts)]), return_inverse=True)
    cut = np.bincount(places, np.concatenate([np.empty(0), *(counts for _, counts in cuts)]), cut_s.size)
    ended = _of_spans(watched, cut_s, np.ones_like)
    left = ended.sum() + cut.sum() - np.cumsum(np.append(0.0, ended[:-1] + cut))
    shares = np.divide(left - ended, left, out=np.ones_like(left), where=left > 0)
    lasting = np.cumprod(np.append(1.0, shares))
    return _Spans(cut_s, lasting, np.divide(lasting[:-1], left, out=np.zeros_like(left), where=left > 0))


def _of_spans(watched: Watched, cut_s: Array, what: Callable[[Array], Array]) -> Array:
    """Sum a function of the times that ended in each span."""
    result = np.zeros(cut_s.size + 1)
    for times_s, ended in watched():
        done_s = times_s[ended]
        result += np.bincount(np.searchsorted(cut_s, done_s), what(done_s), result.size)
    return result


def _ended_in(watched: Watched, cut_s: Array, number: int) -> Iterator[Array]:
    for times_s, ended in watched():
        done_s = times_s[ended]
        yield done_s[np.searchsorted(cut_s, done_s) == number]
