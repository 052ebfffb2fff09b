"""The set-up of the single flow, its epoch after a loss, and the states that the window passes in it.

States (section 2.3.1.1, figure 2.4) have curves, times and an order.

A: TCP mode without a queue, B: cubic mode without, C: TCP mode with a queue, D: cubic mode with one, E: the loss.

In TCP mode the estimate of Reno's window leads. It has two growth laws. By ACKs (`acks`): as senders do it, the
estimate grows by a packets for each window of ACKs, so with a queue dW/dt = aC/W. By RTT (`rtt`): as the print has it,
W = W1 + a t / R(t) with R(t) = (W − a)/C, the RTT of a round before (equations 2.10 and 2.11), and never less than τ.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias, TypeVar, get_args

import numpy as np
import numpy.typing as npt

from ackclock.theory.domains import POSITIVE, SHARE, Domain, OneOf, check, lower_bound, single

#: Growth of Reno's estimate: by `a` packets for each window of ACKs, or as the print has it, W1 + a t / R(t).
Growth: TypeAlias = Literal["acks", "rtt"]

#: Quantity that is a whole number of packets: nothing; the window at which a packet is lost; or the window itself.
Rounding: TypeAlias = Literal["nothing", "loss", "window"]

#: When the sender learns of a loss: at once, at the end of the round (slots of an RTT), or an RTT later.
LossDetection: TypeAlias = Literal["at_once", "next_round", "rtt_later"]

#: Domains of a flow's set-up.
DOMAINS: Mapping[str, Domain] = {
    **dict.fromkeys(("capacity_pps", "rtt_s", "c", "packets_per_ack"), single(POSITIVE)),
    "buffer_p": single(lower_bound(0)),
    "beta": single(SHARE),
    "growth": OneOf(get_args(Growth)),
    "rounding": OneOf(get_args(Rounding)),
    "loss_detection": OneOf(get_args(LossDetection)),
}

#: Two windows nearer than this, as a share, are the same: no fast convergence because of rounding errors.
SAME = 1e-9


@dataclass(frozen=True, slots=True)
class SingleFlow:
    """One endless CUBIC flow on a link with a drop-tail buffer (Belhareth 2014, section 2.3, table 2.1).

    `capacity_pps` C in packets/s, `rtt_s` τ without queue, `buffer_p` B in packets, without the one in transmission.
    `beta` is the share given up at a loss, `c` CUBIC's constant in packets/s³, `packets_per_ack` b (2 if every second
    packet is acknowledged and the sender counts ACKs).
    """

    capacity_pps: float
    rtt_s: float
    buffer_p: float
    beta: float = 0.2
    c: float = 0.4
    packets_per_ack: float = 1.0
    fast_convergence: bool = True
    growth: Growth = "acks"
    rounding: Rounding = "nothing"
    loss_detection: LossDetection = "at_once"

    def __post_init__(self) -> None:
        """Raise `InputError` for an invalid set-up."""
        check(self, DOMAINS)

    @property
    def pipe_p(self) -> float:
        """Return Cτ, the packets that the path holds without a queue."""
        return self.capacity_pps * self.rtt_s

    @property
    def full_p(self) -> float:
        """Return Cτ + B + 1: path, buffer, and the packet in transmission; W_E in table 2.4."""
        return self.pipe_p + self.buffer_p + 1

    @property
    def loss_window(self) -> float:
        """Return the window at which a packet is lost: W_E, or the first whole number of packets above."""
        return self.full_p if self.rounding == "nothing" else math.floor(self.full_p * (1 + SAME)) + 1.0

    @property
    def growth_p(self) -> float:
        """Return the growth a = 3β / (b (2 − β)), packets for each window of ACKs in TCP mode (equation 2.14)."""
        return 3 * self.beta / (self.packets_per_ack * (2 - self.beta))


@dataclass(frozen=True, slots=True)
class Epoch:
    """The state after a loss: the window W1, and the plateau of the cubic."""

    start: float
    plateau: float

    def to_plateau_s(self, c: float) -> float:
        """Return V, the time to the plateau: ∛((plateau − W1) / c) (equations 2.12 and 2.13)."""
        return math.cbrt((self.plateau - self.start) / c)


def after_loss(flow: SingleFlow, window: float, last_plateau: float) -> Epoch:
    """Return the epoch after a loss detected at `window`, whose cubic aimed at `last_plateau`.

    If the window has not come up to that, fast convergence lowers the plateau to (1 − β/2) W (section 2.4.1.1).
    """
    shrinking = flow.fast_convergence and window < last_plateau * (1 - SAME)
    plateau = (1 - flow.beta / 2) * window if shrinking else window
    kept = (1 - flow.beta) * window
    if flow.rounding == "window":
        return Epoch(max(1.0, float(math.floor(kept * (1 + SAME)))), float(math.floor(plateau * (1 + SAME))))
    return Epoch(kept, plateau)


Array: TypeAlias = npt.NDArray[np.float64]

#: A time or several, in seconds; what is computed from it has the same shape.
Time = TypeVar("Time", float, Array)


class Curve(Protocol):
    """A window over the time since the loss."""

    def at(self, t_s: Time) -> Time:
        """Return the window at these times, in packets."""

    def area(self, start_s: float, end_s: npt.ArrayLike) -> Array:
        """Return the integral of the window until these times, in packet-seconds."""

    def when(self, window: float) -> float:
        """Return when the window is reached; infinity if never."""


@dataclass(frozen=True, slots=True)
class Cubic:
    """c (t − V)³ + plateau (equation 2.1)."""

    c: float
    to_plateau_s: float
    plateau: float

    def at(self, t_s: Time) -> Time:
        """Return the window at these times."""
        return self.c * (t_s - self.to_plateau_s) ** 3 + self.plateau

    def slope(self, t_s: float) -> float:
        """Return packets per second."""
        return 3 * self.c * (t_s - self.to_plateau_s) ** 2

    def area(self, start_s: float, end_s: npt.ArrayLike) -> Array:
        """Return the integral of the window."""
        x, y = start_s - self.to_plateau_s, np.asarray(end_s) - self.to_plateau_s
        return np.asarray(self.c * (y**4 - x**4) / 4 + self.plateau * (y - x))

    def when(self, window: float) -> float:
        """Return t_BD or t_DE of table 2.5, with the real cube root."""
        return self.to_plateau_s + math.cbrt((window - self.plateau) / self.c)

    def rounds(self, start_s: float, end_s: float) -> float:
        """Return the integral of 1 / window: × the capacity, the round trips made while there is a queue."""
        root = math.cbrt(self.plateau / self.c)

        def primitive(t_s: float) -> float:
            x = t_s - self.to_plateau_s
            logs = math.log(x + root) / 3 - math.log(x * x - root * x + root * root) / 6
            return (logs + math.atan((2 * x - root) / (math.sqrt(3) * root)) / math.sqrt(3)) / (self.c * root**2)

        return primitive(end_s) - primitive(start_s)


@dataclass(frozen=True, slots=True)
class Line:
    """w0 + slope (t − t0): TCP mode without a queue (equation 2.5)."""

    t0_s: float
    w0: float
    slope: float

    def at(self, t_s: Time) -> Time:
        """Return the window at these times."""
        return self.w0 + self.slope * (t_s - self.t0_s)

    def area(self, start_s: float, end_s: npt.ArrayLike) -> Array:
        """Return the integral of the window."""
        ends_s = np.asarray(end_s)
        return np.asarray(self.at((start_s + ends_s) / 2) * (ends_s - start_s))

    def when(self, window: float) -> float:
        """Return t_AC of table 2.5."""
        return self.t0_s + (window - self.w0) / self.slope


@dataclass(frozen=True, slots=True)
class Root:
    """m + √(h² + k (t − t0)): TCP mode with a queue, k in packets²/s.

    For growth by ACKs, dW/dt = a C / W: m = 0, h = W(t0), k = 2 a C. For equation 2.11, m = (W1 + a) / 2,
    h = (W1 − a) / 2, k = a C.
    """

    t0_s: float
    middle: float
    half: float
    k: float

    def at(self, t_s: Time) -> Time:
        """Return the window at these times."""
        under_root = self.half**2 + self.k * (t_s - self.t0_s)
        return self.middle + (math.sqrt(under_root) if isinstance(under_root, float) else np.sqrt(under_root))

    def area(self, start_s: float, end_s: npt.ArrayLike) -> Array:
        """Return the integral of the window."""
        ends_s = np.asarray(end_s)
        x, y = self.at(start_s) - self.middle, self.at(ends_s) - self.middle
        return np.asarray(self.middle * (ends_s - start_s) + 2 * (y**3 - x**3) / (3 * self.k))

    def when(self, window: float) -> float:
        """Return t_CE of table 2.5."""
        return self.t0_s + ((window - self.middle) ** 2 - self.half**2) / self.k


class Estimate(Protocol):
    """Reno's estimate while there is a queue."""

    def leads(self, t_s: float, window: float) -> Iterator[tuple[float, Curve]]:
        """Yield pieces of its curve from t_s on, where it is `window`, each with its start."""

    def after_cubic(self, start_s: float, end_s: float, window: float) -> float:
        """Return the estimate after the cubic led from start_s, where the estimate was `window`, to end_s."""

    def ends_s(self, t_s: float, window: float) -> float:
        """Return the time of C → D: the cubic passes the estimate, which is `window` at t_s."""

    def begins_s(self, t_s: float, window: float) -> float:
        """Return the time of D → C: the estimate passes the cubic."""


@dataclass(frozen=True, slots=True)
class ByAcks:
    """Growth by a packets for each window of ACKs, whatever the window."""

    flow: SingleFlow
    cubic: Cubic

    @property
    def _pace(self) -> float:
        return self.flow.growth_p * self.flow.capacity_pps

    def leads(self, t_s: float, window: float) -> Iterator[tuple[float, Curve]]:
        """Yield √(W² + 2aC (t − t0))."""
        yield t_s, self._own(t_s, window)

    def _own(self, t_s: float, window: float) -> Root:
        return Root(t_s, 0.0, window, 2 * self._pace)

    def after_cubic(self, start_s: float, end_s: float, window: float) -> float:
        """Return W + aC ∫ dt / w_c: the round trips are the cubic's."""
        return window + self._pace * self.cubic.rounds(start_s, end_s)

    def ends_s(self, t_s: float, window: float) -> float:
        """Solve w_c² = W² + 2aC (t − t0)."""

        def difference(at_s: float) -> float:
            return float(self.cubic.at(at_s)) ** 2 - window**2 - 2 * self._pace * (at_s - t_s)

        return turning(difference, t_s, self._stationary_s(), -1)

    def begins_s(self, t_s: float, window: float) -> float:
        """Solve w_c = W + aC ∫ dt / w_c."""

        def difference(at_s: float) -> float:
            return float(self.cubic.at(at_s)) - self.after_cubic(t_s, at_s, window)

        return turning(difference, t_s, self._stationary_s(), 1)

    def _stationary_s(self) -> list[float]:
        """Solve w_c dw_c/dt = aC, for both differences."""
        roots = real_roots([self.cubic.c, 0, 0, self.cubic.plateau, 0, -self._pace / (3 * self.cubic.c)])
        return [self.cubic.to_plateau_s + root for root in roots]


@dataclass(frozen=True, slots=True)
class ByRtt:
    """Growth W = W1 + a t / max(τ, (W − a)/C), a function of time alone."""

    flow: SingleFlow
    cubic: Cubic
    start: float

    def leads(self, t_s: float, window: float) -> Iterator[tuple[float, Curve]]:
        """Yield equation 2.5 until W = Cτ + a, then equation 2.11."""
        a, capacity = self.flow.growth_p, self.flow.capacity_pps
        line = Line(0.0, self.start, a / self.flow.rtt_s)
        bend_s = line.when(self.flow.pipe_p + a)
        if t_s < bend_s:
            yield t_s, line
        yield max(t_s, bend_s), Root(0.0, (self.start + a) / 2, abs(self.start - a) / 2, a * capacity)

    def after_cubic(self, start_s: float, end_s: float, window: float) -> float:
        """Return `window` unused: the estimate does not depend on the past."""
        return window

    def ends_s(self, t_s: float, window: float) -> float:
        """Solve (w_c − W1) max(τ, (w_c − a)/C) = a t."""
        return turning(self._difference, t_s, self._stationary_s(), -1)

    def begins_s(self, t_s: float, window: float) -> float:
        """Solve the same equation for the opposite crossing."""
        return turning(self._difference, t_s, self._stationary_s(), 1)

    def _difference(self, t_s: float) -> float:
        """Return the difference of (w_c − W1) R and a t, both over t."""
        v = self.cubic.to_plateau_s
        rise = self.cubic.c * (t_s**2 - 3 * v * t_s + 3 * v**2)
        trip_s = (float(self.cubic.at(t_s)) - self.flow.growth_p) / self.flow.capacity_pps
        return rise * max(self.flow.rtt_s, trip_s) - self.flow.growth_p

    def _stationary_s(self) -> list[float]:
        cubic, v = self.cubic, self.cubic.to_plateau_s
        product = np.polymul([1, -v, v**2], [cubic.c, 0, 0, cubic.plateau - self.flow.growth_p])
        bend_s = cubic.when(self.flow.pipe_p + self.flow.growth_p)
        return [1.5 * v, bend_s, *(v + root for root in real_roots(np.polyder(product)))]


def estimate(flow: SingleFlow, epoch: Epoch, cubic: Cubic) -> Estimate:
    """Return the flow's estimate after a loss."""
    return ByAcks(flow, cubic) if flow.growth == "acks" else ByRtt(flow, cubic, epoch.start)


#: Relative accuracy of a time.
ACCURACY = 1e-14


def sigma(growth_p: float, c: float, rtt_s: float, to_plateau_s: float) -> float:
    """Return σ = a/(cτ) − ¾ V², in s²: without a queue the curves cross again only if it is positive (A.1.1)."""
    return growth_p / (c * rtt_s) - 0.75 * to_plateau_s**2


def cubic_to_tcp_s(growth_p: float, c: float, rtt_s: float, to_plateau_s: float) -> float:
    """Return t_BA = 3V/2 − √σ, without a queue; infinity if there is none after the loss."""
    under_root = sigma(growth_p, c, rtt_s, to_plateau_s)
    result = 1.5 * to_plateau_s - math.sqrt(under_root) if under_root > 0 else math.inf
    return result if result > 0 else math.inf


def tcp_to_cubic_s(growth_p: float, c: float, rtt_s: float, to_plateau_s: float) -> float:
    """Return t_AB = 3V/2 + √σ, without a queue; infinity if there is none.

    The print's A.1.2 has the sign of the last term wrong: c (t − V)³ + β w_max − a t/τ = 0.
    """
    under_root = sigma(growth_p, c, rtt_s, to_plateau_s)
    return 1.5 * to_plateau_s + math.sqrt(under_root) if under_root > 0 else math.inf


def turning(difference: Callable[[float], float], after_s: float, stationary_s: Iterable[float], sign: int) -> float:
    """Return the first time after `after_s` at which a difference of this `sign` changes it; infinity if never.

    Between the stationary points the difference is monotone, and after the last it grows without bound. At `after_s`
    it may be 0.
    """
    from scipy.optimize import brentq  # it takes long to import

    nodes = [after_s, *sorted(point for point in set(stationary_s) if point > after_s)]
    nodes.append(_upper_bracket(difference, nodes[-1]))
    values = [(node, sign * difference(node)) for node in nodes]
    for (low, at_low), (high, at_high) in itertools.pairwise(values):
        if at_low > 0 >= at_high:
            return float(brentq(difference, low, high, xtol=ACCURACY * high, rtol=ACCURACY))
    return math.inf


def _upper_bracket(difference: Callable[[float], float], last_s: float) -> float:
    """Return a time after the last stationary point at which the difference is positive."""
    step_s = max(1.0, last_s)
    while difference(last_s + step_s) <= 0:
        step_s *= 2
    return last_s + step_s


def real_roots(coefficients: Iterable[float]) -> list[float]:
    """Return the real roots of a polynomial, highest power first; nearly real roots are included."""
    roots = np.roots(np.asarray(list(coefficients), dtype=float))
    return [float(root.real) for root in roots if abs(root.imag) <= 1e-6 * (1 + abs(root))]


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
