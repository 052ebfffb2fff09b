"""Series of the sampled flows: means over the flows at each instant, and bytes delivered at any instant.

All go through the samples once, a block at a time, and carry over what the next block needs: each flow's last sample,
or those of a window.

Used by the metrics of windows and goodput over time, and by the curves of figures.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ackclock.metrics.rows import Block, Column, ordered, sampling_interval_s
from ackclock.metrics.view import Array, FlowLifetimes, RunView


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


Places = npt.NDArray[np.intp]


def delivered_at(view: RunView, times_s: Array) -> Array:
    """Return bytes acknowledged at each instant by the `sampled` flows (instants × flows): see `delivered_by`."""
    count = view.sampled.flows.size
    every = delivered_by(view, np.repeat(times_s, count), np.tile(np.arange(count), times_s.size))
    return every.reshape(times_s.size, count)


def delivered_by(view: RunView, times_s: Array, places: Places) -> Array:
    """Return bytes acknowledged at each instant by the sampled flow in that place.

    Linear between the flow's start, its samples and, if it has one, its end; 0 before, constant afterwards.
    """
    result, pending = np.zeros(times_s.size), np.argsort(times_s, kind="stable")
    valid = _Points.starts(view.sampled)
    for points, until_s in _points(view):
        valid = valid.with_later(points)
        due = pending[: np.searchsorted(times_s[pending], until_s)]
        result[due], is_final = valid.at(times_s[due], places[due])
        left = np.ones(pending.size, dtype=bool)
        left[: due.size] = ~is_final
        pending, valid = pending[left], valid.last()
    return result


def _points(view: RunView) -> Iterator[tuple[_Points, float]]:
    """Yield the samples and ends of the sampled flows, and until when they are complete; at last infinity."""
    rows, sampled = view.rows("flow_samples"), view.sampled
    ends, since_s = _Points.ends(sampled), -np.inf
    for block in rows.blocks("flow", "delivered_bytes"):
        until_s = np.inf if rows.is_small else float(block["time_s"][-1])
        due = (ends.times_s > since_s) & (ends.times_s <= until_s)
        yield _Points.samples(block, sampled).with_later(ends.of(due)), until_s
        since_s = until_s
    if since_s < np.inf:
        yield ends.of(ends.times_s > since_s), np.inf


@dataclass(frozen=True, slots=True)
class _Points:
    """Points of the curves of several flows, by flow (its place among the sampled ones) and time."""

    places: Places
    times_s: Array
    values: Array

    @staticmethod
    def starts(sampled: FlowLifetimes) -> _Points:
        """Return zero bytes at the start of each flow."""
        return _Points(np.arange(sampled.flows.size), sampled.starts_s, np.zeros(sampled.flows.size))

    @staticmethod
    def ends(sampled: FlowLifetimes) -> _Points:
        """Return all bytes at the end of those that end."""
        valid = np.flatnonzero(np.isfinite(sampled.ends_s) & ~np.isnan(sampled.delivered_bytes))
        return _Points(valid, sampled.ends_s[valid], sampled.delivered_bytes[valid])

    @staticmethod
    def samples(block: Block, sampled: FlowLifetimes) -> _Points:
        valid = np.flatnonzero(~np.isnan(block["delivered_bytes"]))
        order = valid[ordered(block["flow"][valid])]
        places = np.searchsorted(sampled.flows, block["flow"][order])
        return _Points(places, block["time_s"][order], block["delivered_bytes"][order])

    def of(self, chosen: npt.NDArray[np.bool_] | Places) -> _Points:
        return _Points(self.places[chosen], self.times_s[chosen], self.values[chosen])

    def with_later(self, other: _Points) -> _Points:
        """Join these points and others; of equal times these come first."""
        if not other.places.size:
            return self
        joined = _Points(
            np.concatenate([self.places, other.places]),
            np.concatenate([self.times_s, other.times_s]),
            np.concatenate([self.values, other.values]),
        )
        return joined.of(np.lexsort((joined.times_s, joined.places)))

    def last(self) -> _Points:
        """Return the last point of each flow."""
        return self.of(np.flatnonzero(np.diff(self.places, append=-1)))

    def at(self, times_s: Array, places: Places) -> tuple[Array, npt.NDArray[np.bool_]]:
        """Return the curves `places` at `times_s`, and whether a later point makes the value final."""
        if not times_s.size:
            return np.empty(0), np.empty(0, dtype=bool)
        span_s = float(max(self.times_s.max(), times_s.max())) + 1.0
        result = np.searchsorted(self.places * span_s + self.times_s, places * span_s + times_s, side="right")
        before, after = result - 1, np.minimum(result, self.values.size - 1)
        is_between = self.places[after] == places
        gap_s = np.where(is_between, self.times_s[after] - self.times_s[before], 0.0)
        share = np.divide(times_s - self.times_s[before], gap_s, out=np.zeros_like(gap_s), where=gap_s > 0)
        reached = self.values[before] + share * (self.values[after] - self.values[before])
        begun = (before >= 0) & (self.places[before] == places)
        return np.where(begun, reached, 0.0), is_between & (result < self.values.size)


def goodputs(view: RunView, flows: npt.NDArray[np.uint32], window_s: float) -> Iterator[tuple[Array, Array]]:
    """Yield in blocks sample times of these ascending flows, and their goodput (times × flows).

    In bit/s over the last `window_s`, shorter at the start of the run, and since the sample before if that is earlier;
    from samples of what was acknowledged. There are no samples while there is no flow.
    """
    tolerance_s = window_s * 1e-9
    before_s, before = np.zeros(1), np.zeros((1, flows.size))
    for block in view.rows("flow_samples").blocks("flow", "delivered_bytes"):
        times_s, sofar = _matrix(block, flows, before[-1:])
        every_s, every = np.concatenate([before_s, times_s]), np.concatenate([before, sofar])
        earlier = np.arange(before_s.size, every_s.size) - 1
        opened_s = times_s - window_s
        first = np.minimum(np.searchsorted(every_s, opened_s - tolerance_s), earlier)
        previous = np.maximum(first - 1, 0)
        opened_idle = (every_s[previous] <= opened_s) & (every[previous] == every[first]).all(axis=1)
        since_s = np.where(opened_idle & (opened_s < every_s[first] - tolerance_s), opened_s, every_s[first])
        span_s = (times_s - since_s)[:, None]
        bits = 8 * (sofar - every[first])
        yield times_s, np.divide(bits, span_s, out=np.zeros_like(bits), where=span_s > 0)
        opening = int(np.searchsorted(every_s[:-1], every_s[-1] - window_s - tolerance_s))
        kept = slice(max(0, opening - 1), None)  # with the sample before the window
        before_s, before = every_s[kept], every[kept]


def _matrix(block: Block, flows: npt.NDArray[np.uint32], before: Array) -> tuple[Array, Array]:
    """Return the sample times in a block, and the bytes delivered by then; `before` is the row before."""
    columns = np.minimum(np.searchsorted(flows, block["flow"]), max(flows.size - 1, 0))
    chosen = np.flatnonzero(flows[columns] == block["flow"]) if flows.size else np.empty(0, dtype=np.intp)
    at_s = block["time_s"][chosen]
    opens = np.diff(at_s, prepend=-np.inf) > 0
    rows = np.cumsum(opens) - 1
    sofar = np.full((int(opens.sum()) + 1, flows.size), np.nan)
    sofar[0] = before[0] if before.size else 0.0
    sofar[rows + 1, columns[chosen]] = block["delivered_bytes"][chosen]
    if not np.isnan(sofar).any():
        return at_s[opens], sofar[1:]
    valid = np.where(np.isnan(sofar), 0, np.arange(sofar.shape[0])[:, None])
    last = np.maximum.accumulate(valid, axis=0)
    return at_s[opens], np.take_along_axis(sofar, last, axis=0)[1:]
