"""Response functions: the average window of a CCA at a loss probability.

R. Guillier 2008 (slides, “Known Transport Protocol solutions”) gives five as c/pᵈ. S. Floyd: HighSpeed TCP, RFC 3649,
section 5; L. Xu et al.: CUBIC, RFC 9438, section 5. All are for periodic losses, at which each 1/p-th packet is lost.

Of Guillier's five, two are not those of the algorithms as they are run. BIC's 1/2 is the slope of its additive part;
below some thousands of packets Linux's spends most of an epoch in its binary search. H-TCP's 0.835 is HighSpeed's: its
own increase makes a slope between 2/3 and 3/4.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ackclock.theory.domains import POSITIVE, PROBABILITY_TO_1, SHARE, Number, OneOf, checked, lower_bound

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
