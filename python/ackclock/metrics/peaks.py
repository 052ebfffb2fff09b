"""Peaks of a curve that stand out."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ackclock.metrics.rows import Array

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
