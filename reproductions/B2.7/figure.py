"""Figure 2.7: the window of the model over that of the simulation, with and without delayed ACKs."""

from collections.abc import Mapping

from matplotlib.figure import Figure

from ackclock.dataset import Dataset
from ackclock.figures.plots import style
from ackclock.gallery import figures

SPAN_S = 8.0


@style.styled
def draw(theory: Mapping[str, Dataset], packet: Mapping[str, Dataset], *_others: object) -> Figure:
    """A panel for each b."""
    fig = style.figure(3.1)
    axes = fig.subplots(1, 2, sharey=True, squeeze=False)[0]
    for ax, case in zip(axes, ("b=1", "b=2"), strict=True):
        together = {"simulation": packet[case], "model": theory[case]}
        if case == "b=2":
            together["simulation, acknowledged packets counted"] = packet["b=2 corrected"]
        figures.overlay_windows(ax, together, SPAN_S, f"{case}: window (segments)")
    fig.legend(*axes[1].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return fig
