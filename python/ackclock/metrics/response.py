"""Response times: completion times by size, for each `[[flows]]` and `[[traffic]]` entry.

Braud 2016 calls it the conditional response time (figures 7-5 and 7-7) and warns of its right end: the longest
transfers do not finish while one measures, and those that do are the lucky ones (section 7.4.1). So each row gives how
many did not, and gives the Kaplan–Meier mean beside the plain one. In captures a connection that is still open stands
with the size that was delivered so far: by size it may stand too low, by group it makes no difference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from ackclock.input.arguments import one_of
from ackclock.metrics import survival
from ackclock.metrics.completion import transfers, watched
from ackclock.metrics.protocols import Recorded
from ackclock.metrics.summary import Summary, summarise
from ackclock.metrics.view import RunView, group_label, runs
from ackclock.partial_plan import KnownPlan

#: Up to this many different sizes have a row each; more are put into octaves.
MAX_SIZES = 16

#: What rows may stand for.
BY = ("size", "group")

SCHEMA = {
    "group": pl.UInt32,
    "label": pl.String,
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


def _row(cell: pl.DataFrame, plan: KnownPlan, run_count: int) -> Mapping[str, Any]:
    done, first = cell.filter("finished"), cell.row(0, named=True)
    times_s, result = done["time_s"], _mean(done, run_count)
    return {
        "group": first["group"],
        "label": group_label(first, plan),
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
