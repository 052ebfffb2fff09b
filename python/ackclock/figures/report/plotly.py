"""Traces and layouts of plotly.js as plain dictionaries.

Numbers travel as base64 of 32-bit floats, which plotly.js reads directly; long curves are thinned by minimum and
maximum (see `curves`), so that peaks survive and a report stays small.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ackclock.figures import curves, palette
from ackclock.figures.curves import Lines
from ackclock.metrics.view import Array, RunView

QUIET, FAINT, SHADE = "#6b6b6b", "#e3e3e3", "#f4f4f4"

#: Right margin in pixels; a reference line's name needs more.
RIGHT = 16

#: Lines of a cloud that are drawn, evenly chosen.
MAX_CLOUD_LINES = 60

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


def traces(lines: Lines, points: int, hover: str) -> list[Trace]:
    """Return all the lines, or a cloud where there are many; `points` in all."""
    if lines.count > palette.MAX_LINES:
        return _cloud(lines, points, hover)
    each = points // lines.count
    return [
        curve(lines.times_s, lines.values[:, n], each, line_style(n), label, hover)
        for n, label in enumerate(lines.labels)
    ]


def _cloud(lines: Lines, points: int, hover: str) -> list[Trace]:
    """Return thin lines of some flows, the band of 80 % of all, and the mean, for each group."""
    result: list[Trace] = []
    for number, (name, group) in enumerate(lines.by_group()):
        if group.count <= palette.FEW:
            labels = [label if group.count > 1 else name for label in group.labels]
            each = points // lines.count
            result += [
                curve(group.times_s, group.values[:, n], each, line_style(number), labels[n], hover)
                for n in range(group.count)
            ]
        else:
            result += _cloud_of(group, name, palette.colour(number), points, hover)
    return result


def _cloud_of(lines: Lines, name: str, colour: str, points: int, hover: str) -> list[Trace]:
    drawn = palette.drawn(lines.count, MAX_CLOUD_LINES)
    thin = [
        curve(lines.times_s, lines.values[:, c], points // drawn.size, {"color": colour}, lines.labels[c], hover)
        | {"opacity": 0.25, "showlegend": bool(c == drawn[0]), "legendgroup": f"{name} flows"}
        for c in drawn
    ]
    thin[0]["name"] = f"{name}: {drawn.size} of {lines.count} flows"
    for trace in thin:
        trace["line"] = {"color": colour, "width": 0.8}
    times_s, low, high = lines.quantiles(0.1, 0.9)
    band = {
        "type": "scatter",
        "mode": "lines",
        "name": f"{name}: the middle 80 %",
        "fill": "toself",
        "line": {"width": 0},
        "fillcolor": _translucent(colour),
        "hoverinfo": "skip",
        "x": numbers(np.concatenate([times_s, times_s[::-1]])),
        "y": numbers(np.concatenate([low, high[::-1]])),
    }
    mean = curve(lines.times_s, lines.mean(), points // 4, {"color": _dark(colour), "width": 2}, f"{name}: mean", hover)
    return [*thin, band, mean]


def curve(x: Array, y: Array, points: int, look: dict[str, Any], name: str, hover: str) -> Trace:
    """Return one thinned curve; `hover` is a plotly template."""
    x, y = curves.thinned(x, y, max(points, 200))
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": numbers(x),
        "y": numbers(y),
        "line": {"width": 1.3, **look},
        "hovertemplate": hover,
    }


def numbers(values: Array) -> dict[str, str]:
    """Return a typed array as plotly.js takes it."""
    return {"dtype": "f4", "bdata": base64.b64encode(np.asarray(values, dtype="<f4").tobytes()).decode()}


def plain() -> dict[str, Any]:
    """Return the layout that all figures share."""
    return {
        "font": {"family": "system-ui, sans-serif", "size": 13, "color": palette.INK},
        "paper_bgcolor": "white",
        "plot_bgcolor": "white",
        "hovermode": "closest",
        "margin": {"l": 64, "r": RIGHT, "t": 12, "b": 56},
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


def over_time(view: RunView, axes: dict[str, Any]) -> dict[str, Any]:
    """Return a layout over the run's time with these vertical axes, the warm-up shaded."""
    layout = plain() | {"xaxis": axis("Time (s)", range=[0, view.duration_s])} | axes
    if view.warmup_s > 0:
        for name in axes:
            shade(layout, name.replace("axis", ""), 0.0, view.warmup_s)
        note_warmup(layout)
    return layout


def shade(layout: dict[str, Any], axis: str, start_s: float, end_s: float, colour: str = SHADE) -> None:
    """Shade an interval of time in the panel of a vertical axis."""
    place = {"xref": "x", "yref": f"{axis} domain", "x0": start_s, "x1": end_s, "y0": 0, "y1": 1}
    layout["shapes"].append({"type": "rect", **place, "fillcolor": colour, "line": {"width": 0}, "layer": "below"})


def note_warmup(layout: dict[str, Any]) -> None:
    """Name the shaded warm-up."""
    place = {"xref": "x", "yref": "paper", "x": 0, "y": 1, "xanchor": "left", "yanchor": "top"}
    layout["annotations"].append(_note("warm-up", QUIET) | place)


def _note(text: str, colour: str) -> dict[str, Any]:
    return {"text": text, "showarrow": False, "font": {"size": 11, "color": colour}}


def axis(title: str, **more: Any) -> dict[str, Any]:
    """Return an axis with a title (and its unit)."""
    common = {
        "title": {"text": title, "standoff": 8},
        "gridcolor": FAINT,
        "zeroline": False,
        "linecolor": QUIET,
        "ticks": "outside",
        "tickcolor": QUIET,
        "nticks": 7,
    }
    return {**common, **more}


def reference(layout: dict[str, Any], axis: str, value: float, text: str) -> None:
    """Add a horizontal line with its name in the right margin."""
    line = {"color": palette.INK, "width": 1, "dash": "dash"}
    place = {"xref": "paper", "x0": 0, "x1": 1, "yref": axis, "y0": value, "y1": value}
    layout["shapes"].append({"type": "line", **place, "line": line})
    label_place = {
        "xref": "paper",
        "x": 1,
        "xanchor": "left",
        "yref": axis,
        "y": value,
        "yanchor": "middle",
        "align": "left",
    }
    layout["annotations"].append(_note(text, palette.INK) | label_place)
    layout["margin"] = {**layout["margin"], "r": 68}


def line_style(number: int) -> dict[str, str]:
    """Return colour and dash of line `number`: each colour solid, then dashed, then dotted."""
    return {"color": palette.colour(number), "dash": palette.dashed(number, ("solid", "dash", "dot"))}


def _translucent(colour: str) -> str:
    return "rgba({},{},{},0.18)".format(*_parts(colour))


def _dark(colour: str) -> str:
    return "rgb({},{},{})".format(*(round(0.6 * part) for part in _parts(colour)))


def _parts(colour: str) -> list[int]:
    return [int(colour[at : at + 2], 16) for at in (1, 3, 5)]
