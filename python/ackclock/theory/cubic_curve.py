"""CUBIC's curve around its plateau: Belhareth 2014, section 5.5.1, figures 5.14 and 5.15.

W(t) = c (t − K)³ + w_max, t being the time since the last loss, and K that at which the curve is flat. `beta` is the
share of the window that is kept at a loss (the thesis's β is what is given up, 0.2).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from ackclock.theory.domains import (
    FINITE,
    POSITIVE,
    POSITIVE_INTEGER,
    SHARE,
    Array,
    Number,
    checked,
    lower_bound,
    single,
)

ONE_POSITIVE = single(POSITIVE)

#: Segments a second³ (RFC 9438, section 4.1).
C = 0.4


@checked(w_max=POSITIVE, c=POSITIVE, beta=SHARE)
def cubic_k(w_max: Number, *, c: float = C, beta: float = 0.7) -> Number:
    """Return the seconds from a loss to the plateau of the curve: ∛(w_max (1 − β)/c)."""
    k: Number = np.cbrt(w_max * (1 - beta) / c)
    return k


@checked(time_s=lower_bound(0), w_max=POSITIVE, c=POSITIVE, beta=SHARE)
def cubic_curve(time_s: Number, w_max: float, *, c: float = C, beta: float = 0.7) -> Number:
    """Return the window in packets at this time after a loss."""
    return c * (time_s - cubic_k(w_max, c=c, beta=beta)) ** 3 + w_max


@checked(packets=FINITE, c=POSITIVE)
def time_after_plateau(packets: Number, *, c: float = C) -> Number:
    """Return the seconds from the plateau until the curve is this many packets above w_max: ∛(k/c).

    1.36, 1.71, 1.96 and 2.15 s for one to four packets, whatever the window and the RTT. Negative below w_max.
    """
    after_s: Number = np.cbrt(packets / c)
    return after_s


@checked(packets=single(POSITIVE_INTEGER), c=POSITIVE)
def steps_after_plateau(packets: int, *, c: float = C) -> Array:
    """Return the seconds that each of the first packets above w_max lasts: from k to k + 1 (figure 5.14)."""
    return np.diff(time_after_plateau(np.arange(packets + 1.0), c=c))


@checked(w_max=ONE_POSITIVE, capacity_p=ONE_POSITIVE, rtt_s=ONE_POSITIVE, c=ONE_POSITIVE, beta=single(SHARE))
def next_w_max(w_max: float, capacity_p: float, rtt_s: float, *, c: float = C, beta: float = 0.7) -> float:
    """Return the window in whole packets at which a flow detects its next loss.

    The first packet beyond the capacity (what the path and its buffer hold) is lost when the curve reaches
    `capacity_p` + 1, or at once if it is above that after the last loss. The sender hears of it a round trip later,
    and has followed the curve meanwhile.
    """
    lost_s = cubic_k(w_max, c=c, beta=beta) + time_after_plateau(capacity_p + 1 - w_max, c=c)
    heard_s = max(lost_s, 0.0) + rtt_s
    return math.floor(cubic_curve(heard_s, w_max, c=c, beta=beta) + 1e-9)


@checked(w_max=ONE_POSITIVE, capacity_p=ONE_POSITIVE, rtt_s=ONE_POSITIVE, c=ONE_POSITIVE, beta=single(SHARE))
def cubic_convergence(
    w_max: float, capacity_p: float, rtt_s: float, *, c: float = C, beta: float = 0.7
) -> Iterator[float]:
    """Yield w_max from loss to loss, without end (figure 5.15).

    With a round trip below 1.36 s it comes to `capacity_p` + 1 from anywhere and stays there: from w_max it is ∛(1/c)
    to the next packet, so one packet beyond the capacity is all that is lost.
    """
    return _repeated(partial(next_w_max, capacity_p=capacity_p, rtt_s=rtt_s, c=c, beta=beta), w_max)


def _repeated(following: Callable[[float], float], value: float) -> Iterator[float]:
    while True:
        yield value
        value = following(value)
