"""Average window and throughput of TCP at a loss probability.

Throughput of Reno: M. Mathis, J. Semke, J. Mahdavi, T. Ott: The macroscopic behavior of the TCP congestion avoidance
algorithm, CCR 27(3), 1997. J. Padhye, V. Firoiu, D. Towsley, J. Kurose: Modeling TCP throughput, SIGCOMM 1998; the same
as Modeling TCP Reno performance, IEEE/ACM Transactions on Networking 8(2), 2000, whose equation numbers we use. The
loss probability p is that of a packet which begins a loss event, as both papers have it. Throughout, `b` is the number
of packets for which the window grows as for one: 1 where each packet counts, 2 where delayed ACKs are counted.

Response functions of other CCAs, for periodic losses, at which each 1/p-th packet is lost: R. Guillier 2008 (slides,
“Known Transport Protocol solutions”) gives five as c/pᵈ; S. Floyd: HighSpeed TCP, RFC 3649, section 5; L. Xu et al.:
CUBIC, RFC 9438, section 5. Of Guillier's five, two are not those of the algorithms as they are run. BIC's 1/2 is the
slope of its additive part; below some thousands of packets Linux's spends most of an epoch in its binary search.
H-TCP's 0.835 is HighSpeed's: its own increase makes a slope between 2/3 and 3/4.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from ackclock.theory.domains import (
    LIMIT,
    POSITIVE,
    PROBABILITY,
    PROBABILITY_TO_1,
    SHARE,
    SHARE_TO_1,
    Number,
    OneOf,
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


#: c and d of c/pᵈ (Guillier 2008).
GUILLIER: Mapping[str, tuple[float, float]] = {
    "reno": (1.22, 0.5),
    "bic": (15.5, 0.5),
    "highspeed": (0.12, 0.835),
    "htcp": (0.12, 0.835),
    "scalable": (0.08, 1.0),
}

#: Variants whose window is c/pᵈ; CUBIC's depends on the RTT too.
VARIANT = OneOf(tuple(GUILLIER), hint="; CUBIC's is cubic_window")

#: The average window of Reno, · √p (RFC 3649, table 1; RFC 9438 takes it over).
RENO_OF_THE_RFCS = 1.2


@checked(variant=VARIANT, p=PROBABILITY_TO_1)
def response_window(variant: str, p: Number) -> Number:
    """Return Guillier's c/pᵈ in packets. Raises `InputError` for a variant without one."""
    c, d = GUILLIER[variant]
    window: Number = c / p**d
    return window


@checked(variant=VARIANT, p=PROBABILITY_TO_1, rtt_s=POSITIVE, mss_bytes=POSITIVE)
def response_function(variant: str, p: Number, rtt_s: float, mss_bytes: float) -> Number:
    """Return Guillier's response function MSS/RTT · c/pᵈ in bit/s. Raises `InputError` for a variant without one."""
    return 8 * mss_bytes / rtt_s * response_window(variant, p)


@checked(p=PROBABILITY_TO_1)
def highspeed_window(p: Number) -> Number:
    """Return the average window of HighSpeed TCP in packets, Reno's where larger (RFC 3649, section 5)."""
    window: Number = np.maximum(RENO_OF_THE_RFCS / p**0.5, response_window("highspeed", p))
    return window


@checked(p=PROBABILITY_TO_1, rtt_s=POSITIVE, c=POSITIVE, beta=SHARE)
def cubic_window(p: Number, rtt_s: float, *, c: float = 0.4, beta: float = 0.7, friendly: bool = True) -> Number:
    """Return the average window of CUBIC in packets (RFC 9438, figure 6 and tables 1 and 2).

    An epoch ends where the curve is flat, at t = K: ∜(c (3 + β) / (4 (1 − β)) (RTT/p)³), β being the share that is
    kept. If `friendly`, Reno's 1.2/√p where that is larger.
    """
    own = (c * (3 + beta) / (4 * (1 - beta)) * (rtt_s / p) ** 3) ** 0.25
    window: Number = np.maximum(own, RENO_OF_THE_RFCS / p**0.5) if friendly else own
    return window


@checked(variant=VARIANT, window=POSITIVE)
def loss_at(variant: str, window: Number) -> Number:
    """Return the loss probability at which Guillier's response function has this window.

    Raises `InputError` for a window below c, that at p = 1.
    """
    c, d = GUILLIER[variant]
    lower_bound(c).take("loss_at: window", window)
    p: Number = (c / window) ** (1 / d)
    return p
