"""Mean completion times by size, in memory that does not depend on the number of transfers.

What `response.response_times` gives without what needs all the times at once: median, 95th percentile, Kaplan–Meier.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from ackclock.metrics.completion import Transfers, transfers_in_blocks
from ackclock.metrics.protocols import Recorded
from ackclock.metrics.response import MAX_SIZES, SCHEMA
from ackclock.metrics.rows import Array
from ackclock.metrics.summary import Summary, of_sums, summarise
from ackclock.metrics.view import RunView, group_label, runs


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
            labels.setdefault(int(row["group"]), group_label(row, view.plan))
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
            "label": label,
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
