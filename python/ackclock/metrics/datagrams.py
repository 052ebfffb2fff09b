"""Metrics of the UDP flows: what arrived and what was lost, RFC 5166's throughput and packet loss rates."""

from __future__ import annotations

import polars as pl

from ackclock.metrics.metric import Metric
from ackclock.metrics.view import RunView


def udp_goodput_bps(view: RunView) -> float | None:
    """Payload of all UDP flows that arrived in the measured part, per second.

    Payload bytes at the receivers × 8 / the length of the measured part; null if it is unknown for any of them. Source:
    RFC 5166 (throughput).
    """
    arrived = _sum(view, "measured_bytes")
    return None if arrived is None or view.measured_s <= 0 else 8 * arrived / view.measured_s


def udp_loss_rate(view: RunView) -> float | None:
    """Share of the datagrams of all UDP flows that were lost.

    Datagrams that did not arrive / datagrams sent, over the whole run; null if either is unknown. Source: RFC 5166
    (packet loss rates).
    """
    lost, sent = _sum(view, "dropped_packets"), _sum(view, "sent_packets")
    return lost / sent if lost is not None and sent else None


def _sum(view: RunView, column: str) -> float | None:
    """Return the sum of a column over the UDP flows that transfer data; None without them, or where one is unknown."""
    if view.between is not None or not view.has_datagrams:
        return None
    values = view.datagrams.filter(pl.col("sent_packets").is_not_null() | pl.col("measured_bytes").is_not_null())[
        column
    ]
    is_unknown = values.is_empty() or values.null_count() > 0
    return None if is_unknown else float(values.cast(pl.Float64).sum())


METRICS = (
    Metric("udp_goodput_bps", "bit/s", "Total goodput of UDP", udp_goodput_bps, ranks=(2,)),
    Metric("udp_loss_rate", "share", "Loss rate of UDP", udp_loss_rate, ranks=(9,)),
)
