"""The console and the tables that all commands print with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table

from ackclock.figures import numbers


def console(*, err: bool = False, markup: bool = True) -> Console:
    """Return a console on standard output, or standard error, that prints text as it is."""
    return Console(emoji=False, highlight=False, stderr=err, markup=markup)


def table(*headings: Any, left: int = 1, no_wrap: bool = False, **options: Any) -> Table:
    """Return a table without borders. The first columns, `left` of them, are left-aligned, the others right-aligned."""
    made = Table(**{"box": None, "pad_edge": False, "header_style": "bold", **options})
    for number, heading in enumerate(headings):
        made.add_column(heading, justify="left" if number < left else "right", no_wrap=no_wrap)
    return made


def estimate(summary: Mapping[str, Any], unit: str) -> str:
    """Return the mean of a metric with half its interval, if there is one: `94.1 ± 0.2 Mb/s`."""
    return numbers.estimate(summary["mean"], summary["ci95_low"], summary["ci95_high"], unit)
