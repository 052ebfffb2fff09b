"""What `ackclock show` says of metrics."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ackclock.metrics import METRICS, Metric, full_name

#: The name that stands for all of them.
ALL = "metrics"

#: Units in words, where they are none of their own.
UNITS = {"": "a count", "1": "an index", "share": "a share, 0 to 1"}


def print_metrics(name: str) -> bool:
    """A metric, or all of them; whether it is one of these names."""
    console = Console(emoji=False, highlight=False, markup=False)
    if name == ALL:
        console.print(_table())
        console.print("\nackclock show NAME says what a metric is.")
    elif known := full_name(name):
        _print(console, METRICS[known])
    return name == ALL or full_name(name) is not None


def _table() -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("metric", "unit", "better", "what it is"):
        table.add_column(heading)
    for metric in METRICS.values():
        table.add_row(metric.name, metric.unit or "count", metric.better or "", metric.label)
    return table


def _print(console: Console, metric: Metric) -> None:
    each = ", for each flow" if metric.per_flow else ""
    console.print(Text(f"{metric.label} (metric: {metric.name})", style="bold"))
    better = f"; {metric.better} is better" if metric.better else ""
    console.print(f"{UNITS.get(metric.unit, f'in {metric.unit}')}{each}{better}\n\n{metric.definition}")
