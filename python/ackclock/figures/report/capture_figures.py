"""Capture figures for the page: the specs of `ackclock.figures.capture_figures`, zoomable."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import numpy as np

from ackclock.figures import capture_figures
from ackclock.figures.figure_spec import Drawing, Layer, Line, Panel, Points, Stack, Strokes
from ackclock.figures.report import plotly
from ackclock.figures.report.plotly import Figure, Trace
from ackclock.metrics.view import Array, RunView

#: Signs of ours → plotly's.
SIGNS = {"x": "x-thin-open", "o": "circle-open", ".": "circle", "^": "triangle-up-open", "v": "triangle-down-open"}

#: Pixels of a figure with one panel, and of each panel more.
HEIGHT, MORE = 360, 240


def figure(kind: str, view: RunView, points: int) -> Figure:
    """Return a kind of figure of a run, of about `points` points. Raises `InputError` without the tables."""
    return of(capture_figures.KINDS[kind](view), points)


def of(result: Drawing, points: int) -> Figure:
    """Return a figure spec as plotly draws it."""
    axes = ["y" if number == 0 else f"y{number + 1}" for number in range(len(result.panels))]
    layout = plotly.plain() | {"xaxis": plotly.axis("Time (s)", range=[result.start_s, result.end_s])}
    layout |= {"height": HEIGHT + MORE * (len(axes) - 1)}
    data: list[Trace] = []
    for place, (axis, panel) in enumerate(zip(axes, result.panels, strict=True)):
        layout["yaxis" + axis[1:]] = _axis(panel, place, len(axes))
        for layer in panel.layers:
            data += [trace | {"yaxis": axis} for trace in _layer(layer, points, result.end_s)]
        for value, name in panel.references:
            plotly.reference(layout, axis, value, name.replace("\n", "<br>"))
    layout["xaxis"]["anchor"] = axes[-1]
    if any(isinstance(layer, Stack) for panel in result.panels for layer in panel.layers):
        layout |= {"barmode": "stack", "bargap": 0}
    caption = f"{result.heading}. {result.caption} Drag to zoom, double-click to see all."
    return Figure(result.key, HEADINGS[result.key], caption, data, layout)


#: Headings of the page's sections.
HEADINGS = {
    "sequence": "Time and sequence",
    "pipe": "Pipe and windows",
    "rtt": "Round-trip times",
    "limits": "What limited the throughput",
    "stalls": "Stalls",
    "level": "What came above the limiter’s rate",
}


def _axis(panel: Panel, place: int, count: int) -> dict[str, Any]:
    more: dict[str, Any] = {"domain": [1 - (place + 0.92) / count, 1 - place / count]} if count > 1 else {}
    if panel.from_zero:
        more["rangemode"] = "tozero"
    if panel.names:
        more |= {"tickvals": list(range(len(panel.names))), "ticktext": list(panel.names)}
        more |= {"range": [-0.8, len(panel.names) - 0.2], "automargin": True}
    return plotly.axis(panel.axis, **more)


def _layer(layer: Layer, points: int, end_s: float) -> Iterator[Trace]:
    if isinstance(layer, Stack):
        yield from _stack(layer)
    elif isinstance(layer, Line):
        x, y = layer.x, layer.y
        if layer.steps:
            x, y = np.append(x, end_s), np.append(y, y[-1:])
        shape = {"shape": "hv"} if layer.steps else {}
        yield _scatter(layer, *_some(points, x, y), mode="lines", line={"color": layer.colour, "width": 1.3, **shape})
    elif isinstance(layer, Strokes):
        nothing = np.full(layer.x.size, np.nan)
        ends = _some(points // 3, layer.x, layer.y, layer.x_end, layer.y_end, nothing)
        x, y = np.column_stack([ends[0], ends[2], ends[4]]).ravel(), np.column_stack([ends[1], ends[3], ends[4]])
        line = {"color": layer.colour, "width": 6 if layer.wide else 1.3}
        yield _scatter(layer, x, y.ravel(), mode="lines", line=line)
    else:
        marker = {"color": layer.colour, "symbol": SIGNS.get(layer.sign, "diamond-open"), "size": 7}
        if layer.sign == ".":
            marker["size"] = 3
        elif layer.sign == "x":
            marker["line"] = {"color": layer.colour, "width": 1.5}
        yield _scatter(layer, *_some(points, layer.x, layer.y), mode="markers", marker=marker)


def _scatter(layer: Line | Strokes | Points, x: Array, y: Array, **more: Any) -> Trace:
    trace = {"type": "scatter", "name": layer.name or layer.colour, "x": _numbers(x), "y": _numbers(y), **more}
    return trace | {"showlegend": bool(layer.name), "hovertemplate": "%{y:.6g} at %{x:.6f} s", "connectgaps": False}


def _stack(layer: Stack) -> Iterator[Trace]:
    middle, width = (layer.edges[:-1] + layer.edges[1:]) / 2, float(layer.edges[1] - layer.edges[0])
    for name, colour, heights in zip(layer.names, layer.colours, layer.heights, strict=True):
        bars = {"type": "bar", "name": name, "x": _numbers(middle), "y": _numbers(heights), "width": width}
        yield bars | {"marker": {"color": colour, "line": {"width": 0}}, "hovertemplate": "%{y:.4g} at %{x:.2f} s"}


def _some(most: int, *columns: Array) -> list[Array]:
    """Thin columns evenly to at most so many rows."""
    count = columns[0].size
    chosen = np.unique(np.linspace(0, count - 1, min(count, max(most, 200))).astype(np.intp)) if count else slice(0)
    return [column[chosen] for column in columns]


def _numbers(values: Array) -> dict[str, str]:
    """Return a typed array in full precision: a zoom goes down to microseconds."""
    return {"dtype": "f8", "bdata": base64.b64encode(np.asarray(values, dtype="<f8").tobytes()).decode()}
