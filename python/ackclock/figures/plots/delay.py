"""One-way delays of the flows over time."""

from __future__ import annotations

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from ackclock.dataset import Dataset
from ackclock.errors import InputError
from ackclock.figures import numbers, palette
from ackclock.figures.curves import Lines
from ackclock.figures.plots import style
from ackclock.metrics import one_way
from ackclock.metrics.view import RunView


@style.public
def delay(data: Dataset) -> Figure:
    """Draw the one-way delay of each flow's data, the mean of each interval, in the first run."""
    view = style.first_run(data)
    lines = _lines(view)
    unit, name = numbers.scale(float(np.nanmax(lines.values)), "s")
    fig = style.figure(3.2)
    ax = fig.subplots()
    if lines.count > palette.MAX_LINES:
        style.cloud(ax, lines, 1 / unit)
    else:
        for number, label in enumerate(lines.labels):
            style.curve(ax, lines.times_s, lines.values[:, number] / unit, label=label, **style.line_style(number))
    ax.set_ylim(bottom=0)
    ax.set_ylabel(f"One-way delay ({name})")
    style.warmup([ax], view)
    style.time_axis(ax, view)
    if lines.count > 1:
        style.legend(fig, ncols=2 if lines.count > palette.MAX_LINES else 6)
    style.title(fig, "One-way delay of the data, mean over each interval", data)
    return fig


def _lines(view: RunView) -> Lines:
    rows = one_way.series(view)
    if not rows.height:
        raise InputError("the result has no one-way delays to draw; expected a run with [record] delays = true")
    wide = rows.pivot(on="flow", index="time_s", values="delay_mean_s").sort("time_s")
    flows = [name for name in wide.columns if name != "time_s"]
    values = wide.select(flows).cast(pl.Float64).to_numpy()
    labels = tuple(f"flow {name}" for name in flows)
    return Lines(wide["time_s"].to_numpy(), values, labels, ("all flows",) * len(flows))
