"""The sum of all congestion windows over time, against what the path holds."""

from __future__ import annotations

from matplotlib.figure import Figure

from ackclock.dataset import Dataset
from ackclock.figures import curves
from ackclock.figures.plots import overlay, style
from ackclock.figures.plots.overlay import Over
from ackclock.metrics.view import Array, RunView


@style.public
def cwnd_total(data: Dataset, over: Over = None) -> Figure:
    """Draws the total congestion window (segments) of the first run, with the BDP and BDP + buffer where known.

    `over`: dashed, those of other results.
    """
    view = style.first_run(data)
    lines = curves.windows_to_add(view)
    fig = style.figure(3.0)
    ax = fig.subplots()
    total = lines.total()
    style.curve(ax, lines.times_s, total, color=style.COLOURS[0])
    laid = overlay.others(data, over)
    for other in laid:
        overlay.curve(ax, other, _total, "cwnd_mean", level=lines.count)
    for value, name in curves.path_limits(view):
        if curves.in_sight(value, float(total.max(initial=0))):
            style.reference(ax, value, name)
    style.warmup([ax], view)
    style.time_axis(ax, view)
    ax.set_ylim(bottom=0)
    ax.margins(y=0.12)
    ax.set_ylabel(curves.sum_label(lines))
    if laid:
        signs = overlay.signs(data, laid, coloured=True)
        style.legend(fig, handles=signs, ncols=len(signs))
    style.title(fig, "Total congestion window", data)
    return fig


def _total(view: RunView) -> tuple[Array, Array]:
    lines = curves.windows_to_add(view)
    return lines.times_s, lines.total()
