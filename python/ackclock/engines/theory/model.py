"""The protocol of a closed-form model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from ackclock.dataset.tables import Column
from ackclock.plan import Plan


@dataclass(frozen=True, slots=True)
class ModelResult:
    """Result of a model: metrics by name, and rows of the tables that it computes.

    A model of averages fills `metrics` alone. One that follows windows over time fills `flow_samples` and the others,
    from which the metrics are computed.
    """

    metrics: Mapping[str, float | list[float]] = field(default_factory=dict)
    tables: Mapping[str, Mapping[str, Column]] = field(default_factory=dict)


class Model(Protocol):
    """A closed form, or a small dynamical model."""

    #: Its name in `[theory] model`.
    name: str

    def unsupported(self, plan: Plan) -> list[str]:
        """List what of the plan it does not support, in a few words each; empty if it fits."""

    def is_stochastic(self, plan: Plan) -> bool:
        """Return True if the result depends on the seed."""

    def evaluate(self, plan: Plan, seed: int) -> ModelResult:
        """Its answer to a plan that fits."""
