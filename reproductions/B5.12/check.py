"""The rule of B5.12: CUBIC's flows lose together beside short transfers too."""

from collections.abc import Mapping
from math import inf

import polars as pl

from ackclock.gallery import Measured, Row, ratio
from ackclock.gallery.entry import Published
from ackclock.metrics import RunView, epoch
from ackclock.reproductions.measures import peak_bdp

ENGINES = ("packet",)


def synchronised_flows(view: RunView) -> float | None:
    """Mean number of the long flows, without the copies, that lost a packet in a congestion epoch."""
    flows = pl.Series(range(len(view.plan.flows)), dtype=pl.UInt32)
    hit = epoch.drops_by_epoch(view).filter(pl.col("flow").is_in(flows.implode()))
    mean = hit.group_by("epoch").agg(pl.col("flow").n_unique())["flow"].mean()
    return float(mean) if isinstance(mean, (int, float)) else None


MEASURES = {"peak": peak_bdp, "flows": synchronised_flows}

#: “Reduced”: by a hundredth at least; up to a hundredth more it is about the same.
REDUCED, ABOUT = (0.0, 0.99), (0.0, 1.01)

#: “Lower than 2 BDP”; up to a tenth more it is near.
BELOW, NEAR = (0.0, 2.0), (0.0, 2.2)

#: “All flows are still synchronised”: 90 of 100 at least; with 70 or more, most flows lose together.
ALL, MOST = (90, inf), (70, inf)


def check(measured: Measured, published: Mapping[str, Published]) -> list[Row]:
    """Rows in the order of the claims."""
    none, short = measured["none"], measured["short"]
    return [
        Row("lower", ratio(short["peak"], none["peak"]), REDUCED, ABOUT),
        Row("below", short["peak"], BELOW, NEAR),
        Row("flows", short["flows"], ALL, MOST),
    ]
