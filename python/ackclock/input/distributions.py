"""Durations and numbers that vary: one value, or a distribution."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import Field, model_validator

from ackclock.input.fields import PlannedTable, Quantity, fault, fault_at, faults, shown
from ackclock.input.tagged_union import Chosen, tables_by_tag
from ackclock.input.units import time_s

SPAN = Quantity(time_s, "0s", "720h")
Span: TypeAlias = Annotated[float, SPAN]
Period: TypeAlias = Annotated[float, Quantity(time_s, "1ns", "720h")]

#: Most objects of a web page.
MAX_OBJECTS = 100_000


class FixedTime(PlannedTable):
    """Always the same."""

    plan_keys: ClassVar[Mapping[str, str]] = {"distribution": "kind", "value": "s"}

    distribution: Literal["fixed"] = Field(description='"fixed"')
    value: Span = Field(description='the time, such as "5s"')

    @property
    def mean_s(self) -> float:
        """In seconds."""
        return self.value


class ExponentialTime(PlannedTable):
    """Exponential."""

    plan_keys: ClassVar[Mapping[str, str]] = {"distribution": "kind", "mean": "mean_s"}

    distribution: Literal["exponential"] = Field(description='"exponential"')
    mean: Span = Field(description='the mean, such as "5s"')

    @property
    def mean_s(self) -> float:
        """In seconds."""
        return self.mean


class ParetoTime(PlannedTable):
    """Pareto: longer than t with probability (min/t)^shape."""

    plan_keys: ClassVar[Mapping[str, str]] = {"distribution": "kind", "min": "least_s"}

    distribution: Literal["pareto"] = Field(description='"pareto"')
    shape: Annotated[float, Field(gt=0, le=100)] = Field(description="the shape; up to 1 the mean is infinite")
    min: Period = Field(description='the shortest, such as "1s"')

    @property
    def mean_s(self) -> float:
        """In seconds."""
        return self.shape * self.min / (self.shape - 1) if self.shape > 1 else float("inf")


class UniformTime(PlannedTable):
    """Uniform."""

    plan_keys: ClassVar[Mapping[str, str]] = {"distribution": "kind", "from": "from_s", "to": "to_s"}

    distribution: Literal["uniform"] = Field(description='"uniform"')
    from_: Span = Field(alias="from", description="the shortest")
    to: Span = Field(description="the longest")

    @model_validator(mode="after")
    def _rising(self) -> UniformTime:
        if self.to < self.from_:
            raise faults([fault_at(("to",), 0, f"at least from ({self.from_:g} s)", f"{self.to:g} s")])
        return self

    @property
    def mean_s(self) -> float:
        """In seconds."""
        return (self.from_ + self.to) / 2


def _fixed_time(value: object) -> FixedTime:
    return FixedTime.model_construct(distribution="fixed", value=SPAN.read(value) or 0.0)


AnyTime: TypeAlias = FixedTime | ExponentialTime | ParetoTime | UniformTime
Times: TypeAlias = Annotated[
    AnyTime, Chosen("distribution", tables_by_tag("distribution", AnyTime), _fixed_time, {"type": "string"})
]


def mean_within(low: str, high: str) -> Callable[[AnyTime], AnyTime]:
    """A validator: the mean must lie between these."""

    def check(times: AnyTime) -> AnyTime:
        if not time_s(low) <= times.mean_s <= time_s(high):
            raise fault(f"a mean of {times.mean_s:g} s", f"{low} to {high}")
        return times

    return check


class FixedCount(PlannedTable):
    """Always the same."""

    plan_keys: ClassVar[Mapping[str, str]] = {"distribution": "kind", "value": "n"}

    distribution: Literal["fixed"] = Field(description='"fixed"')
    value: Annotated[int, Field(ge=0, le=MAX_OBJECTS)] = Field(description="the number")

    @property
    def mean_count(self) -> float:
        """Return the mean number of objects."""
        return self.value


class GeometricCount(PlannedTable):
    """Geometric, from 0 on."""

    plan_keys: ClassVar[Mapping[str, str]] = {"distribution": "kind"}

    distribution: Literal["geometric"] = Field(description='"geometric"')
    mean: Annotated[float, Field(ge=0, le=MAX_OBJECTS)] = Field(description="the mean")

    @property
    def mean_count(self) -> float:
        """Return the mean number of objects."""
        return self.mean


class UniformCount(PlannedTable):
    """Uniform on from … to."""

    plan_keys: ClassVar[Mapping[str, str]] = {"distribution": "kind"}

    distribution: Literal["uniform"] = Field(description='"uniform"')
    from_: Annotated[int, Field(ge=0, le=MAX_OBJECTS)] = Field(alias="from", description="the smallest")
    to: Annotated[int, Field(ge=0, le=MAX_OBJECTS)] = Field(description="the largest")

    @model_validator(mode="after")
    def _rising(self) -> UniformCount:
        if self.to < self.from_:
            raise faults([fault_at(("to",), self.to, f"at least from ({self.from_})")])
        return self

    @property
    def mean_count(self) -> float:
        """Return the mean number of objects."""
        return (self.from_ + self.to) / 2


def _fixed_count(value: object) -> FixedCount:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_OBJECTS:
        raise fault(shown(value), f'a whole number up to {MAX_OBJECTS}, or {{ distribution = "geometric", mean = 5 }}')
    return FixedCount.model_construct(distribution="fixed", value=value)


AnyCount: TypeAlias = FixedCount | GeometricCount | UniformCount

Counts: TypeAlias = Annotated[
    AnyCount, Chosen("distribution", tables_by_tag("distribution", AnyCount), _fixed_count, {"type": "integer"})
]
