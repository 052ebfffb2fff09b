"""Utilisation against the buffer: the packet runs, and the fluid model with their synchronisation."""

from collections.abc import Mapping

from matplotlib.figure import Figure

from ackclock import metrics
from ackclock.dataset import Dataset
from ackclock.figures.plots import style

VARIANTS = ("HSTCP", "CUBIC", "AIMD", "H-TCP")
#: End of a case's name → how its points look.
RATES = {
    " 1Gb/s": ("1 Gb/s", "o", "-"),
    " 10Gb/s": ("10 Gb/s", "D", "none"),
    " paced": ("1 Gb/s, paced", "^", "none"),
}


@style.styled
def draw(packet: Mapping[str, Dataset], fluid: Mapping[str, Dataset]) -> Figure:
    """A panel for each variant."""
    fig = style.figure(4.6)
    axes = fig.subplots(2, 2, sharex=True, sharey=True).flatten()
    for ax, variant in zip(axes, VARIANTS, strict=True):
        for ending, (rate, marker, line) in RATES.items():
            for number, (engine, results) in enumerate({"packet": packet, "fluid, fed": fluid}.items()):
                points = [
                    (float(case.split()[1]), used(data))
                    for case, data in results.items()
                    if case.startswith(f"{variant} ") and case.endswith(ending)
                ]
                if points:
                    ax.plot(*zip(*points, strict=True), marker=marker, ls=line, ms=4, color=style.COLOURS[number],
                            mfc="none" if number else None, label=f"{engine}, {rate}")  # fmt: skip
        ax.set_title(f"{variant}: utilisation (%)")
        ax.set_xscale("log")
        ax.set_xticks([0.02, 0.05, 0.2], ["0.02", "0.05", "0.2"], minor=False)
        ax.minorticks_off()
    for ax in axes[2:]:
        ax.set_xlabel("buffer, as a share of the bandwidth-delay product")
    axes[0].legend(loc="lower right")
    return fig


def used(data: Dataset) -> float:
    """Utilisation in per cent."""
    return 100 * float(metrics.table(data)["summary"]["utilisation"]["mean"])
