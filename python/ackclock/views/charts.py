"""What the figures of a sweep show, as numbers: each main metric over one swept key, a line for every other value.

Shared by print (`plots.swept`) and report (`report.swept`). The horizontal axis is the swept key whose values are
numbers or quantities of one kind and of which there are most; if there is none, the first key, its values side by side.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ackclock.errors import InputError
from ackclock.input import units
from ackclock.metrics import METRICS, main
from ackclock.scenario.points import Axis, label, short_keys
from ackclock.views import numbers

#: Charts at most: of the main metrics, those that there are; of all, if few were computed.
MOST = 8

#: An axis whose largest value is so many times its smallest is logarithmic.
WIDE = 20.0


class Swept(Protocol):
    """What is drawn: `ackclock.campaigns.sweep.table.Sweep` is one."""

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
class Across:
    """The horizontal axis: its title, whether it is logarithmic, and names of its places where they are no numbers."""

    title: str
    logarithmic: bool
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Line:
    """One line: places, means, and their intervals (NaN where there is none), in the chart's unit.

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
    """A metric over the swept key."""

    metric: str
    title: str
    unit: str
    across: Across
    lines: tuple[Line, ...]


def charts(sweeps: Sequence[Swept]) -> list[Chart]:
    """A chart for each main metric; of several sweeps (engines, say) the lines of all. Raises `InputError`.

    The sweeps must have swept the same keys, or some of the same: the first one's horizontal axis is that of all.
    """
    if not sweeps or not all(sweep.axes for sweep in sweeps):
        raise InputError("there is nothing swept to draw")
    key = _key_across(sweeps)
    places, across = _across(key, sweeps)
    names = [name for name in _wanted(sweeps) if any(_known(point, name) for s in sweeps for point in s.points)]
    return [_chart(name, key, places, across, sweeps) for name in names[:MOST]]


def not_shared(sweeps: Sequence[Swept]) -> list[tuple[str, list[str]]]:
    """The metrics that some sweep has and others have not, with the engines or names of those that have them."""
    every = dict.fromkeys(name for sweep in sweeps for name in sweep.metrics)
    having = {name: [n for n, sweep in enumerate(sweeps) if name in sweep.metrics] for name in every}
    return [
        (METRICS[name].label, [_whose(n, sweeps) for n in numbers_of])
        for name, numbers_of in having.items()
        if len(numbers_of) < len(sweeps)
    ]


def quantities(values: Sequence[Any]) -> tuple[list[float], str] | None:
    """Values that are numbers, or quantities of one kind, as numbers in one unit, and its name; None for others."""
    if all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values):
        return [float(value) for value in values], ""
    for read, unit in ((units.time_s, "s"), (units.rate_bps, "bit/s"), (units.count_rate_hz, "1/s")):
        if (found := _read(read, values)) is not None:
            return _scaled(found, unit)
    sizes = _read(units.size, values)
    kinds = {size.unit for size in sizes} if sizes else set()
    if sizes and len(kinds) == 1:
        (kind,) = kinds
        return _scaled([size.value for size in sizes], {"B": "bytes", "p": "packets"}.get(kind, kind))
    return None


def _read(read: Callable[[object], Any], values: Sequence[Any]) -> list[Any] | None:
    try:
        return [read(value) for value in values]
    except units.UnitError:
        return None


def _scaled(values: list[float], unit: str) -> tuple[list[float], str]:
    """In the unit that suits the greatest; one without scales keeps its name."""
    if unit not in numbers.SCALES:
        return values, unit
    factor, name = numbers.scale(max(values), unit)
    return [value / factor for value in values], name


def _key_across(sweeps: Sequence[Swept]) -> str:
    common = [axis for axis in sweeps[0].axes if all(axis.key in {a.key for a in sweep.axes} for sweep in sweeps)]
    if not common:
        raise InputError("the sweeps have no swept key in common")
    numeric = [axis for axis in common if len(axis.values) > 1 and quantities(axis.values) is not None]
    return max(numeric or common[:1], key=lambda axis: len(axis.values)).key


def _across(key: str, sweeps: Sequence[Swept]) -> tuple[dict[str, float], Across]:
    """The place of each value, by how the file writes it."""
    axes = [axis for sweep in sweeps for axis in sweep.axes if axis.key == key]
    values = list({label(value): value for axis in axes for value in axis.values}.values())
    found = quantities(values)
    if found is None:
        names = tuple(map(label, values))
        return {name: float(number) for number, name in enumerate(names)}, Across(key, logarithmic=False, names=names)
    amounts, unit = found
    wide = min(amounts) > 0 and max(amounts) / min(amounts) >= WIDE
    title = f"{key} ({unit})" if unit else key
    return dict(zip(map(label, values), amounts, strict=True)), Across(title, logarithmic=wide)


def _wanted(sweeps: Sequence[Swept]) -> list[str]:
    common = [name for name in sweeps[0].metrics if all(name in sweep.metrics for sweep in sweeps)]
    if not common:
        raise InputError("the sweeps have no metric in common")
    computed = [name for name in common if not METRICS[name].per_flow]
    return computed if len(computed) <= MOST else [name for name in main("chart") if name in computed]


def _known(point: Mapping[str, Any], name: str) -> bool:
    return name in point["summary"] and point["summary"][name]["n"] > 0


def _chart(name: str, key: str, places: Mapping[str, float], across: Across, sweeps: Sequence[Swept]) -> Chart:
    metric = METRICS[name]
    found = {
        (kind, number): [(places[label(p["values"][key])], p["summary"][name]) for p in points if _known(p, name)]
        for number, sweep in enumerate(sweeps)
        for kind, points in _kinds(sweep, key).items()
    }
    kinds = list(dict.fromkeys(kind for kind, _ in found))
    greatest = max(abs(row["mean"]) for rows in found.values() for _, row in rows)
    factor, unit = numbers.scale(greatest, metric.unit)
    lines = [
        _line(_line_name(kind, number, sweeps), kinds.index(kind), number, rows, factor)
        for (kind, number), rows in found.items()
        if rows
    ]
    return Chart(name, metric.label, unit, across, tuple(lines))


def _kinds(sweep: Swept, key: str) -> dict[str, list[Mapping[str, Any]]]:
    """The points by what they have at the other keys: a text, or a bare number with its key."""
    others = [axis for axis in sweep.axes if axis.key != key]
    found: dict[str, list[Mapping[str, Any]]] = {}
    for point in sweep.points:
        parts = [
            value if isinstance(value := point["values"][axis.key], str) else f"{short} = {label(value)}"
            for axis, short in zip(others, short_keys(others), strict=True)
        ]
        found.setdefault(", ".join(parts), []).append(point)
    return found


def _line_name(kind: str, number: int, sweeps: Sequence[Swept]) -> str:
    """What else was swept; and whose it is, if there are several sweeps."""
    whose = _whose(number, sweeps) if len(sweeps) > 1 else ""
    return ", ".join(filter(None, (kind, whose))) or sweeps[number].engine


def _whose(number: int, sweeps: Sequence[Swept]) -> str:
    sweep = sweeps[number]
    return sweep.engine if len({other.engine for other in sweeps}) > 1 else sweep.name


def _line(name: str, kind: int, sweep: int, found: list[tuple[float, Mapping[str, Any]]], factor: float) -> Line:
    ordered = sorted(found, key=lambda pair: pair[0])

    def column(key: str) -> list[float]:
        return [math.nan if row[key] is None else row[key] / factor for _, row in ordered]

    return Line(name, kind, sweep, [x for x, _ in ordered], column("mean"), column("ci95_low"), column("ci95_high"))
