"""The congestion window of each flow over time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ackclock.dataset import Dataset
from ackclock.figures import curves, palette, run_figures
from ackclock.figures.curves import Lines
from ackclock.figures.plots import drawing, overlay, style
from ackclock.figures.plots.overlay import Other, Over
from ackclock.metrics.view import RunView

#: Up to this many flows share one panel; up to `palette.MAX_LINES` each has its own; more are a cloud.
MAX_IN_ONE_PANEL = 3

#: Style of the mean of all flows in each flow's panel.
GREY: dict[str, Any] = {"color": "#AAAAAA", "linewidth": 0.8}


@style.public
def cwnd(data: Dataset, over: Over = None) -> Figure:
    """Draws the congestion window (segments) of each flow of the first run; `over`: dashed, those of other results."""
    view = style.first_run(data)
    lines = curves.windows(view)
    laid = overlay.others(data, over)
    signs = overlay.signs(data, laid)
    if not MAX_IN_ONE_PANEL < lines.count <= palette.MAX_LINES:
        return _one_panel(data, view, lines, laid, signs)
    fig = _panels(view, lines, laid, signs)
    style.title(fig, "Congestion window of each flow", data)
    return fig


def _one_panel(data: Dataset, view: RunView, lines: Lines, laid: Sequence[Other], signs: Sequence[Line2D]) -> Figure:
    spec = run_figures.cwnd(view)
    fig, axes = drawing.draw(spec)
    for other in laid:
        overlay.lines(axes[0], other, lines, overlay.read(other, curves.windows))
    columns = 2 if lines.count > palette.MAX_LINES else MAX_IN_ONE_PANEL + len(signs)
    return drawing.finish(fig, axes, spec, data, signs, columns=columns)


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
    style.warmup(used, view.warmup_s, text=False)
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
