"""States of the pendulum (figure 4-3 of Braud 2016), and the one in which a queue fills (equations 4.10 to 4.19)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ackclock.errors import InputError

#: Fewer packets than this on a way with its queue full are no window that could be halved.
MIN_P = 2.0


@dataclass(frozen=True, slots=True)
class Side:
    """One direction: the link that a flow's data go over, and that flow's RTT with empty queues.

    `rate_p` packets/s and `queue_p` packets, of the size by which a window grows; `base_rtt_s` seconds. With
    `counts_acks` an ACK of the other flow takes as much of the queue as a packet of data (a limit in packets),
    without it nothing (a limit in bytes): section 4.4.
    """

    rate_p: float
    queue_p: float
    base_rtt_s: float
    counts_acks: bool = False

    @property
    def pipe_p(self) -> float:
        """Return C τ, the packets that fill the link with the queue empty."""
        return self.rate_p * self.base_rtt_s

    @property
    def full_p(self) -> float:
        """Return Q + C τ, the window at which the queue is full of the flow's own data (packets)."""
        return self.queue_p + self.pipe_p

    def wait_s(self, window_p: float) -> float:
        """Return w* / C of the flow: its wait here if the backlog is here; negative while it does not fill the link."""
        return window_p / self.rate_p - self.base_rtt_s


def side(
    rate_bps: float,
    base_rtt_s: float,
    *,
    packet_bytes: float,
    queue_bytes: float | None = None,
    queue_packets: float | None = None,
) -> Side:
    """Return a direction from its rate (bit/s), the RTT with empty queues (s), the packet size (bytes) and a limit.

    The limit is in bytes, where ACKs are taken to need no room, or in packets, where each takes that of a full one.
    Raises `InputError` if not exactly one is given, for numbers that are not positive, and for a way that cannot hold
    two packets.
    """
    if (queue_bytes is None) == (queue_packets is None):
        raise InputError("pendulum: found both or neither of queue_bytes and queue_packets; expected one of them")
    if not (rate_bps > 0 and base_rtt_s > 0 and packet_bytes > 0):
        raise InputError("pendulum: found a rate, RTT or packet size that is not positive; expected positive numbers")
    queue_p = queue_packets if queue_bytes is None else queue_bytes / packet_bytes
    made = Side(rate_bps / (8 * packet_bytes), float(queue_p or 0), base_rtt_s, queue_bytes is None)
    if made.queue_p < 0 or made.full_p < MIN_P:
        raise InputError(f"pendulum: found a way that holds {made.full_p:.2g} packets; expected {MIN_P:g} at least")
    return made


@dataclass(frozen=True, slots=True)
class Filling:
    """The state fill(i): the queue of `mine` holds the backlog, that of `other` is empty.

    It begins with the windows `mine_p` and `other_p` (packets). `growth_p` is what a window gains in each of its RTTs:
    1, or 1 / `acked` where a sender counts ACKs; `acked` is how many packets an ACK acknowledges (b).

    Everything is a function of the window w_i of `mine`: its RTT is w_i / C_i, that of `other` (w_i + a) / C_i with
    a = C_i (τ_j − τ_i).
    """

    mine: Side
    other: Side
    mine_p: float
    other_p: float
    growth_p: float = 1.0
    acked: float = 2.0

    @property
    def lead_p(self) -> float:
        """Return the constant a = C_i (τ_j − τ_i): 0 for equal RTTs."""
        return self.mine.rate_p * (self.other.base_rtt_s - self.mine.base_rtt_s)

    def lasts_s(self, window_p: float) -> float:
        """Return when w_i has grown to this: the inverse of equation 4.10, w_i = √(w_i0² + 2 g C_i t)."""
        return (window_p**2 - self.mine_p**2) / (2 * self.growth_p * self.mine.rate_p)

    def other_at(self, window_p: float) -> float:
        """Return w_j by the time of w_i: equation 4.11, and for unequal RTTs less a ln[(w_i + a) / (w_i0 + a)]."""
        return float(other_windows(window_p, self.mine_p, self.other_p, self.lead_p))

    def acks_p(self, window_p: float) -> float:
        """Return the other flow's ACKs in this queue: its rate w_j / RTT_j / b × the time in the queue."""
        share = self.other_at(window_p) / (window_p + self.lead_p)
        return share / self.acked * (window_p - self.mine.pipe_p)

    def overflow(self) -> float:
        """Return w_i at which the queue is full; at least the present w_i.

        In bytes w_i = Q + C τ (equation 4.13). In packets the root of w*_i + n_ack = Q (condition 4.17), which 4.19
        misses; with equal RTTs it is that of a quadratic.
        """
        if not self.mine.counts_acks:
            return max(self.mine_p, self.mine.full_p)
        root = self._overflow_equal() if self.lead_p == 0 else self._overflow_unequal()
        return max(self.mine_p, root)

    def _overflow_equal(self) -> float:
        """Solve (w − K)((b + 1) w + D) = b Q w, with D = w_j0 − w_i0 and K = C_i τ."""
        pipe_p, gap_p, b = self.mine.pipe_p, self.other_p - self.mine_p, self.acked
        half = gap_p - (b + 1) * pipe_p - b * self.mine.queue_p
        return (math.sqrt(half**2 + 4 * (b + 1) * pipe_p * gap_p) - half) / (2 * (b + 1))

    def _overflow_unequal(self) -> float:
        def over(window_p: float) -> float:
            return window_p - self.mine.full_p + self.acks_p(window_p)

        if over(self.mine_p) >= 0:
            return self.mine_p
        return _root(over, self.mine_p, self.mine.full_p)

    def tilt(self) -> float | None:
        """Return w_i at which w*_i / C_i = w*_j / C_j, before the queue is full; None if there is no tilt.

        For equal RTTs C_i (w_j0 − w_i0) / (C_j − C_i): equation 4.12 with the factor C_i that the print lacks.
        """
        low, high = self._falling()
        if low >= high or self._ahead(high) > 0:
            return None
        if self.lead_p == 0:
            root = self.mine.rate_p * (self.other_p - self.mine_p) / (self.other.rate_p - self.mine.rate_p)
            return max(root, self.mine_p)
        return low if self._ahead(low) <= 0 else _root(self._ahead, low, high)

    def _ahead(self, window_p: float) -> float:
        """Return the difference of w*_i / C_i and w*_j / C_j (s)."""
        return self.mine.wait_s(window_p) - self.other.wait_s(self.other_at(window_p))

    def _falling(self) -> tuple[float, float]:
        """Return the interval of windows in which that difference decreases: where C_j RTT_j < C_i RTT_i.

        Its derivative is 1 / C_i − w / (C_j (w + a)), whose only zero is w = C_j a / (C_i − C_j).
        """
        mine, other, end = self.mine.rate_p, self.other.rate_p, self.overflow()
        if mine == other:
            return (self.mine_p, end) if self.lead_p < 0 else (end, end)
        turn = other * self.lead_p / (mine - other)
        return (max(self.mine_p, turn), end) if mine > other else (self.mine_p, min(turn, end))


def other_windows(
    windows_p: npt.ArrayLike, mine_p: npt.ArrayLike, other_p: npt.ArrayLike, lead_p: npt.ArrayLike
) -> npt.NDArray[np.float64]:
    """Return w_j by the time of w_i: `Filling.other_at` for many states at once."""
    windows, mine, other, lead = (np.asarray(part, dtype=float) for part in (windows_p, mine_p, other_p, lead_p))
    return np.asarray(other + windows - mine - lead * np.log((windows + lead) / (mine + lead)))


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    from scipy.optimize import brentq

    return float(brentq(function, low, high, xtol=1e-12, rtol=8.9e-16))


#: Down, up.
Sides: TypeAlias = "tuple[Side, Side]"
Pair: TypeAlias = "tuple[float, float]"

#: Share of a window that a loss leaves (New Reno).
KEPT = 0.5


@dataclass(frozen=True, slots=True)
class Rules:
    """Growth of the windows and reaction to a loss.

    `growth_p` packets in each RTT; `acked` packets an ACK. When one queue is full and the other cannot hold what comes
    over, its flow loses too with the probability `simultaneous`: drawn from `random`, or without it as an expected
    value, which leaves 1 − p/2 of the window.
    """

    growth_p: float = 1.0
    acked: float = 2.0
    simultaneous: float = 1.0
    random: np.random.Generator | None = None


@dataclass(frozen=True, slots=True)
class Stretch:
    """One state: the side whose queue fills (0 down, 1 up, None neither), its times, both windows at its ends.

    `then` is the side of the next state. `hit` are the flows that lose at the end, first the one whose queue is full.
    """

    side: int | None
    begin_s: float
    end_s: float
    before_p: Pair
    after_p: Pair
    then: int | None
    hit: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Tilt:
    """A move of the backlog to the queue of the side `to`, without a loss."""

    time_s: float
    to: int


@dataclass(frozen=True, slots=True)
class Loss:
    """A full queue: the flows that reduce their windows, first the one whose queue it is."""

    time_s: float
    flows: tuple[int, ...]


def stretches(sides: Sides, rules: Rules, begin_p: Pair) -> Iterator[Stretch]:
    """Yield all states from the time 0 on, without end; `begin_p` are the initial windows (packets)."""
    now_s, windows, side = 0.0, begin_p, _fuller(sides, begin_p)
    while True:
        if side is None:
            result, windows = _neither(sides, rules, windows, now_s)
        else:
            result, windows = _filling(sides, rules, windows, now_s, side)
        yield result
        now_s, side = result.end_s, result.then


def _fuller(sides: Sides, windows: Pair) -> int | None:
    """Return the side with the greater w* / C; None if neither is positive."""
    down_s, up_s = (side.wait_s(window) for side, window in zip(sides, windows, strict=True))
    return None if max(down_s, up_s) < 0 else int(up_s > down_s)


def _neither(sides: Sides, rules: Rules, windows: Pair, now_s: float) -> tuple[Stretch, Pair]:
    """Return the state of two empty queues, until a window fills its link: equations 4.8 and 4.9."""
    rates_p = [rules.growth_p / side.base_rtt_s for side in sides]
    missing_p = [side.pipe_p - window for side, window in zip(sides, windows, strict=True)]
    lasts_s = [missing / rate for missing, rate in zip(missing_p, rates_p, strict=True)]
    first = int(lasts_s[1] < lasts_s[0])
    grown = [window + rate * lasts_s[first] for window, rate in zip(windows, rates_p, strict=True)]
    grown[first] = sides[first].pipe_p
    after = (grown[0], grown[1])
    return Stretch(None, now_s, now_s + lasts_s[first], windows, after, first), after


def _filling(sides: Sides, rules: Rules, windows: Pair, now_s: float, side: int) -> tuple[Stretch, Pair]:
    """Return the state in which one queue fills, until the backlog tilts or the queue is full."""
    other = 1 - side
    state = Filling(sides[side], sides[other], windows[side], windows[other], rules.growth_p, rules.acked)
    tilt = state.tilt()
    mine_p = state.overflow() if tilt is None else tilt
    after = _pair(side, mine_p, state.other_at(mine_p))
    end_s = now_s + state.lasts_s(mine_p)
    if tilt is not None:
        return Stretch(side, now_s, end_s, windows, after, other), after
    left, hit = _reduced(sides, rules, side, after)
    return Stretch(side, now_s, end_s, windows, after, _fuller(sides, left), hit), left


def _reduced(sides: Sides, rules: Rules, side: int, windows: Pair) -> tuple[Pair, tuple[int, ...]]:
    """Return the windows after a loss, and the flows hit: both grow for an RTT before its detection (section 4.3)."""
    other = 1 - side
    mine_p, other_p = windows[side] + rules.growth_p, windows[other] + rules.growth_p
    if other_p <= sides[other].full_p or rules.simultaneous == 0:
        return _pair(side, KEPT * mine_p, other_p), (side,)
    if rules.random is None:
        share = 1 - (1 - KEPT) * rules.simultaneous
    else:
        share = KEPT if rules.random.random() < rules.simultaneous else 1.0
    hit = (side,) if share == 1 else (side, other)
    return _pair(side, KEPT * mine_p, share * other_p), hit


def _pair(side: int, mine: float, other: float) -> Pair:
    return (other, mine) if side else (mine, other)
