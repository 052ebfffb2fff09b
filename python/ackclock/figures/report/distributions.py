"""Distribution functions of a result's runs, or of several results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from ackclock.errors import InputError
from ackclock.figures import curves, numbers
from ackclock.figures.report import plotly
from ackclock.figures.report.plotly import Figure, Trace
from ackclock.metrics.view import Array, RunView

#: A quantity, its unit, its axis, and of what it is.
SOURCES = (
    ("queue_delay_s", "s", "Sojourn time", "packets"),
    ("rtt_s", "s", "Smoothed RTT", "RTT samples"),
    ("goodput_bps", "bit/s", "Goodput of a flow", "flows"),
    ("fct_s", "s", "Completion time", "transfers"),
)

#: The distribution functions of a run: values and shares for each of `SOURCES`.
OfRun: TypeAlias = tuple[tuple[Array, Array], ...]


def of_run(view: RunView) -> OfRun:
    """Return the distributions of one run."""
    return tuple(curves.distribution(view, quantity) for quantity, *_ in SOURCES)


def distributions(runs: Sequence[OfRun], labels: Sequence[str], points: int, *, compares: bool = False) -> Figure:
    """Return distribution functions, one line a run (or with `compares` a result), of the quantities known."""
    result = [(source, [run[number] for run in runs]) for number, source in enumerate(SOURCES)]
    panels = [(source, valid) for source, valid in result if any(x.size for x, _ in valid)]
    if not panels:
        raise InputError("nothing to show the distribution of")
    data: list[Trace] = []
    layout, narrow = plotly.plain(), {"height": 300 * len(panels)}
    for panel, ((_, unit, title, _), valid) in enumerate(panels, start=1):
        factor, name = numbers.scale(max(float(x[-1]) for x, _ in valid if x.size), unit)
        each = max(100, points // len(panels) // len(runs))
        for run, (x, share) in enumerate(valid):
            data += _distribution(x / factor, share, each, labels[run], plotly.line_style(run), panel, name)
        _panel(layout, narrow, (panel, len(panels)), f"{title} ({name})")
    layout["showlegend"] = len(runs) > 1
    return Figure("cdf", "Distributions", _caption([source[3] for source, _ in panels], compares), data, layout, narrow)


def _caption(kinds: Sequence[str], compares: bool) -> str:
    *others, last = kinds
    every = f"{', '.join(others)} and {last}" if others else last
    what = "of the first run of each result" if compares else "of the measured part, one line a run"
    caption = f"Distribution functions of {every} {what}: the share of the values at or below."
    if "transfers" in kinds:
        caption += " Completion times end below 1 where transfers were not finished."
    return caption


def _panel(layout: dict[str, Any], narrow: dict[str, Any], place: tuple[int, int], title: str) -> None:
    """Set up the axes of one of several panels: side by side, or stacked on a narrow page."""
    panel, count = place
    width, height = 1 / (count + 0.1125 * (count - 1)), 1 / (count + 0.285 * (count - 1))
    left, top = (panel - 1) * 1.1125 * width, 1 - (panel - 1) * 1.285 * height
    ticks = {"range": [0, 1.02], "tickvals": [0, 0.25, 0.5, 0.75, 1], "showticklabels": panel == 1}
    name = "" if panel == 1 else str(panel)
    layout[f"xaxis{name}"] = plotly.axis(title, domain=[left, min(left + width, 1.0)], anchor=f"y{name}", nticks=5)
    layout[f"yaxis{name}"] = plotly.axis("Share at or below" if panel == 1 else "", anchor=f"x{name}", **ticks)
    narrow[f"xaxis{name}"] = {"domain": [0, 1]}
    narrow[f"yaxis{name}"] = {"domain": [max(top - height, 0.0), top], "showticklabels": True}


def _distribution(
    x: Array, share: Array, points: int, name: str, look: dict[str, Any], panel: int, unit: str
) -> list[Trace]:
    if not x.size:
        return []
    rows = np.unique(np.linspace(0, x.size - 1, min(x.size, points)).astype(int))
    axis = "" if panel == 1 else str(panel)
    trace = {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "legendgroup": name,
        "showlegend": panel == 1,
        "x": plotly.numbers(np.append(x[0], x[rows])),
        "y": plotly.numbers(np.append(0.0, share[rows])),
        "xaxis": f"x{axis}",
        "yaxis": f"y{axis}",
        "line": {"shape": "hv", "width": 1.4, **look},
        "hovertemplate": f"%{{y:.1%}} at most %{{x:.3g}} {unit}",
    }
    return [trace]
