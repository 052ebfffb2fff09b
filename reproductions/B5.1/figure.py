"""The figure of B5.1: the total window over time, as the thesis draws it."""

from collections.abc import Mapping

from matplotlib.figure import Figure

from ackclock.dataset import Dataset
from ackclock.figures import curves
from ackclock.figures.plots import style

#: The drawn part, from the warm-up on.
SPAN_S = 60.0

NAMES = {
    "packet": "Packet engine with ns-2's hosts",
    "ns2": "ns-2",
    "linux": "This machine's kernel",
}


@style.styled
def draw(packet: Mapping[str, Dataset], ns2: Mapping[str, Dataset], linux: Mapping[str, Dataset]) -> Figure:
    """A panel for each engine that ran."""
    engines = {"packet": packet, "ns2": ns2, "linux": linux}
    found = {engine: data for engine, of in engines.items() for data in of.values()}
    fig = style.figure(1.2 + 1.6 * len(found))
    axes = fig.subplots(max(1, len(found)), 1, sharex=True, squeeze=False)[:, 0]
    for ax, (engine, data) in zip(axes, found.items(), strict=False):
        view = style.first_run(data)
        lines = curves.windows(view)
        shown = (lines.times_s > view.warmup_s) & (lines.times_s < view.warmup_s + SPAN_S)
        ax.plot(lines.times_s[shown], lines.total()[shown])
        ax.set_title(f"{NAMES[engine]}: total window (segments)")
        ax.set_ylim(bottom=0)
    axes[-1].set_xlabel("Time (s)")
    return fig
