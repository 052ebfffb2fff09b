"""Sizes of transfers: `size = "64KB"`, or a table with a distribution."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field, PlainValidator, WithJsonSchema, model_validator

from ackclock.input.fields import Table, check_one_given, fault, fault_at, faults, shown
from ackclock.input.tagged_union import Chosen, tables_by_tag
from ackclock.input.units import Size
from ackclock.scenario.keys import TRANSFER, Transfer
from ackclock.scenario.traffic import moments
from ackclock.scenario.traffic.moments import Law, Truncated

Truncation: TypeAlias = Literal["redraw", "clip"]
Shape: TypeAlias = Annotated[float, Field(gt=0, le=100, allow_inf_nan=False)]


def bytes_of(size: Size, mss_bytes: int) -> float:
    """A size in bytes; `p` are full segments."""
    return size.value * (mss_bytes if size.unit == "p" else 1)


class Fixed(Table):
    """Always the same size."""

    distribution: Literal["fixed"] = Field(description='"fixed"')
    value: Transfer = Field(description='the size, such as "64KB"')

    def law(self, mss_bytes: int) -> Law:
        """In bytes."""
        return moments.Fixed(max(1, round(bytes_of(self.value, mss_bytes))))


class Tailed(Table):
    """A distribution without a largest size of its own."""

    max: Transfer | None = Field(None, description="the largest size; absent: none")
    truncation: Truncation | None = Field(
        None, description='what becomes of draws above max: "redraw" (drawn again) or "clip" (they become max)'
    )

    @model_validator(mode="after")
    def _truncation_is_explicit(self) -> Tailed:
        if self.max is not None and self.truncation is None:
            raise faults([fault_at(("truncation",), 0, '"redraw" or "clip" beside max', "nothing")])
        if self.max is None and self.truncation is not None:
            raise faults([fault_at(("truncation",), self.truncation, 'a max = "…" beside it')])
        return self

    def truncated(self, law: moments.Exponential | moments.Lognormal | moments.Pareto, mss_bytes: int) -> Law:
        """The law up to max. Raises `ValueError` if that leaves too little of it."""
        if self.max is None:
            return Truncated(law, None, None)
        most = round(bytes_of(self.max, mss_bytes))
        median = law.quantile(0.5)
        if most < median:
            raise ValueError(f"at least the median ({median:.0f} B), or most draws would be truncation it")
        return Truncated(law, most, self.truncation)


class Exponential(Tailed):
    """Exponential sizes."""

    distribution: Literal["exponential"] = Field(description='"exponential"')
    mean: Transfer = Field(description='the mean (before truncation), such as "100KB"')

    def law(self, mss_bytes: int) -> Law:
        """In bytes."""
        return self.truncated(moments.Exponential(bytes_of(self.mean, mss_bytes)), mss_bytes)


class Lognormal(Tailed):
    """Lognormal sizes."""

    distribution: Literal["lognormal"] = Field(description='"lognormal"')
    median: Transfer | None = Field(None, description="the median (before truncation); or mean")
    mean: Transfer | None = Field(None, description="the mean (before truncation); or median")
    sigma: Annotated[float, Field(gt=0, le=10)] = Field(description="standard deviation of the natural logarithm")

    @model_validator(mode="after")
    def _one_of_both(self) -> Lognormal:
        check_one_given(median=self.median, mean=self.mean)
        return self

    def law(self, mss_bytes: int) -> Law:
        """In bytes."""
        if self.mean is not None:
            median = bytes_of(self.mean, mss_bytes) / moments.Lognormal(1.0, self.sigma).mean_bytes
        else:
            assert self.median is not None
            median = bytes_of(self.median, mss_bytes)
        return self.truncated(moments.Lognormal(median, self.sigma), mss_bytes)


class Pareto(Tailed):
    """Pareto sizes: larger than x with probability (min/x)^shape."""

    distribution: Literal["pareto"] = Field(description='"pareto"')
    shape: Shape = Field(description="the shape; up to 1 the mean is infinite unless there is a max")
    min: Transfer | None = Field(None, description='the smallest size, such as "1.37KB"; or mean')
    mean: Transfer | None = Field(None, description="the mean (before truncation), for a shape above 1; or min")

    @model_validator(mode="after")
    def _one_of_both(self) -> Pareto:
        check_one_given(min=self.min, mean=self.mean)
        if self.mean is not None and self.shape <= 1:
            raise faults([fault_at(("mean",), 0, "min: a shape up to 1 has no mean", str(self.mean))])
        return self

    def law(self, mss_bytes: int) -> Law:
        """In bytes."""
        if self.mean is not None:
            least = bytes_of(self.mean, mss_bytes) * (self.shape - 1) / self.shape
        else:
            assert self.min is not None
            least = bytes_of(self.min, mss_bytes)
        return self.truncated(moments.Pareto(self.shape, least), mss_bytes)


class Zipf(Table):
    """Zipf sizes: k units with probability proportional to k^−exponent."""

    distribution: Literal["zipf"] = Field(description='"zipf"')
    exponent: Annotated[float, Field(ge=0, le=100)] = Field(description="the exponent, such as 1.7")
    max: Transfer = Field(description='the largest size: "10000p" counts in full segments, "1MB" in bytes')

    def law(self, mss_bytes: int) -> Law:
        """In bytes."""
        unit = mss_bytes if self.max.unit == "p" else 1
        return moments.Zipf(self.exponent, max(1, int(self.max.value)), unit)


def _point(value: object) -> tuple[Size, float]:
    """A size, and the share of transfers up to it."""
    if not isinstance(value, list) or len(value) != len(("size", "share")):
        raise fault(shown(value), 'a pair such as ["10KB", 0.5]')
    size, share = TRANSFER.read(value[0]), value[1]
    if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 <= share <= 1:
        raise fault(shown(share), "a share from 0 to 1 behind the size")
    return size, float(share)


_PAIR = {"type": "array", "prefixItems": [{"type": "string"}, {"type": "number", "minimum": 0, "maximum": 1}]}
Point: TypeAlias = Annotated[
    tuple[Size, float], PlainValidator(_point), WithJsonSchema({**_PAIR, "minItems": 2, "maxItems": 2})
]


class Empirical(Table):
    """A cumulative distribution through points, straight between them."""

    distribution: Literal["empirical"] = Field(description='"empirical"')
    points: Annotated[list[Point], Field(min_length=2, max_length=10_000)] = Field(
        description='pairs of a size and the share of transfers up to it: [["1KB", 0.2], ["1MB", 1.0]]'
    )

    @model_validator(mode="after")
    def _rising(self) -> Empirical:
        units, shares = {size.unit for size, _ in self.points}, [share for _, share in self.points]
        sizes = [size.value for size, _ in self.points]
        if len(units) > 1:
            raise faults([fault_at(("points",), 0, "all sizes in bytes, or all in packets", "both")])
        if sizes != sorted(sizes) or shares != sorted(shares) or shares[-1] != 1:
            raise faults([fault_at(("points",), self.points, "sizes and shares that rise, the last share being 1")])
        return self

    def law(self, mss_bytes: int) -> Law:
        """In bytes."""
        return moments.Empirical(tuple((round(bytes_of(size, mss_bytes)), share) for size, share in self.points))


def _fixed(value: object) -> Fixed:
    size = TRANSFER.read(value)
    return Fixed.model_construct(distribution="fixed", value=size)


AnySize: TypeAlias = Fixed | Exponential | Lognormal | Pareto | Zipf | Empirical

Sizes: TypeAlias = Annotated[
    AnySize, Chosen("distribution", tables_by_tag("distribution", AnySize), _fixed, {"type": "string"})
]
