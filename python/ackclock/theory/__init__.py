"""The closed forms of the field and small dynamical models, as plain functions.

    import ackclock as ac

    ac.theory.pftk(1e-3, 0.1, 1448)      # bit/s that TCP Reno reaches at this loss probability and RTT

Functions take SI units (seconds, bit/s, bytes; windows in packets) and know nothing of scenarios: the `theory` engine
applies them to a plan, and the figures lay them over what other engines measured. The first number may be a list or a
NumPy array; the result is then an array of its shape. What a formula has no value for is an `InputError` that names the
argument.
"""

from __future__ import annotations

from ackclock.theory import pendulum, single_flow
from ackclock.theory.buffers import (
    BUFFER_RULES,
    bdp_buffer,
    delay_reduction,
    many_flows_buffer,
    sawtooth_rtt,
    sawtooth_utilisation,
    slots_per_segment,
    small_packets_overhead,
    small_packets_rate,
    tcp_rate_with_small_packets,
)
from ackclock.theory.completion_time import (
    ResponseTime,
    handshake_time,
    ideal_fct_s,
    response_time,
    size_where_syn_counts,
)
from ackclock.theory.cubic_curve import (
    cubic_convergence,
    cubic_curve,
    cubic_k,
    next_w_max,
    steps_after_plateau,
    time_after_plateau,
)
from ackclock.theory.throughput import (
    altman,
    cubic_window,
    emulation_limit,
    highspeed_window,
    loss_at,
    loss_free_packets,
    mathis,
    mathis_window,
    pftk,
    pftk_simple,
    response_function,
    response_window,
)

__all__ = [
    "BUFFER_RULES",
    "ResponseTime",
    "altman",
    "bdp_buffer",
    "cubic_convergence",
    "cubic_curve",
    "cubic_k",
    "cubic_window",
    "delay_reduction",
    "emulation_limit",
    "handshake_time",
    "highspeed_window",
    "ideal_fct_s",
    "loss_at",
    "loss_free_packets",
    "many_flows_buffer",
    "mathis",
    "mathis_window",
    "next_w_max",
    "pendulum",
    "pftk",
    "pftk_simple",
    "response_function",
    "response_time",
    "response_window",
    "sawtooth_rtt",
    "sawtooth_utilisation",
    "single_flow",
    "size_where_syn_counts",
    "slots_per_segment",
    "small_packets_overhead",
    "small_packets_rate",
    "steps_after_plateau",
    "tcp_rate_with_small_packets",
    "time_after_plateau",
]
