"""Small packets in a queue that counts packets: they take the slots of long ones, and the delay falls.

T. Braud 2016, chapter 6. A flow of long segments (S_T bytes) keeps a queue of so many places full; α places per segment
are taken when α − 1 small packets (S_U bytes) go with each.

Where we deviate: equations 6.4 and 6.5 divide what the queue grows with and without small packets, and both are nearly
zero where rates are in balance. The thesis takes from them a delay that is divided by α. Counting places, a full queue
of B holds B/α times a segment and its α − 1 companions, which take (S_T + (α − 1) S_U)/C each: the delay is divided by
α / (1 + (α − 1) S_U/S_T), which is less.
"""

from __future__ import annotations

import numpy as np

from ackclock.errors import InputError
from ackclock.theory.domains import POSITIVE, Number, checked, lower_bound


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
