"""Goodput of each source over time: a panel for each control and latency."""

from collections.abc import Mapping

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ackclock.dataset import Dataset
from ackclock.figures.plots import style

#: A goodput is drawn as its mean over this share of the run.
SMOOTH = 1 / 240


@style.styled
def draw(data: Mapping[str, Dataset]) -> Figure:
    """The controls from top to bottom, the latencies side by side."""
    fig = style.figure(8.0)
    axes = fig.subplots(len(data) // 2, 2, sharex=True, sharey=True)
    for ax, (case, each) in zip(axes.flat, data.items(), strict=True):
        _goodputs(ax, case, each)
    for ax in axes[-1]:
        ax.set_xlabel("time (s)")
    return fig


def _goodputs(ax: Axes, case: str, data: Dataset) -> None:
    view = style.first_run(data)
    rates_mbps = view.grid.rates_bps(SMOOTH * view.duration_s) / 1e6
    for flow in range(rates_mbps.shape[1]):
        style.curve(ax, view.grid.times_s, rates_mbps[:, flow], linewidth=0.6, **style.line_style(flow))
    style.warmup([ax], view.warmup_s, text=False)
    ax.set_ylim(bottom=0)
    ax.set_title(f"{case}: goodput of each source (Mb/s)", fontsize=8)
