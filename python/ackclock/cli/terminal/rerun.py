"""What `ackclock rerun` prints of a result."""

from __future__ import annotations

from collections import Counter

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ackclock.bundles import verdict
from ackclock.bundles.rerun import Outcome
from ackclock.dataset.result_kind import Kind
from ackclock.figures import numbers
from ackclock.metrics import METRICS

#: The verdict of a whole result, in words.
SAID = {
    verdict.EQUAL: "not the same bytes, but every metric is the same",
    verdict.WITHIN: "not the same; no metric differs by more than chance",
    verdict.DIFFERS: "not the same: metrics differ",
}


def print_outcome(outcome: Outcome) -> None:
    """A line; and a table of the metrics if not all the bytes are the same."""
    console = Console(emoji=False, highlight=False)
    console.print(Text(f"{outcome.name}: {_said(outcome)}"), soft_wrap=True)
    for note in outcome.notes:
        console.print(Text(f"  {note}"), soft_wrap=True)
    if not outcome.same_bytes:
        console.print(_by_point(outcome) if outcome.kind is Kind.SWEEP else _by_metric(outcome))


def _said(outcome: Outcome) -> str:
    files = "1 file" if outcome.files == 1 else f"{outcome.files} files"
    return f"the same, byte for byte ({files})" if outcome.same_bytes else SAID[outcome.verdict]


def _by_metric(outcome: Outcome) -> Table:
    table = _table("metric", "given", "again", "verdict")
    for metric in outcome.metrics:
        known = METRICS[metric.name]
        label = f"{known.label} ({metric.where})" if metric.where else known.label
        table.add_row(label, *(_number(value, known.unit) for value in (metric.given, metric.again)), metric.verdict)
    return table


def _by_point(outcome: Outcome) -> Table:
    """Of a sweep's metrics at how many points they are the same."""
    verdicts = (verdict.EQUAL, verdict.WITHIN, verdict.DIFFERS)
    table = _table("metric", *(f"{word} at" for word in verdicts))
    for name, found in _counts(outcome).items():
        table.add_row(METRICS[name].label, *(f"{found[word]} points" if found[word] else "" for word in verdicts))
    return table


def _counts(outcome: Outcome) -> dict[str, Counter[str]]:
    """Metric → how often each verdict was passed on it."""
    counts: dict[str, Counter[str]] = {}
    for metric in outcome.metrics:
        counts.setdefault(metric.name, Counter())[metric.verdict] += 1
    return counts


def _table(first: str, *others: str) -> Table:
    table = Table(first, box=None, pad_edge=False, header_style="bold")
    for heading in others:
        table.add_column(heading, justify="right")
    return table


def _number(value: float | None, unit: str) -> str:
    return numbers.NOTHING if value is None else numbers.value(value, unit)
