"""The report's tables: metrics with their intervals, and flows; and the data of all runs behind them.

The data are gathered from one run at a time: only one run's tables are in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from ackclock import metrics
from ackclock.errors import InputError
from ackclock.figures import numbers, result_figures, summary_text
from ackclock.figures.result_figures import Distributions
from ackclock.metrics import METRICS, RunView, Summary, throughput
from ackclock.metrics.metric import Value
from ackclock.metrics.protocols import Recorded
from ackclock.metrics.view import Array, group_name

#: Heads of the flows' table after the flow, its group and its CCA → column, unit and significant digits.
HEADS = {
    "Base RTT": ("base_rtt_s", "s", 3),
    "Start": ("start_s", "s", 3),
    "Goodput": ("goodput_bps", "bit/s", 3),
    "Share": ("share", "share", 3),
    "Retransmitted": ("retransmitted", "share", 2),
    "Timeouts": ("measured_timeouts", "", 3),
    "Size": ("size_bytes", "bytes", 3),
    "Completion": ("fct_s", "s", 3),
}

#: Columns that are left out where they say nothing: the group says nothing if it is named after its CCA.
OPTIONAL = ("Group", "Size", "Completion")

#: Flows that the report's table shows: those with the smallest numbers.
MAX_FLOWS = 100

#: Elements of a long array that are processed at a time.
PART = 2**20

#: Columns of the dataset's `flows` in the report's table.
COLUMNS = (
    "flow",
    "group",
    "congestion",
    "base_rtt_s",
    "start_s",
    "size_bytes",
    "fct_s",
    "measured_retransmissions",
    "measured_sent_packets",
    "measured_timeouts",
)

#: Further columns: goodput, and the share of all the data (not of UDP flows).
RATES = {"flow": pl.UInt32, "goodput_bps": pl.Float64, "share": pl.Float64}


@dataclass(frozen=True, slots=True)
class Runs:
    """The runs of a result: each one's metrics and distributions; the first flows; sums over all flows.

    `flows` has the first flows of each run, `rates` what they got on average; `flow_counts` is by run, `flow_count` of
    different numbers; `range_bps` is from the least to the most
    that any TCP flow got on average (None: nothing known).
    """

    data: Recorded
    names: tuple[str, ...]
    values: tuple[Mapping[str, Value], ...]
    distributions: tuple[tuple[str, Distributions], ...]
    flows: pl.DataFrame
    rates: pl.DataFrame
    flow_counts: tuple[int, ...]
    flow_count: int
    range_bps: tuple[float | None, float | None]

    @property
    def summaries(self) -> Mapping[str, Summary]:
        """Return each metric over the runs."""
        return metrics.summary([dict(values) for values in self.values])


def gathered(data: Recorded) -> tuple[RunView, Runs]:
    """Return the first run, which is drawn, and the data of all. Raises `InputError` for a result without runs."""
    first: RunView | None = None
    names, values, result, counts, flows, rates, goodputs = [], [], [], [], [], [], _Means()
    for view in metrics.runs(data):
        first = first or view
        names.append(view.name)
        values.append(metrics.of_run(view))
        result.append((view.name, result_figures.distributions(view)))
        counts.append(sum(block.size for block in view.rows("flows").blocks("flow")))
        flows += _first_flows(view, goodputs)
        rates += _first_rates(view, goodputs)
    if first is None:
        raise InputError("the result holds no runs to report on")
    means = pl.concat(rates).group_by("flow").agg(pl.col("goodput_bps", "share").mean()).sort("flow")
    runs = Runs(
        data,
        tuple(names),
        tuple(values),
        tuple(result),
        pl.concat(flows),
        means,
        tuple(counts),
        goodputs.numbers,
        goodputs.range,
    )
    return first, runs


def _first_flows(view: RunView, numbered: _Means) -> list[pl.DataFrame]:
    """Return the first TCP flows, and the first UDP flows, of a run."""
    result = pl.DataFrame()
    for block in view.rows("flows").blocks(*COLUMNS):
        numbered.register(block["flow"])
        result = pl.concat([result, block.frame.select(COLUMNS)], how="vertical" if result.width else "diagonal")
        result = result.sort("flow").head(MAX_FLOWS)
    numbered.register(view.datagrams["flow"].to_numpy())
    others = view.datagrams.select(COLUMNS).head(MAX_FLOWS)
    return [result, others] if result.width else [others]


def _first_rates(view: RunView, goodputs: _Means) -> list[pl.DataFrame]:
    """Return goodput and share of the first TCP flows, and goodput of the first UDP flows."""
    udp = pl.DataFrame({"flow": view.datagrams["flow"], "goodput_bps": throughput.datagram_rates_bps(view)})
    result = [udp.head(MAX_FLOWS).with_columns(pl.lit(None, dtype=pl.Float64).alias("share"))]
    rates, data = view.cached(throughput.active_rates_bps), throughput.flow_rates_bps(view)
    if rates is not None and data is not None:
        flows = throughput.present_flows(view)
        first = _lowest(flows, MAX_FLOWS)
        share = data[first] / (data.sum() or 1.0)
        del data  # there may be ten million
        goodputs.add(flows, rates)
        result.append(pl.DataFrame({"flow": flows[first], "goodput_bps": rates[first], "share": share}, schema=RATES))
    return result


def _lowest(numbers: npt.NDArray[np.uint32], count: int) -> npt.NDArray[np.intp]:
    """Return the places of the lowest numbers, at most so many, in the order of the numbers."""
    if numbers.size > count:
        few = np.flatnonzero(numbers <= np.partition(numbers, count - 1)[count - 1])
    else:
        few = np.arange(numbers.size)
    return few[np.argsort(numbers[few], kind="stable")][:count]


class _Means:
    """Means of numbered values over runs."""

    def __init__(self) -> None:
        self._registered = np.zeros(0, dtype=bool)
        self._sums = np.zeros(0)
        self._counts = np.zeros(0, dtype=np.uint32)

    def register(self, numbers: npt.NDArray[np.uint32]) -> None:
        """Register numbers, each once."""
        self._registered = _grown(self._registered, numbers)
        self._registered[numbers] = True

    def add(self, numbers: npt.NDArray[np.uint32], values: Array) -> None:
        """Add a run's values."""
        self._sums, self._counts = _grown(self._sums, numbers), _grown(self._counts, numbers)
        for part in _parts(numbers.size):
            self._sums[numbers[part]] += values[part]
            self._counts[numbers[part]] += 1

    @property
    def numbers(self) -> int:
        """Return how many different numbers there were."""
        return int(self._registered.sum())

    @property
    def range(self) -> tuple[float | None, float | None]:
        """Return the smallest and the largest of the means."""
        lowest, highest = np.inf, -np.inf
        for part in _parts(self._counts.size):
            valid = self._counts[part] > 0
            means = self._sums[part][valid] / self._counts[part][valid]
            lowest, highest = min(lowest, means.min(initial=np.inf)), max(highest, means.max(initial=-np.inf))
        return (float(lowest), float(highest)) if lowest <= highest else (None, None)


def _parts(size: int) -> Iterator[slice]:
    """Yield slices of an array, so that temporary arrays stay small."""
    return (slice(first, first + PART) for first in range(0, size, PART))


def _grown(array: npt.NDArray, numbers: npt.NDArray[np.uint32]) -> npt.NDArray:  # type: ignore[type-arg]
    more = int(numbers.max(initial=0)) + 1 - array.size if numbers.size else 0
    return np.concatenate([array, np.zeros(more, dtype=array.dtype)]) if more > 0 else array


@dataclass(frozen=True, slots=True)
class MetricRow:
    """A metric's name, label and definition, with (mean, interval, values by run) for each result."""

    is_main: bool
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
    rows, main_metrics = [], metrics.main("table")
    competing = any(summary["min_group_share"].n for summary in summaries)
    for name, metric in METRICS.items():
        if metric.per_flow:
            continue
        if any(summary[name].n for summary in summaries):
            cells = (
                _cell(summary[name], metric.unit, [run.get(name) for run in values])
                for summary, values in zip(summaries, runs, strict=True)
            )
            label = summary_text.metric_label(name, competing=competing)
            is_main = name in main_metrics and metrics.is_shown(name, [summary[name].mean for summary in summaries])
            rows.append(MetricRow(is_main, name, label, metric.definition, tuple(cells)))
    return rows


def _cell(summary: Summary, unit: str, values: Sequence[Value]) -> tuple[str, str, str]:
    mean, interval = numbers.interval(summary.mean, summary.ci95_low, summary.ci95_high, unit)
    if summary.n < len(values) or summary.n == 1:
        interval = f"{interval if summary.n > 1 else ''} n = {summary.n}".strip()
    each = ", ".join(numbers.value(value if isinstance(value, float) else None, unit, 4) for value in values)
    return mean, interval, each


def flow_table(runs: Runs) -> FlowTable:
    """Return the first flows with their means over the runs."""
    share = pl.col("measured_retransmissions").sum() / pl.col("measured_sent_packets").sum()
    counted = pl.col("measured_retransmissions").count() > 0
    means = runs.flows.group_by("flow").agg(
        pl.col("group", "congestion").first(),
        pl.col("base_rtt_s", "start_s", "size_bytes", "fct_s", "measured_timeouts").mean(),
        pl.when(counted).then(share.fill_nan(None)).alias("retransmitted"),
    )
    joined = means.join(runs.rates, on="flow", how="left").sort("flow").head(MAX_FLOWS)
    heads, rows = ["Flow", "Group", "Congestion control", *HEADS], []
    for row in joined.iter_rows(named=True):
        cells = (numbers.value(row[column], unit, digits) for column, unit, digits in HEADS.values())
        rows.append((str(row["flow"]), group_name(row, runs.data.plan), str(row["congestion"]), *cells))
    used = [n for n, head in enumerate(heads) if head not in OPTIONAL or _adds_information(n, rows)]
    return FlowTable(tuple(heads[n] for n in used), tuple(tuple(row[n] for n in used) for row in rows), runs.flow_count)


def _adds_information(column: int, rows: Sequence[Sequence[str]]) -> bool:
    """Return True if an optional column adds something to the column of CCAs."""
    return any(row[column] not in (numbers.NOTHING, row[2]) for row in rows)
