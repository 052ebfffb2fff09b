"""Distribution of a metric over the runs of a sweep, for box plots and distribution functions.

A run counts once, of a metric of each flow every flow of it. What is not told apart is taken together: other swept
keys, and all seeds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import polars as pl

from ackclock.errors import InputError
from ackclock.figures import charts, numbers
from ackclock.figures.charts import Across, Choice, Swept
from ackclock.input.fields import nearest, shown
from ackclock.metrics import METRICS
from ackclock.scenario.points import label, short_keys, short_labels


class Runs(Swept, Protocol):
    """A sweep with the results of each run."""

    @property
    def table(self) -> pl.DataFrame:
        """A row for each run: the swept keys and the metrics."""


@dataclass(frozen=True, slots=True)
class Group:
    """Values that are shown together, ascending, in the figure's unit: their name and position."""

    name: str
    kind: int
    place: float
    values: list[float]


@dataclass(frozen=True, slots=True)
class Spread:
    """A metric's values: `across` is the horizontal axis, if they are drawn along a key."""

    metric: str
    title: str
    unit: str
    across: Across | None
    groups: tuple[Group, ...]


def spread(sweep: Runs, choice: Choice, *, along: bool) -> Spread:
    """Return the one metric chosen, along a swept key or not. Raises `InputError`."""
    if not sweep.axes:
        raise InputError("there is nothing swept to draw")
    if len(choice.metrics) != 1:
        raise InputError(f"--y: found {len(choice.metrics)} metrics; expected one whose spread is to be shown")
    name = _computed(choice.metrics[0], sweep)
    key = None
    if along:
        key = charts.named(choice.x, [sweep], "--x") if choice.x else charts.key_across([sweep])
    by = [charts.named(each, [sweep], "--by") for each in choice.by or _default_keys(sweep, key)]
    result = _values(sweep, name, key, by)
    if not result:
        raise InputError(f"--y: {name}: found no value in any run; expected a metric that the engine measures")
    places, across = charts.places_across(key, [sweep]) if key else ({}, None)
    factor, unit = numbers.scale(max(abs(value) for values in result.values() for value in values), METRICS[name].unit)
    kinds = list(dict.fromkeys(kind for kind, _ in result))
    groups = [
        Group(kind, kinds.index(kind), places.get(at, 0.0), sorted(value / factor for value in values))
        for (kind, at), values in result.items()
    ]
    return Spread(name, METRICS[name].label, unit, across, tuple(groups))


def _default_keys(sweep: Runs, key: str | None) -> Sequence[str]:
    """Return the default keys of the groups: all other keys along one, else the first."""
    varied = [axis.key for axis in sweep.axes if axis.key != key and len(axis.values) > 1]
    return varied if key else varied[:1]


def _computed(name: str, sweep: Runs) -> str:
    result = next((each for each in (name, f"{name}_s", f"{name}_bps") if each in sweep.metrics), None)
    if result is None:
        raise InputError(f"--y: found {shown(name)}; expected {nearest(name, sweep.metrics)}")
    return result


def _values(sweep: Runs, name: str, key: str | None, by: Sequence[str]) -> dict[tuple[str, str], list[float]]:
    """Return the metric's values by group, and by the key of the horizontal axis."""
    axes = [axis for axis in sweep.axes if axis.key in by]
    names = {axis.key: dict(zip(map(label, axis.values), short_labels(axis.values), strict=True)) for axis in axes}
    shorts = dict(zip((axis.key for axis in axes), short_keys(axes), strict=True))
    result: dict[tuple[str, str], list[float]] = {}
    columns = list(dict.fromkeys([*by, *([key] if key else []), name]))
    for row in sweep.table.select(columns).iter_rows(named=True):
        values = row[name] if isinstance(row[name], list) else [row[name]]
        known = [value for value in values if value is not None]
        if known:
            place = label(row[key]) if key else ""
            result.setdefault((_kind(row, names, shorts), place), []).extend(known)
    return result


def _kind(row: Mapping[str, Any], names: Mapping[str, Mapping[str, str]], shorts: Mapping[str, str]) -> str:
    parts = [
        short.get(row[key], row[key]) if isinstance(row[key], str) else f"{shorts[key]} = {label(row[key])}"
        for key, short in names.items()
    ]
    return ", ".join(parts)
