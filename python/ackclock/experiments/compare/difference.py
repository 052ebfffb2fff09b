"""The difference of two engines' means with its 95 % interval.

Welch's interval: it supposes neither that the runs of both vary alike nor that they are pairs. Runs with the same seed
do share their starts and transfers where both engines draw them, but not what becomes of them, so a pairing would
promise more than it holds. A result without chance in it (of a deterministic model) has one run, and its mean is
exact: what is left is Student's interval of the other. One run of something that draws has no interval: it is null.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ackclock.metrics.summary import student_quantile


@dataclass(frozen=True, slots=True)
class Sample:
    """One metric's values over the runs of an engine; `exact` if chance has no part in them."""

    values: Sequence[float]
    exact: bool = False

    @property
    def mean(self) -> float:
        """Their mean; there must be a value."""
        return math.fsum(self.values) / len(self.values)

    @property
    def variance_of_mean(self) -> float | None:
        """s²/n; 0 for an exact value, None if one run is all there is."""
        if (n := len(self.values)) == 1:
            return 0.0 if self.exact else None
        return math.fsum((value - self.mean) ** 2 for value in self.values) / (n - 1) / n


@dataclass(frozen=True, slots=True)
class Difference:
    """The second mean minus the first, and its 95 % interval (null if there is none)."""

    mean: float
    ci95_low: float | None
    ci95_high: float | None


def difference(first: Sample, second: Sample) -> Difference | None:
    """Return the difference of two samples; None if either is empty."""
    if not first.values or not second.values:
        return None
    mean = second.mean - first.mean
    half = half_width(first, second)
    return Difference(mean, None if half is None else mean - half, None if half is None else mean + half)


def half_width(first: Sample, second: Sample) -> float | None:
    """Half of Welch's interval (B. L. Welch, Biometrika 34, 1947, with Satterthwaite's degrees of freedom)."""
    variances = first.variance_of_mean, second.variance_of_mean
    if variances[0] is None or variances[1] is None:
        return None
    total = variances[0] + variances[1]
    if total == 0:
        return 0.0
    parts = zip(variances, (len(first.values), len(second.values)), strict=True)
    freedom = total**2 / math.fsum(variance**2 / (n - 1) for variance, n in parts if variance)
    return student_quantile(freedom) * math.sqrt(total)
