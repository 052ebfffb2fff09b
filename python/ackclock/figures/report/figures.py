"""The report's figures of one result."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ackclock.errors import InputError
from ackclock.figures import capture_figures
from ackclock.figures.figure_spec import Drawing
from ackclock.figures.report import drawing
from ackclock.figures.report.distributions import distributions
from ackclock.figures.report.plotly import Figure
from ackclock.figures.report.response import response
from ackclock.figures.report.runs import Runs
from ackclock.figures.run_figures import cwnd, cwnd_total, epochs, goodput, queue
from ackclock.metrics import epoch
from ackclock.metrics.view import RunView

#: Kinds of capture figures, in this order.
KINDS = ("limits", "stalls", "level", "sequence", "pipe", "rtt")


def of_result(view: RunView, runs: Runs, points: int) -> list[Figure]:
    """Return all figures of one result: `view` is the run drawn, `runs` are all; about `points` a figure."""
    made: tuple[Callable[[], Figure], ...] = (
        *(partial(_drawn, make, view, points) for make in (cwnd, cwnd_total, goodput, queue)),
        lambda: distributions(runs.distributions, runs.names, points),
        lambda: _epochs(view, points),
        lambda: response(runs.data),
    )
    return [figure for figure in (*map(possible, made), *_of_capture(view, points)) if figure is not None]


def _of_capture(view: RunView, points: int) -> list[Figure | None]:
    """Return the figures that only captures have."""
    if "capture" not in view.data.manifest:
        return []
    return [possible(partial(_drawn, capture_figures.KINDS[kind], view, points)) for kind in KINDS]


def possible(make: Callable[[], Figure]) -> Figure | None:
    """Return a figure, or None if the engine did not give its data."""
    try:
        return make()
    except InputError:
        return None


def _drawn(make: Callable[[RunView], Drawing], view: RunView, points: int) -> Figure:
    return drawing.figure(make(view), points)


def _epochs(view: RunView, points: int) -> Figure:
    if not view.cached(epoch.epochs).height:
        raise InputError("no packet was dropped at the bottleneck")
    return drawing.figure(epochs(view), points)
