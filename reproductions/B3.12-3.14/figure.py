"""Figures 3.12 to 3.14: distributions of windows, of their coefficient of variation, and of the utilisation."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ackclock.dataset import Dataset
from ackclock.figures.plots import style
from ackclock.reproductions.measures import mean_windows


@style.styled
def draw(model: Mapping[str, Dataset], packets: Mapping[str, Dataset]) -> Figure:
    """Shares of flows or time below a value, for each network and CCA: of the model, and below it of packets."""
    drawn = {name: data for name, data in (("model", model), ("packets", packets)) if data}
    fig = style.figure(2.6 * len(drawn))
    every = fig.subplots(len(drawn), 3, squeeze=False)
    for axes, (name, data) in zip(every, drawn.items(), strict=True):
        _distributions(axes, data, name)
    every[0, 0].legend(fontsize=6, loc="lower right")
    return fig


def _distributions(axes: Sequence[Axes], data: Mapping[str, Dataset], name: str) -> None:
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
    for ax, what in zip(axes, ("windows", "time", "time"), strict=True):
        ax.set_title(f"{name}: share of {what} below", fontsize=8)
