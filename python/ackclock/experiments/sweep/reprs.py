"""A sweep in three lines, and as a table for notebooks. It is given sweeps, and does not know their class."""

from __future__ import annotations

from typing import Any

from ackclock import repr_format
from ackclock.figures import summary_text, sweep_axes
from ackclock.metrics import METRICS, main
from ackclock.scenario.points import label, short_keys

#: Points, and metrics, that a table has.
MAX_ROWS, MOST_METRICS = 60, 6


def lines(sweep: Any) -> str:
    """Return the lines of `repr`."""
    runs, count = sweep.table.height, sweep.table["point"].n_unique()
    sizes = f"{repr_format.counted(count, 'point')}, {repr_format.counted(runs, 'run')}"
    swept = "; ".join(f"{axis.key}: {repr_format.listed(map(label, axis.values))}" for axis in sweep.axes)
    table = f"table: {runs:,} rows, {sweep.table.width} columns; folder {sweep.folder}"
    return repr_format.lines(f'Sweep "{sweep.name}": engine {sweep.engine}, {sizes}', swept or "nothing swept", table)


def html(sweep: Any) -> str:
    """Return HTML for a notebook: the summary in sentences, and the means at each point."""
    names = _metrics(sweep)
    heads = [*short_keys(sweep.axes), *(METRICS[name].label for name in names)]
    rows = [
        [*sweep_axes.values_of(sweep, point), *(summary_text.estimate(point["summary"][name], name) for name in names)]
        for point in sweep.points[:MAX_ROWS]
    ]
    left = len(sweep.points) - len(rows)
    more = [f"The table has the first {len(rows)} points; {left:,} more are in .points"] if left else []
    return repr_format.html(lines(sweep).split("\n")[0], [*summary_text.sweep_sentences(sweep), *more], heads, rows)


def _metrics(sweep: Any) -> list[str]:
    """Return the requested metrics, or the main ones, that have a value."""
    scalars = [name for name in sweep.metrics if not METRICS[name].per_flow]
    chosen = scalars if len(scalars) <= MOST_METRICS else [name for name in main("column") if name in scalars]
    return [name for name in chosen if any(point["summary"][name]["n"] for point in sweep.points)][:MOST_METRICS]
