"""Distribution of a metric over the runs of a sweep: box plots along a key, or distribution functions."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ackclock.figures import metric_distributions, palette
from ackclock.figures.charts import Choice
from ackclock.figures.metric_distributions import Runs, Spread
from ackclock.figures.plots import style


def boxes(sweep: Runs, chosen: Choice) -> Figure:
    """Draw a box for each group at each position: the median and quartiles, whiskers to the extremes."""
    result = metric_distributions.spread(sweep, chosen, along=True)
    fig = style.figure(3.4)
    ax = fig.subplots()
    assert result.across is not None
    every = sorted({group.place for group in result.groups})
    kinds = 1 + max(group.kind for group in result.groups)
    names = result.across.names or [f"{place:g}" for place in every]
    for group in result.groups:
        place = every.index(group.place) + (group.kind - (kinds - 1) / 2) * 0.8 / kinds
        look = {"color": palette.colour(group.kind), "linewidth": 1}
        ax.boxplot([group.values], positions=[place], widths=0.6 / kinds, whis=(0, 100), manage_ticks=False,
                   boxprops=look, whiskerprops=look, capprops=look, medianprops={**look, "linewidth": 1.8})  # fmt: skip
    ax.set_xticks(range(len(every)), names)
    ax.set_xlim(-0.5, len(every) - 0.5)
    ax.set_xlabel(result.across.title)
    ax.set_ylabel(_title(result))
    _finish(fig, result, sweep, "medians, quartiles and extremes")
    return fig


def steps(sweep: Runs, chosen: Choice) -> Figure:
    """Draw the share of the values at or below each, a line for each group."""
    result = metric_distributions.spread(sweep, chosen, along=False)
    fig = style.figure(3.4)
    ax = fig.subplots()
    for group in result.groups:
        _step(ax, group.values, group.kind)
    ax.set_ylim(0, 1.02)
    ax.set_xlabel(_title(result))
    ax.set_ylabel("Share at or below")
    _finish(fig, result, sweep, "distribution functions")
    return fig


def _step(ax: Axes, values: list[float], kind: int) -> None:
    shares = np.arange(len(values) + 1) / len(values)
    ax.step([values[0], *values], shares, where="post", **style.line_style(kind))


def _title(result: Spread) -> str:
    return f"{result.title} ({result.unit})" if result.unit else result.title


def _finish(fig: Figure, result: Spread, sweep: Runs, how: str) -> None:
    names = dict.fromkeys((group.kind, group.name) for group in result.groups)
    if len(names) > 1:
        handles = [Line2D([], [], label=name, **style.line_style(kind)) for kind, name in names]
        style.legend(fig, handles=handles, ncols=5)
    style.headline(fig, sweep.name, f"{sweep.engine} engine, {sweep.table.height:,} runs: {how}")
