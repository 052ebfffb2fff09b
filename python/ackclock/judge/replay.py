"""The reference sender that is replayed with a log: its windows, estimates and recovery period.

`Bounds` are the least and the greatest window that a specification allows after the events of a log, by two replays of
it. One replay takes part in every growth that the log leaves in doubt, the other in none. What a log leaves in doubt is
mostly whether the window was used (RFC 9002 section 7.8). Where nothing was in doubt both have the same window.

`Estimator` has round-trip times, the use of the window, and which losses are congestion events. `Recovery` is the
recovery period (RFC 9002 section 7.3.2): no second reduction, nor growth, until a packet sent in it is acked.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from ackclock import _core
from ackclock.judge import rules
from ackclock.judge.rules import MIN_DATAGRAMS, Reference
from ackclock.qlog import Acked, Lost, Metrics, Packet, Sent
from ackclock.qlog.connection import Fact


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

    def reduce(self, now_s: float, *, marked: bool, converges: bool | None = None) -> None:
        """Begin a recovery period. `converges` decides on fast convergence, which else follows from the last window.

        A controller converges if its window was larger at the reduction before (RFC 9438 section 4.7).
        """
        self.carried = 0.0
        if converges is not None:
            window = self.core.cwnd
            self.core.resume(max(1.0, window * (2.0 if converges else 0.5)))
            self.core.on_loss(now_s, int(min(self.core.cwnd, 1e9)), marked)
            self.core.resume(window)
        self.core.on_loss(now_s, int(min(self.core.cwnd, 1e9)), marked)


class Bounds:
    """The two replays.

    Where a window is as large as W_max, but for the tolerance, it is in doubt whether fast convergence lowers W_max
    (RFC 9438 section 4.7): it does in one replay, and does not in the other.
    """

    def __init__(self, reference: Reference, window_bytes: float, datagram_bytes: float) -> None:
        self.reference = reference
        #: Least and greatest W_max that the implementation may have.
        self.w_max_bytes = (-math.inf, -math.inf)
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

    def lose(self, now_s: float, found_bytes: float, slack_bytes: float, *, marked: bool) -> None:
        """Begin a recovery period. Each replay takes the window that the log has, if that is nearer to its side."""
        if found_bytes < self.low.cwnd_bytes or not self.in_first_slow_start:
            self._take(self.low, min(found_bytes, self.low.cwnd_bytes))
            self._take(self.high, max(found_bytes, self.high.cwnd_bytes))
        share = self.reference.converged_share
        if share is None:
            for one in self.both:
                one.reduce(now_s, marked=marked)
            return
        least, most = self.w_max_bytes
        converging = (found_bytes < most + slack_bytes, found_bytes < least - slack_bytes)
        for one, converges in zip(self.both, converging, strict=True):
            one.reduce(now_s, marked=marked, converges=converges)
        first, second = (found_bytes * (share if converges else 1.0) for converges in converging)
        self.w_max_bytes = first, second

    def collapse(self, now_s: float) -> None:
        """Process persistent congestion, or a timeout."""
        self.w_max_bytes = (-math.inf, math.inf)
        for one in self.both:
            one.core.on_timeout(now_s, int(min(one.core.cwnd, 1e9)))

    def resume(self, window_bytes: float) -> None:
        """Go on in congestion avoidance from a window."""
        for one in self.both:
            self._take(one, window_bytes)

    @staticmethod
    def _take(one: Replay, window_bytes: float) -> None:
        one.core.resume(max(1.0, window_bytes / one.datagram_bytes))


#: The packet number space in which a congestion controller is judged; paths have numbers behind it.
APPLICATION = "application_data"


class Estimator:
    """Estimates from the facts of a connection, in the order of time."""

    def __init__(self, datagram_bytes: float) -> None:
        self.datagram_bytes = datagram_bytes
        self.srtt_s: float | None = None
        self.min_rtt_s: float | None = None
        self._rtt_variance_s: float | None = None
        self._reported_in_flight: float | None = None
        self._flights: deque[tuple[float, float]] = deque()
        self._largest_acked: dict[str, int] = {}
        self._ce: dict[str, float] = {}

    def measure(self, report: Metrics) -> None:
        """Take over what the implementation reports of itself."""
        self.srtt_s = report.srtt_s or self.srtt_s or report.latest_rtt_s
        self.min_rtt_s = report.min_rtt_s or self.min_rtt_s
        self._rtt_variance_s = report.rtt_variance_s or self._rtt_variance_s
        if report.in_flight_bytes is not None:
            self._reported_in_flight = report.in_flight_bytes

    def observe(self, facts: Sequence[Fact]) -> None:
        """Take the acknowledged numbers of an instant: a log may have a loss before the ACK that shows it."""
        for fact in facts:
            for packet in fact.packets if isinstance(fact, Acked) else ():
                self._largest_acked[packet.space] = max(packet.number, self._largest_acked.get(packet.space, -1))

    def send(self, fact: Sent) -> None:
        """Remember what is in flight for as long as its peak may count."""
        self._flights.append((fact.time_s, fact.in_flight_bytes))
        while len(self._flights) > 1 and self._flights[0][0] < fact.time_s - rules.PEAK_RTTS * (self.srtt_s or 1.0):
            self._flights.popleft()

    def usage(self, fact: Acked, counted: Sequence[Packet], window: float) -> tuple[Usage, bool]:
        """Return whether the window is used, from what is in flight, and if it may have been full in a round trip."""
        full = window - rules.UNUSED_DATAGRAMS * self.datagram_bytes
        prior = max(fact.prior_in_flight_bytes, self._reported_in_flight or 0.0)
        is_handshake = not any(packet.space.startswith(APPLICATION) for packet in counted)
        if is_handshake or self.srtt_s is None:
            return Usage.DOUBTFUL, True
        if prior >= full:
            return Usage.USED, True
        recent = [bytes_ for time_s, bytes_ in self._flights if time_s >= fact.time_s - rules.PEAK_RTTS * self.srtt_s]
        peak = max([prior, *recent])
        return Usage.UNUSED if peak < rules.UNUSED_SHARE * window else Usage.DOUBTFUL, peak >= full

    def count_marks(self, fact: Acked) -> bool:
        """Return True if the peer reports CE marks that it did not report before."""
        space = fact.packets[0].space if fact.packets else ""  # each counts its own: RFC 9000 section 13.4.2
        before, reported = self._ce.get(space, 0.0), fact.ce or 0.0
        self._ce[space] = max(before, reported)
        return reported > before

    def is_evidence(self, fact: Lost) -> bool:
        """Return True if a loss is a congestion event for any implementation.

        A packet is lost if a later one was acknowledged (RFC 9002 section 6.1); a log without selective ACKs names the
        threshold as trigger instead. Others are packets whose data a probe repeats: a probe timeout makes none lost
        (section 6.2), but some logs call them so. Packets of the handshake are small, and their timers begin with a
        guess of the round-trip time.
        """
        packet, trigger = fact.packet, fact.trigger.lower()
        if "pto" in trigger:
            return False
        if packet is None:
            return True
        is_lost = "threshold" in trigger or packet.number < self._largest_acked.get(packet.space, -1)
        return is_lost and packet.space.startswith(APPLICATION)

    def is_persistent(self, lost: Sequence[Packet]) -> bool:
        """Return True if packets lost in one instant span the time of persistent congestion."""
        if len(lost) < 2 or not self.srtt_s:
            return False
        variance_s = self._rtt_variance_s or self.srtt_s / 2.0
        period_s = self.srtt_s + max(4.0 * variance_s, rules.GRANULARITY_S) + rules.MAX_ACK_DELAY_S
        span_s = max(packet.time_s for packet in lost) - min(packet.time_s for packet in lost)
        return span_s >= rules.PERSISTENT_THRESHOLD * period_s


@dataclass(slots=True)
class Recovery:
    """The present recovery period, or the last one. `top_bytes` is what its windows may not exceed."""

    start_s: float = -1.0
    top_bytes: float = 0.0
    is_active: bool = False
    is_reported: bool = False
    has_grown: bool = False

    def begin(self, time_s: float, top_bytes: float) -> None:
        """Begin a period."""
        self.start_s, self.top_bytes, self.is_active = time_s, top_bytes, True
        self.is_reported = self.has_grown = False

    def end(self) -> None:
        """End the period: a packet sent in it is acknowledged."""
        self.is_active = False

    def forget(self) -> None:
        """End the period so that losses of packets sent before it count."""
        self.start_s, self.is_active = -1.0, False

    def covers(self, time_s: float, packet: Packet | None, srtt_s: float) -> bool:
        """Return True if a loss belongs to the period; without the packet, if it comes within two round trips."""
        if packet is None:
            return time_s - self.start_s < 2.0 * srtt_s
        return packet.time_s <= self.start_s

    def take(self, window: float, slack: float) -> bool:
        """Take a window of the period; return True if it has grown."""
        grows = window > self.top_bytes + slack
        self.is_reported, self.has_grown = True, self.has_grown or grows
        self.top_bytes = self.top_bytes if grows else min(self.top_bytes, window)
        return grows
