"""State machine of the pendulum: figure 4-3 of Braud 2016."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from ackclock.theory.pendulum.filling import Filling, Side

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
