"""The report's tables: metrics with their intervals, and flows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from ackclock.figures import numbers
from ackclock.figures.report.runs import MAX_FLOWS, Runs
from ackclock.metrics import METRICS, Summary
from ackclock.metrics.metric import Value
from ackclock.metrics.view import group_label
from ackclock.partial_plan import PartialPlan

#: Heads of the flows' table.
HEADS = (
    "Flow",
    "Group",
    "Congestion control",
    "Base RTT",
    "Start",
    "Goodput",
    "Share",
    "Retransmitted",
    "Timeouts",
    "Size",
    "Completion",
)

#: Columns that are left out where they say nothing: the group (if named after its control), size and completion.
OPTIONAL = (1, 9, 10)


@dataclass(frozen=True, slots=True)
class MetricRow:
    """A metric's name, label and definition, with (mean, interval, values by run) for each result."""

    name: str
    label: str
    definition: str
    cells: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True, slots=True)
class FlowTable:
    """Some flows, as text, and how many there are."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    total: int


def metric_rows(
    summaries: Sequence[Mapping[str, Summary]], runs: Sequence[Sequence[Mapping[str, Value]]]
) -> list[MetricRow]:
    """Return the metrics that at least one result has."""
    known = [name for name, metric in METRICS.items() if not metric.per_flow and any(s[name].n for s in summaries)]
    return [_metric_row(name, summaries, runs) for name in known]


def missing(summaries: Sequence[Mapping[str, Summary]]) -> list[str]:
    """Return labels of the metrics that no result has."""
    return [
        metric.label
        for name, metric in METRICS.items()
        if not metric.per_flow and not any(s[name].n for s in summaries)
    ]


def _metric_row(
    name: str, summaries: Sequence[Mapping[str, Summary]], runs: Sequence[Sequence[Mapping[str, Value]]]
) -> MetricRow:
    metric = METRICS[name]
    cells = (
        _cell(summary[name], metric.unit, [run.get(name) for run in values])
        for summary, values in zip(summaries, runs, strict=True)
    )
    return MetricRow(name, metric.label, metric.definition, tuple(cells))


def _cell(summary: Summary, unit: str, values: Sequence[Value]) -> tuple[str, str, str]:
    mean, interval = numbers.interval(summary.mean, summary.ci95_low, summary.ci95_high, unit)
    if summary.n < len(values) or summary.n == 1:
        interval = f"{interval if summary.n > 1 else ''} n = {summary.n}".strip()
    each = ", ".join(numbers.value(value if isinstance(value, float) else None, unit, 4) for value in values)
    return mean, interval, each


def flow_table(runs: Runs) -> FlowTable:
    """Return the first flows with their means over the runs."""
    every, rates = runs.flows, runs.rates
    again = pl.col("measured_retransmissions").sum() / pl.col("measured_sent_packets").sum()
    counted = pl.col("measured_retransmissions").count() > 0
    means = every.group_by("flow").agg(
        pl.col("group", "congestion").first(),
        pl.col("base_rtt_s", "start_s", "size_bytes", "fct_s", "measured_timeouts").mean(),
        pl.when(counted).then(again.fill_nan(None)).alias("again"),
    )
    joined = means.join(rates, on="flow", how="left").sort("flow")
    rows = tuple(_flow_row(row, runs.data.plan) for row in joined.head(MAX_FLOWS).iter_rows(named=True))
    used = [n for n in range(len(HEADS)) if n not in OPTIONAL or _adds_information(n, rows)]
    return FlowTable(tuple(HEADS[n] for n in used), tuple(tuple(row[n] for n in used) for row in rows), runs.flow_count)


def _adds_information(column: int, rows: Sequence[Sequence[str]]) -> bool:
    """Return True if an optional column adds something to the column of CCAs."""
    return any(row[column] not in (numbers.NOTHING, row[2]) for row in rows)


def _flow_row(row: Mapping[str, Any], plan: PartialPlan) -> tuple[str, ...]:
    return (
        str(row["flow"]),
        group_label(row, plan),
        str(row["congestion"]),
        numbers.value(row["base_rtt_s"], "s"),
        numbers.value(row["start_s"], "s"),
        numbers.value(row["goodput_bps"], "bit/s"),
        numbers.value(row["share"], "share"),
        numbers.value(row["again"], "share", 2),
        numbers.value(row["measured_timeouts"], ""),
        numbers.value(row["size_bytes"], "bytes"),
        numbers.value(row["fct_s"], "s"),
    )
