"""Figure 4-1: both queues, in seconds at their links' rates, as simulated, as the model has them and in ns-2."""

from collections.abc import Mapping

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ackclock.dataset import Dataset
from ackclock.figures.plots import style
from ackclock.reproductions import pendulum

#: The stretch that is shown, in seconds: what figure 4-1 names lies between 111 and 151 s.
SHOWN_S = (100.0, 160.0)


@style.styled
def draw(packet: Mapping[str, Dataset], theory: Mapping[str, Dataset], ns2: Mapping[str, Dataset]) -> Figure:
    """The queueing delays of the first run of each engine, with the tilts without loss."""
    engines = {"packet": packet, "theory": theory, "ns2": ns2}
    shown = [(name, data) for name, cases in engines.items() for data in cases.values()]
    fig = style.figure(0.4 + 1.9 * len(shown))
    axes = fig.subplots(len(shown), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    for ax, (name, data) in zip(axes, shown, strict=True):
        _delays(ax, data, name)
    axes[-1].set_xlim(SHOWN_S)
    axes[-1].set_ylim(bottom=0)
    axes[-1].set_xlabel("time (s)")
    fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return fig


def _delays(ax: Axes, data: Dataset, engine: str) -> None:
    view = style.first_run(data)
    times_s, delays_s = pendulum.queueing_delays_s(view)
    shown = slice(*np.searchsorted(times_s, SHOWN_S))
    for side, name in enumerate((pendulum.DOWN, pendulum.UP)):
        label = f"{name} queue"
        ax.plot(times_s[shown], delays_s[shown, side], color=style.COLOURS[side], linewidth=1.0, label=label)
    for start_s, end_s in pendulum.tilts(view).filter(pl.col("loss").not_())["start_s", "end_s"].iter_rows():
        if SHOWN_S[0] <= start_s and end_s <= SHOWN_S[1]:
            ax.axvspan(start_s, end_s, color="#E5E5E5", zorder=0)
    ax.set_title(f"{engine}: backlog / rate (s); grey: tilts without loss")
