"""Comparison of engines: a panel for each metric, the mean of each engine with its 95 % interval."""

from __future__ import annotations

import math
from textwrap import wrap

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ackclock.errors import InputError
from ackclock.figures import numbers
from ackclock.figures.plots import style
from ackclock.input.arguments import TEXT, checked, having
from ackclock.metrics import METRICS

#: Panels in a row, and letters in a line of their headings.
COLUMNS, LABEL = 4, 25

#: An axis spans at least this share of its middle: engines that agree shall look so.
MIN_SPAN = 0.02


@checked(name=TEXT, table=having(("group_by", "columns"), "a comparison's table, as Comparison.table is"))
@style.public
def compared(name: str, table: pl.DataFrame) -> Figure:
    """Draw the table of a comparison: `metric`, `engine`, `mean`, `ci95_low`, `ci95_high`, a row for each pair."""
    groups = [(str(metric), rows) for (metric,), rows in table.group_by("metric", maintain_order=True)]
    if not groups:
        raise InputError("the comparison has no metrics to draw")
    columns = style.columns(COLUMNS)
    rows = math.ceil(len(groups) / columns)
    fig = style.figure(0.7 + 1.45 * rows)
    panels = list(fig.subplots(rows, columns, squeeze=False).flat)
    for ax, (metric, result) in zip(panels, groups, strict=False):
        _panel(ax, metric, result)
    for ax in panels[len(groups) :]:
        ax.set_axis_off()
    style.headline(fig, "Metrics by engine: means and 95 % intervals", name)
    return fig


def _panel(ax: Axes, name: str, rows: pl.DataFrame) -> None:
    metric = METRICS[name]
    largest = max((abs(mean) for mean in rows["mean"] if mean is not None), default=0.0)
    factor, unit = numbers.scale(largest, metric.unit)
    for place, row in enumerate(rows.iter_rows(named=True)):
        if row["mean"] is None:
            ax.annotate(
                numbers.NOTHING, (place, 0.5), xycoords=("data", "axes fraction"), ha="center", color=style.QUIET
            )
            continue
        low, high = row["ci95_low"], row["ci95_high"]
        bars = None if low is None else np.array([[row["mean"] - low], [high - row["mean"]]]) / factor
        ax.errorbar(
            [place], [row["mean"] / factor], yerr=bars, fmt="o", markersize=4, capsize=3, **style.line_style(place)
        )
    label = f"{metric.label} ({unit})" if unit else metric.label
    ax.set_title("\n".join(wrap(label, LABEL)), fontsize=6.5)
    ax.set_xticks(range(rows.height), rows["engine"].to_list(), fontsize=6.5)
    ax.set_xlim(-0.5, rows.height - 0.5)
    ax.tick_params(axis="y", labelsize=6.5)
    ax.margins(y=0.25)
    _span(ax)


def _span(ax: Axes) -> None:
    """Widen an axis whose values hardly differ, and write its numbers out."""
    low, high = ax.get_ylim()
    half = max(high - low, MIN_SPAN * abs(high + low) / 2) / 2
    ax.set_ylim((low + high) / 2 - half, (low + high) / 2 + half)
    ax.ticklabel_format(axis="y", style="plain", useOffset=False)
