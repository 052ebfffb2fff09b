"""What was lost, marked and sent again: RFC 5166's packet loss rates, and SYNs."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from ackclock.metrics.metric import Metric
from ackclock.metrics.view import RunView


def loss_rate(view: RunView) -> float | None:
    """Share of the packets that came to the bottleneck and were lost there.

    (Packets dropped by the queue + packets lost at random on the link) / packets that arrived, ACKs, SYNs and FINs
    included, in the measured part; null if none arrived. Without the link's counts, sampled drops / (drops +
    departures), random losses not included. Source: RFC 5166 (packet loss rates), Guillier 2008 (packet loss rate p).
    """
    links, samples = view.links, view.queue_samples
    found = _ratio(_sum(links["dropped_p"], links["lost_p"]), _sum(links["arrived_p"]))
    if found is not None or links["arrived_p"].count():
        return found
    return _ratio(_sum(samples["drops_p"]), _sum(samples["drops_p"], samples["departures_p"]))


def mark_rate(view: RunView) -> float | None:
    """Share of the packets that came to the bottleneck and were marked there (ECN).

    Packets marked Congestion Experienced by the queue / packets that arrived, those that cannot be marked included, in
    the measured part; null if none arrived. Without the link's counts, sampled marks / (drops + departures). Source:
    RFC 3168 section 5; beside RFC 5166's packet loss rates.
    """
    links, samples = view.links, view.queue_samples
    found = _ratio(_sum(links["marked_p"]), _sum(links["arrived_p"]))
    if found is not None or links["arrived_p"].count():
        return found
    return _ratio(_sum(samples["marks_p"]), _sum(samples["drops_p"], samples["departures_p"]))


def retransmission_rate(view: RunView) -> float | None:
    """Share of the data packets sent in the measured part that had been sent before.

    Source: RFC 5166 (packet loss rates), Guillier 2008 (retransmission r).
    """
    flows = view.flows
    return _ratio(_sum(flows["measured_retransmissions"]), _sum(flows["measured_sent_packets"]))


def timeouts(view: RunView) -> float | None:
    """Retransmission timeouts of all flows in the measured part (RFC 6298).

    Source: RFC 5166 (packet loss rates), Guillier 2008 (timeout events t).
    """
    return _sum(view.flows["measured_timeouts"])


def syn_retransmission_rate(view: RunView) -> float | None:
    """Share of the SYNs that were retransmissions, for connections begun in the measured part.

    SYN retransmissions / (connections + SYN retransmissions); null if no connection began in the measured part.
    Source: RFC 9293 section 3.5, RFC 6298 section 5.
    """
    begun = _begun(view)
    again = _sum(begun["syn_retransmissions"])
    return _ratio(again, None if again is None else begun.height + again)


def syn_retransmission_probability(view: RunView) -> float | None:
    """Share of the connections begun in the measured part that sent their SYN again at least once.

    The SYN or the SYN/ACK was lost, or the handshake took longer than the initial timeout; the sender cannot tell.
    Null if no connection began in the measured part. Source: Braud 2016 section 7.2 (probability of a SYN
    retransmission per connection).
    """
    again = _begun(view)["syn_retransmissions"].drop_nulls()
    return _ratio(float((again > 0).sum()), float(again.len()))


def _begun(view: RunView) -> pl.DataFrame:
    return view.flows.filter(pl.col("start_s").is_between(view.warmup_s, view.duration_s))


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
    Metric("loss_rate", "share", "Loss rate at the bottleneck", loss_rate, ranks=(9, 9, 7, 6), short="loss rate"),
    Metric("mark_rate", "share", "Mark rate at the bottleneck", mark_rate),
    Metric("retransmission_rate", "share", "Retransmission rate", retransmission_rate, ranks=(10,)),
    Metric("timeouts", "", "Timeouts", timeouts, ranks=(11,)),
    Metric("syn_retransmission_rate", "share", "SYN retransmission rate", syn_retransmission_rate),
    Metric(
        "syn_retransmission_probability",
        "share",
        "Connections that sent a SYN again",
        syn_retransmission_probability,
    ),
)
