"""The bottleneck's queue over time: backlog and sojourn time."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from ackclock.dataset import Dataset
from ackclock.figures import curves, numbers
from ackclock.figures.plots import overlay, style
from ackclock.figures.plots.overlay import Over
from ackclock.metrics import delay
from ackclock.metrics.view import Array, RunView


@style.public
def queue(data: Dataset, over: Over = None) -> Figure:
    """Draws backlog (packets) and sojourn time of the bottleneck's queue in the first run.

    `over`: dashed, those of other results.
    """
    view = style.first_run(data)
    samples = curves.queue(view)
    fig = style.figure(4.2)
    above, below = fig.subplots(2, 1, sharex=True)
    style.curve(above, samples.times_s, samples.backlog_p, color=style.COLOURS[0], linewidth=0.8)
    if samples.limit_p is not None and curves.in_sight(samples.limit_p, float(np.nanmax(samples.backlog_p))):
        style.reference(above, samples.limit_p, curves.limit_name(view))
    unit_s, unit = numbers.scale(float(np.nanmax(samples.sojourn_s, initial=0)), "s")
    style.curve(below, samples.times_s, samples.sojourn_s / unit_s, color=style.COLOURS[1], linewidth=0.8)
    laid = overlay.others(data, over)
    for other in laid:
        overlay.curve(above, other, lambda view: _backlog(view, samples.link), "queue_mean_p", colour=style.INK)
        overlay.curve(
            below,
            other,
            lambda view: _sojourn(view, samples.link),
            "queue_delay_mean_s",
            scale=1 / unit_s,
            colour=style.INK,
        )
    mean_s, p95_s = delay.queue_delay_mean_s(view), delay.queue_delay_p95_s(view)
    if mean_s is not None and p95_s is not None and not curves.is_shared(view):
        below_mean = p95_s < mean_s
        style.reference(below, mean_s / unit_s, f"mean\n{numbers.value(mean_s, 's')}", side=_side(below_mean))
        style.reference(below, p95_s / unit_s, f"95 % below\n{numbers.value(p95_s, 's')}", side=_side(not below_mean))
    for ax, label in ((above, "Backlog (packets)"), (below, f"Sojourn time ({unit})")):
        ax.set_ylim(0, ax.get_ylim()[1] * 1.12)
        ax.set_ylabel(label)
    style.warmup([above, below], view)
    style.time_axis(below, view)
    if laid:
        signs = overlay.signs(data, laid)
        style.legend(fig, handles=signs, ncols=len(signs))
    style.title(fig, f"Queue at {samples.where}", data)
    return fig


def _backlog(view: RunView, link: int) -> tuple[Array, Array]:
    samples = curves.queue(view, link)
    return samples.times_s, samples.backlog_p


def _sojourn(view: RunView, link: int) -> tuple[Array, Array]:
    samples = curves.queue(view, link)
    return samples.times_s, samples.sojourn_s


def _side(above: bool) -> str:
    """Return the alignment that keeps two labels apart: the upper one above its line, the lower one below."""
    return "bottom" if above else "top"
