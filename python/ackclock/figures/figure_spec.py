"""Figure specs as numbers that every back end draws alike: panels with their axes, layers in each.

Made by `*_figures.py` and `evaluate`; drawn by `plots.drawing`, `report.drawing` and `xplot`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ackclock.errors import InputError
from ackclock.figures.curves import Lines
from ackclock.input.fields import shown
from ackclock.metrics.view import Array

#: Okabe and Ito's palette (2008) without its yellow, which vanishes on white; neighbours differ in lightness too.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
BLUE, RED, GREEN, PINK, SKY, ORANGE = COLOURS
GREY, LIGHT, PURPLE, INK = "#8A8A8A", "#BBBBBB", "#7B52AB", "#222222"

#: Colours of heat maps: light to dark, so that the order shows in grey too.
SHADES = ("#F2F7FB", "#9BBBD3", "#0072B2", "#003A5C")

#: Names of dashes: those of lines that repeat the colours, and those of what is laid over a figure.
DASHES = ("solid", "dash", "dot")
OVERLAID = ("longdash", "dot", "dashdot")

#: Markers of lines, one for each colour, so that a line is recognised in grey.
MARKS = ("o", "s", "^", "D", "v", "x")

#: An axis whose values span at least this factor is logarithmic.
DECADES = 100.0

#: Intervals at most between the powers of ten that such an axis names where it has a zero, and the distance of the
#: zero from the lowest, as a share of the decades: their texts do not touch.
MAX_DECADES, ZERO_GAP = 3, 0.3

#: More flows than this are a cloud with its mean, not lines with a legend.
MAX_LINES = 12

#: A group of this many flows or fewer is drawn as lines even beside clouds.
FEW = 3


def colour(number: int) -> str:
    """Return the colour of line `number`; colours repeat."""
    return COLOURS[number % len(COLOURS)]


def mark(number: int) -> str:
    """Return the marker of line `number`; it repeats with the colours."""
    return MARKS[number % len(MARKS)]


def dash(number: int) -> str:
    """Return the dashes of line `number`: each colour with the first, then with the next."""
    return DASHES[number // len(COLOURS) % len(DASHES)]


def overlaid(number: int) -> str:
    """Return the dashes of the overlay `number`; they repeat."""
    return OVERLAID[number % len(OVERLAID)]


@dataclass(frozen=True, slots=True)
class Line:
    """A curve; `steps`: each value holds until the next; `listed`: in the legend; `over`: above all else.

    `detail` is what a page calls it where the pointer is; by default its name. `sign` is a marker that print repeats
    along the curve.
    """

    name: str
    x: Array
    y: Array
    colour: str
    dash: str = "solid"
    width: float = 1.0
    steps: bool = False
    listed: bool = True
    over: bool = False
    detail: str = ""
    sign: str = ""


@dataclass(frozen=True, slots=True)
class Crowd:
    """Many thin lines over the same times: `values` is times × lines."""

    name: str
    x: Array
    values: Array
    colour: str


@dataclass(frozen=True, slots=True)
class Band:
    """A shaded area between two curves."""

    name: str
    x: Array
    low: Array
    high: Array
    colour: str


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
    """Markers at positions: `x`, `o`, `.`, `^`, `v`, `s` or `D`, hollow but for `.`.

    With a `size` (points) they are filled. `low` and `high` are the ends of intervals (NaN where there is none), `dash`
    is that of a line that joins the points.
    """

    name: str
    x: Array
    y: Array
    colour: str
    sign: str = "o"
    size: float = 0.0
    low: Array | None = None
    high: Array | None = None
    dash: str = ""
    listed: bool = True


@dataclass(frozen=True, slots=True)
class Stack:
    """Stacked areas: `heights` is parts × steps; a step lasts from `edges[n]` to `edges[n + 1]`."""

    names: tuple[str, ...]
    edges: Array
    heights: Array
    colours: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Boxes:
    """Box plots at positions: median and quartiles of the values of each, whiskers to the extremes."""

    name: str
    x: Sequence[float]
    values: Sequence[Sequence[float]]
    colour: str
    width: float = 0.5
    median: str = ""
    dash: str = "solid"


@dataclass(frozen=True, slots=True)
class Heat:
    """A heat map of rows × columns (NaN: nothing) at 0, 1, … of both axes; `unit` is that of its colours."""

    values: Array
    unit: str


Layer = Line | Crowd | Band | Spans | Strokes | Points | Stack | Boxes | Heat


class Reference(NamedTuple):
    """A horizontal line with its name in the right margin; `side` is the name's vertical alignment."""

    value: float
    name: str
    side: str = "center"


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis: its title with the unit, `unit` alone, its ends where they are fixed, its ticks with their texts.

    `text` gives the texts of the ticks of a logarithmic axis.
    """

    title: str
    unit: str = ""
    from_zero: bool = False
    low: float | None = None
    high: float | None = None
    logarithmic: bool = False
    ticks: tuple[tuple[float, str], ...] = ()
    text: Callable[[float], str] = "{:g}".format


@dataclass(frozen=True, slots=True)
class Panel:
    """Layers over a pair of axes, with named reference lines; without `x`, over that of the figure.

    `weight` is the panel's share of the height.
    """

    y: Axis
    layers: Sequence[Layer]
    references: tuple[Reference, ...] = ()
    x: Axis | None = None
    title: str = ""
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Drawing:
    """A figure: its heading, its caption, and its panels, `columns` in a row; `x` is the axis that they share.

    The time before `warmup_s` is shaded. In print a row is `row_in` inches high, `title` is the heading where it
    differs, and `subtitle` is below it. `precise`: a page keeps times in full precision, to zoom down to microseconds.
    """

    key: str
    heading: str
    caption: str
    panels: Sequence[Panel]
    x: Axis | None = None
    warmup_s: float = 0.0
    columns: int = 1
    share_y: bool = False
    row_in: float = 1.8
    title: str = ""
    subtitle: str = ""
    precise: bool = False


def over_time(start_s: float, end_s: float) -> Axis:
    """Return the axis of the time, in seconds."""
    return Axis("Time (s)", "s", low=start_s, high=end_s)


def named(title: str, names: Sequence[str]) -> Axis:
    """Return an axis with names at 0, 1, …."""
    return Axis(title, low=-0.5, high=len(names) - 0.5, ticks=tuple(enumerate(names)))


def curves(lines: Lines, scale: float = 1.0) -> Iterator[Layer]:
    """Yield a line for each flow, × `scale`; of many flows a cloud for each group, with its mean and its 80 % band."""
    times_s, values = lines.times_s, scale * lines.values
    if lines.count <= MAX_LINES:
        for number, label in enumerate(lines.labels):
            is_one = lines.count == 1
            sign = "" if is_one else mark(number)
            yield Line(label, times_s, values[:, number], colour(number), dash(number), listed=not is_one, sign=sign)
        return
    for number, (name, group) in enumerate(Lines(times_s, values, lines.labels, lines.groups).by_group()):
        own = colour(number)
        if group.count <= FEW:
            for column, label in enumerate(group.labels):
                yield Line(label if group.count > 1 else name, times_s, group.values[:, column], own)
            continue
        dark = "#" + "".join(f"{round(0.6 * int(own[at : at + 2], 16)):02X}" for at in (1, 3, 5))
        yield Crowd(f"{name}: some of {group.count:,} flows", times_s, group.values, own)
        middle_s, low, high = group.quantiles(0.1, 0.9)
        yield Band(f"{name}: the middle 80 % of {group.count:,} flows", middle_s, low, high, own)
        yield Line(f"{name}: mean", times_s, group.mean(), dark, width=1.4)


def by_decades(axis: Axis, values: Iterable[float | None]) -> Axis:
    """Return the axis, logarithmic where the positive values span two decades and none is negative.

    Zeros are drawn at its lower edge, below the lowest power of ten, where a tick names them (`on_axis` moves layers
    there).
    """
    known = np.array([value for value in values if value is not None and math.isfinite(value)])
    positive = known[known > 0]
    if not positive.size or (known < 0).any():
        return axis
    lowest, highest = float(positive.min()), float(positive.max())
    if highest < DECADES * lowest:
        return axis
    if (known > 0).all():
        return replace(axis, from_zero=False, logarithmic=True, low=lowest / 1.5, high=1.5 * highest)
    first, last = math.floor(math.log10(lowest)), math.floor(math.log10(highest))
    zero = 10 ** (first - max(0.5, ZERO_GAP * (last - first)))
    step = max(1, -(-(last - first) // MAX_DECADES))
    powers = tuple((10.0**power, f"{10.0**power:g}") for power in range(first, last + 1, step))
    return replace(axis, from_zero=False, logarithmic=True, low=zero, high=1.5 * highest, ticks=((zero, "0"), *powers))


def on_axis(layer: Layer, axis: Axis) -> Layer:
    """Return points or boxes whose values do not lie below the lower edge of a logarithmic axis; others as they are."""
    low = axis.low
    if not axis.logarithmic or low is None:
        return layer
    if isinstance(layer, Boxes):
        return replace(layer, values=[[max(value, low) for value in values] for values in layer.values])
    if not isinstance(layer, Points):
        return layer
    ends = [None if end is None else np.maximum(end, low) for end in (layer.low, layer.high)]
    return replace(layer, y=np.maximum(layer.y, low), low=ends[0], high=ends[1])


def legend_names(drawing: Drawing) -> list[str]:
    """Return the names in the legend, each once, in the order of the layers."""
    layers = [layer for panel in drawing.panels for layer in panel.layers]
    return list(dict.fromkeys(name for layer in layers for name in _names(layer) if name))


def _names(layer: Layer) -> Sequence[str]:
    if isinstance(layer, Stack):
        return layer.names
    if isinstance(layer, (Spans, Heat, Crowd)):
        return ()
    return (layer.name,) if getattr(layer, "listed", True) else ()


def relabelled(drawing: Drawing, labels: Sequence[str]) -> Drawing:
    """Return the drawing with other names in its legend, in the legend's order. Raises `InputError` for their number.

    An empty sequence keeps the names.
    """
    names = legend_names(drawing)
    if not labels:
        return drawing
    if len(labels) != len(names):
        expected = f"{len(names)}, for {', '.join(map(shown, names))}" if names else "none: the figure has no legend"
        raise InputError(f"--label: found {len(labels)} name{'s' * (len(labels) != 1)}; expected {expected}")
    new = dict(zip(names, labels, strict=True))
    panels = [replace(panel, layers=[_renamed(layer, new) for layer in panel.layers]) for panel in drawing.panels]
    return replace(drawing, panels=panels)


def _renamed(layer: Layer, new: Mapping[str, str]) -> Layer:
    if isinstance(layer, Stack):
        return replace(layer, names=tuple(new.get(name, name) for name in layer.names))
    return layer if isinstance(layer, (Spans, Heat)) else replace(layer, name=new.get(layer.name, layer.name))


def spread_over(count: int, maximum: int) -> npt.NDArray[np.intp]:
    """Return the numbers of at most `maximum` of `count` things, evenly chosen."""
    return np.unique(np.linspace(0, count - 1, min(count, maximum)).astype(np.intp))


def span(values: Sequence[Array]) -> float:
    """Return the greatest known value; 0 if there is none."""
    greatest = [float(np.nanmax(array)) for array in values if array.size and not np.isnan(array).all()]
    return max(greatest, default=0.0)
