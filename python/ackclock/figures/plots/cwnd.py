"""The congestion window of each flow over time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ackclock.dataset import Dataset
from ackclock.figures import curves, palette
from ackclock.figures.curves import Lines
from ackclock.figures.plots import overlay, style
from ackclock.figures.plots.overlay import Other, Over
from ackclock.metrics.view import RunView

#: Up to this many flows share one panel; up to `palette.MAX_LINES` each has its own; more are a cloud.
MAX_IN_ONE_PANEL = 3

#: What each flow is drawn beside, in a panel of its own.
GREY: dict[str, Any] = {"color": "#AAAAAA", "linewidth": 0.8}


@style.public
def cwnd(data: Dataset, over: Over = None) -> Figure:
    """Draws the congestion window (segments) of each flow of the first run; `over`: dashed, those of other results."""
    view = style.first_run(data)
    lines = curves.windows(view)
    draw = _panels if MAX_IN_ONE_PANEL < lines.count <= palette.MAX_LINES else _one_panel
    laid = overlay.others(data, over)
    fig = draw(view, lines, laid, overlay.signs(data, laid))
    style.title(fig, "Congestion window of each flow", data)
    return fig


def _one_panel(view: RunView, lines: Lines, laid: Sequence[Other], signs: Sequence[Line2D]) -> Figure:
    fig = style.figure(3.2)
    ax = fig.subplots()
    if lines.count <= MAX_IN_ONE_PANEL:
        for number, label in enumerate(lines.labels):
            style.curve(ax, lines.times_s, lines.values[:, number], label=label, **style.line_style(number))
    else:
        style.cloud(ax, lines)
    for other in laid:
        overlay.lines(ax, other, lines, overlay.read(other, curves.windows))
    style.warmup([ax], view)
    style.time_axis(ax, view)
    ax.set_ylim(bottom=0)
    ax.set_ylabel("cwnd (segments)")
    handles = [*ax.get_legend_handles_labels()[0], *signs]
    columns = 2 if lines.count > palette.MAX_LINES else MAX_IN_ONE_PANEL + len(signs)
    style.legend(fig, handles=handles, ncols=columns)
    return fig


def _panels(view: RunView, lines: Lines, laid: Sequence[Other], signs: Sequence[Line2D]) -> Figure:
    columns = style.columns(2)
    rows = math.ceil(lines.count / columns)
    fig = style.figure(1.0 + 0.85 * rows)
    grid = fig.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    mean, names = lines.mean(), list(dict.fromkeys(lines.groups))
    for number, label in enumerate(lines.labels):
        ax = grid[number % rows, number // rows]
        style.curve(ax, lines.times_s, mean, **GREY)
        colour = palette.colour(names.index(lines.groups[number]))
        style.curve(ax, lines.times_s, lines.values[:, number], color=colour)
        for other in laid:
            _over(ax, other, number, lines.count)
        _name(ax, label)
    for ax in list(grid.flat)[lines.count :]:
        ax.set_visible(False)
    used = list(grid.flat)[: lines.count] if lines.count % columns == 0 else [a for a in grid.flat if a.get_visible()]
    style.warmup(used, view, text=False)
    for ax in grid[-1]:
        style.time_axis(ax, view)
    grid[0, 0].set_ylim(0, 1.25 * max(float(ax.dataLim.ymax) for ax in used))
    fig.supylabel("cwnd (segments)", fontsize=8.5, color=style.INK)
    grey = Line2D([], [], label="mean of all flows", **GREY)
    style.legend(fig, handles=[grey, *signs], ncols=1 + len(signs))
    return fig


def _over(ax: Axes, other: Other, number: int, count: int) -> None:
    """Draw the same flow of another result, or the mean of its flows if it has not as many."""
    theirs: Lines = overlay.read(other, curves.windows)
    values = theirs.values[:, number] if theirs.count == count else theirs.mean()
    style.curve(ax, theirs.times_s, values, color=style.INK, **other.line_style)


def _name(ax: Axes, label: str) -> None:
    ax.annotate(
        label,
        (1, 1),
        xycoords="axes fraction",
        xytext=(-2, -2),
        textcoords="offset points",
        ha="right",
        va="top",
        fontsize=7.5,
        color=style.INK,
    )
