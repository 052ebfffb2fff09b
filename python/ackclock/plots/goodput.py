"""Goodput over time: all flows together, and each."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ackclock import curves, shown
from ackclock.curves import Lines
from ackclock.dataset import Dataset
from ackclock.plots import style


@style.styled
def goodput(data: Dataset) -> Figure:
    """Draws total and per-flow goodput of the first run, averaged over a sliding window that the title names."""
    view = style.first_run(data)
    window_s = curves.goodput_window(view)
    lines = curves.goodputs(view, window_s)
    fig = style.figure(4.6)
    above, below = fig.subplots(2, 1, sharex=True, height_ratios=(1, 1.5))
    _total(above, lines, curves.link_rate(view))
    _each(below, lines)
    style.warmup([above, below], view)
    style.time_axis(below, view)
    if lines.count > 1:
        fig.legend(
            *below.get_legend_handles_labels(),
            loc="outside lower center",
            ncols=2 if lines.count > style.MOST_LINES else 6,
        )
    style.title(fig, f"Goodput, mean over the last {window_s:.2g} s", data)
    return fig


def _total(ax: Axes, lines: Lines, rate_bps: float | None) -> None:
    total = lines.total()
    unit, name = shown.scale(max(float(total.max()), rate_bps or 0), "bit/s")
    style.curve(ax, lines.times_s, total / unit, color=style.COLOURS[0])
    if rate_bps:
        style.reference(ax, rate_bps / unit, "link rate")
    ax.set_ylim(0, 1.18 * max(float(total.max()), rate_bps or 0) / unit)
    ax.set_ylabel(f"All flows ({name})")


def _each(ax: Axes, lines: Lines) -> None:
    unit, name = shown.scale(float(np.nanmax(lines.values, initial=0)), "bit/s")
    if lines.count > style.MOST_LINES:
        style.cloud(ax, lines, 1 / unit)
    else:
        for number, label in enumerate(lines.labels):
            style.curve(ax, lines.times_s, lines.values[:, number] / unit, label=label, **style.look(number))
    if 1 < lines.count <= style.MOST_LINES:
        fair = curves.thinned(lines.times_s, lines.mean() / unit, style.POINTS)
        ax.plot(*fair, color=style.INK, linewidth=0.8, linestyle=":", label="equal share")
    ax.set_ylim(bottom=0)
    ax.set_ylabel(f"Each flow ({name})")
