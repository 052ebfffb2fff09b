"""Closed forms of TCP's performance. Windows in segments, rates in segments per second, times in seconds."""

from __future__ import annotations

import math

#: The average window of Reno under periodic loss, ·√p (RFC 3649, table 1, as RFC 9438 takes it over).
RENO_TABLE = 1.2

#: √(3/2): a sawtooth between W/2 and W whose every 1/p-th segment is lost (Mathis et al. 1997, section 2).
MATHIS_PERIODIC = math.sqrt(3 / 2)

#: The same under independent losses, every segment acknowledged (Mathis et al. 1997, table 1, after Ott et al.).
MATHIS_RANDOM = 1.31


def mathis_window(loss: float, constant: float) -> float:
    """M. Mathis et al.: The macroscopic behavior of the TCP congestion avoidance algorithm, CCR 27(3), 1997, eq. 3."""
    return constant / math.sqrt(loss)


def cubic_window(loss: float, rtt_s: float, c: float, beta: float = 0.7) -> float:
    """RFC 9438, figure 6: the average window where an epoch ends on the flat of the curve, at t = K."""
    return ((c * (3 + beta) / (4 * (1 - beta))) * (rtt_s / loss) ** 3) ** 0.25


def table_window(loss: float, rtt_s: float, c: float | None) -> float:
    """RFC 9438, tables 1 and 2: Reno's average window, or CUBIC's for `c`, which is Reno's where that is larger."""
    reno = mathis_window(loss, RENO_TABLE)
    return reno if c is None else max(reno, cubic_window(loss, rtt_s, c))


def table_loss(rate_bps: float, rtt_s: float, packet_bytes: float, c: float | None) -> tuple[float, float]:
    """RFC 9438, table 3: the average window of a throughput, and the loss rate at which it is reached."""
    window = rate_bps * rtt_s / 8 / packet_bytes
    reno = (RENO_TABLE / window) ** 2
    if c is None:
        return window, reno
    cubic = rtt_s / (window**4 / (c * 3.7 / 1.2)) ** (1 / 3)
    return window, max(reno, cubic)


def pftk_rate(loss_events: float, rtt_s: float, rto_s: float, acked: float = 1.0) -> float:
    """J. Padhye et al.: Modeling TCP Reno performance, ToN 8(2), 2000, eq. 30, without a receive window.

    `loss_events` are loss indications (fast recoveries and timeouts) per packet sent, which is what the paper's p
    estimates (section III); `acked` is b, the segments an ACK makes the window grow for.
    """
    triple = rtt_s * math.sqrt(2 * acked * loss_events / 3)
    share = min(1.0, 3 * math.sqrt(3 * acked * loss_events / 8))
    return 1 / (triple + rto_s * share * loss_events * (1 + 32 * loss_events**2))


def reno_utilisation(buffer: float) -> float:
    """Utilisation by one Reno flow with `buffer` bandwidth–delay products of queue.

    The window B(1 + b) halves at each loss and grows by a segment per round trip. Below B the link idles part of each
    round trip; above, the round trip is longer instead. 3/4 without a buffer, 1 from one BDP on.
    """
    b = min(buffer, 1.0)
    return 3 * (1 + b) ** 2 / (4 * (1 + b + b * b))


def slow_start_rounds(segments: int, initial_window: int = 10) -> int:
    """Round trips in which slow start without a loss delivers so many segments."""
    return math.ceil(math.log2(segments / initial_window + 1 - 1e-12)) if segments > 0 else 0
