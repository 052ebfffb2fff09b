"""Relative costs of the points of a sweep: a tenth of the runs is not a tenth of the work.

Points may differ a thousandfold: of a sweep over rates from 1 Mbit/s to 1 Gbit/s, the first half of the points may take
a thousandth of the time.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np
import numpy.typing as npt

from ackclock.experiments.cost import cost
from ackclock.scenario.planning import Loaded
from ackclock.scenario.points import Axis

Weights = npt.NDArray[np.float64]

#: The cost of so many points is worked out one by one, in less than half a second.
MAX_POINTS = 250

#: No run is for nothing.
MIN_S = 1e-6


def of_points(loaded: Loaded, engine: str) -> Weights:
    """Return the cost of a run at each point, in seconds of some machine.

    Raises `ScenarioError` for wrong points.
    """

    def cost_s(point: int) -> float:
        return max(cost(loaded.point(point).plan, engine).in_sweep().cpu_s, MIN_S)

    if loaded.sweep is None or loaded.sweep.count <= MAX_POINTS:
        return np.array([cost_s(point) for point in range(loaded.sweep.count if loaded.sweep else 1)])
    return separable(loaded.sweep.axes, cost_s)


def separable(axes: tuple[Axis, ...], cost_s: Callable[[int], float]) -> Weights:
    """The costs of all points, of those that differ from the first one at one key alone."""
    first_s, stride = cost_s(0), 1
    factors: list[Weights] = []
    for axis in reversed(axes):
        factors.append(np.array([cost_s(place * stride) / first_s for place in range(len(axis.values))]))
        stride *= len(axis.values)
    return first_s * reduce(np.multiply.outer, reversed(factors)).ravel()
