"""Student's t distribution, as far as intervals of 95 % and one-sided tests need it."""

from __future__ import annotations

import math

#: The normal distribution's quantile 0.975.
NORMAL = 1.9599639845400545

#: From so many degrees of freedom on the expansion around the normal quantile is exact to 1e-12.
MANY = 1000

#: The quantile for which this module is there.
SHARE = 0.975


def quantile(freedom: float) -> float:
    """The value that 97.5 % of the distribution do not exceed, for any real `freedom` > 0; relative error below 1e-11.

    Newton's method on the distribution function, from 0: as that is concave above 0, each step stays below the root.
    With many degrees of freedom the expansion of Cornish and Fisher (Abramowitz and Stegun 26.7.5).
    """
    if freedom >= MANY:
        return _expansion(freedom)
    value, step = 0.0, 1.0
    while step > 1e-13 * value:
        step = (exceeding(value, freedom) - (1 - SHARE)) / _density(value, freedom)
        value += step
    return value


def _expansion(freedom: float) -> float:
    z = NORMAL
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + math.fsum(term / freedom**power for power, term in enumerate(terms, start=1))


def _density(value: float, freedom: float) -> float:
    logarithm = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2) - 0.5 * math.log(freedom * math.pi)
    return math.exp(logarithm - (freedom + 1) / 2 * math.log1p(value * value / freedom))


def exceeding(value: float, freedom: float) -> float:
    """The share above a value ≥ 0: half the incomplete beta function I_x(ν/2, 1/2) at x = ν / (ν + t²)."""
    x = freedom / (freedom + value * value)
    if x < (freedom / 2 + 1) / (freedom / 2 + 2.5):
        return _beta(x, freedom / 2, 0.5) / 2
    return 0.5 - _beta(value * value / (freedom + value * value), 0.5, freedom / 2) / 2


def _beta(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function by its continued fraction (DLMF 8.17.22), for x < (a+1)/(a+b+2)."""
    if x == 0:
        return 0.0
    front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    # Modified Lentz: the fraction from the left, as a product of ratios.
    value, above, below, term = 1.0, 1.0, 0.0, 0
    while True:
        m = term // 2
        if term == 0:
            number = 1.0
        elif term % 2 == 0:
            number = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        else:
            number = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        below = 1 / (1 + number * below)
        above = 1 + number / above
        value *= above * below
        if term > 0 and abs(above * below - 1) < 1e-15:
            return math.exp(front) * (value - 1) / a
        term += 1
