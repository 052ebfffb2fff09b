"""Figures 5.23 and 5.24: synchronised flows and lost packets in each congestion epoch."""

from collections.abc import Mapping

from matplotlib.figure import Figure

from ackclock.dataset import Dataset
from ackclock.plots import style
from ackclock.reproduce import figures

CONTROLS = {"cubic": "CUBIC", "lincubic": "LinCubic", "accucubic": "AccuCubic"}


@style.styled
def draw(data: Mapping[str, Dataset]) -> Figure:
    """A row for each control, a column for each setting of fast convergence."""
    fig = style.figure(6.0)
    axes = fig.subplots(len(CONTROLS), 2, sharex=True)
    for row, (control, name) in enumerate(CONTROLS.items()):
        for column, fc in enumerate(("FC on", "FC off")):
            figures.epoch_bars(axes[row, column], data[f"{control} {fc}"], f"{name}, {fc}: in each congestion epoch")
            if row < len(CONTROLS) - 1:
                axes[row, column].set_xlabel("")
    fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return fig
