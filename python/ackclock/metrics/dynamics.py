"""Dynamics of the flows: RFC 5166's response to changes, oscillations and convergence.

Rates are goodputs seen at the senders. Where nothing else is said they are averaged over a window of 20 mean RTTs and
at least 1 s, which is longer than the stalls of a loss recovery and shorter than the transients of interest. Flows
without samples (generated traffic has none by default) take no part.

`responsiveness_at` is responsiveness at given instants. Guillier 2008 studies how a protocol adapts to abrupt changes:
light congestion until T1, heavy until T2, light again until T3, and asks for the responsiveness. She gives no formula.
Ours is control theory's settling time: from the change until the quantity enters a band around its new level and stays
there until the phase's end.
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
from ackclock.metrics.flow_series import delivered_by, goodputs, instants
from ackclock.metrics.metric import Metric
from ackclock.metrics.protocols import Recorded
from ackclock.metrics.rows import ordered
from ackclock.metrics.throughput import rates_between_bps
from ackclock.metrics.view import Array, FlowLifetimes, RunView, flow_lifetimes, runs

#: δ of the δ-fair convergence time: each flow within 30 % of the equal share.
DELTA = 0.3

#: More changes than this in the measured part are ordinary traffic, not sudden changes.
MAX_CHANGES = 20

#: Over how long a rate is averaged where its variation over time is measured, in seconds.
SECOND_S = 1.0


def convergence_s(view: RunView) -> float | None:
    """δ-fair convergence time with δ = 0.3: how long after the last start all flows first have nearly equal rates.

    From the last start of a flow that lasts to the end of the run until every such flow's rate, over the last 20
    mean RTTs and at least 1 s, is between 1 − δ and 1 + δ times their mean; never less than that window. Looks at the
    whole run, warm-up included (of a part of a run: at the part). Null with fewer than two such flows or if it never
    happens. Source: RFC 5166 (convergence) after Bansal et al. 2001 (two flows, shares of (1 ± δ)/2); Guillier 2008
    (metric δ_f).
    """
    lasting = view.sampled.of(view.sampled.ends_s >= view.duration_s)
    if lasting.flows.size < 2:
        return None
    last_s = max(float(lasting.starts_s.max()), view.between[0] if view.between else 0.0)
    for times_s, rates in goodputs(view, lasting.flows, window(view)):
        means = rates.mean(axis=1, keepdims=True)
        fair = (np.abs(rates - means) <= DELTA * means).all(axis=1) & (means[:, 0] > 0)
        result = np.flatnonzero(fair & (times_s >= last_s + window(view)))
        if result.size:
            return float(times_s[result[0]] - last_s)
    return None


def smoothness(view: RunView) -> float | None:
    """Smoothness: the smallest ratio of a flow's windows one RTT apart, averaged over the flows.

    1 for a window that never shrinks, 0.5 for one that halves; the window stands for the sending rate. The RTT is the
    run's mean, and at least one sampling interval. Source: RFC 5166 (largest reduction of the sending rate in one
    RTT), Bansal et al. 2001, Guillier 2008 (smoothness S).
    """
    smallest, _ = view.cached(_extremes)
    valid = smallest[np.isfinite(smallest)]
    return float(np.minimum(1.0, valid).mean()) if valid.size else None


def aggressiveness(view: RunView) -> float | None:
    """Aggressiveness: the largest growth of a flow's window in one RTT, in segments, averaged over the flows.

    1 for Reno in congestion avoidance; as large as the window where there is a slow start in the measured part. The
    RTT is the run's mean, and at least one sampling interval; a window that never grows counts as 0. RFC 5166 and
    Bansal et al. give the growth of the sending rate, in packets per second, in one RTT and in the absence of
    congestion: divide by the RTT. Samples do not tell which RTTs were free of congestion, so all are looked at.
    Source: RFC 5166 (response to changes), Bansal et al. 2001, Guillier 2008 (aggressiveness A).
    """
    _, largest = view.cached(_extremes)
    valid = largest[np.isfinite(largest)]
    return float(np.maximum(0.0, valid).mean()) if valid.size else None


def sd_goodput_time_bps(view: RunView) -> float | None:
    """Standard deviation over time of a flow's goodput, averaged over the flows.

    Over the goodputs of the whole seconds of the measured part in which the flow was there (the population's
    deviation), for flows with at least two; null without such a flow. Source: RFC 5166 (minimising oscillations),
    Guillier 2008 (variance σ).
    """
    result = view.cached(_deviations)
    return None if result is None else float(result[0].mean())


def cov_goodput_time(view: RunView) -> float | None:
    """Coefficient of variation of a flow's goodput over time, averaged over the flows: mean of σ_i / μ_i.

    σ_i and μ_i are the standard deviation (the population's) and the mean of the goodputs of flow i in the whole
    seconds of the measured part in which it was there, for flows with at least two; flows that deliver nothing are
    left out. Guillier 2008 prints a "normalised standard deviation" without its formula or its interval: the mean
    over the flows and the second are our reading. Source: RFC 5166 (minimising oscillations), Guillier 2008 (CoV).
    """
    result = view.cached(_deviations)
    if result is None or not (result[1] > 0).any():
        return None
    deviation, mean = result[0][result[1] > 0], result[1][result[1] > 0]
    return float(np.mean(deviation / mean))


def responsiveness_s(view: RunView) -> float | None:
    """Responsiveness: how long the flows need to make, or take, half the room that a sudden change asks for.

    A sudden change is the start or the end of a flow in the measured part, with no other change within a window (20
    mean RTTs, at least 1 s) of it. The flows that stay should come to their equal share of the rate that all had
    before; the value is the time until their total rate over 2 RTTs has gone half the way, averaged over the changes
    that were answered before the next. Null without such a change, or with more than 20 (ordinary traffic). Source:
    after RFC 5166 (time until the sending rate is halved), Guillier 2008 (responsiveness R). At instants of your
    choice: `ackclock.metrics.responsiveness_at`.
    """
    changes = _sudden_changes(view)
    if changes.size == 0 or not view.sampled.flows.size:
        return None
    answers_s = _response_times_s(view, changes, np.append(changes[1:], view.duration_s))
    return float(np.mean(answers_s)) if answers_s else None


def window(view: RunView) -> float:
    """Return the averaging window of rates in seconds: 20 mean RTTs and at least 1 s."""
    return max(1.0, 20 * view.rtt_s) if view.rtt_s > 0 else 1.0


def _sudden_changes(view: RunView) -> Array:
    margin_s = window(view)
    first_s, last_s = view.warmup_s + margin_s, view.duration_s - margin_s
    instants_s = np.empty(0)
    for block in view.rows("flows").blocks(*FlowLifetimes.COLUMNS):
        result = flow_lifetimes(block)
        instants_s = np.unique(np.concatenate([instants_s, result.starts_s, result.ends_s[np.isfinite(result.ends_s)]]))
        if ((instants_s >= first_s) & (instants_s <= last_s)).sum() > MAX_CHANGES:
            return np.empty(0)
    gaps = np.diff(instants_s, prepend=-np.inf, append=np.inf)
    isolated = (gaps[:-1] >= margin_s) & (gaps[1:] >= margin_s)
    return np.asarray(instants_s[isolated & (instants_s >= first_s) & (instants_s <= last_s)])


def _response_times_s(view: RunView, at_s: Array, until_s: Array) -> list[float]:
    """Return how long after each change the remaining flows had gone half the way to their new share."""
    sampled, valid = view.sampled, view.cached(instants)
    before = _rates_before(view, at_s)
    staying_flows = (sampled.starts_s < at_s[:, None]) & (sampled.ends_s > at_s[:, None])
    active_after = ((sampled.starts_s <= at_s[:, None]) & (sampled.ends_s > at_s[:, None])).sum(axis=1)
    total, staying = before.sum(axis=1), (before * staying_flows).sum(axis=1)
    halfway = (staying + total * staying_flows.sum(axis=1) / np.maximum(active_after, 1)) / 2
    answers_s: dict[int, float] = {}
    window_s = float(np.fmax(valid.interval_s, 2 * view.rtt_s))  # either may be unknown
    if not window_s > 0:
        return []
    for times_s, rates in goodputs(view, sampled.flows, window_s):
        for change in np.flatnonzero(staying_flows.any(axis=1) & (total > 0)):
            rate = rates[:, staying_flows[change]].sum(axis=1)
            reached = rate <= halfway[change] if halfway[change] < staying[change] else rate >= halfway[change]
            result = np.flatnonzero(reached & (times_s > at_s[change]) & (times_s <= until_s[change]))
            if result.size:
                answers_s.setdefault(int(change), float(times_s[result[0]] - at_s[change]))
    return [answers_s[change] for change in sorted(answers_s)]


def _rates_before(view: RunView, at_s: Array) -> Array:
    """Return the rates of the sampled flows (columns) over the window before each instant (rows)."""
    before = np.zeros((at_s.size, view.sampled.flows.size))
    for block, (times_s, rates) in enumerate(goodputs(view, view.sampled.flows, window(view))):
        rows = np.searchsorted(times_s, at_s) - 1
        valid = (rows >= 0) | (block == 0)
        before[valid] = rates[np.maximum(rows[valid], 0)]
    return before


def _extremes(view: RunView) -> tuple[Array, Array]:
    """Return by flow the smallest ratio and the largest growth of windows one RTT apart in the measured part.

    Infinite where there is none.
    """
    smallest, largest = np.empty(0), np.empty(0)
    for flows, before, after in _windows_apart(view):
        first = np.flatnonzero(np.diff(flows.astype(np.int64), prepend=-1))
        places = flows[first].astype(np.intp)
        more = max(0, int(places.max(initial=-1)) + 1 - smallest.size)
        smallest, largest = np.append(smallest, np.full(more, np.inf)), np.append(largest, np.full(more, -np.inf))
        if places.size:
            ratios = np.divide(after, before, out=np.full(after.shape, np.inf), where=before > 0)
            smallest[places] = np.minimum(smallest[places], np.minimum.reduceat(ratios, first))
            largest[places] = np.maximum(largest[places], np.maximum.reduceat(after - before, first))
    return smallest, largest


def _windows_apart(view: RunView) -> Iterator[tuple[Array, Array, Array]]:
    """Yield pairs of a flow's windows one RTT apart in the measured part: flow, earlier and later window; by flow."""
    step_s = view.cached(instants).between(view.warmup_s, view.duration_s).interval_s
    lag = max(1, round(view.rtt_s / step_s)) if step_s > 0 and view.rtt_s > 0 else 1
    flows, windows = np.empty(0, dtype=np.uint32), np.empty(0)
    for block in view.measured("flow_samples").blocks("flow", "cwnd"):
        flows, windows = np.append(flows, block["flow"]), np.append(windows, block["cwnd"])
        order = ordered(flows)
        flows, windows = flows[order], windows[order]
        pairs = (flows[lag:] == flows[:-lag]) & ~np.isnan(windows[lag:]) & ~np.isnan(windows[:-lag])
        yield flows[lag:][pairs], windows[:-lag][pairs], windows[lag:][pairs]
        left = np.append(flows[lag:] != flows[:-lag], np.ones(min(lag, flows.size), dtype=bool))
        flows, windows = flows[left], windows[left]


def _deviations(view: RunView) -> tuple[Array, Array] | None:
    """Return standard deviation and mean over time of each flow's goodput; None without two whole seconds.

    One number a flow and second of its life, so that many short transfers cost no more than a few long ones.
    """
    starts_s, ends_s = view.sampled.starts_s, np.minimum(view.sampled.ends_s, view.duration_s)
    first = np.maximum(np.ceil((starts_s - view.warmup_s) / SECOND_S - 1e-9), 0).astype(np.intp)
    last = np.floor((ends_s - view.warmup_s) / SECOND_S + 1e-9).astype(np.intp)
    kept = np.flatnonzero(last - first >= 2)
    edges = (last - first)[kept] + 1
    if not kept.size:
        return None
    places, flow = np.repeat(kept, edges), np.repeat(np.arange(kept.size), edges)
    number = np.arange(places.size) - np.repeat(np.cumsum(edges) - edges, edges) + first[places]
    bits = 8 * np.diff(delivered_by(view, view.warmup_s + SECOND_S * number, places))
    same = flow[1:] == flow[:-1]
    rates, of = bits[same] / SECOND_S, flow[1:][same]
    means = np.bincount(of, rates) / (edges - 1)
    return np.sqrt(np.bincount(of, (rates - means[of]) ** 2) / (edges - 1)), means


METRICS = (
    Metric("convergence_s", "s", "Convergence time (δ-fair)", convergence_s),
    Metric("smoothness", "1", "Smoothness", smoothness),
    Metric("aggressiveness", "segments", "Aggressiveness", aggressiveness),
    Metric("responsiveness_s", "s", "Responsiveness", responsiveness_s),
    Metric("cov_goodput_time", "1", "Variation over time", cov_goodput_time),
    Metric("sd_goodput_time_bps", "bit/s", "Standard deviation over time", sd_goodput_time_bps),
)


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
