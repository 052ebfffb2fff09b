"""How the flows move: RFC 5166's response to changes, oscillations and convergence.

Rates are goodputs seen at the senders. Where nothing else is said they are averaged over a window of 20 mean RTTs and
at least 1 s, which is longer than the stalls of a loss recovery and shorter than the transients of interest. Flows
without samples (generated traffic has none by default) take no part.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from ackclock.metrics.metric import Metric
from ackclock.metrics.view import Array, Grid, RunView

#: δ of the δ-fair convergence time: each flow within 30 % of the equal share.
DELTA = 0.3

#: More changes than this in the measured part are ordinary traffic, not sudden changes.
MOST_CHANGES = 20

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
    lasting = view.sampled & (view.ends_s >= view.duration_s)
    if lasting.sum() < 2:
        return None
    grid, window_s = view.grid_of(lasting), window(view)
    last_s = max(float(view.starts_s[lasting].max()), view.between[0] if view.between else 0.0)
    rates = grid.rates_bps(window_s)[:, _columns(view, grid, lasting)]
    fair = np.abs(rates - rates.mean(axis=1, keepdims=True)) <= DELTA * rates.mean(axis=1, keepdims=True)
    after = grid.times_s >= last_s + window_s
    found = np.flatnonzero(fair.all(axis=1) & (rates.sum(axis=1) > 0) & after)
    return float(grid.times_s[found[0]] - last_s) if found.size else None


def smoothness(view: RunView) -> float | None:
    """Smoothness: the smallest ratio of a flow's windows one RTT apart, averaged over the flows.

    1 for a window that never shrinks, 0.5 for one that halves; the window stands for the sending rate. The RTT is the
    run's mean, and at least one sampling interval. Source: RFC 5166 (largest reduction of the sending rate in one
    RTT), Bansal et al. 2001, Guillier 2008 (smoothness S).
    """
    pairs = view.once(_windows_apart).filter(pl.col("before") > 0)
    smallest = pairs.group_by("flow").agg((pl.col("cwnd") / pl.col("before")).min().alias("ratio"))["ratio"]
    return float(np.minimum(1.0, smallest.to_numpy()).mean()) if smallest.len() else None


def aggressiveness(view: RunView) -> float | None:
    """Aggressiveness: the largest growth of a flow's window in one RTT, in segments, averaged over the flows.

    1 for Reno in congestion avoidance; as large as the window where there is a slow start in the measured part. The
    RTT is the run's mean, and at least one sampling interval; a window that never grows counts as 0. RFC 5166 and
    Bansal et al. give the growth of the sending rate, in packets per second, in one RTT and in the absence of
    congestion: divide by the RTT. Samples do not tell which RTTs were free of congestion, so all are looked at.
    Source: RFC 5166 (response to changes), Bansal et al. 2001, Guillier 2008 (aggressiveness A).
    """
    pairs = view.once(_windows_apart)
    largest = pairs.group_by("flow").agg((pl.col("cwnd") - pl.col("before")).max().alias("growth"))["growth"]
    return float(np.maximum(0.0, largest.to_numpy()).mean()) if largest.len() else None


def sd_goodput_time_bps(view: RunView) -> float | None:
    """Standard deviation over time of a flow's goodput, averaged over the flows.

    Over the goodputs of the whole seconds of the measured part in which the flow was there (the population's
    deviation), for flows with at least two; null without such a flow. Source: RFC 5166 (minimising oscillations),
    Guillier 2008 (variance σ).
    """
    found = _deviations(view)
    return None if found is None else float(found[0].mean())


def cov_goodput_time(view: RunView) -> float | None:
    """Coefficient of variation of a flow's goodput over time, averaged over the flows: mean of σ_i / μ_i.

    σ_i and μ_i are the standard deviation (the population's) and the mean of the goodputs of flow i in the whole
    seconds of the measured part in which it was there, for flows with at least two; flows that deliver nothing are
    left out. Guillier 2008 prints a "normalised standard deviation" without its formula or its interval: the mean
    over the flows and the second are our reading. Source: RFC 5166 (minimising oscillations), Guillier 2008 (CoV).
    """
    found = _deviations(view)
    if found is None or not (found[1] > 0).any():
        return None
    deviation, mean = found[0][found[1] > 0], found[1][found[1] > 0]
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
    if changes.size == 0 or not view.sampled.any():
        return None
    ends = np.append(changes[1:], view.duration_s)
    answers = [_answer_s(view, float(at), float(until)) for at, until in zip(changes, ends, strict=True)]
    times_s = [answer for answer in answers if answer is not None]
    return float(np.mean(times_s)) if times_s else None


def window(view: RunView) -> float:
    """The averaging window of rates in seconds: 20 mean RTTs and at least 1 s."""
    return max(1.0, 20 * view.rtt_s) if view.rtt_s > 0 else 1.0


def _sudden_changes(view: RunView) -> Array:
    margin_s = window(view)
    instants = np.unique(np.concatenate([view.starts_s, view.ends_s[np.isfinite(view.ends_s)]]))
    gaps = np.diff(instants, prepend=-np.inf, append=np.inf)
    alone = (gaps[:-1] >= margin_s) & (gaps[1:] >= margin_s)
    inside = (instants >= view.warmup_s + margin_s) & (instants <= view.duration_s - margin_s)
    if inside.sum() > MOST_CHANGES:
        return np.empty(0)
    return np.asarray(instants[alone & inside])


def _answer_s(view: RunView, at_s: float, until_s: float) -> float | None:
    """How long after a change the flows that stay had gone half the way to their new share; None if they did not."""
    grid = view.grid
    stay = _columns(view, grid, (view.starts_s < at_s) & (view.ends_s > at_s))
    active_after = int(_columns(view, grid, (view.starts_s <= at_s) & (view.ends_s > at_s)).sum())
    row = max(int(np.searchsorted(grid.times_s, at_s)) - 1, 0)
    before = grid.rates_bps(window(view))[row]
    if not stay.any() or before.sum() <= 0:
        return None
    halfway = (before[stay].sum() + before.sum() * stay.sum() / active_after) / 2
    rates = grid.rates_bps(max(2 * view.rtt_s, grid.interval_s))[:, stay].sum(axis=1)
    reached = rates <= halfway if halfway < before[stay].sum() else rates >= halfway
    found = np.flatnonzero(reached & (grid.times_s > at_s) & (grid.times_s <= until_s))
    return float(grid.times_s[found[0]] - at_s) if found.size else None


def _columns(view: RunView, grid: Grid, chosen: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    return np.isin(grid.flows, view.flows["flow"].to_numpy()[chosen])


def _windows_apart(view: RunView) -> pl.DataFrame:
    """Pairs of a flow's windows one RTT apart in the measured part: `flow`, `before`, `cwnd`."""
    samples = view.measured_samples.select("time_s", "flow", "cwnd")
    ordered = samples if samples["time_s"].is_sorted() else samples.sort("time_s")
    interval = ordered["time_s"].unique(maintain_order=True).diff().median()
    step_s = float(interval) if isinstance(interval, (int, float)) else 0.0
    lag = max(1, round(view.rtt_s / step_s)) if step_s > 0 and view.rtt_s > 0 else 1
    pairs = ordered.select("flow", "cwnd", pl.col("cwnd").shift(lag).over("flow").alias("before"))
    return pairs.drop_nulls()


def _deviations(view: RunView) -> tuple[Array, Array] | None:
    """Standard deviation and mean over time of the goodput of each flow with two whole seconds; None without one.

    One number a flow and second of its life, so that many short transfers cost no more than a few long ones.
    """
    starts_s, ends_s = view.starts_s[view.sampled], np.minimum(view.ends_s[view.sampled], view.duration_s)
    first = np.maximum(np.ceil((starts_s - view.warmup_s) / SECOND_S - 1e-9), 0).astype(np.intp)
    last = np.floor((ends_s - view.warmup_s) / SECOND_S + 1e-9).astype(np.intp)
    kept = np.flatnonzero(last - first >= 2)
    edges = (last - first)[kept] + 1
    if not kept.size:
        return None
    places, flow = np.repeat(kept, edges), np.repeat(np.arange(kept.size), edges)
    number = np.arange(places.size) - np.repeat(np.cumsum(edges) - edges, edges) + first[places]
    bits = 8 * np.diff(view.delivered_at(view.warmup_s + SECOND_S * number, places))
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
