"""Buffers: sizing rules in bytes, the use of a buffer by a sawtooth, and small packets in a queue that counts packets.

The rules as Belhareth 2014 (section 1.4.1) collects them: the product of bandwidth and delay (Villamizar and Song
1994), that over √N (Appenzeller, Keslassy and McKeown 2004), 0.63 of the latter (Wischik and McKeown 2005), a tenth of
the product (Hassayoun and Ros 2009), a fifth of it (Chen and Bensaou 2007).

Small packets take the slots of long ones, and the delay falls: T. Braud 2016, chapter 6. A flow of long segments (S_T
bytes) keeps a queue of so many places full; α places per segment are taken when α − 1 small packets (S_U bytes) go with
each. Where we deviate: equations 6.4 and 6.5 divide what the queue grows with and without small packets, and both are
nearly zero where rates are in balance. The thesis takes from them a delay that is divided by α. Counting places, a full
queue of B holds B/α times a segment and its α − 1 companions, which take (S_T + (α − 1) S_U)/C each: the delay is
divided by α / (1 + (α − 1) S_U/S_T), which is less.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ackclock.errors import InputError
from ackclock.theory.domains import POSITIVE, SHARE, Number, checked, lower_bound

#: Wischik and McKeown 2005, for `many_flows_buffer`.
WISCHIK = 0.63

#: The rules by the names that a scenario may give them: a share of C · RTT, and whether that over √N.
BUFFER_RULES: Mapping[str, tuple[float, bool]] = {
    "villamizar-song": (1.0, False),
    "appenzeller-keslassy-mckeown": (1.0, True),
    "wischik-mckeown": (WISCHIK, True),
    "hassayoun-ros": (0.1, False),
    "chen-bensaou": (0.2, False),
}


@checked(capacity_bps=POSITIVE, rtt_s=POSITIVE, share=POSITIVE)
def bdp_buffer(capacity_bps: Number, rtt_s: float, *, share: float = 1.0) -> Number:
    """Return C · RTT in bytes (Belhareth 2014, equation 1.1), or a `share` of it; 0.1 and 0.2 have been advocated.

    The whole of it keeps a link busy that one Reno flow has, or many that all lose together.
    """
    return share * capacity_bps * rtt_s / 8


@checked(flows=lower_bound(1), capacity_bps=POSITIVE, rtt_s=POSITIVE, factor=POSITIVE)
def many_flows_buffer(flows: Number, capacity_bps: float, rtt_s: float, *, factor: float = 1.0) -> Number:
    """Return C · RTT/√N in bytes, for N desynchronised flows (Belhareth 2014, equation 1.2; 1.3 with `WISCHIK`)."""
    size_bytes: Number = factor * bdp_buffer(capacity_bps, rtt_s) / flows**0.5
    return size_bytes


@checked(buffer=lower_bound(0), beta=SHARE)
def sawtooth_utilisation(buffer: Number, beta: float = 0.5) -> Number:
    """Return the utilisation of a link by one flow that grows a packet per RTT and keeps `beta` at a loss.

    The `buffer` is in bandwidth–delay products. The window goes from β (1 + b) to 1 + b of them. Below 1 the link idles
    part of each round trip; above it the round trip is longer instead. Without a buffer it is (1 + β)/2, three quarters
    for Reno, and 1 from b = 1/β − 1 on.
    """
    top = 1 + np.minimum(buffer, 1 / beta - 1)
    share: Number = top**2 * (1 - beta**2) / (1 - 2 * beta * top + top**2)
    return share


@checked(buffer=lower_bound(0), beta=SHARE)
def sawtooth_rtt(buffer: Number, beta: float = 0.5) -> Number:
    """Return the mean RTT over time of the same flow, in base RTTs.

    A packet more per RTT makes the time that is spent at a window proportional to the RTT there: ∫R² dW / ∫R dW.
    """
    top = 1 + buffer
    full_from = np.maximum(1.0, beta * top)
    idle = np.maximum(0.0, 1 - beta * top)
    mean: Number = (idle + (top**3 - full_from**3) / 3) / (idle + (top**2 - full_from**2) / 2)
    return mean


@checked(slots=lower_bound(1), capacity_bps=POSITIVE, segment_bytes=POSITIVE)
def small_packets_rate(slots: Number, capacity_bps: float, segment_bytes: float) -> Number:
    """Return the small packets/s that take α − 1 of α slots: R_T (α − 1), R_T ≈ C/S_T (Braud 2016, equation 6.6)."""
    return capacity_bps / (8 * segment_bytes) * (slots - 1)


@checked(slots=lower_bound(1), sizes=POSITIVE)
def small_packets_overhead(slots: Number, sizes: float) -> Number:
    """Return their share of the link, 1 / (1 + (S_T/S_U) / (α − 1)) (Braud 2016, equation 6.7).

    `sizes` is S_T/S_U: 52 for 1500 and 29 bytes, 18 where Ethernet pads short frames.
    """
    extra = (slots - 1) / sizes
    return extra / (1 + extra)


@checked(slots=lower_bound(1), capacity_bps=POSITIVE, segment_bytes=POSITIVE, small_bytes=lower_bound(0))
def tcp_rate_with_small_packets(slots: Number, capacity_bps: float, segment_bytes: float, small_bytes: float) -> Number:
    """Return the segments/s that remain on a full link: C / (S_T + (α − 1) S_U)."""
    return capacity_bps / 8 / (segment_bytes + (slots - 1) * small_bytes)


@checked(slots=lower_bound(1), sizes=POSITIVE)
def delay_reduction(slots: Number, sizes: float) -> Number:
    """Return the divisor of a full queue's delay: α / (1 + (α − 1) / `sizes`), `sizes` being S_T/S_U."""
    return slots / (1 + (slots - 1) / sizes)


@checked(small_rate_hz=lower_bound(0), capacity_bps=POSITIVE, segment_bytes=POSITIVE, small_bytes=lower_bound(0))
def slots_per_segment(small_rate_hz: Number, capacity_bps: float, segment_bytes: float, small_bytes: float) -> Number:
    """Return α for a rate of small packets on a full link: 1 + R_U/R_T, R_T being what they leave to TCP.

    Raises `InputError` if they leave nothing.
    """
    left_bps = capacity_bps - 8 * small_bytes * small_rate_hz
    if np.any(left_bps <= 0):
        raise InputError("slots_per_segment: small_rate_hz: found packets that fill the link; expected fewer")
    return 1 + small_rate_hz * 8 * segment_bytes / left_bps
