"""Figures of runs for print: the specs of `ackclock.figures.run_figures`, with other results laid over them."""

from __future__ import annotations

from matplotlib.figure import Figure

from ackclock.dataset import Dataset
from ackclock.figures import curves, numbers, palette, run_figures
from ackclock.figures.plots import drawing, overlay, style
from ackclock.figures.plots.overlay import Over
from ackclock.metrics.view import Array, RunView


@style.public
def delay(data: Dataset) -> Figure:
    """Draw the one-way delay of each flow's data, the mean of each interval, in the first run."""
    return drawing.figure(run_figures.delay(style.first_run(data)), data)


@style.public
def epochs(data: Dataset) -> Figure:
    """Draw each drop at the bottleneck in the first run's measured part, its epoch, and the share of flows hit."""
    return drawing.figure(run_figures.epochs(style.first_run(data)), data)


@style.public
def cwnd_total(data: Dataset, over: Over = None) -> Figure:
    """Draw the total congestion window (segments) of the first run, with the BDP and BDP + buffer where known.

    `over`: dashed, those of other results.
    """
    view = style.first_run(data)
    spec = run_figures.cwnd_total(view)
    fig, (ax,) = drawing.draw(spec)
    laid, count = overlay.others(data, over), curves.windows_to_add(view).count
    for other in laid:
        overlay.curve(ax, other, _total_window, "cwnd_mean", level=count)
    entries = overlay.signs(data, laid, coloured=True)
    return drawing.finish(fig, [ax], spec, data, entries, columns=max(len(entries), 1))


def _total_window(view: RunView) -> tuple[Array, Array]:
    lines = curves.windows_to_add(view)
    return lines.times_s, lines.total()


@style.public
def queue(data: Dataset, over: Over = None) -> Figure:
    """Draw backlog (packets) and sojourn time of the bottleneck's queue in the first run.

    `over`: dashed, those of other results.
    """
    view = style.first_run(data)
    spec, link = run_figures.queue(view), curves.queue(view).link
    fig, axes = drawing.draw(spec)
    laid = overlay.others(data, over)
    unit_s = numbers.SECONDS[spec.panels[1].unit]
    for other in laid:
        overlay.curve(axes[0], other, lambda view: _backlog(view, link), "queue_mean_p", colour=style.INK)
        sojourn = "queue_delay_mean_s"
        overlay.curve(axes[1], other, lambda view: _sojourn(view, link), sojourn, scale=1 / unit_s, colour=style.INK)
    entries = overlay.signs(data, laid)
    return drawing.finish(fig, axes, spec, data, entries, columns=max(len(entries), 1))


def _backlog(view: RunView, link: int) -> tuple[Array, Array]:
    samples = curves.queue(view, link)
    return samples.times_s, samples.backlog_p


def _sojourn(view: RunView, link: int) -> tuple[Array, Array]:
    samples = curves.queue(view, link)
    return samples.times_s, samples.sojourn_s


@style.public
def goodput(data: Dataset, over: Over = None) -> Figure:
    """Draw total and per-flow goodput of the first run, averaged over a sliding window that the title names.

    `over`: dashed, those of other results, averaged in the same way.
    """
    view = style.first_run(data)
    window_s = curves.goodput_window(view)
    spec, lines = run_figures.goodput(view), curves.goodputs(view, window_s)
    fig, axes = drawing.draw(spec)
    laid = overlay.others(data, over)
    total_bps, each_bps = (numbers.BITS_PER_SECOND[panel.unit] for panel in spec.panels)
    for other in laid:
        total = lambda view: _total_goodput(view, window_s)  # noqa: E731
        overlay.curve(axes[0], other, total, "goodput_bps", scale=1 / total_bps, colour=style.INK)
        if "goodput_bps" not in other.view.given:
            theirs = overlay.read(other, lambda view: curves.goodputs(view, window_s))
            overlay.lines(axes[1], other, lines, theirs, 1 / each_bps)
    columns = 2 if lines.count > palette.MAX_LINES else 6
    return drawing.finish(fig, axes, spec, data, overlay.signs(data, laid), columns=columns)


def _total_goodput(view: RunView, window_s: float) -> tuple[Array, Array]:
    lines = curves.goodputs(view, window_s)
    return lines.times_s, lines.total()
