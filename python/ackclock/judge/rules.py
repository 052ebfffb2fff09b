"""Rules that a log is judged by, where each is stated, and the comparison: tolerances, counts, deviations."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ackclock import algorithms
from ackclock.errors import InputError
from ackclock.input.fields import nearest, shown

#: A window may differ from the replay's by this many datagrams, or by this share of it if that is more. Datagrams: an
#: acknowledgement counts in whole ones here, and a log reports before or after it. The share: implementations begin
#: CUBIC's curve at the loss or up to a round trip later, which moves a window by up to 3 C K² RTT (the curve's slope at
#: its beginning): 1 % of 1,000 datagrams at 100 ms, 2 % at 200 ms.
TOLERANCE_DATAGRAMS, TOLERANCE_SHARE = 2.0, 0.03

#: A window is certainly not used while less than this share of it was in flight during the last round trip, and
#: Round trips whose peak in flight says whether the window may have been full.
PEAK_RTTS = 1.5

#: certainly used if it is full but for this many datagrams (a burst that pacing still holds back).
UNUSED_SHARE, UNUSED_DATAGRAMS = 0.5, 3.0

#: The smallest window in datagrams, and the initial one: so many, but no more bytes than that (RFC 9002 section 7.2).
MIN_DATAGRAMS, INITIAL_DATAGRAMS, INITIAL_BYTES = 2.0, 10.0, 14720.0

#: A pacing rate above so many windows per smoothed RTT deviates. RFC 9002 section 7.7 wants N "small, but at least 1",
#: such as 1.25; Linux has 2 in slow start.
MAX_PACING_GAIN = 2.1

#: A rate so many times the limit means that the sender does not pace (picoquic begins with 10 Gb/s and more), which it
#: may, if it limits bursts in another way.
UNPACED_GAIN = 100.0

#: Constants of persistent congestion (RFC 9002 sections 7.6.1 and 6.1.2), and the peer's delay (RFC 9000 section 18.2),
#: of which a log rarely has another value than the default.
PERSISTENT_THRESHOLD, GRANULARITY_S, MAX_ACK_DELAY_S = 3.0, 0.001, 0.025


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule: its name, what it demands, and where it is stated."""

    name: str
    demand: str
    section: str


@dataclass(frozen=True, slots=True)
class Reference:
    """A specification: the controller that follows it, its parameters, and its own sections by the rule's name.

    `has_clock` is True if its growth depends on the time since the last reduction, which application-limited times
    stop in a way that a log does not show.
    """

    title: str
    kind: str
    parameters: Mapping[str, Any]
    sections: Mapping[str, str]
    has_clock: bool = False

    @property
    def converged_share(self) -> float | None:
        """Return the share of the window that fast convergence leaves of W_max (RFC 9438 section 4.7); None without."""
        return (1.0 + self.parameters["beta"]) / 2.0 if self.parameters.get("fast_convergence") else None

    @property
    def parameters_json(self) -> str:
        """Return the parameters as the replay takes them."""
        return json.dumps(dict(self.parameters))

    def rule(self, name: str) -> Rule:
        """Return a rule with the section that this specification has for it."""
        demand, section = RULES[name]
        return Rule(name, demand, self.sections.get(name, section))


#: Rule → its demand, and the section of RFC 9002, which all QUIC controllers share.
RULES: Mapping[str, tuple[str, str]] = {
    "initial-window": ("an initial window of at most 10 datagrams, or 14,720 bytes", "RFC 9002 section 7.2"),
    "minimum-window": ("a window of at least the minimum", "RFC 9002 section 7.2"),
    "slow-start": ("growth by no more than what is acknowledged", "RFC 9002 section 7.3.1"),
    "slow-start-exit": ("slow start ends at ssthresh", "RFC 9002 section 7.3.1"),
    "avoidance": ("growth of congestion avoidance", "RFC 9002 section 7.3.3"),
    "reduction": ("the reduction at a congestion event", "RFC 9002 section 7.3.2"),
    "second-reduction": ("one reduction in a recovery period", "RFC 9002 section 7.3.2"),
    "recovery-growth": ("no growth in a recovery period", "RFC 9002 section 7.3.2"),
    "ecn": ("a reduction when CE marks are reported", "RFC 9002 section 7.1"),
    "application-limited": ("no growth while the window is not used", "RFC 9002 section 7.8"),
    "probe-timeout": ("no reduction at a probe timeout", "RFC 9002 sections 6.2 and 7.6"),
    "unprompted-reduction": ("no reduction without a congestion event", "RFC 9002 section 7"),
    "in-flight": ("no more in flight than the window", "RFC 9002 section 7"),
    "pacing": ("a pacing rate near the window per RTT", "RFC 9002 section 7.7"),
    "growth": ("growth by no more than what is acknowledged", "RFC 9002 section 7.3.1"),
    "inflight-bound": ("a window of at most a gain times the BDP", "RFC 9002 section 7"),
    "probe-rtt": ("a smaller window when no RTT as small was seen", "RFC 9002 section 5.2"),
    "probe-rtt-length": ("ProbeRTT for a round trip and 200 ms", "RFC 9002 section 5.2"),
    "probe-rtt-interval": ("5 s from one ProbeRTT to the next at least", "RFC 9002 section 5.2"),
    "probe-wait": ("2 to 3 s from a probe to the next, or as many rounds as Reno would take", "RFC 9002 section 7"),
    "down-gain": ("a pacing gain of 0.9 after a probe", "RFC 9002 section 7.7"),
}


def _references() -> Mapping[str, Reference]:
    """Return the specifications by the name for `--as`.

    Windows are in fractions of datagrams, as QUIC counts bytes: AIMD(1, 0.5) is Reno so, and CUBIC has a variant.
    """
    return {
        "reno": Reference("NewReno of RFC 9002", "aimd", _parameters("aimd"), {}),
        "cubic": Reference(
            "CUBIC of RFC 9438",
            "cubic",
            _parameters("cubic", "rfc9438"),
            {
                "avoidance": "RFC 9438 sections 4.2 to 4.5",
                "reduction": "RFC 9438 section 4.6",
                "ecn": "RFC 9438 section 4.6, RFC 9002 section 7.1",
                "application-limited": "RFC 9438 section 5.8, RFC 9002 section 7.8",
                "slow-start-exit": "RFC 9438 section 4.10, RFC 9002 section 7.3.1",
            },
            has_clock=True,
        ),
        "bbr3": Reference(
            "BBRv3 of draft-ietf-ccwg-bbr-06",
            "bbr3",
            _parameters("bbr3", slow_start=None),
            {
                name: f"draft-ietf-ccwg-bbr section {section}"
                for name, section in {
                    "minimum-window": "5.6.4.3",
                    "pacing": "5.6.2",
                    "growth": "5.6.4.6",
                    "inflight-bound": "5.6.4",
                    "probe-rtt": "5.3.4",
                    "probe-rtt-length": "5.3.4.1",
                    "probe-rtt-interval": "5.3.4.1",
                    "probe-wait": "5.3.3.8",
                    "down-gain": "5.6.1",
                }.items()
            },
        ),
    }


def _parameters(kind: str, variant: str | None = None, slow_start: str | None = "standard") -> Mapping[str, Any]:
    """Return the complete parameters of a variant, as a plan has them; a standard slow start ends with a loss only."""
    spec = algorithms.spec("congestion", kind)
    complete = spec.complete({"slow_start": slow_start} if slow_start else {}, variant)
    return {spec.key(name): value for name, value in complete.items()}


#: Rule → unit of what it compares, for rules that do not compare windows in bytes; "" is a ratio.
UNITS: Mapping[str, str] = {
    "pacing": "bit/s",
    "probe-rtt-length": "s",
    "probe-rtt-interval": "s",
    "probe-wait": "s",
    "down-gain": "",
}

#: Names for `--as`.
NAMES = ("reno", "cubic", "bbr3")


def reference(name: str) -> Reference:
    """Return a specification. Raises `InputError` for one that there are no rules for."""
    if name not in NAMES:
        raise InputError(f"--as: found {shown(name)}; expected {nearest(name, NAMES)}")
    return _references()[name]


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
        return max(TOLERANCE_DATAGRAMS * self.datagram_bytes, TOLERANCE_SHARE * window)

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
        limit = min(INITIAL_DATAGRAMS * size, max(INITIAL_BYTES, 2.0 * size))
        if window > limit + size:
            self.deviate(time_s, "initial-window", (0.0, limit), window)

    def is_minimum(self, window: float) -> bool:
        """Return True if a window is the smallest."""
        return window < 1.05 * MIN_DATAGRAMS * self.datagram_bytes

    def minimum(self, time_s: float, window: float, high: float) -> bool:
        """Compare a window with the smallest; return True if it deviates."""
        limit = MIN_DATAGRAMS * self.datagram_bytes
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
        limit_bps = MAX_PACING_GAIN * 8.0 * window / srtt_s
        if not self.pacing_deviated and limit_bps < pacing_bps < UNPACED_GAIN * limit_bps:
            self.pacing_deviated = True
            self.deviate(time_s, "pacing", (8.0 * window / srtt_s, limit_bps), pacing_bps)
