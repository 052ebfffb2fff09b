"""Oscillation of the window: period, peaks and troughs of the mean window over the flows.

The curve is the mean of the congestion windows of the flows sampled at each time of the measured part. A *peak* is a
maximum that stands out: on both sides the curve falls by at least a third of its range (between the 5th and the 95th
percentile) and a hundredth of its mean before it rises above the peak or ends. So a sawtooth and a cubic have one peak
a cycle, and neither the noise of many flows nor the steps of whole segments make more. A *trough* is the lowest value
between two successive peaks. The thresholds are ours.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ackclock.metrics.flow_series import instants
from ackclock.metrics.metric import Metric
from ackclock.metrics.view import Array, RunView

#: Minimum prominence of a peak: this share of the range of the curve …
MIN_PROMINENCE = 1 / 3

#: … and this share of its mean: a curve that is flat but for rounding has no peaks.
MIN_SWING = 0.01

#: Quantiles that bound the range of the curve, so that a single slow start or timeout does not set it.
RANGE = (0.05, 0.95)

#: With fewer peaks there is no period to speak of.
MIN_PEAKS = 3


@dataclass(frozen=True, slots=True)
class Swings:
    """Times and heights of the peaks (P), and the troughs between them (P − 1)."""

    times_s: Array
    peaks: Array
    troughs: Array


def swings(view: RunView) -> Swings | None:
    """Return the peaks and troughs of the mean window of a run; None with fewer than three peaks."""
    curve = view.cached(instants).between(view.warmup_s, view.duration_s)
    times_s, windows = curve.times_s, curve.cwnd
    if (missing := np.isnan(windows)).any():
        times_s, windows = times_s[~missing], windows[~missing]
    if windows.size < MIN_PEAKS:
        return None
    low, high = np.quantile(windows, RANGE)
    min_prominence = max(MIN_PROMINENCE * float(high - low), MIN_SWING * float(windows.mean()))
    result = prominent_peaks(windows, max(min_prominence, np.finfo(float).tiny))
    if result.size < MIN_PEAKS:
        return None
    troughs = np.minimum.reduceat(windows[: result[-1]], result[:-1])
    return Swings(times_s[result], windows[result], troughs)


def cwnd_period_s(view: RunView) -> float | None:
    """Period of the window: mean time between successive peaks of the mean window over the flows.

    A peak is a maximum on both sides of which the curve falls by at least a third of its range (5th to 95th
    percentile) and a hundredth of its mean. Null with fewer than three peaks. Of one flow, or of flows that lose
    together, this is the time between losses; of many that do not, their mean hardly swings, and what is left may be
    chance. Belhareth 2014 (section 2.4.2) compares "the frequency of oscillations" by eye; the definition is ours.
    """
    result = view.cached(swings)
    return None if result is None else float(np.diff(result.times_s).mean())


def cwnd_peak(view: RunView) -> float | None:
    """Height of the window's peaks: mean over the peaks of the mean window over the flows, in segments.

    Peaks as in cwnd_period_s; null with fewer than three. With cwnd_trough, the amplitude that Belhareth 2014 (section
    2.4.2) compares by eye.
    """
    result = view.cached(swings)
    return None if result is None else float(result.peaks.mean())


def cwnd_trough(view: RunView) -> float | None:
    """Depth of the window's troughs: mean of the lowest values between successive peaks, in segments.

    Of the mean window over the flows; peaks as in cwnd_period_s; null with fewer than three. A timeout, or a recovery
    that shrinks the window for a moment, counts as it is.
    """
    result = view.cached(swings)
    return None if result is None else float(result.troughs.mean())


METRICS = (
    Metric("cwnd_period_s", "s", "Period of the window", cwnd_period_s),
    Metric("cwnd_peak", "segments", "Peaks of the window", cwnd_peak),
    Metric("cwnd_trough", "segments", "Troughs of the window", cwnd_trough),
)


Places = npt.NDArray[np.intp]


def prominent_peaks(curve: Array, minimum: float) -> Places:
    """Return the places of inner maxima with a prominence of `minimum` or more; of a plateau its middle.

    The prominence is how far the curve falls on both sides before it rises above the maximum or ends: the lesser fall
    counts. A single pass with a stack on each side, so that the cost is that of reading the curve.
    """
    result = _maxima(curve)
    if not result.size:
        return result
    heights = curve[result]
    left = _lowest_since_higher(heights, np.minimum.reduceat(curve[: result[-1]], np.append(0, result[:-1])))
    behind = np.minimum.reduceat(curve, result)
    right = _lowest_since_higher(heights[::-1], behind[::-1])[::-1]
    return result[heights - np.maximum(left, right) >= minimum]


def _maxima(curve: Array) -> Places:
    """Return where the curve is higher than before and after; of several equal values in a row the middle."""
    first = np.flatnonzero(np.diff(curve, prepend=np.nan) != 0)
    last = np.append(first[1:], curve.size) - 1
    steps = np.diff(curve[first])
    inner = np.flatnonzero((steps[:-1] > 0) & (steps[1:] < 0)) + 1
    return np.asarray((first[inner] + last[inner]) // 2)


def _lowest_since_higher(heights: Array, lows: Array) -> Array:
    """Return for each maximum the lowest value since the curve was higher."""
    result: list[float] = []
    stack: list[tuple[float, float]] = []
    for height, low in zip(heights.tolist(), lows.tolist(), strict=True):
        lowest = low
        while stack and stack[-1][0] <= height:
            lowest = min(lowest, stack.pop()[1])
        stack.append((height, lowest))
        result.append(lowest)
    return np.array(result)
