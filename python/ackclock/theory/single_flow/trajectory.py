"""Window and queue over time, for figures and tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ackclock.theory.domains import POSITIVE, checked, single
from ackclock.theory.single_flow.cycle import Cycle, cycles
from ackclock.theory.single_flow.flow import SingleFlow


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
