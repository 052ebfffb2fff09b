"""What a closed-form model is to the engine: whether it fits a plan, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from ackclock.dataset.tables import Column
from ackclock.plan import Plan


@dataclass(frozen=True, slots=True)
class Answer:
    """What a model says of one run: metrics by their names, and the rows of tables where it knows them.

    A model of averages fills `metrics` alone; one that follows windows over time fills `flow_samples` and the others,
    and the metrics are taken from those.
    """

    metrics: Mapping[str, float | list[float]] = field(default_factory=dict)
    tables: Mapping[str, Mapping[str, Column]] = field(default_factory=dict)


class Model(Protocol):
    """A closed form, or a small dynamical model."""

    #: What `[theory] model` calls it.
    name: str

    def misfits(self, plan: Plan) -> list[str]:
        """What of the plan it cannot answer, in a few words each; empty if it can."""

    def draws(self, plan: Plan) -> bool:
        """Whether the seed matters."""

    def answer(self, plan: Plan, seed: int) -> Answer:
        """Its answer to a plan that fits."""
