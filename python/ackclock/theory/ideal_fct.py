"""Completion time of a transfer in an empty network, the reference of the slowdown."""

from __future__ import annotations

from typing import Any

import numpy as np

from ackclock.theory.array_types import Number
from ackclock.theory.domains import POSITIVE, checked

#: A window that doubles this often is beyond any pipe.
MAX_ROUNDS = 60


@checked(wire_bytes=POSITIVE, rate_bps=POSITIVE, rtt_s=POSITIVE, packet_bytes=POSITIVE, initial_window=POSITIVE)
def ideal_fct_s(
    wire_bytes: Number, rate_bps: Number, rtt_s: Number, packet_bytes: float = 1514.0, initial_window: float = 10.0
) -> Number:
    """Return seconds from the SYN to the last byte's ACK of a transfer that has its path to itself.

    A round trip to open the connection, the transmission of all at the rate of the slowest link, and a round trip for
    the last packet; before the window fills the pipe, the link waits after each window of slow start, which doubles:
    2 RTT + S/R + Σ max(0, P/R + RTT − 2ᵏ I P/R) over the windows k = 0, 1, … but the last (`wire_bytes` S,
    `packet_bytes` P, `initial_window` I in packets). Source: Heidemann, Obraczka and Touch 1997 (modelling the
    performance of HTTP over several transport protocols), as in Kurose and Ross. Each segment is acknowledged at
    once, and neither the window nor a buffer limits anything else.
    """
    rate, rtt = rate_bps / 8, rtt_s
    each_s = packet_bytes / rate
    packets = np.maximum(1.0, np.ceil(wire_bytes / packet_bytes))
    waited_s: Any = 0.0
    for number in range(MAX_ROUNDS):
        before = initial_window * (2.0 ** (number + 1) - 1)
        idle_s = np.maximum(0.0, each_s + rtt - 2.0**number * initial_window * each_s)
        more = np.where(packets > before, idle_s, 0.0)
        if not more.any():
            break
        waited_s = waited_s + more
    total: Number = 2 * rtt + wire_bytes / rate + waited_s
    return total
