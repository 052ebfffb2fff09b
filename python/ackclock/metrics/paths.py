"""Flows that share a path through an ECMP network, where `[record] paths = true` recorded the links.

What two flows share is counted from switch to switch: their hosts' own links, the first and the last of a path, are no
choice of the network's.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from ackclock.metrics.metric import Metric
from ackclock.metrics.protocols import Recorded
from ackclock.metrics.view import RunView, runs

SCHEMA: dict[str, Any] = {
    "run": pl.UInt32,
    "path": pl.List(pl.UInt32),
    "flows": pl.UInt32,
    "numbers": pl.List(pl.UInt32),
}


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
    return pl.concat([pl.DataFrame(schema=SCHEMA), *of_runs])


METRICS = (
    Metric("path_flows_max", "", "Most flows that share a path", path_flows_max),
    Metric("path_flows_mean", "", "Flows that share a flow's path", path_flows_mean),
)
