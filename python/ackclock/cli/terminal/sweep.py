"""The table of `ackclock sweep`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ackclock.campaigns.sweep.table import Sweep
from ackclock.metrics import METRICS, main
from ackclock.scenario.points import label, short_keys
from ackclock.views import numbers

#: Columns of metrics: the first for which there are values.
MOST_COLUMNS = 4

#: Points beyond this many are in the file only.
MOST_ROWS = 60


def print_sweep(sweep: Sweep) -> None:
    """A row for each point: the swept values and the means of the main metrics, with half their 95 % intervals.

    As many of the metrics as the terminal has room for.
    """
    console = Console(emoji=False, highlight=False)
    console.print(Text(sweep.name, style="bold"))
    points = sweep.points
    counts = {point["n"] for point in points}
    each = _counted(max(counts), "run") if len(counts) == 1 else f"{min(counts)} to {max(counts)} runs"
    console.print(f"{sweep.engine} engine, {_counted(len(points), 'point')}, {each} each")
    names = _columns(sweep, points)
    without_end = console.options.update(width=10 * console.width)
    while len(names) > 1 and console.measure(_table(sweep, points, names), options=without_end).maximum > console.width:
        names.pop()
    console.print(_table(sweep, points, names))
    if len(points) > MOST_ROWS:
        console.print(f"… and {_counted(len(points) - MOST_ROWS, 'more point')}: see points.parquet")


def _table(sweep: Sweep, points: list[dict[str, Any]], names: list[str]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for key in short_keys(sweep.axes):
        table.add_column(Text(key), justify="right")
    for name in names:
        table.add_column(METRICS[name].short or METRICS[name].label, justify="right")
    for point in points[:MOST_ROWS]:
        texts = [label(value) for value in point["values"].values()]
        table.add_row(*map(Text, texts), *(_cell(point["summary"][name], METRICS[name].unit) for name in names))
    return table


def _columns(sweep: Sweep, points: list[dict[str, Any]]) -> list[str]:
    asked = [name for name in sweep.metrics if not METRICS[name].per_flow]
    wanted = asked if len(asked) <= MOST_COLUMNS else [name for name in main("column") if name in asked]
    return [name for name in wanted if any(point["summary"][name]["n"] for point in points)][:MOST_COLUMNS]


def _cell(found: Mapping[str, Any], unit: str) -> str:
    """`94.1 ± 0.2 Mb/s`; without an interval the mean alone."""
    return numbers.estimate(found["mean"], found["ci95_low"], found["ci95_high"], unit)


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"
