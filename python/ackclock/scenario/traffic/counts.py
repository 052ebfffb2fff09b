"""Number of objects on a page: one number, or a distribution."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, model_validator

from ackclock.input.fields import Table, fault, fault_at, faults, shown
from ackclock.input.tagged_union import Chosen, tables_by_tag

#: Most objects of a web page.
MAX_OBJECTS = 100_000


class FixedCount(Table):
    """Always the same."""

    distribution: Literal["fixed"] = Field(description='"fixed"')
    value: Annotated[int, Field(ge=0, le=MAX_OBJECTS)] = Field(description="the number")

    @property
    def mean_count(self) -> float:
        """Return the mean number of objects."""
        return self.value

    def planned(self) -> Mapping[str, Any]:
        """Return the plan's form."""
        return {"kind": "fixed", "n": self.value}


class GeometricCount(Table):
    """Geometric, from 0 on."""

    distribution: Literal["geometric"] = Field(description='"geometric"')
    mean: Annotated[float, Field(ge=0, le=MAX_OBJECTS)] = Field(description="the mean")

    @property
    def mean_count(self) -> float:
        """Return the mean number of objects."""
        return self.mean

    def planned(self) -> Mapping[str, Any]:
        """Return the plan's form."""
        return {"kind": "geometric", "mean": self.mean}


class UniformCount(Table):
    """Uniform on from … to."""

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

    def planned(self) -> Mapping[str, Any]:
        """Return the plan's form."""
        return {"kind": "uniform", "from": self.from_, "to": self.to}


def _fixed_count(value: object) -> FixedCount:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_OBJECTS:
        raise fault(shown(value), f'a whole number up to {MAX_OBJECTS}, or {{ distribution = "geometric", mean = 5 }}')
    return FixedCount.model_construct(distribution="fixed", value=value)


AnyCount: TypeAlias = FixedCount | GeometricCount | UniformCount

Counts: TypeAlias = Annotated[
    AnyCount, Chosen("distribution", tables_by_tag("distribution", AnyCount), _fixed_count, {"type": "integer"})
]
