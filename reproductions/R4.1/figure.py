"""Figure 4-1: both queues and what both flows have in them, in seconds at their links' rates."""

from collections.abc import Mapping

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from ackclock.dataset import Dataset
from ackclock.metrics import pendulum
from ackclock.plots import style

#: The stretch that is shown, in seconds: what figure 4-1 names lies between 111 and 151 s.
SHOWN_S = (100.0, 160.0)


@style.styled
def draw(data: Mapping[str, Dataset]) -> Figure:
    """The queueing delays of the first run, with its tilts without loss."""
    view = style.first_run(next(iter(data.values())))
    times_s, delays_s = pendulum.queueing_delays_s(view)
    shown = slice(*np.searchsorted(times_s, SHOWN_S))
    fig = style.figure(2.6)
    ax = fig.subplots()
    for side, name in enumerate((pendulum.DOWN, pendulum.UP)):
        label = f"{name} queue"
        ax.plot(times_s[shown], delays_s[shown, side], color=style.COLOURS[side], linewidth=1.0, label=label)
    for start_s, end_s in pendulum.tilts(view).filter(pl.col("loss").not_())["start_s", "end_s"].iter_rows():
        if SHOWN_S[0] <= start_s and end_s <= SHOWN_S[1]:
            ax.axvspan(start_s, end_s, color="#E5E5E5", zorder=0)
    ax.set_xlim(SHOWN_S)
    ax.set_ylim(bottom=0)
    ax.set_xlabel("time (s)")
    ax.set_title("backlog / rate (s); grey: tilts without loss")
    fig.legend(loc="outside lower center", ncols=2)
    return fig
