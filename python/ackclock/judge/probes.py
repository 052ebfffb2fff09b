"""Probes of BBRv3 that a log shows by steps of its window and pacing rate (draft-ietf-ccwg-bbr-06 section 5.3).

```text
  window       drops at once, stays down, comes back at once      ProbeRTT       (section 5.3.4)
  pacing rate  × 1.25 from one ACK to the next                    ProbeBW_UP     (sections 5.3.3.4 and 5.6.1)
               × 0.9 / 1.25 at its end                            ProbeBW_DOWN   (sections 5.3.3.1 and 5.6.1)
```

Only ratios of pacing rates count, since logs differ in their unit. A step that cannot be told from a change of the
bandwidth begins nothing, and what losses, timeouts or idle times may have changed is not judged.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from ackclock.judge.rules import Comparison

#: A window of at most this share of the one before has dropped: ProbeRTT takes 0.5 BDP of about 2 (section 5.6.1).
DROP_SHARE = 0.7

#: A window in ProbeRTT may exceed its bound by this share (the RTT and the bandwidth are estimates), and any two
#: windows by so many datagrams: they are whole ones.
WINDOW_SHARE, SLACK_DATAGRAMS = 0.1, 2.0

#: Seconds by which a time may be too short (timestamps in milliseconds and timers), and too long (a delayed ACK: RFC
#: 9000 section 18.2); a round-trip time is added to the latter.
EARLY_S, LATE_S = 0.01, 0.05

#: A step of the pacing rate is a gain's if it is this close to its ratio, and may be one if it is larger than this.
STEP_SHARE, MIN_STEP = 0.05, 1.15

#: A gain deviates beyond this share: the bandwidth may change with the ACK that ends a probe.
GAIN_SHARE = 0.06

#: Rounds by which a wait counted in rounds may be shorter, and after which a probe that is due has begun: REFILL takes
#: one, and rounds begin anew with each state.
EARLY_ROUNDS, LATE_ROUNDS = 4, 6

#: The BDP may be this share larger than the log shows, and this share less. A round delivers at most two of it (section
#: 5.6.1: the window's gain).
MORE_BDP, LESS_BDP, ROUND_SHARE = 0.5, 0.2, 0.5

#: Seconds for which the largest BDP counts: an implementation's cycles last longer if ProbeRTT interrupts them.
BDP_S = 20.0

#: Paths with a smaller BDP, in datagrams, are left out: their windows are bounded by other things.
MIN_BDP_DATAGRAMS = 8.0

#: The share of acknowledgements that must be followed by a report, so that no step is missed.
REPORTED_SHARE = 0.5


class Path(Protocol):
    """The part of the model of the path that probes depend on: bytes, seconds, rounds."""

    datagram_bytes: float
    rounds: int
    srtt_s: float

    @property
    def bandwidth(self) -> float:
        """Return the maximum bandwidth of the last cycles; 0 before the first sample."""

    @property
    def bdp_bytes(self) -> float:
        """Return bandwidth × smallest RTT."""

    @property
    def is_surely_full(self) -> bool:
        """Return True if any implementation has left Startup."""


class WindowedMax:
    """The largest value of the last `length`, by any measure that does not decrease (time, rounds)."""

    def __init__(self) -> None:
        self._values: deque[tuple[float, float]] = deque()

    def add(self, at: float, value: float, length: float) -> None:
        """Take a value, and forget those that are older."""
        while self._values and self._values[-1][1] <= value:
            self._values.pop()
        self._values.append((at, value))
        while self._values[0][0] < at - length:
            self._values.popleft()

    @property
    def value(self) -> float:
        """Return the largest value; 0 without one."""
        return self._values[0][1] if self._values else 0.0


class Disturbances:
    """Times after which what the log shows may have another cause than a probe: losses, timeouts."""

    def __init__(self) -> None:
        self.last_s = float("-inf")

    def take(self, now_s: float) -> None:
        """Take a loss or a timeout."""
        self.last_s = now_s

    def is_since(self, time_s: float) -> bool:
        """Return True if there was one at or after a time."""
        return self.last_s >= time_s


@dataclass(slots=True)
class Dip:
    """A window that has dropped: when, from which and to which, and the smallest RTT since.

    `low_s` is when no more than it, give or take the slack, was in flight, `kept_s` the same without slack, and `due_s`
    when that has lasted for as long as the draft wants. `window` is the last one in the dip, since the RTT that it
    depends on is measured there.
    """

    start_s: float
    before: float
    window: float
    rtt_s: float = float("inf")
    low_s: float | None = None
    kept_s: float | None = None
    due_s: float | None = None


class RttProbes:
    """ProbeRTT episodes: their window, their length, and the time between them."""

    def __init__(self, path: Path, parameters: Mapping[str, Any], comparison: Comparison) -> None:
        self.path, self.parameters, self.comparison = path, parameters, comparison
        self.disturbances = Disturbances()
        self.dip: Dip | None = None
        self._free_s: float | None = None

    def begin(self, now_s: float) -> None:
        """Begin with the first RTT, from which the interval counts."""
        if self._free_s is None:
            self._free_s = now_s

    def acknowledge(self, now_s: float, in_flight: float, newest_sent_s: float) -> None:
        """Take an acknowledgement: a dip is kept from the time that no more is in flight, for a round and 200 ms."""
        dip = self.dip
        if dip is None:
            return
        dip.rtt_s = min(dip.rtt_s, now_s - newest_sent_s)
        if dip.low_s is None and in_flight <= dip.window + self._slack():
            dip.low_s = now_s
        if dip.kept_s is None:
            dip.kept_s = now_s if in_flight <= dip.window else None
        elif dip.due_s is None and newest_sent_s >= dip.kept_s and now_s >= dip.kept_s + self._length_s():
            dip.due_s = now_s

    def may_begin(self, window: float, last: float) -> bool:
        """Return True if a window may be that of a ProbeRTT, whatever else may have reduced it."""
        return window <= max(DROP_SHARE * last, self._limit() * (1 + WINDOW_SHARE) + self._slack())

    def report(self, now_s: float, window: float, last: float, acked: float) -> bool:
        """Take a window, the one before and what was acknowledged between; return True if it ends a ProbeRTT."""
        dip = self.dip
        has_dropped = window <= DROP_SHARE * last
        if has_dropped and self._is_shown(now_s):
            self.dip = Dip(now_s, last, window)
        elif dip is None:
            return False
        elif has_dropped or self.disturbances.is_since(dip.start_s):
            self.dip = None
        elif window > last + acked + self._slack() and window > DROP_SHARE * dip.before:
            self.dip = None
            self._judge(now_s, dip)
            return True
        elif window > dip.window + self._slack():
            self.dip = None
        else:
            dip.window = window
        return False

    def _is_shown(self, now_s: float) -> bool:
        path = self.path
        is_large = path.bdp_bytes >= MIN_BDP_DATAGRAMS * path.datagram_bytes
        return path.is_surely_full and is_large and not self.disturbances.is_since(now_s - 2 * path.srtt_s)

    def _limit(self, rtt_s: float = 0.0) -> float:
        """Return the bound of the window; the smallest RTT of the model may be that of the dip (section 5.3.4.3)."""
        path, gain = self.path, self.parameters["probe_rtt_cwnd_gain"]
        least = 4.0 * path.datagram_bytes
        return max(gain * max(path.bdp_bytes, path.bandwidth * rtt_s), least) if path.bandwidth else least

    def _length_s(self) -> float:
        length_s: float = self.parameters["probe_rtt_duration_s"]
        return length_s

    def _slack(self) -> float:
        return SLACK_DATAGRAMS * self.path.datagram_bytes

    def _judge(self, now_s: float, dip: Dip) -> None:
        """Compare a dip that is over."""
        comparison, interval_s = self.comparison, self.parameters["probe_rtt_interval_s"]
        deviations = len(comparison.deviations)
        limit = self._limit(dip.rtt_s if dip.low_s is not None else 0.0)
        if dip.window > limit * (1 + WINDOW_SHARE) + self._slack():
            comparison.deviate(dip.start_s, "probe-rtt", (0.0, limit), dip.window)
        least_s, found_s = self._length_s(), now_s - (dip.start_s if dip.low_s is None else dip.low_s)
        late_s = LATE_S + self.path.srtt_s
        if found_s < least_s - EARLY_S:
            comparison.deviate(now_s, "probe-rtt-length", (least_s, least_s + late_s), found_s)
        elif dip.due_s is not None and dip.kept_s is not None and now_s > dip.due_s + late_s:
            expected_s = (least_s, dip.due_s - dip.kept_s + late_s)
            comparison.deviate(now_s, "probe-rtt-length", expected_s, now_s - dip.kept_s)
        if self._free_s is not None and (since_s := dip.start_s - self._free_s) < interval_s - EARLY_S:
            longest_s = max(interval_s, self.parameters["min_rtt_window_s"])
            comparison.deviate(dip.start_s, "probe-rtt-interval", (interval_s, longest_s), since_s)
        self._free_s = now_s
        if len(comparison.deviations) == deviations:
            comparison.count(agrees=True)


class BandwidthProbes:
    """The cycle of ProbeBW_UP and DOWN: the pacing gain of DOWN, and the time to the next UP."""

    def __init__(self, path: Path, parameters: Mapping[str, Any], comparison: Comparison) -> None:
        self.path, self.parameters, self.comparison = path, parameters, comparison
        self.disturbances = Disturbances()
        self._rate = 0.0
        self._ups_s = (float("inf"), float("inf"))
        self._is_up = self._is_idle = self._drains = self._shows_gains = False
        self._ending: tuple[float, float] | None = None
        self._down: tuple[float, int] | None = None
        self._due: tuple[float, int] | None = None
        self._acks = self._reports = 0
        self._round, self._round_bytes, self._least_round = 0, 0.0, float("inf")
        self._largest = WindowedMax()

    # --- facts --------------------------------------------------------------------------------------------------

    def interrupt(self) -> None:
        """Take what may be a ProbeRTT, which ends any probe."""
        self._is_up, self._ending, self._down = False, None, None

    def restart(self, now_s: float) -> None:
        """Take the end of a ProbeRTT, from which the wait begins anew (section 5.3.4.4)."""
        self.interrupt()
        self._wait(now_s)

    def acknowledge(self, now_s: float, acked: float, in_flight: float) -> None:
        """Take an acknowledgement."""
        self._end_probe(now_s)
        self._acks += 1
        self._is_idle |= in_flight <= 0
        if self.path.rounds != self._round:
            self._end_round(now_s)
        self._round_bytes += acked
        if self._down is not None and not self._is_up:
            self._check_due(now_s, *self._down)

    def _end_round(self, now_s: float) -> None:
        """Take what a round has delivered, but for the first ones of a wait, which are not whole."""
        if self._down is not None and self._round > self._down[1] + 1:
            self._least_round = min(self._least_round, self._round_bytes)
        self._round, self._round_bytes = self.path.rounds, 0.0
        if self.path.bandwidth:
            self._largest.add(now_s, self.path.bdp_bytes, BDP_S)

    def report(self, now_s: float, rate: float | None) -> None:
        """Take a report, which may have a pacing rate."""
        self._reports += 1
        if not rate:
            return
        step, self._rate = rate / self._rate if self._rate else 1.0, rate
        if not self.path.is_surely_full:
            self._leave_startup(now_s, step)
            return
        if step >= MIN_STEP:
            self._rise(now_s, step)
        elif step <= 1 / MIN_STEP and self._is_up:
            self._is_up, self._ending = False, (now_s, step)

    def _leave_startup(self, now_s: float, step: float) -> None:
        """Begin the first wait with the rise that ends Drain (section 5.3.2)."""
        drain = self.parameters["drain_gain"] / self.parameters["startup_gain"]
        if self._drains and step >= MIN_STEP:
            self._shows_gains = True
            self._wait(now_s)
        self._drains = drain * (1 - STEP_SHARE) <= step <= drain * (1 + STEP_SHARE) or (
            self._drains and step < MIN_STEP
        )

    # --- the cycle ----------------------------------------------------------------------------------------------

    def _rise(self, now_s: float, step: float) -> None:
        """A probe begins, or something that may be one."""
        self._end_probe(now_s)
        gain = self.parameters["up_gain"]
        is_up = gain * (1 - STEP_SHARE) <= step <= gain * (1 + STEP_SHARE)
        if is_up and self._down is not None:
            self._judge_short_wait(now_s, *self._down)
        self._down, self._is_up, self._is_idle = None, is_up, False
        self._shows_gains |= is_up
        if is_up:
            self._ups_s = self._ups_s[1], now_s

    def _end_probe(self, now_s: float) -> None:
        """Take the end of a probe, once it is sure that no ProbeRTT has ended it."""
        if self._ending is None or now_s <= self._ending[0] + 0.001:
            return
        ended_s, step = self._ending
        self._ending = None
        if not self._is_idle and not self.disturbances.is_since(self._ups_s[1]):
            self._judge_gain(ended_s, step)
        self._wait(ended_s)

    def _wait(self, now_s: float) -> None:
        self._down, self._due, self._is_idle = (now_s, self.path.rounds), None, False
        self._acks = self._reports = 0
        self._least_round = float("inf")

    # --- comparison ---------------------------------------------------------------------------------------------

    def _judge_gain(self, now_s: float, step: float) -> None:
        up, down = self.parameters["up_gain"], self.parameters["down_gain"]
        gain = step * up
        if down * (1 - GAIN_SHARE) <= gain <= down * (1 + GAIN_SHARE):
            self.comparison.count(agrees=True)
        else:
            self.comparison.deviate(now_s, "down-gain", (down, down), gain)

    def _judge_short_wait(self, now_s: float, down_s: float, down_round: int) -> None:
        """Compare the time since DOWN began with the shortest wait, unless the last two probes lost something."""
        least_s, found_s = self.parameters["probe_wait_s"], now_s - down_s
        two_probes_s = min(self._ups_s[0], down_s - 2 * self._longest_s())
        if self.disturbances.is_since(two_probes_s) or self._is_idle:
            return
        volume = min(ROUND_SHARE * self._least_round, (1 - LESS_BDP) * self.path.bdp_bytes)
        rounds = min(self.parameters["reno_rounds"], volume / self.path.datagram_bytes) - EARLY_ROUNDS
        if found_s >= least_s - EARLY_S or self.path.rounds - down_round >= rounds:
            self.comparison.count(agrees=True)
        else:
            self.comparison.deviate(now_s, "probe-wait", (least_s, self._longest_s()), found_s)

    def _check_due(self, now_s: float, down_s: float, down_round: int) -> None:
        """Compare the time since DOWN began with the longest wait, some rounds after that."""
        path = self.path
        datagrams = (1 + MORE_BDP) * max(self._largest.value, path.bdp_bytes) / path.datagram_bytes
        rounds = min(self.parameters["reno_rounds"], datagrams)
        longest_s = self._longest_s()
        if self._due is None:
            if now_s > down_s + longest_s or path.rounds - down_round > rounds + 1:
                self._due = now_s, path.rounds
            return
        due_s, due_round = self._due
        if path.rounds < due_round + LATE_ROUNDS or now_s < due_s + LATE_ROUNDS * path.srtt_s:
            return
        self._down = None
        is_shown = path.bdp_bytes >= MIN_BDP_DATAGRAMS * path.datagram_bytes and not self._is_idle
        if is_shown and self._shows_gains and self._reports >= REPORTED_SHARE * self._acks:
            expected_s = (self.parameters["probe_wait_s"], max(due_s - down_s, 0.0))
            self.comparison.deviate(now_s, "probe-wait", expected_s, now_s - down_s)

    def _longest_s(self) -> float:
        longest_s: float = self.parameters["probe_wait_s"] + self.parameters["probe_wait_spread_s"]
        return longest_s
