"""Plotly back end of the figure specs."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ackclock.figures.curves import Lines, thinned
from ackclock.figures.figure_spec import Curves, Drawing, Layer, Line, Panel, Points, Spans, Stack, Strokes
from ackclock.figures.report import plotly
from ackclock.figures.report.plotly import Figure, Trace
from ackclock.metrics.view import Array

#: Signs of ours → plotly's.
SIGNS = {"x": "x-thin-open", "o": "circle-open", ".": "circle", "^": "triangle-up-open", "v": "triangle-down-open"}

#: Pixels of a figure with one panel, and of each panel more.
HEIGHT, MORE = 360, 240

#: Headings of the page's sections, where they differ from the figures'.
HEADINGS = {
    "sequence": "Time and sequence",
    "pipe": "Pipe and windows",
    "rtt": "Round-trip times",
    "limits": "What limited the throughput",
    "stalls": "Stalls",
    "level": "What came above the limiter’s rate",
}


def figure(drawing: Drawing, points: int) -> Figure:
    """Return a figure spec as plotly draws it, with about `points` points."""
    axes = ["y" if number == 0 else f"y{number + 1}" for number in range(len(drawing.panels))]
    layout = plotly.plain() | {"xaxis": plotly.axis("Time (s)", range=[drawing.start_s, drawing.end_s])}
    layout |= {"height": HEIGHT + MORE * (len(axes) - 1)}
    layout["xaxis"]["anchor"] = axes[-1]
    data: list[Trace] = []
    for place, (axis, panel) in enumerate(zip(axes, drawing.panels, strict=True)):
        layout["yaxis" + axis[1:]] = _axis(panel, _domain(place, drawing.panels))
        if drawing.warmup_s > 0:
            plotly.shade(layout, axis, 0.0, drawing.warmup_s)
        for layer in panel.layers:
            if isinstance(layer, Spans):
                for start_s, stop_s in zip(layer.starts, layer.ends, strict=True):
                    plotly.shade(layout, axis, float(start_s), float(stop_s), layer.colour)
            else:
                data += [trace | {"yaxis": axis} for trace in _Layers(drawing, panel, points).traces(layer)]
        for reference in panel.references:
            plotly.reference(layout, axis, reference.value, reference.name.replace("+ ", "+\n").replace("\n", "<br>"))
    if drawing.warmup_s > 0:
        plotly.note_warmup(layout)
    if any(isinstance(layer, Stack) for panel in drawing.panels for layer in panel.layers):
        layout |= {"barmode": "stack", "bargap": 0}
    layout["showlegend"] = sum(trace.get("showlegend", True) for trace in data) > 1
    return Figure(drawing.key, HEADINGS.get(drawing.key, drawing.heading), _caption(drawing), data, layout)


def _caption(drawing: Drawing) -> str:
    if drawing.key not in HEADINGS:
        return drawing.caption
    return f"{drawing.heading}. {drawing.caption} Drag to zoom, double-click to see all."


def _domain(place: int, panels: Sequence[Panel]) -> list[float]:
    """Return the panel's part of the height, from the top, by the weights; a gap is a twelfth of an even share."""
    weights = [panel.weight / sum(each.weight for each in panels) for panel in panels]
    top = 1 - sum(weights[:place])
    gap = 0.08 / len(panels) if len(panels) > 1 else 0.0
    return [max(top - weights[place] + gap, 0.0), top]


def _axis(panel: Panel, domain: list[float]) -> dict[str, Any]:
    more: dict[str, Any] = {"domain": domain} if domain != [0.0, 1.0] else {}
    if panel.from_zero:
        more["rangemode"] = "tozero"
    if panel.limits is not None:
        more["range"] = list(panel.limits)
    if panel.ticks:
        more |= {"tickvals": [place for place, _ in panel.ticks], "ticktext": [text for _, text in panel.ticks]}
    if panel.names:
        more |= {"tickvals": list(range(len(panel.names))), "ticktext": list(panel.names)}
        more |= {"range": [-0.8, len(panel.names) - 0.2], "automargin": True}
    return plotly.axis(panel.axis, **more)


@dataclass(frozen=True, slots=True)
class _Layers:
    """Traces of the layers of a panel, of about `points` points."""

    drawing: Drawing
    panel: Panel
    points: int

    @property
    def hover(self) -> str:
        if self.drawing.precise:
            return "%{y:.6g} at %{x:.6f} s"
        return f"%{{y:.4g}} {self.panel.unit} at %{{x:.2f}} s".replace("  ", " ")

    def traces(self, layer: Layer) -> Iterator[Trace]:
        if isinstance(layer, Curves):
            lines = layer.lines
            scaled = Lines(lines.times_s, lines.values * layer.scale, lines.labels, lines.groups)
            yield from plotly.traces(scaled, self.points, self.hover)
        elif isinstance(layer, Stack):
            yield from self._stack(layer)
        elif isinstance(layer, Line):
            yield self._line(layer)
        elif isinstance(layer, Strokes):
            yield self._strokes(layer)
        elif isinstance(layer, Points):
            yield self._markers(layer)

    def _line(self, layer: Line) -> Trace:
        x, y = layer.x, layer.y
        if layer.steps:
            x, y = np.append(x, self.drawing.end_s), np.append(y, y[-1:])
        x, y = _some(self.points, x, y) if self.drawing.precise else thinned(x, y, max(self.points, 200))
        shape = {"shape": "hv"} if layer.steps else {}
        dash = {"dash": "dot", "width": 0.8} if layer.dotted else {"width": 1.3}
        return self._scatter(layer, x, y, mode="lines", line={"color": layer.colour, **dash, **shape})

    def _strokes(self, layer: Strokes) -> Trace:
        nothing = np.full(layer.x.size, np.nan)
        ends = _some(self.points // 3, layer.x, layer.y, layer.x_end, layer.y_end, nothing)
        x, y = np.column_stack([ends[0], ends[2], ends[4]]).ravel(), np.column_stack([ends[1], ends[3], ends[4]])
        line = {"color": layer.colour, "width": 6 if layer.wide else 1.3}
        return self._scatter(layer, x, y.ravel(), mode="lines", line=line)

    def _markers(self, layer: Points) -> Trace:
        marker: dict[str, Any] = {"color": layer.colour, "symbol": SIGNS.get(layer.sign, "diamond-open"), "size": 7}
        if layer.size:
            marker |= {"symbol": "circle", "size": max(3.0, 2 * layer.size)}
        elif layer.sign == ".":
            marker["size"] = 3
        elif layer.sign == "x":
            marker["line"] = {"color": layer.colour, "width": 1.5}
        return self._scatter(layer, *_some(self.points, layer.x, layer.y), mode="markers", marker=marker)

    def _scatter(self, layer: Line | Strokes | Points, x: Array, y: Array, **more: Any) -> Trace:
        name = layer.name or (layer.colour if self.drawing.precise else self.panel.axis)
        trace = {"type": "scatter", "name": name, "x": self._numbers(x), "y": self._numbers(y), **more}
        return trace | {
            "showlegend": bool(layer.name) and getattr(layer, "listed", True),
            "hovertemplate": self.hover,
            "connectgaps": False,
        }

    def _stack(self, layer: Stack) -> Iterator[Trace]:
        middle, width = (layer.edges[:-1] + layer.edges[1:]) / 2, float(layer.edges[1] - layer.edges[0])
        for name, colour, heights in zip(layer.names, layer.colours, layer.heights, strict=True):
            bars = {
                "type": "bar",
                "name": name,
                "x": self._numbers(middle),
                "y": self._numbers(heights),
                "width": width,
            }
            yield bars | {"marker": {"color": colour, "line": {"width": 0}}, "hovertemplate": "%{y:.4g} at %{x:.2f} s"}

    def _numbers(self, values: Array) -> dict[str, str]:
        """Return a typed array, in full precision where a zoom goes down to microseconds."""
        if not self.drawing.precise:
            return plotly.numbers(values)
        return {"dtype": "f8", "bdata": base64.b64encode(np.asarray(values, dtype="<f8").tobytes()).decode()}


def _some(maximum: int, *columns: Array) -> list[Array]:
    """Thin columns evenly to at most so many rows."""
    count = columns[0].size
    chosen = np.unique(np.linspace(0, count - 1, min(count, max(maximum, 200))).astype(np.intp)) if count else slice(0)
    return [column[chosen] for column in columns]
