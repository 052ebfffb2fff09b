"""Means of flows, for the distribution functions and box plots of Belhareth 2014."""

from __future__ import annotations

import numpy as np
import polars as pl

from ackclock.input import arguments
from ackclock.input.arguments import checked, optional
from ackclock.metrics.protocols import Recorded
from ackclock.metrics.view import RunView, runs

SCHEMA = {
    "run": pl.UInt32,
    "flow": pl.UInt32,
    "goodput_bps": pl.Float64,
    "loss": pl.Float64,
    "rtt_s": pl.Float64,
    "window": pl.Float64,
}


@checked(data=arguments.RECORDED, between=optional(arguments.BETWEEN))
def flow_means(data: Recorded, between: tuple[float, float] | None = None) -> pl.DataFrame:
    """Return means of each TCP flow that started, over its lifetime.

    `goodput_bps`; `loss`, the share of what was sent that the network lost: of captures data segments, else packets;
    `rtt_s`; `window`, the mean of the samples in segments: of captures what was under way, else cwnd. Null where it is
    not known. RTT and window are means over `between` (seconds), if it is given. Source: Belhareth 2014, figures 4.32
    to 4.36 and 4.45 to 4.49.
    """
    return pl.concat([pl.DataFrame(schema=SCHEMA), *(_of(view) for view in runs(data, between))])


def _of(view: RunView) -> pl.DataFrame:
    window = pl.col("in_flight" if view.is_capture else "cwnd")
    samples = view.measured_samples.group_by("flow").agg(rtt_s=pl.col("srtt_s").mean(), window=window.mean())
    result = (_captured if view.is_capture else _simulated)(view).join(samples, on="flow", how="left").sort("flow")
    return result.select(pl.col(name).cast(dtype) for name, dtype in SCHEMA.items())


def _captured(view: RunView) -> pl.DataFrame:
    rows = view.data.scan("captured").filter(
        pl.col("run") == view.run, pl.col("payload_bytes") > 0, ~pl.col("flow").is_in(view.requests)
    )
    sent = pl.col("data_segments") + pl.col("lost_before").fill_null(0)
    lost = pl.sum_horizontal("lost", "lost_before")
    return rows.select("run", "flow", "goodput_bps", loss=lost / sent).collect()


def _simulated(view: RunView) -> pl.DataFrame:
    active_s = pl.Series(np.minimum(view.ends_s, view.duration_s) - view.starts_s)
    rates_bps = 8 * pl.col("delivered_bytes") / pl.when(active_s > 0).then(active_s)
    return view.flows.select(
        "run", "flow", goodput_bps=rates_bps, loss=pl.col("dropped_packets") / pl.col("sent_packets")
    )
