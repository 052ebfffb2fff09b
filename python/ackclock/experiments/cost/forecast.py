"""Forecast of a command: the total cost of its runs on this machine."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ackclock.experiments.cost.amount import Cost

#: Bytes of the report: its script, and curves of each run.
REPORT_BYTES = 3.0e6


@dataclass(frozen=True, slots=True)
class Forecast:
    """A number of runs, `jobs` of them at a time.

    Attributes:
        events, cpu_s, bytes: of all runs together.
        wall_s: how long it takes, in seconds.
        memory_bytes: of all runs that are under way at one time.
    """

    runs: int
    jobs: int
    events: float
    cpu_s: float
    wall_s: float
    bytes: float
    memory_bytes: float

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    def shortages(self, folder: Path) -> Iterator[str]:
        """Yield a sentence for each shortage: room on the disk of `folder`, and memory."""
        if (free := _free_bytes(folder)) is not None and free < self.bytes:
            yield f"{folder}: about {amount(self.bytes)} will be written, and {amount(free)} are free"
        if (free := _available_bytes()) is not None and free < self.memory_bytes:
            yield f"about {amount(self.memory_bytes)} of memory will be needed, and {amount(free)} are free"

    def __str__(self) -> str:
        cores = "1 core" if self.jobs == 1 else f"{self.jobs} cores"
        runs = "1 run" if self.runs == 1 else f"{self.runs:,} runs"
        events = f"{self.events:.1e}".replace("e+", "e").replace("e0", "e") + " events"
        about = f"about {duration(self.wall_s)}" if self.wall_s >= 1 else "less than a second"
        return f"{about} of work on {cores} ({runs}, {events}), {amount(self.bytes)} on disk"


def forecast(costs: Iterable[tuple[Cost, int]], jobs: int, speed: float, *, extra_bytes: float = 0.0) -> Forecast:
    """Add up costs of runs, each with a number of runs, on a machine of some speed (`speed.speed`)."""
    pairs = [(cost.at(speed), runs) for cost, runs in costs]
    runs = sum(number for _, number in pairs)
    at_a_time = max(1, min(jobs, runs))
    cpu_s = sum(cost.cpu_s * number for cost, number in pairs)
    longest_s = max((cost.cpu_s for cost, number in pairs if number), default=0.0)
    return Forecast(
        runs=runs,
        jobs=at_a_time,
        events=sum(cost.events * number for cost, number in pairs),
        cpu_s=cpu_s,
        wall_s=max(longest_s, cpu_s / at_a_time),
        bytes=sum(cost.bytes * number for cost, number in pairs) + extra_bytes,
        memory_bytes=at_a_time * max((cost.memory_bytes for cost, _ in pairs), default=0.0),
    )


def duration(seconds: float) -> str:
    """A time for people, two numbers at most: `1 h 20 min`, `3 days 4 h`."""
    for unit_s, unit, part_s, part in ((86400, "days", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if seconds >= unit_s:
            whole, rest = divmod(round(seconds / part_s), unit_s // part_s)
            return f"{whole} {unit.removesuffix('s') if whole == 1 else unit}" + (f" {rest} {part}" if rest else "")
    return f"{seconds:.0f} s"


def amount(size_bytes: float) -> str:
    """Bytes for people: `4.2 GB`."""
    for unit, factor in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size_bytes >= factor:
            number = size_bytes / factor
            return f"{number:.1f} {unit}" if number < 10 else f"{number:.0f} {unit}"
    return f"{size_bytes:.0f} B"


def _free_bytes(folder: Path) -> int | None:
    """On the disk that a folder would be on."""
    try:
        there = next((place for place in (folder, *folder.absolute().parents) if place.exists()), None)
        return None if there is None else shutil.disk_usage(there).free
    except OSError:
        return None


def _available_bytes() -> int | None:
    """Memory that is free, or can be made so."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        (kilobytes,) = (int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    except (OSError, ValueError):
        return None
    return 1024 * kilobytes if os.name == "posix" else None
