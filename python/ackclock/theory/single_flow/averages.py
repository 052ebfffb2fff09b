"""Averages over cycles: loss rate, throughput, buffer, delay, RTT (appendix A.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ackclock.theory.single_flow.cycle import Cycle, stationary
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

    The print's A.7 and A.8 forget to divide by the cycle's length.
    """
    return sum(_queued(cycle.flow, stage) for stage in cycle.stages if stage.state in QUEUED)


def _queued(flow: SingleFlow, stage: Stage) -> float:
    full_s = min(stage.end_s, max(stage.start_s, stage.curve.when(flow.full_p)))
    filled = float(stage.curve.area(stage.start_s, full_s)) - flow.pipe_p * (full_s - stage.start_s)
    return filled + (flow.buffer_p + 1) * (stage.end_s - full_s)
