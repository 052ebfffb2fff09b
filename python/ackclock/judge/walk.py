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
when the period ends; it must not grow meanwhile (RFC 9002 section 7.3.2). A loss that is no evidence of congestion
begins a period only if the next window is reduced; losses that may be persistent congestion end it if that window is
the smallest.

The estimator, the recovery period and the comparison own their states; the walk has the replays and the last window.

Facts within half a millisecond are one instant: logs differ in whether a window stands before or after the
acknowledgement that changed it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ackclock.judge.replay import Bounds, Estimator, Recovery, Usage
from ackclock.judge.rules import Comparison, Reference, Since
from ackclock.qlog import Acked, Connection, Lost, Metrics, Packet, ProbeTimeout, Sent, State
from ackclock.qlog.connection import Fact

#: Facts so close together are one instant, in seconds.
INSTANT_S = 0.0005

#: The smallest datagram size that a QUIC connection may have, in bytes (RFC 9000 section 14): that of a log that does
#: not report one, unless it has a larger packet.
DATAGRAM_BYTES = 1200.0

#: Words in the names that implementations give to states and triggers.
PERSISTENT, AVOIDANCE = ("persistent", "timeout", "rto"), ("avoidance", "steady")


class Walk:
    """The state of the walk.

    `base` is the window from which growth is unknown, None while it is known; `doubtful` counts the losses that are no
    evidence of congestion.
    """

    def __init__(self, reference: Reference, connection: Connection) -> None:
        self.datagram_bytes = connection.max_datagram_bytes or max(connection.largest_sent_bytes, DATAGRAM_BYTES)
        self.reference = reference
        self.connection = connection
        self.estimator = Estimator(self.datagram_bytes)
        self.recovery = Recovery()
        self.comparison = Comparison(reference, self.datagram_bytes)
        self.bounds: Bounds | None = None
        self.found = 0.0
        self.base: float | None = None
        self.since = Since()
        self.doubtful = 0

    def run(self) -> Walk:
        """Compare every window of the connection."""
        for instant in _instants(self.connection.facts):
            self._instant(instant)
        return self

    # --- one instant -------------------------------------------------------------------------------------------

    def _instant(self, facts: Sequence[Fact]) -> None:
        reports = [fact for fact in facts if isinstance(fact, Metrics)]
        for report in reports:
            self.estimator.measure(report)
        self.estimator.observe(facts)
        self._share_rtt()
        windows = [report for report in reports if report.cwnd_bytes is not None]
        if self.bounds is None:
            self._start(windows)
            return
        before = self.bounds.interval
        is_reduced = self._events(facts)
        if not windows:
            return
        is_early = _is_early(windows[-1], facts)
        after = self.bounds.interval
        is_certain = is_reduced and not is_early
        reach = after if is_certain else (min(before[0], after[0]), max(before[1], after[1]))
        self._compare_in_flight(windows[-1], facts)
        self._compare(windows[-1], reach, is_early=is_early)

    def _start(self, windows: Sequence[Metrics]) -> None:
        if not windows or not windows[-1].cwnd_bytes:
            return
        first = windows[-1]
        self.found = first.cwnd_bytes or 0.0
        self._renew(self.found)
        facts = self.connection.facts
        if not any(isinstance(fact, (Acked, Lost)) and fact.time_s < first.time_s for fact in facts[:1000]):
            self.comparison.initial(first.time_s, self.found)

    def _renew(self, window: float) -> None:
        """Begin with new replays in slow start."""
        self.bounds = Bounds(self.reference, window, self.datagram_bytes)
        self._share_rtt()

    def _share_rtt(self) -> None:
        if self.bounds is not None and self.estimator.srtt_s:
            self.bounds.set_rtt(self.estimator.srtt_s, self.estimator.min_rtt_s or self.estimator.srtt_s)

    @property
    def _bounds(self) -> Bounds:
        assert self.bounds is not None
        return self.bounds

    # --- events ------------------------------------------------------------------------------------------------

    def _events(self, facts: Sequence[Fact]) -> bool:
        """Process what happened in an instant; return True if the window is to be reduced."""
        is_reduced = False
        lost: list[Packet] = []
        for fact in facts:
            if isinstance(fact, Sent):
                self.estimator.send(fact)
            elif isinstance(fact, Acked):
                is_reduced |= self._acked(fact)
            elif isinstance(fact, Lost):
                is_reduced |= self._lost(fact, lost)
            elif isinstance(fact, ProbeTimeout):
                self.since.probe_timeout = True
            elif isinstance(fact, State):
                self._state(fact)
        self.since.persistent |= self.estimator.is_persistent(lost)
        return is_reduced

    def _acked(self, fact: Acked) -> bool:
        """Process an acknowledgement: it may end a recovery period, report marks and let the window grow."""
        new = [packet for packet in fact.packets if packet.time_s > self.recovery.start_s]
        if new and self.recovery.is_active:
            self._end_recovery()
        counted = [packet for packet in new if packet.in_flight]
        if counted:
            usage, may_be_full = self.estimator.usage(fact, counted, self.found)
            count_bytes = sum(packet.bytes or self.datagram_bytes for packet in counted)
            self._bounds.acknowledge(fact.time_s, count_bytes, usage, recovering=False)
            self._account(usage, count_bytes, may_be_full=may_be_full)
        self.since.spurious |= fact.spurious > 0
        if self.estimator.count_marks(fact) and fact.packets:
            return self._congestion(fact.time_s, fact.packets[-1], "ecn")
        return False

    def _end_recovery(self) -> None:
        """Go on from the window in the log if it agrees.

        Implementations take β of the window or of what was in flight (RFC 9438 section 4.6); the curve begins there.
        """
        self.recovery.end()
        low, high = self._bounds.interval
        is_within = not self.comparison.is_below(self.found, low) and not self.comparison.is_above(self.found, high)
        if self.recovery.has_grown:
            self._doubt(self.found)
        elif self.recovery.is_reported and is_within:
            self._bounds.resume(self.found)

    def _account(self, usage: Usage, count_bytes: float, *, may_be_full: bool) -> None:
        stops_clock = self.reference.has_clock and not may_be_full and not self._bounds.in_first_slow_start
        if stops_clock and self.base is None:
            self.base = self.found
        if self.base is not None and (self.since.other_usage if usage is Usage.UNUSED else self.since.unused):
            self.base, self.since = self.found, Since()
        since = self.since
        since.unused |= usage is Usage.UNUSED
        since.other_usage |= usage is not Usage.UNUSED
        since.acked_bytes += 0.0 if usage is Usage.UNUSED else count_bytes

    def _lost(self, fact: Lost, lost: list[Packet]) -> bool:
        """Process a loss; one of a packet that is not in flight, as an ACK alone, is none (RFC 9002 section 7)."""
        if fact.packet is not None and not fact.packet.in_flight:
            return False
        if not self.estimator.is_evidence(fact):
            self.doubtful += 1
            if self.since.doubtful_s is None:
                self.since.doubtful_s = fact.time_s
            return False
        if fact.packet is not None:
            lost.append(fact.packet)
        return self._congestion(fact.time_s, fact.packet, "reduction")

    def _congestion(self, time_s: float, packet: Packet | None, rule: str) -> bool:
        """Begin a recovery period unless the packet was sent before the present one began; return True if it did."""
        if self.recovery.covers(time_s, packet, self.estimator.srtt_s or 0.0):
            self.since.reductions += packet is not None and self.recovery.is_active
            return False
        self._begin_recovery(time_s, self.found, rule)
        return True

    def _begin_recovery(self, time_s: float, window: float, rule: str) -> None:
        self.recovery.begin(time_s, max(window, self._bounds.interval[1]))
        slack = self.comparison.slack(window)
        self._bounds.lose(time_s, window or self.datagram_bytes, slack, marked=rule == "ecn")
        self.base, self.since = None, Since(reduction=rule)

    def _state(self, fact: State) -> None:
        """Take over what the log says of the controller's state where events do not show it."""
        if any(word in fact.trigger for word in PERSISTENT):
            if not self.recovery.is_active:
                self._bounds.collapse(fact.time_s)
                self.since = Since(reduction="reduction")
            self.recovery.end()
        elif any(word in fact.name for word in AVOIDANCE) and self._bounds.in_first_slow_start and self.found:
            self._bounds.resume(self.found)
            self.base = None

    # --- comparison --------------------------------------------------------------------------------------------

    def _compare(self, report: Metrics, reach: tuple[float, float], *, is_early: bool) -> None:
        window, last = report.cwnd_bytes or 0.0, self.found
        self.found = window
        if report.pacing_bps and self.estimator.srtt_s:
            self.comparison.pacing(report.time_s, window, self.estimator.srtt_s, report.pacing_bps)
        if self.comparison.minimum(report.time_s, window, reach[1]):
            self._doubt(window)
        elif self.since.persistent and self.comparison.is_minimum(window):
            self._collapse(window)
        elif self.recovery.is_active or self._is_reduced_in_doubt(window, last, reach):
            self._compare_in_recovery(report.time_s, window)
        elif self.base is not None or self.since.spurious:
            self._compare_unknown(report.time_s, window)
        else:
            self._compare_following(report.time_s, window, last, reach, is_early=is_early)

    def _compare_in_recovery(self, time_s: float, window: float) -> None:
        has_grown, top = self.recovery.has_grown, self.recovery.top_bytes
        if not self.recovery.take(window, self.comparison.slack(top)):
            self.comparison.count(agrees=False)
        elif not has_grown:
            self.comparison.deviate(time_s, "recovery-growth", (min(self._bounds.interval[0], top), top), window)

    def _collapse(self, window: float) -> None:
        """Take over that losses were persistent congestion, which ends the recovery period (RFC 9002 section B.8)."""
        self.recovery.forget()
        self._doubt(window)
        self.comparison.count(agrees=False)

    def _is_reduced_in_doubt(self, window: float, last: float, reach: tuple[float, float]) -> bool:
        """Begin a recovery period if the window shows that a loss which is no evidence was taken for one."""
        lost_s = self.since.doubtful_s
        low = min(reach[0], last) if self.base is None else self.base
        if lost_s is None or not self.comparison.is_below(window, low):
            return False
        self._begin_recovery(lost_s, last, "reduction")
        return True

    def _compare_unknown(self, time_s: float, window: float) -> None:
        """Allow what any specification does: to stay, or to grow by what is acknowledged while the window is used."""
        if self.base is None:  # a spurious loss may bring back the window of before (RFC 9438 section 4.9)
            self._doubt(window)
            self.comparison.count(agrees=False)
            return
        base, top = self.base, self.base + self.since.acked_bytes
        if self.comparison.is_above(window, top):
            rule = "application-limited" if self.since.is_unused else "slow-start"
        elif self.comparison.is_below(window, base):
            rule = self._shrinking(window)
        else:
            self.comparison.count(agrees=False)
            return
        self.comparison.deviate(time_s, rule, (base, top), window)
        self._doubt(window)

    def _compare_following(
        self, time_s: float, window: float, last: float, reach: tuple[float, float], *, is_early: bool
    ) -> None:
        bounds, (low, high) = self._bounds, reach
        is_first = bounds.in_first_slow_start
        if is_first:
            low = min(low, last)
        if low - self.comparison.slack(high) <= window <= high + self.comparison.slack(high):
            is_wide = high - low > self.datagram_bytes
            self.comparison.count(agrees=not is_wide and self.since.doubtful_s is None)
            if not is_early:
                self._take_up(window, low, high, is_wide=is_wide)
            return
        if window > high:
            rule = self.since.growing(window - last, self.datagram_bytes, in_first_slow_start=is_first)
        else:
            rule = self.since.reducing() or self._shrinking(window)
        self.comparison.deviate(time_s, rule, (low, high), window)
        if is_first and window > high:
            self._renew(window)
        else:
            bounds.resume(window)
        self.since = Since()

    def _take_up(self, window: float, low: float, high: float, *, is_wide: bool) -> None:
        """Go on from a window that agrees where what is allowed is wide."""
        bounds = self._bounds
        nearest = min(max(window, low), high)
        if bounds.in_first_slow_start:
            if self.comparison.is_below(window, high):
                self._doubt(window)
            elif is_wide and window < high:
                self._renew(max(window, low))
        elif is_wide:
            if bounds.low.in_slow_start or bounds.high.in_slow_start:
                self._doubt(nearest)
            else:
                bounds.resume(nearest)
        self.since = Since()

    def _shrinking(self, window: float) -> str:
        return self.since.shrinking(slightly=window >= 0.8 * self._bounds.interval[0])

    def _compare_in_flight(self, report: Metrics, facts: Sequence[Fact]) -> None:
        """Compare what is in flight with the window where packets are sent that are no probes."""
        sends = any(isinstance(fact, Sent) and fact.packet.in_flight and not fact.is_probe for fact in facts)
        probes = self.since.probe_timeout or self.since.doubtful_s is not None
        if report.in_flight_bytes is not None and sends and not probes and not self.recovery.is_active:
            self.comparison.in_flight(report.time_s, max(report.cwnd_bytes or 0.0, self.found), report.in_flight_bytes)

    def _doubt(self, window: float) -> None:
        """Go on without knowing how the window should grow, until the next congestion event."""
        self._bounds.resume(window)
        self.base, self.since = window, Since()


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
