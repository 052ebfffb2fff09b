"""Tracking of CUBIC's curve by its window, over the window at the last loss (Belhareth 2014, section 5.5)."""

from __future__ import annotations

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ackclock import theory
from ackclock.dataset import Dataset
from ackclock.errors import InputError
from ackclock.figures.plots import style
from ackclock.metrics.tracking import cubic_epochs


@style.public
def tracking(data: Dataset) -> Figure:
    """Draws each epoch of CUBIC's window over its W_max: time on the plateau, and mean distance from the curve."""
    result = cubic_epochs(data)
    if not result.height:
        raise InputError(
            "the result has nothing of CUBIC's inside to draw; expected a run with [record] cubic_state = true"
        )
    fig = style.figure(4.4)
    above, below = fig.subplots(2, 1, sharex=True)
    _scatter(above, result, "plateau_s", "Time on the plateau (s)")
    _scatter(below, result, "tracking_error", "Distance from the curve\n(segments)")
    c = _c(data)
    if c is not None:
        plateau_s = float(theory.time_after_plateau(1.0, c=c))
        above.set_ylim(top=max(above.get_ylim()[1], 1.1 * plateau_s))
        style.reference(above, plateau_s, "curve")
    below.set_xlabel("W_max (segments)")
    style.title(fig, f"CUBIC's window and its curve: {result.height} epochs", data, pooled=True)
    return fig


def _scatter(ax: Axes, result: pl.DataFrame, column: str, label: str) -> None:
    valid = result.drop_nulls(column)
    ax.scatter(valid["w_max"].to_numpy(), valid[column].to_numpy(), s=9, color=style.COLOURS[0], linewidths=0)
    ax.set_ylim(bottom=0)
    ax.set_ylabel(label)


def _c(data: Dataset) -> float | None:
    """Return C, if all groups have the same."""
    every = {group.congestion.parameters.get("c") for group in data.plan.groups if group.congestion}
    return every.pop() if len(every) == 1 else None
