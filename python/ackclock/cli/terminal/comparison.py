"""The table of `ackclock compare`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ackclock.experiments.compare.compare import Comparison
from ackclock.figures import numbers, summary_text
from ackclock.metrics import METRICS, main
from ackclock.metrics.protocols import PHASE


def print_comparison(comparison: Comparison) -> None:
    """Print the main metrics: two engines in columns, more in rows; with the difference from the first."""
    console = Console(emoji=False, highlight=False)
    console.print(Text(comparison.name, style="bold"))
    console.print(_runs(comparison))
    table = Table(box=None, pad_edge=False, header_style="bold")
    fill = _add_columns if len(comparison.engines) + len(comparison.unsupported) == 2 else _add_rows
    fill(table, comparison, _main(comparison))
    console.print(table)
    for engine, effects in comparison.as_dict().get(PHASE, {}).items():
        console.print(f"{engine}: {summary_text.phase_sentence(effects)}", soft_wrap=True, markup=False)
    for reasons in comparison.unsupported.values():
        for reason in reasons:
            console.print(str(reason), soft_wrap=True, markup=False)


def _main(comparison: Comparison) -> dict[str, Any]:
    """Return the main metrics in their order, each by engine."""
    metrics = comparison.as_dict()["metrics"]
    return {name: metrics[name] for name in main("table") if name in metrics}


def _add_columns(table: Table, comparison: Comparison, metrics: Mapping[str, Any]) -> None:
    """Add a row for each metric, a column for each engine."""
    first, *others = comparison.engines
    headings = [first, *(text for other in others for text in (other, f"{other} − {first}")), *comparison.unsupported]
    _add_headings(table, "metric", *headings)
    for name, by_engine in metrics.items():
        cells = _cells(by_engine, METRICS[name].unit)
        table.add_row(METRICS[name].label, *cells, *[numbers.NOTHING] * len(comparison.unsupported))


def _add_rows(table: Table, comparison: Comparison, metrics: Mapping[str, Any]) -> None:
    """Add a row for each metric and engine."""
    _add_headings(table, "metric", "engine", "mean", f"difference from {comparison.engines[0]}")
    for name, by_engine in metrics.items():
        label, unit = METRICS[name].label, METRICS[name].unit
        for engine, row in by_engine.items():
            first = engine == comparison.engines[0]
            table.add_row(label if first else "", engine, _mean(row, unit), "" if first else _difference(row, unit))
        for engine in comparison.unsupported:
            table.add_row("", engine, numbers.NOTHING, numbers.NOTHING)


def _add_headings(table: Table, metric: str, *headings: str) -> None:
    table.add_column(metric)
    for heading in headings:
        table.add_column(heading, justify="right")


def _runs(comparison: Comparison) -> str:
    """Return the number of runs of each engine."""
    counts = [
        f"{engine}: {_run_count(len(comparison.data[engine].runs), engine in comparison.exact)}"
        for engine in comparison.engines
    ]
    return f"Means ± half their 95 % intervals; {'; '.join(counts)}"


def _run_count(runs: int, is_deterministic: bool) -> str:
    if is_deterministic:
        return "deterministic, one run"
    return f"{runs} runs" if runs > 1 else "one run, no interval"


def _cells(by_engine: Mapping[str, Mapping[str, Any]], unit: str) -> list[str]:
    (first, *others) = by_engine.values()
    cells = [_mean(first, unit)]
    for row in others:
        cells += [_mean(row, unit), _difference(row, unit)]
    return cells


def _mean(row: Mapping[str, Any], unit: str) -> str:
    return numbers.estimate(row["mean"], row["ci95_low"], row["ci95_high"], unit)


def _difference(row: Mapping[str, Any], unit: str) -> str:
    difference, low = row["difference"], row["difference_low"]
    if difference is None or low is None:
        return numbers.signed(difference, unit)
    return numbers.signed(difference, unit, difference - low)
