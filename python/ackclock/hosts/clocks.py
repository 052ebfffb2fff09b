"""The offset and drift of another host's clock, from exchanges over one connection.

A response carries the remote time of some moment between our request and its arrival. The shortest exchange is the most
precise: the offset is that at its middle, with an error of at most half of it (RFC 5905 section 8).

Used by `agent`, and by runs on testbeds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

NS = 1e-9


@dataclass(frozen=True, slots=True)
class Exchange:
    """The times of a request, of the remote clock in the response, and of its arrival: monotonic clocks, ns."""

    sent_ns: int
    remote_ns: int
    received_ns: int


@dataclass(frozen=True, slots=True)
class Offset:
    """By how much another clock is ahead of ours at a time of ours, and the maximum error, all in ns."""

    at_ns: int
    ahead_ns: int
    error_ns: int

    def to_remote(self, local_ns: int) -> int:
        """Return the other clock's time at a time of ours."""
        return local_ns + self.ahead_ns


def offset(exchanges: Iterable[Exchange]) -> Offset:
    """Return the offset by the shortest of the exchanges, of which there must be one."""
    best = min(exchanges, key=lambda each: each.received_ns - each.sent_ns)
    middle_ns = (best.sent_ns + best.received_ns) // 2
    return Offset(middle_ns, best.remote_ns - middle_ns, (best.received_ns - best.sent_ns + 1) // 2)


@dataclass(frozen=True, slots=True)
class ClockDrift:
    """Another clock's offset before and after a run."""

    before: Offset
    after: Offset

    @property
    def drift(self) -> float:
        """The other clock's gain on ours, as a share of the time between."""
        return (self.after.ahead_ns - self.before.ahead_ns) / max(1, self.after.at_ns - self.before.at_ns)

    @property
    def drift_error(self) -> float:
        """The maximum error of `drift`."""
        return (self.after.error_ns + self.before.error_ns) / max(1, self.after.at_ns - self.before.at_ns)

    @property
    def stretch(self) -> float:
        """The factor from durations of the other clock to ours; 1 if the drift is within its error."""
        return 1 / (1 + self.drift) if abs(self.drift) > self.drift_error else 1.0

    def as_dict(self) -> dict[str, float]:
        """Return the offsets and the drift for a manifest, in seconds."""
        return {
            "offset_s": self.before.ahead_ns * NS,
            "offset_error_s": self.before.error_ns * NS,
            "offset_after_s": self.after.ahead_ns * NS,
            "offset_after_error_s": self.after.error_ns * NS,
            "drift": self.drift,
            "drift_error": self.drift_error,
        }
