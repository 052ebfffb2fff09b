"""Figure 7-5 from captures: the response time by size, for four disciplines; hollow: by the runs' own tables."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from ackclock.dataset import Dataset
from ackclock.figures.plots import style
from ackclock.metrics import runs
from ackclock.reproductions.transfers import captured_completion_of, completion_of

QUEUES = ("pfifo", "bfifo", "sfq", "spa")

#: Each point is the mean of a range of sizes, in segments; the ranges double.
BOUNDS = [2**power for power in range(11)]


@style.styled
def draw(packet: Mapping[str, Dataset], captured: Mapping[str, Dataset]) -> Figure:
    """Means over the seeds."""
    fig = style.figure(3.4)
    ax = fig.subplots()
    for number, queue in enumerate(QUEUES):
        look = {"color": style.COLOURS[number], "marker": "o", "ms": 4, "linewidth": 1.1}
        told, own = ([_mean(of[queue], least, measure) for least in BOUNDS]
                     for of, measure in ((captured, captured_completion_of), (packet, completion_of)))  # fmt: skip
        ax.plot(BOUNDS, told, label=queue, **look)
        ax.plot(BOUNDS, own, **(look | {"ls": "none", "ms": 8, "mfc": "none"}))
    ax.plot([], [], color=style.INK, ls="none", marker="o", ms=8, mfc="none", label="by the run")
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    ax.set_xlabel("size (segments), from each tick to the next")
    ax.set_title("response time told from captures (s)")
    fig.legend(loc="outside right upper")
    return fig


def _mean(data: Dataset, least: int, measure: type) -> float:
    of_size = measure(least=least, most=2 * least - 1)
    found = [value for view in runs(data) if (value := of_size(view)) is not None]
    return float(np.mean(found)) if found else float("nan")
