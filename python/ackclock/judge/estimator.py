"""Estimates from the events of a log: round-trip times, use of the window, and which losses are congestion events."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from ackclock.judge import rules
from ackclock.judge.bounds import Usage
from ackclock.qlog import Acked, Lost, Metrics, Packet, Sent
from ackclock.qlog.connection import Fact

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
        self._ce = 0.0

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
        """Remember what is in flight for a round trip."""
        self._flights.append((fact.time_s, fact.in_flight_bytes))
        while len(self._flights) > 1 and self._flights[0][0] < fact.time_s - (self.srtt_s or 1.0):
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
        recent = [bytes_ for time_s, bytes_ in self._flights if time_s >= fact.time_s - 1.5 * self.srtt_s]
        peak = max([prior, *recent])
        return Usage.UNUSED if peak < rules.UNUSED_SHARE * window else Usage.DOUBTFUL, peak >= full

    def count_marks(self, fact: Acked) -> bool:
        """Return True if the peer reports CE marks that it did not report before."""
        marks, self._ce = (fact.ce or 0.0) - self._ce, max(self._ce, fact.ce or 0.0)
        return marks > 0

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
