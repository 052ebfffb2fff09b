"""A metric over repeats: mean, 95 % confidence interval, n.

The interval is Student's: mean ± t(0.975, n − 1) · s / √n. With the usual handful of repeats it is the honest choice: a
bootstrap of five values, BCa included, can only rearrange those five and covers the mean in much less than 95 % of
the cases, while the t interval widens as it should (±12.7 s/√2 at n = 2). It supposes that a metric's values over seeds
are roughly normal, which averages over a run are. Where it reaches beyond what the metric can be (a negative count, a
share above 1) it is cut there, which leaves its coverage as it is. One run has no interval: it is null, with n = 1.

Used wherever repeats become one number: tables, comparisons, sweeps, searches, verdicts, the gallery.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from ackclock.input import arguments

#: The normal distribution's quantile 0.975.
NORMAL_QUANTILE = 1.9599639845400545

#: Values that differ by no more than this share differ by rounding: some 10,000 times the error of an operation.
ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class Summary:
    """Mean and 95 % interval of `n` values; nulls where they are undefined."""

    mean: float | None
    ci95_low: float | None
    ci95_high: float | None
    n: int

    def as_dict(self) -> dict[str, float | int | None]:
        """Return the JSON object."""
        return asdict(self)


def summarise(values: Sequence[float | None], minimum: float = -math.inf, maximum: float = math.inf) -> Summary:
    """Return the summary of the values that are not null, with the interval cut at `minimum` and `maximum`."""
    try:
        valid = [value for value in values if value is not None]
        mean = math.fsum(valid) / len(valid) if valid else 0.0
    except TypeError:
        arguments.wrong_type("values", values, "a list of numbers")
    if not valid:
        return Summary(None, None, None, 0)
    if len(valid) == 1:
        return Summary(mean, None, None, 1)
    return _around(mean, half_width(valid, mean), len(valid), minimum, maximum)


def of_sums(n: int, mean: float, squares: float, minimum: float = -math.inf) -> Summary:
    """Return the summary of `n` values of which only the mean and the sum of squared deviations are known."""
    if n < 2:
        return Summary(mean, None, None, n) if n else Summary(None, None, None, 0)
    return _around(mean, student_quantile(n - 1) * math.sqrt(squares / (n - 1) / n), n, minimum, math.inf)


def _around(mean: float, half: float, n: int, minimum: float, maximum: float) -> Summary:
    return Summary(mean, max(mean - half, min(minimum, mean)), min(mean + half, max(maximum, mean)), n)


def subtract(first: float, second: float) -> float:
    """Return `first` − `second`; 0 where they differ by rounding only, which would look like a certain difference."""
    return 0.0 if math.isclose(first, second, rel_tol=ROUNDING) else first - second


def half_width(values: Sequence[float], mean: float) -> float:
    """Return half the width of Student's 95 % interval of the mean of two values or more."""
    n = len(values)
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1))
    return student_quantile(n - 1) * deviation / math.sqrt(n)


def student_quantile(freedom: float, probability: float = 0.975) -> float:
    """Return a quantile of Student's t distribution with any real `freedom` > 0 degrees of freedom."""
    from scipy.special import stdtrit  # 60 ms to import, which a single run does not need

    return float(stdtrit(freedom, probability))


def student_tail(value: float, freedom: float) -> float:
    """Return the probability that Student's t with `freedom` degrees of freedom exceeds a value."""
    from scipy.special import stdtr

    return float(stdtr(freedom, -value))
