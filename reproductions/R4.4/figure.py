"""Figure 4-4: the throughputs' ratio over the queues' ratio, a line for each pair of rates."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from ackclock.dataset import Dataset
from ackclock.metrics import runs
from ackclock.plots import style


@style.styled
def draw(data: Mapping[str, Dataset]) -> Figure:
    """Means over the seeds."""
    lines: dict[str, list[tuple[float, float]]] = {}
    for case, of_case in data.items():
        lines.setdefault(case.split()[0], []).append(_point(of_case))
    fig = style.figure(3.2)
    ax = fig.subplots()
    for number, (line, points) in enumerate(lines.items()):
        label = f"{line.replace(':', '/')} Mb/s"
        ax.plot(*zip(*points, strict=True), "o-", color=style.COLOURS[number], label=label, ms=4)
    ax.set_xlim(left=0)
    ax.set_ylim(bottom=0)
    ax.set_xlabel("down queue / up queue")
    ax.set_title("throughput of the download / of the upload")
    fig.legend(loc="outside lower center", ncols=4)
    return fig


def _point(data: Dataset) -> tuple[float, float]:
    """The ratio of the queues and the mean ratio of the throughputs."""
    down, up = (link["queue"]["parameters"]["limit_bytes"] for link in data.manifest["plan"]["links"])
    ratios = [view.flows["measured_bytes"][0] / view.flows["measured_bytes"][1] for view in runs(data)]
    return down / up, float(np.mean(ratios))
