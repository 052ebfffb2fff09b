"""Goodput of those that stay and those that join, over time, for each control."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from ackclock.dataset import Dataset
from ackclock.figures.plots import style

JOIN_S = 60.0


@style.styled
def draw(data: Mapping[str, Dataset]) -> Figure:
    """The first run of each control."""
    fig = style.figure(5.4)
    axes = fig.subplots((len(data) + 1) // 2, 2, sharex=True, sharey=True)
    for ax, (case, each) in zip(axes.flat, data.items(), strict=False):
        view = style.first_run(each)
        rates_mbps, staying = view.grid.rates_bps(1.0) / 1e6, view.starts_s < JOIN_S
        for number, (chosen, name) in enumerate(((staying, "staying"), (~staying, "joining"))):
            mean = np.asarray(rates_mbps[:, chosen].mean(axis=1))
            style.curve(ax, view.grid.times_s, mean, label=name, **style.line_style(number))
        ax.set_title(f"{case}: mean goodput of a source (Mb/s)", fontsize=8)
        ax.set_ylim(bottom=0)
    for ax in axes[-1]:
        ax.set_xlabel("time (s)")
    fig.legend(*axes.flat[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return fig
