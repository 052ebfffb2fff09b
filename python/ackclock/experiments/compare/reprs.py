"""A comparison in three lines, and as a table for notebooks. It is given comparisons, and does not know their class."""

from __future__ import annotations

from typing import Any

from ackclock import repr_format
from ackclock.figures import numbers
from ackclock.metrics import METRICS, main


def lines(found: Any) -> str:
    """Return the lines of `repr`."""
    runs = "; ".join(f"{name}: {repr_format.counted(len(data.runs), 'run')}" for name, data in found.data.items())
    note = "differences are to the first"
    if found.unsupported:
        note = f"cannot run it: {repr_format.listed(found.unsupported)}"
    return repr_format.lines(f'Comparison "{found.name}": {repr_format.listed(found.engines)}', runs, note)


def html(found: Any) -> str:
    """Return HTML for a notebook: the main metrics by engine."""
    rows = [
        [METRICS[name].label, *(_cell(row) for row in found.table.filter(metric=name).iter_rows(named=True))]
        for name in main("table")
        if found.table.filter(metric=name).height
    ]
    return repr_format.html(*_heading(found), ["metric", *found.engines], rows)


def _heading(found: Any) -> tuple[str, list[str]]:
    first, *others = lines(found).split("\n")
    return first, others


def _cell(row: Any) -> str:
    if row["mean"] is None:
        return numbers.NOTHING
    return numbers.estimate(row["mean"], row["ci95_low"], row["ci95_high"], METRICS[row["metric"]].unit)
