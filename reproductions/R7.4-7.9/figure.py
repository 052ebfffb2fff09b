"""Figure 7-4: what each discipline gives under traffic #1."""

from collections.abc import Callable, Mapping

import numpy as np
from matplotlib.figure import Figure

from ackclock.dataset import Dataset
from ackclock.metrics import METRICS, RunView, runs
from ackclock.plots import style
from ackclock.reproduce.transfers import completion_of, line_rtt, retransmission_time

#: The panels, from left to right.
PANELS: Mapping[str, Callable[[RunView], object]] = {
    "response of\n2 segments (s)": completion_of(least=2, most=2),
    "RTT (s)": line_rtt,
    "SYN sent again\n(share)": METRICS["syn_retransmission_probability"].function,
    "retransmission\ntime (s)": retransmission_time,
}


@style.styled
def draw(data: Mapping[str, Dataset]) -> Figure:
    """Means over the seeds."""
    queues = {case.split()[1]: found for case, found in data.items() if case.startswith("#1 ")}
    places = -np.arange(len(queues))
    fig = style.figure(3.6)
    axes = fig.subplots(1, len(PANELS), sharey=True)
    for ax, (title, measure), colour in zip(axes, PANELS.items(), style.COLOURS, strict=False):
        ax.barh(places, [_mean(measure, found) for found in queues.values()], 0.7, color=colour, linewidth=0)
        ax.set_title(title)
        ax.grid(visible=False, axis="y")
    axes[0].set_yticks(places, list(queues))
    return fig


def _mean(measure: Callable[[RunView], object], data: Dataset) -> float:
    found = [value for view in runs(data) if isinstance(value := measure(view), float)]
    return float(np.mean(found)) if found else 0.0
