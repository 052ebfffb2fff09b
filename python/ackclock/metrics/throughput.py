"""How much got through: RFC 5166 section 2.1.1."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from ackclock.metrics.metric import Metric
from ackclock.metrics.view import Array, RunView


def utilisation(view: RunView) -> float | None:
    """Share of the bottleneck's rate that carried packets, all wire bytes counted.

    Wire bytes that left the bottleneck in the measured part × 8 / (rate × its length); several bottlenecks count
    together. Without byte counts, the mean of the sampled utilisation. A packet counts when it leaves the queue, so
    the value may exceed 1 by one packet. Source: RFC 5166 section 2.1.1.
    """
    links = view.links.drop_nulls("departed_bytes")
    capacity_bits = float(links["rate_bps"].sum()) * view.measured_s
    if capacity_bits > 0:
        return 8 * float(links["departed_bytes"].sum()) / capacity_bits
    return _mean(view.queue_samples["utilisation"])


def goodput_flow_bps(view: RunView) -> list[float] | None:
    """Goodput of each flow: payload bytes that arrived in order, per second.

    Payload that the receiver could hand to its application in the measured part × 8 / its length, for each flow
    that was there in the measured part, in the order of the flows; a finite transfer's bytes are spread over the
    whole measured part. Without the receiver's counts, bytes acknowledged at the sender. Source: RFC 5166 section
    2.1.1, RFC 2647 section 3.17 (goodput).
    """
    rates = view.once(flow_rates_bps)
    return None if rates is None else [float(rate) for rate in rates]


def goodput_bps(view: RunView) -> float | None:
    """Goodput of all flows together: the sum of the flows' goodputs. Source: RFC 5166 section 2.1.1."""
    rates = view.once(flow_rates_bps)
    return None if rates is None else float(rates.sum())


def flow_rates_bps(view: RunView) -> Array | None:
    """Goodputs of the flows that were there in the measured part; None if nothing tells them."""
    counted = view.once(measured_bytes)
    return None if counted is None else 8 * counted[present(view)] / view.measured_s


def rates_while_there_bps(view: RunView) -> Array | None:
    """Rates of the same flows over the time that each was there in the measured part; None if nothing tells them."""
    counted = view.once(measured_bytes)
    if counted is None:
        return None
    there_s = np.minimum(view.ends_s, view.duration_s) - np.maximum(view.starts_s, view.warmup_s)
    chosen = present(view)
    return np.asarray(8 * counted[chosen] / there_s[chosen])


def measured_bytes(view: RunView) -> Array | None:
    """Payload of each flow in the measured part; None if nothing tells it or no flow was there."""
    if not present(view).any():
        return None
    counted = view.flows["measured_bytes"].cast(pl.Float64)
    return counted.to_numpy() if counted.null_count() == 0 else acknowledged_bytes(view)


def present(view: RunView) -> npt.NDArray[np.bool_]:
    """Which flows were there in the measured part: started before its end, not over before its start."""
    return np.asarray((view.starts_s < view.duration_s) & (view.ends_s > view.warmup_s))


def acknowledged_bytes(view: RunView) -> Array | None:
    """Bytes acknowledged at the sender in the measured part, by flow; None without samples."""
    grid = view.grid
    if grid.times_s.size == 0:
        return None
    total = np.zeros(view.flows.height)
    rows = np.searchsorted(view.flows["flow"].to_numpy(), grid.flows)
    total[rows] = _at(view.duration_s, grid.times_s, grid.delivered_bytes)
    total[rows] -= _at(view.warmup_s, grid.times_s, grid.delivered_bytes)
    return total


def _at(time_s: float, times_s: Array, matrix: Array) -> Array:
    """The matrix's row at an instant, linear between samples, 0 at time 0."""
    after = int(np.clip(np.searchsorted(times_s, time_s), 0, times_s.size - 1))
    before_s, before = (times_s[after - 1], matrix[after - 1]) if after else (0.0, np.zeros(matrix.shape[1]))
    span = times_s[after] - before_s
    share = float(np.clip((time_s - before_s) / span, 0, 1)) if span > 0 else 1.0
    return np.asarray(before + share * (matrix[after] - before))


def _mean(series: pl.Series) -> float | None:
    mean = series.mean()
    return float(mean) if isinstance(mean, (int, float)) else None


METRICS = (
    Metric("utilisation", "share", "Utilisation", utilisation),
    Metric("goodput_bps", "bit/s", "Total goodput", goodput_bps),
    Metric("goodput_flow_bps", "bit/s", "Goodput of each flow", goodput_flow_bps, per_flow=True),
)
