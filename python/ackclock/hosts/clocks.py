"""How another host's clock stands to ours, from questions and answers over one connection.

An answer says what the time was there, somewhere between our question and its arrival. The shortest exchange says it
best: the offset is that of its middle, and its half is the most that the offset may be wrong by (RFC 5905 section 8).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

NS = 1e-9


@dataclass(frozen=True, slots=True)
class Exchange:
    """A question, its answer's time there, and the answer's arrival: monotonic clocks, ns."""

    asked_ns: int
    there_ns: int
    heard_ns: int


@dataclass(frozen=True, slots=True)
class Offset:
    """What another clock is ahead of ours at a time of ours, and the most that this may be wrong by, all in ns."""

    at_ns: int
    ahead_ns: int
    error_ns: int

    def there(self, here_ns: int) -> int:
        """The other clock at a time of ours."""
        return here_ns + self.ahead_ns


def offset(exchanges: Iterable[Exchange]) -> Offset:
    """By the shortest of the exchanges, of which there must be one."""
    best = min(exchanges, key=lambda each: each.heard_ns - each.asked_ns)
    middle_ns = (best.asked_ns + best.heard_ns) // 2
    return Offset(middle_ns, best.there_ns - middle_ns, (best.heard_ns - best.asked_ns + 1) // 2)


@dataclass(frozen=True, slots=True)
class Relation:
    """Another clock before and after a run."""

    before: Offset
    after: Offset

    @property
    def drift(self) -> float:
        """What the other clock gained on ours, as a share of the time between."""
        return (self.after.ahead_ns - self.before.ahead_ns) / max(1, self.after.at_ns - self.before.at_ns)

    @property
    def drift_error(self) -> float:
        """The most that `drift` may be wrong by."""
        return (self.after.error_ns + self.before.error_ns) / max(1, self.after.at_ns - self.before.at_ns)

    @property
    def stretch(self) -> float:
        """What durations of the other clock are to be multiplied by; 1 where no drift is seen beyond the error."""
        return 1 / (1 + self.drift) if abs(self.drift) > self.drift_error else 1.0

    def as_dict(self) -> dict[str, float]:
        """For a manifest, in seconds."""
        return {
            "offset_s": self.before.ahead_ns * NS,
            "offset_error_s": self.before.error_ns * NS,
            "offset_after_s": self.after.ahead_ns * NS,
            "offset_after_error_s": self.after.error_ns * NS,
            "drift": self.drift,
            "drift_error": self.drift_error,
        }
