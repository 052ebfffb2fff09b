"""Distribution functions of a result's runs, or of several results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ackclock import shown
from ackclock.errors import InputError
from ackclock.metrics.distributions import completions, goodputs, queue_delays, rtts
from ackclock.metrics.view import Array, RunView
from ackclock.report import drawing
from ackclock.report.drawing import Figure, Trace


def distributions(views: Sequence[RunView], points: int, names: Sequence[str] | None = None) -> Figure:
    """Distribution functions, one line a run (or a result, with its name)."""
    sources = [
        (queue_delays, "s", "Sojourn time"),
        (rtts, "s", "Smoothed RTT"),
        (goodputs, "bit/s", "Goodput of a flow"),
    ]
    if any(completions(view)[0].size for view in views):
        sources.append((completions, "s", "Completion time"))
    labels = names or [f"seed {view.seed}" for view in views]
    data: list[Trace] = []
    layout, narrow = drawing.plain(), {"height": 300 * len(sources)}
    for panel, (source, unit, title) in enumerate(sources, start=1):
        known = [source(view) for view in views]
        factor, name = shown.scale(max((float(x[-1]) for x, _ in known if x.size), default=1.0), unit)
        each = max(100, points // len(sources) // len(views))
        for run, (x, share) in enumerate(known):
            data += _distribution(x / factor, share, each, labels[run], drawing.look(run), panel, name)
        _panel(layout, narrow, (panel, len(sources)), f"{title} ({name})")
    if not data:
        raise InputError("nothing to show the distribution of")
    layout["showlegend"] = len(views) > 1
    what = "of the first run of each result" if names else "of the measured part, one line a run"
    caption = f"Distribution functions of packets, RTT samples and flows {what}: the share of the values at or below."
    if len(sources) > 3:
        caption += " Completion times end below 1 where transfers were not finished."
    return Figure("cdf", "Distributions", caption, data, layout, narrow)


def _panel(layout: dict[str, Any], narrow: dict[str, Any], place: tuple[int, int], title: str) -> None:
    """The axes of one of several panels: side by side, or one below the other on a narrow page."""
    panel, count = place
    width, height = 1 / (count + 0.1125 * (count - 1)), 1 / (count + 0.285 * (count - 1))
    left, top = (panel - 1) * 1.1125 * width, 1 - (panel - 1) * 1.285 * height
    ticks = {"range": [0, 1.02], "tickvals": [0, 0.25, 0.5, 0.75, 1], "showticklabels": panel == 1}
    name = "" if panel == 1 else str(panel)
    layout[f"xaxis{name}"] = drawing.axis(title, domain=[left, min(left + width, 1.0)], anchor=f"y{name}", nticks=5)
    layout[f"yaxis{name}"] = drawing.axis("Share at or below" if panel == 1 else "", anchor=f"x{name}", **ticks)
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
        "x": drawing.numbers(np.append(x[0], x[rows])),
        "y": drawing.numbers(np.append(0.0, share[rows])),
        "xaxis": f"x{axis}",
        "yaxis": f"y{axis}",
        "line": {"shape": "hv", "width": 1.4, **look},
        "hovertemplate": f"%{{y:.1%}} at most %{{x:.3g}} {unit}",
    }
    return [trace]
