"""Mode of the flow: always cubic, or Reno's estimate too (section 2.2.2)."""

from __future__ import annotations

import math

from ackclock.theory.domains import POSITIVE, SHARE, checked, lower_bound, single
from ackclock.theory.single_flow.flow import SingleFlow


@checked(w_max=single(POSITIVE))
def min_difference(flow: SingleFlow, w_max: float) -> float:
    """Return D_min = c (V − 2s)(V + s)², s = √(a / (3cτ)), packets: the least lead of the cubic over the estimate.

    At the second stationary point of the difference, t = V + s, without a queue; the cubic leads all the time if it is
    positive. V = ∛(β w_max / c).
    """
    to_plateau_s = math.cbrt(flow.beta * w_max / flow.c)
    s = math.sqrt(flow.growth_p / (3 * flow.c * flow.rtt_s))
    return flow.c * (to_plateau_s - 2 * s) * (to_plateau_s + s) ** 2


def always_cubic(flow: SingleFlow) -> bool:
    """Return True if the flow is never in TCP mode, as long as its w_max is Cτ + B (section 2.2.2)."""
    return min_difference(flow, flow.pipe_p + flow.buffer_p) > 0


@checked(
    capacity_pps=single(POSITIVE),
    buffer_p=single(lower_bound(0)),
    beta=single(SHARE),
    c=single(POSITIVE),
    packets_per_ack=single(POSITIVE),
)
def cubic_threshold_rtt_s(
    capacity_pps: float, buffer_p: float = 0.0, *, beta: float = 0.2, c: float = 0.4, packets_per_ack: float = 1.0
) -> float:
    """Return the RTT without queue above which a flow is always in cubic mode (section 2.2.2).

    D_min = 0 is τ V² = 4a / (3c) with V³ = β (Cτ + B) / c; for packets_per_ack = 1, τ V² = 4β / (c (2 − β)). The print
    gives 39 ms at 100 Mb/s and 18 ms at 1 Gb/s; the equation gives 38.0 and 15.1 ms for packets of 1500 bytes and no
    buffer, and less with one. Raises `InputError` for what is no set-up.
    """
    from scipy.optimize import brentq  # it takes long to import

    flow = SingleFlow(capacity_pps, 1.0, buffer_p, beta, c, packets_per_ack)
    target = 4 * flow.growth_p / (3 * c)

    def excess(rtt_s: float) -> float:
        return rtt_s * math.cbrt(beta * (capacity_pps * rtt_s + buffer_p) / c) ** 2 - target

    upper_s = (target / (beta * capacity_pps / c) ** (2 / 3)) ** 0.6
    return float(brentq(excess, 0.0, 2 * upper_s, xtol=1e-15, rtol=1e-13))
