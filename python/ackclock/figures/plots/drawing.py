"""Matplotlib back end of the figure specs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from ackclock.figures import figure_spec, numbers
from ackclock.figures.curves import thinned
from ackclock.figures.figure_spec import (
    INK,
    SHADES,
    Axis,
    Band,
    Boxes,
    Crowd,
    Drawing,
    Heat,
    Layer,
    Line,
    Panel,
    Points,
    Spans,
    Stack,
    Strokes,
)
from ackclock.figures.plots import layout, style
from ackclock.figures.plots.style import DASHES, POINTS

#: Strokes and signs beyond this many become a picture within a vector file.
MAX_VECTORS = 20_000

#: Lines of a cloud that are drawn, evenly chosen.
MAX_CLOUD_LINES = 200

#: Height of a figure without its panels, in inches; lower rows have the panels' titles within.
BASE_IN, LOW_IN = 1.4, 1.0

#: More panels in a row than this have small letters, of so many points.
MAX_COLUMNS, SMALL = 3, 6.5

#: Columns of a legend at most.
LEGEND_COLUMNS = 6

#: Heat maps of at most so many rows and columns have their numbers written in.
MAX_WRITTEN = (9, 14)

MAP = LinearSegmentedColormap.from_list("ackclock", SHADES)


def figure(drawing: Drawing) -> Figure:
    """Draw a spec, with the page's names of its curves."""
    drawing = figure_spec.relabelled(drawing, [style.escaped(name) for name in layout.labels()])
    columns = min(layout.columns(drawing.columns), len(drawing.panels))
    rows = math.ceil(len(drawing.panels) / columns)
    fig = style.figure(BASE_IN + drawing.row_in * rows)
    weights = [panel.weight for panel in drawing.panels] if columns == 1 else None
    share_x = drawing.x is not None
    grid = fig.subplots(rows, columns, sharex=share_x, sharey=drawing.share_y, squeeze=False, height_ratios=weights)
    axes = list(grid.flat)
    for number, (ax, panel) in enumerate(zip(axes, drawing.panels, strict=False)):
        is_last = number + columns >= len(drawing.panels)
        _panel(fig, ax, drawing, panel, is_left=number % columns == 0, is_last=is_last)
    _scale(axes, drawing)
    for ax in axes[len(drawing.panels) :]:
        ax.set_axis_off()
    if drawing.warmup_s > 0:
        style.warmup(axes[: len(drawing.panels)], drawing.warmup_s, text=len(drawing.panels) == rows)
    _legend(fig, axes, figure_spec.legend_names(drawing))
    style.headline(fig, drawing.title or drawing.heading, drawing.subtitle)
    return fig


def _panel(fig: Figure, ax: Axes, drawing: Drawing, panel: Panel, *, is_left: bool, is_last: bool) -> None:
    for layer in panel.layers:
        DRAW[type(layer)](ax, layer)
    for reference in panel.references:
        style.reference(ax, reference.value, reference.name, side=reference.side)
    if drawing.row_in < LOW_IN:
        style.note(ax, panel.title)
    elif panel.title:
        look = {"fontsize": SMALL} if drawing.columns > MAX_COLUMNS else {}
        style.panel_title(ax, panel.title, 0.7 if panel.y.title else 0.82, **look)
    x = panel.x or drawing.x
    assert x is not None, "a panel without an axis"
    _set_axis(ax, "x", x)
    if drawing.x is None or is_last:
        ax.set_xlabel(x.title)
        ax.tick_params("x", labelbottom=True)
    _set_axis(ax, "y", panel.y)
    if drawing.share_y and drawing.row_in < LOW_IN:
        fig.supylabel(panel.y.title, fontsize="medium", color=INK)
    elif is_left or not drawing.share_y:
        ax.set_ylabel(panel.y.title)
    if drawing.columns > MAX_COLUMNS:
        ax.tick_params(labelsize=SMALL)


def _set_axis(ax: Axes, which: str, axis: Axis) -> None:
    drawn, limits = (ax.xaxis, ax.set_xlim) if which == "x" else (ax.yaxis, ax.set_ylim)
    if axis.logarithmic:
        (ax.set_xscale if which == "x" else ax.set_yscale)("log", nonpositive="clip")
    if axis.ticks:
        drawn.set_ticks([place for place, _ in axis.ticks], [text for _, text in axis.ticks])
    if axis.low is not None or axis.high is not None:
        limits(axis.low, axis.high)
    if axis.logarithmic and not axis.ticks:
        style.log_axis(drawn, axis.text)
    elif axis.logarithmic:
        drawn.set_minor_locator(NullLocator())


def _scale(axes: Sequence[Axes], drawing: Drawing) -> None:
    """Scale the vertical axes that begin at zero, with room above the highest value; shared ones alike."""
    pairs = list(zip(axes, drawing.panels, strict=False))
    tops = [max(ax.dataLim.ymax, *(each.value for each in panel.references), 0.0) for ax, panel in pairs]
    for (ax, panel), top in zip(pairs, tops, strict=True):
        highest = max(tops) if drawing.share_y else top
        if panel.y.from_zero:
            ax.set_ylim(0, 1.12 * highest if highest > 0 and math.isfinite(highest) else 1)


def _legend(fig: Figure, axes: Sequence[Axes], names: Sequence[str]) -> None:
    """Place a legend with each name once, in the order of `names`, unless there is none."""
    handles: dict[str, Artist] = {}
    for ax in axes:
        for handle, name in zip(*ax.get_legend_handles_labels(), strict=True):
            handles.setdefault(name, handle)
    listed = [name for name in names if name in handles]
    if listed:
        style.legend(fig, [handles[name] for name in listed], listed, ncols=LEGEND_COLUMNS)


def _line(ax: Axes, layer: Line) -> None:
    look: dict[str, Any] = {"zorder": 4} if layer.over else {}
    style.curve(ax, layer.x, layer.y, layer.sign, color=layer.colour, linestyle=DASHES[layer.dash],
                linewidth=layer.width, drawstyle="steps-post" if layer.steps else "default",
                label=layer.name if layer.listed and layer.name else None, **look)  # fmt: skip


def _spans(ax: Axes, layer: Spans) -> None:
    for start_s, stop_s in zip(layer.starts, layer.ends, strict=True):
        ax.axvspan(start_s, stop_s, facecolor=layer.colour, linewidth=0.8, edgecolor=layer.colour, zorder=1)


def _stack(ax: Axes, layer: Stack) -> None:
    below = np.zeros(layer.edges.size - 1)
    for name, colour, heights in zip(layer.names, layer.colours, layer.heights, strict=True):
        ax.stairs(below + heights, layer.edges, baseline=below, fill=True, color=colour, label=name)
        below = below + heights


def _crowd(ax: Axes, layer: Crowd) -> None:
    drawn = figure_spec.spread_over(layer.values.shape[1], MAX_CLOUD_LINES)
    points = max(200, POINTS * 20 // drawn.size)
    paths = [np.column_stack(thinned(layer.x, layer.values[:, column], points)) for column in drawn]
    alpha = max(0.12, min(0.4, 6 / drawn.size))
    ax.add_collection(LineCollection(paths, colors=layer.colour, linewidths=0.45, alpha=alpha, rasterized=True))
    ax.autoscale_view()


def _band(ax: Axes, layer: Band) -> None:
    ax.fill_between(layer.x, layer.low, layer.high, color=layer.colour, alpha=0.22, linewidth=0, label=layer.name)


def _points(ax: Axes, layer: Points) -> None:
    many = layer.x.size > MAX_VECTORS
    label = layer.name if layer.listed and layer.name else None
    is_dot, is_filled = layer.sign == ".", layer.size > 0 or layer.sign == "."
    look: dict[str, Any] = {
        "color": layer.colour,
        "linestyle": DASHES[layer.dash],
        "marker": layer.sign,
        "markersize": layer.size or (3.0 if is_dot else 4.5),
        "markerfacecolor": layer.colour if is_filled else "none",
        "zorder": 2 if is_dot else 3,
        "rasterized": many,
    }
    if layer.low is None or layer.high is None:
        ax.plot(layer.x, layer.y, label=label, markeredgewidth=0 if is_filled and layer.sign != "x" else 0.9, **look)
        return
    ends = np.nan_to_num(np.stack([layer.y - layer.low, layer.high - layer.y]))
    look |= {"capsize": 2, "capthick": 0.7, "elinewidth": 0.7}
    ax.errorbar(layer.x, layer.y, yerr=np.maximum(ends, 0), label=label, **look)


def _strokes(ax: Axes, layer: Strokes) -> None:
    ends = np.stack([np.column_stack([layer.x, layer.y]), np.column_stack([layer.x_end, layer.y_end])], axis=1)
    many = layer.x.size > MAX_VECTORS
    drawn = LineCollection(list(ends), colors=layer.colour, linewidths=4.0 if layer.wide else 1.0, rasterized=many)
    drawn.set_label(layer.name or "_nolegend_")
    ax.add_collection(drawn)
    ax.autoscale_view()


def _boxes(ax: Axes, layer: Boxes) -> None:
    look: dict[str, Any] = {"color": layer.colour, "linewidth": 1.0, "linestyle": DASHES[layer.dash]}
    median = {"color": layer.median or layer.colour, "linewidth": 1.6}
    ax.boxplot(layer.values, positions=layer.x, widths=layer.width, whis=(0, 100), manage_ticks=False,
               boxprops=look, whiskerprops=look, capprops=look, medianprops=median)  # fmt: skip
    if layer.name:
        ax.plot([], [], label=layer.name, **look)


def _heat(ax: Axes, layer: Heat) -> None:
    """Draw a colour for each value, with its number where there is room."""
    values = layer.values
    rows, columns = values.shape
    edges = np.arange(columns + 1) - 0.5, np.arange(rows + 1) - 0.5
    mesh = ax.pcolormesh(*edges, values, cmap=MAP, edgecolors="white", linewidth=0.5)
    ax.grid(visible=False)
    fig = ax.get_figure(root=True)
    assert fig is not None
    fig.colorbar(mesh, ax=ax, fraction=0.05, pad=0.02).outline.set_visible(False)
    if columns > MAX_WRITTEN[0] or rows > MAX_WRITTEN[1]:
        return
    middle = (np.nanmin(values) + np.nanmax(values)) / 2
    for (row, column), value in np.ndenumerate(values):
        if math.isfinite(value):
            text, colour = numbers.value(float(value), "1"), "white" if value > middle else INK
            ax.annotate(text, (column, row), ha="center", va="center", fontsize=SMALL, color=colour)


#: Layer → the function that draws it.
DRAW: Mapping[type[Layer], Callable[[Axes, Any], None]] = {
    Line: _line,
    Crowd: _crowd,
    Band: _band,
    Spans: _spans,
    Strokes: _strokes,
    Points: _points,
    Stack: _stack,
    Boxes: _boxes,
    Heat: _heat,
}
