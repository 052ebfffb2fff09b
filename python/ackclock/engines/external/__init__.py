"""Other simulators: their program is run, and what it wrote becomes the dataset's tables (`tables`)."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from ackclock.dataset import Dataset, folders
from ackclock.engines.engine import Engine, RunOptions, manifest
from ackclock.engines.external import tables
from ackclock.errors import AckclockError, Unsupported, UnsupportedError
from ackclock.plan import Plan
from ackclock.system import signals

#: Seconds between two checks whether to go on.
POLL_INTERVAL_S = 0.2

#: The last bytes of a file of samples that tell how far the run is.
TAIL_BYTES = 4096


#: Feature → what to write for a plan without it. The default stack has RACK, and more that simulators lack.
REMEDIES = {"RACK": '[tcp] stack = "ns2" with sack = true is a TCP that it has'}


class SimulatorError(AckclockError):
    """Another simulator is not there, or failed."""


class Simulator(Engine, Protocol):
    """An engine that is another simulator."""

    def unavailable(self) -> str | None:
        """Return why this machine cannot run the simulator; None if it can."""

    def make(self, plan: Plan, seed: int, folder: Path) -> Sequence[Sequence[str]]:
        """Writes a run's program into a folder; the commands that run it there, one after the other."""


def reasons(engine: str, lacking: Iterable[str]) -> list[Unsupported]:
    """Return what a simulator lacks, each with what to write in its place if that is known."""
    return [Unsupported(what, engine, remedy=REMEDIES.get(what, "")) for what in lacking]


def carried_out(simulator: Simulator, plan: Plan, seed: int, around: RunOptions) -> Dataset:
    """One run. Raises `UnsupportedError`, and `SimulatorError` if the simulator is not there or fails."""
    if reasons := simulator.unsupported(plan):
        raise UnsupportedError(reasons)
    if lack := simulator.unavailable():
        raise SimulatorError(lack)
    with folders.temporary_folder() as folder:
        with folders.write_errors(folder):
            commands = simulator.make(plan, seed, folder)
        for command in commands:
            run(command, folder, around, plan.duration_s)
        about = manifest(plan, simulator.name, seed, around.command)
        return tables.dataset(plan, seed, folder, about, around.spool_bytes)


def run(command: Sequence[str], folder: Path, around: RunOptions, duration_s: float) -> list[str]:
    """Runs a program in a folder and follows its samples; the lines that it said. Raises `SimulatorError`.

    Whatever `around.progress` raises ends it.
    """
    with (folder / "said").open("wb") as said, _started(command, folder, said.fileno()) as process:
        while _waits(process):
            around.progress(_share(folder, duration_s))
    lines = (folder / "said").read_text(encoding="utf-8", errors="replace").splitlines()
    if process.returncode:
        raise SimulatorError(f"{Path(command[0]).name} failed: {_why(lines, process.returncode)}")
    return lines


def _why(lines: Sequence[str], status: int) -> str:
    """Return the line of a program's output that explains its failure."""
    marked = [line for line in lines if re.search(r"\b(error|ns|aborted|assert)\b", line, re.IGNORECASE)]
    return next(iter([*marked, *lines]), f"status {status}")[:300]


def _waits(process: subprocess.Popen[bytes]) -> bool:
    try:
        process.wait(POLL_INTERVAL_S)
    except subprocess.TimeoutExpired:
        return True
    return False


@contextmanager
def _started(command: Sequence[str], folder: Path, said: int) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        command, cwd=folder, stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True
    )

    def end() -> None:
        process.kill()
        process.wait()

    with signals.cleanup(end):
        yield process


def _share(folder: Path, duration_s: float) -> float:
    """Return the completed share of a run, from the last sample on disk."""
    try:
        return min(_last_s(folder / "samples") / duration_s, 1.0)
    except (OSError, IndexError, ValueError):
        return 0.0


def _last_s(samples: Path) -> float:
    with samples.open("rb") as file:
        file.seek(max(samples.stat().st_size - TAIL_BYTES, 0))
        return float(file.read().split(b"\n")[-2].split()[1])
