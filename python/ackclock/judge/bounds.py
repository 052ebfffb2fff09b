"""The least and the greatest window that a specification allows after the events of a log, by two replays of it.

One replay takes part in every growth that the log leaves in doubt, the other in none. What a log leaves in doubt is
mostly whether the window was used (RFC 9002 section 7.8). Where nothing was in doubt both have the same window.
"""

from __future__ import annotations

from enum import Enum

from ackclock import _core
from ackclock.judge.rules import MIN_DATAGRAMS, Reference


class Usage(Enum):
    """Use of the window when an acknowledgement arrives."""

    UNUSED = "unused"
    DOUBTFUL = "doubtful"
    USED = "used"


class Replay:
    """One controller, to which bytes are given in whole datagrams; the rest is carried over."""

    def __init__(self, reference: Reference, window_bytes: float, datagram_bytes: float) -> None:
        self.datagram_bytes = datagram_bytes
        window = max(1.0, window_bytes / datagram_bytes)
        self.core = _core.ControllerReplay(reference.kind, reference.parameters_json, window)
        self.carried = 0.0

    @property
    def cwnd_bytes(self) -> float:
        """Return the window, which QUIC never makes smaller than its minimum."""
        return max(MIN_DATAGRAMS, self.core.cwnd) * self.datagram_bytes

    @property
    def in_slow_start(self) -> bool:
        """Return True while the window is below its threshold."""
        return self.core.cwnd < self.core.ssthresh

    def acknowledge(self, now_s: float, count_bytes: float, *, may_grow: bool, recovering: bool) -> None:
        """Process bytes that are acknowledged; those that may not make the window grow are not carried over."""
        self.carried += count_bytes if may_grow else 0.0
        whole = int(min(self.carried // self.datagram_bytes, 1e6))
        self.carried -= whole * self.datagram_bytes
        self.core.on_ack(now_s, whole, int(min(self.core.cwnd, 1e9)), may_grow, recovering)


class Bounds:
    """The two replays."""

    def __init__(self, reference: Reference, window_bytes: float, datagram_bytes: float) -> None:
        self.low = Replay(reference, window_bytes, datagram_bytes)
        self.high = Replay(reference, window_bytes, datagram_bytes)
        self.both = (self.low, self.high)

    @property
    def interval(self) -> tuple[float, float]:
        """Return the least and the greatest window, in bytes."""
        first, second = self.low.cwnd_bytes, self.high.cwnd_bytes
        return min(first, second), max(first, second)

    @property
    def in_first_slow_start(self) -> bool:
        """Return True until the first loss, or another end of slow start."""
        return self.high.core.ssthresh == float("inf")

    def set_rtt(self, srtt_s: float, min_rtt_s: float) -> None:
        """Set the round-trip times of the following events."""
        for one in self.both:
            one.core.set_rtt(srtt_s, min_rtt_s)

    def acknowledge(self, now_s: float, count_bytes: float, usage: Usage, *, recovering: bool) -> None:
        """Process bytes that are acknowledged."""
        growing = (usage is Usage.USED, usage is not Usage.UNUSED)
        for one, may_grow in zip(self.both, growing, strict=True):
            one.acknowledge(now_s, count_bytes, may_grow=may_grow, recovering=recovering)

    def lose(self, now_s: float, found_bytes: float, *, marked: bool) -> None:
        """Begin a recovery period. Each replay takes the window that the log has, if that is nearer to its side."""
        if found_bytes < self.low.cwnd_bytes or not self.in_first_slow_start:
            self._take(self.low, min(found_bytes, self.low.cwnd_bytes))
            self._take(self.high, max(found_bytes, self.high.cwnd_bytes))
        for one in self.both:
            one.carried = 0.0
            one.core.on_loss(now_s, int(min(one.core.cwnd, 1e9)), marked)

    def collapse(self, now_s: float) -> None:
        """Process persistent congestion, or a timeout."""
        for one in self.both:
            one.core.on_timeout(now_s, int(min(one.core.cwnd, 1e9)))

    def resume(self, window_bytes: float) -> None:
        """Go on in congestion avoidance from a window."""
        for one in self.both:
            self._take(one, window_bytes)

    @staticmethod
    def _take(one: Replay, window_bytes: float) -> None:
        one.core.resume(max(1.0, window_bytes / one.datagram_bytes))
