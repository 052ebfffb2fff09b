"""Representation of a dataset in three lines, and as a table for notebooks."""

from __future__ import annotations

from collections.abc import Iterator

from ackclock import metrics, repr_format
from ackclock.errors import InputError
from ackclock.metrics import METRICS
from ackclock.metrics.protocols import Recorded

#: With at most so many rows, metrics are quick enough to be shown unasked: about a second.
MAX_ROWS = 1_000_000


def title(data: Recorded) -> str:
    """Return the heading of a dataset."""
    engine = f"engine {data.manifest['engine']}, " if data.manifest.get("engine") else ""
    seeds = [run["seed"] for run in data.runs if run.get("seed") is not None]
    of = f" (seed{'s' * (len(seeds) > 1)} {repr_format.listed(seeds)})" if seeds else ""
    return f"Dataset{_name(data)}: {engine}{repr_format.counted(len(data.runs), 'run')}{of}"


def _name(data: Recorded) -> str:
    name = data.plan.name or data.manifest.get("name")
    return f' "{name}"' if name else " without a name"


def part(data: Recorded) -> str:
    """Return the length of the runs."""
    if data.plan.duration_s is None:
        return "measured, not planned"
    return repr_format.measured(data.plan.duration_s, data.plan.warmup_s)


def counts(data: Recorded) -> dict[str, int]:
    """Return the tables that have rows, and how many."""
    result = {table: sum(piece.height for piece in pieces) for table, pieces in data.parts.items()}
    return {table: height for table, height in result.items() if height}


def lines(data: Recorded) -> str:
    """Return what `repr` gives; of a damaged result as well."""
    try:
        summary = [title(data), part(data), ", ".join(f"{table} {rows:,}" for table, rows in counts(data).items())]
    except InputError as error:
        return repr_format.lines("Dataset", "damaged", str(error))
    return repr_format.lines(*summary[:2], f"rows: {summary[2] or 'none'}")


def html(data: Recorded) -> str:
    """Return the same with the main metrics, for a notebook."""
    summary = lines(data).split("\n")
    try:
        rows = list(_metrics(data)) if sum(counts(data).values()) <= MAX_ROWS else []
    except InputError:
        rows = []
    return repr_format.html(summary[0], summary[1:], ("metric", "mean", "95 % interval", "runs") if rows else (), rows)


def _metrics(data: Recorded) -> Iterator[tuple[str, str, str, str]]:
    views = list(metrics.runs(data))
    for name in metrics.main("table"):
        values = [metrics.value(view, name) for view in views]
        result = metrics.summarise([value for value in values if isinstance(value, float)], 0.0, METRICS[name].maximum)
        if metrics.is_shown(name, [result.mean]):
            ends = (result.mean, result.ci95_low, result.ci95_high)
            mean, interval = repr_format.interval(*ends, METRICS[name].unit)
            yield METRICS[name].label, mean, interval, str(result.n)
