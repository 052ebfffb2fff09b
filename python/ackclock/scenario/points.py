"""The table `[sweep]` of a scenario file: lists of values by keys, whose every combination is a point.

    [sweep]
    "network.queue.limit" = ["0.1bdp", "0.3bdp", "1bdp"]
    "flows[0].congestion" = ["reno", "cubic"]

has six points; the last key changes fastest. A key is written as mistakes name it: dotted, with `[0]`, `[1]` … for the
tables of a list. Quotes around it may be left out where TOML allows that. A value stands where its key says, in place
of whatever the file has there, and may be anything: a text, a number, a list, a table. A key inside another swept key
is set after it.

Swept values may be numbers: what a file writes as `"1Gbit"` is 1e9 bit/s to whoever computes with it, or draws it. They
are numbers together if they are of one kind: rates, times, sizes in one unit, or numbers without any.

Used by whatever goes through points: sweeps, searches, effects, `evaluate`, and their figures and tables.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ackclock.errors import InputError, Problem, ScenarioError
from ackclock.input import cli_values, units
from ackclock.input.fields import Loc, dotted, nearest, shown
from ackclock.input.source import Overlay, Source, overlay

#: Most points of a sweep.
MAX_POINTS = 1_000_000

#: Most names and indexes of a key: a scenario's have less than ten.
MAX_STEPS = 32

#: A name and the indexes behind it: `network`, `flows[0]`.
_STEP = re.compile(r"([A-Za-z_][\w-]*)((?:\[\d{1,6}\])*)", re.ASCII)

#: Functions that read quantities, and their base units.
_READERS: tuple[tuple[Callable[[object], float], str], ...] = (
    (units.time_s, "s"),
    (units.rate_bps, "bit/s"),
    (units.count_rate_hz, "1/s"),
)

#: Suffixes of column names by the unit of their numbers.
SUFFIXES = {
    "s": "_s",
    "bit/s": "_bps",
    "1/s": "_hz",
    "B": "_bytes",
    "p": "_p",
    "bdp": "_bdp",
    units.OVER_SQRT_N: "_bdp_over_sqrt_n",
}

_A_KEY = 'a key such as "network.queue.limit" or "flows[0].congestion"'
_A_LIST = 'a list of different values, such as ["0.3bdp", "1bdp"]'


@dataclass(frozen=True, slots=True)
class Axis:
    """One swept key: as text, its place in a scenario, and its place in the file; its values as they are written, and
    where in the file's list they stand.
    """  # noqa: D205

    key: str
    path: Loc
    place: Loc
    values: tuple[Any, ...]
    items: tuple[int, ...]

    @property
    def last(self) -> str:
        """The last name of the key: `limit` of `network.queue.limit`."""
        return str(next(step for step in reversed(self.path) if isinstance(step, str)))


@dataclass(frozen=True)
class Sweep:
    """The axes of a sweep, and what the scenario is without them."""

    axes: tuple[Axis, ...]
    base: Mapping[str, Any]
    source: Source

    @property
    def count(self) -> int:
        """The number of points."""
        return math.prod(len(axis.values) for axis in self.axes)

    def values(self, number: int) -> dict[str, Any]:
        """Return the value of each swept key at point `number` (from 0)."""
        return {axis.key: axis.values[place] for axis, place in zip(self.axes, self.places(number), strict=True)}

    def content(self, number: int) -> tuple[dict[str, Any], Overlay]:
        """The scenario's values at a point, and the file as that point sees it. Raises `ScenarioError`."""
        chosen = zip(self.axes, self.places(number), strict=True)
        values = [(axis.path, axis.values[place], (*axis.place, axis.items[place])) for axis, place in chosen]
        source = overlay(self.source, dict(self.base), values)
        return source.content, source

    def only(self, chosen: Mapping[str, Sequence[str]]) -> Sweep:
        """The points that have some of the values only, by keys, as the file writes them. Raises `InputError`."""
        known = {axis.key: axis for axis in self.axes}
        short = {name: axis.key for axis, name in zip(self.axes, short_keys(self.axes), strict=True)}
        chosen = {short.get(key, key): texts for key, texts in chosen.items()}
        for key, texts in chosen.items():
            if key not in known:
                raise InputError(f"where: found {shown(key)}; expected {nearest(key, list(known))}")
            values = known[key].values
            for text in texts:
                if not _places(values, text):
                    expected = nearest(text, list(map(label, values)))
                    raise InputError(f"where: {key}: found {shown(text)}; expected {expected}")
        return replace(self, axes=tuple(_some(axis, chosen.get(axis.key)) for axis in self.axes))

    def places(self, number: int) -> list[int]:
        """Return the position of a point on each axis, from 0."""
        places = []
        for axis in reversed(self.axes):
            number, place = divmod(number, len(axis.values))
            places.append(place)
        return places[::-1]


def sweep(content: Mapping[str, Any], source: Source) -> Sweep | None:
    """The sweep of a scenario file, if it has one. Raises `ScenarioError` with every mistake of the table's form."""
    if "sweep" not in content:
        return None
    problems: list[Problem] = []
    axes = tuple(_axes(content["sweep"], ("sweep",), (), source, problems))
    if not problems:
        problems += _clashes(axes, source)
    if problems:
        raise ScenarioError(problems)
    return Sweep(axes, {key: value for key, value in content.items() if key != "sweep"}, source)


def label(value: Any) -> str:
    """Return a value as the file has it, on one line: a text without its quotes, a whole number without its point."""
    return value if isinstance(value, str) else inline(_without_points(value))


def short_labels(values: Sequence[Any]) -> list[str]:
    """Return short, unique labels of an axis's values.

    A table is labelled by the word that selects it (`fq_codel`), followed by what differs from others with the same
    word (`pfifo 1bdp`); other values as the file has them.
    """
    names = [_short(value, values) for value in values]
    return [label(value) if names.count(name) > 1 else name for name, value in zip(names, values, strict=True)]


#: The keys of a table that say which one it is.
WHICH = ("discipline", "kind", "topology", "stack", "distribution")


def _short(value: Any, every: Sequence[Any]) -> str:
    word = _word(value)
    if word is None or isinstance(value, str):
        return label(value)
    same = [other for other in every if _word(other) == word]
    differing = [
        key
        for key in value
        if any(not isinstance(other, dict) or other.get(key) != value[key] for other in same) and key not in WHICH
    ]
    parts = [value[key] if isinstance(value[key], str) else f"{key} {label(value[key])}" for key in differing]
    return " ".join([word, *parts])


def _word(value: Any) -> str | None:
    """Return the word that selects a table; a text is its own word among tables."""
    if isinstance(value, dict):
        return next((value[key] for key in WHICH if isinstance(value.get(key), str)), None)
    return value if isinstance(value, str) else None


def short_keys(axes: Sequence[Axis]) -> list[str]:
    """Return short names of the axes: the last parts of their keys that are unique, such as `limit` or `up.queue`."""
    names = [axis.last for axis in axes]
    keys = [axis.key.split(".") for axis in axes]
    ends = [[".".join(key[-n:]) for key in keys] for n in range(2, MAX_STEPS)]
    return [
        axis.last if names.count(axis.last) == 1 else next(end[n] for end in ends if end.count(end[n]) == 1)
        for n, axis in enumerate(axes)
    ]


def described(values: Mapping[str, Any]) -> str:
    """A point in words: `network.queue.limit = 1bdp, flows[0].congestion = reno`."""
    return ", ".join(f"{key} = {label(value)}" for key, value in values.items())


def _some(axis: Axis, texts: Sequence[str] | None) -> Axis:
    if texts is None:
        return axis
    kept = sorted({place for text in texts for place in _places(axis.values, text)})
    return replace(axis, values=tuple(axis.values[k] for k in kept), items=tuple(axis.items[k] for k in kept))


def _places(values: Sequence[Any], text: str) -> list[int]:
    """Return the positions of the values that a text means: by label, or as TOML regardless of spacing."""
    names = zip(values, short_labels(values), strict=True)
    meant = exact(cli_values.value(text))
    return [
        place for place, (value, short) in enumerate(names) if text in (label(value), short) or exact(value) == meant
    ]


def exact(value: Any) -> str:
    """Return the same text for equal values, whatever the order of a table's keys: 1 and 1.0 are equal."""
    return json.dumps(_without_points(value), sort_keys=True, default=str)


def _without_points(value: Any) -> Any:
    """Return a value whose whole numbers are integers, as they are where a table of points has them as floats."""
    if isinstance(value, dict):
        return {key: _without_points(item) for key, item in value.items()}
    if isinstance(value, list):
        return list(map(_without_points, value))
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _axes(found: Any, place: Loc, path: Loc, source: Source, problems: list[Problem]) -> Iterator[Axis]:
    """The axes in a table, and in the tables that dotted keys without quotes make in it."""
    if not isinstance(found, dict) or not found:
        expected = "a table of keys with lists of values" if len(place) == 1 else _A_LIST
        problems.append(source.problem(place, "nothing" if found == {} else shown(found), expected))
        return
    for key, value in found.items():
        steps = path_of(key)
        if steps is None or (not path and steps[0] == "sweep"):
            problems.append(source.problem((*place, key), shown(key), _A_KEY))
        elif isinstance(value, list):
            yield from _axis((*path, *steps), (*place, key), value, source, problems)
        else:
            yield from _axes(value, (*place, key), (*path, *steps), source, problems)


def _axis(path: Loc, place: Loc, values: list[Any], source: Source, problems: list[Problem]) -> Iterator[Axis]:
    # Two values with one label could not be told apart in a table or a figure: "1" and 1.
    if values and all(len(set(map(of, values))) == len(values) for of in (exact, label)):
        yield Axis(dotted(path), path, place, tuple(values), tuple(range(len(values))))
    else:
        twice = "one value twice" if values else "an empty list"
        problems.append(source.problem(place, twice, _A_LIST))


def _clashes(axes: tuple[Axis, ...], source: Source) -> Iterator[Problem]:
    first = {axis.path: axis for axis in reversed(axes)}
    for axis in axes:
        if first[axis.path] is not axis:
            yield source.problem(axis.place, "a key that is swept already", "each key once")
    count = math.prod(len(axis.values) for axis in axes)
    if count > MAX_POINTS:
        yield source.problem(("sweep",), f"{count:,} points", f"at most {MAX_POINTS:,}")


def path_of(key: str) -> Loc | None:
    """`flows[0].congestion` → ("flows", 0, "congestion"); None for what is no such key."""
    if key.count(".") + key.count("[") > MAX_STEPS:
        return None
    steps: list[str | int] = []
    for part in key.split("."):
        match = _STEP.fullmatch(part)
        if match is None:
            return None
        steps += [match[1], *map(int, re.findall(r"\d+", match[2]))]
    return tuple(steps)


def inline(value: Any) -> str:
    """A value as TOML writes it inline."""
    if isinstance(value, dict):
        items = ", ".join(f"{_bare_or_quoted(key)} = {inline(item)}" for key, item in value.items())
        return f"{{ {items} }}" if items else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(inline, value))}]"
    if isinstance(value, (str, bool)):
        return json.dumps(value, ensure_ascii=False)
    return str(value)


def _bare_or_quoted(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else json.dumps(key, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Amounts:
    """Numbers in one base unit; the unit is empty for bare numbers."""

    values: tuple[float, ...]
    unit: str


@dataclass(frozen=True, slots=True)
class NumericColumn:
    """The column of numbers that stands beside a swept key's texts: its name, and the number of each text."""

    column: str
    numbers: Mapping[str, float]


def amounts(values: Sequence[Any]) -> Amounts | None:
    """The values as numbers of one kind; None where they are names, tables, truth values, or of several kinds."""
    if all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values):
        return Amounts(tuple(map(float, values)), "")
    for read, unit in _READERS:
        if (found := _read_all(read, values)) is not None:
            return Amounts(found, unit)
    sizes = _read_all(units.size, values)
    kinds = {size.unit for size in sizes} if sizes else set()
    return Amounts(tuple(size.value for size in sizes), kinds.pop()) if sizes and len(kinds) == 1 else None


def numeric_column(axis: Axis) -> NumericColumn | None:
    """`network.rate_bps` beside `network.rate`; None for names, and for numbers, which are their own."""
    found = amounts(axis.values)
    if found is None or not found.unit:
        return None
    return NumericColumn(axis.key + SUFFIXES[found.unit], dict(zip(map(label, axis.values), found.values, strict=True)))


def _read_all(read: Callable[[object], Any], values: Sequence[Any]) -> tuple[Any, ...] | None:
    try:
        return tuple(read(value) for value in values)
    except units.UnitError:
        return None
