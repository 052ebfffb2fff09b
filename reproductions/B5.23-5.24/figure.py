"""Figures 5.23 and 5.24: synchronised flows and lost packets in each congestion epoch."""

from collections.abc import Mapping

from matplotlib.figure import Figure

from ackclock.dataset import Dataset
from ackclock.figures.plots import style
from ackclock.gallery import figures

CONTROLS = {"cubic": "CUBIC", "lincubic": "LinCubic", "accucubic": "AccuCubic"}


@style.styled
def draw(packet: Mapping[str, Dataset], linux: Mapping[str, Dataset], ns2: Mapping[str, Dataset]) -> Figure:
    """A row for each control and engine, a column for each setting of fast convergence."""
    runs = {"packet": packet, "linux": linux, "ns2": ns2}
    rows = [
        (engine, *each) for engine, data in runs.items() for each in CONTROLS.items() if f"{each[0]} FC off" in data
    ]
    fig = style.figure(0.6 + 1.7 * len(rows))
    axes = fig.subplots(max(len(rows), 1), 2, sharey="row", squeeze=False)
    for pair, (engine, control, name) in zip(axes, rows, strict=False):
        for ax, fc in zip(pair, ("FC on", "FC off"), strict=True):
            if data := runs[engine].get(f"{control} {fc}"):
                figures.epoch_bars(ax, data, f"{name}, {fc}, {engine}: each epoch")
            ax.set_xlabel("")
    for ax in axes[-1]:
        ax.set_xlabel("Time (s)")
    fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return fig
