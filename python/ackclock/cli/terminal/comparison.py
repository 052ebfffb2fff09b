"""The tables of `ackclock compare`: of engines, and of choices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from rich.table import Table
from rich.text import Text

from ackclock import repr_format
from ackclock.cli.terminal import output
from ackclock.experiments.choices import Choices, Harm, excludes_zero
from ackclock.experiments.comparison import Comparison
from ackclock.figures import numbers, summary_text
from ackclock.metrics import METRICS, Summary, is_shown, main, with_groups
from ackclock.metrics.protocols import PHASE

#: Heading of the table of harm, and the quantities in it.
HARM = (
    "Harm: the share of its goodput alone that a group loses to another, or of its loss and delay that is the other's "
    "doing (Ware et al. 2019)"
)
SHORT_HARM = {"goodput_bps": "goodput", "retransmission_rate": "loss", "delay_mean_s": "delay"}

#: The mark of a difference whose interval excludes 0, and what it means.
MARK, MARKED = "*", "* the 95 % interval of the difference excludes 0"

#: A metric's estimates by column: an engine or a choice.
_Columns: TypeAlias = Mapping[str, Mapping[str, Any]]


def print_comparison(comparison: Comparison) -> None:
    """Print the main metrics: two engines in columns, more in rows; with the difference from the first."""
    console = output.console()
    console.print(Text(comparison.name, style="bold"))
    console.print(_runs(comparison))
    make = _table_by_metric if len(comparison.engines) + len(comparison.unsupported) == 2 else _table_by_engine
    console.print(make(comparison, _shown(comparison.as_dict()["metrics"], comparison.is_single)))
    for engine, effects in comparison.as_dict().get(PHASE, {}).items():
        console.print(f"{engine}: {summary_text.phase_sentence(effects)}", soft_wrap=True)
    for reasons in comparison.unsupported.values():
        for reason in reasons:
            console.print(str(reason), soft_wrap=True)
    output.print_warnings(comparison.warnings)


def _shown(metrics: Mapping[str, _Columns], is_single: bool) -> dict[str, _Columns]:
    """Return the main metrics that have something to show, also by group; of a single flow none that needs several."""
    of_all = [name for name in main("table") if not (is_single and METRICS[name].of_several)]
    names = [name for name in with_groups(of_all, metrics) if name in metrics]
    rows = {name: metrics[name] for name in names}
    return {name: row for name, row in rows.items() if is_shown(name, [column["mean"] for column in row.values()])}


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
            table.add_row(label if first else "", engine, _estimate(row, unit), "" if first else _difference(row, unit))
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
    cells = [_estimate(first, unit)]
    for row in others:
        cells += [_estimate(row, unit), _difference(row, unit)]
    return cells


def _estimate(row: Mapping[str, Any], unit: str) -> str:
    return numbers.estimate_or_ends(row["mean"], row["ci95_low"], row["ci95_high"], unit)


def _difference(row: Mapping[str, Any], unit: str) -> str:
    difference, low = row["difference"], row["difference_low"]
    if difference is None or low is None:
        return numbers.signed(difference, unit)
    return numbers.signed(difference, unit, difference - low)


def print_choices(result: Choices) -> None:
    """Print the main metrics, a column for each choice; the paired differences to the first; the harm to others."""
    console = output.console()
    sweep, baseline = result.sweep, result.labels[0]
    console.print(Text(sweep.name, style="bold"))
    runs = repr_format.counted(max(point["n"] for point in sweep.points), "run")
    choices = repr_format.counted(len(result.labels), "choice")
    console.print(Text(f"{sweep.engine} engine, {choices} of {result.key}, {runs} each, with the same seeds"))
    if result.limits:
        console.print(Text(result.limits))
    rows = _shown(result.metrics, result.is_single)
    _print_columns(result.labels, lambda labels: _means(rows, labels))
    console.print(Text(f"Differences to {baseline}: means over pairs of runs with the same seed"))
    _print_columns(result.labels[1:], lambda labels: _differences(rows, labels))
    if result.harm:
        console.print(Text(HARM))
        console.print(_harm_table(result.harm))
    elif result.harm_unknown:
        console.print(Text(f"Harm to other flows is not reported: {result.harm_unknown}"))
    if any(point["n"] < 2 for point in sweep.points):
        console.print("One run has no interval; --repeats 5 makes five.")
    else:
        console.print(MARKED)
    for line in summary_text.phase_sentences(sweep):
        console.print(line)
    output.print_warnings(sweep.warnings)


def _print_columns(labels: Sequence[str], table: Callable[[Sequence[str]], Table]) -> None:
    """Print a table in as many parts as its columns need."""
    console = output.console()
    while labels:
        part = output.fitting(console, labels, table)
        console.print(table(part))
        labels = labels[len(part) :]


def _means(metrics: Mapping[str, Any], labels: Sequence[str]) -> Table:
    table = output.table("metric", *map(Text, labels))
    for name, row in _having(metrics, labels, "mean"):
        table.add_row(_short(name), *(_estimate(row[label], METRICS[name].unit) for label in labels))
    return table


def _differences(metrics: Mapping[str, Any], labels: Sequence[str]) -> Table:
    table = output.table("metric", *map(Text, labels))
    for name, row in _having(metrics, labels, "difference"):
        unit = METRICS[name].unit
        cells = (_marked(_difference(row[label], unit), row[label]["differs"]) for label in labels)
        table.add_row(_short(name), *cells)
    return table


def _having(metrics: Mapping[str, _Columns], labels: Sequence[str], key: str) -> Iterator[tuple[str, _Columns]]:
    """Yield the metrics with a value in some column: a group without a name may have one in a single choice."""
    for name, row in metrics.items():
        if any(row[label][key] is not None for label in labels):
            yield name, row


def _short(name: str) -> str:
    return METRICS[name].short or METRICS[name].label


def _marked(text: str, differs: bool | None) -> str:
    return f"{text} {MARK if differs else ' '}"


def _harm_table(harm: Sequence[Harm]) -> Table:
    table = output.table("choice", "group", "in", "harm to it", "more than its own kind", "harm by the others", left=3)
    for each in harm:
        more = "(its own kind)"
        if each.excess.n:
            difference = each.excess.as_dict()
            row = {"difference": difference["mean"], "difference_low": difference["ci95_low"]}
            more = _marked(_difference(row, "share"), excludes_zero(each.excess))
        table.add_row(
            Text(each.choice), Text(each.group), SHORT_HARM[each.metric], _share(each.done), more, _share(each.suffered)
        )
    return table


def _share(summary: Summary) -> str:
    return output.estimate(summary.as_dict(), "share")
