"""Figures 6.25 to 6.27: the total window behind each AQM."""

from collections.abc import Mapping

from matplotlib.figure import Figure

from ackclock.dataset import Dataset
from ackclock.figures.plots import style
from ackclock.gallery import figures

CONTROLS = {"lincubic": "LinCubic", "accucubic": "AccuCubic"}
AQMS = {"codel": "CoDel", "pie": "PIE", "ared": "ARED"}

#: Windows that are shown, in segments: slow start goes higher.
SHOWN = (0.0, 6500.0)


@style.styled
def draw(packet: Mapping[str, Dataset]) -> Figure:
    """The first run of each."""
    fig = style.figure(6.0)
    axes = fig.subplots(len(AQMS), len(CONTROLS), sharey=True)
    for row, (aqm, queue) in zip(axes, AQMS.items(), strict=True):
        for ax, (control, name) in zip(row, CONTROLS.items(), strict=True):
            title = f"{name}, {queue}: sum of the windows (segments)"
            figures.total_window(ax, packet[f"{control} {aqm}"], title, SHOWN)
    return fig
