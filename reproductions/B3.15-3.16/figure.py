"""Figures 3.15 and 3.16: the distribution of the queue's occupancy, by buffer."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from ackclock.dataset import Dataset
from ackclock.figures.plots import style

CONTROLS = ("CUBIC", "New Reno")


@style.styled
def draw(model: Mapping[str, Dataset], packet: Mapping[str, Dataset], _ns2: Mapping[str, Dataset]) -> Figure:
    """A panel for each control; the model is solid, the packet engine dashed."""
    fig = style.figure(3.2)
    for ax, control in zip(fig.subplots(1, 2, sharey=True), CONTROLS, strict=True):
        buffers = [case.removeprefix(f"{control} ") for case in model if case.startswith(control)]
        for number, buffer in enumerate(buffers):
            for data, line in ((model, "-"), (packet, "--")):
                view = style.first_run(data[f"{control} {buffer}"])
                limit_p = view.plan.links[0].queue.parameters["limit_packets"]
                filled = np.sort(view.queue_samples["backlog_p"].to_numpy()) / limit_p
                label = f"{buffer} of the BDP" if data is model else None
                ax.plot(filled, np.linspace(0, 1, filled.size), line, color=style.COLOURS[number], label=label, lw=0.9)
        ax.set_title(f"{control}: share of time below (dashed: packets)", fontsize=8)
        ax.set_xlabel("queue / buffer")
    ax.legend(fontsize=6, loc="lower right")
    return fig
