"""Response times: completion times by size, for each `[[flows]]` and `[[traffic]]` entry.

Braud 2016 calls it the conditional response time (figures 7-5 and 7-7) and warns of its right end: the longest
transfers do not finish while one measures, and those that do are the lucky ones (section 7.4.1). So each row shows how
many did not, and gives the Kaplan–Meier mean beside the plain one. In captures a connection that is still open stands
with the size that was delivered so far: by size it may stand too low, by group it makes no difference.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from ackclock.input.arguments import one_of
from ackclock.metrics import survival
from ackclock.metrics.completion import Transfers, transfers, transfers_in_blocks, watched
from ackclock.metrics.protocols import Recorded
from ackclock.metrics.rows import Array
from ackclock.metrics.summary import Summary, of_sums, summarise
from ackclock.metrics.view import RunView, group_name, runs
from ackclock.partial_plan import PartialPlan

#: Up to this many different sizes have a row each; more are put into octaves.
MAX_SIZES = 16

#: Groupings of the rows.
BY = ("size", "group")

SCHEMA = {
    "group": pl.UInt32,
    "name": pl.String,
    "size_low_bytes": pl.UInt64,
    "size_high_bytes": pl.UInt64,
    "n": pl.Int64,
    "unfinished": pl.Int64,
    "mean_s": pl.Float64,
    "ci95_low_s": pl.Float64,
    "ci95_high_s": pl.Float64,
    "median_s": pl.Float64,
    "p95_s": pl.Float64,
    "km_mean_s": pl.Float64,
}


def response_times(data: Recorded, by: str = "size", between: tuple[float, float] | None = None) -> pl.DataFrame:
    """Return completion times of the transfers begun in the measured part, by group and (by default) size.

    A row has the smallest and the largest size in its bin: each size its own bin up to 16 sizes in all, else octaves,
    [2^k, 2^(k+1)) bytes. `n` transfers were finished, `unfinished` were not; mean, median and 95th percentile are of
    those finished, `km_mean_s` is the restricted mean that counts the others as far as they were watched (null if none
    was finished). All runs together.

    The interval is Student's: with several runs over the runs' means, the mean being theirs; with one run over its
    transfers, which takes them for independent. They share a queue, so that interval is too narrow. `between` looks at
    a part of each run (seconds). Raises `InputError` for another `by`.
    """
    one_of(*BY)("by", by)
    return of_views(list(runs(data, between)), by)


def of_views(views: Sequence[RunView], by: str = "size") -> pl.DataFrame:
    """Return `response_times` of these runs."""
    result = [view.cached(transfers).with_columns(pl.lit(number).alias("run")) for number, view in enumerate(views)]
    if not result:
        return pl.DataFrame(schema=SCHEMA)
    every = _binned(pl.concat(result)) if by == "size" else pl.concat(result).with_columns(pl.lit(0).alias("bin"))
    cells = every.sort("group", "bin").partition_by("group", "bin", maintain_order=True) if every.height else []
    return pl.DataFrame([_row(cell, views[0].plan, len(views)) for cell in cells], schema=SCHEMA)


def _binned(result: pl.DataFrame) -> pl.DataFrame:
    sizes = pl.col("size_bytes").cast(pl.Float64)
    if result["size_bytes"].n_unique() <= MAX_SIZES:
        return result.with_columns(sizes.alias("bin"))
    return result.with_columns(sizes.clip(1, None).log(2).add(1e-9).floor().alias("bin"))


def _row(cell: pl.DataFrame, plan: PartialPlan, run_count: int) -> Mapping[str, Any]:
    done, first = cell.filter("finished"), cell.row(0, named=True)
    times_s, result = done["time_s"], _mean(done, run_count)
    return {
        "group": first["group"],
        "name": group_name(first, plan),
        "size_low_bytes": cell["size_bytes"].min(),
        "size_high_bytes": cell["size_bytes"].max(),
        "n": done.height,
        "unfinished": cell.height - done.height,
        "mean_s": result.mean,
        "ci95_low_s": result.ci95_low,
        "ci95_high_s": result.ci95_high,
        "median_s": times_s.median(),
        "p95_s": times_s.quantile(0.95, interpolation="linear"),
        "km_mean_s": survival.restricted_mean(lambda: [watched(cell)]) if done.height else None,
    }


def _mean(done: pl.DataFrame, run_count: int) -> Summary:
    if run_count == 1:
        return summarise(done["time_s"].to_list(), minimum=0.0)
    return summarise(done.group_by("run").agg(pl.col("time_s").mean()).sort("run")["time_s"].to_list(), minimum=0.0)


def response_means(data: Recorded) -> pl.DataFrame:
    """Return `response_times` by size, of transfers of known size; quantile columns are null."""
    is_few = len(_sizes(data)) <= MAX_SIZES
    cells: dict[tuple[int, float], _Cell] = {}
    labels: dict[int, str] = {}
    count = 0
    for view in runs(data):
        count += 1
        labels |= _labels(view)
        for result in transfers_in_blocks(view):
            for key, chosen in _cells(result, is_few=is_few):
                cells.setdefault(key, _Cell()).add(view.run, result, chosen)
    rows = [
        cell.row(key[0], labels.get(key[0], ""), several=count > 1)
        for key, cell in sorted(cells.items(), key=lambda item: item[0])
    ]
    return pl.DataFrame(rows, schema=SCHEMA)


def _sizes(data: Recorded) -> set[float | None]:
    """Return the distinct sizes (None: unknown), or more of them than have a row each."""
    sizes: set[float | None] = set()
    for view in runs(data):
        for result in transfers_in_blocks(view):
            sizes |= {None if size != size else size for size in np.unique(result.sizes_bytes).tolist()}  # noqa: PLR0124
            if len(sizes) > MAX_SIZES:
                return sizes
    return sizes


def _labels(view: RunView) -> dict[int, str]:
    labels: dict[int, str] = {}
    for block in view.rows("flows").blocks("group", "congestion"):
        for row in block.frame.select("group", "congestion").unique("group", maintain_order=True).iter_rows(named=True):
            labels.setdefault(int(row["group"]), group_name(row, view.plan))
    return labels


def _cells(result: Transfers, *, is_few: bool) -> Iterator[tuple[tuple[int, float], npt.NDArray[np.intp]]]:
    """Yield the transfers of each group and bin: a size, or an octave."""
    sizes = result.sizes_bytes
    bins = sizes if is_few else np.floor(np.log2(np.maximum(sizes, 1.0)) + 1e-9)
    valid = np.flatnonzero(~np.isnan(sizes))
    order = valid[np.lexsort((bins[valid], result.groups[valid]))]
    groups, ordered = result.groups[order], bins[order]
    changes = (np.diff(groups) != 0) | (np.diff(ordered) != 0) if order.size else np.empty(0, dtype=bool)
    for chosen in np.split(order, np.flatnonzero(changes) + 1):
        if chosen.size:
            yield (int(result.groups[chosen[0]]), float(bins[chosen[0]])), chosen


@dataclass
class _Cell:
    """The transfers of a group and a bin: their sizes, and for each run its finished ones."""

    low_bytes: float = np.inf
    high_bytes: float = 0.0
    unfinished: int = 0
    finished: dict[int, _Sums] = field(default_factory=dict)

    def add(self, run: int, result: Transfers, chosen: npt.NDArray[np.intp]) -> None:
        sizes, done = result.sizes_bytes[chosen], result.finished[chosen]
        self.low_bytes, self.high_bytes = min(self.low_bytes, sizes.min()), max(self.high_bytes, sizes.max())
        self.unfinished += int((~done).sum())
        if done.any():
            self.finished.setdefault(run, _Sums()).add(result.times_s[chosen][done])

    def row(self, group: int, label: str, *, several: bool) -> Mapping[str, Any]:
        """Return a row of `response_times`."""
        sums = list(self.finished.values())
        result = summarise([one.mean for one in sums], minimum=0.0) if several else _summary(sums)
        return {
            "group": group,
            "name": label,
            "size_low_bytes": int(self.low_bytes),
            "size_high_bytes": int(self.high_bytes),
            "n": sum(one.n for one in sums),
            "unfinished": self.unfinished,
            "mean_s": result.mean,
            "ci95_low_s": result.ci95_low,
            "ci95_high_s": result.ci95_high,
        }


@dataclass
class _Sums:
    """Count, mean, and sum of squared deviations of values (Chan et al. 1979)."""

    n: int = 0
    mean: float = 0.0
    squares: float = 0.0

    def add(self, values: Array) -> None:
        n, mean = self.n + values.size, float(values.mean())
        self.squares += float(((values - mean) ** 2).sum()) + (mean - self.mean) ** 2 * self.n * values.size / n
        self.mean += (mean - self.mean) * values.size / n
        self.n = n


def _summary(sums: list[_Sums]) -> Summary:
    return of_sums(sums[0].n, sums[0].mean, sums[0].squares, minimum=0.0) if sums else summarise([])
