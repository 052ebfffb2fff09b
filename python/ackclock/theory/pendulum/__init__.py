"""The pendulum: two antiparallel New Reno flows through the two queues of an asymmetric line.

    from ackclock.theory import pendulum

    down = pendulum.side(10e6, 0.042, queue_bytes=150e3, packet_bytes=1508)
    up = pendulum.side(2e6, 0.042, queue_bytes=36e3, packet_bytes=1508)
    way = pendulum.follow(down, up, 2000)
    way.window_ratio(300, 2000)      # 4.26: what figure 4-4 of the thesis shows
    way.tilts()                      # when the backlog moved without a loss, and to which queue

Source: T. Braud, TCP sur lien asymétrique, PhD thesis, Université Grenoble Alpes, 2016, chapter 4.

The states of the machine (figure 4-3):

    neither queue ──a window fills its link──▶ fill(i) ──w*_i/C_i = w*_j/C_j──▶ fill(j)     (tilt, no loss)
          ▲                                      │
          └───── w*_i, w*_j ≤ 0 ── loss: w_i / 2 ┘ ── the greater w*/C ──▶ fill(i) or fill(j)

where w*_x = w_x − C_x τ_x is what a flow has in the queues.

Our deviations from the print, each checked against numerical integration:

- Windows and queues are in packets of the size m by which a window grows, not in bytes.
- Both flows may have their own τ; equations 4.10 to 4.13 then have a logarithm (`Filling.other`).
- Equation 4.12 lacks a factor C_i. Equation 4.19 is wrong; `Filling.overflow` solves the condition 4.17 instead.
- Equation 4.6 prints the rate of ACKs of a full link as C / (b τ); it is C / (b m).
- The Note of section 4.3 has the direction of tilts reversed: with equal τ the backlog goes from the down to the up
  queue, since w_u / C_u grows faster.
- A tilt takes no time, as in the simplifications of section 4.3 (equations 4.14 to 4.16 are not used).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ackclock.errors import InputError
from ackclock.theory.pendulum.states import (
    MIN_P,
    Filling,
    Loss,
    Pair,
    Rules,
    Side,
    Stretch,
    Tilt,
    other_windows,
    side,
    stretches,
)

__all__ = ["MIN_P", "Filling", "Loss", "Side", "Stretch", "Tilt", "Trajectory", "follow", "side", "stretches"]


Array = npt.NDArray[np.float64]

#: Both windows at the beginning (packets).
BEGIN_P = (1.0, 1.0)

#: Maximum number of states: a longer run takes too long.
MAX_STATES = 5_000_000

#: Maximum number of losses at one instant: more mean that the other flow's ACKs alone keep the queue full.
#: Halving its own flow frees nothing then.
MAX_LOSSES_IN_NO_TIME = 10_000


def follow(
    down: Side,
    up: Side,
    duration_s: float,
    *,
    simultaneous: float = 1.0,
    seed: int | None = None,
    growth_p: float = 1.0,
    acked: float = 2.0,
    begin_p: Pair = BEGIN_P,
) -> Trajectory:
    """Follow both flows for `duration_s` seconds.

    When one queue is full and the other cannot hold what comes over, its flow loses too with the probability
    `simultaneous`: drawn from `seed`, or without one as an expected value, which leaves 1 − p/2 of the window.
    Windows grow by `growth_p` packets in each RTT (1; 1 / `acked` where a sender counts ACKs); an ACK acknowledges
    `acked` packets; `begin_p` are both windows at the beginning.

    Raises `InputError` for a probability outside 0 to 1, for growth, `acked` or windows that are not positive, for a
    queue that the other flow's ACKs keep full, and for a run of more than `MAX_STATES` states.
    """
    if not 0 <= simultaneous <= 1:
        raise InputError(f"simultaneous: found {simultaneous:g}; expected a probability from 0 to 1")
    if not (growth_p > 0 and acked > 0 and min(begin_p) > 0 and duration_s > 0):
        raise InputError("pendulum: found a duration, growth or window that is not positive; expected positive numbers")
    random = None if seed is None else np.random.default_rng(seed)
    result: list[Stretch] = []
    for stretch in stretches((down, up), Rules(growth_p, acked, simultaneous, random), begin_p):
        result.append(stretch)
        if stretch.end_s >= duration_s:
            return Trajectory((down, up), growth_p, acked, duration_s, tuple(result))
        if len(result) > MAX_LOSSES_IN_NO_TIME and result[-MAX_LOSSES_IN_NO_TIME].begin_s == stretch.end_s:
            raise InputError("pendulum: found a queue that the other flow's ACKs keep full; expected a longer one")
        if len(result) >= MAX_STATES:
            break
    raise InputError(f"pendulum: found more than {MAX_STATES:,} states; expected a shorter run, or longer queues")


@dataclass(frozen=True, eq=False)
class Trajectory:
    """Both flows from 0 to `duration_s`. Columns are down and up; times are in seconds, windows in packets."""

    sides: tuple[Side, Side]
    growth_p: float
    acked: float
    duration_s: float
    states: Sequence[Stretch]

    def windows_p(self, times_s: npt.ArrayLike) -> Array:
        """Return both windows at each time (T × 2): equations 4.8, 4.10 and 4.11."""
        return self._windows(*self._at(times_s))

    def waits_s(self, times_s: npt.ArrayLike) -> Array:
        """Return the queueing delay of both directions (T × 2): w*_i / C_i of the side that fills, else 0."""
        at, since_s = self._at(times_s)
        windows = self._windows(at, since_s)
        waits = windows / [side.rate_p for side in self.sides] - [side.base_rtt_s for side in self.sides]
        return np.where(np.arange(2) == self._side[at][:, None], np.maximum(waits, 0), 0.0)

    def rtts_s(self, times_s: npt.ArrayLike) -> Array:
        """Return both round-trip times (T × 2): the flows' own with empty queues, and both queues (equation 4.3)."""
        waits = self.waits_s(times_s).sum(axis=1)
        return np.column_stack([side.base_rtt_s + waits for side in self.sides])

    def queues_p(self, times_s: npt.ArrayLike) -> Array:
        """Return packets of data in either queue (T × 2)."""
        return self.waits_s(times_s) * [side.rate_p for side in self.sides]

    def acks_p(self, times_s: npt.ArrayLike) -> Array:
        """Return ACKs of the other flow in either queue (T × 2): its rate / b × the queueing delay."""
        rates = self.windows_p(times_s) / self.rtts_s(times_s)
        return self.waits_s(times_s) * rates[:, ::-1] / self.acked

    def delivered_p(self, times_s: npt.ArrayLike) -> Array:
        """Return packets that either flow has delivered so far (T × 2).

        A window grows by `growth_p` for each window delivered, so from w_0 to w it delivers (w² − w_0²) / (2 growth_p).
        """
        at, since_s = self._at(times_s)
        part = (self._windows(at, since_s) ** 2 - self._before[at] ** 2) / (2 * self.growth_p)
        return self._delivered[at] + part

    def throughput_ratio(self, begin_s: float, end_s: float) -> float:
        """Return X_down / X_up between two times, packets delivered."""
        down, up = np.diff(self.delivered_p([begin_s, end_s]), axis=0)[0]
        return float(down / up)

    def window_ratio(self, begin_s: float, end_s: float) -> float:
        """Return the mean window of the download over the upload's: the thesis's ratio of throughputs."""
        down, up = self.mean_windows_p(begin_s, end_s)
        return down / up

    def mean_windows_p(self, begin_s: float, end_s: float) -> Pair:
        """Return both mean windows between two times."""
        down, up = np.diff(self._areas([begin_s, end_s])[0], axis=0)[0] / (end_s - begin_s)
        return float(down), float(up)

    def mean_queues_p(self, begin_s: float, end_s: float) -> Pair:
        """Return the mean number of packets of data in either queue between two times."""
        down, up = np.diff(self._areas([begin_s, end_s])[1], axis=0)[0] / (end_s - begin_s)
        return float(down), float(up)

    def tilts(self) -> list[Tilt]:
        """Return when the backlog moved from one queue to the other without a loss."""
        ends = [s for s in self.states if s.side is not None and not s.hit and s.end_s <= self.duration_s]
        return [Tilt(s.end_s, s.then) for s in ends if s.then is not None]

    def losses(self) -> list[Loss]:
        """Return when a queue was full, and which flows lost."""
        return [Loss(s.end_s, s.hit) for s in self.states if s.hit and s.end_s <= self.duration_s]

    @cached_property
    def _begin_s(self) -> Array:
        return np.array([s.begin_s for s in self.states])

    @cached_property
    def _side(self) -> npt.NDArray[np.int64]:
        """The side that fills; −1 for neither."""
        return np.array([-1 if s.side is None else s.side for s in self.states])

    @cached_property
    def _before(self) -> Array:
        return np.array([s.before_p for s in self.states])

    @cached_property
    def _after(self) -> Array:
        return np.array([s.after_p for s in self.states])

    @cached_property
    def _delivered(self) -> Array:
        """Return packets delivered before each state."""
        return _sofar((self._after**2 - self._before**2) / (2 * self.growth_p))

    def _at(self, times_s: npt.ArrayLike) -> tuple[npt.NDArray[np.int64], Array]:
        """Return the state of each time, and how long it has lasted."""
        times = np.asarray(times_s, dtype=float)
        at = np.maximum(np.searchsorted(self._begin_s, times, side="right") - 1, 0)
        return at, times - self._begin_s[at]

    def _windows(self, at: npt.NDArray[np.int64], since_s: Array) -> Array:
        before, side = self._before[at], self._side[at]
        windows = before + self.growth_p * since_s[:, None] / [each.base_rtt_s for each in self.sides]
        for mine, own in enumerate(self.sides):
            here, other = side == mine, self.sides[1 - mine]
            start, start_other = before[here, mine], before[here, 1 - mine]
            grown = np.sqrt(start**2 + 2 * self.growth_p * own.rate_p * since_s[here])
            windows[here, mine] = grown
            windows[here, 1 - mine] = other_windows(grown, start, start_other, self._lead(own, other))
        return windows

    @staticmethod
    def _lead(own: Side, other: Side) -> float:
        return own.rate_p * (other.base_rtt_s - own.base_rtt_s)

    @cached_property
    def _areas_before(self) -> tuple[Array, Array]:
        ends = np.append(self._begin_s[1:], self.states[-1].end_s) - self._begin_s
        windows, queues = self._parts(np.arange(len(self.states)), ends)
        return _sofar(windows), _sofar(queues)

    def _areas(self, times_s: npt.ArrayLike) -> tuple[Array, Array]:
        """Return the integrals of both windows and of both queues from 0 to each time (T × 2 each)."""
        at, since_s = self._at(times_s)
        parts = self._parts(at, since_s)
        return self._areas_before[0][at] + parts[0], self._areas_before[1][at] + parts[1]

    def _parts(self, at: npt.NDArray[np.int64], since_s: Array) -> tuple[Array, Array]:
        """Return the integrals within a state, from its beginning."""
        before, side, windows = self._before[at], self._side[at], self._windows(at, since_s)
        areas = (before + windows) / 2 * since_s[:, None]
        queues = np.zeros_like(areas)
        for mine, own in enumerate(self.sides):
            here, rate = side == mine, self.growth_p * own.rate_p
            start, end, lead = before[here, mine], windows[here, mine], self._lead(own, self.sides[1 - mine])
            cubes, squares = (end**3 - start**3) / (3 * rate), (end**2 - start**2) / (2 * rate)
            areas[here, mine] = cubes
            areas[here, 1 - mine] = (
                cubes + (before[here, 1 - mine] - start) * squares - _log_area(start, end, lead) / rate
            )
            queues[here, mine] = cubes - own.pipe_p * since_s[here]
        return areas, queues


def _log_area(start: Array, end: Array, lead: float) -> Array:
    """Return the integral a ∫ ln[(w + a) / (w_0 + a)] w dw from w_0 to w."""
    logs = np.log((end + lead) / (start + lead))
    return np.asarray(lead * ((end**2 - lead**2) / 2 * logs - (end**2 - start**2) / 4 + lead * (end - start) / 2))


def _sofar(parts: Array) -> Array:
    """Return the sums before each row."""
    return np.vstack([np.zeros((1, parts.shape[1])), np.cumsum(parts, axis=0)[:-1]])
