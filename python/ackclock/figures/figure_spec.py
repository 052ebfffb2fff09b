"""Figure specs as numbers that every back end draws alike: panels over one time axis, layers in each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ackclock.figures import palette
from ackclock.metrics.view import Array

#: What looks the same in every figure.
GREY, LIGHT, PURPLE, INK = "#8A8A8A", "#BBBBBB", "#7B52AB", palette.INK
BLUE, RED, GREEN, PINK, SKY, ORANGE = palette.COLOURS


@dataclass(frozen=True, slots=True)
class Line:
    """A curve; `steps`: each value holds until the next."""

    name: str
    x: Array
    y: Array
    colour: str
    steps: bool = False


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
    """Markers at positions: `x`, `o`, `.`, `^`, `v` or `D`."""

    name: str
    x: Array
    y: Array
    colour: str
    sign: str = "o"


@dataclass(frozen=True, slots=True)
class Stack:
    """Stacked areas: `heights` is parts × steps; a step lasts from `edges[n]` to `edges[n + 1]`."""

    names: tuple[str, ...]
    edges: Array
    heights: Array
    colours: tuple[str, ...]


Layer = Line | Strokes | Points | Stack


@dataclass(frozen=True, slots=True)
class Panel:
    """One vertical axis with its unit, its layers, and named reference lines."""

    axis: str
    layers: Sequence[Layer]
    references: tuple[tuple[float, str], ...] = ()
    from_zero: bool = True
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Drawing:
    """A figure: its heading, its caption, and its panels over the time from `start_s` to `end_s`."""

    key: str
    heading: str
    caption: str
    panels: Sequence[Panel]
    start_s: float
    end_s: float


def span(values: Sequence[Array]) -> float:
    """Return the greatest known value; 0 if there is none."""
    greatest = [float(np.nanmax(array)) for array in values if array.size and not np.isnan(array).all()]
    return max(greatest, default=0.0)
