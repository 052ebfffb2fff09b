"""Figure 7-10: the response time by size, for the disciplines that the figure shows."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from ackclock.dataset import Dataset
from ackclock.figures.plots import style
from ackclock.metrics import runs
from ackclock.reproductions.transfers import completion_of

QUEUES = ("pfifo", "bfifo", "pie", "codel", "redfavor", "sfq", "fq_codel", "spa")

#: Each point is the mean of a range of sizes, in segments; the ranges double.
BOUNDS = [2**power for power in range(14)]


@style.styled
def draw(data: Mapping[str, Dataset], _linux: Mapping[str, Dataset]) -> Figure:
    """Means over the seeds."""
    fig = style.figure(3.4)
    ax = fig.subplots()
    for number, queue in enumerate(QUEUES):
        line = "-" if number < len(style.COLOURS) else "--"
        colour = style.COLOURS[number % len(style.COLOURS)]
        ax.plot(BOUNDS, [_mean(data[queue], bound) for bound in BOUNDS], line, color=colour, label=queue, linewidth=1.1)
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    ax.set_xlabel("size (segments), from each tick to the next")
    ax.set_title("response time (s)")
    fig.legend(loc="outside right upper")
    return fig


def _mean(data: Dataset, least: int) -> float:
    measure = completion_of(least=least, most=2 * least - 1)
    found = [value for view in runs(data) if (value := measure(view)) is not None]
    return float(np.mean(found)) if found else float("nan")
