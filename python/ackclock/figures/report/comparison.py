"""Several results in the same axes: the first run of each."""

from __future__ import annotations

from collections.abc import Sequence

from ackclock.figures import curves, numbers
from ackclock.figures.report import plotly
from ackclock.figures.report.distributions import OfRun, distributions
from ackclock.figures.report.figures import possible
from ackclock.figures.report.plotly import Figure
from ackclock.metrics.view import RunView


def figures(names: Sequence[str], views: Sequence[RunView], first: Sequence[OfRun], points: int) -> list[Figure]:
    """Return the figures of several results in the same axes: the first run of each, and its distributions."""
    made = (
        lambda: _totals(names, views, points),
        lambda: _backlogs(names, views, points),
        lambda: distributions(first, names, points, compares=True),
    )
    return [figure for figure in map(possible, made) if figure is not None]


def _totals(names: Sequence[str], views: Sequence[RunView], points: int) -> Figure:
    result = [curves.goodputs(view) for view in views]
    factor, unit = numbers.scale(max(float(lines.total().max(initial=0)) for lines in result), "bit/s")
    data = [
        plotly.curve(
            lines.times_s,
            lines.total() / factor,
            points // len(views),
            plotly.line_style(n),
            name,
            f"%{{y:.4g}} {unit} at %{{x:.1f}} s",
        )
        for n, (name, lines) in enumerate(zip(names, result, strict=True))
    ]
    layout = plotly.over_time(
        _longest(views), {"yaxis": plotly.axis(f"Goodput of all flows ({unit})", rangemode="tozero")}
    )
    return Figure(
        "goodput",
        "Total goodput",
        "Goodput of all flows together, first run of each result.",
        data,
        layout | {"showlegend": True},
    )


def _backlogs(names: Sequence[str], views: Sequence[RunView], points: int) -> Figure:
    result = [curves.queue(view) for view in views]
    data = [
        plotly.curve(
            samples.times_s,
            samples.backlog_p,
            points // len(views),
            plotly.line_style(n),
            name,
            "%{y:.0f} packets at %{x:.2f} s",
        )
        for n, (name, samples) in enumerate(zip(names, result, strict=True))
    ]
    layout = plotly.over_time(_longest(views), {"yaxis": plotly.axis("Backlog (packets)", rangemode="tozero")})
    return Figure(
        "queue",
        "Queue at the bottleneck",
        "Packets waiting, first run of each result.",
        data,
        layout | {"showlegend": True},
    )


def _longest(views: Sequence[RunView]) -> RunView:
    return max(views, key=lambda view: view.duration_s)
