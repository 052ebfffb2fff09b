"""Fairness between flows: RFC 5166's metrics.

The shares are the flows' goodputs while they were there: a transfer's payload in the measured part over the time in
it before the transfer was over, so that a short transfer is judged by its rate and not by its size. TCP flows only.

Fairness is between like flows (`groups.like_flows`): of one group, size, access rate and RTT, over the same
bottlenecks. Of several classes of them, the value is that of the least fair one; a flow that is like no other is in
none. `jain[web]` compares all flows of a group, `jain[*]` all flows whatever they are. What groups take from each other
is `groups.min_group_share`.

Max-min and proportional fairness are properties of an allocation. At one bottleneck, among flows that would take all
they can get, both are had by equal shares and by no others; so what is measured here is how far the flows are from
equal shares, in each property's own terms. Where flows cross different bottlenecks, equal shares are not what either
asks for, and the numbers say how equal the rates are and no more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from ackclock.metrics.groups import Classes, like_flows
from ackclock.metrics.metric import Metric
from ackclock.metrics.throughput import rates_by_block_bps
from ackclock.metrics.view import Array, RunView


def jain(view: RunView) -> float | None:
    """Jain's fairness index of like flows' goodputs: 1 when all are equal, 1/n when one has everything.

    (Σx)² / (n Σx²) over the n like flows that were there in the measured part, x being a flow's goodput while it was
    there; of several classes of like flows, the least. Null if nothing was delivered, or of several flows no two are
    alike: `jain[*]` is the index of all flows. Source: Jain, Chiu, Hawe 1984 (DEC TR-301); RFC 5166 (fairness between
    flows).
    """
    return _minimum(view, lambda spread: spread.jain)


def max_min_fairness(view: RunView) -> float | None:
    """Max-min fairness: the smallest goodput over the equal share: 1 when all are equal, 0 when a flow gets nothing.

    min x / mean x, flows and x as in Jain's index; a max-min fair allocation makes the smallest share as large as can
    be, which at one bottleneck is the equal share. Null if nothing was delivered, or no two flows are alike. Source:
    RFC 5166 (fairness), Guillier 2008; the ratio is ours.
    """
    return _minimum(view, lambda spread: spread.smallest / spread.mean)


def proportional_fairness(view: RunView) -> float | None:
    """Proportional fairness: geometric over arithmetic mean of the goodputs; 1 when all are equal, 0 if one starves.

    A proportionally fair allocation maximises Σ log x, which at one bottleneck of given total is the equal share; the
    value is exp(mean log x − log mean x), flows and x as in Jain's index: RFC 5166's product measure, made independent
    of the unit and the number of flows. Null if nothing was delivered, or no two flows are alike. Source: Kelly 1998;
    RFC 5166 (fairness), Guillier 2008; the normalisation is ours.
    """
    return _minimum(view, lambda spread: math.exp(spread.logarithms / spread.count) if spread.smallest > 0 else 0.0)


def epsilon_fairness(view: RunView) -> float | None:
    """ε-fairness: the smallest ε for which the goodputs are ε-fair; 0 when all are equal, 1 when a flow gets nothing.

    An allocation is ε-fair if min x / max x ≥ 1 − ε, so the value is 1 − min x / max x, flows and x as in Jain's index:
    the worst case of two flows. Less is fairer, unlike the other indices. Null if nothing was delivered, or no two
    flows are alike. Source: RFC 5166 (fairness), Guillier 2008.
    """
    least = _minimum(view, lambda spread: spread.smallest / spread.greatest)
    return None if least is None else 1 - least


def cov_goodput(view: RunView) -> float | None:
    """Coefficient of variation of like flows' goodputs while they were there: standard deviation over mean.

    The standard deviation is the population's (divided by n), so that Jain's index is 1 / (1 + cov²); of several
    classes of like flows, the greatest. Source: RFC 5166, Guillier 2008 (coefficient of variation CoV).
    """
    least = _minimum(view, lambda spread: -spread.sd / spread.mean)
    return None if least is None else abs(least)


def sd_goodput_bps(view: RunView) -> float | None:
    """Standard deviation of like flows' goodputs while they were there, the population's; its square is the variance.

    Of several classes of like flows, the greatest. Source: Guillier 2008 (variance σ).
    """
    return max((spread.sd for spread in view.cached(_spreads)), default=None)


def jain_index(shares: Array) -> float | None:
    """Return Jain's index of non-negative shares; None if they are all zero."""
    spreads = _spreads_of(lambda: [(np.zeros(shares.size, np.int64), shares)])
    return next((spread.jain for spread in spreads if spread.greatest > 0), None)


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
    def jain(self) -> float:
        """Return Jain's index, of goodputs that are not all zero."""
        return self.scaled**2 / (self.count * self.scaled_squares)


def _spreads(view: RunView) -> list[_Spread]:
    """Return the statistics of the goodputs of each class of like flows; none if they are unknown."""
    classes = like_flows(view)
    spreads = _spreads_of(lambda: ((classes(flows), rates) for flows, rates in rates_by_block_bps(view)))
    is_alone = sum(spread.count for spread in spreads) == 1
    return [spread for spread in spreads if spread.count > 1 or is_alone]


def _minimum(view: RunView, value: Callable[[_Spread], float]) -> float | None:
    """Return the least value over the classes of like flows that something was delivered to."""
    return min((value(spread) for spread in view.cached(_spreads) if spread.mean > 0), default=None)


def _spreads_of(blocks: Callable[[], Iterable[tuple[Classes, Array]]]) -> list[_Spread]:
    """Compute statistics of the goodputs of each class, in two passes over blocks of classes and goodputs."""
    ends: dict[int, list[float]] = {}
    for classes, rates in blocks():
        for number in np.unique(classes[classes >= 0]):
            own = rates[classes == number]
            count, total, low, high = ends.get(int(number), [0, 0.0, math.inf, -math.inf])
            ends[int(number)] = [
                count + own.size, math.fsum((total, own.sum())), min(low, own.min()), max(high, own.max())
            ]  # fmt: skip
    sums = {number: [0.0] * 4 for number in ends}
    for classes, rates in blocks():
        for number in np.unique(classes[classes >= 0]):
            count, total, _, high = ends[int(number)]
            added = _sums(rates[classes == number], total / count, high)
            sums[int(number)] = [math.fsum(pair) for pair in zip(sums[int(number)], added, strict=True)]
    return [
        _Spread(int(count), low, high, total / count, math.sqrt(squares / count), scaled, scaled_squares, logarithms)
        for (count, total, low, high), (squares, scaled, scaled_squares, logarithms) in zip(
            ends.values(), sums.values(), strict=True
        )
    ]


def _sums(rates: Array, mean: float, peak: float) -> tuple[float, float, float, float]:
    """Sum (x − mean)², x / peak, its square, and log(x / mean); the last is 0 where a flow got nothing."""
    scaled = rates / (peak or 1.0)
    with np.errstate(over="ignore", divide="ignore"):
        squares = float(((rates - mean) ** 2).sum())
        logarithms = float(np.log(rates / mean).sum()) if rates.min() > 0 else 0.0
    return squares, float(scaled.sum()), float((scaled**2).sum()), logarithms


METRICS = (
    Metric("jain", "1", "Jain's fairness index", jain, ranks=(3, 3, 6, 5), short="Jain's index", of_several=True),
    Metric("max_min_fairness", "1", "Max-min fairness", max_min_fairness),
    Metric("proportional_fairness", "1", "Proportional fairness", proportional_fairness),
    Metric("epsilon_fairness", "1", "ε-fairness (0 is fair)", epsilon_fairness),
    Metric("cov_goodput", "1", "Variation between flows", cov_goodput),
    Metric("sd_goodput_bps", "bit/s", "Standard deviation between flows", sd_goodput_bps),
)
