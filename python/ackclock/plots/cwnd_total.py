"""The sum of all congestion windows over time, against what the path holds."""

from __future__ import annotations

from matplotlib.figure import Figure

from ackclock import curves
from ackclock.dataset import Dataset
from ackclock.plots import style


@style.styled
def cwnd_total(data: Dataset) -> Figure:
    """Draws the total congestion window (segments) of the first run, with the BDP and BDP + buffer where known."""
    view = style.first_run(data)
    lines = curves.windows(view)
    fig = style.figure(3.0)
    ax = fig.subplots()
    total = lines.total()
    style.curve(ax, lines.times_s, total, color=style.COLOURS[0])
    for value, name in curves.path_limits(view):
        if curves.in_sight(value, float(total.max(initial=0))):
            style.reference(ax, value, name)
    style.warmup([ax], view)
    style.time_axis(ax, view)
    ax.set_ylim(bottom=0)
    ax.margins(y=0.12)
    ax.set_ylabel(curves.sum_label(lines))
    style.title(fig, "Total congestion window", data)
    return fig
