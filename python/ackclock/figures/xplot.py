"""Figure specs as files of xplot (T. Shepard; the form that tcptrace writes), to zoom into.

A file is text: types of the axes, titles, then a command a line. Colours are those that xplot has. Panels are drawn one
over the other: xplot knows one pair of axes.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from ackclock.figures import figure_spec
from ackclock.figures.figure_spec import Drawing, Layer, Line, Panel, Points, Stack, Strokes
from ackclock.metrics.view import Array

#: Colours of ours → xplot's.
COLOURS = {
    figure_spec.BLUE: "white",
    figure_spec.RED: "red",
    figure_spec.GREEN: "green",
    figure_spec.PINK: "pink",
    figure_spec.SKY: "blue",
    figure_spec.ORANGE: "orange",
    figure_spec.LIGHT: "yellow",
}
OTHER = "purple"

#: Signs of ours → xplot's.
SIGNS = {"x": "x", "o": "diamond", ".": "dot", "^": "uarrow", "v": "darrow", "D": "box"}


def lines(drawing: Drawing) -> Iterator[str]:
    """Yield the lines of a file. Times are seconds with microseconds, values have twelve digits."""
    yield "timeval double"
    yield from ("title", _word(drawing.title or drawing.heading))
    yield from ("xlabel", "time (s)")
    yield from ("ylabel", _word(drawing.panels[0].y.title))
    for panel in drawing.panels:
        for layer in panel.layers:
            yield from _layer(layer)
        yield from _references(panel, drawing)
    yield "go"


def _references(panel: Panel, drawing: Drawing) -> Iterator[str]:
    x = drawing.x or panel.x
    start_s, end_s = (x and x.low) or 0.0, (x and x.high) or 0.0
    for value, name, _ in panel.references:
        yield from ("yellow", _stroke(start_s, value, end_s, value))
        yield from (f"rtext {_place(start_s, value)}", _word(name))


def _layer(layer: Layer) -> Iterator[str]:
    """Yield the commands of a layer; those that only runs have are left out."""
    if isinstance(layer, Stack):
        top = np.cumsum(layer.heights, axis=0)
        for colour, heights in zip(layer.colours, top, strict=True):
            yield from _layer(Line("", layer.edges[:-1], heights, colour, steps=True))
    elif isinstance(layer, (Line, Strokes, Points)):
        yield COLOURS.get(layer.colour, OTHER)
        if isinstance(layer, Line):
            yield from _line(layer)
        elif isinstance(layer, Strokes):
            yield from map(_stroke, layer.x, layer.y, layer.x_end, layer.y_end)
        else:
            yield from (f"{SIGNS[layer.sign]} {_place(x, y)}" for x, y in _without_nan(layer))


def _line(layer: Line) -> Iterator[str]:
    known = list(_without_nan(layer))
    for (x, y), (next_x, next_y) in pairwise(known):
        if layer.steps:
            yield _stroke(x, y, next_x, y)
            if y != next_y:
                yield _stroke(next_x, y, next_x, next_y)
        else:
            yield _stroke(x, y, next_x, next_y)


def _without_nan(layer: Line | Points) -> Iterator[tuple[float, float]]:
    there = ~np.isnan(layer.x) & ~np.isnan(layer.y)
    return zip(_listed(layer.x[there]), _listed(layer.y[there]), strict=True)


def _listed(values: Array) -> list[float]:
    return [float(value) for value in values]


def _stroke(x: float, y: float, x_end: float, y_end: float) -> str:
    return f"line {_place(x, y)} {_place(x_end, y_end)}"


def _place(x: float, y: float) -> str:
    return f"{x:.6f} {y:.12g}"


def _word(text: str) -> str:
    """Return one line that any xplot reads."""
    return " ".join(text.replace("→", "->").replace("–", "-").split()).encode("ascii", "replace").decode()
