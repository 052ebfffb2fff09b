"""Figures 5.21 and 5.22: the congestion window of the one flow."""

from collections.abc import Mapping

from matplotlib.figure import Figure

from ackclock.dataset import Dataset
from ackclock.plots import style
from ackclock.reproduce import figures

#: Some epochs after the warm-up, and the windows between a loss and the next.
SHOWN_S, SHOWN_SEGMENTS = (100, 150), (60, 95)

CONTROLS = {"cubic": "CUBIC", "lincubic": "LinCubic", "accucubic": "AccuCubic"}


@style.styled
def draw(data: Mapping[str, Dataset]) -> Figure:
    """A row for each control, a column for each setting of fast convergence."""
    fig = style.figure(6.0)
    axes = fig.subplots(len(CONTROLS), 2, sharex=True, sharey=True)
    for row, (control, name) in enumerate(CONTROLS.items()):
        for column, fc in enumerate(("FC on", "FC off")):
            label = f"{name}, {fc}: window (segments)"
            figures.total_window(axes[row, column], data[f"{control} {fc}"], label, SHOWN_SEGMENTS, named=column == 1)
            axes[row, column].set_xlim(SHOWN_S)
            if row < len(CONTROLS) - 1:
                axes[row, column].set_xlabel("")
    return fig
