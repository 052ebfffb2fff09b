"""Fairness between flows: RFC 5166's metrics.

The shares are the flows' goodputs while they were there: a transfer's payload in the measured part over the time in
it before the transfer was over, so that a short transfer is judged by its rate and not by its size. TCP flows only.

Max-min and proportional fairness are properties of an allocation. At one bottleneck, among flows that would take all
they can get, both are had by equal shares and by no others; so what is measured here is how far the flows are from
equal shares, in each property's own terms. Where flows cross different bottlenecks, equal shares are not what either
asks for, and the numbers say how equal the rates are and no more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from ackclock.metrics.metric import Metric
from ackclock.metrics.throughput import rates_by_block_bps
from ackclock.metrics.view import Array, RunView


def jain(view: RunView) -> float | None:
    """Jain's fairness index of the flows' goodputs: 1 when all are equal, 1/n when one has everything.

    (Σx)² / (n Σx²) over the flows that were there in the measured part, x being a flow's goodput while it was there;
    null if nothing was delivered. Source: Jain, Chiu, Hawe 1984 (DEC TR-301); RFC 5166 (fairness between flows).
    """
    result = view.cached(_spread)
    return None if result is None else result.jain


def max_min_fairness(view: RunView) -> float | None:
    """Max-min fairness: the smallest goodput over the equal share: 1 when all are equal, 0 when a flow gets nothing.

    min x / mean x, x as in Jain's index; a max-min fair allocation makes the smallest share as large as can be, which
    at one bottleneck is the equal share. With different bottlenecks it is no distance from the max-min fair
    allocation. Null if nothing was delivered. Source: RFC 5166 (fairness), Guillier 2008; the ratio is ours.
    """
    result = _delivering(view)
    return None if result is None else result.smallest / result.mean


def proportional_fairness(view: RunView) -> float | None:
    """Proportional fairness: geometric over arithmetic mean of the goodputs; 1 when all are equal, 0 if one starves.

    A proportionally fair allocation maximises Σ log x, which at one bottleneck of given total is the equal share; the
    value is exp(mean log x − log mean x), x as in Jain's index: RFC 5166's product measure, made independent of the
    unit and the number of flows. Null if nothing was delivered. Source: Kelly 1998; RFC 5166 (fairness), Guillier
    2008; the normalisation is ours.
    """
    result = _delivering(view)
    if result is None:
        return None
    return math.exp(result.logarithms / result.count) if result.smallest > 0 else 0.0


def epsilon_fairness(view: RunView) -> float | None:
    """ε-fairness: the smallest ε for which the goodputs are ε-fair; 0 when all are equal, 1 when a flow gets nothing.

    An allocation is ε-fair if min x / max x ≥ 1 − ε, so the value is 1 − min x / max x, x as in Jain's index: the worst
    case of two flows. Less is fairer, unlike the other indices. Null if nothing was delivered. Source: RFC 5166
    (fairness), Guillier 2008.
    """
    result = _delivering(view)
    return None if result is None else 1 - result.smallest / result.greatest


def cov_goodput(view: RunView) -> float | None:
    """Coefficient of variation of the flows' goodputs while they were there: standard deviation over mean.

    The standard deviation is the population's (divided by n), so that Jain's index is 1 / (1 + cov²). Source: RFC
    5166, Guillier 2008 (coefficient of variation CoV).
    """
    result = _delivering(view)
    return None if result is None else result.sd / result.mean


def sd_goodput_bps(view: RunView) -> float | None:
    """Standard deviation of the flows' goodputs while they were there, the population's; its square is the variance.

    Source: Guillier 2008 (variance σ).
    """
    result = view.cached(_spread)
    return None if result is None else result.sd


def jain_index(shares: Array) -> float | None:
    """Return Jain's index of non-negative shares; None if they are all zero."""
    result = _spread_of(lambda: iter([shares]))
    return None if result is None else result.jain


@dataclass(frozen=True, slots=True)
class _Spread:
    """Statistics of goodputs x: smallest, greatest, mean; sums of x / greatest, of its square, of log(x / mean)."""

    count: int
    smallest: float
    greatest: float
    mean: float
    sd: float
    scaled: float
    scaled_squares: float
    logarithms: float

    @property
    def jain(self) -> float | None:
        """Return Jain's index; None if all are zero."""
        return self.scaled**2 / (self.count * self.scaled_squares) if self.greatest > 0 else None


def _spread(view: RunView) -> _Spread | None:
    """Return the statistics of the flows' goodputs; None if they are unknown."""
    return _spread_of(lambda: rates_by_block_bps(view))


def _spread_of(blocks: Callable[[], Iterator[Array]]) -> _Spread | None:
    """Compute statistics of goodputs in two passes over blocks of them; None if there are none."""
    extents = [(rates.size, rates.min(), rates.max(), rates.sum()) for rates in blocks() if rates.size]
    if not extents:
        return None
    counts, smallest, greatest, totals = zip(*extents, strict=True)
    count, mean, peak = sum(counts), math.fsum(totals) / sum(counts), float(max(greatest))
    sums = [_sums(rates, mean, peak) for rates in blocks() if rates.size]
    squares, scaled, scaled_squares, logarithms = map(math.fsum, zip(*sums, strict=True))
    sd = math.sqrt(squares / count)
    return _Spread(count, float(min(smallest)), peak, mean, sd, scaled, scaled_squares, logarithms)


def _sums(rates: Array, mean: float, peak: float) -> tuple[float, float, float, float]:
    """Sum (x − mean)², x / peak, its square, and log(x / mean); the last is 0 where a flow got nothing."""
    scaled = rates / (peak or 1.0)
    with np.errstate(over="ignore", divide="ignore"):
        squares = float(((rates - mean) ** 2).sum())
        logarithms = float(np.log(rates / mean).sum()) if rates.min() > 0 else 0.0
    return squares, float(scaled.sum()), float((scaled**2).sum()), logarithms


def _delivering(view: RunView) -> _Spread | None:
    """Return the statistics of the flows' goodputs; None if they are unknown or all zero."""
    result = view.cached(_spread)
    return None if result is None or result.mean <= 0 else result


METRICS = (
    Metric("jain", "1", "Jain's fairness index", jain, ranks=(3, 3, 6, 5), short="Jain's index", of_several=True),
    Metric("max_min_fairness", "1", "Max-min fairness", max_min_fairness),
    Metric("proportional_fairness", "1", "Proportional fairness", proportional_fairness),
    Metric("epsilon_fairness", "1", "ε-fairness (0 is fair)", epsilon_fairness),
    Metric("cov_goodput", "1", "Variation between flows", cov_goodput),
    Metric("sd_goodput_bps", "bit/s", "Standard deviation between flows", sd_goodput_bps),
)
