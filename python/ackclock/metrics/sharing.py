"""Flows that share a bottleneck or a path.

A queue delays all that passes it alike, so the RTTs of its flows are correlated (Rubenstein, Kurose and Towsley,
*Detecting Shared Congestion of Flows Via End-to-End Measurement*, 2002, have it of one-way delays and losses). Here:
Pearson's coefficient of the smoothed RTTs at the instants at which both were sampled; flows that are joined by a chain
of pairs above the threshold share one.

Paths through an ECMP network are known where `[record] paths = true` recorded the links. What two flows share is
counted from switch to switch: their hosts' own links, the first and the last of a path, are no choice of the network's.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from ackclock.metrics.metric import Metric
from ackclock.metrics.protocols import Recorded
from ackclock.metrics.view import RunView, runs

#: From this correlation on two flows share a queue.
MIN_CORRELATION = 0.5

#: With fewer instants in common nobody can tell.
MIN_INSTANTS = 20

#: Maximum number of flows, those with the most samples: the work grows with their square.
MAX_FLOWS = 1000

SCHEMA = {"run": pl.UInt32, "flow": pl.UInt32, "bottleneck": pl.Int64, "correlation": pl.Float64}

PATHS_SCHEMA: dict[str, Any] = {
    "run": pl.UInt32,
    "path": pl.List(pl.UInt32),
    "flows": pl.UInt32,
    "numbers": pl.List(pl.UInt32),
}


def shared_bottlenecks(data: Recorded, between: tuple[float, float] | None = None) -> pl.DataFrame:
    """Return for each flow the number of the bottleneck that it shares (null: with no captured flow).

    `correlation` is that with the flow it goes along with best; null where fewer than 20 instants are in common.
    Bottlenecks are numbered in the order of their first flows. `between` looks at a part of each run (seconds).
    """
    return pl.DataFrame([row for view in runs(data, between) for row in _rows(view)], schema=SCHEMA, orient="row")


def _rows(view: RunView) -> list[tuple[object, ...]]:
    samples = view.measured_samples.select("time_s", "flow", "srtt_s").drop_nulls()
    largest = samples.group_by("flow").len().sort(["len", "flow"], descending=[True, False]).head(MAX_FLOWS)["flow"]
    samples = samples.filter(pl.col("flow").is_in(largest.implode()))
    if not samples.height:
        return []
    wide = samples.pivot("flow", index="time_s", values="srtt_s", aggregate_function="last").sort("time_s")
    flows = np.array(sorted(map(int, wide.columns[1:])))
    correlation = _correlations(np.column_stack([wide[str(flow)].to_numpy() for flow in flows]))
    groups = _components(correlation >= MIN_CORRELATION)
    best = np.where(np.isnan(correlation), -np.inf, correlation).max(axis=1)
    return [
        (view.run, int(flow), group, float(value) if np.isfinite(value) else None)
        for flow, group, value in zip(flows, groups, best, strict=True)
    ]


def _correlations(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Correlate each pair of columns over the rows that both have; NaN with too few, and on the diagonal."""
    valid = ~np.isnan(values)
    filled, weights = np.where(valid, values - np.nanmean(values, axis=0), 0.0), valid.astype(float)
    count = weights.T @ weights
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = filled.T @ weights / count
        covariance = filled.T @ filled / count - mean * mean.T
        spread = (filled**2).T @ weights / count - mean**2
        result = covariance / np.sqrt(spread * spread.T)
    result[count < MIN_INSTANTS] = np.nan
    np.fill_diagonal(result, np.nan)
    return np.asarray(result)


def _components(joined: npt.NDArray[np.bool_]) -> list[int | None]:
    """Return the number of each one's connected component; None for isolated ones."""
    groups: list[int | None] = [None] * len(joined)
    number = 0
    for start in range(len(joined)):
        if groups[start] is not None or not joined[start].any():
            continue
        waiting = [start]
        while waiting:
            one = waiting.pop()
            if groups[one] is None:
                groups[one] = number
                waiting += [int(other) for other in np.flatnonzero(joined[one])]
        number += 1
    return groups


def path_flows_max(view: RunView) -> float | None:
    """Most flows whose data share one path from switch to switch, over the whole run.

    Null where paths were not recorded, where packets draw their own, and without a switch between switches. Source:
    Hopps 2000 (RFC 2992), Al-Fares et al. 2010 (Hedera: collisions of hashed flows).
    """
    counts = view.cached(shared)["flows"].to_numpy()
    return float(counts.max()) if counts.size else None


def path_flows_mean(view: RunView) -> float | None:
    """Mean over the flows of how many share its path from switch to switch, itself counted; 1 if none shares.

    Source: as `path_flows_max`.
    """
    counts = view.cached(shared)["flows"].to_numpy().astype(np.float64)
    return float((counts**2).sum() / counts.sum()) if counts.size else None


def shared(view: RunView) -> pl.DataFrame:
    """Return each path from switch to switch that flows take: its links in order, and the flows on it."""
    rows = view.rows("paths").frame().select("flow", "hop", "link").sort("flow", "hop")
    ways = rows.group_by("flow", maintain_order=True).agg(pl.col("link").slice(1, pl.len() - 2).alias("path"))
    ways = ways.filter(pl.col("path").list.len() > 0)
    result = ways.group_by("path", maintain_order=True).agg(pl.len().alias("flows"), pl.col("flow").alias("numbers"))
    return result.sort("flows", descending=True, maintain_order=True)


def shared_paths(data: Recorded) -> pl.DataFrame:
    """Return the paths from switch to switch that flows take, those with most flows first.

    `run`; `path`, the numbers of its links in order; `flows`, how many take it, and their `numbers`.
    """
    of_runs = (view.cached(shared).select(pl.lit(view.run, pl.UInt32).alias("run"), pl.all()) for view in runs(data))
    return pl.concat([pl.DataFrame(schema=PATHS_SCHEMA), *of_runs])


METRICS = (
    Metric("path_flows_max", "", "Most flows that share a path", path_flows_max, of_links=True),
    Metric("path_flows_mean", "", "Flows that share a flow's path", path_flows_mean, of_links=True),
)
