"""Limit of link emulation by a timer."""

from __future__ import annotations

from ackclock.theory.array_types import Number
from ackclock.theory.domains import POSITIVE, SHARE_TO_1, checked

#: Braud halves the result, so that the host that emulates has room.
MARGIN = 0.5


@checked(timer_hz=POSITIVE, mtu_bytes=POSITIVE, margin=SHARE_TO_1)
def emulation_limit(timer_hz: Number, mtu_bytes: float = 1500, *, margin: float = MARGIN) -> Number:
    """Return the highest rate (bit/s) of a shaper that wakes `timer_hz` times a second and sends a packet each.

    C ≈ MTU · F (Braud 2016, equation 3.1), × `margin`. A faster link would let packets go in bursts.
    """
    return margin * 8 * mtu_bytes * timer_hz
