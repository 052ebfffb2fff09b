"""The comparison of a log with what is allowed: tolerances, counts, deviations and the rules that they break."""

from __future__ import annotations

from dataclasses import dataclass, field

from ackclock.judge import rules
from ackclock.judge.rules import Reference

#: A window that grows by more than this share of what is acknowledged is in slow start, which grows by all of it.
#: CUBIC's target is at most half a window ahead (RFC 9438 section 4.2).
EXPONENTIAL = 0.7


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
    """Events since the window last agreed.

    `doubtful_s` is the time of the first loss that is no evidence of congestion; `persistent` is True after losses that
    may be persistent congestion.
    """

    reduction: str = ""
    reductions: int = 0
    probe_timeout: bool = False
    doubtful_s: float | None = None
    persistent: bool = False
    spurious: bool = False
    unused: bool = False
    other_usage: bool = False
    acked_bytes: float = 0.0

    def reducing(self) -> str:
        """Return the rule that a window below what is allowed breaks after a congestion event; "" without one."""
        return "second-reduction" if self.reduction and self.reductions else self.reduction

    def shrinking(self, *, slightly: bool) -> str:
        """Return the rule that a window below what is allowed breaks, where no congestion event explains it."""
        if self.probe_timeout:
            return "probe-timeout"
        return "avoidance" if self.acked_bytes and slightly else "unprompted-reduction"

    def growing(self, growth: float, datagram_bytes: float, *, in_first_slow_start: bool) -> str:
        """Return the rule that a window above what is allowed breaks."""
        if self.reduction:
            return self.reduction
        if self.is_unused:
            return "application-limited"
        if in_first_slow_start:
            return "slow-start"
        is_exponential = growth > EXPONENTIAL * self.acked_bytes and self.acked_bytes > datagram_bytes
        return "slow-start-exit" if is_exponential else "avoidance"

    @property
    def is_unused(self) -> bool:
        """Return True if all acknowledgements found the window unused."""
        return self.unused and not self.other_usage


@dataclass(slots=True)
class Comparison:
    """The result so far."""

    reference: Reference
    datagram_bytes: float
    deviations: list[Deviation] = field(default_factory=list)
    agreed: int = 0
    undecided: int = 0
    pacing_deviated: bool = False

    def slack(self, window: float) -> float:
        """Return how far a window may be from this one."""
        return max(rules.TOLERANCE_DATAGRAMS * self.datagram_bytes, rules.TOLERANCE_SHARE * window)

    def is_above(self, window: float, limit: float) -> bool:
        """Return True if a window exceeds a limit and its tolerance."""
        return window > limit + self.slack(limit)

    def is_below(self, window: float, limit: float) -> bool:
        """Return True if a window is less than a limit less its tolerance."""
        return window < limit - self.slack(limit)

    def count(self, *, agrees: bool) -> None:
        """Count a window that agrees or is undecided."""
        self.agreed += agrees
        self.undecided += not agrees

    def deviate(self, time_s: float, rule: str, expected: tuple[float, float], found: float) -> None:
        """Add a deviation."""
        of = self.reference.rule(rule)
        self.deviations.append(Deviation(time_s, rule, of.demand, of.section, *expected, found))

    def initial(self, time_s: float, window: float) -> None:
        """Compare the initial window."""
        size = self.datagram_bytes
        limit = min(rules.INITIAL_DATAGRAMS * size, max(rules.INITIAL_BYTES, 2.0 * size))
        if window > limit + size:
            self.deviate(time_s, "initial-window", (0.0, limit), window)

    def is_minimum(self, window: float) -> bool:
        """Return True if a window is the smallest."""
        return window < 1.05 * rules.MIN_DATAGRAMS * self.datagram_bytes

    def minimum(self, time_s: float, window: float, high: float) -> bool:
        """Compare a window with the smallest; return True if it deviates."""
        limit = rules.MIN_DATAGRAMS * self.datagram_bytes
        if window >= 0.95 * limit:
            return False
        self.deviate(time_s, "minimum-window", (limit, high), window)
        return True

    def in_flight(self, time_s: float, window: float, in_flight: float) -> None:
        """Compare what is in flight with the window."""
        if self.is_above(in_flight, window):
            self.deviate(time_s, "in-flight", (0.0, window), in_flight)

    def pacing(self, time_s: float, window: float, srtt_s: float, pacing_bps: float) -> None:
        """Compare a pacing rate; only the first that deviates counts."""
        limit_bps = rules.MAX_PACING_GAIN * 8.0 * window / srtt_s
        if not self.pacing_deviated and limit_bps < pacing_bps < rules.UNPACED_GAIN * limit_bps:
            self.pacing_deviated = True
            self.deviate(time_s, "pacing", (8.0 * window / srtt_s, limit_bps), pacing_bps)
