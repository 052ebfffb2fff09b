"""Report of a sweep, or of several with the same keys: charts of the main metrics, and the table of points."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ackclock import metrics
from ackclock.figures import experiment_figures, summary_text, sweep_axes
from ackclock.figures.figure_spec import Drawing, Heat, Panel
from ackclock.figures.report import drawing, render_page, write_page
from ackclock.figures.sweep_axes import Swept

#: Points of a layer of a figure.
POINTS = 40_000

#: Points that the table shows.
MAX_ROWS = 500


def write(sweeps: Sequence[Swept], out: Path | str) -> Path:
    """Write the report to `out` atomically and return its path. Raises `InputError`."""
    return write_page(render(sweeps), out)


def render(sweeps: Sequence[Swept]) -> str:
    """Return the report as HTML."""
    panels = (
        experiment_figures.maps(sweeps[0]) if experiment_figures.is_map(sweeps) else experiment_figures.charts(sweeps)
    )
    figures = [drawing.figure(_drawing(name, panel), POINTS) for name, panel in panels.items()]
    names = list(panels)
    return render_page(
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
            if (said := [*summary_text.sweep_sentences(sweep), *summary_text.phase_sentences(sweep)])
        ],
        warnings=[(sweep.engine, warning) for sweep in sweeps for warning in sweep.warnings],
        one_run=all(point["n"] < 2 for sweep in sweeps for point in sweep.points),
        not_shared=sweep_axes.not_shared(sweeps),
        points=sum(len(sweep.points) for sweep in sweeps),
        sweeps=[_commands(sweep) for sweep in sweeps],
        figures={f"sweep-{figure.key}": figure.spec() for figure in figures},
        version=sweeps[0].manifest.get("ackclock"),
    )


def _drawing(name: str, panel: Panel) -> Drawing:
    caption = f"{metrics.METRICS[name].label}: the value at each point; there are no intervals."
    if experiment_figures.has_intervals(panel):
        caption = f"{metrics.METRICS[name].label}: means over the seeds; the bars are 95 % intervals."
    elif any(isinstance(layer, Heat) for layer in panel.layers):
        caption = (
            f"{metrics.METRICS[name].label} at each point; the intervals, where there are any, are in the table below."
        )
    return Drawing(name, panel.title, caption, [panel])


def _rows(sweep: Swept, names: Sequence[str]) -> list[tuple[str, ...]]:
    """Return rows of engine, swept values, n, and the metrics."""
    return [
        (
            sweep.engine,
            *sweep_axes.values_of(sweep, point),
            str(point["n"]),
            *(summary_text.estimate(point["summary"][name], name) for name in names),
        )
        for point in sweep.points
    ]


def _commands(sweep: Swept) -> dict[str, str]:
    manifest = sweep.manifest
    return {
        "engine": sweep.engine,
        "file": str(manifest.get("scenario_path") or "scenario.toml"),
        "command": str(manifest.get("command") or f"ackclock sweep {manifest.get('scenario_path')}"),
        "scenario": str(manifest["sweep"]["scenario"]),
    }
