"""The table of `ackclock compare`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.table import Table
from rich.text import Text

from ackclock.cli.terminal import output
from ackclock.experiments.comparison import Comparison
from ackclock.figures import numbers, summary_text
from ackclock.metrics import METRICS, main
from ackclock.metrics.protocols import PHASE


def print_comparison(comparison: Comparison) -> None:
    """Print the main metrics: two engines in columns, more in rows; with the difference from the first."""
    console = output.console()
    console.print(Text(comparison.name, style="bold"))
    console.print(_runs(comparison))
    make = _table_by_metric if len(comparison.engines) + len(comparison.unsupported) == 2 else _table_by_engine
    metrics = comparison.as_dict()["metrics"]
    console.print(make(comparison, {name: metrics[name] for name in main("table") if name in metrics}))
    for engine, effects in comparison.as_dict().get(PHASE, {}).items():
        console.print(f"{engine}: {summary_text.phase_sentence(effects)}", soft_wrap=True, markup=False)
    for reasons in comparison.unsupported.values():
        for reason in reasons:
            console.print(str(reason), soft_wrap=True, markup=False)


def _table_by_metric(comparison: Comparison, metrics: Mapping[str, Any]) -> Table:
    """Return a row for each metric, a column for each engine."""
    first, *others = comparison.engines
    headings = [first, *(text for other in others for text in (other, f"{other} − {first}")), *comparison.unsupported]
    table = output.table("metric", *headings)
    for name, by_engine in metrics.items():
        cells = _cells(by_engine, METRICS[name].unit)
        table.add_row(METRICS[name].label, *cells, *[numbers.NOTHING] * len(comparison.unsupported))
    return table


def _table_by_engine(comparison: Comparison, metrics: Mapping[str, Any]) -> Table:
    """Return a row for each metric and engine."""
    table = output.table("metric", "engine", "mean", f"difference from {comparison.engines[0]}")
    for name, by_engine in metrics.items():
        label, unit = METRICS[name].label, METRICS[name].unit
        for engine, row in by_engine.items():
            first = engine == comparison.engines[0]
            table.add_row(
                label if first else "", engine, output.estimate(row, unit), "" if first else _difference(row, unit)
            )
        for engine in comparison.unsupported:
            table.add_row("", engine, numbers.NOTHING, numbers.NOTHING)
    return table


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
    cells = [output.estimate(first, unit)]
    for row in others:
        cells += [output.estimate(row, unit), _difference(row, unit)]
    return cells


def _difference(row: Mapping[str, Any], unit: str) -> str:
    difference, low = row["difference"], row["difference_low"]
    if difference is None or low is None:
        return numbers.signed(difference, unit)
    return numbers.signed(difference, unit, difference - low)
