"""Cost of a command before and around its work, as multiples of `python -c "import numpy"` on the same machine.

    .venv/bin/python benchmarks/start.py [--rounds 7]

Every round runs each command once, in turn, so that a slow minute hits all of them; what counts is the best of the
rounds. CPU seconds are user and system of the whole process and its children.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROGRAM = (sys.executable, "-m", "ackclock")

#: A capture of less than 1 kB.
CAPTURE = next(ROOT.glob("crates/*/tests/data/pcapplusplus/tcp-malformed.pcap"))

#: The script that a shell calls to complete a word: the one next to this Python, whatever `PATH` has.
SCRIPT = str(Path(sys.executable).with_name("ackclock"))

#: A run whose simulation is nothing beside what is around it.
SMALL = """
name = "Four CUBIC flows"
duration = "20s"
[network]
topology = "dumbbell"
rate = "20Mbit"
rtt = "40ms"
queue = { discipline = "pfifo", limit = "1bdp" }
[[flows]]
count = 4
congestion = "cubic"
"""


@dataclass(frozen=True, slots=True)
class Command:
    """A command and its limit in imports of NumPy: of its CPU seconds, or of its wall-clock time."""

    name: str
    arguments: tuple[str, ...]
    limit: float | None = None
    of_wall: bool = False
    environment: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds."""

    cpu_s: float
    wall_s: float


BASE = Command("import numpy", (sys.executable, "-c", "import numpy"))


def commands(folder: Path) -> list[Command]:
    """Return the measured commands; the first is the measure."""
    small = folder / "small.toml"
    small.write_text(SMALL, encoding="utf-8")
    run = (*PROGRAM, "run", str(small), "--seed", "1", "--out", str(folder / "small"))
    demo = (*PROGRAM, "run", str(ROOT / "scenarios" / "dumbbell.toml"), "--out", str(folder / "demo"))
    completing = (("_ACKCLOCK_COMPLETE", "bash_complete"), ("COMP_WORDS", "ackclock show cu"), ("COMP_CWORD", "2"))
    return [
        BASE,
        Command("ackclock --help", (*PROGRAM, "--help"), 1.5, of_wall=True),
        Command("ackclock show", (*PROGRAM, "show"), 1.5, of_wall=True),
        Command("ackclock show cubic", (*PROGRAM, "show", "cubic"), 1.5, of_wall=True),
        Command("completion", (SCRIPT,), 1.5, of_wall=True, environment=completing),
        Command("ackclock capture", (*PROGRAM, "capture", str(CAPTURE)), 1.2),
        Command("ackclock capture --json", (*PROGRAM, "capture", str(CAPTURE), "--json"), 1.2),
        Command("run, without report", (*run, "--no-report"), 3.5),
        Command("run, with report", run, 7.0),
        Command("the demo's scenario", demo, 20.0),
    ]


def measured(command: Command) -> Cost:
    """One run of a command. Raises `CalledProcessError` if it fails."""
    before_s, since_s = _children_s(), time.perf_counter()
    environment = {**os.environ, **dict(command.environment)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # modules are compiled once, as where anybody works
    subprocess.run(command.arguments, env=environment, capture_output=True, check=True)
    return Cost(_children_s() - before_s, time.perf_counter() - since_s)


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def best(costs: Sequence[Cost]) -> Cost:
    """The least disturbed."""
    return Cost(min(cost.cpu_s for cost in costs), min(cost.wall_s for cost in costs))


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as place:
        listed = commands(Path(place))
        costs: list[list[Cost]] = [[] for _ in listed]
        for _ in range(rounds):
            for command, found in zip(listed, costs, strict=True):
                found.append(measured(command))
    base = best(costs[0])
    print(f"{'':22}{'CPU s':>8}{'wall s':>8}{'× CPU':>8}{'× wall':>8}  at most")
    for command, found in zip(listed, costs, strict=True):
        cost = best(found)
        cpu, wall = cost.cpu_s / base.cpu_s, cost.wall_s / base.wall_s
        goal = "" if command.limit is None else f"  {command.limit:g} × {'wall' if command.of_wall else 'CPU'}"
        print(f"{command.name:22}{cost.cpu_s:8.2f}{cost.wall_s:8.2f}{cpu:8.2f}{wall:8.2f}{goal}")


if __name__ == "__main__":
    main()
