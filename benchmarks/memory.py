#!/usr/bin/env python3
"""Peak memory and CPU time of whole runs, by the number of samples and of transfers.

    python benchmarks/memory.py                # up to 600 s of samples and a million transfers
    python benchmarks/memory.py --long         # an hour, and ten million transfers
    python benchmarks/memory.py --report       # with the report

Each run is a process of `ackclock run`; the peak is that of its resident memory.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

SAMPLES = """name = "Five flows, sampled every millisecond"
duration = "{span_s}s"
repeats = 1
[network]
topology = "dumbbell"
rate = "5Mbit"
rtt = "40ms"
queue = {{ discipline = "pfifo", limit = "1bdp" }}
[[flows]]
count = 5
[record]
interval = "1ms"
"""

TRANSFERS = """name = "Transfers of one packet"
duration = "{span_s}s"
repeats = 1
[network]
topology = "dumbbell"
rate = "1Gbit"
rtt = "10ms"
queue = {{ discipline = "pfifo", limit = "1bdp" }}
[[traffic]]
kind = "poisson"
rate = "{per_s}/s"
size = "1KB"
"""

#: Transfers a second.
PER_S = 50_000

#: The largest expected number: a workload may come to ten million, and a Poisson process may draw more than expected.
MAX_TRANSFERS = 9_980_000


def cases(*, long: bool) -> Iterator[tuple[str, str]]:
    """Names and scenarios."""
    for span_s in (6, 60, 600, *([3600] if long else [])):
        yield f"{5000 * span_s:>10,} flow samples", SAMPLES.format(span_s=span_s)
    for number in (10_000, 100_000, 1_000_000, *([MAX_TRANSFERS] if long else [])):
        scenario = TRANSFERS.format(span_s=number / PER_S, per_s=PER_S)
        yield f"{number:>10,} transfers", scenario


def measured(scenario: str, *options: str) -> tuple[float, float]:
    """Peak resident memory in MiB and CPU seconds of a run."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "scenario.toml")
        path.write_text(scenario, encoding="utf-8")
        command = [sys.executable, "-m", "ackclock", "run", str(path), "--out", f"{folder}/result", *options]
        measuring = [sys.executable, __file__, "--one", *command]
        peak_kib, cpu_s = subprocess.run(measuring, check=True, capture_output=True, text=True).stdout.split()
    return int(peak_kib) / 1024, float(cpu_s)


def one(command: list[str]) -> None:
    """Runs a command and prints its peak in KiB and its CPU seconds: of a process's children the greatest is known."""
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(used.ru_maxrss, used.ru_utime + used.ru_stime)


def main() -> None:
    """Prints a line for each case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--long", action="store_true", help="the longest cases too")
    parser.add_argument("--report", action="store_true", help="with the report")
    parser.add_argument("--one", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        return one(given.one)
    print(f"{'':>24}{'peak MiB':>10}{'CPU s':>8}")
    for name, scenario in cases(long=given.long):
        peak_mib, cpu_s = measured(scenario, *([] if given.report else ["--no-report"]))
        print(f"{name:>24}{peak_mib:>10.0f}{cpu_s:>8.1f}", flush=True)
    return None


if __name__ == "__main__":
    main()
