"""Figures 6.25 to 6.27: the total window behind each AQM."""

from collections.abc import Mapping
from itertools import product

from matplotlib.figure import Figure

from ackclock.dataset import Dataset
from ackclock.figures.plots import style
from ackclock.gallery import figures

CONTROLS = {"lincubic": "LinCubic", "accucubic": "AccuCubic"}
AQMS = {"codel": "CoDel", "pie": "PIE", "ared": "ARED"}

#: Windows that are shown, in segments: slow start goes higher.
SHOWN = (0.0, 6500.0)


@style.styled
def draw(packet: Mapping[str, Dataset], linux: Mapping[str, Dataset]) -> Figure:
    """The first run of each, simulated and in the kernel."""
    drawn = {engine: data for engine, data in (("packet", packet), ("linux", linux)) if data}
    fig = style.figure(2.0 * len(AQMS) * len(drawn))
    axes = fig.subplots(len(AQMS) * len(drawn), len(CONTROLS), sharey=True)
    for row, ((engine, data), (aqm, queue)) in zip(axes, product(drawn.items(), AQMS.items()), strict=True):
        for ax, (control, name) in zip(row, CONTROLS.items(), strict=True):
            figures.total_window(ax, data[f"{control} {aqm}"], f"{name}, {queue}, {engine}", SHOWN)
    fig.supylabel("Sum of the windows (segments)", fontsize="small")
    return fig
