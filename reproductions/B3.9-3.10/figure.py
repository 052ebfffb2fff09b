"""Figures 3.9 and 3.10: mean window and queue over time, and the distributions of windows."""

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ackclock.dataset import Dataset
from ackclock.figures.plots import style
from ackclock.reproductions.measures import mean_windows

#: The drawn part of a series.
LAST_S = 60.0


@style.styled
def draw(model: Mapping[str, Dataset], packet: Mapping[str, Dataset], *_others: object) -> Figure:
    """Windows and queue of all cases over time, then the distributions."""
    fig = style.figure(5.2)
    over_time, below = fig.subplots(2, 2).flat[:2], fig.axes[2:]
    curves = {**{f"mean field, {case}": data for case, data in model.items()}, "simulator": packet["full scale"]}
    for number, (name, data) in enumerate(curves.items()):
        view = style.first_run(data)
        look = {"color": style.COLOURS[number], "label": name, "linewidth": 0.9}
        windows, queue = mean_windows(view), view.queue_samples
        for ax, times_s, values in (
            (over_time[0], windows["time_s"].to_numpy(), windows["cwnd"].to_numpy()),
            (over_time[1], queue["time_s"].to_numpy(), queue["backlog_p"].to_numpy() / 10),
        ):
            late = times_s >= view.duration_s - LAST_S
            ax.plot(times_s[late] - view.duration_s + LAST_S, values[late], **look)
        every = np.sort(view.measured_samples["cwnd"].drop_nulls().to_numpy())
        below[0].plot(every, np.linspace(0, 1, every.size), **look)
        queued = np.sort(queue["backlog_p"].to_numpy()) / 10
        below[1].plot(queued, np.linspace(0, 1, queued.size), **look)
    _named(over_time[0], "mean window (segments)", "time (s)")
    _named(over_time[1], "queue of a flow (packets)", "time (s)")
    _named(below[0], "share of windows below", "window (segments)")
    _named(below[1], "share of time below", "queue of a flow (packets)")
    over_time[0].set_ylim(bottom=3000)
    fig.legend(*below[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return fig


def _named(ax: Axes, title: str, label: str) -> None:
    ax.set_ylim(bottom=0)
    ax.set_title(title, fontsize=8)
    ax.set_xlabel(label)
