"""The queue over time: packet engine, synchronisation model, plain model."""

from collections.abc import Mapping

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ackclock.dataset import Dataset
from ackclock.figures.plots import style
from ackclock.metrics import runs

PANELS = ("HSTCP 0.02", "HSTCP 0.1", "CUBIC 0.02", "CUBIC 0.1")


@style.styled
def draw(packet: Mapping[str, Dataset], fluid: Mapping[str, Dataset], *_others: object) -> Figure:
    """A panel for each variant and buffer; the first run of each."""
    fig = style.figure(4.6)
    axes = fig.subplots(2, 2, sharex=True).flatten()
    for ax, case in zip(axes, PANELS, strict=True):
        lines = {
            "packet engine": packet[f"{case} packets"],
            "with synchronisation, X = 0.3": fluid[f"{case} synchronised"],
            "plain (Misra et al.)": fluid[f"{case} smooth"],
        }
        for number, (label, data) in enumerate(lines.items()):
            queue(ax, data, label, style.COLOURS[number])
        ax.set_title(f"{case} BDP: queue (packets)")
    for ax in axes[2:]:
        ax.set_xlabel("time (s)")
    fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return fig


def queue(ax: Axes, data: Dataset, label: str, colour: str) -> None:
    """The backlog of a result's first run after the warm-up."""
    samples = next(runs(data)).queue_samples
    ax.plot(samples["time_s"], samples["backlog_p"], lw=0.8, color=colour, label=label)
