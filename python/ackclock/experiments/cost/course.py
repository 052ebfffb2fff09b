"""Distribution of a run's work over its simulated time: the share done by then, if the run goes as expected.

A tenth of the simulated time is a tenth of the work only where the load is even. The work until some time is what the
same plan would cost if it ended then.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from ackclock.experiments.cost import cost
from ackclock.plan import DatagramPlan, FlowPlan, Plan

#: A run that takes less is over before anybody would ask, in seconds.
LITTLE_S = 1.0

#: At most so many instants at which something begins or ends are looked at, and so many parts are halved …
MAX_CHANGES, MOST_HALVED = 24, 24

#: … and no more than take this share of the work, if each source takes so long to look at, in seconds.
WORTH, SOURCE_S = 0.02, 2e-4

#: Fewer looks tell nothing.
MIN_SAMPLES = 4

#: Shares of the time at which something is known at least.
MIN_SHARE = 1e-3


@dataclass(frozen=True, slots=True)
class Course:
    """Work that is done (0 to 1) at shares of the simulated time (0 to 1), both ascending; linear in between."""

    times: tuple[float, ...]
    done: tuple[float, ...]

    def at(self, time: float) -> float:
        """The share of the work that is done at a share of the simulated time."""
        after = min(max(bisect_right(self.times, time), 1), len(self.times) - 1)
        (first, last), (low, high) = self.times[after - 1 : after + 1], self.done[after - 1 : after + 1]
        return min(1.0, max(0.0, low + (high - low) * (time - first) / (last - first)))


#: The distribution without any information: uniform.
EVEN = Course((0.0, 1.0), (0.0, 1.0))


def course(plan: Plan, engine: str) -> Course:
    """Return the expected distribution of a run's work."""
    whole_s = cost(plan, engine).cpu_s
    looks = min(MAX_CHANGES + MOST_HALVED, int(WORTH * whole_s / (SOURCE_S * _sources(plan))))
    if whole_s < LITTLE_S or looks < MIN_SAMPLES:
        return EVEN

    def cost_s(time: float) -> float:
        return cost(replace(plan, duration_s=time * plan.duration_s), engine).cpu_s

    return drawn(cost_s, _thinned(_changes(plan), looks // 2), looks - looks // 2)


def drawn(cost_s: Callable[[float], float], changes: Sequence[float], halved: int) -> Course:
    """The course of a run that costs so much until each share of its time: between changes, finer where much is done.

    What it costs before anything happens (the start of an engine) is no part of it.
    """
    times = sorted({MIN_SHARE, 1.0, *(time for time in changes if MIN_SHARE < time < 1.0)})
    known = {time: cost_s(time) for time in times}
    waiting = [(known[first] - known[last], first, last) for first, last in pairwise(times)]
    heapq.heapify(waiting)
    for _ in range(halved):
        _, first, last = heapq.heappop(waiting)
        middle = (first + last) / 2
        known[middle] = cost_s(middle)
        for low, high in ((first, middle), (middle, last)):
            heapq.heappush(waiting, (known[low] - known[high], low, high))
    begun_s, whole_s = known[MIN_SHARE], known[1.0] - known[MIN_SHARE]
    if whole_s <= 0:
        return EVEN
    most, done = 0.0, []
    for time in sorted(known):
        most = max(most, min(1.0, (known[time] - begun_s) / whole_s))
        done.append(most)
    return Course((0.0, *sorted(known)), (0.0, *done))


def _changes(plan: Plan) -> Iterator[float]:
    """When something begins or ends, as shares of the run."""
    sources: tuple[FlowPlan | DatagramPlan, ...] = (*plan.flows, *plan.datagrams)
    for flow in sources:
        yield flow.start_s / plan.duration_s
        yield (flow.stop_s or math.inf) / plan.duration_s
    for traffic in plan.traffic:
        yield traffic.workload["start_s"] / plan.duration_s
        yield (traffic.workload["stop_s"] or math.inf) / plan.duration_s


def _thinned(changes: Iterator[float], most: int) -> list[float]:
    every = sorted(set(changes))
    return every[:: max(1, math.ceil(len(every) / max(1, most)))]


def _sources(plan: Plan) -> int:
    return max(1, len(set(plan.flows)) + len(plan.datagrams) + 100 * len(plan.traffic))
