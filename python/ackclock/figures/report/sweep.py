"""Report of a sweep, or of several with the same keys: charts of the main metrics, and the table of points."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from ackclock import metrics
from ackclock.figures import charts, numbers, sweep_summary
from ackclock.figures.charts import Across, Chart, Line, Map, Swept
from ackclock.figures.report import page, plotly
from ackclock.figures.report.plotly import Figure

#: Maps of at most so many places along a side have their numbers written in; from light to dark.
MAX_WRITTEN = 14
COLOURS = [[0, "#F2F7FB"], [0.33, "#9BBBD3"], [0.67, "#0072B2"], [1, "#003A5C"]]

#: Points that the table shows.
MAX_ROWS = 500


class Reported(Swept, Protocol):
    """A sweep with its manifest."""

    @property
    def manifest(self) -> Mapping[str, Any]:
        """Scenario, command, versions."""


def write(sweeps: Sequence[Reported], out: Path | str) -> Path:
    """Write the report to `out` atomically and return its path. Raises `InputError`."""
    return page.write(render(sweeps), out)


def render(sweeps: Sequence[Reported]) -> str:
    """Return the report as HTML."""
    drawn: Sequence[Chart | Map] = charts.maps(sweeps[0]) if charts.is_map(sweeps) else charts.charts(sweeps)
    figures = [_map(each) if isinstance(each, Map) else _figure(each) for each in drawn]
    names = [chart.metric for chart in drawn]
    return page.render(
        "sweep.html.j2",
        title=sweeps[0].name,
        engines=", ".join(dict.fromkeys(sweep.engine for sweep in sweeps)),
        drawn=figures,
        keys=[axis.key for axis in sweeps[0].axes],
        heads=[metrics.METRICS[name].label for name in names],
        rows=[row for sweep in sweeps for row in _rows(sweep, names)][:MAX_ROWS],
        several=len(sweeps) > 1,
        conclusions=[
            (sweep.engine, said)
            for sweep in sweeps
            if (said := [*sweep_summary.sentences(sweep), *sweep_summary.phases(sweep)])
        ],
        one_run=all(point["n"] < 2 for sweep in sweeps for point in sweep.points),
        not_shared=charts.not_shared(sweeps),
        points=sum(len(sweep.points) for sweep in sweeps),
        sweeps=[_commands(sweep) for sweep in sweeps],
        figures={f"sweep-{figure.key}": figure.spec() for figure in figures},
        version=sweeps[0].manifest.get("ackclock"),
    )


def _rows(sweep: Reported, names: Sequence[str]) -> list[tuple[str, ...]]:
    """Return rows of engine, swept values, n, and the metrics."""
    return [
        (sweep.engine, *charts.values_of(sweep, point), str(point["n"]), *(_cell(point, name) for name in names))
        for point in sweep.points
    ]


def _cell(point: Mapping[str, Any], name: str) -> str:
    result = point["summary"][name]
    return numbers.estimate(result["mean"], result["ci95_low"], result["ci95_high"], metrics.METRICS[name].unit)


def _commands(sweep: Reported) -> dict[str, str]:
    manifest = sweep.manifest
    return {
        "engine": sweep.engine,
        "file": str(manifest.get("scenario_path") or "scenario.toml"),
        "command": str(manifest.get("command") or f"ackclock sweep {manifest.get('scenario_path')}"),
        "scenario": str(manifest["sweep"]["scenario"]),
    }


def _figure(chart: Chart) -> Figure:
    data = [_trace(line, chart) for line in chart.lines]
    across = plotly.axis(chart.across.title, **({"type": "log"} if chart.across.logarithmic else {}))
    if chart.across.names:
        across |= {"tickvals": list(range(len(chart.across.names))), "ticktext": list(chart.across.names)}
    title = f"{chart.title} ({chart.unit})" if chart.unit else chart.title
    layout = plotly.plain() | {"xaxis": across, "yaxis": plotly.axis(title), "showlegend": len(data) > 1}
    bars = any(math.isfinite(low) for line in chart.lines for low in line.lows)
    caption = (
        f"{chart.title}: means over the seeds; the bars are 95 % intervals."
        if bars
        else f"{chart.title}: the value at each point; there are no intervals."
    )
    return Figure(chart.metric, chart.title, caption, data, layout)


def _map(drawn: Map) -> Figure:
    """Return a heatmap; numbers appear on hover, and in the cells where there is room."""
    title = f"{drawn.title} ({drawn.unit})" if drawn.unit else drawn.title
    written = len(drawn.x) <= MAX_WRITTEN and len(drawn.y) <= MAX_WRITTEN
    trace = {
        "type": "heatmap",
        "z": [[mean if math.isfinite(mean) else None for mean in row] for row in drawn.means],
        "colorscale": COLOURS,
        "colorbar": {"title": {"text": drawn.unit}, "thickness": 12, "outlinewidth": 0},
        "hovertemplate": f"%{{z:.4g}} {drawn.unit}<extra></extra>",
        "xgap": 1,
        "ygap": 1,
        **({"texttemplate": "%{z:.3g}"} if written else {}),
    }
    axes = {"xaxis": _places(drawn.across, drawn.x), "yaxis": _places(drawn.up, drawn.y)}
    caption = f"{drawn.title} at each point; the intervals, where there are any, are in the table below."
    return Figure(drawn.metric, title, caption, [trace], plotly.plain() | axes | {"showlegend": False})


def _places(across: Across, places: Sequence[float]) -> dict[str, Any]:
    texts = list(across.names) or [f"{place:g}" for place in places]
    return plotly.axis(across.title, tickvals=list(range(len(places))), ticktext=texts)


def _trace(line: Line, chart: Chart) -> dict[str, Any]:
    look = plotly.line_style(line.kind) | ({"dash": ("dash", "dot")[(line.sweep - 1) % 2]} if line.sweep else {})
    known = [high == high and low == low for low, high in zip(line.lows, line.highs, strict=True)]  # noqa: PLR0124
    bars = {
        "type": "data",
        "symmetric": False,
        "array": [high - mean if ok else 0 for mean, high, ok in zip(line.means, line.highs, known, strict=True)],
        "arrayminus": [mean - low if ok else 0 for mean, low, ok in zip(line.means, line.lows, known, strict=True)],
        "thickness": 1,
        "width": 3,
    }
    return {
        "type": "scatter",
        "mode": "markers" if chart.across.names else "lines+markers",
        "name": line.name,
        "x": line.x,
        "y": line.means,
        "error_y": bars,
        "line": {"width": 1.3, **look},
        "marker": {"size": 5},
        "hovertemplate": f"%{{y:.4g}} {chart.unit} at %{{x:.4g}}",
    }
