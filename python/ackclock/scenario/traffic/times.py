"""How long thinking, sending and silence last, and how many objects a page has: one value, or a distribution."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, model_validator

from ackclock.input.fields import Quantity, Table, fault, fault_at, faults, shown
from ackclock.input.units import time_s
from ackclock.scenario.keys import Chosen, told_apart

SPAN = Quantity(time_s, "0s", "720h")
Span: TypeAlias = Annotated[float, SPAN]
Period: TypeAlias = Annotated[float, Quantity(time_s, "1ns", "720h")]

#: Most objects of a web page.
MOST_OBJECTS = 100_000


class FixedTime(Table):
    """Always the same."""

    distribution: Literal["fixed"] = Field(description='"fixed"')
    value: Span = Field(description='the time, such as "5s"')

    @property
    def mean_s(self) -> float:
        """In seconds."""
        return self.value

    def planned(self) -> Mapping[str, Any]:
        """As a plan has it."""
        return {"kind": "fixed", "s": self.value}


class ExponentialTime(Table):
    """Exponential."""

    distribution: Literal["exponential"] = Field(description='"exponential"')
    mean: Span = Field(description='the mean, such as "5s"')

    @property
    def mean_s(self) -> float:
        """In seconds."""
        return self.mean

    def planned(self) -> Mapping[str, Any]:
        """As a plan has it."""
        return {"kind": "exponential", "mean_s": self.mean}


class ParetoTime(Table):
    """Pareto: longer than t with probability (min/t)^shape."""

    distribution: Literal["pareto"] = Field(description='"pareto"')
    shape: Annotated[float, Field(gt=0, le=100)] = Field(description="the shape; up to 1 the mean is infinite")
    min: Period = Field(description='the shortest, such as "1s"')

    @property
    def mean_s(self) -> float:
        """In seconds."""
        return self.shape * self.min / (self.shape - 1) if self.shape > 1 else float("inf")

    def planned(self) -> Mapping[str, Any]:
        """As a plan has it."""
        return {"kind": "pareto", "shape": self.shape, "least_s": self.min}


class UniformTime(Table):
    """Uniform."""

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

    def planned(self) -> Mapping[str, Any]:
        """As a plan has it."""
        return {"kind": "uniform", "from_s": self.from_, "to_s": self.to}


def _fixed_time(value: object) -> FixedTime:
    return FixedTime.model_construct(distribution="fixed", value=SPAN.read(value) or 0.0)


class FixedCount(Table):
    """Always the same."""

    distribution: Literal["fixed"] = Field(description='"fixed"')
    value: Annotated[int, Field(ge=0, le=MOST_OBJECTS)] = Field(description="the number")

    @property
    def mean_count(self) -> float:
        """How many on average."""
        return self.value

    def planned(self) -> Mapping[str, Any]:
        """As a plan has it."""
        return {"kind": "fixed", "n": self.value}


class GeometricCount(Table):
    """Geometric, from 0 on."""

    distribution: Literal["geometric"] = Field(description='"geometric"')
    mean: Annotated[float, Field(ge=0, le=MOST_OBJECTS)] = Field(description="the mean")

    @property
    def mean_count(self) -> float:
        """How many on average."""
        return self.mean

    def planned(self) -> Mapping[str, Any]:
        """As a plan has it."""
        return {"kind": "geometric", "mean": self.mean}


class UniformCount(Table):
    """Uniform on from … to."""

    distribution: Literal["uniform"] = Field(description='"uniform"')
    from_: Annotated[int, Field(ge=0, le=MOST_OBJECTS)] = Field(alias="from", description="the smallest")
    to: Annotated[int, Field(ge=0, le=MOST_OBJECTS)] = Field(description="the largest")

    @model_validator(mode="after")
    def _rising(self) -> UniformCount:
        if self.to < self.from_:
            raise faults([fault_at(("to",), self.to, f"at least from ({self.from_})")])
        return self

    @property
    def mean_count(self) -> float:
        """How many on average."""
        return (self.from_ + self.to) / 2

    def planned(self) -> Mapping[str, Any]:
        """As a plan has it."""
        return {"kind": "uniform", "from": self.from_, "to": self.to}


def _fixed_count(value: object) -> FixedCount:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MOST_OBJECTS:
        raise fault(shown(value), f'a whole number up to {MOST_OBJECTS}, or {{ distribution = "geometric", mean = 5 }}')
    return FixedCount.model_construct(distribution="fixed", value=value)


AnyTime: TypeAlias = FixedTime | ExponentialTime | ParetoTime | UniformTime
AnyCount: TypeAlias = FixedCount | GeometricCount | UniformCount

Times: TypeAlias = Annotated[
    AnyTime, Chosen("distribution", told_apart("distribution", AnyTime), _fixed_time, {"type": "string"})
]
Counts: TypeAlias = Annotated[
    AnyCount, Chosen("distribution", told_apart("distribution", AnyCount), _fixed_count, {"type": "integer"})
]
