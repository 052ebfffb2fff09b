"""One CUBIC flow alone through one drop-tail buffer, in closed form (Belhareth 2014, chapter 2 and appendix A).

    from ackclock.theory import single_flow

    flow = single_flow.SingleFlow(capacity_pps=8333, rtt_s=0.05, buffer_p=50)
    single_flow.averages(flow)                     # loss rate, throughput, queue, delay, RTT, period, amplitude
    single_flow.trajectory(flow, 60.0, 0.01)       # window and queue over time
    [cycle.path for cycle in single_flow.stationary(flow)]      # such as ["B-D-E"]

Windows and queues are in packets, times in seconds; β is the share given up at a loss. Where we depart from the print
is said at each formula.
"""

from ackclock.theory.single_flow.solution import (
    Averages,
    Cycle,
    Trajectory,
    always_cubic,
    at_times,
    averages,
    cubic_threshold_rtt_s,
    cycle,
    cycles,
    min_difference,
    of_cycles,
    packets_sent,
    queue_area,
    stationary,
    timeline,
    trajectory,
)
from ackclock.theory.single_flow.stages import Epoch, SingleFlow, Stage, after_loss, stages

__all__ = [
    "Averages",
    "Cycle",
    "Epoch",
    "SingleFlow",
    "Stage",
    "Trajectory",
    "after_loss",
    "always_cubic",
    "at_times",
    "averages",
    "cubic_threshold_rtt_s",
    "cycle",
    "cycles",
    "min_difference",
    "of_cycles",
    "packets_sent",
    "queue_area",
    "stages",
    "stationary",
    "timeline",
    "trajectory",
]
