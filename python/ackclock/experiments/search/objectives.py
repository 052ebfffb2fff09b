"""Objectives: which of the settings that meet all constraints is the best."""

from __future__ import annotations

from dataclasses import dataclass

from ackclock.errors import InputError
from ackclock.experiments.search.constraints import named
from ackclock.input.fields import shown

_EXPECTED = "min:METRIC or max:METRIC, such as min:queue_delay_mean_s"


@dataclass(frozen=True, slots=True)
class Objective:
    """The mean of a metric, which shall be small or large."""

    metric: str
    minimise: bool

    def cost(self, value: float) -> float:
        """The smaller the better."""
        return value if self.minimise else -value

    def __str__(self) -> str:
        return f"{'min' if self.minimise else 'max'}:{self.metric}"


def parse_objective(text: str) -> Objective:
    """A goal as somebody writes it. Raises `InputError`."""
    sign, colon, name = text.partition(":")
    if not colon or sign not in ("min", "max"):
        raise InputError(f"--best: found {shown(text)}; expected {_EXPECTED}")
    return Objective(named(name.strip(), "--best"), sign == "min")
