"""Keys, values and metrics of sweeps, and the selection of what is drawn of them.

The horizontal axis is the swept key whose values are numbers or quantities of one kind and of which there are most; if
there is none, the first key, its values side by side.

Used by figures, tables, reports and sentences of sweeps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import polars as pl

from ackclock.errors import InputError
from ackclock.figures import figure_spec, numbers
from ackclock.input.fields import nearest, shown
from ackclock.metrics import METRICS, full_name, main, with_groups
from ackclock.scenario.points import Axis, amounts, label, short_keys, short_labels

#: Charts at most: of the main metrics, those that there are; of all, if few were computed. Those by group are extra.
MAX_CHARTS = 8

#: An axis whose largest value is so many times its smallest is logarithmic.
WIDE = 20.0

#: Unit → its name for readers.
UNITS = {"B": "bytes", "p": "packets", "bdp": "BDP"}

#: Keys, and names within keys, that have another name for readers.
TITLES = {
    "network.queue": "queueing discipline",
    "network.queue.discipline": "queueing discipline",
    "network.rate": "link rate",
    "congestion": "congestion control",
    "count": "number of flows",
    "ecn": "ECN",
    "mss": "MSS",
    "rtt": "RTT",
}


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
    def warnings(self) -> list[str]:
        """Why the results may mislead, in sentences."""

    @property
    def points(self) -> list[dict[str, Any]]:
        """For each point its `values` and the `summary` of each metric."""

    @property
    def table(self) -> pl.DataFrame:
        """A row for each run: the swept keys and the metrics."""

    @property
    def manifest(self) -> Mapping[str, Any]:
        """Scenario, command, versions."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Selection of a sweep's content: the key along the horizontal axis, the metrics, and the keys of the lines.

    Empty fields mean the defaults: one key, the main metrics, all other keys.
    """

    x: str | None = None
    metrics: tuple[str, ...] = ()
    by: tuple[str, ...] | None = None


def varied(axes: Sequence[Axis]) -> list[Axis]:
    """Return the keys that have several values."""
    return [axis for axis in axes if len(axis.values) > 1]


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


def key_across(sweeps: Sequence[Swept]) -> str:
    """Return the default key of the horizontal axis. Raises `InputError` for sweeps with no key in common."""
    common = _common(sweeps)
    if not common:
        raise InputError("the sweeps have no swept key in common")
    numeric = [axis for axis in varied(common) if quantities(axis.values) is not None]
    return max(numeric or common[:1], key=lambda axis: len(axis.values)).key


def metrics_to_show(sweeps: Sequence[Swept], chosen: Choice) -> list[str]:
    """Return the metrics requested, else the main ones that all have and that have values, also by group.

    Raises `InputError`.
    """
    common = [name for name in sweeps[0].metrics if all(name in sweep.metrics for sweep in sweeps)]
    if not common:
        raise InputError("the sweeps have no metric in common")
    scalar = [name for name in common if not METRICS[name].per_flow]
    if chosen.metrics:
        return [_requested(name, scalar, sweeps) for name in chosen.metrics]
    expected = scalar if len(scalar) <= MAX_CHARTS else [name for name in main("chart") if name in scalar]
    found = [name for name in expected if _has_any_value(name, sweeps)][:MAX_CHARTS]
    by_group = with_groups(found, [name for name in scalar if _has_any_value(name, sweeps)])
    return list(dict.fromkeys(by_group))


def _requested(name: str, known: Sequence[str], sweeps: Sequence[Swept]) -> str:
    result = full_name(name, known)
    if result is None:
        raise InputError(f"--y: found {shown(name)}; expected {nearest(name, known)}")
    if not _has_any_value(result, sweeps):
        raise InputError(f"--y: {result}: found no value at any point; expected a metric that the engine measures")
    return result


def _has_any_value(name: str, sweeps: Sequence[Swept]) -> bool:
    return any(has_value(point, name) for sweep in sweeps for point in sweep.points)


def has_value(point: Mapping[str, Any], name: str) -> bool:
    """Return True if a metric has a mean at a point."""
    return name in point["summary"] and point["summary"][name]["n"] > 0


def not_shared(sweeps: Sequence[Swept]) -> list[tuple[str, list[str]]]:
    """Return the metrics that only some sweeps have, with the engines or names of those."""
    every = dict.fromkeys(name for sweep in sweeps for name in sweep.metrics)
    having = {name: [n for n, sweep in enumerate(sweeps) if name in sweep.metrics] for name in every}
    return [
        (METRICS[name].label, [origin(n, sweeps) for n in numbers_of])
        for name, numbers_of in having.items()
        if len(numbers_of) < len(sweeps)
    ]


def origin(number: int, sweeps: Sequence[Swept]) -> str:
    """Return the engine of a sweep, or its name if all have the same engine."""
    sweep = sweeps[number]
    return sweep.engine if len({other.engine for other in sweeps}) > 1 else sweep.name


def values_of(sweep: Swept, point: Mapping[str, Any]) -> list[str]:
    """Return a point's values of the swept keys, by short names."""
    return [short_names(axis.values)[label(point["values"][axis.key])] for axis in sweep.axes]


def short_names(values: Sequence[Any]) -> dict[str, str]:
    """Return the short name of each value, by how the file writes it."""
    return dict(zip(map(label, values), short_labels(values), strict=True))


def namer(axes: Sequence[Axis]) -> Callable[[Mapping[str, Any]], str]:
    """Return a function that names values of these keys: a text, or a bare number with its key."""
    short, keys = {axis.key: short_names(axis.values) for axis in axes}, short_keys(axes)

    def name(values: Mapping[str, Any]) -> str:
        return ", ".join(
            short[axis.key].get(value, value) if isinstance(value, str) else f"{key} = {label(value)}"
            for axis, key in zip(axes, keys, strict=True)
            for value in (values[axis.key],)
        )

    return name


def scale(metric: str, values: Iterable[float | None]) -> tuple[float, str, str]:
    """Return the divisor and the unit that suit the greatest of a metric's values, and its label with that unit."""
    greatest = max((abs(value) for value in values if value is not None), default=0.0)
    factor, unit = numbers.scale(greatest, METRICS[metric].unit)
    return factor, unit, f"{METRICS[metric].label} ({unit})" if unit else METRICS[metric].label


def quantities(values: Sequence[Any]) -> tuple[list[float], str] | None:
    """Return values as numbers in one unit, and its name; None unless they are quantities of one kind."""
    result = amounts(values)
    if result is None:
        return None
    unit = UNITS.get(result.unit, result.unit)
    if unit not in numbers.SCALES:
        return list(result.values), unit
    factor, name = numbers.scale(max(result.values), unit)
    return [value / factor for value in result.values], name


def key_title(key: str) -> str:
    """Return a key as the title of an axis: `network.queue.limit` as "Queue limit", `flows[1].rtt` as "RTT, flows[1]".

    The table of the network is left out, that of a group of flows follows.
    """
    whole, path = TITLES.get(key), key.removeprefix("network.")
    head, _, rest = path.partition(".")
    owner, path = (f", {head}", rest) if "[" in head and rest else ("", path)
    title = whole or " ".join(TITLES.get(name, name.replace("_", " ")) for name in path.split("."))
    return title[:1].upper() + title[1:] + owner


def places_of(key: str, sweeps: Sequence[Swept]) -> tuple[dict[str, float], figure_spec.Axis]:
    """Return the position of each value of a key, by how the file writes it, and the axis."""
    return places(key, [value for sweep in sweeps for axis in sweep.axes if axis.key == key for value in axis.values])


def places(key: str, values: Sequence[Any]) -> tuple[dict[str, float], figure_spec.Axis]:
    """Return the position of each value, by how the file writes it, and the axis."""
    every = {label(value): value for value in values}
    result = quantities(list(every.values()))
    if result is None:
        positions = {text: float(number) for number, text in enumerate(every)}
        return positions, figure_spec.named(key_title(key), short_labels(list(every.values())))
    found, unit = result
    wide = min(found) > 0 and max(found) / min(found) >= WIDE
    title = f"{key_title(key)} ({unit})" if unit else key_title(key)
    return dict(zip(every, found, strict=True)), figure_spec.Axis(title, unit, logarithmic=wide)
