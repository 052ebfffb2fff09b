"""Cycles from one loss to the next, and the stationary ones."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ackclock.theory.single_flow.flow import SAME, Epoch, SingleFlow, after_loss
from ackclock.theory.single_flow.stages import CUBIC, QUEUED, Stage, stages

#: Function that returns the epoch after a loss, from the flow, the window at detection, and the plateau before.
Rule: TypeAlias = Callable[[SingleFlow, float, float], Epoch]

#: Number of cycles searched for ones that repeat; the first half may be a transient.
MAX_CYCLES = 256


@dataclass(frozen=True, slots=True)
class Cycle:
    """The time from the detection of a loss to the next detection; times since its start.

    `lost_s` is when the packet is lost, `end_s` when the sender knows; `lost_p` packets are lost until then.
    """

    flow: SingleFlow
    epoch: Epoch
    stages: tuple[Stage, ...]
    lost_s: float
    end_s: float

    @property
    def path(self) -> str:
        """Return the states up to the loss, such as `A-C-E` (section 2.3.1.2)."""
        before = [stage.state for stage in self.stages if stage.start_s < self.lost_s] or [self.stages[0].state]
        return "-".join([*(state for state, _ in itertools.groupby(before)), "E"])

    @property
    def end_window(self) -> float:
        """Return the window at which the loss is detected: the next w_max."""
        window = float(self.stages[-1].curve.at(self.end_s))
        if self.flow.loss_detection == "at_once":
            window = self.flow.loss_window
        if self.flow.rounding == "nothing":
            return window
        rounded = math.floor(window * (1 + SAME)) if self.flow.rounding == "loss" else self._round(window)
        return max(float(rounded), self.flow.loss_window)

    @property
    def lost_p(self) -> int:
        """Return the packets lost: the one that does not fit, and one for each growth step until detection."""
        return 1 + max(0, math.floor(self.end_window - self.flow.loss_window + SAME))

    def windows(self, times_s: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return the window at these times; whole packets if the flow's are."""
        times = np.asarray(times_s, dtype=float)
        result = np.empty(times.shape)
        for stage in self.stages:
            inside = (times >= stage.start_s) & (times <= stage.end_s)
            result[inside] = stage.curve.at(times[inside])
            if self.flow.rounding == "window":
                result[inside] = _rounded(result[inside], stage, self.epoch)
        return result

    def sent(self, times_s: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return packets that passed the link until these times: ∫ W / R dt, which is C Δt while there is a queue.

        The print's table 2.6 forgets 1/R in states A and B.
        """
        times = np.asarray(times_s, dtype=float)
        result = np.zeros(times.shape)
        for stage in self.stages:
            until_s = np.clip(times, stage.start_s, stage.end_s)
            if stage.state in QUEUED:
                result += self.flow.capacity_pps * (until_s - stage.start_s)
            else:
                result += stage.curve.area(stage.start_s, until_s) / self.flow.rtt_s
        return result

    def _round(self, window: float) -> float:
        return float(_rounded(np.array([window]), self.stages[-1], self.epoch)[0])


def _rounded(windows: npt.NDArray[np.float64], stage: Stage, epoch: Epoch) -> npt.NDArray[np.float64]:
    """Round to whole packets: the estimate down, the cubic towards its plateau."""
    down = np.floor(windows * (1 + SAME))
    if stage.state not in CUBIC:
        return down
    return np.where(windows < epoch.plateau, np.ceil(windows * (1 - SAME)), down)


def cycle(flow: SingleFlow, epoch: Epoch) -> Cycle:
    """Return the cycle that begins with this epoch."""
    passed: list[Stage] = []
    lost_s = math.inf
    earliest_s = flow.rtt_s if flow.rounding == "window" else 0.0  # before that no ACK makes a whole packet
    for stage in stages(flow, epoch):
        lost_s = min(lost_s, max(_lost_s(flow, epoch, stage), stage.start_s, earliest_s))
        passed.append(stage)
        if lost_s > stage.end_s:
            lost_s = math.inf
            continue
        detected_s = _detected_s(flow, passed, lost_s)
        if detected_s <= stage.end_s:
            return Cycle(flow, epoch, (*passed[:-1], stage.until(detected_s)), lost_s, detected_s)
    raise AssertionError("the last stage has no end, and the window grows without bound")


def _lost_s(flow: SingleFlow, epoch: Epoch, stage: Stage) -> float:
    """Return when the window of this stage's curve is too large.

    In whole packets as Linux and the ns-2 agent made of it count them, the cubic is rounded towards its plateau: below
    it, a window of n packets is there as soon as the curve is above n − 1.
    """
    if stage.state not in QUEUED:
        return math.inf
    level = flow.loss_window
    if stage.state in CUBIC and flow.rounding == "window" and level <= epoch.plateau:
        level -= 1
    return stage.curve.when(level)


def _detected_s(flow: SingleFlow, passed: list[Stage], lost_s: float) -> float:
    if flow.loss_detection == "at_once":
        return lost_s
    if flow.loss_detection == "rtt_later":
        return lost_s + flow.full_p / flow.capacity_pps
    now_s = 0.0
    while now_s < lost_s or now_s == 0:
        at = next(stage for stage in passed if stage.end_s >= now_s)
        now_s += max(flow.rtt_s, min(float(at.curve.at(now_s)), flow.full_p) / flow.capacity_pps)
    return now_s


def cycles(flow: SingleFlow, rule: Rule = after_loss) -> Iterator[Cycle]:
    """Yield cycles without end; `rule` gives the epoch after a loss. The first follows a slow start beyond W_E.

    So it is one of fast convergence. That may matter for ever: where losses are seen late, cycles with and without
    fast convergence can take turns, though cycles without it alone would repeat as well.
    """
    epoch = rule(flow, flow.loss_window, math.inf)
    while True:
        result = cycle(flow, epoch)
        yield result
        epoch = rule(flow, result.end_window, epoch.plateau)


def stationary(flow: SingleFlow) -> tuple[Cycle, ...]:
    """Return the cycles that repeat: mostly one, or two where fast convergence alternates.

    Where none repeat (windows that are seen at the ends of rounds need not), the last half of 256.
    """
    history = list(itertools.islice(cycles(flow), MAX_CYCLES))
    last = history[-1].epoch
    for length in range(1, MAX_CYCLES // 2):
        if _same(history[-1 - length].epoch, last):
            return tuple(history[-length:])
    return tuple(history[MAX_CYCLES // 2 :])


def _same(one: Epoch, other: Epoch) -> bool:
    return math.isclose(one.start, other.start, rel_tol=SAME) and math.isclose(one.plateau, other.plateau, rel_tol=SAME)
