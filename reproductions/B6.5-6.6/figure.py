"""Figures 6.5 and 6.6: queueing delay and goodput by target."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from ackclock.dataset import Dataset
from ackclock.figures.plots import style
from ackclock.reproductions.measures import queue_delay_quantile, served_bps

AQMS = {"ared": "ARED", "ared-gentle": "ARED, gentle", "codel": "CoDel", "pie": "PIE"}
TARGETS = ("1 ms", "5 ms", "10 ms", "20 ms", "30 ms")
QUANTILES = tuple(map(queue_delay_quantile, (0.05, 0.25, 0.5, 0.75, 0.95)))


@style.styled
def draw(data: Mapping[str, Dataset], _linux: Mapping[str, Dataset]) -> Figure:
    """The first run of each case: the 5th to 95th percentile, the middle half, the median; goodput."""
    fig = style.figure(4.6)
    delay, goodput = fig.subplots(2, 1, sharex=True)
    for number, (aqm, name) in enumerate(AQMS.items()):
        views = [style.first_run(data[f"{aqm} {at}"]) for at in TARGETS]
        x = np.arange(len(TARGETS)) + (number - 1.5) * 0.18
        low, first, median, third, high = (np.array([1e3 * (of(view) or 0) for view in views]) for of in QUANTILES)
        look = {"color": style.COLOURS[number]}
        delay.vlines(x, low, high, linewidth=1, **look)
        delay.vlines(x, first, third, linewidth=5, **look)
        delay.plot(x, median, "_", color="white", ms=6)
        rates = [(served_bps(view) or 0) / 1e6 for view in views]
        goodput.plot(x, rates, "o", ms=4, label=name, **look)
    delay.set_title("Queueing delay (ms): 5th, 25th, 50th, 75th and 95th percentile of the packets")
    delay.set_ylim(bottom=0)
    goodput.set_title("Total goodput (Mb/s)")
    style.reference(goodput, 9.0, "9")
    goodput.set_xticks(range(len(TARGETS)), TARGETS)
    goodput.set_xlabel("Target")
    fig.legend(*goodput.get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return fig
