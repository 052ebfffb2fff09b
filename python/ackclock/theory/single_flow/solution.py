"""Averages over cycles: loss rate, throughput, buffer, delay, RTT (Belhareth 2014, appendix A.3)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ackclock.theory.domains import POSITIVE, SHARE, checked, lower_bound, single
from ackclock.theory.single_flow.cycle import Cycle, cycles, stationary
from ackclock.theory.single_flow.flow import SingleFlow
from ackclock.theory.single_flow.stages import QUEUED, Stage


@dataclass(frozen=True, slots=True)
class Averages:
    """Means over time of stationary cycles, and the range of the window.

    `loss_rate` lost out of sent packets (A.5), `throughput_pps` packets/s (A.6), `queue_p` packets, the one in
    transmission counted (A.7), `delay_s` that they mean (A.8), `rtt_s` (A.9); `window_p` the mean window; `period_s`,
    `high_p`, `low_p` the mean length of the cycles, and of the windows before and after a loss.
    """

    loss_rate: float
    throughput_pps: float
    queue_p: float
    delay_s: float
    rtt_s: float
    window_p: float
    period_s: float
    high_p: float
    low_p: float


def averages(flow: SingleFlow) -> Averages:
    """Average the flow's stationary cycles."""
    return of_cycles(stationary(flow))


def of_cycles(result: Sequence[Cycle]) -> Averages:
    """Average these cycles, which the flow passes through one after the other."""
    flow, count, time_s = result[0].flow, len(result), sum(cycle.end_s for cycle in result)
    sent_p = sum(packets_sent(cycle) for cycle in result)
    queue_p = sum(queue_area(cycle) for cycle in result) / time_s
    delay_s = queue_p / flow.capacity_pps
    return Averages(
        loss_rate=sum(cycle.lost_p for cycle in result) / sent_p,
        throughput_pps=sent_p / time_s,
        queue_p=queue_p,
        delay_s=delay_s,
        rtt_s=flow.rtt_s + delay_s,
        window_p=sum(_area(stage) for cycle in result for stage in cycle.stages) / time_s,
        period_s=time_s / count,
        high_p=sum(cycle.end_window for cycle in result) / count,
        low_p=sum(cycle.epoch.start for cycle in result) / count,
    )


def packets_sent(cycle: Cycle) -> float:
    """Return the packets that pass the link from loss to loss."""
    return float(cycle.sent(cycle.end_s))


def _area(stage: Stage) -> float:
    return float(stage.curve.area(stage.start_s, stage.end_s))


def queue_area(cycle: Cycle) -> float:
    """Return ∫ (W − Cτ)⁺ dt, with the queue limited to B + 1.

    Equations A.7 and A.8 as printed lack the division by the cycle's length.
    """
    return sum(_queued(cycle.flow, stage) for stage in cycle.stages if stage.state in QUEUED)


def _queued(flow: SingleFlow, stage: Stage) -> float:
    full_s = min(stage.end_s, max(stage.start_s, stage.curve.when(flow.full_p)))
    filled = float(stage.curve.area(stage.start_s, full_s)) - flow.pipe_p * (full_s - stage.start_s)
    return filled + (flow.buffer_p + 1) * (stage.end_s - full_s)


@dataclass(frozen=True, slots=True)
class Trajectory:
    """`times_s`, the `windows` in packets, the `queue` in packets without the one in transmission, and `sent` (T each).

    `sent` are the packets that have passed the link since 0.
    """

    times_s: npt.NDArray[np.float64]
    windows: npt.NDArray[np.float64]
    queue: npt.NDArray[np.float64]
    sent: npt.NDArray[np.float64]


def timeline(flow: SingleFlow, duration_s: float) -> Iterator[tuple[float, Cycle]]:
    """Yield the cycles from 0 until `duration_s`, each with its start; a loss was detected at 0."""
    start_s = 0.0
    for cycle in cycles(flow):
        yield start_s, cycle
        start_s += cycle.end_s
        if start_s >= duration_s:
            return


@checked(duration_s=single(POSITIVE), step_s=single(POSITIVE))
def trajectory(flow: SingleFlow, duration_s: float, step_s: float) -> Trajectory:
    """Return window, queue and packets at `step_s`, 2 `step_s`, … until `duration_s`.

    The window is that of the cubic or of Reno's estimate, whichever is greater. Slow start is not modelled: at 0 a
    loss has just been seen at the window that fills path and buffer.
    """
    return at_times(flow, np.arange(1.0, int(duration_s / step_s * (1 + 1e-12)) + 1) * np.float64(step_s))


def at_times(flow: SingleFlow, times_s: npt.NDArray[np.float64]) -> Trajectory:
    """Return the trajectory at these ascending times; before 0 the window is 0."""
    windows, sent, before_p = np.zeros(times_s.shape), np.zeros(times_s.shape), 0.0
    for start_s, cycle in timeline(flow, float(times_s[-1]) if times_s.size else 0.0):
        inside = slice(*np.searchsorted(times_s, [start_s, start_s + cycle.end_s], side="right"))
        windows[inside] = cycle.windows(times_s[inside] - start_s)
        sent[inside] = before_p + cycle.sent(times_s[inside] - start_s)
        before_p += float(cycle.sent(cycle.end_s))
    queue = np.clip(windows - flow.pipe_p - 1, 0, flow.buffer_p)
    return Trajectory(times_s, windows, queue, sent)


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
