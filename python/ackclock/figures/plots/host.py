"""Figures of a host: the gaps of its clock and the speeds of its disk."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ackclock.dataset import Dataset
from ackclock.dataset.tables import CLOCK_GAPS
from ackclock.errors import InputError
from ackclock.figures import numbers, palette
from ackclock.figures.plots import style

#: Dashes of the disk's figure: with the page cache, and without.
DASHES = {True: "--", False: "-"}


@style.public
def disk(data: Dataset) -> Figure:
    """Draw the distribution of the disk's speeds over the repeats, a line for each block size."""
    rows = data.frame("disk").with_columns(speed=pl.col("bytes") / pl.col("duration_s"))
    if not rows.height:
        raise InputError("the result holds no speeds of a disk to draw; expected what ackclock doctor host disk wrote")
    panels = rows.select("target", "operation").unique().sort("target", "operation").rows()
    fig = style.figure(3.2)
    axes = fig.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for ax, (target, operation) in zip(axes, panels, strict=True):
        _panel(ax, rows.filter((pl.col("target") == target) & (pl.col("operation") == operation)))
        ax.set_xlabel(f"{operation.capitalize()}{' of the device' if target == 'device' else ''}")
    axes[0].set_ylabel("Share of the repeats")
    style.legend(fig, *axes[0].get_legend_handles_labels(), ncols=6)
    style.headline(fig, "Speed of the disk", "solid: to and from the disk; dashed: in the system's cache")
    return fig


def _panel(ax: Axes, cells: pl.DataFrame) -> None:
    for number, block in enumerate(sorted(cells["block_bytes"].unique())):
        for cached, dashes in DASHES.items():
            of = cells.filter((pl.col("block_bytes") == block) & (pl.col("cached") == cached))
            label = None if cached else numbers.block(block)
            _distribution(ax, of["speed"], linestyle=dashes, color=palette.colour(number), label=label)
    ax.set_xscale("log")
    style.log_axis(ax.xaxis, _speed)
    ax.tick_params("x", labelrotation=30)


def _distribution(ax: Axes, values: pl.Series, **look: Any) -> None:
    ordered = np.sort(values.to_numpy())
    share = np.arange(ordered.size + 1) / ordered.size
    ax.step([ordered[0], *ordered], share, where="post", **look)


def _speed(bytes_s: float) -> str:
    return f"{numbers.value(bytes_s, 'bytes', 1)}/s"


@style.public
def gaps(data: Dataset) -> Figure:
    """Draw the gaps of a host's clock over time: their length and kind."""
    rows = data.frame("clock_gaps")
    if not rows.height:
        raise InputError("the result holds no gaps to draw; expected what ackclock doctor host stalls wrote")
    fig = style.figure(3.2)
    ax = fig.subplots()
    for number, kind in enumerate(CLOCK_GAPS):
        _points(ax, rows.filter((pl.col("class") == kind) & (pl.col("duration_s") > 0)), kind, palette.colour(number))
    ax.set_yscale("log")
    ax.set_ylim(1.0, max(20.0, 2e3 * float(rows["duration_s"].to_numpy().max())))
    style.log_axis(ax.yaxis)
    ax.set_xlim(left=0)
    ax.set_xlabel("Time (s)")
    ax.set_ylabel("Length of the gap (ms)")
    style.legend(fig, ncols=5)
    style.headline(fig, "Gaps in the clock of the host", "each of them by its beginning, its length and its kind")
    return fig


def _points(ax: Axes, rows: pl.DataFrame, kind: str, colour: str) -> None:
    if rows.height:
        label = f"{kind} ({rows.height:,})"
        ax.plot(rows["time_s"], 1e3 * rows["duration_s"], ".", color=colour, label=label)
