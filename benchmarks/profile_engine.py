"""CPU time of the packet engine by component, or its instructions.

Builds the example `bulk` with line numbers, samples it with `perf`, and counts each sample for the innermost
function of our own source that it lies in, so that inlined code of the standard library falls to its caller. With
`--instructions` it counts instructions by `valgrind`, and divides them by the data packets delivered.

    python benchmarks/profile_engine.py [--instructions] FLOWS RATE_BPS RTT_S DURATION_S [SAMPLE_INTERVAL_S]
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "profile"
SOURCES = re.compile(r"crates/(?:ackclock-sim/src/|ackclock-(?=congestion))")
COMPONENTS = {
    "tournament_tree.rs": "event queue",
    "simulation": "simulation: dispatch, sampling",
    "network": "network, paths, SACK blocks",
    "path.rs": "network, paths, SACK blocks",
    "delay_queue.rs": "network, paths, SACK blocks",
    "packet.rs": "network, paths, SACK blocks",
    "link.rs": "link and queue",
    "queue": "link and queue",
    "histogram.rs": "histogram of sojourn times",
    "receiver": "receiver",
    "sender/scoreboard": "scoreboard",
    "sender": "sender",
    "workload.rs": "sender",
    "rtt.rs": "RTT and RTO",
    "congestion": "congestion control",
}
REST = "recording, allocator, kernel, start-up"


def main() -> None:
    """Profile the workload of the command line and print the table."""
    program, arguments = build(), sys.argv[1:]
    if arguments[0] == "--instructions":
        counts, packets = executed(program, arguments[1:])
        for name, count in by_component(program, counts).most_common():
            print(f"{count / packets:6.1f}  {name}")
        return
    samples = by_component(program, sampled(program, arguments))
    for name, count in samples.most_common():
        print(f"{100 * count / samples.total():5.1f} %  {name}")


def build() -> Path:
    """The example, at fixed addresses and with line numbers; returns its path."""
    environment = {
        "CARGO_PROFILE_RELEASE_DEBUG": "line-tables-only",
        "CARGO_TARGET_DIR": str(TARGET),
        "RUSTFLAGS": "-C relocation-model=static",
    }
    # With a target named, the flags are for the program alone, and not for the compiler's plug-ins.
    version = subprocess.run(["rustc", "-vV"], capture_output=True, text=True, check=True).stdout
    host = next(line.removeprefix("host: ") for line in version.splitlines() if line.startswith("host: "))
    command = ["cargo", "build", "--quiet", "--release", "--target", host, "-p", "ackclock-sim", "--example", "bulk"]
    subprocess.run(command, cwd=ROOT, env=os.environ | environment, check=True)
    return TARGET / host / "release" / "examples" / "bulk"


def sampled(program: Path, arguments: list[str]) -> Counter[int]:
    """Samples by address."""
    with tempfile.NamedTemporaryFile() as data:
        record = ["perf", "record", "--quiet", "-o", data.name, str(program), *arguments]
        subprocess.run(record, stdout=subprocess.DEVNULL, check=True)
        script = ["perf", "script", "-i", data.name, "-F", "ip"]
        addresses = subprocess.run(script, capture_output=True, text=True, check=True).stdout.split()
    return Counter(int(address, 16) for address in addresses)


def executed(program: Path, arguments: list[str]) -> tuple[Counter[int], int]:
    """Instructions executed by address, and the data packets delivered."""
    counts: Counter[int] = Counter()
    with tempfile.NamedTemporaryFile("r") as data:
        record = ["valgrind", "--tool=callgrind", "--dump-instr=yes", f"--callgrind-out-file={data.name}"]
        run = [*record, str(program), *arguments]
        report = subprocess.run(run, capture_output=True, text=True, check=True).stdout
        address, is_call = 0, False
        for line in data:
            # A line of costs: the address, absolute or as a difference, the source line and the instructions.
            if cost := re.match(r"(0x|[+-])?([0-9a-f]+|\*) \S+ (\d+)$", line):
                sign, digits, count = cost.groups()
                if sign == "0x":
                    address = int(digits, 16)
                elif sign:
                    address += int(sign + digits)
                counts[address] += 0 if is_call else int(count)
            is_call = line.startswith("calls=")
    return counts, json.loads(report)["data_packets"]


def by_component(program: Path, counts: Counter[int]) -> Counter[str]:
    """Sums by component of counts by address."""
    chains = inlined(program, list(counts))
    sums: Counter[str] = Counter()
    for address, count in counts.items():
        sums[component(chains[address])] += count
    return sums


def inlined(program: Path, addresses: list[int]) -> dict[int, list[str]]:
    """The source lines of each address, the innermost first."""
    command = ["addr2line", "--exe", str(program), "--inlines", "--addresses"]
    text = "\n".join(f"{address:x}" for address in addresses)
    lines = subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout.splitlines()
    chains: dict[int, list[str]] = {}
    chain: list[str] = []
    for line in lines:
        if line.startswith("0x"):
            chain = chains[int(line, 16)] = []
        else:
            chain.append(line)
    return chains


def component(chain: list[str]) -> str:
    """The component of the innermost line in our own source."""
    for line in chain:
        if found := SOURCES.search(line):
            place = line[found.end() :]
            # Longer names first: a folder's part before the folder.
            names = sorted(COMPONENTS, key=len, reverse=True)
            return next((COMPONENTS[name] for name in names if place.startswith(name)), REST)
    return REST


if __name__ == "__main__":
    main()
