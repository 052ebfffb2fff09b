"""Figures 3.5 to 3.8: mean window and queue over time, and the distributions of windows."""

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ackclock.dataset import Dataset
from ackclock.figures.plots import style
from ackclock.metrics import RunView
from ackclock.metrics.oscillation import cwnd_period_s
from ackclock.reproductions.measures import mean_windows

#: The drawn part of a series, in periods of the model's mean window.
PERIODS = 8

NAMES = ("mean field", "simulator, 10 flows")


@style.styled
def draw(model: Mapping[str, Dataset], packet: Mapping[str, Dataset]) -> Figure:
    """A row for each network: windows, queue, distribution."""
    fig = style.figure(2.6 * len(model))
    for axes, case in zip(fig.subplots(len(model), 3, squeeze=False), model, strict=True):
        views = [style.first_run(data[case]) for data in (model, packet)]
        _row(axes, views, case)
    return fig


def _row(axes: np.ndarray, views: list[RunView], case: str) -> None:
    span_s = _span_s(views[0])
    for number, view in enumerate(views):
        look = {"color": style.COLOURS[number], "label": NAMES[number], "linewidth": 0.9}
        windows, queue = mean_windows(view), view.queue_samples
        for ax, times_s, values in (
            (axes[0], windows["time_s"].to_numpy(), windows["cwnd"].to_numpy()),
            (axes[1], queue["time_s"].to_numpy(), queue["backlog_p"].to_numpy() / 10),
        ):
            late = times_s >= view.duration_s - span_s
            ax.plot(times_s[late], values[late], **look)
        every = np.sort(view.measured_samples["cwnd"].drop_nulls().to_numpy())
        axes[2].plot(every, np.linspace(0, 1, every.size), **look)
    _named(axes[0], f"{case}: mean window", "time (s)")
    _named(axes[1], "queue of a flow (packets)", "time (s)")
    _named(axes[2], "share of windows below", "window (segments)")
    axes[0].legend(fontsize=6, loc="lower left")


def _named(ax: Axes, title: str, label: str) -> None:
    ax.set_ylim(bottom=0)
    ax.set_title(title, fontsize=8)
    ax.set_xlabel(label)


def _span_s(view: RunView) -> float:
    period_s = cwnd_period_s(view)
    return view.measured_s if period_s is None else min(PERIODS * period_s, view.measured_s)
