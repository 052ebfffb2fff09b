"""Distribution functions of delays, windows, shares and completion times in the measured part."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ackclock.dataset import Dataset
from ackclock.errors import InputError
from ackclock.figures import curves, numbers
from ackclock.figures.plots import overlay, style
from ackclock.figures.plots.overlay import Other, Over
from ackclock.metrics.distributions import empirical
from ackclock.metrics.protocols import Recorded
from ackclock.metrics.view import Array, runs

#: Panels: quantity, unit, the axis's label. Completion times only where a transfer was finished; of captures
#: nothing that they do not know.
PANELS = (
    ("queue_delay_s", "s", "Sojourn time ({})"),
    ("rtt_s", "s", "Smoothed RTT ({})"),
    ("goodput_bps", "bit/s", "Goodput of a flow ({})"),
    ("cwnd", "segments", "cwnd ({})"),
    ("fct_s", "s", "Completion time ({})"),
)

#: Panels that are there even if they stay empty.
ALWAYS = ("queue_delay_s", "rtt_s", "goodput_bps", "cwnd")

#: Ascending values, and the share at or below each.
Distribution: TypeAlias = tuple[Array, Array]


@style.public
def cdf(data: Dataset, over: Over = None) -> Figure:
    """Draw the distribution functions of delays, windows, flows' goodputs and completion times, one line a run.

    `over`: dashed, those of other results, all their runs together.
    """
    own, laid = _distributions(data), overlay.others(data, over)
    theirs = [_distributions(other.view.data) for other in laid]
    if not any(own.values()):
        raise InputError("the result has no samples: there are no distributions to draw")
    always = () if "capture" in data.manifest else ALWAYS
    panels = [panel for panel in PANELS if panel[0] in always or own[panel[0]]]
    columns = style.columns(2 if len(panels) <= 4 else 3)
    rows = max(2, math.ceil(len(panels) / columns))
    fig = style.figure(2.4 * rows)
    grid = fig.subplots(rows, columns, sharey=True, squeeze=False)
    for ax, (quantity, unit, label) in zip(grid.flat, panels, strict=False):
        _panel(ax, own[quantity], (unit, label), [(o, valid[quantity]) for o, valid in zip(laid, theirs, strict=True)])
    for ax in list(grid.flat)[len(panels) :]:
        ax.set_visible(False)
    for ax in grid[:, 0]:
        ax.set_ylabel("Share at or below")
    grid[0, 0].set_ylim(0, 1.02)
    grid[0, 0].set_yticks([0, 0.25, 0.5, 0.75, 1])
    handles = [*grid[0, 0].get_legend_handles_labels()[0], *overlay.signs(data, laid, coloured=True)]
    if handles:
        style.legend(fig, handles=handles, ncols=2 + len(laid))
    style.title(fig, "Distributions in the measured part", data, pooled=True)
    return fig


def _distributions(data: Recorded) -> dict[str, list[Distribution]]:
    """Return for each quantity the distributions of the runs that have it; runs are read one after the other."""
    every = [[curves.distribution(view, quantity) for quantity, *_ in PANELS] for view in runs(data)]
    return {quantity: [run[n] for run in every if run[n][0].size] for n, (quantity, *_) in enumerate(PANELS)}


def _panel(
    ax: Axes,
    valid: Sequence[Distribution],
    names: tuple[str, str],
    laid: Sequence[tuple[Other, Sequence[Distribution]]],
) -> None:
    unit, label = names
    largest = max((float(x[-1]) for x, _ in valid), default=1.0)
    factor, name = numbers.scale(largest, unit)
    several = len(valid) > 1
    for number, (x, share) in enumerate(valid):
        text = "each run" if several and number == 0 else None
        colour = "#9BBBD3" if several else style.COLOURS[0]
        _step(ax, x / factor, share, color=colour, linewidth=0.8 if several else 1.2, label=text)
    if several:
        _step(ax, *_pooled(valid, factor), color=style.COLOURS[0], linewidth=1.5, label="all runs together")
    for other, theirs in laid:
        if theirs:
            _step(ax, *_pooled(theirs, factor), color=other.colour, linewidth=1.2, **other.line_style)
    if largest > 4 * min((float(x[0]) for x, _ in valid), default=0.0):
        ax.set_xlim(left=0)
    ax.set_xlabel(label.format(name))


def _pooled(valid: Sequence[Distribution], factor: float) -> tuple[Array, Array]:
    """Pool all runs into one distribution, each with the same weight; it ends at the mean of their ends."""
    weights = np.concatenate([np.diff(share, prepend=0.0) for _, share in valid])
    x, share = empirical(np.concatenate([x for x, _ in valid]) / factor, weights)
    return x, share * float(np.mean([share[-1] for _, share in valid]))


def _step(ax: Axes, x: Array, share: Array, **look: object) -> None:
    rows = np.unique(np.linspace(0, x.size - 1, min(x.size, style.POINTS)).astype(int))
    ax.step(np.append(x[0], x[rows]), np.append(0.0, share[rows]), where="post", **look)  # type: ignore[arg-type]
