"""Crossings of the cubic and Reno's estimate (appendix A.1).

Without a queue the times are in closed form. With one they are not: Brent's method finds them between the stationary
points of the difference, where it is monotone.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable

import numpy as np

#: Relative accuracy of a time.
ACCURACY = 1e-14


def sigma(growth_p: float, c: float, rtt_s: float, to_plateau_s: float) -> float:
    """Return σ = a/(cτ) − ¾ V², in s²: without a queue the curves cross again only if it is positive (A.1.1)."""
    return growth_p / (c * rtt_s) - 0.75 * to_plateau_s**2


def cubic_to_tcp_s(growth_p: float, c: float, rtt_s: float, to_plateau_s: float) -> float:
    """Return t_BA = 3V/2 − √σ, without a queue; infinity if there is none after the loss."""
    under_root = sigma(growth_p, c, rtt_s, to_plateau_s)
    result = 1.5 * to_plateau_s - math.sqrt(under_root) if under_root > 0 else math.inf
    return result if result > 0 else math.inf


def tcp_to_cubic_s(growth_p: float, c: float, rtt_s: float, to_plateau_s: float) -> float:
    """Return t_AB = 3V/2 + √σ, without a queue; infinity if there is none.

    The print's A.1.2 has the sign of the last term wrong: c (t − V)³ + β w_max − a t/τ = 0.
    """
    under_root = sigma(growth_p, c, rtt_s, to_plateau_s)
    return 1.5 * to_plateau_s + math.sqrt(under_root) if under_root > 0 else math.inf


def turning(difference: Callable[[float], float], after_s: float, stationary_s: Iterable[float], sign: int) -> float:
    """Return the first time after `after_s` at which a difference of this `sign` changes it; infinity if never.

    Between the stationary points the difference is monotone, and after the last it grows without bound. At `after_s`
    it may be 0.
    """
    from scipy.optimize import brentq  # it takes long to import

    nodes = [after_s, *sorted(point for point in set(stationary_s) if point > after_s)]
    nodes.append(_upper_bracket(difference, nodes[-1]))
    values = [(node, sign * difference(node)) for node in nodes]
    for (low, at_low), (high, at_high) in itertools.pairwise(values):
        if at_low > 0 >= at_high:
            return float(brentq(difference, low, high, xtol=ACCURACY * high, rtol=ACCURACY))
    return math.inf


def _upper_bracket(difference: Callable[[float], float], last_s: float) -> float:
    """Return a time after the last stationary point at which the difference is positive."""
    step_s = max(1.0, last_s)
    while difference(last_s + step_s) <= 0:
        step_s *= 2
    return last_s + step_s


def real_roots(coefficients: Iterable[float]) -> list[float]:
    """Return the real roots of a polynomial, highest power first; nearly real roots are included."""
    roots = np.roots(np.asarray(list(coefficients), dtype=float))
    return [float(root.real) for root in roots if abs(root.imag) <= 1e-6 * (1 + abs(root))]
