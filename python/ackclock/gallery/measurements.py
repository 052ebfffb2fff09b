"""Measurements: numbers by case and measure, a value for each seed. Rules see nothing else."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TypeAlias

from ackclock.errors import InputError
from ackclock.metrics import METRICS, RunView, value

#: A value for each seed, in their order; None where there was nothing to measure.
Values: TypeAlias = tuple[float | None, ...]

#: Case → measure → values: `measured["cubic"]["losses"]`.
Measured: TypeAlias = Mapping[str, Mapping[str, Values]]

#: A metric's name, or a function of one run.
Measure: TypeAlias = str | Callable[[RunView], float | None]


def ratio(above: Values, below: Values) -> Values:
    """Seed by seed, `above` / `below`; None where either is missing or `below` is 0.

    A single value, as of a deterministic engine, stands for every seed.
    """
    runs = max(len(above), len(below))
    pairs = zip(_each(above, runs), _each(below, runs), strict=True)
    return tuple(None if one is None or not other else one / other for one, other in pairs)


def _each(values: Values, runs: int) -> Values:
    return values * runs if len(values) == 1 else values


def of_run(view: RunView, measures: Mapping[str, Measure]) -> dict[str, float | None]:
    """Every measure of one run; None where it is missing or not a number. Raises `InputError` for an unknown metric."""
    return {name: _one(view, measure) for name, measure in measures.items()}


def _one(view: RunView, measure: Measure) -> float | None:
    if not isinstance(measure, str):
        measured = measure(view)
        return None if measured is None or math.isnan(measured) else measured
    if measure not in METRICS or METRICS[measure].per_flow:
        raise InputError(f"MEASURES: found {measure!r}; expected a function of a run, or a metric with one value")
    found = value(view, measure)
    return None if isinstance(found, list) else found
