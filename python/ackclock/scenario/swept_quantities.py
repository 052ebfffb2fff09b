"""Swept values as numbers: what a file writes as `"1Gbit"` is 1e9 bit/s to whoever computes with it, or draws it.

The one place that reads values of a sweep as quantities. They are numbers together if they are of one kind: rates,
times, sizes in one unit, or numbers without any.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ackclock.input import units
from ackclock.scenario.points import Axis, label

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
        if (found := _read(read, values)) is not None:
            return Amounts(found, unit)
    sizes = _read(units.size, values)
    kinds = {size.unit for size in sizes} if sizes else set()
    return Amounts(tuple(size.value for size in sizes), kinds.pop()) if sizes and len(kinds) == 1 else None


def numeric_column(axis: Axis) -> NumericColumn | None:
    """`network.rate_bps` beside `network.rate`; None for names, and for numbers, which are their own."""
    found = amounts(axis.values)
    if found is None or not found.unit:
        return None
    return NumericColumn(axis.key + SUFFIXES[found.unit], dict(zip(map(label, axis.values), found.values, strict=True)))


def _read(read: Callable[[object], Any], values: Sequence[Any]) -> tuple[Any, ...] | None:
    try:
        return tuple(read(value) for value in values)
    except units.UnitError:
        return None
