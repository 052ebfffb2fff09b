#!/usr/bin/env python3
"""Overhead around ackclock's packet engine: sweeps of small points, and a long run.

    python benchmarks/around.py                # a minute on a quiet core
    python benchmarks/around.py --repeats 1    # a look

All figures are CPU seconds, user and system, of all processes; the best of some repeats that take turns, so that a slow
minute hits all of them. The engine alone is its loop, without tables. Ratios travel between machines, seconds do not.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

SMALL = """
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
SWEPT = SMALL + '[sweep]\n"network.rtt" = ["10ms", "20ms", "30ms", "40ms", "50ms"]\n'

LONG = """
duration = "100s"
[network]
topology = "dumbbell"
rate = "1Gbit"
rtt = "40ms"
queue = { discipline = "pfifo", limit = "1bdp" }
[[flows]]
count = 20
congestion = "cubic"
[record]
interval = "10ms"
"""

#: Runs of the short and the long sweep: what they differ by is without the start.
FEW, MANY = 50, 250

#: A run of a hundredth of a second: everything that a run costs apart from its simulation.
SHORT = LONG.replace('"100s"', '"10ms"').replace('interval = "10ms"', 'interval = "1ms"')

#: The engine's loop so many times, in one process that says what it took.
ENGINE_LOOP = """
import sys, time
import ackclock
from ackclock import _core
plan = ackclock.load(sys.argv[1]).plan()
runs = int(sys.argv[2])
begun_s = time.process_time()
for seed in range(runs):
    simulation = _core.Simulation(plan.engine_json, seed)
    while not simulation.advance_some(plan.duration_s)[1]:
        pass
print((time.process_time() - begun_s) / runs)
"""


def cpu_s(*arguments: str) -> float:
    """CPU time of a command of ackclock, and of the processes that it starts."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-m", "ackclock", *arguments], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def engine_loop_s(scenario: Path, runs: int) -> float:
    """CPU time of the engine's loop, for one run."""
    command = [sys.executable, "-c", ENGINE_LOOP, str(scenario), str(runs)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def measured(folder: Path, repeats: int) -> dict[str, float]:
    """The best of each, in turns."""
    for name, text in {"small": SMALL, "swept": SWEPT, "long": LONG, "short": SHORT}.items():
        (folder / f"{name}.toml").write_text(text, encoding="utf-8")

    def sweep(runs: int) -> float:
        scenario, seeds = str(folder / "swept.toml"), str(runs // 5)
        common = ("--jobs", "1", "--no-report", "--restart", "--out", str(folder / "sweep"))
        return cpu_s("sweep", scenario, "--repeats", seeds, *common)

    def run(name: str) -> float:
        return cpu_s("run", str(folder / f"{name}.toml"), "--seed", "1", "--no-report", "--out", str(folder / name))

    programs: dict[str, Callable[[], float]] = {
        "few": lambda: sweep(FEW),
        "many": lambda: sweep(MANY),
        "small": lambda: engine_loop_s(folder / "small.toml", 20),
        "short": lambda: run("short"),
        "long": lambda: run("long"),
        "engine": lambda: engine_loop_s(folder / "long.toml", 1),
    }
    found = [{name: program() for name, program in programs.items()} for _ in range(repeats)]
    return {name: min(turn[name] for turn in found) for name in programs}


def main() -> None:
    """The command."""
    asked = argparse.ArgumentParser(description="What ackclock costs around its packet engine.")
    asked.add_argument("--repeats", type=int, default=3)
    given = asked.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = measured(Path(folder), given.repeats)
    run_s = (found["many"] - found["few"]) / (MANY - FEW)
    start_s = found["few"] - FEW * run_s
    print("A sweep of 20 s of 20 Mb/s, 4 flows, all metrics, flows and links kept")
    print(f"  runs a second and core       {1 / run_s:8.1f}")
    print(f"  a run                        {1e3 * run_s:8.1f} ms")
    print(f"  of which the engine's loop   {1e3 * found['small']:8.1f} ms")
    print(f"  once for all, start and table{start_s:8.2f} s")
    print("100 s of 20 flows at 1 Gb/s, sampled every 10 ms, without a report")
    print(f"  all                          {found['long']:8.2f} s")
    print(f"  the start (10 ms of it)      {found['short']:8.2f} s")
    print(f"  the engine's loop            {found['engine']:8.2f} s")
    print(f"  (all − start) / loop         {(found['long'] - found['short']) / found['engine']:8.2f}")


if __name__ == "__main__":
    main()
