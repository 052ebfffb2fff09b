"""Plotly back end of the figure specs: traces and layouts of plotly.js as plain dictionaries.

Numbers travel as base64 of 32-bit floats, which plotly.js reads directly; long curves are thinned by minimum and
maximum (see `curves`), so that peaks survive and a report stays small. Box plots are drawn in print only.
"""

from __future__ import annotations

import base64
import math
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ackclock.errors import InputError
from ackclock.figures import figure_spec
from ackclock.figures.curves import thinned
from ackclock.figures.figure_spec import (
    INK,
    SHADES,
    Axis,
    Band,
    Crowd,
    Drawing,
    Heat,
    Layer,
    Line,
    Panel,
    Points,
    Reference,
    Spans,
    Stack,
    Strokes,
)
from ackclock.metrics.view import Array

#: Lines closer than this share of their value have their names on either side.
NEAR = 0.15

QUIET, FAINT, SHADE = "#6b6b6b", "#e3e3e3", "#f4f4f4"

#: Margins of a figure in pixels; to the right, the name of a reference line needs more.
MARGIN = {"l": 64, "r": 16, "t": 12, "b": 56}
REFERENCE = 68

#: Pixels of a figure with one row of panels, of each row more, and of a row on a narrow page.
HEIGHT, MORE, NARROW = 360, 240, 300

#: Pixels of a letter in the title of an axis (1.2 × the font's 13 pixels, about half as wide), and of a row of legend.
LETTER, LEGEND = 8, 40

#: Numbers at the ticks of logarithmic axes: all digits that they have, 0.2 and not 2.
TICKS = "~g"

#: Letters of a line of a title at least.
MIN_LETTERS = 12

#: Gaps between columns and between rows, as shares of a panel; rows with axes of their own need room for them.
COLUMN_GAP, ROW_GAP, AXIS_GAP = 0.12, 0.09, 0.285

#: Lines of a cloud that are drawn, evenly chosen.
MAX_CLOUD_LINES = 60

#: Points of a curve at least.
MIN_POINTS = 200

#: Heat maps of at most so many rows and columns have their numbers written in.
MAX_WRITTEN = 14

#: Signs of ours → plotly's.
SIGNS = {"x": "x-thin", "o": "circle", ".": "circle", "^": "triangle-up", "v": "triangle-down", "s": "square"}

Trace = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Figure:
    """A plotly figure with its heading, its caption, and a layout for narrow pages."""

    key: str
    heading: str
    caption: str
    data: list[Trace]
    layout: dict[str, Any]
    narrow: dict[str, Any] = field(default_factory=dict)

    def spec(self) -> dict[str, Any]:
        """Return what the page's script draws; `narrow` is merged into the layout on a narrow page."""
        return {"data": self.data, "layout": self.layout, "narrow": self.narrow}


def figure(drawing: Drawing, points: int) -> Figure:
    """Return a figure spec as plotly draws it, with about `points` points in a layer, or in all lines together."""
    layout, data = _plain(), []
    lines = sum(isinstance(layer, Line) for panel in drawing.panels for layer in panel.layers)
    for number, panel in enumerate(drawing.panels, start=1):
        place = _Place(drawing, panel, "" if number == 1 else str(number), points // max(lines, 1))
        if drawing.warmup_s > 0:
            place.shade(layout, 0.0, drawing.warmup_s, SHADE)
        for layer in panel.layers:
            if isinstance(layer, Spans):
                for start_s, end_s in zip(layer.starts, layer.ends, strict=True):
                    place.shade(layout, float(start_s), float(end_s), layer.colour)
            data += [trace | {"xaxis": place.x, "yaxis": place.y} for trace in place.traces(layer)]
        for reference in panel.references:
            place.refer(layout, reference)
    if drawing.warmup_s > 0:
        corner = {"xref": "x", "yref": "paper", "x": 0, "y": 1, "xanchor": "left", "yanchor": "top"}
        layout["annotations"].append(_note("warm-up", QUIET) | corner)
    if any(isinstance(layer, Stack) for panel in drawing.panels for layer in panel.layers):
        layout |= {"barmode": "stack", "bargap": 0}
    columns = min(drawing.columns, len(drawing.panels))
    narrow = _grid(drawing, 1, NARROW * len(drawing.panels)) if columns > 1 else {}
    rows = -(-len(drawing.panels) // columns)
    layout |= _grid(drawing, columns, HEIGHT + MORE * (rows - 1)) | {"showlegend": _list(data)}
    return Figure(drawing.key, drawing.heading, drawing.caption, data, layout, narrow)


def possible(make: Callable[[], Drawing], points: int) -> list[Figure]:
    """Return the figure of a spec; nothing if the engine did not give its data."""
    try:
        return [figure(make(), points)]
    except InputError:
        return []


def _plain() -> dict[str, Any]:
    """Return the layout that all figures share."""
    return {
        "font": {"family": "system-ui, sans-serif", "size": 13, "color": INK},
        "paper_bgcolor": "white",
        "plot_bgcolor": "white",
        "hovermode": "closest",
        "margin": MARGIN,
        "legend": {
            "orientation": "h",
            "x": 0,
            "y": 1.02,
            "yanchor": "bottom",
            "itemclick": "toggle",
            "itemdoubleclick": "toggleothers",
        },
        "shapes": [],
        "annotations": [],
    }


def _list(data: list[Trace]) -> bool:
    """Keep each name in the legend once, and make it switch all traces of the name; return whether there is one."""
    listed = set()
    for trace in data:
        group = trace.setdefault("legendgroup", trace["name"])
        trace["showlegend"] = trace.get("showlegend", True) and (trace["name"], group) not in listed
        if trace["showlegend"]:
            listed.add((trace["name"], group))
    return len(listed) > 0


def _grid(drawing: Drawing, columns: int, height: int) -> dict[str, Any]:
    """Return the axes of the panels in a grid of this height in pixels."""
    panels = drawing.panels
    rows = -(-len(panels) // columns)
    weights = [panel.weight for panel in panels] if columns == 1 else [1.0] * rows
    down = _parts(weights, ROW_GAP if drawing.x else AXIS_GAP)
    across = _parts([1.0] * columns, COLUMN_GAP if drawing.share_y else 2 * COLUMN_GAP)
    letters = (height - MARGIN["t"] - MARGIN["b"] - LEGEND) / LETTER
    layout: dict[str, Any] = {"height": height}
    for number, panel in enumerate(panels):
        name = "" if number == 0 else str(number + 1)
        (top, bottom), is_left = down[number // columns], number % columns == 0
        title = textwrap.wrap(panel.y.title or panel.title, max(int((bottom - top) * letters), MIN_LETTERS))
        y = _axis(replace(panel.y, title="<br>".join(title)))
        y |= {"domain": [1 - bottom, 1 - top], "anchor": "x" if drawing.x else f"x{name}"}
        if drawing.share_y and not is_left:
            y |= {"showticklabels": False, "title": {"text": ""}}
        layout[f"yaxis{name}"] = y | ({"showticklabels": True} if is_left else {})
        if panel.x is not None:
            layout[f"xaxis{name}"] = _axis(panel.x) | {"domain": [*across[number % columns]], "anchor": f"y{name}"}
    if drawing.x is not None:
        layout["xaxis"] = _axis(drawing.x) | {"anchor": f"y{len(panels) if len(panels) > 1 else ''}"}
    return layout


def _parts(weights: Sequence[float], gap: float) -> list[tuple[float, float]]:
    """Divide the range from 0 to 1 by weights, with gaps; `gap` is a share of the mean part."""
    mean = 1 / (len(weights) + gap * (len(weights) - 1))
    parts, start = [], 0.0
    for weight in weights:
        size = mean * len(weights) * weight / sum(weights)
        parts.append((start, min(start + size, 1.0)))
        start += size + gap * mean
    return parts


def _axis(axis: Axis) -> dict[str, Any]:
    result: dict[str, Any] = {
        "title": {"text": axis.title.replace("\n", " "), "standoff": 8},
        "gridcolor": FAINT,
        "zeroline": False,
        "linecolor": QUIET,
        "ticks": "outside",
        "tickcolor": QUIET,
        "nticks": 7,
        "automargin": True,
    }
    if axis.logarithmic:
        ends = [math.log10(end) for end in (axis.low, axis.high) if end is not None and end > 0]
        # Without a format plotly writes the ticks between powers of ten as their first digit.
        result |= {"type": "log", "dtick": "D2", "tickformat": TICKS} | ({"range": ends} if len(ends) == 2 else {})
    elif axis.low is not None and axis.high is not None:
        result["range"] = [axis.low, axis.high]
    elif axis.from_zero or axis.low == 0:
        result["rangemode"] = "tozero"
    if axis.ticks:
        result |= {"tickvals": [place for place, _ in axis.ticks], "ticktext": [text for _, text in axis.ticks]}
    return result


def _note(text: str, colour: str) -> dict[str, Any]:
    return {"text": text, "showarrow": False, "font": {"size": 11, "color": colour}}


@dataclass(frozen=True, slots=True)
class _Place:
    """A panel of a drawing, the suffix of its axes' names, and about how many points a layer has."""

    drawing: Drawing
    panel: Panel
    suffix: str
    points: int

    @property
    def x(self) -> str:
        return "x" if self.drawing.x else f"x{self.suffix}"

    @property
    def y(self) -> str:
        return f"y{self.suffix}"

    @property
    def hover(self) -> str:
        """Return the template of what a point says."""
        x = self.panel.x or self.drawing.x
        if self.drawing.precise:
            return "%{y:.6g} at %{x:.6f} s"
        y = f"%{{y:.4g}} {self.panel.y.unit}".rstrip()
        if x is None or x.ticks:
            return y
        return f"{y} at %{{x:.2f}} s" if x is self.drawing.x else f"{y} at %{{x:.4g}} {x.unit}".rstrip()

    def shade(self, layout: dict[str, Any], start_s: float, end_s: float, colour: str) -> None:
        """Shade an interval of time."""
        place = {"xref": "x", "yref": f"{self.y} domain", "x0": start_s, "x1": end_s, "y0": 0, "y1": 1}
        layout["shapes"].append({"type": "rect", **place, "fillcolor": colour, "line": {"width": 0}, "layer": "below"})

    def refer(self, layout: dict[str, Any], reference: Reference) -> None:
        """Add a horizontal line with its name in the right margin."""
        at = {"xref": "paper", "x0": 0, "x1": 1, "yref": self.y, "y0": reference.value, "y1": reference.value}
        layout["shapes"].append({"type": "line", **at, "line": {"color": INK, "width": 1, "dash": "dash"}})
        text = reference.name.replace("+ ", "+\n").replace("\n", "<br>")
        right = {"xref": "paper", "x": 1, "xanchor": "left", "align": "left"}
        note = _note(text, INK) | right | {"yref": self.y, "y": reference.value, "yanchor": self._anchor(reference)}
        layout["annotations"].append(note)
        layout["margin"] = MARGIN | {"r": REFERENCE}

    def _anchor(self, reference: Reference) -> str:
        """Return where a name stands: beside its line, or away from that of a line close by."""
        others = [other.value for other in self.panel.references if other is not reference]
        near = [
            value for value in others if abs(value - reference.value) < NEAR * max(abs(value), abs(reference.value))
        ]
        return "middle" if not near else "bottom" if reference.value > min(near) else "top"

    def traces(self, layer: Layer) -> Iterator[Trace]:
        """Yield the traces of a layer."""
        if isinstance(layer, Crowd):
            yield from self._crowd(layer)
        elif isinstance(layer, Band):
            yield self._band(layer)
        elif isinstance(layer, Stack):
            yield from self._stack(layer)
        elif isinstance(layer, Line):
            yield self._line(layer)
        elif isinstance(layer, Strokes):
            yield self._strokes(layer)
        elif isinstance(layer, Points):
            yield self._markers(layer)
        elif isinstance(layer, Heat):
            yield self._heat(layer)

    def _crowd(self, layer: Crowd) -> Iterator[Trace]:
        """Yield some of the lines, which the legend has as one."""
        drawn = figure_spec.spread_over(layer.values.shape[1], MAX_CLOUD_LINES)
        look = {"color": layer.colour, "width": 0.8}
        for column in drawn:
            x, y = thinned(layer.x, layer.values[:, column], max(self.points // drawn.size, MIN_POINTS))
            yield self._scatter(layer.name, x, y, mode="lines", line=look) | {"opacity": 0.25}

    def _band(self, layer: Band) -> Trace:
        shade = "rgba({},{},{},0.18)".format(*(int(layer.colour[at : at + 2], 16) for at in (1, 3, 5)))
        x, y = np.concatenate([layer.x, layer.x[::-1]]), np.concatenate([layer.low, layer.high[::-1]])
        fill = {"fill": "toself", "fillcolor": shade, "line": {"width": 0}, "hoverinfo": "skip"}
        trace = self._scatter(layer.name, x, y, mode="lines", **fill)
        trace.pop("hovertemplate")
        return trace

    def _line(self, layer: Line) -> Trace:
        look = {"color": layer.colour, "dash": layer.dash, "width": 1.3 * layer.width}
        look |= {"shape": "hv"} if layer.steps else {}
        some = _some if self.drawing.precise else lambda points, x, y: thinned(x, y, max(points, MIN_POINTS))
        trace = self._scatter(layer.name, *some(self.points, layer.x, layer.y), mode="lines", line=look)
        if layer.detail:
            trace["hovertemplate"] += f"<extra>{layer.detail}</extra>"
        return trace | {"showlegend": layer.listed and bool(layer.name)}

    def _strokes(self, layer: Strokes) -> Trace:
        nothing = np.full(layer.x.size, np.nan)
        ends = _some(self.points // 3, layer.x, layer.y, layer.x_end, layer.y_end, nothing)
        x, y = np.column_stack([ends[0], ends[2], ends[4]]).ravel(), np.column_stack([ends[1], ends[3], ends[4]])
        line = {"color": layer.colour, "width": 6 if layer.wide else 1.3}
        return self._scatter(layer.name, x, y.ravel(), mode="lines", line=line) | {"showlegend": bool(layer.name)}

    def _markers(self, layer: Points) -> Trace:
        is_filled = layer.sign == "." or (layer.size > 0 and layer.sign != "x")
        symbol = SIGNS.get(layer.sign, "diamond") + ("" if is_filled else "-open")
        size = max(3.0, 2 * layer.size) if layer.size else 3 if layer.sign == "." else 7
        marker: dict[str, Any] = {"color": layer.colour, "symbol": symbol, "size": size}
        if layer.sign == "x":
            marker["line"] = {"color": layer.colour, "width": 1.5}
        ends = [] if layer.low is None or layer.high is None else [layer.high - layer.y, layer.y - layer.low]
        x, y, *bars = _some(self.points, layer.x, layer.y, *ends)
        mode = "lines+markers" if layer.dash else "markers"
        line = {"line": {"color": layer.colour, "dash": layer.dash, "width": 1.3}} if layer.dash else {}
        trace = self._scatter(layer.name, x, y, mode=mode, marker=marker, **line)
        if bars:
            above, below = (self._numbers(np.nan_to_num(length)) for length in bars)
            look = {"type": "data", "symmetric": False, "thickness": 1, "width": 3}
            trace["error_y"] = look | {"array": above, "arrayminus": below}
        return trace | {"showlegend": layer.listed and bool(layer.name)}

    def _stack(self, layer: Stack) -> Iterator[Trace]:
        middle, width = (layer.edges[:-1] + layer.edges[1:]) / 2, float(layer.edges[1] - layer.edges[0])
        for name, colour, heights in zip(layer.names, layer.colours, layer.heights, strict=True):
            bars = {"type": "bar", "name": name, "x": self._numbers(middle), "y": self._numbers(heights)}
            look = {"width": width, "marker": {"color": colour, "line": {"width": 0}}}
            yield bars | look | {"hovertemplate": "%{y:.4g} at %{x:.2f} s"}

    def _heat(self, layer: Heat) -> Trace:
        written = max(layer.values.shape) <= MAX_WRITTEN
        return {
            "type": "heatmap",
            "name": "",
            "z": [[mean if math.isfinite(mean) else None for mean in row] for row in layer.values.tolist()],
            "colorscale": [[number / (len(SHADES) - 1), shade] for number, shade in enumerate(SHADES)],
            "colorbar": {"title": {"text": layer.unit}, "thickness": 12, "outlinewidth": 0},
            "hovertemplate": f"%{{z:.4g}} {layer.unit}<extra></extra>",
            "xgap": 1,
            "ygap": 1,
            "showlegend": False,
            **({"texttemplate": "%{z:.3g}"} if written else {}),
        }

    def _scatter(self, name: str, x: Array, y: Array, **more: Any) -> Trace:
        trace = {"type": "scatter", "name": name or self.panel.y.title, "connectgaps": False, **more}
        return trace | {"x": self._numbers(x), "y": self._numbers(y), "hovertemplate": self.hover}

    def _numbers(self, values: Array) -> dict[str, str]:
        """Return a typed array, in full precision where a zoom goes down to microseconds."""
        dtype = "f8" if self.drawing.precise else "f4"
        data = base64.b64encode(np.asarray(values, dtype=f"<{dtype}").tobytes())
        return {"dtype": dtype, "bdata": data.decode()}


def _some(maximum: int, *columns: Array) -> list[Array]:
    """Thin columns evenly to at most so many rows."""
    chosen = figure_spec.spread_over(columns[0].size, max(maximum, MIN_POINTS)) if columns[0].size else slice(0)
    return [column[chosen] for column in columns]
