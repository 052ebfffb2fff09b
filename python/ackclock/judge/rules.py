"""Rules that a log is judged by, and where each is stated."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
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
    "minimum-window": ("a window of at least 2 datagrams", "RFC 9002 section 7.2"),
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
    }


def _parameters(kind: str, variant: str | None = None) -> Mapping[str, Any]:
    """Return the complete parameters of a variant with a slow start that only a loss ends, as a plan has them."""
    spec = algorithms.spec("congestion", kind)
    complete = spec.complete({"slow_start": "standard"}, variant)
    return {spec.key(name): value for name, value in complete.items()}


#: Names for `--as`.
NAMES = ("reno", "cubic")


def reference(name: str) -> Reference:
    """Return a specification. Raises `InputError` for one that there are no rules for."""
    if name not in NAMES:
        raise InputError(f"--as: found {shown(name)}; expected {nearest(name, NAMES)}")
    return _references()[name]
