"""Slowdown: how much longer a transfer took than it would have in an empty network.

An empty network is `ackclock.theory.ideal_fct_s` with the transfer's size, the rate of the slowest link on its
path, its base RTT, and its TCP's initial window. 1 is as good as alone; a little less is possible where the path has
links whose transmissions that form counts once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl

from ackclock.errors import InputError
from ackclock.input.arguments import checked, number, several
from ackclock.metrics.metric import Metric
from ackclock.metrics.protocols import Recorded
from ackclock.metrics.quantiles import quantile
from ackclock.metrics.rows import Block
from ackclock.metrics.view import Array, RunView, group_name, runs
from ackclock.partial_plan import PartialTcp
from ackclock.plan import TIMESTAMPS_BYTES

#: Default overhead of a packet: IP, TCP and timestamps, and Ethernet.
HEADERS_BYTES, FRAME_BYTES = 52.0, 14.0

#: And its payload, and the initial window (RFC 6928).
SEGMENT_BYTES, INITIAL_WINDOW = 1448.0, 10.0

#: The classes of sizes are powers of this.
DECADE = 10.0

SCHEMA = {
    "group": pl.UInt32,
    "name": pl.String,
    "size_low_bytes": pl.Float64,
    "size_high_bytes": pl.Float64,
    "n": pl.Int64,
    "mean": pl.Float64,
    "p50": pl.Float64,
    "p99": pl.Float64,
}


def slowdown_p50(view: RunView) -> float | None:
    """Median slowdown of the transfers that were completed in the measured part.

    Their completion times over those of an empty network: `ackclock.theory.ideal_fct_s`. Null where no engine gives
    what rate the path has, or no finite transfer ended. Source: Alizadeh et al. 2013 (pFabric, normalised completion
    times).
    """
    return _quantile(view, 0.50)


def slowdown_p99(view: RunView) -> float | None:
    """99th percentile of the same slowdowns. Source: Alizadeh et al. 2013 (pFabric)."""
    return _quantile(view, 0.99)


def slowdown_mean(view: RunView) -> float | None:
    """Mean of the same slowdowns. Source: Alizadeh et al. 2013 (pFabric)."""
    result = np.concatenate([np.empty(0), *_slowdowns(view)])
    return float(result.mean()) if result.size else None


def _quantile(view: RunView, share: float) -> float | None:
    return quantile(lambda: _slowdowns(view), share, view.rows("flows").block_rows)


COLUMNS = ("group", "start_s", "fct_s", "size_bytes", "delivered_bytes", "base_rtt_s", "path_rate_bps")


def _slowdowns(view: RunView) -> Iterator[Array]:
    return (result[1] / result[2] for result in _ended(view))


def _ended(view: RunView) -> Iterator[tuple[Block, Array, Array]]:
    """Yield the transfers completed in the measured part, their completion times, and the ideal ones.

    Those of which the latter is not known are left out.
    """
    for block in view.rows("flows").blocks(*COLUMNS):
        ends_s = block["start_s"] + block["fct_s"]
        ideal_s = _ideal_s(view, block)
        inside = (ends_s >= view.warmup_s) & (ends_s <= view.duration_s) & ~np.isnan(ideal_s)
        result = block.masked(inside)
        yield result, result["fct_s"], ideal_s[inside]


def _ideal_s(view: RunView, block: Block) -> Array:
    """Return the completion times in an empty network (s); NaN where unknown."""
    groups, ideal_s = block["group"], np.full(block.size, np.nan)
    rtts_s = np.where(np.isnan(block["base_rtt_s"]), view.plan.mean_base_rtt_s or np.nan, block["base_rtt_s"])
    valid = ~np.isnan(block["fct_s"]) & (_sizes(block) > 0) & (block["path_rate_bps"] > 0) & (rtts_s > 0)
    for group in np.unique(groups[valid]):
        some = valid & (groups == group)
        tcp = view.plan.groups[int(group)].tcp if group < len(view.plan.groups) else None
        ideal_s[some] = _each_s(tcp or PartialTcp(), _sizes(block)[some], block["path_rate_bps"][some], rtts_s[some])
    return ideal_s


def _each_s(tcp: PartialTcp, sizes_bytes: Array, rates_bps: Array, rtts_s: Array) -> Array:
    from ackclock.theory import ideal_fct_s  # where nothing ends, it is not needed

    segment_bytes = float(tcp.mss_bytes or SEGMENT_BYTES)
    headers_bytes = HEADERS_BYTES if tcp.header_bytes is None else tcp.header_bytes + TIMESTAMPS_BYTES * tcp.timestamps
    overhead_bytes = headers_bytes + FRAME_BYTES
    wire_bytes = sizes_bytes + np.ceil(sizes_bytes / segment_bytes) * overhead_bytes
    window = float(tcp.initial_window or INITIAL_WINDOW)
    return ideal_fct_s(wire_bytes, rates_bps, rtts_s, segment_bytes + overhead_bytes, window)


def _sizes(block: Block) -> Array:
    """Return the bytes of each transfer; of one without a size, what it delivered."""
    sizes = block["size_bytes"].astype(np.float64)
    return np.where(np.isnan(sizes), block["delivered_bytes"].astype(np.float64), sizes)


def slowdowns(data: Recorded, between: tuple[float, float] | None = None) -> pl.DataFrame:
    """Return slowdowns by group and class of sizes, a class for each power of ten of bytes; all runs together.

    `n` transfers were completed in the measured part: mean, median (`p50`) and 99th percentile (`p99`) of their
    slowdowns. `between` looks at a part of each run (seconds).
    """
    return _by_class(_table(data, between)).sort("group", "size_low_bytes")


@checked(deadlines=several(number(0, expected="a time in seconds"), "times in seconds, such as [0.01, 0.1]"))
def within_deadline(
    data: Recorded, deadlines: Sequence[float], between: tuple[float, float] | None = None
) -> pl.DataFrame:
    """Return the share of the transfers that were completed within each deadline (s), by group; all runs together.

    Of those that began in the measured part at least so long before its end, so that each had its time: `n` of them;
    null where there is none. Source: Wilson et al. 2011 (D3: application throughput).
    """
    if not deadlines:
        raise InputError("deadlines: found none; expected times in seconds, such as [0.01, 0.1]")
    rows = []
    for deadline_s in deadlines:
        result = [row for view in runs(data, between) for row in _met(view, deadline_s)]
        every = pl.DataFrame(result, schema={"group": pl.UInt32, "name": pl.String, "met": pl.Boolean}, orient="row")
        share = every.group_by("group", "name").agg(pl.len().cast(pl.Int64).alias("n"), pl.col("met").mean())
        share = share.with_columns(pl.lit(deadline_s).alias("deadline_s")).rename({"met": "share"})
        rows.append(share.select("group", "name", "deadline_s", "n", "share"))
    return pl.concat(rows).sort("group", "deadline_s")


def _met(view: RunView, deadline_s: float) -> Iterator[tuple[int, str, bool]]:
    for block in view.rows("flows").blocks("group", "congestion", "start_s", "fct_s", "size_bytes"):
        starts_s, taken_s = block["start_s"], block["fct_s"]
        finite = ~np.isnan(block["size_bytes"]) | ~np.isnan(taken_s)
        begun = finite & (starts_s >= view.warmup_s) & (starts_s + deadline_s <= view.duration_s)
        for row in block.masked(begun).frame.select("group", "congestion", "fct_s").iter_rows(named=True):
            met = row["fct_s"] is not None and row["fct_s"] <= deadline_s
            yield row["group"], group_name(row, view.plan), met


def _table(data: Recorded, between: tuple[float, float] | None) -> pl.DataFrame:
    frames = [pl.DataFrame(schema={"group": pl.UInt32, "name": pl.String, "size": pl.Float64, "slowdown": pl.Float64})]
    for view in runs(data, between):
        for block, taken_s, ideal_s in _ended(view):
            labels = {group: group_name({"group": group, "congestion": ""}, view.plan) for group in block["group"]}
            frames.append(
                pl.DataFrame(
                    {
                        "group": block["group"].astype(np.uint32),
                        "name": [labels[group] for group in block["group"]],
                        "size": _sizes(block),
                        "slowdown": taken_s / ideal_s,
                    },
                    schema=frames[0].schema,
                )
            )
    return pl.concat(frames)


def _by_class(result: pl.DataFrame) -> pl.DataFrame:
    slowdown = pl.col("slowdown")
    decade = pl.col("size").log(DECADE).add(1e-9).floor().alias("decade")
    rows = result.group_by("group", "name", decade).agg(
        pl.col("size").min().alias("size_low_bytes"),
        pl.col("size").max().alias("size_high_bytes"),
        pl.len().cast(pl.Int64).alias("n"),
        slowdown.mean().alias("mean"),
        slowdown.quantile(0.5, interpolation="linear").alias("p50"),
        slowdown.quantile(0.99, interpolation="linear").alias("p99"),
    )
    return rows.select(*SCHEMA)


METRICS = (
    Metric("slowdown_p50", "1", "Median slowdown of the completion times", slowdown_p50),
    Metric("slowdown_p99", "1", "99th percentile of the slowdown", slowdown_p99),
    Metric("slowdown_mean", "1", "Mean slowdown", slowdown_mean),
)
