"""The table of `ackclock sweep`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ackclock.experiments.search.grid import Grid
from ackclock.experiments.sweep.result import Sweep
from ackclock.figures import numbers, sweep_summary
from ackclock.figures.charts import values_of
from ackclock.metrics import METRICS, main
from ackclock.scenario.points import short_keys

#: Columns of metrics: the first for which there are values.
MOST_COLUMNS = 4

#: Points beyond this many are in the file only.
MOST_ROWS = 60


def print_sweep(sweep: Sweep, grid: Grid | None = None, asked: Sequence[str] = ()) -> None:
    """A row for each point: the swept values and the means of the main metrics, with half their 95 % intervals.

    As many of the main metrics as the terminal has room for; what was asked for by name is shown whole, in a table
    below another where one has no room. What `grid` judges by comes first: the metrics `asked` about.
    """
    console = Console(emoji=False, highlight=False)
    console.print(Text(sweep.name, style="bold"))
    points = sweep.points
    counts = {point["n"] for point in points}
    each = _counted(max(counts), "run") if len(counts) == 1 else f"{min(counts)} to {max(counts)} runs"
    console.print(f"{sweep.engine} engine, {_counted(len(points), 'point')}, {each} each")
    for line in sweep_summary.phases(sweep):
        console.print(line)
    names = list(dict.fromkeys([*asked, *(_named(sweep) or _columns(sweep, points))]))
    while names:
        shown = _fitting(console, names, lambda some: _table(sweep, points, some, grid))
        console.print(_table(sweep, points, shown, grid))
        names = names[len(shown) :] if _named(sweep) else []
    if len(points) > MOST_ROWS:
        console.print(f"… and {_counted(len(points) - MOST_ROWS, 'more point')}: see points.parquet")


def _named(sweep: Sweep) -> list[str]:
    """The metrics that were asked for by name; none if all were computed."""
    scalars = [name for name in sweep.metrics if not METRICS[name].per_flow]
    return scalars if len(sweep.metrics) < len(METRICS) else []


def _fitting(console: Console, names: list[str], table: Callable[[list[str]], Table]) -> list[str]:
    """The first of the metrics, as many as a table has room for, and at least one."""
    without_end = console.options.update(width=10 * console.width)
    for count in range(len(names), 1, -1):
        if console.measure(table(names[:count]), options=without_end).maximum <= console.width:
            return names[:count]
    return names[:1]


def _table(sweep: Sweep, points: list[dict[str, Any]], names: list[str], grid: Grid | None = None) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for key in short_keys(sweep.axes):
        table.add_column(Text(key), justify="right")
    for name in names:
        table.add_column(METRICS[name].short or METRICS[name].label, justify="right")
    if grid:
        table.add_column("verdict")
    for place, point in enumerate(points[:MOST_ROWS]):
        texts = values_of(sweep, point)
        said = [_said(grid, place)] if grid else []
        table.add_row(*map(Text, texts), *(_cell(point["summary"][name], METRICS[name].unit) for name in names), *said)
    return table


def _said(grid: Grid, place: int) -> str:
    """The verdict on a point; of those that hold, which are the best."""
    return grid.judgements[place].verdict + (", best" if grid.best != grid.holding and place in grid.best else "")


def _columns(sweep: Sweep, points: list[dict[str, Any]]) -> list[str]:
    asked = [name for name in main("column") if name in sweep.metrics]
    return [name for name in asked if any(point["summary"][name]["n"] for point in points)][:MOST_COLUMNS]


def _cell(found: Mapping[str, Any], unit: str) -> str:
    """`94.1 ± 0.2 Mb/s`; without an interval the mean alone."""
    return numbers.estimate(found["mean"], found["ci95_low"], found["ci95_high"], unit)


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"
