"""BBRv3 (draft-ietf-ccwg-bbr-06): what a log shows of its model of the path, and the bounds that follow from it.

A log has neither BBR's states nor its random probe times, so that no controller can be replayed from window to window.
What the draft computes of events alone is replayed: packet-timed rounds (section 5.5.1), delivery rates (section 4.1),
the maximum bandwidth, the smallest round-trip time and the excess of aggregated ACKs (section 5.5). From these come
bounds that hold in every state:

```text
  sent in a round-trip time     ≤ 2.77 BW in Startup, 1.25 BW after it    (sections 5.3.1, 5.6.1)
  cwnd                          ≤ 2.25 BDP + excess, or the offload budget, after Startup    (section 5.6.4)
  growth of cwnd                ≤ what is acknowledged, but for a window that is restored    (section 5.6.4.6)
  in flight within ProbeRTT     ≤ 0.5 BDP or 4 datagrams, if 5 s pass without an RTT as small    (section 5.3.4)
```

Each bound takes the value of the model that allows most, and a tolerance. Probes are judged where steps of the window
and of the pacing rate show them (`probes`). Whether losses lower the right bounds is undecided.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ackclock.judge.probes import BandwidthProbes, RttProbes, WindowedMax
from ackclock.judge.rules import Comparison, Reference
from ackclock.qlog import Acked, Connection, Lost, Metrics, Packet, ProbeTimeout, Sent

#: Rules that are not judged, for the notes.
UNDECIDED = "not judged, since a log does not show BBR's states: bounds after losses, Drain"

#: Rates and windows may exceed a bound by this share, and by so many datagrams: bursts of a pacer, ACKs in whole
#: datagrams, an RTT that the implementation measures at another place.
TOLERANCE_SHARE, TOLERANCE_DATAGRAMS = 0.05, 4.0

#: The smallest window, in datagrams (section 5.6.4.3: MinPipeCwnd).
MIN_DATAGRAMS = 4.0

#: Rounds without growth of the bandwidth by `FULL_GROWTH` after which the pipe is full (section 5.3.1.2), and rounds
#: more in which an implementation may still be in Startup.
FULL_ROUNDS, FULL_GROWTH, GRACE_ROUNDS = 3, 1.25, 3

#: Rounds in which an excess of ACKs counts (section 5.5.9), and RTTs that a probe may last.
EXCESS_ROUNDS, PROBE_ROUNDS = 10, 20

#: The send quantum: what is paced in so many seconds, and at most so many bytes (section 5.6.3). The offload budget is
#: three of them over TCP, in the simplest case one over QUIC (section 5.5.8): the larger one is allowed.
QUANTUM_S, MAX_QUANTUM_BYTES, OFFLOAD_QUANTA = 0.001, 65536.0, 3

#: RTTs and seconds after which a ProbeRTT that is due has begun.
DUE_RTTS, DUE_S = 4.0, 0.5

#: An RTT at most this much above the smallest may be as small to an implementation with another clock.
RTT_SHARE, RTT_S = 1 / 64, 0.0005


@dataclass(slots=True)
class Sending:
    """State of the connection when a packet was sent (section 4.1.2.2)."""

    delivered: float
    delivered_s: float
    first_sent_s: float


class Path:
    """The model of the path: bytes, seconds, bytes per second."""

    def __init__(self, parameters: Mapping[str, Any], datagram_bytes: float) -> None:
        self.parameters, self.datagram_bytes = parameters, datagram_bytes
        self.delivered = self.delivered_s = self.first_sent_s = 0.0
        self.rounds, self._next_round = 0, 0.0
        self.full_rounds, self._full_rate = 0, 0.0
        self.is_full, self._full_since = False, 0
        self._bandwidth, self._excess, self._rtt = WindowedMax(), WindowedMax(), WindowedMax()
        self._epoch_s, self._epoch_bytes = 0.0, 0.0
        self._sendings: dict[tuple[str, int], Sending] = {}
        self.srtt_s = 0.0
        self._latest, self._lost_s = 0.0, float("-inf")

    @property
    def bandwidth(self) -> float:
        """Return the maximum bandwidth of the last cycles; 0 before the first sample."""
        return self._bandwidth.value

    @property
    def min_rtt_s(self) -> float:
        """Return the smallest RTT; infinite before the first."""
        return -self._rtt.value or float("inf")

    @property
    def bdp_bytes(self) -> float:
        """Return bandwidth × smallest RTT."""
        return self.bandwidth * self.min_rtt_s if self.bandwidth else float("inf")

    @property
    def excess_bytes(self) -> float:
        """Return what aggregated ACKs have delivered beyond the bandwidth."""
        return self._excess.value

    @property
    def is_surely_full(self) -> bool:
        """Return True if any implementation has left Startup."""
        return self.is_full and self.rounds >= self._full_since + GRACE_ROUNDS

    def send(self, fact: Sent) -> None:
        """Remember the state at the sending of a packet."""
        packet = fact.packet
        if not packet.in_flight:
            return
        if fact.in_flight_bytes <= self.size(packet):
            self.first_sent_s = self.delivered_s = fact.time_s
        self._sendings[packet.space, packet.number] = Sending(self.delivered, self.delivered_s, self.first_sent_s)

    def lose(self, packet: Packet, now_s: float) -> None:
        """Forget a packet, whose loss may bound the bandwidth until the next probe (section 5.5.10)."""
        self._lost_s = now_s
        self._sendings.pop((packet.space, packet.number), None)

    def size(self, packet: Packet) -> float:
        """Return the bytes of a packet."""
        return packet.bytes or self.datagram_bytes

    def acknowledge(self, fact: Acked) -> float | None:
        """Take a sample; return the RTT of the newest packet."""
        known = [packet for packet in fact.packets if (packet.space, packet.number) in self._sendings]
        if not known:
            return None
        acked_bytes = sum(map(self.size, known))
        self.delivered += acked_bytes
        self.delivered_s = fact.time_s
        newest = max(known, key=lambda packet: packet.time_s)
        sendings = [self._sendings.pop((packet.space, packet.number)) for packet in known]
        sending = sendings[known.index(newest)]
        self.first_sent_s = newest.time_s
        rtt_s = fact.time_s - newest.time_s
        self.srtt_s = 0.875 * self.srtt_s + 0.125 * rtt_s if self.srtt_s else rtt_s
        self._rtt.add(fact.time_s, -rtt_s, self.parameters["min_rtt_window_s"])
        is_new = sending.delivered >= self._next_round
        if is_new:
            self.rounds, self._next_round = self.rounds + 1, self.delivered
        self._sample(fact.time_s, newest, sending)
        self._aggregate(fact.time_s, acked_bytes)
        if is_new and self.bandwidth:
            self._check_full()
        return rtt_s

    def _sample(self, now_s: float, newest: Packet, sending: Sending) -> None:
        interval_s = max(newest.time_s - sending.first_sent_s, now_s - sending.delivered_s)
        if interval_s >= self.min_rtt_s > 0:
            self._latest = (self.delivered - sending.delivered) / interval_s
            self._bandwidth.add(now_s, self._latest, 2 * self._cycle_s())

    def _cycle_s(self) -> float:
        """Return how long a cycle of probes lasts at most (section 5.3.3)."""
        wait_s: float = self.parameters["probe_wait_s"] + self.parameters["probe_wait_spread_s"]
        return wait_s + PROBE_ROUNDS * self.srtt_s

    def _aggregate(self, now_s: float, acked_bytes: float) -> None:
        """Take the excess over the bandwidth; for a cycle after a loss, over the last delivery rate if that is less."""
        is_bounded = now_s <= self._lost_s + self._cycle_s()
        bandwidth = min(self.bandwidth, self._latest) if is_bounded else self.bandwidth
        expected = bandwidth * (now_s - self._epoch_s)
        if self._epoch_bytes <= expected:
            self._epoch_s, self._epoch_bytes, expected = now_s, 0.0, 0.0
        self._epoch_bytes += acked_bytes
        self._excess.add(self.rounds, self._epoch_bytes - expected, EXCESS_ROUNDS + GRACE_ROUNDS)

    def _check_full(self) -> None:
        if self.bandwidth >= FULL_GROWTH * self._full_rate:
            self._full_rate, self.full_rounds = self.bandwidth, 0
            return
        self.full_rounds += 1
        if self.full_rounds >= FULL_ROUNDS and not self.is_full:
            self.is_full, self._full_since = True, self.rounds


class ProbeRtt:
    """Check of ProbeRTT: without an RTT as small for an interval the window comes down (section 5.3.4)."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._smallest_s, self._since_s = float("inf"), 0.0
        self._until_s: float | None = None
        self._least = float("inf")

    def measure(self, now_s: float, rtt_s: float) -> None:
        """Take an RTT; a dip becomes due without one as small."""
        interval_s = self._path.parameters["probe_rtt_interval_s"]
        if rtt_s <= self._smallest_s * (1 + RTT_SHARE) + RTT_S:
            self._smallest_s, self._since_s = min(rtt_s, self._smallest_s), now_s
        elif now_s > self._since_s + interval_s and self._until_s is None:
            self._until_s = now_s + DUE_RTTS * max(rtt_s, self._path.srtt_s) + DUE_S
            self._least = float("inf")

    def observe(self, now_s: float, in_flight: float) -> tuple[float, float] | None:
        """Return the bound and what was in flight at least, when a dip that was due must be over.

        The interval begins anew with a dip before that, which an implementation with another clock may have taken.
        """
        self._least = min(self._least, in_flight)
        half = self._path.parameters["probe_rtt_cwnd_gain"] * self._path.bdp_bytes
        bound = max(half, MIN_DATAGRAMS * self._path.datagram_bytes)
        if self._until_s is None:
            if self.allows(bound, in_flight):
                self._smallest_s, self._since_s = float("inf"), now_s
            return None
        if now_s < self._until_s:
            return None
        self._until_s, self._smallest_s, self._since_s = None, float("inf"), now_s
        return bound, self._least

    def allows(self, bound: float, in_flight: float) -> bool:
        """Return True if no more is in flight than a dip leaves."""
        return in_flight <= bound * (1 + TOLERANCE_SHARE) + MIN_DATAGRAMS * self._path.datagram_bytes


class Bbr:
    """The walk along the facts of a connection."""

    def __init__(self, reference: Reference, connection: Connection, datagram_bytes: float) -> None:
        self.connection = connection
        self.parameters = reference.parameters
        self.path = Path(reference.parameters, datagram_bytes)
        self.probe_rtt = ProbeRtt(self.path)
        self.comparison = Comparison(reference, datagram_bytes)
        of = (self.path, reference.parameters, self.comparison)
        self.rtt_probes, self.bandwidth_probes = RttProbes(*of), BandwidthProbes(*of)
        self.window = self.first_window = 0.0
        self.acked = 0.0
        self._newly_acked, self._is_reported = 0.0, True
        self.in_flight = 0.0
        self._highest = WindowedMax()
        self._span: tuple[float, float] | None = None
        self._timeout_s = float("-inf")

    def run(self) -> Comparison:
        """Compare every window and every round-trip time of sending."""
        handlers: Mapping[type, Callable[[Any], None]] = {
            Sent: self._sent,
            Acked: self._acked,
            Lost: self._lost,
            Metrics: self._report,
            ProbeTimeout: self._timeout,
        }
        for fact in self.connection.facts:
            if handler := handlers.get(type(fact)):
                handler(fact)
        return self.comparison

    def _timeout(self, fact: ProbeTimeout) -> None:
        self._timeout_s = fact.time_s
        self._disturb(fact.time_s)

    def _disturb(self, now_s: float) -> None:
        self.rtt_probes.disturbances.take(now_s)
        self.bandwidth_probes.disturbances.take(now_s)

    def _lost(self, fact: Lost) -> None:
        self._disturb(fact.time_s)
        if fact.packet is not None:
            self.path.lose(fact.packet, fact.time_s)

    def _sent(self, fact: Sent) -> None:
        self.path.send(fact)
        self.in_flight = fact.in_flight_bytes
        start_s, sent = self._span or (fact.time_s, 0.0)
        sent += self.path.size(fact.packet)
        length_s = max(self.path.srtt_s, 0.001)
        if fact.time_s < start_s + length_s:
            self._span = start_s, sent
            return
        self._compare_rate(fact.time_s, sent, fact.time_s - start_s)
        self._span = None

    def _compare_rate(self, now_s: float, sent: float, span_s: float) -> None:
        """Compare what was sent in a round-trip time with the greatest pacing gain."""
        path = self.path
        if not path.bandwidth or path.rounds < FULL_ROUNDS or now_s < self._timeout_s + 2 * path.srtt_s:
            self.comparison.count(agrees=False)
            return
        rate = self.parameters["up_gain"] * path.bandwidth
        if not path.is_surely_full:  # the first rate stays until the bandwidth is more (section 5.6.2)
            rate = self.parameters["startup_gain"] * max(path.bandwidth, self.first_window / path.min_rtt_s)
        limit = rate * span_s
        if sent > limit * (1 + TOLERANCE_SHARE) + TOLERANCE_DATAGRAMS * path.datagram_bytes:
            rates = (0.0, 8 * limit / span_s)
            self.comparison.deviate(now_s, "pacing", rates, 8 * sent / span_s)
        else:
            self.comparison.count(agrees=True)

    def _acked(self, fact: Acked) -> None:
        rtt_s = self.path.acknowledge(fact)
        acked = sum(map(self.path.size, fact.packets))
        self.acked += acked
        self._newly_acked, self._is_reported = (0.0 if self._is_reported else self._newly_acked) + acked, False
        self.in_flight = max(0.0, fact.prior_in_flight_bytes - acked)
        if rtt_s is not None:
            self.probe_rtt.measure(fact.time_s, rtt_s)
            self.rtt_probes.begin(fact.time_s)
            self.rtt_probes.acknowledge(fact.time_s, self.in_flight, fact.time_s - rtt_s)
            self.bandwidth_probes.acknowledge(fact.time_s, acked, self.in_flight)
        if (dip := self.probe_rtt.observe(fact.time_s, self.in_flight)) is not None:
            limit, least = dip
            if not self.probe_rtt.allows(limit, least):
                self.comparison.deviate(fact.time_s, "probe-rtt", (0.0, limit), least)
            else:
                self.comparison.count(agrees=True)

    def _report(self, fact: Metrics) -> None:
        self.bandwidth_probes.report(fact.time_s, fact.pacing_bps)
        self._is_reported = True
        if not fact.cwnd_bytes:
            return
        window, last, acked = fact.cwnd_bytes, self.window, self.acked
        if self.rtt_probes.report(fact.time_s, window, last, self._newly_acked):
            self.bandwidth_probes.restart(fact.time_s)
        elif self.rtt_probes.may_begin(window, last):
            self.bandwidth_probes.interrupt()
        self.window, self.acked = window, 0.0
        restored = self._highest.value
        self._highest.add(fact.time_s, window, self.parameters["min_rtt_window_s"])
        if not last:
            self.first_window = window
            self.comparison.initial(fact.time_s, window)
            return
        tolerance = TOLERANCE_DATAGRAMS * self.path.datagram_bytes
        if window < 0.95 * MIN_DATAGRAMS * self.path.datagram_bytes and fact.time_s > self._timeout_s + 1:
            low = MIN_DATAGRAMS * self.path.datagram_bytes
            self.comparison.deviate(fact.time_s, "minimum-window", (low, max(low, last + acked)), window)
        elif window > max(last + acked, restored) + tolerance:
            self.comparison.deviate(fact.time_s, "growth", (last, last + acked), window)
        else:
            self._compare_window(fact.time_s, window)

    def _compare_window(self, now_s: float, window: float) -> None:
        """Compare a window with the greatest gain, once Startup is over."""
        path = self.path
        if not path.is_surely_full:
            self.comparison.count(agrees=False)
            return
        limit = max(self.parameters["up_cwnd_gain"] * path.bdp_bytes + path.excess_bytes, self._offload_bytes())
        if window > limit * (1 + TOLERANCE_SHARE) + TOLERANCE_DATAGRAMS * path.datagram_bytes:
            self.comparison.deviate(now_s, "inflight-bound", (0.0, limit), window)
        else:
            self.comparison.count(agrees=True)

    def _offload_bytes(self) -> float:
        """Return the offload budget (section 5.5.8), which a window on a path with a short RTT does not fall below."""
        rate = self.parameters["up_gain"] * self.path.bandwidth
        quantum_bytes: float = min(max(rate * QUANTUM_S, 2 * self.path.datagram_bytes), MAX_QUANTUM_BYTES)
        return OFFLOAD_QUANTA * quantum_bytes
