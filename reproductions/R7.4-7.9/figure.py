"""Figure 7-4: what each discipline gives under traffic #1, in the simulation and in the kernel."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from ackclock.dataset import Dataset
from ackclock.figures.plots import style
from ackclock.metrics import METRICS, RunView, runs
from ackclock.reproductions.transfers import completion_of, line_rtt, retransmission_time

#: The panels, from left to right.
PANELS: Mapping[str, Callable[[RunView], object]] = {
    "response of\n2 segments (s)": completion_of(least=2, most=2),
    "RTT (s)": line_rtt,
    "SYN sent again\n(share)": METRICS["syn_retransmission_probability"].function,
    "retransmission\ntime (s)": retransmission_time,
}


#: Style of the kernel's values.
KERNEL: Mapping[str, Any] = {"ms": 4, "mfc": "white", "mec": style.INK}


@style.styled
def draw(packet: Mapping[str, Dataset], linux: Mapping[str, Dataset]) -> Figure:
    """Means over the seeds: a bar for the simulation, a diamond for the kernel."""
    queues = [case.split()[1] for case in packet if case.startswith("#1 ")]
    fig = style.figure(3.9)
    axes = fig.subplots(1, len(PANELS), sharey=True)
    for ax, (title, measure), colour in zip(axes, PANELS.items(), style.COLOURS, strict=False):
        for place, queue in enumerate(queues):
            ax.barh(-place, _mean(measure, packet[f"#1 {queue}"]) or 0.0, 0.7, color=colour, linewidth=0)
            found = _mean(measure, linux[f"#1 {queue}"]) if f"#1 {queue}" in linux else None
            if found is not None:
                ax.plot(found, -place, "D", **KERNEL)
        ax.use_sticky_edges = False
        ax.margins(x=0.05)
        ax.set_title(title)
        ax.grid(visible=False, axis="y")
    axes[0].set_yticks([-place for place in range(len(queues))], queues)
    signs = [
        Patch(color=style.QUIET, label="packet"),
        Line2D([], [], marker="D", linestyle="", label="linux", **KERNEL),
    ]
    fig.legend(handles=signs, loc="outside lower center", ncols=2)
    return fig


def _mean(measure: Callable[[RunView], object], data: Dataset) -> float | None:
    found = [value for view in runs(data) if isinstance(value := measure(view), float)]
    return float(np.mean(found)) if found else None
