"""Tables of flows: goodputs with the names of groups, the means of Belhareth 2014, and the tracking of CUBIC's curve.

`cubic_epochs` compares the window with CUBIC's curve where `[record] cubic_state = true` recorded its state. An epoch
of a flow is a stretch of samples with the same curve: the same origin and K. The curve is the greater of W_cubic(t) and
W_est, which is where RFC 9438 wants the window. Belhareth 2014 section 5.5.2 finds that Linux runs ahead of it: flows
leave the plateau at W_max after 0.8 s of 1.35, which is a root cause of synchronised losses.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

from ackclock.input import arguments
from ackclock.input.arguments import checked, optional
from ackclock.metrics.protocols import Recorded
from ackclock.metrics.rows import Array, Column
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


CURVE_COLUMNS: dict[str, Any] = {
    "flow": pl.UInt32,
    "start_s": pl.Float64,
    "w_max": pl.Float64,
    "k_s": pl.Float64,
    "plateau_s": pl.Float64,
    "tracking_error": pl.Float64,
}
CURVES_SCHEMA: dict[str, Any] = {"run": pl.UInt32, "seed": pl.Int64, **CURVE_COLUMNS}


def epochs(view: RunView) -> pl.DataFrame:
    """Return `cubic_epochs` of one run."""
    samples = view.measured("cubic_samples").frame().sort("flow", "time_s", maintain_order=True)
    changes = pl.any_horizontal(pl.col(name).ne_missing(pl.col(name).shift()) for name in ("flow", "origin", "k_s"))
    numbered = samples.with_columns(changes.cum_sum().alias("epoch"))
    result = [_epoch(cell) for cell in numbered.partition_by("epoch", maintain_order=True)] if samples.height else []
    return pl.DataFrame(result, schema=CURVE_COLUMNS, orient="row")


def cubic_epochs(data: Recorded, between: tuple[float, float] | None = None) -> pl.DataFrame:
    """Return a row for each flow's CUBIC epoch in the measured part: its plateau, and the distance from the curve.

    `run`, `seed`, `flow`; `start_s` (its first sample), `w_max` (the flat of the curve, segments), `k_s`;
    `plateau_s`, from there to a segment more (null: not reached), which takes the curve ∛(1/C), 1.36 s for C = 0.4, and
    twice that where whole segments are rounded towards the flat; and `tracking_error`, the mean distance from the
    curve, |cwnd − max(W_cubic(t), W_est)|, in segments. `between` looks at a part of each run (seconds). Source:
    Belhareth 2014 sections 5.5.1 and 5.5.2.
    """
    frames = [pl.DataFrame(schema=CURVES_SCHEMA), *_of_runs(data, between)]
    return pl.concat(frames)


def _of_runs(data: Recorded, between: tuple[float, float] | None) -> Iterator[pl.DataFrame]:
    for view in runs(data, between):
        run, seed = pl.lit(view.run, pl.UInt32).alias("run"), pl.lit(view.seed, pl.Int64).alias("seed")
        yield view.cached(epochs).select(run, seed, *CURVE_COLUMNS)


def _epoch(cell: pl.DataFrame) -> tuple[object, ...]:
    flow, start_s, origin, k_s = _first(cell)
    error = float(_off(*(cell[name].to_numpy() for name in _OFF)).mean())
    return flow, start_s, origin, k_s, _plateau_s(cell, origin), error


def _first(cell: pl.DataFrame) -> tuple[int, float, float, float]:
    first = cell.row(0, named=True)
    return first["flow"], first["time_s"], first["origin"], first["k_s"]


def _plateau_s(cell: pl.DataFrame, origin: float) -> float | None:
    times_s, cwnd = cell["time_s"].to_numpy(), cell["cwnd"].to_numpy()
    if not times_s.size or cwnd[0] >= origin:
        return None  # it was there before the epoch was seen
    at, above = (np.flatnonzero(cwnd >= level) for level in (origin, origin + 1))
    return float(times_s[above[0]] - times_s[at[0]]) if above.size else None


#: Columns of the distance from the curve.
_OFF = ("cwnd", "w_cubic", "w_est")


def _off(cwnd: Column, w_cubic: Column, w_est: Column) -> Array:
    return np.abs(np.asarray(cwnd - np.maximum(w_cubic, w_est), dtype=np.float64))
