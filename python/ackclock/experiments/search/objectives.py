"""Objectives: which of the settings that meet all constraints is the best."""

from __future__ import annotations

from dataclasses import dataclass

from ackclock.errors import InputError
from ackclock.experiments.search.constraints import named
from ackclock.input.fields import shown

_EXPECTED = "min:METRIC or max:METRIC, such as min:queue_delay_mean_s"


@dataclass(frozen=True, slots=True)
class Goal:
    """The mean of a metric, which shall be small or large."""

    metric: str
    least: bool

    def cost(self, value: float) -> float:
        """The smaller the better."""
        return value if self.least else -value

    def __str__(self) -> str:
        return f"{'min' if self.least else 'max'}:{self.metric}"


def goal(text: str) -> Goal:
    """A goal as somebody writes it. Raises `InputError`."""
    sign, colon, name = text.partition(":")
    if not colon or sign not in ("min", "max"):
        raise InputError(f"--best: found {shown(text)}; expected {_EXPECTED}")
    return Goal(named(name.strip(), "--best"), sign == "min")
