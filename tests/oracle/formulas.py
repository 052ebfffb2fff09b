"""Further closed forms of TCP's performance. Windows in segments, times in seconds."""

from __future__ import annotations

import math

from ackclock import theory
from ackclock.theory.throughput import RENO_OF_THE_RFCS


def table_window(loss: float, rtt_s: float, c: float | None) -> float:
    """RFC 9438, tables 1 and 2: Reno's average window, or CUBIC's for `c`, which is Reno's where that is larger."""
    return RENO_OF_THE_RFCS / math.sqrt(loss) if c is None else theory.cubic_window(loss, rtt_s, c=c)


def table_loss(rate_bps: float, rtt_s: float, packet_bytes: float, c: float | None) -> tuple[float, float]:
    """RFC 9438, table 3: the average window of a throughput, and the loss rate at which it is reached."""
    window = rate_bps * rtt_s / 8 / packet_bytes
    reno = (RENO_OF_THE_RFCS / window) ** 2
    if c is None:
        return window, reno
    cubic = rtt_s / (window**4 / (c * 3.7 / 1.2)) ** (1 / 3)
    return window, max(reno, cubic)


def slow_start_rounds(segments: int, initial_window: int = 10) -> int:
    """Round trips in which slow start without a loss delivers so many segments."""
    return math.ceil(math.log2(segments / initial_window + 1 - 1e-12)) if segments > 0 else 0
