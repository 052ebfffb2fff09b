"""Figure 4-6: the throughputs' ratio over the queues' ratio, simulated and with four probabilities."""

from collections.abc import Mapping

from matplotlib.figure import Figure

from ackclock.dataset import Dataset
from ackclock.figures.plots import style
from ackclock.reproductions import antiparallel

#: One for each probability, from 0 to 1.
DASHES = ((0, (1, 1)), (0, (3, 1.5)), (0, (5, 1.5)), "-")


@style.styled
def draw(simulated: Mapping[str, Dataset], model: Mapping[str, Dataset]) -> Figure:
    """Means over the seeds."""
    fig = style.figure(3.4)
    ax = fig.subplots()
    look = {"color": style.COLOURS[0], "marker": "o", "ms": 5}
    antiparallel.line(ax, simulated.values(), "limit_bytes", "ratio", label="packet", **look)
    for number, name in enumerate(dict.fromkeys(case.split()[1] for case in model)):
        cases = [data for case, data in model.items() if case.split()[1] == name]
        look = {"color": style.COLOURS[1], "marker": "x", "ms": 4, "linestyle": DASHES[number]}
        antiparallel.line(ax, cases, "limit_bytes", "windows", label=f"theory, {name}", **look)
    ax.set_xlim(left=0)
    ax.set_ylim(bottom=0)
    ax.set_xlabel("down queue / up queue")
    ax.set_title("throughput of the download / of the upload")
    fig.legend(loc="outside lower center", ncols=5)
    return fig
