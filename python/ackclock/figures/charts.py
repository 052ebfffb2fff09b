"""Charts of a sweep as numbers: each main metric over one swept key, a line for every other value.

Shared by print (`plots.sweep`) and report (`report.sweep`). The horizontal axis is the swept key whose values are
numbers or quantities of one kind and of which there are most; if there is none, the first key, its values side by side,
and nothing joins them. Where the keys are two, and both of numbers, a figure is a map with a colour for each point.
What is shown may be chosen: `Choice`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ackclock.errors import InputError
from ackclock.figures import numbers
from ackclock.input.fields import nearest, shown
from ackclock.metrics import METRICS, full_name, main
from ackclock.scenario.points import Axis, label, short_keys, short_labels
from ackclock.scenario.swept_quantities import amounts

#: Charts at most: of the main metrics, those that there are; of all, if few were computed.
MAX_CHARTS = 8

#: An axis whose largest value is so many times its smallest is logarithmic.
WIDE = 20.0


class Swept(Protocol):
    """A sweep as the figures see it: `ackclock.experiments.sweep.result.Sweep` is one."""

    @property
    def name(self) -> str:
        """The scenario's title."""

    @property
    def engine(self) -> str:
        """The engine's name."""

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The swept keys."""

    @property
    def metrics(self) -> list[str]:
        """The metrics that were computed."""

    @property
    def points(self) -> list[dict[str, Any]]:
        """For each point its `values` and the `summary` of each metric."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Selection of a sweep's content: the key along the horizontal axis, the metrics, and the keys of the lines.

    Empty fields mean the defaults: one key, the main metrics, all other keys.
    """

    x: str | None = None
    metrics: tuple[str, ...] = ()
    by: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Across:
    """The horizontal axis: its title, whether it is logarithmic, and names of categories."""

    title: str
    logarithmic: bool
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Line:
    """One line: positions, means, and their intervals (NaN where there is none), in the chart's unit.

    `kind` numbers what was swept besides, `sweep` whose line it is: the one may be a colour, the other a dash.
    """

    name: str
    kind: int
    sweep: int
    x: list[float]
    means: list[float]
    lows: list[float]
    highs: list[float]


@dataclass(frozen=True, slots=True)
class Chart:
    """A metric over the swept key. Lines join numbers only, never names."""

    metric: str
    title: str
    unit: str
    across: Across
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Map:
    """A metric over two swept keys: a row of means for each value of `up`, a mean for each of `across`, else NaN."""

    metric: str
    title: str
    unit: str
    across: Across
    up: Across
    x: list[float]
    y: list[float]
    means: list[list[float]]


def charts(sweeps: Sequence[Swept], choice: Choice | None = None) -> list[Chart]:
    """Return a chart for each main metric, with the lines of all sweeps (by engine, say). Raises `InputError`.

    The sweeps must have swept the same keys, or some of the same: the first one's horizontal axis is that of all.
    """
    chosen = choice or Choice()
    if not sweeps or not all(sweep.axes for sweep in sweeps):
        raise InputError("there is nothing swept to draw")
    key = named(chosen.x, sweeps, "--x") if chosen.x else key_across(sweeps)
    by = None if chosen.by is None else [named(each, sweeps, "--by") for each in chosen.by]
    places, across = places_across(key, sweeps)
    return [_chart(name, key, places, across, sweeps, by) for name in _shown(sweeps, chosen)]


def maps(sweep: Swept, choice: Choice | None = None, y: str | None = None) -> list[Map]:
    """Return a map of each main metric over two swept keys, `y` the other one. Raises `InputError`."""
    chosen = choice or Choice()
    varied = [axis for axis in sweep.axes if len(axis.values) > 1]
    if len(varied) < 2:
        raise InputError("--kind: found heatmap of a sweep of fewer than two keys; expected line or dot")
    key = named(chosen.x, [sweep], "--x") if chosen.x else next(a.key for a in varied if a.key != _up(y, sweep))
    other = _up(y, sweep) or next(axis.key for axis in varied if axis.key != key)
    if key == other:
        raise InputError(f"--y: found {shown(key)}, which is along --x already; expected another key")
    return [_map(name, key, other, sweep) for name in _shown([sweep], chosen)]


def _up(y: str | None, sweep: Swept) -> str | None:
    return named(y, [sweep], "--y") if y else None


def is_map(sweeps: Sequence[Swept]) -> bool:
    """Return True for a single sweep of two keys whose values are numbers or quantities."""
    varied = [axis for sweep in sweeps for axis in sweep.axes if len(axis.values) > 1]
    return len(sweeps) == 1 and len(varied) == 2 and all(quantities(axis.values) is not None for axis in varied)


def named(key: str, sweeps: Sequence[Swept], option: str) -> str:
    """Return a key that all have swept; its last name suffices. Raises `InputError`."""
    common = _common(sweeps)
    for axis, short in zip(common, short_keys(common), strict=True):
        if key in (axis.key, short):
            return axis.key
    raise InputError(f"{option}: found {shown(key)}; expected {nearest(key, [axis.key for axis in common])}")


def _common(sweeps: Sequence[Swept]) -> list[Axis]:
    """Return the keys that all have swept."""
    return [axis for axis in sweeps[0].axes if all(axis.key in {a.key for a in sweep.axes} for sweep in sweeps)]


def _shown(sweeps: Sequence[Swept], chosen: Choice) -> list[str]:
    """Return the metrics to show: those requested, else the main ones that have values."""
    expected = _computed_metrics(sweeps)
    if chosen.metrics:
        return [_computed(name, sweeps) for name in chosen.metrics]
    known = [name for name in expected if any(_has_value(point, name) for s in sweeps for point in s.points)]
    return known[:MAX_CHARTS]


def _computed(name: str, sweeps: Sequence[Swept]) -> str:
    known = [
        each for each in sweeps[0].metrics if all(each in s.metrics and not METRICS[each].per_flow for s in sweeps)
    ]
    result = full_name(name, known)
    if result is None:
        raise InputError(f"--y: found {shown(name)}; expected {nearest(name, known)}")
    if not any(_has_value(point, result) for sweep in sweeps for point in sweep.points):
        raise InputError(f"--y: {result}: found no value at any point; expected a metric that the engine measures")
    return result


def not_shared(sweeps: Sequence[Swept]) -> list[tuple[str, list[str]]]:
    """Return the metrics that only some sweeps have, with the engines or names of those."""
    every = dict.fromkeys(name for sweep in sweeps for name in sweep.metrics)
    having = {name: [n for n, sweep in enumerate(sweeps) if name in sweep.metrics] for name in every}
    return [
        (METRICS[name].label, [_origin(n, sweeps) for n in numbers_of])
        for name, numbers_of in having.items()
        if len(numbers_of) < len(sweeps)
    ]


def values_of(sweep: Swept, point: Mapping[str, Any]) -> list[str]:
    """Return a point's values of the swept keys, by short names."""
    return [
        dict(zip(map(label, axis.values), short_labels(axis.values), strict=True))[label(point["values"][axis.key])]
        for axis in sweep.axes
    ]


def quantities(values: Sequence[Any]) -> tuple[list[float], str] | None:
    """Return values as numbers in one unit, and its name; None unless they are quantities of one kind."""
    result = amounts(values)
    if result is None:
        return None
    return _scaled(list(result.values), _NAMES.get(result.unit, result.unit))


#: Unit → its name for readers.
_NAMES = {"B": "bytes", "p": "packets"}


def _scaled(values: list[float], unit: str) -> tuple[list[float], str]:
    """Express values in the unit that suits the greatest; a unit without scales keeps its name."""
    if unit not in numbers.SCALES:
        return values, unit
    factor, name = numbers.scale(max(values), unit)
    return [value / factor for value in values], name


def key_across(sweeps: Sequence[Swept]) -> str:
    """Return the default key of the horizontal axis. Raises `InputError` for sweeps with no key in common."""
    common = _common(sweeps)
    if not common:
        raise InputError("the sweeps have no swept key in common")
    numeric = [axis for axis in common if len(axis.values) > 1 and quantities(axis.values) is not None]
    return max(numeric or common[:1], key=lambda axis: len(axis.values)).key


def places_across(key: str, sweeps: Sequence[Swept]) -> tuple[dict[str, float], Across]:
    """Return the position of each value, by how the file writes it, and the axis."""
    axes = [axis for sweep in sweeps for axis in sweep.axes if axis.key == key]
    values = list({label(value): value for axis in axes for value in axis.values}.values())
    result = quantities(values)
    if result is None:
        places = {label(value): float(number) for number, value in enumerate(values)}
        return places, Across(key, logarithmic=False, names=tuple(short_labels(values)))
    amounts, unit = result
    wide = min(amounts) > 0 and max(amounts) / min(amounts) >= WIDE
    title = f"{key} ({unit})" if unit else key
    return dict(zip(map(label, values), amounts, strict=True)), Across(title, logarithmic=wide)


def _computed_metrics(sweeps: Sequence[Swept]) -> list[str]:
    common = [name for name in sweeps[0].metrics if all(name in sweep.metrics for sweep in sweeps)]
    if not common:
        raise InputError("the sweeps have no metric in common")
    computed = [name for name in common if not METRICS[name].per_flow]
    return computed if len(computed) <= MAX_CHARTS else [name for name in main("chart") if name in computed]


def _has_value(point: Mapping[str, Any], name: str) -> bool:
    return name in point["summary"] and point["summary"][name]["n"] > 0


def _chart(
    name: str,
    key: str,
    places: Mapping[str, float],
    across: Across,
    sweeps: Sequence[Swept],
    by: Sequence[str] | None,
) -> Chart:
    metric = METRICS[name]
    result = {
        (kind, number): [(places[label(p["values"][key])], p["summary"][name]) for p in points if _has_value(p, name)]
        for number, sweep in enumerate(sweeps)
        for kind, points in _kinds(sweep, key, by).items()
    }
    kinds = list(dict.fromkeys(kind for kind, _ in result))
    greatest = max(abs(row["mean"]) for rows in result.values() for _, row in rows)
    factor, unit = numbers.scale(greatest, metric.unit)
    lines = [
        _line(_line_name(kind, number, sweeps), kinds.index(kind), number, rows, factor)
        for (kind, number), rows in result.items()
        if rows
    ]
    return Chart(name, metric.label, unit, across, tuple(lines))


def _map(name: str, key: str, other: str, sweep: Swept) -> Map:
    metric = METRICS[name]
    (places, across), (steps, up) = places_across(key, [sweep]), places_across(other, [sweep])
    result: dict[tuple[float, float], Mapping[str, Any]] = {}
    for point in sweep.points:
        place = (steps[label(point["values"][other])], places[label(point["values"][key])])
        if place in result:
            raise _several_at_one_place(sweep, [key, other], "--where")
        result[place] = point["summary"][name]
    greatest = max((abs(each["mean"]) for each in result.values() if each["n"]), default=0.0)
    factor, unit = numbers.scale(greatest, metric.unit)
    x, y = sorted(set(places.values())), sorted(set(steps.values()))
    means = [[_mean(result.get((row, place)), factor) for place in x] for row in y]
    return Map(name, metric.label, unit, across, up, x, y, means)


def _mean(result: Mapping[str, Any] | None, factor: float) -> float:
    return math.nan if result is None or result["mean"] is None else float(result["mean"]) / factor


def _several_at_one_place(sweep: Swept, keys: Sequence[str], option: str) -> InputError:
    others = [axis.key for axis in sweep.axes if axis.key not in keys and len(axis.values) > 1]
    return InputError(f"{option}: found several points at one place; expected {', '.join(others)} there too")


def _kinds(sweep: Swept, key: str, by: Sequence[str] | None = None) -> dict[str, list[Mapping[str, Any]]]:
    """Group the points by their values of the other keys: a text, or a bare number with its key."""
    others = [axis for axis in sweep.axes if axis.key != key and (by is None or axis.key in by)]
    names = {axis.key: dict(zip(map(label, axis.values), short_labels(axis.values), strict=True)) for axis in others}
    result: dict[str, list[Mapping[str, Any]]] = {}
    visited = set()
    for point in sweep.points:
        values = [(point["values"][axis.key], axis) for axis in others]
        parts = [
            names[axis.key].get(value, value) if isinstance(value, str) else f"{short} = {label(value)}"
            for (value, axis), short in zip(values, short_keys(others), strict=True)
        ]
        kind = ", ".join(parts)
        if (place := (kind, label(point["values"][key]))) in visited:
            raise _several_at_one_place(sweep, [key, *(axis.key for axis in others)], "--by")
        visited.add(place)
        result.setdefault(kind, []).append(point)
    return result


def _line_name(kind: str, number: int, sweeps: Sequence[Swept]) -> str:
    """Return the other swept values, and the engine or name if there are several sweeps."""
    owner = _origin(number, sweeps) if len(sweeps) > 1 else ""
    return ", ".join(filter(None, (kind, owner))) or sweeps[number].engine


def _origin(number: int, sweeps: Sequence[Swept]) -> str:
    sweep = sweeps[number]
    return sweep.engine if len({other.engine for other in sweeps}) > 1 else sweep.name


def _line(name: str, kind: int, sweep: int, result: list[tuple[float, Mapping[str, Any]]], factor: float) -> Line:
    ordered = sorted(result, key=lambda pair: pair[0])

    def column(key: str) -> list[float]:
        return [math.nan if row[key] is None else row[key] / factor for _, row in ordered]

    return Line(name, kind, sweep, [x for x, _ in ordered], column("mean"), column("ci95_low"), column("ci95_high"))
