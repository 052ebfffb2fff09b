"""The congestion window of each flow over time."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ackclock import curves
from ackclock.curves import Lines
from ackclock.dataset import Dataset
from ackclock.metrics.view import RunView
from ackclock.plots import style

#: Up to this many flows share one panel; up to `style.MOST_LINES` each has its own; more are a cloud.
TOGETHER = 3


@style.styled
def cwnd(data: Dataset) -> Figure:
    """Draws the congestion window (segments) of each flow of the first run."""
    view = style.first_run(data)
    lines = curves.windows(view)
    draw = _panels if TOGETHER < lines.count <= style.MOST_LINES else _one_panel
    fig = draw(view, lines)
    style.title(fig, "Congestion window of each flow", data)
    return fig


def _one_panel(view: RunView, lines: Lines) -> Figure:
    fig = style.figure(3.2)
    ax = fig.subplots()
    if lines.count <= TOGETHER:
        for number, label in enumerate(lines.labels):
            style.curve(ax, lines.times_s, lines.values[:, number], label=label, **style.look(number))
    else:
        style.cloud(ax, lines)
    style.warmup([ax], view)
    style.time_axis(ax, view)
    ax.set_ylim(bottom=0)
    ax.set_ylabel("cwnd (segments)")
    fig.legend(loc="outside lower center", ncols=2 if lines.count > style.MOST_LINES else TOGETHER)
    return fig


def _panels(view: RunView, lines: Lines) -> Figure:
    columns = 2
    rows = math.ceil(lines.count / columns)
    fig = style.figure(1.0 + 0.85 * rows)
    grid = fig.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    mean, names = lines.mean(), list(dict.fromkeys(lines.groups))
    for number, label in enumerate(lines.labels):
        ax = grid[number % rows, number // rows]
        style.curve(ax, lines.times_s, mean, color="#AAAAAA", linewidth=0.8)
        colour = style.COLOURS[names.index(lines.groups[number]) % len(style.COLOURS)]
        style.curve(ax, lines.times_s, lines.values[:, number], color=colour)
        _name(ax, label)
    for ax in list(grid.flat)[lines.count :]:
        ax.set_visible(False)
    used = list(grid.flat)[: lines.count] if lines.count % columns == 0 else [a for a in grid.flat if a.get_visible()]
    style.warmup(used, view, text=False)
    for ax in grid[-1]:
        style.time_axis(ax, view)
    grid[0, 0].set_ylim(0, 1.25 * float(np.nanmax(lines.values)))
    fig.supylabel("cwnd (segments); grey: mean of all flows", fontsize=8.5, color=style.INK)
    return fig


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
