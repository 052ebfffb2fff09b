"""CPU time of the packet engine by component.

Builds the example `bulk` with line numbers, samples it with `perf`, and counts each sample for the innermost
function of our own source that it lies in, so that inlined code of the standard library falls to its caller.

    python benchmarks/profile_engine.py FLOWS RATE_BPS RTT_S DURATION_S [SAMPLE_INTERVAL_S]
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "profile"
SOURCE = "crates/ackclock-sim/src/"
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
    samples = sampled(build(), sys.argv[1:])
    total = samples.total()
    for component, count in samples.most_common():
        print(f"{100 * count / total:5.1f} %  {component}")


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


def sampled(program: Path, arguments: list[str]) -> Counter[str]:
    """Samples by component."""
    with tempfile.NamedTemporaryFile() as data:
        record = ["perf", "record", "--quiet", "-o", data.name, str(program), *arguments]
        subprocess.run(record, stdout=subprocess.DEVNULL, check=True)
        script = ["perf", "script", "-i", data.name, "-F", "ip"]
        addresses = subprocess.run(script, capture_output=True, text=True, check=True).stdout.split()
    counts = Counter(int(address, 16) for address in addresses)
    chains = inlined(program, list(counts))
    by_component: Counter[str] = Counter()
    for address, count in counts.items():
        by_component[component(chains[address])] += count
    return by_component


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
        _, found, place = line.partition(SOURCE)
        if found:
            # Longer names first: a folder's part before the folder.
            names = sorted(COMPONENTS, key=len, reverse=True)
            return next((COMPONENTS[name] for name in names if place.startswith(name)), REST)
    return REST


if __name__ == "__main__":
    main()
