"""The walk along the facts of a connection: each window in the log against the one that the specification allows.

```text
            a window is reported                     loss or mark of a packet
  Start ───────────────────────▶ Following ◀────────────────────────────────────┐
                                  │  ▲   │ ─────────────────▶ Recovery          │
             what follows is in   │  │   │                    │ a packet sent    │
             doubt, or deviated   ▼  │   │                    │ in it is acked   │
                                 Unknown ┘◀───────────────────┘                  │
                                     └───────────────────────────────────────────┘
```

*Following*: the window must lie between the two replays, give or take the tolerance. *Unknown*: what the growth should
be cannot be said, as after an exit from slow start before a loss (HyStart++, RFC 9406) that the log does not name, or
after an application-limited time in CUBIC (RFC 9438 section 5.8); the window may then stay, or grow by what is
acknowledged; both count as undecided. *Recovery*: the window may shrink at once or gradually (PRR), so it is compared
when the period ends; it must not grow meanwhile (RFC 9002 section 7.3.2).

Facts within half a millisecond are one instant: logs differ in whether a window stands before or after the
acknowledgement that changed it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ackclock.judge import rules
from ackclock.judge.bounds import Bounds, Usage
from ackclock.judge.rules import Reference
from ackclock.qlog import Acked, Connection, Lost, Metrics, Packet, ProbeTimeout, Sent, State
from ackclock.qlog.connection import Fact

#: Facts so close together are one instant, in seconds.
INSTANT_S = 0.0005

#: The smallest datagram size that a QUIC connection may have, in bytes (RFC 9000 section 14): that of a log that does
#: not report one, unless it has a larger packet.
DATAGRAM_BYTES = 1200.0

#: A window that grows by more than this share of what is acknowledged is in slow start, which grows by all of it.
#: CUBIC's target is at most half a window ahead (RFC 9438 section 4.2).
EXPONENTIAL = 0.7

#: Words in the names that implementations give to states and triggers.
PERSISTENT, AVOIDANCE = ("persistent", "timeout", "rto"), ("avoidance", "steady")


@dataclass(frozen=True, slots=True)
class Deviation:
    """A window or rate that the specification does not allow: when, by which rule, and what it expects."""

    time_s: float
    rule: str
    demand: str
    section: str
    expected_low: float
    expected_high: float
    found: float


@dataclass(slots=True)
class Since:
    """Events since the window last agreed."""

    reduction: str = ""
    reductions: int = 0
    probe_timeout: bool = False
    spurious: bool = False
    unused: bool = False
    other_usage: bool = False
    acked_bytes: float = 0.0


@dataclass(slots=True)
class Walk:
    """The state of the comparison, and its result: deviations, and how many windows agreed or are undecided."""

    reference: Reference
    connection: Connection
    deviations: list[Deviation] = field(default_factory=list)
    agreed: int = 0
    undecided: int = 0
    bounds: Bounds | None = None
    found: float | None = None
    datagram_bytes: float = DATAGRAM_BYTES
    is_unknown: bool = False
    base: float = 0.0
    is_early: bool = False
    is_filled: bool = True
    recovery_start_s: float = -1.0
    in_recovery: bool = False
    reported_in_recovery: bool = False
    recovery_top: float = 0.0
    deviated_in_recovery: bool = False
    srtt_s: float | None = None
    min_rtt_s: float | None = None
    rtt_variance_s: float | None = None
    reported_in_flight: float | None = None
    flights: deque[tuple[float, float]] = field(default_factory=deque)
    lost: list[Packet] = field(default_factory=list)
    ce: float = 0.0
    since: Since = field(default_factory=Since)
    pacing_deviated: bool = False

    def run(self) -> Walk:
        """Compare every window of the connection."""
        connection = self.connection
        self.datagram_bytes = connection.max_datagram_bytes or max(connection.largest_sent_bytes, DATAGRAM_BYTES)
        for instant in _instants(connection.facts):
            self._instant(instant)
        return self

    # --- one instant -------------------------------------------------------------------------------------------

    def _instant(self, facts: Sequence[Fact]) -> None:
        reports = [fact for fact in facts if isinstance(fact, Metrics)]
        for report in reports:
            self._measure(report)
        windows = [report for report in reports if report.cwnd_bytes is not None]
        if self.bounds is None:
            self._start(windows)
            return
        before = self.bounds.interval
        is_reduced = self._events(facts)
        if not windows:
            return
        self.is_early = _is_early(windows[-1], facts)
        late = is_reduced and self.is_early
        after = self.bounds.interval
        reach = after if is_reduced and not late else (min(before[0], after[0]), max(before[1], after[1]))
        self._compare_in_flight(windows[-1], facts)
        self._compare(windows[-1], reach)

    def _start(self, windows: Sequence[Metrics]) -> None:
        if not windows or not windows[-1].cwnd_bytes:
            return
        first = windows[-1]
        self.found = first.cwnd_bytes or 0.0
        self.bounds = Bounds(self.reference, self.found, self.datagram_bytes)
        self._share_rtt()
        limit = min(rules.INITIAL_DATAGRAMS * self.datagram_bytes, max(rules.INITIAL_BYTES, 2.0 * self.datagram_bytes))
        facts = self.connection.facts
        is_first = not any(isinstance(fact, (Acked, Lost)) and fact.time_s < first.time_s for fact in facts[:1000])
        if is_first and self.found > limit + self.datagram_bytes:
            self._deviate(first.time_s, "initial-window", (0.0, limit), self.found)

    def _measure(self, report: Metrics) -> None:
        self.srtt_s = report.srtt_s or self.srtt_s or report.latest_rtt_s
        self.min_rtt_s = report.min_rtt_s or self.min_rtt_s
        self.rtt_variance_s = report.rtt_variance_s or self.rtt_variance_s
        self.reported_in_flight = self.reported_in_flight if report.in_flight_bytes is None else report.in_flight_bytes
        self._share_rtt()

    def _share_rtt(self) -> None:
        if self.bounds is not None and self.srtt_s:
            self.bounds.set_rtt(self.srtt_s, self.min_rtt_s or self.srtt_s)

    # --- events ------------------------------------------------------------------------------------------------

    def _events(self, facts: Sequence[Fact]) -> bool:
        """Process what happened in an instant; return True if the window is to be reduced."""
        is_reduced = False
        for fact in facts:
            if isinstance(fact, Sent):
                self._remember_flight(fact.time_s, fact.in_flight_bytes)
            elif isinstance(fact, Acked):
                is_reduced |= self._acked(fact)
            elif isinstance(fact, Lost):
                is_reduced |= self._lost(fact)
            elif isinstance(fact, ProbeTimeout):
                self.since.probe_timeout = True
            elif isinstance(fact, State):
                self._state(fact)
        self._persist(facts[-1].time_s)
        return is_reduced

    def _remember_flight(self, time_s: float, in_flight_bytes: float) -> None:
        self.flights.append((time_s, in_flight_bytes))
        while len(self.flights) > 1 and self.flights[0][0] < time_s - (self.srtt_s or 1.0):
            self.flights.popleft()

    def _usage(self, fact: Acked, counted: Sequence[Packet]) -> Usage:
        """Return whether the window is used, from what is in flight; note if it was full in the last round trip."""
        window = self.found or 0.0
        self.is_filled = True
        prior = max(fact.prior_in_flight_bytes, self.reported_in_flight or 0.0)
        is_handshake = not any(packet.space.startswith("application_data") for packet in counted)
        if is_handshake or self.srtt_s is None:
            return Usage.DOUBTFUL
        if prior >= window - rules.UNUSED_DATAGRAMS * self.datagram_bytes:
            return Usage.USED
        recent = [bytes_ for time_s, bytes_ in self.flights if time_s >= fact.time_s - 1.5 * self.srtt_s]
        peak = max([prior, *recent])
        self.is_filled = peak >= window - rules.UNUSED_DATAGRAMS * self.datagram_bytes
        return Usage.UNUSED if peak < rules.UNUSED_SHARE * window else Usage.DOUBTFUL

    def _acked(self, fact: Acked) -> bool:
        """Process an acknowledgement: it may end a recovery period, report marks and let the window grow."""
        bounds = self._bounds
        new = [packet for packet in fact.packets if packet.time_s > self.recovery_start_s]
        if new and self.in_recovery:
            self._end_recovery()
        counted = [packet for packet in new if packet.in_flight]
        if counted:
            usage = self._usage(fact, counted)
            count_bytes = sum(packet.bytes or self.datagram_bytes for packet in counted)
            bounds.acknowledge(fact.time_s, count_bytes, usage, recovering=False)
            self._account(usage, count_bytes)
        if fact.spurious:
            self.since.spurious = True
        marks, self.ce = (fact.ce or 0.0) - self.ce, max(self.ce, fact.ce or 0.0)
        if marks > 0 and fact.packets:
            return self._congestion(fact.time_s, fact.packets[-1], "ecn")
        return False

    def _end_recovery(self) -> None:
        """Go on from the window in the log if it agrees.

        Implementations take β of the window or of what was in flight (RFC 9438 section 4.6); the curve begins there.
        """
        bounds, window = self._bounds, self.found or 0.0
        self.in_recovery = False
        low, high = bounds.interval
        if self.deviated_in_recovery:
            self._doubt(window)
        elif self.reported_in_recovery and low - self._tolerance(low) <= window <= high + self._tolerance(high):
            bounds.resume(window)

    def _account(self, usage: Usage, count_bytes: float) -> None:
        stops_clock = self.reference.has_clock and not self.is_filled and not self._bounds.in_first_slow_start
        if stops_clock and not self.is_unknown:
            self.is_unknown, self.base = True, self.found or 0.0
        if self.is_unknown and (self.since.other_usage if usage is Usage.UNUSED else self.since.unused):
            self.base, self.since = self.found or 0.0, Since()
        since = self.since
        since.unused |= usage is Usage.UNUSED
        since.other_usage |= usage is not Usage.UNUSED
        since.acked_bytes += 0.0 if usage is Usage.UNUSED else count_bytes

    def _lost(self, fact: Lost) -> bool:
        if fact.packet is not None and fact.packet.in_flight:
            self.lost.append(fact.packet)
        return self._congestion(fact.time_s, fact.packet, "reduction")

    def _congestion(self, time_s: float, packet: Packet | None, rule: str) -> bool:
        """Begin a recovery period unless the packet was sent before the present one began; return True if it did."""
        if packet is None and time_s - self.recovery_start_s < 2.0 * (self.srtt_s or 0.0):
            return False
        if packet is not None and packet.time_s <= self.recovery_start_s:
            self.since.reductions += self.in_recovery
            return False
        self.recovery_top = max(self.found or 0.0, self._bounds.interval[1])
        self._bounds.lose(time_s, self.found or self.datagram_bytes, marked=rule == "ecn")
        self.recovery_start_s, self.in_recovery = time_s, True
        self.deviated_in_recovery = self.reported_in_recovery = False
        self.is_unknown = False
        self.since = Since(reduction=rule)
        return True

    def _persist(self, time_s: float) -> None:
        """Collapse the window if the packets lost in this instant span the time of persistent congestion."""
        lost, self.lost = self.lost, []
        if len(lost) < 2 or not self.srtt_s:
            return
        variance_s = self.rtt_variance_s or self.srtt_s / 2.0
        period_s = self.srtt_s + max(4.0 * variance_s, rules.GRANULARITY_S) + rules.MAX_ACK_DELAY_S
        span_s = max(packet.time_s for packet in lost) - min(packet.time_s for packet in lost)
        if span_s >= rules.PERSISTENT_THRESHOLD * period_s:
            self._bounds.collapse(time_s, certain=False)

    def _state(self, fact: State) -> None:
        """Take over what the log says of the controller's state where events do not show it."""
        if any(word in fact.trigger for word in PERSISTENT):
            if not self.in_recovery:
                self._bounds.collapse(fact.time_s, certain=True)
                self.since = Since(reduction="reduction")
            self.in_recovery = False
        elif any(word in fact.name for word in AVOIDANCE) and self._bounds.in_first_slow_start and self.found:
            self._bounds.resume(self.found)
            self.is_unknown = False

    # --- comparison --------------------------------------------------------------------------------------------

    @property
    def _bounds(self) -> Bounds:
        assert self.bounds is not None
        return self.bounds

    def _compare(self, report: Metrics, reach: tuple[float, float]) -> None:
        window, last = report.cwnd_bytes or 0.0, self.found or 0.0
        self.found = window
        self._compare_pacing(report, window)
        if window < 0.95 * rules.MIN_DATAGRAMS * self.datagram_bytes:
            self._deviate(
                report.time_s, "minimum-window", (rules.MIN_DATAGRAMS * self.datagram_bytes, reach[1]), window
            )
            self._doubt(window)
        elif self.in_recovery:
            self._compare_in_recovery(report, window)
        elif self.is_unknown or self.since.spurious:
            self._compare_unknown(report, window)
        else:
            self._compare_following(report, window, last, reach)

    def _compare_in_recovery(self, report: Metrics, window: float) -> None:
        top, self.reported_in_recovery = self.recovery_top, True
        if window <= top + self._tolerance(top):
            self.undecided += 1
            self.recovery_top = min(top, window)
        elif not self.deviated_in_recovery:
            self.deviated_in_recovery = True
            self._deviate(report.time_s, "recovery-growth", (min(self._bounds.interval[0], top), top), window)

    def _compare_unknown(self, report: Metrics, window: float) -> None:
        """Allow what any specification does: to stay, or to grow by what is acknowledged while the window is used."""
        if not self.is_unknown:  # a spurious loss may bring back the window of before (RFC 9438 section 4.9)
            self._doubt(window)
            self.undecided += 1
            return
        base, top = self.base, self.base + self.since.acked_bytes
        if window > top + self._tolerance(top):
            rule = "application-limited" if self.since.unused and not self.since.other_usage else "slow-start"
        elif window < base - self._tolerance(base):
            rule = self._shrinking()
        else:
            self.undecided += 1
            return
        self._deviate(report.time_s, rule, (base, top), window)
        self._doubt(window)

    def _compare_following(self, report: Metrics, window: float, last: float, reach: tuple[float, float]) -> None:
        bounds, (low, high) = self._bounds, reach
        if bounds.in_first_slow_start:
            low = min(low, last)
        slack = self._tolerance(high)
        if low - slack <= window <= high + slack:
            self._agree(window, low, high)
            return
        if window > high:
            rule = self._growing(window, last)
        else:
            rule = (self.since.reduction and self._reducing()) or self._shrinking()
        self._deviate(report.time_s, rule, (low, high), window)
        is_first = bounds.in_first_slow_start and window > high
        if is_first:
            self.bounds = Bounds(self.reference, window, self.datagram_bytes)
            self._share_rtt()
        else:
            bounds.resume(window)
        self.since = Since()

    def _agree(self, window: float, low: float, high: float) -> None:
        """Count a window, and take it up where what is allowed is wide."""
        bounds = self._bounds
        is_wide = high - low > self.datagram_bytes
        self.undecided += is_wide
        self.agreed += not is_wide
        if self.is_early:
            return
        if bounds.in_first_slow_start:
            if window < high - self._tolerance(high):
                self._doubt(window)
            elif is_wide and window < high:
                self.bounds = Bounds(self.reference, max(window, low), self.datagram_bytes)
                self._share_rtt()
        elif is_wide:
            if bounds.low.in_slow_start or bounds.high.in_slow_start:
                self._doubt(min(max(window, low), high))
            else:
                bounds.resume(min(max(window, low), high))
        self.since = Since()

    def _growing(self, window: float, last: float) -> str:
        """Return the rule that a window above what is allowed breaks."""
        since = self.since
        if since.reduction:
            return since.reduction
        if since.unused and not since.other_usage:
            return "application-limited"
        if self._bounds.in_first_slow_start:
            return "slow-start"
        is_exponential = window - last > EXPONENTIAL * since.acked_bytes and since.acked_bytes > self.datagram_bytes
        return "slow-start-exit" if is_exponential else "avoidance"

    def _reducing(self) -> str:
        return "second-reduction" if self.since.reductions else self.since.reduction

    def _shrinking(self) -> str:
        """Return the rule that a window below what is allowed breaks, where no congestion event explains it."""
        if self.since.probe_timeout:
            return "probe-timeout"
        return "avoidance" if self.since.acked_bytes and self._is_growing_slowly() else "unprompted-reduction"

    def _is_growing_slowly(self) -> bool:
        return (self.found or 0.0) >= 0.8 * self._bounds.interval[0]

    def _compare_in_flight(self, report: Metrics, facts: Sequence[Fact]) -> None:
        """Compare what is in flight with the window where packets are sent that are no probes."""
        window, in_flight = max(report.cwnd_bytes or 0.0, self.found or 0.0), report.in_flight_bytes
        sends = any(isinstance(fact, Sent) and fact.packet.in_flight and not fact.is_probe for fact in facts)
        if in_flight is None or not sends or self.in_recovery or self.since.probe_timeout:
            return
        if in_flight > window + self._tolerance(window):
            self._deviate(report.time_s, "in-flight", (0.0, window), in_flight)

    def _compare_pacing(self, report: Metrics, window: float) -> None:
        if not report.pacing_bps or not self.srtt_s or self.pacing_deviated:
            return
        limit_bps = rules.MAX_PACING_GAIN * 8.0 * window / self.srtt_s
        if limit_bps < report.pacing_bps < rules.UNPACED_GAIN * limit_bps:
            self.pacing_deviated = True
            self._deviate(report.time_s, "pacing", (8.0 * window / self.srtt_s, limit_bps), report.pacing_bps)

    def _doubt(self, window: float) -> None:
        """Go on without knowing how the window should grow, until the next congestion event."""
        self._bounds.resume(window)
        self.is_unknown, self.base = True, window
        self.since = Since()

    def _tolerance(self, window: float) -> float:
        return max(rules.TOLERANCE_DATAGRAMS * self.datagram_bytes, rules.TOLERANCE_SHARE * window)

    def _deviate(self, time_s: float, rule: str, expected: tuple[float, float], found: float) -> None:
        of = self.reference.rule(rule)
        self.deviations.append(Deviation(time_s, rule, of.demand, of.section, *expected, found))


def _instants(facts: Sequence[Fact]) -> Iterator[list[Fact]]:
    """Yield the facts of each instant."""
    instant: list[Fact] = []
    for fact in facts:
        if instant and fact.time_s > instant[0].time_s + INSTANT_S:
            yield instant
            instant = []
        instant.append(fact)
    if instant:
        yield instant


def _is_early(window: Metrics, facts: Sequence[Fact]) -> bool:
    """Return True if a loss or an acknowledgement, which the window may not show yet, stands behind it in the log."""
    place = next(number for number, fact in enumerate(facts) if fact is window)
    return any(isinstance(fact, (Lost, Acked)) for fact in facts[place + 1 :])
