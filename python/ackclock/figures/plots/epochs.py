"""Loss epochs: the flows that lost at each time, and their share."""

from __future__ import annotations

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ackclock.dataset import Dataset
from ackclock.errors import InputError
from ackclock.figures import curves, numbers, palette
from ackclock.figures.plots import style
from ackclock.metrics import epoch


@style.public
def epochs(data: Dataset) -> Figure:
    """Draws each drop at the bottleneck in the first run's measured part, its epoch, and the share of flows hit."""
    view = style.first_run(data)
    if not epoch.is_recorded(view):
        raise InputError("the result has no record of drops to draw")
    drops, result = curves.loss_epochs(view)
    fig = style.figure(4.4)
    above, below = fig.subplots(2, 1, sharex=True, height_ratios=(1.6, 1))
    _drops(above, drops, result, curves.flow_count(view))
    _share(below, result)
    style.warmup([above, below], view)
    style.time_axis(below, view)
    style.title(fig, _heading(result), data)
    return fig


def _heading(result: pl.DataFrame) -> str:
    if not result.height:
        return "Loss epochs: no packet was dropped at the bottleneck"
    mean = numbers.value(float(np.mean(result["drops"].to_numpy())), "packets")
    return f"Loss epochs: {result.height}, with {mean} lost in each on average"


def _drops(ax: Axes, drops: pl.DataFrame, result: pl.DataFrame, flows: int) -> None:
    for start_s, end_s in result.select("start_s", "end_s").iter_rows():
        ax.axvspan(start_s, end_s, facecolor="#FBE3D2", linewidth=0.8, edgecolor="#FBE3D2", zorder=1)
    size = float(np.clip(260 / max(flows, 1), 0.6, 14))
    ax.scatter(
        drops["time_s"].to_numpy(),
        drops["flow"].to_numpy(),
        s=size,
        color=style.COLOURS[0],
        linewidths=0,
        zorder=3,
        rasterized=drops.height > 5000,
    )
    ax.set_ylim(-0.7, flows - 0.3)
    if flows <= palette.MAX_LINES:
        ax.set_yticks(range(flows))
    ax.set_ylabel("Flow that lost a packet")


def _share(ax: Axes, result: pl.DataFrame) -> None:
    middle = (result["start_s"].to_numpy() + result["end_s"].to_numpy()) / 2
    ax.vlines(middle, 0, result["share"].to_numpy(), color=style.COLOURS[1], linewidth=1.2)
    ax.scatter(middle, result["share"].to_numpy(), s=14, color=style.COLOURS[1], zorder=3)
    if result.height:
        mean = float(np.mean(result["share"].to_numpy()))
        style.reference(ax, mean, f"mean\n{100 * mean:.0f} %")
    ax.set_ylim(0, 1.12)
    ax.set_yticks([0, 0.5, 1], ["0", "50 %", "100 %"])
    ax.set_ylabel("Share of flows hit")
