"""Figure specs as numbers that every back end draws alike: panels over one time axis, layers in each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ackclock.figures import palette
from ackclock.figures.curves import Lines
from ackclock.metrics.view import Array

#: Colours of all figures.
GREY, LIGHT, PURPLE, INK = "#8A8A8A", "#BBBBBB", "#7B52AB", palette.INK
BLUE, RED, GREEN, PINK, SKY, ORANGE = palette.COLOURS


@dataclass(frozen=True, slots=True)
class Line:
    """A curve; `steps`: each value holds until the next; `dotted`: of minor importance; `listed`: in the legend."""

    name: str
    x: Array
    y: Array
    colour: str
    steps: bool = False
    dotted: bool = False
    listed: bool = True


@dataclass(frozen=True, slots=True)
class Curves:
    """A curve for each flow, × `scale`; a cloud of curves with mean and 80 % band where they are many."""

    lines: Lines
    scale: float = 1.0


@dataclass(frozen=True, slots=True)
class Spans:
    """Shaded intervals of time."""

    starts: Array
    ends: Array
    colour: str


@dataclass(frozen=True, slots=True)
class Strokes:
    """Straight lines, each from (x, y) to (x_end, y_end); `wide`: as bars."""

    name: str
    x: Array
    y: Array
    x_end: Array
    y_end: Array
    colour: str
    wide: bool = False


@dataclass(frozen=True, slots=True)
class Points:
    """Markers at positions: `x`, `o`, `.`, `^`, `v` or `D`; with a `size` (points), filled dots of this diameter."""

    name: str
    x: Array
    y: Array
    colour: str
    sign: str = "o"
    size: float = 0.0


@dataclass(frozen=True, slots=True)
class Stack:
    """Stacked areas: `heights` is parts × steps; a step lasts from `edges[n]` to `edges[n + 1]`."""

    names: tuple[str, ...]
    edges: Array
    heights: Array
    colours: tuple[str, ...]


Layer = Line | Curves | Spans | Strokes | Points | Stack


class Reference(NamedTuple):
    """A horizontal line with its name in the right margin; `side` is the name's vertical alignment."""

    value: float
    name: str
    side: str = "center"


@dataclass(frozen=True, slots=True)
class Panel:
    """One vertical axis with its unit, its layers, and named reference lines.

    `names` replace the numbers 0, 1, … of the axis, `limits` are its ends, `ticks` its places with their texts;
    `weight` is the panel's share of the height.
    """

    axis: str
    layers: Sequence[Layer]
    references: tuple[Reference, ...] = ()
    from_zero: bool = True
    names: tuple[str, ...] = ()
    unit: str = ""
    limits: tuple[float, float] | None = None
    ticks: tuple[tuple[float, str], ...] = ()
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Drawing:
    """A figure: its heading, its caption, and its panels over the time from `start_s` to `end_s`.

    The time before `warmup_s` is shaded. `height_in` is the height in print; `precise`: a page keeps times in full
    precision, for zooming down to microseconds. `title` is the heading in print where it differs.
    """

    key: str
    heading: str
    caption: str
    panels: Sequence[Panel]
    start_s: float
    end_s: float
    warmup_s: float = 0.0
    height_in: float | None = None
    precise: bool = False
    title: str = ""


def span(values: Sequence[Array]) -> float:
    """Return the greatest known value; 0 if there is none."""
    greatest = [float(np.nanmax(array)) for array in values if array.size and not np.isnan(array).all()]
    return max(greatest, default=0.0)
