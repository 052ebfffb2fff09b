"""Laws of sizes: their means, shares and quantiles, for what is worked out from them before a run.

The draws themselves are the engines' (`crates/ackclock-traffic`). Sizes are in bytes.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from statistics import NormalDist
from typing import Any, ClassVar, Literal, Protocol, cast

#: Quantiles over which the rounding up to whole segments is averaged; the error is below one in so many.
QUANTILES = 10_000

#: Terms of a Zipf law that are added up one by one; the Euler–Maclaurin formula gives the rest.
TERMS = 1000

NORMAL = NormalDist()


class Law(Protocol):
    """A distribution of sizes."""

    @property
    def mean_bytes(self) -> float: ...  # noqa: D102

    def quantile(self, share: float) -> float:
        """The size up to which this share of the transfers is."""

    def planned(self) -> Mapping[str, Any]:
        """Return the plan's form."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A law whose fields are those of the plan."""

    kind: ClassVar[str]
    #: Fields that have other names there.
    plan_keys: ClassVar[Mapping[str, str]] = {}

    def planned(self) -> Mapping[str, Any]:
        """Return the plan's form."""
        values = {self.plan_keys.get(item.name, item.name): getattr(self, item.name) for item in fields(self)}
        return {"kind": self.kind, **values}


def mean_segments(law: Law, mss_bytes: int) -> float:
    """Mean number of segments of a transfer: the last one of each may be short."""
    if isinstance(law, Zipf) and law.unit_bytes % mss_bytes == 0:
        return law.mean_bytes / mss_bytes
    shares = ((number + 0.5) / QUANTILES for number in range(QUANTILES))
    sizes = (law.quantile(share) / mss_bytes for share in shares)
    rounding = sum(math.ceil(size) - size for size in sizes) / QUANTILES
    return law.mean_bytes / mss_bytes + rounding


@dataclass(frozen=True, slots=True)
class Fixed(Planned):
    """Always the same."""

    kind = "fixed"

    bytes: int

    @property
    def mean_bytes(self) -> float:  # noqa: D102
        return self.bytes

    def quantile(self, share: float) -> float:  # noqa: D102
        return self.bytes


@dataclass(frozen=True, slots=True)
class Exponential(Planned):
    """Larger than x with probability exp(−x/mean)."""

    kind = "exponential"

    mean_bytes: float

    def share(self, most: float) -> float:  # noqa: D102
        return -math.expm1(-most / self.mean_bytes)

    def mean_up_to(self, most: float) -> float:  # noqa: D102
        return self.mean_bytes - (most + self.mean_bytes) * math.exp(-most / self.mean_bytes)

    def quantile(self, share: float) -> float:  # noqa: D102
        return -self.mean_bytes * math.log1p(-share)


@dataclass(frozen=True, slots=True)
class Lognormal(Planned):
    """The logarithm is normal with standard deviation sigma."""

    kind = "lognormal"

    median_bytes: float
    sigma: float

    @property
    def mean_bytes(self) -> float:  # noqa: D102
        return self.median_bytes * math.exp(self.sigma**2 / 2)

    def share(self, most: float) -> float:  # noqa: D102
        return NORMAL.cdf(math.log(most / self.median_bytes) / self.sigma)

    def mean_up_to(self, most: float) -> float:  # noqa: D102
        return self.mean_bytes * NORMAL.cdf(math.log(most / self.median_bytes) / self.sigma - self.sigma)

    def quantile(self, share: float) -> float:  # noqa: D102
        return self.median_bytes * math.exp(self.sigma * NORMAL.inv_cdf(share))


@dataclass(frozen=True, slots=True)
class Pareto(Planned):
    """Larger than x with probability (least/x)^shape."""

    kind = "pareto"
    plan_keys: ClassVar[Mapping[str, str]] = {"min_bytes": "least_bytes"}

    shape: float
    min_bytes: float

    @property
    def mean_bytes(self) -> float:
        """Infinite for a shape up to 1."""
        return self.shape * self.min_bytes / (self.shape - 1) if self.shape > 1 else math.inf

    def share(self, most: float) -> float:  # noqa: D102
        return 1 - math.pow(self.min_bytes / most, self.shape)

    def mean_up_to(self, most: float) -> float:  # noqa: D102
        if self.shape == 1:
            return self.min_bytes * math.log(most / self.min_bytes)
        rest = math.pow(self.min_bytes / most, self.shape - 1)
        return self.shape * self.min_bytes / (self.shape - 1) * (1 - rest)

    def quantile(self, share: float) -> float:  # noqa: D102
        return self.min_bytes * math.pow(1 - share, -1 / self.shape)


@dataclass(frozen=True, slots=True)
class Truncated:
    """A law up to a largest size: draws beyond it are drawn again, or become that size."""

    law: Exponential | Lognormal | Pareto
    max_bytes: int | None
    truncation: Literal["redraw", "clip"] | None

    @property
    def mean_bytes(self) -> float:  # noqa: D102
        if self.max_bytes is None:
            return self.law.mean_bytes
        share, mean = self.law.share(self.max_bytes), self.law.mean_up_to(self.max_bytes)
        return mean / share if self.truncation == "redraw" else mean + self.max_bytes * (1 - share)

    def quantile(self, share: float) -> float:  # noqa: D102
        if self.max_bytes is None:
            return self.law.quantile(share)
        if self.truncation == "redraw":
            return self.law.quantile(share * self.law.share(self.max_bytes))
        return min(self.law.quantile(share), self.max_bytes)

    def planned(self) -> Mapping[str, Any]:  # noqa: D102
        truncation = None if self.max_bytes is None else {"kind": self.truncation, "most_bytes": self.max_bytes}
        return {**self.law.planned(), "truncation": truncation}


@dataclass(frozen=True, slots=True)
class Zipf(Planned):
    """k units with probability proportional to k^−exponent, k = 1 … max_units."""

    kind = "zipf"
    plan_keys: ClassVar[Mapping[str, str]] = {"max_units": "most"}

    exponent: float
    max_units: int
    unit_bytes: int

    @property
    def mean_bytes(self) -> float:  # noqa: D102
        return self.unit_bytes * harmonic(self.max_units, self.exponent - 1) / harmonic(self.max_units, self.exponent)

    def quantile(self, share: float) -> float:
        """Return the size at which the sum of the probabilities reaches the share, by bisection."""
        whole, low, high = harmonic(self.max_units, self.exponent), 1, self.max_units
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if harmonic(middle, self.exponent) >= share * whole else (middle + 1, high)
        return low * self.unit_bytes


def harmonic(most: int, exponent: float) -> float:
    """The sum of k^−exponent for k = 1 … most; beyond `TERMS` the integral, the ends' halves and a first correction."""
    first = min(most, TERMS)
    added = math.fsum(math.pow(k, -exponent) for k in range(1, first + 1))
    if most == first:
        return added
    power = 1 - exponent
    between = math.log(most / first) if power == 0 else (math.pow(most, power) - math.pow(first, power)) / power
    ends = (math.pow(most, -exponent) - math.pow(first, -exponent)) / 2
    slopes = -exponent * (math.pow(most, -exponent - 1) - math.pow(first, -exponent - 1)) / 12
    return added + between + ends + slopes


@dataclass(frozen=True, slots=True)
class Empirical(Planned):
    """A cumulative distribution through points (bytes, share), straight between them."""

    kind = "empirical"

    points: tuple[tuple[int, float], ...]

    @property
    def mean_bytes(self) -> float:  # noqa: D102
        (least, atom), *_ = self.points
        pairs = zip(self.points, self.points[1:], strict=False)
        return least * atom + sum((one[0] + two[0]) / 2 * (two[1] - one[1]) for one, two in pairs)

    def quantile(self, share: float) -> float:  # noqa: D102
        above = bisect.bisect_right([point[1] for point in self.points], share)
        if above == 0:
            return self.points[0][0]
        one, two = self.points[above - 1], self.points[min(above, len(self.points) - 1)]
        return one[0] + (two[0] - one[0]) * ((share - one[1]) / (two[1] - one[1]) if two[1] > one[1] else 0)

    def planned(self) -> Mapping[str, Any]:  # noqa: D102
        return {"kind": self.kind, "points": [list(point) for point in self.points]}


def planned(size: Mapping[str, Any]) -> Law:
    """The law that a plan has: the inverse of `Law.planned`."""
    if size["kind"] == "empirical":
        return Empirical(tuple((most, share) for most, share in size["points"]))
    law: type[Any] = next(law for law in (Fixed, Exponential, Lognormal, Pareto, Zipf) if law.kind == size["kind"])
    values = {item.name: size[law.plan_keys.get(item.name, item.name)] for item in fields(law)}
    if "truncation" not in size:
        return cast(Law, law(**values))
    truncation = size["truncation"] or {"most_bytes": None, "kind": None}
    return Truncated(law(**values), truncation["most_bytes"], truncation["kind"])
