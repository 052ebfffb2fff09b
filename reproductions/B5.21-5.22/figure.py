"""Figures 5.21 and 5.22: the congestion window of the one flow, in the simulation, in the kernel and in ns-2."""

from collections.abc import Mapping

from matplotlib.figure import Figure

from ackclock.dataset import Dataset
from ackclock.figures.plots import style
from ackclock.gallery import figures

#: Some epochs, the windows between a loss and the next, and what path and buffer hold.
SPAN_S, SHOWN_SEGMENTS, CAPACITY_P = 60, (60, 100), 82

CONTROLS = {"cubic": "CUBIC", "lincubic": "LinCubic", "accucubic": "AccuCubic"}


@style.styled
def draw(packet: Mapping[str, Dataset], linux: Mapping[str, Dataset], ns2: Mapping[str, Dataset]) -> Figure:
    """A row for each control, a column for each setting of fast convergence."""
    fig = style.figure(6.4)
    axes = fig.subplots(len(CONTROLS), 2, sharex=True, sharey=True)
    for row, (control, name) in enumerate(CONTROLS.items()):
        for column, fc in enumerate(("FC on", "FC off")):
            ax, case = axes[row, column], f"{control} {fc}"
            engines = {"packet": packet, "linux": linux, "ns2": ns2}
            found = {engine: data[case] for engine, data in engines.items() if case in data}
            figures.overlay_windows(ax, found, SPAN_S, f"{name}, {fc}: window (segments)")
            ax.set_ylim(SHOWN_SEGMENTS)
            style.reference(ax, CAPACITY_P, "BDP + buffer" if column == 1 else "")
            if row < len(CONTROLS) - 1:
                ax.set_xlabel("")
    fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return fig
