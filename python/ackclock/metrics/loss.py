"""What was lost and sent again: RFC 5166 section 2.1.3."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from ackclock.metrics.metric import Metric
from ackclock.metrics.view import RunView


def loss_rate(view: RunView) -> float | None:
    """Share of the packets that came to the bottleneck and were lost there.

    (Packets dropped by the queue + packets lost at random on the link) / packets that arrived, ACKs, SYNs and FINs
    included, in the measured part; null if none arrived. Source: RFC 5166 section 2.1.3.
    """
    links = view.links
    lost = _sum(links["dropped_p"], links["lost_p"])
    return _ratio(lost, _sum(links["arrived_p"]))


def retransmission_rate(view: RunView) -> float | None:
    """Share of the data packets sent in the measured part that had been sent before. Source: RFC 5166 section 2.1.3."""
    flows = view.flows
    return _ratio(_sum(flows["measured_retransmissions"]), _sum(flows["measured_sent_packets"]))


def timeouts(view: RunView) -> float | None:
    """Retransmission timeouts of all flows in the measured part (RFC 6298). Source: RFC 5166 section 2.1.3."""
    return _sum(view.flows["measured_timeouts"])


def syn_retransmission_rate(view: RunView) -> float | None:
    """Share of the SYNs that were retransmissions, for connections begun in the measured part.

    SYN retransmissions / (connections + SYN retransmissions); null if no connection began in the measured part.
    Source: RFC 9293 section 3.5, RFC 6298 section 5.
    """
    begun = view.flows.filter(pl.col("start_s").is_between(view.warmup_s, view.duration_s))
    again = _sum(begun["syn_retransmissions"])
    return _ratio(again, None if again is None else begun.height + again)


def _sum(*columns: pl.Series) -> float | None:
    """The sum of all values; None where a column has nulls only (or no rows)."""
    if any(column.null_count() == column.len() for column in columns):
        return None
    return float(sum(_total(columns)))


def _total(columns: Sequence[pl.Series]) -> list[float]:
    return [float(column.sum()) for column in columns]


def _ratio(part: float | None, whole: float | None) -> float | None:
    return part / whole if part is not None and whole else None


METRICS = (
    Metric("loss_rate", "share", "Loss rate at the bottleneck", loss_rate),
    Metric("retransmission_rate", "share", "Retransmission rate", retransmission_rate),
    Metric("timeouts", "", "Timeouts", timeouts),
    Metric("syn_retransmission_rate", "share", "SYN retransmission rate", syn_retransmission_rate),
)
