"""Goodput over time: all flows together, and each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ackclock.dataset import Dataset
from ackclock.figures import curves, numbers, palette
from ackclock.figures.curves import Lines
from ackclock.figures.plots import overlay, style
from ackclock.figures.plots.overlay import Other, Over
from ackclock.metrics.view import Array, RunView


@style.public
def goodput(data: Dataset, over: Over = None) -> Figure:
    """Draws total and per-flow goodput of the first run, averaged over a sliding window that the title names.

    `over`: dashed, those of other results, averaged in the same way.
    """
    view = style.first_run(data)
    window_s = curves.goodput_window(view)
    lines = curves.goodputs(view, window_s)
    fig = style.figure(4.6)
    above, below = fig.subplots(2, 1, sharex=True, height_ratios=(1, 1.5))
    laid = overlay.others(data, over)
    _total(above, lines, curves.link_rate(view), laid, window_s)
    _each(below, lines, laid, window_s)
    style.warmup([above, below], view)
    style.time_axis(below, view)
    handles = [*(below.get_legend_handles_labels()[0] if lines.count > 1 else []), *overlay.signs(data, laid)]
    if handles:
        style.legend(
            fig,
            handles=handles,
            ncols=2 if lines.count > palette.MAX_LINES else 6,
        )
    style.title(fig, f"Goodput, mean over the last {window_s:.2g} s", data)
    return fig


def _total(ax: Axes, lines: Lines, rate_bps: float | None, laid: Sequence[Other], window_s: float) -> None:
    total = lines.total()
    unit, name = numbers.scale(max(float(total.max()), rate_bps or 0), "bit/s")
    style.curve(ax, lines.times_s, total / unit, color=style.COLOURS[0])
    for other in laid:
        overlay.curve(ax, other, lambda view: _sum(view, window_s), "goodput_bps", scale=1 / unit, colour=style.INK)
    if rate_bps:
        style.reference(ax, rate_bps / unit, "link rate")
    ax.set_ylim(0, 1.18 * max(float(ax.dataLim.ymax), (rate_bps or 0) / unit))
    ax.set_ylabel(f"All flows ({name})")


def _sum(view: RunView, window_s: float) -> tuple[Array, Array]:
    lines = curves.goodputs(view, window_s)
    return lines.times_s, lines.total()


def _each(ax: Axes, lines: Lines, laid: Sequence[Other], window_s: float) -> None:
    unit, name = numbers.scale(float(np.nanmax(lines.values, initial=0)), "bit/s")
    if lines.count > palette.MAX_LINES:
        style.cloud(ax, lines, 1 / unit)
    else:
        for number, label in enumerate(lines.labels):
            style.curve(ax, lines.times_s, lines.values[:, number] / unit, label=label, **style.line_style(number))
    for other in laid:
        if "goodput_bps" not in other.view.given:
            theirs = overlay.read(other, lambda view: curves.goodputs(view, window_s))
            overlay.lines(ax, other, lines, theirs, 1 / unit)
    if 1 < lines.count <= palette.MAX_LINES:
        fair = curves.thinned(lines.times_s, lines.mean() / unit, style.POINTS)
        ax.plot(*fair, color=style.INK, linewidth=0.8, linestyle=":", label="equal share")
    ax.set_ylim(bottom=0)
    ax.set_ylabel(f"Each flow ({name})")
