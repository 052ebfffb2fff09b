"""Completion times of finite transfers, RFC 5166's throughput as the user sees it.

A run ends before its last transfers do. `fct_mean_s` and `fct_p95_s` leave those out, and since it is
the long ones that do not end, they are too small by some amount (Braud 2016 section 7.4.1). `unfinished` counts those
left out; `fct_km_mean_s` and `fct_km_median_s` count each for as long as it was watched.

A capture ends as a run does: of the connections that were opened in it, those that were not closed are unfinished. The
size of one is not known; what was delivered stands for it. Connections that began before the capture are left out.

`response_times` has them by size, or for each `[[flows]]` and `[[traffic]]` entry: Braud's conditional response time
(figures 7-5 and 7-7). Its rows show how many did not finish, and the Kaplan–Meier mean. A connection that is still open
at the end of a capture stands with the size that was delivered so far: by size it may stand too low, by group it makes
no difference.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from ackclock.input.arguments import one_of
from ackclock.metrics import quantiles
from ackclock.metrics.metric import Metric
from ackclock.metrics.protocols import Recorded
from ackclock.metrics.quantiles import quantile
from ackclock.metrics.summary import Summary, of_sums, summarise
from ackclock.metrics.view import Array, RunView, group_name, runs
from ackclock.partial_plan import PartialPlan


def fct_mean_s(view: RunView) -> float | None:
    """Mean completion time of the transfers that were completed in the measured part.

    From the SYN to the acknowledgement of the last byte at the sender; null if no transfer was completed. Transfers
    that were still under way at the end are not counted, which makes the mean too small: see `unfinished` and
    `fct_km_mean_s`. Source: RFC 5166 (throughput), Guillier 2008 (completion time T).
    """
    result = [(float(times_s.sum()), times_s.size) for times_s in _completions_s(view)]
    total_s, count = map(sum, zip(*result, strict=True))
    return total_s / count if count else None


def fct_p95_s(view: RunView) -> float | None:
    """95th percentile of the completion times of the same transfers; `unfinished` ones are not counted here either.

    Source: RFC 5166 (throughput).
    """
    return quantile(lambda: _completions_s(view), 0.95, view.rows("flows").block_rows)


def fct_p99_s(view: RunView) -> float | None:
    """99th percentile of the completion times of the same transfers; `unfinished` ones are not counted here either.

    Source: Alizadeh et al., "DCTCP" (SIGCOMM 2010), section 4, which compares tails of completion times.
    """
    return quantile(lambda: _completions_s(view), 0.99, view.rows("flows").block_rows)


def unfinished(view: RunView) -> float | None:
    """Transfers that began in the measured part and were not completed by its end.

    Null if no finite transfer began in the measured part. Source: Braud 2016 section 7.4.1 (the bias they make).
    """
    begun, finished = view.cached(_begun)
    return float(begun - finished) if begun else None


def unfinished_share(view: RunView) -> float | None:
    """Share of the transfers begun in the measured part that were not completed by its end; null if none began.

    Source: Braud 2016 section 7.4.1.
    """
    begun, finished = view.cached(_begun)
    return (begun - finished) / begun if begun else None


def fct_km_mean_s(view: RunView) -> float | None:
    """Mean completion time of the transfers begun in the measured part, unfinished ones counted as far as watched.

    The area under the Kaplan–Meier estimate of the share still under way, up to the longest time that one of them was
    watched: a restricted mean. With nothing unfinished it is their plain mean; else it is less biased than
    `fct_mean_s`, and still too small by what lies beyond that time. Null if none was finished. Source: Kaplan
    and Meier 1958; Braud 2016 section 7.4.1.
    """
    _, finished = view.cached(_begun)
    return quantiles.restricted_mean(lambda: _watched(view)) if finished else None


def fct_km_median_s(view: RunView) -> float | None:
    """Median completion time of the same transfers by the Kaplan–Meier estimate.

    The first time by which half are finished; null if that is never reached. Source: Kaplan and Meier 1958.
    """
    return quantiles.median(lambda: _watched(view))


def fct_syn_lost_s(view: RunView) -> float | None:
    """Mean completion time of the finished transfers that had to send their SYN again.

    Of those that began in the measured part and were completed in it; null if there is none. The SYN or the SYN/ACK
    was lost: each costs an initial timeout. Unfinished ones are not counted. Source: Braud 2016, figure 7-1 (response
    times with and without the loss of a SYN).
    """
    return view.cached(_means_by_syn)[1]


def fct_syn_kept_s(view: RunView) -> float | None:
    """Mean completion time of the finished transfers whose first SYN was answered, to compare with the others.

    As `fct_syn_lost_s`. Source: Braud 2016, figure 7-1.
    """
    return view.cached(_means_by_syn)[0]


def transfers(view: RunView) -> pl.DataFrame:
    """Return the finite transfers that began in the measured part.

    `group`, `congestion`, `size_bytes`, `syn_retransmissions`; `time_s`, how long it took or, if not `finished`
    by the end of the measured part, how long it had been under way.
    """
    finite = pl.col("size_bytes").is_not_null() | pl.col("fct_s").is_not_null()
    begun = pl.col("start_s").is_between(view.warmup_s, view.duration_s, closed="left")
    in_time = (pl.col("start_s") + pl.col("fct_s") <= view.duration_s).fill_null(value=False)
    result = view.flows.filter(finite, begun).with_columns(in_time.alias("finished"))
    so_far_s = view.duration_s - pl.col("start_s")
    time_s = pl.when("finished").then("fct_s").otherwise(so_far_s).alias("time_s")
    return result.select("group", "congestion", "size_bytes", "syn_retransmissions", time_s, "finished")


def watched(result: pl.DataFrame) -> tuple[Array, npt.NDArray[np.bool_]]:
    """Return the input of the Kaplan–Meier estimate: how long each transfer was watched, and whether it ended then."""
    return result["time_s"].to_numpy(), np.asarray(result["finished"].to_numpy(), dtype=bool)


def ended_by(view: RunView, instants: int) -> tuple[Array, Array]:
    """Return `distributions.completions` at evenly spaced times (s) up to the longest completion time."""
    longest_s = max(
        (float(result.times_s.max()) for result in transfers_in_blocks(view) if result.times_s.size), default=0.0
    )
    at_s = np.linspace(0.0, longest_s, instants + 1)[1:]
    share = quantiles.ended_by(lambda: _watched(view), at_s)
    return (at_s, share) if share.size and share[-1] > 0 else (np.empty(0), np.empty(0))


def _completions_s(view: RunView) -> Iterator[Array]:
    """Yield completion times of the transfers that were completed in the measured part, in blocks."""
    for block in view.rows("flows").blocks("start_s", "fct_s"):
        ends_s = block["start_s"] + block["fct_s"]
        yield block["fct_s"][(ends_s >= view.warmup_s) & (ends_s <= view.duration_s)]


@dataclass(frozen=True, slots=True)
class Transfers:
    """The columns of `transfers`, for a block of flows."""

    groups: npt.NDArray[np.uint32]
    sizes_bytes: Array
    times_s: Array
    finished: npt.NDArray[np.bool_]
    syn_retransmissions: Array


def transfers_in_blocks(view: RunView) -> Iterator[Transfers]:
    """Yield `transfers` in blocks."""
    columns = ("group", "start_s", "fct_s", "size_bytes", "syn_retransmissions")
    for block in view.rows("flows").blocks(*columns):
        starts_s, taken_s = block["start_s"], block["fct_s"]
        finite = ~np.isnan(block["size_bytes"]) | ~np.isnan(taken_s)
        begun = np.flatnonzero(finite & (starts_s >= view.warmup_s) & (starts_s < view.duration_s))
        finished = starts_s[begun] + taken_s[begun] <= view.duration_s
        times_s = np.where(finished, taken_s[begun], view.duration_s - starts_s[begun])
        sizes_bytes, again = block["size_bytes"][begun], block["syn_retransmissions"][begun]
        yield Transfers(block["group"][begun], sizes_bytes, times_s, finished, again)


def _watched(view: RunView) -> Iterator[tuple[Array, npt.NDArray[np.bool_]]]:
    return ((result.times_s, result.finished) for result in transfers_in_blocks(view))


def _begun(view: RunView) -> tuple[int, int]:
    """Return how many finite transfers began in the measured part, and how many of them finished by its end."""
    result = [(ended.size, int(ended.sum())) for _, ended in _watched(view)]
    return sum(begun for begun, _ in result), sum(finished for _, finished in result)


def _means_by_syn(view: RunView) -> tuple[float | None, float | None]:
    """Return mean completion times of the finished transfers without and with a retransmitted SYN."""
    sums_s, counts = np.zeros(2), np.zeros(2)
    for result in transfers_in_blocks(view):
        valid = result.finished & ~np.isnan(result.syn_retransmissions)
        again = (result.syn_retransmissions[valid] > 0).astype(np.intp)
        sums_s += np.bincount(again, result.times_s[valid], 2)
        counts += np.bincount(again, minlength=2)
    kept, lost = (float(total_s / count) if count else None for total_s, count in zip(sums_s, counts, strict=True))
    return kept, lost


METRICS = (
    Metric("fct_mean_s", "s", "Mean completion time", fct_mean_s, ranks=(14, 0, 4, 2), short="completion"),
    Metric("fct_p95_s", "s", "95th percentile of the completion time", fct_p95_s, ranks=(15,)),
    Metric("fct_p99_s", "s", "99th percentile of the completion time", fct_p99_s),
    Metric("unfinished", "", "Transfers not finished", unfinished, ranks=(16,)),
    Metric("unfinished_share", "share", "Share of the transfers not finished", unfinished_share),
    Metric("fct_km_mean_s", "s", "Mean completion time, unfinished counted", fct_km_mean_s, ranks=(17,)),
    Metric("fct_km_median_s", "s", "Median completion time, unfinished counted", fct_km_median_s),
    Metric("fct_syn_lost_s", "s", "Mean completion time with a SYN sent again", fct_syn_lost_s),
    Metric("fct_syn_kept_s", "s", "Mean completion time without", fct_syn_kept_s),
)


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
        "km_mean_s": quantiles.restricted_mean(lambda: [watched(cell)]) if done.height else None,
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
