"""Distributions: sojourn time, round-trip time, goodput."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ackclock import curves, shown
from ackclock.dataset import Dataset
from ackclock.metrics.view import Array, RunView, runs
from ackclock.plots import style

Distribution = Callable[[RunView], tuple[Array, Array]]


@style.styled
def cdf(data: Dataset) -> Figure:
    """Draws the distribution functions of sojourn times, smoothed RTTs and flows' goodputs, one line a run."""
    views = list(runs(data))
    fig = style.figure(2.7)
    delay, rtt, goodput = fig.subplots(1, 3, sharey=True)
    _panel(delay, views, curves.sojourn_cdf, "s", "Sojourn time ({})")
    _panel(rtt, views, curves.rtt_cdf, "s", "Smoothed RTT ({})")
    _panel(goodput, views, curves.goodput_cdf, "bit/s", "Goodput of a flow ({})")
    delay.set_ylabel("Share at or below")
    delay.set_ylim(0, 1.02)
    delay.set_yticks([0, 0.25, 0.5, 0.75, 1])
    if len(views) > 1:
        fig.legend(*delay.get_legend_handles_labels(), loc="outside lower center", ncols=2)
    style.title(fig, "Distributions in the measured part", data, pooled=True)
    return fig


def _panel(ax: Axes, views: list[RunView], distribution: Distribution, unit: str, label: str) -> None:
    known = [found for found in map(distribution, views) if found[0].size]
    largest = max((float(x[-1]) for x, _ in known), default=1.0)
    factor, name = shown.scale(largest, unit)
    several = len(known) > 1
    for number, (x, share) in enumerate(known):
        text = "each run" if several and number == 0 else None
        colour = "#9BBBD3" if several else style.COLOURS[0]
        _step(ax, x / factor, share, color=colour, linewidth=0.8 if several else 1.2, label=text)
    if several:
        _step(ax, *_pooled(known, factor), color=style.COLOURS[0], linewidth=1.5, label="all runs together")
    if largest > 4 * min((float(x[0]) for x, _ in known), default=0.0):
        ax.set_xlim(left=0)
    ax.set_xlabel(label.format(name))


def _pooled(known: list[tuple[Array, Array]], factor: float) -> tuple[Array, Array]:
    """All runs as one distribution, each run with the same weight."""
    weights = np.concatenate([np.diff(share, prepend=0.0) for _, share in known])
    return curves.cdf(np.concatenate([x for x, _ in known]) / factor, weights)


def _step(ax: Axes, x: Array, share: Array, **look: object) -> None:
    rows = np.unique(np.linspace(0, x.size - 1, min(x.size, style.POINTS)).astype(int))
    ax.step(np.append(x[0], x[rows]), np.append(0.0, share[rows]), where="post", **look)  # type: ignore[arg-type]
