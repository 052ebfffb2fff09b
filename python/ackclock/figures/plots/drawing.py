"""Matplotlib back end of the figure specs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from ackclock.dataset import Dataset
from ackclock.figures import palette
from ackclock.figures.figure_spec import Curves, Drawing, Layer, Line, Panel, Points, Spans, Stack, Strokes
from ackclock.figures.plots import style

#: Strokes and signs beyond this many become a picture within a vector file.
MAX_VECTORS = 20_000

#: Height of a figure without its panels and of a panel, in inches, where the spec has none.
BASE_IN, PANEL_IN = 1.4, 2.4

SHADE = "#F3F3F3"


def draw(drawing: Drawing) -> tuple[Figure, list[Axes]]:
    """Draw a spec without legend and title; return the figure and the axes of its panels."""
    count = len(drawing.panels)
    fig = style.figure(drawing.height_in or BASE_IN + PANEL_IN * count)
    ratios = [panel.weight for panel in drawing.panels]
    axes = list(fig.subplots(count, 1, sharex=True, squeeze=False, height_ratios=ratios)[:, 0])
    for ax, panel in zip(axes, drawing.panels, strict=True):
        for layer in panel.layers:
            _layer(ax, layer, drawing.end_s)
        for reference in panel.references:
            style.reference(ax, reference.value, reference.name, side=reference.side)
        ax.set_ylabel(panel.axis)
        ax.set_xlim(drawing.start_s, drawing.end_s)
    style.warmup(axes, drawing.warmup_s)
    axes[-1].set_xlabel("Time (s)")
    return fig, axes


def finish(
    fig: Figure, axes: Sequence[Axes], drawing: Drawing, data: Dataset, more: Sequence[Artist] = (), *, columns: int = 4
) -> Figure:
    """Scale the axes, add the legend, of which `more` are further entries, and the title."""
    for ax, panel in zip(axes, drawing.panels, strict=True):
        _scale(ax, panel)
    handles = [*(handle for ax in axes for handle in ax.get_legend_handles_labels()[0]), *more]
    if len(handles) > 1:
        style.legend(fig, handles=handles, ncols=columns)
    style.title(fig, drawing.title or drawing.heading, data)
    return fig


def figure(drawing: Drawing, data: Dataset) -> Figure:
    """Draw a spec of the first run of a dataset."""
    fig, axes = draw(drawing)
    return finish(fig, axes, drawing, data, columns=columns(drawing))


def columns(drawing: Drawing) -> int:
    """Return the columns of the legend: few where names are long."""
    every = [layer.lines.count for panel in drawing.panels for layer in panel.layers if isinstance(layer, Curves)]
    return 2 if max(every, default=0) > palette.MAX_LINES else 6 if every else 4


def _scale(ax: Axes, panel: Panel) -> None:
    if panel.limits is not None:
        ax.set_ylim(*panel.limits)
    elif panel.from_zero:
        ax.set_ylim(
            0, 1.12 * max(float(ax.dataLim.ymax), *(reference.value for reference in panel.references), 0.0) or 1
        )
    if panel.ticks:
        ax.set_yticks([place for place, _ in panel.ticks], [text for _, text in panel.ticks])
    if panel.names:
        ax.set_yticks(range(len(panel.names)), panel.names)
        ax.set_ylim(-0.8, len(panel.names) - 0.2)


def _layer(ax: Axes, layer: Layer, end_s: float) -> None:
    if isinstance(layer, Line):
        _line(ax, layer, end_s)
    elif isinstance(layer, Curves):
        _curves(ax, layer)
    elif isinstance(layer, Spans):
        for start_s, stop_s in zip(layer.starts, layer.ends, strict=True):
            ax.axvspan(start_s, stop_s, facecolor=layer.colour, linewidth=0.8, edgecolor=layer.colour, zorder=1)
    elif isinstance(layer, Strokes):
        _strokes(ax, layer)
    elif isinstance(layer, Points):
        _points(ax, layer)
    else:
        _stack(ax, layer)


def _line(ax: Axes, layer: Line, end_s: float) -> None:
    x, y, how = layer.x, layer.y, "default"
    if layer.steps:
        x, y, how = np.append(x, end_s), np.append(y, y[-1:]), "steps-post"
    look: dict[str, Any] = {"linewidth": 0.8, "linestyle": ":"} if layer.dotted else {}
    style.curve(
        ax, x, y, color=layer.colour, label=layer.name if layer.listed and layer.name else None, drawstyle=how, **look
    )


def _curves(ax: Axes, layer: Curves) -> None:
    lines = layer.lines
    if lines.count > palette.MAX_LINES:
        style.cloud(ax, lines, layer.scale)
        return
    for number, label in enumerate(lines.labels):
        name = label if lines.count > 1 else None
        style.curve(ax, lines.times_s, lines.values[:, number] * layer.scale, label=name, **style.line_style(number))


def _points(ax: Axes, layer: Points) -> None:
    many = layer.x.size > MAX_VECTORS
    if layer.size:
        size = layer.size**2
        ax.scatter(layer.x, layer.y, s=size, color=layer.colour, linewidths=0, zorder=3, rasterized=many)
        return
    dot = layer.sign == "."
    ax.plot(
        layer.x,
        layer.y,
        layer.sign,
        color=layer.colour,
        markersize=3.0 if dot else 4.5,
        markerfacecolor=layer.colour if dot else "none",
        markeredgewidth=0 if dot else 0.9,
        label=layer.name or None,
        zorder=2 if dot else 3,
        rasterized=many,
    )


def _strokes(ax: Axes, layer: Strokes) -> None:
    ends = np.stack([np.column_stack([layer.x, layer.y]), np.column_stack([layer.x_end, layer.y_end])], axis=1)
    width = 4.0 if layer.wide else 1.0
    many = layer.x.size > MAX_VECTORS
    drawn = LineCollection(list(ends), colors=layer.colour, linewidths=width, label=layer.name, rasterized=many)
    if not layer.name:
        drawn.set_label("_nolegend_")
    ax.add_collection(drawn)
    ax.autoscale_view()


def _stack(ax: Axes, layer: Stack) -> None:
    below = np.zeros(layer.edges.size - 1)
    for name, colour, heights in zip(layer.names, layer.colours, layer.heights, strict=True):
        ax.stairs(below + heights, layer.edges, baseline=below, fill=True, color=colour, label=name)
        below = below + heights
