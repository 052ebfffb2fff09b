"""Durations that vary: one time, or a distribution."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, model_validator

from ackclock.input.fields import Quantity, Table, fault, fault_at, faults
from ackclock.input.tagged_union import Chosen, tables_by_tag
from ackclock.input.units import time_s

SPAN = Quantity(time_s, "0s", "720h")
Span: TypeAlias = Annotated[float, SPAN]
Period: TypeAlias = Annotated[float, Quantity(time_s, "1ns", "720h")]


class FixedTime(Table):
    """Always the same."""

    distribution: Literal["fixed"] = Field(description='"fixed"')
    value: Span = Field(description='the time, such as "5s"')

    @property
    def mean_s(self) -> float:
        """In seconds."""
        return self.value

    def planned(self) -> Mapping[str, Any]:
        """Return the plan's form."""
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
        """Return the plan's form."""
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
        """Return the plan's form."""
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
        """Return the plan's form."""
        return {"kind": "uniform", "from_s": self.from_, "to_s": self.to}


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
