"""Completion time of a transfer whose SYNs may be lost: T. Braud 2016, section 7.1.

A connection opens (SYN and SYN/ACK, with their losses), doubles its window each round trip up to the mean maximum that
the loss probability allows, goes on at the mean rate of congestion avoidance, spends a given time on the repair of each
loss, and closes.

Where we deviate:

- A transfer that is over before slow start would be spends log2(S/w + 1) round trips in it, and the second phase has no
  negative length.
- Slow start may begin from any initial window w; the thesis has one segment. It lasts at least one round trip.
- With exponential backoff, which TCP has, the timeouts are RTO₀, 2 RTO₀, 4 RTO₀, …; equation 7.7 has RTO₀ each time.
- The numbers printed in 7.13 do not follow from the equations: at p = 0.02 the mean window is 8.9 and not 10, and
  S · R_t · p is 0.72 s and not 0.50 s.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Generic

import numpy as np

from ackclock.theory.domains import POSITIVE, PROBABILITY, PROBABILITY_FROM_0, Number, checked, lower_bound, single

ONE_POSITIVE = single(POSITIVE)


@dataclass(frozen=True, slots=True)
class ResponseTime(Generic[Number]):
    """Mean time of a transfer by its phases, in seconds. `retried_s` is the part of `syn_s` that timeouts take."""

    syn_s: float
    retried_s: float
    slow_start_s: Number
    avoidance_s: Number
    recovery_s: Number
    fin_s: float

    @property
    def total_s(self) -> Number:
        """Return the time from the SYN to the end of the connection (equation 7.8)."""
        return self.syn_s + self.data_s + self.fin_s

    @property
    def data_s(self) -> Number:
        """Return the time from the handshake's end to the last acknowledgement of data."""
        return self.slow_start_s + self.avoidance_s + self.recovery_s

    @property
    def syn_share(self) -> Number:
        """Return the share of the handshake, with its repeats (equation 7.2)."""
        return self.syn_s / self.total_s


@checked(
    segments=POSITIVE,
    rtt_s=ONE_POSITIVE,
    p=single(PROBABILITY),
    p_syn=single(PROBABILITY_FROM_0),
    rto_s=ONE_POSITIVE,
    recovery_s=single(lower_bound(0)),
    initial_window=ONE_POSITIVE,
)
def response_time(
    segments: Number,
    rtt_s: float,
    p: float,
    *,
    p_syn: float = 0.0,
    rto_s: float = 1.0,
    recovery_s: float | None = None,
    backoff: bool = True,
    initial_window: float = 1.0,
) -> ResponseTime[Number]:
    """Return the mean completion time of a transfer by its number of segments (equations 7.6 to 7.12).

    Args:
        segments: its size S; may be an array.
        rtt_s: the round-trip time, always the same.
        p: probability that a data segment is lost.
        p_syn: probability that a handshake fails: the SYN or its answer is lost.
        rto_s: RTO₀, the first timeout of a SYN.
        recovery_s: R_t, what the repair of a loss takes; by default one RTT, the least.
        backoff: whether the timeout doubles each time.
        initial_window: segments of the first round trip.
    """
    retried_s = handshake_time(p_syn, rto_s, backoff=backoff)
    rounds = slow_start_rounds(p, initial_window)
    sent = initial_window * (2**rounds - 1)
    until_s = rtt_s * np.minimum(rounds, np.log2(segments / initial_window + 1))
    return ResponseTime(
        syn_s=rtt_s + retried_s,
        retried_s=retried_s,
        slow_start_s=until_s,
        avoidance_s=np.maximum(segments - sent, 0.0) / avoidance_rate(p, rtt_s),
        recovery_s=segments * (rtt_s if recovery_s is None else recovery_s) * p,
        fin_s=rtt_s,
    )


@checked(p_syn=single(PROBABILITY_FROM_0), rto_s=ONE_POSITIVE)
def handshake_time(p_syn: float, rto_s: float, *, backoff: bool = True) -> float:
    """Return the mean time of failed handshakes, without the round trip of the one that succeeds.

    RTO₀ p/(1 − p) (equation 7.7); with doubled timeouts Σ pᵏ 2ᵏ⁻¹ RTO₀ = RTO₀ p/(1 − 2p), infinite from ½ on.
    """
    if not backoff:
        return rto_s * p_syn / (1 - p_syn)
    return rto_s * p_syn / (1 - 2 * p_syn) if p_syn < 0.5 else math.inf


def largest_window(p: Number) -> Number:
    """Return W̄_max, the mean window in segments before a loss (equation 7.6): 3W²/8 − W/4 = 1/p."""
    window: Number = ((24 / p + 1) ** 0.5 + 1) / 3
    return window


def avoidance_rate(p: Number, rtt_s: float) -> Number:
    """Return X̄, segments a second in congestion avoidance: ¾ W̄_max each RTT."""
    return 0.75 * largest_window(p) / rtt_s


def slow_start_rounds(p: float, initial_window: float = 1.0) -> float:
    """Return n_ss, round trips until the window is W̄_max: log2(W̄_max/w) + 1 (section 7.1.2), at least one."""
    return max(math.log2(largest_window(p) / initial_window), 0.0) + 1


@checked(
    share=ONE_POSITIVE, rtt_s=ONE_POSITIVE, p=single(PROBABILITY), rto_s=ONE_POSITIVE, recovery_s=single(lower_bound(0))
)
def size_where_syn_counts(
    share: float, rtt_s: float, p: float, *, rto_s: float = 1.0, recovery_s: float | None = None
) -> float:
    """Return the size S in segments at which one lost SYN lengthens a transfer by this share.

    RTO₀ over the time without a lost SYN (section 7.1.6, figure 7-1); 0 if that holds for every size.
    """
    from scipy.optimize import brentq  # it takes long to import

    def excess(segments: float) -> float:
        total_s = response_time(segments, rtt_s, p, recovery_s=recovery_s).total_s if segments else 2 * rtt_s
        return total_s - rto_s / share

    if excess(0.0) >= 0:
        return 0.0
    long = 2 ** slow_start_rounds(p) + rto_s / share * avoidance_rate(p, rtt_s)
    return float(brentq(excess, 0.0, long))


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
