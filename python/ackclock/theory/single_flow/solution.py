"""Cycles from one loss to the next, and averages over them (Belhareth 2014, appendix A.3).

The averages are the loss rate, throughput, queue, delay, RTT, period and amplitude of the stationary cycles.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ackclock.theory.domains import POSITIVE, SHARE, checked, lower_bound, single
from ackclock.theory.single_flow.stages import CUBIC, QUEUED, SAME, Epoch, SingleFlow, Stage, after_loss, stages

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
    now_s, full_p = 0.0, flow.full_p
    later = iter(passed)
    stage = next(later)
    while now_s < lost_s or now_s == 0:
        while stage.end_s < now_s:
            stage = next(later)
        now_s += max(flow.rtt_s, min(float(stage.curve.at(now_s)), full_p) / flow.capacity_pps)
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
