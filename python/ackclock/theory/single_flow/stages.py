"""States of the window after a loss (section 2.3.1.1, figure 2.4).

A: TCP mode without a queue, B: cubic mode without, C: TCP mode with a queue, D: cubic mode with one, E: the loss.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ackclock.theory.single_flow.curves import Cubic, Curve, Line
from ackclock.theory.single_flow.estimates import Estimate, cubic_to_tcp_s, estimate, tcp_to_cubic_s
from ackclock.theory.single_flow.flow import Epoch, SingleFlow

State: TypeAlias = Literal["A", "B", "C", "D"]

#: States in which the cubic leads, and in which there is a queue.
CUBIC, QUEUED = ("B", "D"), ("C", "D")


@dataclass(frozen=True, slots=True)
class Stage:
    """An interval in one state, on one curve; times since the loss."""

    state: State
    start_s: float
    end_s: float
    curve: Curve

    def until(self, end_s: float) -> Stage:
        """Return the stage cut at `end_s`."""
        return Stage(self.state, self.start_s, min(self.end_s, end_s), self.curve)


def stages(flow: SingleFlow, epoch: Epoch) -> Iterator[Stage]:
    """Yield the stages after a loss, as if no other came: the last one has no end."""
    cubic = Cubic(flow.c, epoch.to_plateau_s(flow.c), epoch.plateau)
    filled_s = 0.0
    if epoch.start < flow.pipe_p:
        for stage in _without_queue(flow, epoch, cubic):
            filled_s = stage.end_s
            yield stage
    yield from _with_queue(flow, estimate(flow, epoch, cubic), cubic, filled_s, epoch)


def _without_queue(flow: SingleFlow, epoch: Epoch, cubic: Cubic) -> Iterator[Stage]:
    """Yield A and B, until the window is Cτ."""
    line = Line(0.0, epoch.start, flow.growth_p / flow.rtt_s)
    given = (flow.growth_p, flow.c, flow.rtt_s, cubic.to_plateau_s)
    passed_s, passes_s = cubic_to_tcp_s(*given), tcp_to_cubic_s(*given)
    begins_cubic = cubic.slope(0.0) >= line.slope
    turns_s = [time_s for time_s in (passed_s, passes_s) if math.isfinite(time_s)]
    edges_s = [0.0, *(turns_s if begins_cubic else turns_s[-1:]), math.inf]
    leads_cubic = begins_cubic
    for start_s, end_s in itertools.pairwise(edges_s):
        curve: Curve = cubic if leads_cubic else line
        filled_s = curve.when(flow.pipe_p)
        yield Stage("B" if leads_cubic else "A", start_s, min(end_s, filled_s), curve)
        if filled_s <= end_s:
            return
        leads_cubic = not leads_cubic


def _with_queue(flow: SingleFlow, reno: Estimate, cubic: Cubic, start_s: float, epoch: Epoch) -> Iterator[Stage]:
    """Yield C and D, in turns."""
    slope = flow.growth_p / flow.rtt_s
    window = epoch.start + slope * start_s
    leads_cubic = _cubic_leads(flow, cubic, start_s, window)
    while start_s < math.inf:
        if leads_cubic:
            end_s = reno.begins_s(start_s, window)
            yield Stage("D", start_s, end_s, cubic)
            window = reno.after_cubic(start_s, end_s, window) if end_s < math.inf else window
        else:
            end_s = reno.ends_s(start_s, window)
            pieces = [*reno.leads(start_s, window), (math.inf, cubic)]
            for (from_s, curve), (to_s, _) in itertools.pairwise(pieces):
                if from_s < end_s:
                    yield Stage("C", from_s, min(to_s, end_s), curve)
                    window = float(curve.at(min(to_s, end_s))) if end_s < math.inf else window
        start_s, leads_cubic = end_s, not leads_cubic


def _cubic_leads(flow: SingleFlow, cubic: Cubic, at_s: float, window: float) -> bool:
    """Return True if the cubic leads when the queue begins; of two equal curves the steeper one leads."""
    if at_s > 0:
        return float(cubic.at(at_s)) > window
    round_s = max(window - (flow.growth_p if flow.growth == "rtt" else 0.0), flow.pipe_p) / flow.capacity_pps
    return cubic.slope(0.0) >= flow.growth_p / round_s
