"""Goodput over time, as on the slides: each flow's and the total, of two sources and of twenty."""

from collections.abc import Mapping

from matplotlib.figure import Figure

from ackclock.dataset import Dataset
from ackclock.figures.plots import style

CASES = ("2 sources", "20 sources")

#: Rates are shares of the link's.
LABELS = ("each source's goodput / its fair share", "total goodput / the link's rate")


@style.styled
def draw(packet: Mapping[str, Dataset]) -> Figure:
    """A column for each number of sources: flows above, the total below."""
    fig = style.figure(4.2)
    axes = fig.subplots(len(LABELS), len(CASES), sharex=True, sharey="row", squeeze=False)
    for column, case in enumerate(CASES):
        view = style.first_run(packet[case])
        rates_bps, times_s = view.grid.rates_bps(1.0), view.grid.times_s
        link_bps, measured = view.plan.links[0].rate_bps, times_s > view.warmup_s
        flows, total = axes[0, column], axes[1, column]
        for number, one in enumerate(rates_bps[measured].T):
            colour = style.COLOURS[number % len(style.COLOURS)]
            flows.plot(times_s[measured], one * rates_bps.shape[1] / link_bps, color=colour, linewidth=0.7)
        total.plot(times_s[measured], rates_bps[measured].sum(axis=1) / link_bps, color=style.INK, linewidth=0.9)
        for ax, label in zip((flows, total), LABELS, strict=True):
            ax.set_title(f"{case}: {label}")
        total.set_xlabel("Time (s)")
    axes[0, 0].set_ylim(bottom=0)
    return fig
