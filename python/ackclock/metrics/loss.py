"""Losses, marks and retransmissions: RFC 5166's packet loss rates, and SYNs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ackclock.metrics.metric import Metric
from ackclock.metrics.view import Rows, RunView

#: Columns that tell how much a flow sends in a round trip.
SENDS = ("measured_sent_packets", "base_rtt_s")

#: Columns of a flow's losses, over the whole run.
FLOW_LOSSES = ("dropped_packets", "sent_packets")

#: A circuit breaker ends a flow above so many times the rate of TCP (RFC 8083 section 4.3).
BREAKER_FACTOR = 10.0


def loss_rate(view: RunView) -> float | None:
    """Share of the packets that came to the bottleneck and were lost there.

    (Packets dropped by the queue + packets lost at random on the link) / packets that arrived, ACKs, SYNs and FINs
    included, in the measured part; null if none arrived. Without the link's counts, sampled drops / (drops +
    departures), random losses not included. Source: RFC 5166 (packet loss rates), Guillier 2008 (packet loss rate p).
    """
    links, samples = view.at_bottleneck("links"), view.at_bottleneck("queue_samples")
    if links.count("arrived_p"):
        return _ratio(_sum(links, "dropped_p", "lost_p"), links.sum("arrived_p"))
    return _ratio(samples.sum("drops_p"), _sum(samples, "drops_p", "departures_p"))


def mark_rate(view: RunView) -> float | None:
    """Share of the packets that came to the bottleneck and were marked there (ECN).

    Packets marked Congestion Experienced by the queue / packets that arrived, those that cannot be marked included, in
    the measured part; null if none arrived. Without the link's counts, sampled marks / (drops + departures). Source:
    RFC 3168 section 5; beside RFC 5166's packet loss rates.
    """
    links, samples = view.at_bottleneck("links"), view.at_bottleneck("queue_samples")
    if links.count("arrived_p"):
        return _ratio(links.sum("marked_p"), links.sum("arrived_p"))
    return _ratio(samples.sum("marks_p"), _sum(samples, "drops_p", "departures_p"))


def retransmission_rate(view: RunView) -> float | None:
    """Share of the data packets sent in the measured part that had been sent before.

    Source: RFC 5166 (packet loss rates), Guillier 2008 (retransmission r).
    """
    flows = view.rows("flows")
    return _ratio(flows.sum("measured_retransmissions"), flows.sum("measured_sent_packets"))


def retransmissions(view: RunView) -> float | None:
    """Retransmitted data packets of all flows in the measured part, as their senders counted them.

    Where only whole runs were counted, as in imports, null unless the measured part is the whole run. Source: RFC 5166
    (packet loss rates).
    """
    flows = view.rows("flows")
    counted = flows.sum("measured_retransmissions")
    is_part = view.between is not None or view.warmup_s > 0
    return counted if counted is not None or is_part else flows.sum("retransmissions")


def timeouts(view: RunView) -> float | None:
    """Retransmission timeouts of all flows in the measured part (RFC 6298).

    Source: RFC 5166 (packet loss rates), Guillier 2008 (timeout events t).
    """
    return view.rows("flows").sum("measured_timeouts")


def sends_per_rtt(view: RunView) -> float | None:
    """Data packets that a flow sends in a base RTT, retransmissions included; the mean over all flows.

    Packets sent in the measured part × base RTT / length of the measured part. Congestion collapse is what follows if
    it does not fall under loss; in a black hole the retransmission timer's backoff takes it towards 0. Null where an
    engine does not count packets. Source: RFC 9743 section 5.1.1, RFC 5681 section 4.3, RFC 6298 section 5.
    """
    flows = view.rows("flows")
    sent = [block["measured_sent_packets"] * block["base_rtt_s"] for block in flows.blocks(*SENDS)]
    per_flow = np.concatenate(sent) if sent else np.empty(0)
    known = per_flow[~np.isnan(per_flow)]
    return float(known.mean()) / view.measured_s if known.size else None


def breaker_load(view: RunView) -> float | None:
    """Sending rate over ten times that of TCP, which circuit breakers allow at a flow's loss; the largest of all flows.

    Above 1 the congestion circuit breaker of RTP ends a flow. TCP's rate is 1 / sqrt(2 p / 3) packets in a base RTT,
    with the share p of the flow's packets that was lost in the whole run; the rate is that of the measured part. 0
    without loss; null where an engine does not count packets. Source: RFC 8083 section 4.3, RFC 9743 section 7.2.
    """
    loads = [
        block["measured_sent_packets"]
        * block["base_rtt_s"]
        * np.sqrt(2 / 3 * block["dropped_packets"] / np.maximum(block["sent_packets"], 1))
        for block in view.rows("flows").blocks(*SENDS, *FLOW_LOSSES)
    ]
    per_flow = np.concatenate(loads) if loads else np.empty(0)
    known = per_flow[~np.isnan(per_flow)]
    return float(known.max()) / BREAKER_FACTOR / view.measured_s if known.size and view.measured_s > 0 else None


def syn_retransmission_rate(view: RunView) -> float | None:
    """Share of the SYNs that were retransmissions, for connections begun in the measured part.

    SYN retransmissions / (connections + SYN retransmissions); null if no connection began in the measured part.
    Source: RFC 9293 section 3.5, RFC 6298 section 5.
    """
    begun = view.cached(_begun)
    return _ratio(begun.retransmissions, begun.connections + begun.retransmissions) if begun.reported else None


def syn_retransmission_probability(view: RunView) -> float | None:
    """Share of the connections begun in the measured part that sent their SYN again at least once.

    The SYN or the SYN/ACK was lost, or the handshake took longer than the initial timeout; the sender cannot tell.
    Null if no connection began in the measured part. Source: Braud 2016 section 7.2 (probability of a SYN
    retransmission per connection).
    """
    begun = view.cached(_begun)
    return _ratio(float(begun.retransmitting), float(begun.reported))


def udp_loss_rate(view: RunView) -> float | None:
    """Share of the datagrams of all UDP flows that were lost.

    Datagrams that did not arrive / datagrams sent, over the whole run; null if either is unknown. Source: RFC 5166
    (packet loss rates).
    """
    lost = view.datagram_sum("dropped_packets")
    return None if lost is None else _ratio(lost, view.datagram_sum("sent_packets"))


@dataclass(frozen=True, slots=True)
class _Begun:
    """Connections begun in the measured part, and their SYN retransmissions as far as they are `reported`."""

    connections: int
    reported: int
    retransmissions: float
    retransmitting: int


def _begun(view: RunView) -> _Begun:
    result = np.zeros(4)
    for block in view.rows("flows").blocks("start_s", "syn_retransmissions"):
        inside = (block["start_s"] >= view.warmup_s) & (block["start_s"] <= view.duration_s)
        again = block["syn_retransmissions"][inside]
        result += again.size, (~np.isnan(again)).sum(), np.nansum(again), (again > 0).sum()
    return _Begun(int(result[0]), int(result[1]), float(result[2]), int(result[3]))


def _sum(rows: Rows, *columns: str) -> float | None:
    """Return the sum of several columns; None where one has no values."""
    sums = [rows.sum(column) for column in columns]
    return None if None in sums else sum(value for value in sums if value is not None)


def _ratio(part: float | None, total: float | None) -> float | None:
    return part / total if part is not None and total else None


METRICS = (
    Metric(
        "loss_rate",
        "share",
        "Loss rate at the bottleneck",
        loss_rate,
        ranks=(9, 9, 7, 6),
        short="loss rate",
        of_links=True,
    ),
    Metric("mark_rate", "share", "Mark rate at the bottleneck", mark_rate, ranks=(9,), of_links=True),
    Metric("udp_loss_rate", "share", "Loss rate of UDP", udp_loss_rate, ranks=(9,)),
    Metric("retransmission_rate", "share", "Retransmission rate", retransmission_rate, ranks=(10,)),
    Metric("retransmissions", "packets", "Retransmissions", retransmissions),
    Metric("timeouts", "", "Timeouts", timeouts, ranks=(11,)),
    Metric("sends_per_rtt", "packets", "Packets sent per flow and round trip", sends_per_rtt),
    Metric("breaker_load", "1", "Rate over the limit of circuit breakers", breaker_load),
    Metric("syn_retransmission_rate", "share", "SYN retransmission rate", syn_retransmission_rate),
    Metric(
        "syn_retransmission_probability",
        "share",
        "Connections that sent a SYN again",
        syn_retransmission_probability,
    ),
)
