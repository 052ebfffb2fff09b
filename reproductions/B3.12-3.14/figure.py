"""Figures 3.12 to 3.14: distributions of windows, of their coefficient of variation, and of the utilisation."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from ackclock.dataset import Dataset
from ackclock.figures.plots import style
from ackclock.reproductions.measures import mean_windows


@style.styled
def draw(data: Mapping[str, Dataset]) -> Figure:
    """Shares of flows or time below a value, for each network and control."""
    fig = style.figure(2.8)
    axes = fig.subplots(1, 3)
    for number, (case, each) in enumerate(data.items()):
        view = style.first_run(each)
        found = mean_windows(view)
        windows = view.measured_samples["cwnd"].to_numpy()
        values = (
            windows / windows.mean(),
            (found["sd"] / found["cwnd"]).to_numpy(),
            view.queue_samples["utilisation"].to_numpy(),
        )
        for ax, every in zip(axes, values, strict=True):
            look = {"color": style.COLOURS[number], "label": case, "linewidth": 0.9}
            ax.plot(np.sort(every), np.linspace(0, 1, every.size), **look)
    for ax, label in zip(axes, ("window / mean window", "CoV of the windows", "utilisation"), strict=True):
        ax.set_xlabel(label)
    axes[0].set_title("share of windows below", fontsize=8)
    axes[1].set_title("share of time below", fontsize=8)
    axes[2].set_title("share of time below", fontsize=8)
    axes[0].legend(fontsize=6, loc="lower right")
    return fig
