"""Throughput of a Reno connection at a loss probability: Mathis's square root, and Padhye's formula.

M. Mathis, J. Semke, J. Mahdavi, T. Ott: The macroscopic behavior of the TCP congestion avoidance algorithm, CCR 27(3),
1997. J. Padhye, V. Firoiu, D. Towsley, J. Kurose: Modeling TCP throughput, SIGCOMM 1998; the same as Modeling TCP Reno
performance, IEEE/ACM Transactions on Networking 8(2), 2000, whose equation numbers we use.

The loss probability p is that of a packet which begins a loss event, as both papers have it. Throughout, `b` is the
number of packets for which the window grows as for one: 1 where each packet counts, 2 where delayed ACKs are counted.
"""

from __future__ import annotations

import math

import numpy as np

from ackclock.theory.domains import (
    LIMIT,
    POSITIVE,
    PROBABILITY,
    PROBABILITY_TO_1,
    SHARE,
    SHARE_TO_1,
    Number,
    checked,
    lower_bound,
)

#: √(3/2): a sawtooth between W/2 and W of which each 1/p-th packet is lost (Mathis 1997, section 2).
PERIODIC = math.sqrt(3 / 2)

#: The same under independent losses (Mathis 1997, table 1, after Ott et al.).
RANDOM = 1.31


@checked(p=PROBABILITY_TO_1, b=POSITIVE, constant=POSITIVE)
def mathis_window(p: Number, *, b: float = 1.0, constant: float = PERIODIC) -> Number:
    """Return the average window in packets, `constant` / √(b p) (Mathis 1997, equation 3).

    The printed constants for b = 2 (0.87, 0.93) are those for b = 1 over √2.
    """
    window: Number = constant / (b * p) ** 0.5
    return window


@checked(p=PROBABILITY_TO_1, rtt_s=POSITIVE, mss_bytes=POSITIVE, b=POSITIVE, constant=POSITIVE)
def mathis(p: Number, rtt_s: float, mss_bytes: float, *, b: float = 1.0, constant: float = PERIODIC) -> Number:
    """Return the rate in bit/s, a window each RTT. Without timeouts, it is too high from a few per cent of loss on."""
    return 8 * mss_bytes / rtt_s * mathis_window(p, b=b, constant=constant)


@checked(p=PROBABILITY, rtt_s=POSITIVE, mss_bytes=POSITIVE, rto_s=POSITIVE, b=POSITIVE, max_window=LIMIT)
def pftk(
    p: Number,
    rtt_s: float,
    mss_bytes: float,
    *,
    rto_s: float | None = None,
    b: float = 1.0,
    max_window: float = math.inf,
) -> Number:
    """Return the rate in bit/s at which Reno sends, with timeouts and a maximum window (Padhye 2000, equation 32).

    What is sent again counts. `rto_s` is the first timeout's length T₀, by default 4 RTT (RFC 5348, section 3.1), and
    `max_window` the receiver's window in packets. A loss takes with it all later packets of its round; under
    independent losses with SACK there are fewer timeouts, and more packets get through.
    """
    t0_s = 4 * rtt_s if rto_s is None else rto_s
    free = unlimited_window(p, b=b)
    window = np.minimum(free, max_window)
    rounds = np.where(
        free < max_window,
        b / 2 * free + 1,
        b / 8 * window + (1 - p) / (p * window) + 2,
    )
    timeout = timeout_share(p, window)
    packets = (1 - p) / p + window + timeout / (1 - p)
    seconds = rtt_s * rounds + timeout * t0_s * backoff(p) / (1 - p)
    rate: Number = (8 * mss_bytes * packets / seconds)[()]
    return rate


@checked(p=PROBABILITY, rtt_s=POSITIVE, mss_bytes=POSITIVE, rto_s=POSITIVE, b=POSITIVE, max_window=LIMIT)
def pftk_simple(
    p: Number,
    rtt_s: float,
    mss_bytes: float,
    *,
    rto_s: float | None = None,
    b: float = 1.0,
    max_window: float = math.inf,
) -> Number:
    """The approximation that is cited most, bit/s (Padhye 2000, equation 33; RFC 5348 section 3.1)."""
    t0_s = 4 * rtt_s if rto_s is None else rto_s
    triple_s = rtt_s * (2 * b * p / 3) ** 0.5
    timeout_s = t0_s * np.minimum(1.0, 3 * (3 * b * p / 8) ** 0.5) * p * (1 + 32 * p**2)
    rate: Number = 8 * mss_bytes * np.minimum(max_window / rtt_s, 1 / (triple_s + timeout_s))
    return rate


def unlimited_window(p: Number, *, b: float = 1.0) -> Number:
    """The mean window in packets at the end of a stretch without a loss event (Padhye 2000, equation 13)."""
    half = (2 + b) / (3 * b)
    window: Number = half + (8 * (1 - p) / (3 * b * p) + half**2) ** 0.5
    return window


def timeout_share(p: Number, window: Number) -> Number:
    """Q̂: the share of loss events that end in a timeout, at this window (Padhye 2000, equation 24)."""
    kept = 1 - p
    three = kept**3
    share: Number = np.minimum(1.0, (1 - three) * (1 + three * (1 - kept ** (window - 3))) / (1 - kept**window))
    return share


def backoff(p: Number) -> Number:
    """f: mean length of a row of timeouts with doubling up to 64 T₀, × (1 − p) / T₀ (Padhye 2000, equation 29)."""
    return 1 + p + 2 * p**2 + 4 * p**3 + 8 * p**4 + 16 * p**5 + 32 * p**6


@checked(rate_bps=POSITIVE, rtt_s=POSITIVE, packet_bytes=POSITIVE, constant=POSITIVE)
def loss_free_packets(rate_bps: Number, rtt_s: float, packet_bytes: float, *, constant: float = PERIODIC) -> Number:
    """Packets from loss to loss that a steady rate needs: 1/p where Mathis's formula gives this rate.

    10 Gb/s at 100 ms with packets of 1500 bytes needs one loss in 4.6 × 10⁹ packets, and in 4.8 × 10⁹ with RFC 3649's
    constant of 1.2: the “5e9” of the literature. What the wire carries counts, so take whole packets for a link's rate.
    """
    window = rate_bps * rtt_s / (8 * packet_bytes)
    packets: Number = (window / constant) ** 2
    return packets


@checked(streams=lower_bound(1), capacity_bps=POSITIVE, beta=SHARE)
def altman(streams: Number, capacity_bps: float, beta: float) -> Number:
    """Return the aggregate rate of N parallel streams, C (1 − 1/(1 + N (1 + β)/(1 − β))), in bit/s.

    β is the share of the window that is kept at a loss. The link has no buffer. It is full when a loss happens, one of
    the streams then reduces, and all rates grow at one pace; a single stream has (1 + β)/2 of the link.
    """
    return capacity_bps * (1 - 1 / (1 + streams * (1 + beta) / (1 - beta)))


#: Braud halves the result, so that the host that emulates has room.
MARGIN = 0.5


@checked(timer_hz=POSITIVE, mtu_bytes=POSITIVE, margin=SHARE_TO_1)
def emulation_limit(timer_hz: Number, mtu_bytes: float = 1500, *, margin: float = MARGIN) -> Number:
    """Return the highest rate (bit/s) of a shaper that wakes `timer_hz` times a second and sends a packet each.

    C ≈ MTU · F (Braud 2016, equation 3.1), × `margin`. A faster link would let packets go in bursts.
    """
    return margin * 8 * mtu_bytes * timer_hz
