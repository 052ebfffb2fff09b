"""How the flows move: convergence, smoothness, responsiveness (RFC 5166 sections 2.2 and 2.3).

Rates are goodputs seen at the senders, averaged over a window of 20 mean RTTs and at least 1 s, which is longer than
the stalls of a loss recovery and shorter than the transients of interest.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ackclock.metrics.metric import Metric
from ackclock.metrics.view import Array, RunView

#: δ of the δ-fair convergence time: each flow within 30 % of the equal share.
DELTA = 0.3

#: More changes than this in the measured part are ordinary traffic, not sudden changes.
MOST_CHANGES = 20


def convergence_s(view: RunView) -> float | None:
    """δ-fair convergence time with δ = 0.3: how long after the last start all flows first have nearly equal rates.

    From the last start of a flow that lasts to the end of the run until every such flow's rate, over the last 20
    mean RTTs and at least 1 s, is between 1 − δ and 1 + δ times their mean; never less than that window. Looks at the
    whole run, warm-up included. Null with fewer than two such flows or if it never happens. Source: RFC 5166 section
    2.3 after Bansal et al. 2001 (two flows, shares of (1 ± δ)/2); Guillier 2008 (metric δ_f).
    """
    lasting = view.ends_s >= view.duration_s
    chosen = np.isin(view.grid.flows, view.flows["flow"].to_numpy()[lasting])
    if chosen.sum() < 2:
        return None
    last_s, window_s = float(view.starts_s[lasting].max()), window(view)
    rates = view.grid.rates_bps(window_s)[:, chosen]
    fair = np.abs(rates - rates.mean(axis=1, keepdims=True)) <= DELTA * rates.mean(axis=1, keepdims=True)
    after = view.grid.times_s >= last_s + window_s
    found = np.flatnonzero(fair.all(axis=1) & (rates.sum(axis=1) > 0) & after)
    return float(view.grid.times_s[found[0]] - last_s) if found.size else None


def smoothness(view: RunView) -> float | None:
    """Smoothness: the smallest ratio of a flow's windows one RTT apart, averaged over the flows.

    1 for a window that never shrinks, 0.5 for one that halves; the window stands for the sending rate. The RTT is the
    run's mean, and at least one sampling interval. Source: RFC 5166 section 2.2.2 (largest reduction of the sending
    rate in one RTT), Bansal et al. 2001.
    """
    grid = view.grid
    measured = (grid.times_s >= view.warmup_s) & (grid.times_s <= view.duration_s)
    lag = max(1, round(view.rtt_s / grid.interval_s)) if grid.interval_s > 0 and view.rtt_s > 0 else 1
    windows = grid.matrix("cwnd")[measured] if grid.times_s.size else np.empty((0, 0))
    if windows.shape[0] <= lag or windows.shape[1] == 0:
        return None
    ratios = windows[lag:] / np.where(windows[:-lag] > 0, windows[:-lag], np.nan)
    known = ratios[:, ~np.isnan(ratios).all(axis=0)]
    return float(np.mean(np.minimum(1.0, np.nanmin(known, axis=0)))) if known.size else None


def responsiveness_s(view: RunView) -> float | None:
    """Responsiveness: how long the flows need to make, or take, half the room that a sudden change asks for.

    A sudden change is the start or the end of a flow in the measured part, with no other change within a window (20
    mean RTTs, at least 1 s) of it. The flows that stay should come to their equal share of the rate that all had
    before; the value is the time until their total rate over 2 RTTs has gone half the way, averaged over the changes
    that were answered before the next. Null without such a change, or with more than 20 (ordinary traffic). Source:
    after RFC 5166 section 2.2.1 (time until the sending rate is halved).
    """
    changes = _sudden_changes(view)
    if changes.size == 0 or view.grid.times_s.size == 0:
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
    stay = _columns(view, (view.starts_s < at_s) & (view.ends_s > at_s))
    active_after = int(((view.starts_s <= at_s) & (view.ends_s > at_s)).sum())
    grid = view.grid
    row = max(int(np.searchsorted(grid.times_s, at_s)) - 1, 0)
    before = grid.rates_bps(window(view))[row]
    if not stay.any() or before.sum() <= 0:
        return None
    halfway = (before[stay].sum() + before.sum() * stay.sum() / active_after) / 2
    rates = grid.rates_bps(max(2 * view.rtt_s, grid.interval_s))[:, stay].sum(axis=1)
    reached = rates <= halfway if halfway < before[stay].sum() else rates >= halfway
    found = np.flatnonzero(reached & (grid.times_s > at_s) & (grid.times_s <= until_s))
    return float(grid.times_s[found[0]] - at_s) if found.size else None


def _columns(view: RunView, chosen: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    return np.isin(view.grid.flows, view.flows["flow"].to_numpy()[chosen])


METRICS = (
    Metric("convergence_s", "s", "Convergence time (δ-fair)", convergence_s),
    Metric("smoothness", "1", "Smoothness", smoothness),
    Metric("responsiveness_s", "s", "Responsiveness", responsiveness_s),
)
