"""An amount of work: what a rule gives, and what many runs add up to."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one run, or of several.

    Attributes:
        events: packets sent, packets that came to a link, and rows of samples; of a model its steps, for each flow.
        cpu_s: CPU time, in seconds.
        bytes: of the result on disk.
        memory_bytes: what a process needs at most at one time, beside what it needs to start.
    """

    events: float = 0.0
    cpu_s: float = 0.0
    bytes: float = 0.0
    memory_bytes: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        """One after the other."""
        return Cost(
            self.events + other.events,
            self.cpu_s + other.cpu_s,
            self.bytes + other.bytes,
            max(self.memory_bytes, other.memory_bytes),
        )

    def __mul__(self, times: float) -> Cost:
        """So many, one after the other."""
        return replace(self, events=self.events * times, cpu_s=self.cpu_s * times, bytes=self.bytes * times)

    def at(self, speed: float) -> Cost:
        """On a machine that is so many times as fast as the one where the rules were measured."""
        return replace(self, cpu_s=self.cpu_s / speed)
