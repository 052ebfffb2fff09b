"""Utilisation against the buffer, a panel for each variant."""

from collections.abc import Mapping

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ackclock import metrics
from ackclock.dataset import Dataset
from ackclock.figures.plots import style

PANELS = ("HSTCP", "CUBIC", "AIMD", "H-TCP")
TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 1.0)
LINES = {"X=0.3": ("low synchronisation, X = 0.3", "o"), "X=0.6": ("high synchronisation, X = 0.6", "s")}


@style.styled
def draw(fluid: Mapping[str, Dataset], packet: Mapping[str, Dataset]) -> Figure:
    """The paper's four panels; the packet engine's points as crosses."""
    fig = style.figure(4.8)
    axes = fig.subplots(2, 2, sharex=True, sharey=True).flatten()
    for letter, ax, variant in zip("abcd", axes, PANELS, strict=True):
        panel(ax, variant, fluid, packet)
        ax.set_title(f"({letter}) {variant}: utilisation (%)")
    for ax in axes[2:]:
        ax.set_xlabel("buffer, as a share of 141,667 packets")
    handles = {label: handle for ax in axes for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    axes[3].legend([*handles.values()], [*handles], loc="lower right")
    return fig


def panel(ax: Axes, variant: str, fluid: Mapping[str, Dataset], packet: Mapping[str, Dataset]) -> None:
    """One variant."""
    for number, (losses, (label, marker)) in enumerate(LINES.items()):
        points = [(float(case.split()[1]), mean(data)) for case, data in fluid.items() if of(case, variant, losses)]
        ax.plot(*zip(*points, strict=True), marker=marker, ms=3.5, color=style.COLOURS[number], label=f"fluid, {label}")
    crosses = [(float(case.split()[1]), mean(data)) for case, data in packet.items() if case.startswith(f"{variant} ")]
    if crosses:
        ax.plot(*zip(*crosses, strict=True), "x", ms=7, mew=1.6, color=style.INK, label="packet engine")
    ax.set_xscale("log")
    ax.set_xticks(TICKS, [f"{tick:g}" for tick in TICKS])
    ax.minorticks_off()
    ax.set_ylim(70, 101)


def of(case: str, variant: str, losses: str) -> bool:
    """Return True if a case belongs to a line."""
    return case.startswith(f"{variant} ") and case.endswith(losses)


def mean(data: Dataset) -> float:
    """Utilisation in per cent, over the seeds."""
    return 100 * float(metrics.table(data)["summary"]["utilisation"]["mean"])
