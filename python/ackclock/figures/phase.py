"""Result of a perturbed run, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ackclock.figures import numbers
from ackclock.metrics import METRICS

HOLDS = "Not phase-locked: noise in the hosts changes no main metric."


def sentence(result: Mapping[str, Any]) -> str:
    """Return a result's `phase` as a sentence or two."""
    if not result["locked"]:
        return HOLDS
    moved = "; ".join(f"{METRICS[name].label} {_change(name, both)}" for name, both in result["moved"].items())
    return f"Phase-locked: noise in the hosts changes the result. {moved}."


def _change(name: str, both: Mapping[str, Sequence[float]]) -> str:
    here, twin = (_with_interval(both[side], METRICS[name].unit) for side in ("here", "twin"))
    return f"{here} here, {twin} with noise"


def _with_interval(bounds: Sequence[float], unit: str) -> str:
    value, low, high = bounds
    mean, interval = numbers.interval(value, low, high, unit)
    return f"{mean} ({interval})"
