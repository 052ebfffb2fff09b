"""Tables of flows: goodputs with the names of groups, and the means of Belhareth 2014."""

from __future__ import annotations

import numpy as np
import polars as pl

from ackclock.input import arguments
from ackclock.input.arguments import checked, optional
from ackclock.metrics.protocols import Recorded
from ackclock.metrics.throughput import flow_rates_bps, present_flows
from ackclock.metrics.view import RunView, runs
from ackclock.partial_plan import PartialPlan

SCHEMA = {
    "run": pl.UInt32(),
    "seed": pl.Int64(),
    "flow": pl.UInt32(),
    "group": pl.UInt32(),
    "name": pl.String(),
    "congestion": pl.String(),
    "goodput_bps": pl.Float64(),
}


@checked(data=arguments.RECORDED, between=optional(arguments.BETWEEN))
def flow_goodput(data: Recorded, between: tuple[float, float] | None = None) -> pl.DataFrame:
    """Return the goodput of each TCP flow (bit/s): a row for each active in the measured part, by run and flow.

    `run`, `seed`, `flow`; `group`, its entry in the scenario, and `name`, what that is called there, else its
    congestion control; `congestion`; `goodput_bps` as the metric `goodput_flow_bps`: payload bytes that arrived in
    order in the measured part × 8 / its length, null where nothing tells them. `between` looks at a part of each run
    (seconds). Source: RFC 5166 (throughput), RFC 2647 section 3.17 (goodput).
    """
    result = pl.concat([pl.DataFrame(schema=SCHEMA), *(_of(view) for view in runs(data, between))])
    return result.sort("run", "flow")


def _of(view: RunView) -> pl.DataFrame:
    flows, rates = present_flows(view), flow_rates_bps(view)
    valid = rates is not None and rates.size == flows.size
    of = pl.DataFrame({"flow": flows, "goodput_bps": rates if valid else np.full(flows.size, np.nan)})
    about = view.flows.select("flow", "group", "congestion").with_columns(name=group_name_of(view.plan))
    columns = of.join(about, on="flow", how="left").with_columns(
        pl.col("goodput_bps").fill_nan(None), run=pl.lit(view.run), seed=pl.lit(view.seed)
    )
    return columns.select(pl.col(name).cast(dtype) for name, dtype in SCHEMA.items())


def group_name_of(plan: PartialPlan) -> pl.Expr:
    """Return the expression for the name of a flow's group in the scenario, else its CCA."""
    names = {number: group.name for number, group in enumerate(plan.groups) if group.name}
    own = pl.col("congestion").cast(pl.String)
    if not names:
        return own
    return pl.col("group").replace_strict(names, default=None, return_dtype=pl.String).fill_null(own)


MEANS_SCHEMA = {
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
    return pl.concat([pl.DataFrame(schema=MEANS_SCHEMA), *(_means_of(view) for view in runs(data, between))])


def _means_of(view: RunView) -> pl.DataFrame:
    window = pl.col("in_flight" if view.is_capture else "cwnd")
    samples = view.measured_samples.group_by("flow").agg(rtt_s=pl.col("srtt_s").mean(), window=window.mean())
    result = (_captured if view.is_capture else _simulated)(view).join(samples, on="flow", how="left").sort("flow")
    return result.select(pl.col(name).cast(dtype) for name, dtype in MEANS_SCHEMA.items())


def _captured(view: RunView) -> pl.DataFrame:
    rows = view.data.scan("captured").filter(
        pl.col("run") == view.run, pl.col("payload_bytes") > 0, ~pl.col("flow").is_in(view.requests)
    )
    sent = pl.col("data_segments") + pl.col("lost_upstream").fill_null(0)
    lost = pl.sum_horizontal("lost", "lost_upstream")
    return rows.select("run", "flow", "goodput_bps", loss=lost / sent).collect()


def _simulated(view: RunView) -> pl.DataFrame:
    active_s = pl.Series(np.minimum(view.ends_s, view.duration_s) - view.starts_s)
    rates_bps = 8 * pl.col("delivered_bytes") / pl.when(active_s > 0).then(active_s)
    return view.flows.select(
        "run", "flow", goodput_bps=rates_bps, loss=pl.col("dropped_packets") / pl.col("sent_packets")
    )
