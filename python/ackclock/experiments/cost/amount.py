"""An amount of work: what a rule gives, and what many runs add up to."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Cost:
    """Cost of one run, or of several.

    Attributes:
        events: packets sent, packets that came to a link, and rows of samples; of a model its steps, for each flow.
        cpu_s: CPU time, in seconds.
        folder_s: the part of `cpu_s` spent on writing a result folder; runs of a sweep have none.
        bytes: of the result on disk.
        kept_bytes: of the tables that a sweep keeps, and the metrics.
        memory_bytes: what a process needs at most at one time, beside what it needs to start.
    """

    events: float = 0.0
    cpu_s: float = 0.0
    bytes: float = 0.0
    kept_bytes: float = 0.0
    memory_bytes: float = 0.0
    folder_s: float = 0.0

    def at(self, speed: float) -> Cost:
        """On a machine that is so many times as fast as the one where the rules were measured."""
        return replace(self, cpu_s=self.cpu_s / speed, folder_s=self.folder_s / speed)

    def in_sweep(self, *, samples: bool = False) -> Cost:
        """Return the cost within a sweep, which keeps few tables, or with `samples` all, in parts of many runs."""
        kept_bytes = self.bytes if samples else self.kept_bytes
        return replace(self, cpu_s=self.cpu_s - self.folder_s, folder_s=0.0, bytes=kept_bytes)
