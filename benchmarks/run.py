"""Speed of the packet engine beside ns-2 and ns-3, and of the fluid engine, in one run on one machine.

Every program simulates the same workloads and prints how many data packets arrived in order. The unit of
cost is the CPU second (user + system) of the whole process less that of the same program with nothing to
simulate, so that interpreters' start-up is nobody's advantage. Repeats are interleaved: a slow minute of the
machine hits all programs alike. Ratios compare the least disturbed repeat of each.

    python benchmarks/run.py [--quick] [--repeats N] [--json FILE] [--check]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
NS3_LIBRARIES = ["applications", "internet", "point-to-point", "traffic-control", "network", "core"]


@dataclass(frozen=True, slots=True)
class Workload:
    """Flows through one bottleneck of 1 BDP; simulated seconds by program, where they differ."""

    name: str
    flows: int
    rate_bps: float
    rtt_s: float
    duration_s: float
    ns3_duration_s: float = 0.0
    sample_interval_s: float = 0.01

    def arguments(self, program: str, share: float) -> list[str]:
        """The program's command-line arguments; a `share` of 0 asks for the start-up only."""
        duration_s = (self.ns3_duration_s if program == "ns-3" else self.duration_s) * share
        arguments = [str(self.flows), f"{self.rate_bps:g}", f"{self.rtt_s:g}", f"{duration_s:g}"]
        return [*arguments, f"{self.sample_interval_s:g}"] if program == "ackclock" else arguments


PEER_WORKLOADS = [
    Workload("A: 20 flows, 1 Gb/s, 20 ms", 20, 1e9, 0.02, 10.0, ns3_duration_s=2.0),
    Workload("B: 100 flows, 10 Gb/s, 20 ms", 100, 10e9, 0.02, 3.0, ns3_duration_s=0.4),
]
LONG_AND_FAST = Workload("C: 10 flows, 10 Gb/s, 100 ms", 10, 10e9, 0.1, 10.0)
BY_RATE = [
    Workload("100 Mb/s", 10, 100e6, 0.02, 200.0),
    Workload("1 Gb/s", 10, 1e9, 0.02, 20.0),
    Workload("10 Gb/s", 10, 10e9, 0.02, 4.0),
]
# At 10 Gb/s and 100 ms even 10,000 flows have windows of 16 packets. Every 10 ms would be more samples than
# packets there, hence 100 ms.
BY_FLOWS = [
    Workload(f"{flows:,} flows", flows, 10e9, 0.1, 10.0, sample_interval_s=0.1) for flows in (10, 100, 1_000, 10_000)
]

REQUIRED_RATIO_TO_NS2 = {PEER_WORKLOADS[0].name: 7.0, PEER_WORKLOADS[1].name: 18.0}
REQUIRED_SPREAD_BY_RATE = 1.5
REQUIRED_SPREAD_BY_FLOWS = 3.0
REQUIRED_TIMES_REAL_TIME = 10.0
REQUIRED_PEAK_MIB = 512.0

#: Per simulated second, for the mean field of flows of 1 Gb/s and 50 ms (Belhareth 2014, inter-DC).
REQUIRED_MEAN_FIELD_S = 0.1

#: Fat trees: options of the example `fat_tree`.
FAT_TREES = {
    "8×3 fat tree, 128 hosts, 1 Gb/s, endless permutation": "--ports 8 --rate_bps 1e9 --duration_s 1",
    "16×3 fat tree, 1024 hosts, 10 Gb/s, 2 MB permutation": "--ports 16 --rate_bps 1e10 --bytes 2000000 --duration_s 1",
}
REQUIRED_HOPS_PER_S = 15e6
REQUIRED_TREE_PEAK_MIB = 2048.0
REQUIRED_BUILT_S = 5.0

#: The fluid engine's set-up (Kumar, Azad and Park 2010) packet by packet; it is simulated for a fifth of the time.
LONG_AND_FAR = Workload("10 flows, 10 Gb/s, 170 ms", 10, 10e9, 0.17, 20.0)
FLUID_RATES_BPS = (1e9, 10e9, 100e9)
FLUID_GRID = ("1000", "2")
REQUIRED_FLUID_RUN_MS = 30.0
REQUIRED_FLUID_GRID_S = 25.0
REQUIRED_FLUID_TIMES_PACKET = 100.0


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a program: CPU seconds, peak resident MiB, and what it printed."""

    cpu_s: float
    peak_mib: float
    data_packets: int
    simulated_s: float
    utilisation: float


@dataclass(slots=True)
class Cost:
    """A program's runs of one workload, and the CPU seconds that it needs for nothing."""

    program: str
    workload: Workload
    startup_s: float
    runs: list[Run] = field(default_factory=list)

    def cpu_s(self) -> list[float]:
        """CPU seconds of each run, start-up apart."""
        return [max(run.cpu_s - self.startup_s, 1e-9) for run in self.runs]

    @property
    def best_rate(self) -> float:
        """Data packets per CPU second in the least disturbed run."""
        return self.runs[0].data_packets / min(self.cpu_s())

    @property
    def median_rate(self) -> float:
        """Data packets per CPU second in the median run."""
        return self.runs[0].data_packets / statistics.median(self.cpu_s())

    @property
    def packet_ns(self) -> float:
        """CPU nanoseconds per data packet in the least disturbed run."""
        return 1e9 / self.best_rate


def main() -> int:
    """Measure, print, and say with the exit status whether the requirements hold (with `--check`)."""
    options = arguments()
    programs = build()
    bench = Bench(programs, options.repeats)
    print(f"{platform.machine()}, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f} before the start\n")
    held = [
        compare_with_peers(bench),
        long_and_fast(bench),
        by_rate(bench),
        by_flows(bench),
        fat_trees(options.repeats),
    ]
    held += [fluid(bench), mean_field(options.repeats), first_contact(options.repeats)]
    if options.json:
        Path(options.json).write_text(json.dumps([asdict(cost) for cost in bench.costs], indent=1) + "\n")
    return int(options.check and not all(held))


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="one repeat of each")
    parser.add_argument("--repeats", type=int, help="runs of each program (default 5; ns-3 at most 2)")
    parser.add_argument("--json", metavar="FILE", help="write every run to FILE")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a requirement does not hold")
    options = parser.parse_args()
    options.repeats = options.repeats or (1 if options.quick else 5)
    return options


# --- the programs -----------------------------------------------------------------------------------


def build() -> dict[str, list[str]]:
    """Builds what must be built; the command of each program that this machine has."""
    programs = {"ackclock": [str(build_ackclock())]}
    if ns2 := shutil.which("ns"):
        programs["ns-2"] = [ns2, str(ROOT / "benchmarks/ns2/bulk.tcl")]
    if Path("/usr/include/ns3/core-module.h").exists() and shutil.which("g++"):
        programs["ns-3"] = [str(build_ns3())]
    for missing in {"ns-2", "ns-3"} - programs.keys():
        print(f"{missing} is not installed and left out", file=sys.stderr)
    return programs


def build_ackclock(example: str = "bulk", package: str = "ackclock-sim") -> Path:
    """Builds one of the example programs of an engine."""
    command = ["cargo", "build", "--release", "--locked", "--package", package, "--example", example]
    subprocess.run([*command, "--quiet"], cwd=ROOT, check=True)
    return target() / "release/examples" / example


def build_ns3() -> Path:
    """Compiles the ns-3 program against the system's libraries, if it is older than its source."""
    source = ROOT / "benchmarks/ns3/bulk.cc"
    program = target() / "benchmarks/ns3-bulk"
    if not program.exists() or program.stat().st_mtime < source.stat().st_mtime:
        program.parent.mkdir(parents=True, exist_ok=True)
        libraries = [f"-lns3-{name}" for name in NS3_LIBRARIES]
        subprocess.run(["g++", "-O3", "-std=c++17", str(source), "-o", str(program), *libraries], check=True)
    return program


def target() -> Path:
    """Cargo's folder of built things."""
    return Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))


# --- measuring ---------------------------------------------------------------------------------------


@dataclass(slots=True)
class Bench:
    """The programs, how often to run them, and what they cost so far."""

    programs: dict[str, list[str]]
    repeats: int
    costs: list[Cost] = field(default_factory=list)

    def measure(self, workloads: list[Workload], programs: list[str]) -> list[Cost]:
        """Costs of the programs on the workloads; repeats of all of them are interleaved."""
        costs = [self.start(workload, program) for workload in workloads for program in programs]
        for repeat in range(self.repeats):
            for cost in costs:
                if cost.program != "ns-3" or repeat < 2:
                    cost.runs.append(self.run(cost.workload, cost.program))
        self.costs += costs
        return costs

    def start(self, workload: Workload, program: str) -> Cost:
        """A cost without runs yet: the least CPU time of three empty runs is the start-up."""
        empty = [self.run(workload, program, 0.0).cpu_s for _ in range(3)]
        return Cost(program, workload, min(empty))

    def run(self, workload: Workload, program: str, share: float = 1.0) -> Run:
        """One run of a program.

        The peak includes this process's own size when the program was started (about 15 MiB), because
        the kernel counts from the fork.
        """
        command = [*self.programs[program], *workload.arguments(program, share)]
        with tempfile.TemporaryFile("w+") as output:
            process = subprocess.Popen(command, stdout=output)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode != 0:
                raise SystemExit(f"{' '.join(command)}: exit status {process.returncode}")
            output.seek(0)
            printed = json.loads(output.read())
        return Run(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, **printed)


# --- the tables --------------------------------------------------------------------------------------


def compare_with_peers(bench: Bench) -> bool:
    """A and B beside ns-2 and ns-3."""
    costs = bench.measure(PEER_WORKLOADS, list(bench.programs))
    title = "Million data packets per CPU second"
    print(f"{title:<36}{'best':>8}{'median':>8}{'peak MiB':>10}{'util.':>7}{'simulated':>11}")
    for workload in PEER_WORKLOADS:
        print(workload.name)
        for cost in (cost for cost in costs if cost.workload == workload):
            print_peer(cost)
    held = [ratio(costs, workload, peer) for workload in PEER_WORKLOADS for peer in ("ns-2", "ns-3")]
    return all(held)


def print_peer(cost: Cost) -> None:
    """One program's line."""
    run = cost.runs[0]
    rates = f"{cost.best_rate / 1e6:8.3f}{cost.median_rate / 1e6:8.3f}"
    print(f"  {cost.program:<34}{rates}{run.peak_mib:10.0f}{run.utilisation:7.3f}{run.simulated_s:9g} s")


def ratio(costs: list[Cost], workload: Workload, peer: str) -> bool:
    """Prints how many times as fast as the peer the packet engine is; whether that is enough."""
    found = {cost.program: cost for cost in costs if cost.workload == workload}
    if peer not in found:
        return True
    times = found["ackclock"].best_rate / found[peer].best_rate
    required = REQUIRED_RATIO_TO_NS2[workload.name] if peer == "ns-2" else None
    return verdict(f"{workload.name[0]}: ackclock / {peer}", f"{times:.1f} ×", required, times, ">=")


def long_and_fast(bench: Bench) -> bool:
    """C: faster than ten times real time, in little memory."""
    (cost,) = bench.measure([LONG_AND_FAST], ["ackclock"])
    speed = cost.runs[0].simulated_s / min(cost.cpu_s())
    peak = max(run.peak_mib for run in cost.runs)
    print(f"\n{LONG_AND_FAST.name}: {cost.best_rate / 1e6:.1f} M/s")
    fast = verdict("C: times real time", f"{speed:.1f} ×", REQUIRED_TIMES_REAL_TIME, speed, ">=")
    return verdict("C: peak memory", f"{peak:.0f} MiB", REQUIRED_PEAK_MIB, peak, "<=") and fast


def by_rate(bench: Bench) -> bool:
    """Cost per packet against the bottleneck's rate."""
    return spread(bench, "10 flows, 20 ms, by rate", BY_RATE, REQUIRED_SPREAD_BY_RATE)


def by_flows(bench: Bench) -> bool:
    """Cost per packet against the number of flows."""
    return spread(bench, "10 Gb/s, 100 ms, by flows", BY_FLOWS, REQUIRED_SPREAD_BY_FLOWS)


def spread(bench: Bench, title: str, workloads: list[Workload], required: float) -> bool:
    """Prints the cost per packet of each workload, and the largest over the smallest."""
    print(f"\n{title}")
    costs = bench.measure(workloads, ["ackclock"])
    for cost in costs:
        print(
            f"  {cost.workload.name:<34}{cost.packet_ns:8.1f} ns a packet  {cost.runs[0].utilisation:.3f} utilisation"
        )
    nanoseconds = [cost.packet_ns for cost in costs]
    most = max(nanoseconds) / min(nanoseconds)
    return verdict("dearest / cheapest packet", f"{most:.2f} ×", required, most, "<=")


def fat_trees(repeats: int) -> bool:
    """Data centres: packets that links have sent on, by CPU second; memory, and the time to find all ways."""
    program = build_ackclock("fat_tree")
    held = [fat_tree(program, title, options.split(), repeats) for title, options in FAT_TREES.items()]
    return all(held)


def fat_tree(program: Path, title: str, options: list[str], repeats: int) -> bool:
    """One fat tree, with queues of 100 packets and links of 1 µs."""
    command = [str(program), *options, "--limit", "100", "--delay_s", "1e-6"]
    runs = [json.loads(subprocess.run(command, check=True, capture_output=True).stdout) for _ in range(repeats)]
    best = min(runs, key=lambda run: run["processor_s"])
    print(f"\n{title}: {best['packet_hops'] / 1e6:.1f} M packet-hops, {best['processor_s']:.1f} CPU s")
    rate, peak_mib = best["packet_hops_per_s"], best["peak_resident_bytes"] / 2**20
    return all(
        [
            verdict("packet-hops per CPU second", f"{rate / 1e6:.1f} M/s", REQUIRED_HOPS_PER_S, rate, ">="),
            verdict("peak memory", f"{peak_mib:.0f} MiB", REQUIRED_TREE_PEAK_MIB, peak_mib, "<="),
            verdict("network and routing tables", f"{best['built_s']:.2f} s", REQUIRED_BUILT_S, best["built_s"], "<="),
        ]
    )


def fluid(bench: Bench) -> bool:
    """The fluid engine: 100 s of 10 flows at 10 Gb/s, a grid of such runs, beside packets, and by rate."""
    program = str(build_ackclock("fluid_grid", "ackclock-models"))
    runs = {rate_bps: printed(program, "one", f"{rate_bps:g}") for rate_bps in FLUID_RATES_BPS}
    slowest_ms = {rate_bps: max(run["run_ms"].values()) for rate_bps, run in runs.items()}
    grids = [printed(program, "grid", *FLUID_GRID)["wall_s"] for _ in range(bench.repeats)]
    (packets,) = bench.measure([LONG_AND_FAR], ["ackclock"])
    packet_cpu_s = min(packets.cpu_s()) * runs[10e9]["simulated_s"] / packets.runs[0].simulated_s
    times, most = 1e3 * packet_cpu_s / slowest_ms[10e9], max(slowest_ms.values()) / min(slowest_ms.values())
    print("\nFluid: 10 flows, 10 Gb/s, 100 s; the slowest of four variants")
    return all(
        [
            verdict("one run", f"{slowest_ms[10e9]:.1f} ms", REQUIRED_FLUID_RUN_MS, slowest_ms[10e9], "<="),
            verdict("1000 runs, 2 threads", f"{min(grids):.1f} s", REQUIRED_FLUID_GRID_S, min(grids), "<="),
            verdict("CPU of packet / CPU of fluid", f"{times:.0f} ×", REQUIRED_FLUID_TIMES_PACKET, times, ">="),
            verdict("dearest / cheapest of 1, 10, 100 Gb/s", f"{most:.2f} ×", REQUIRED_SPREAD_BY_RATE, most, "<="),
        ]
    )


def printed(program: str, *arguments: str) -> dict[str, Any]:
    """Return the JSON that a program prints."""
    found: dict[str, Any] = json.loads(subprocess.run([program, *arguments], check=True, capture_output=True).stdout)
    return found


def mean_field(repeats: int) -> bool:
    """The mean field of the three networks of Belhareth 2014: wall-clock seconds for a simulated one."""
    print("\nMean field, seconds for a simulated second")
    program = build_ackclock("meanfield", "ackclock-models")
    best: dict[str, float] = {}
    for _ in range(repeats):
        lines = subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout
        for found in map(json.loads, lines.splitlines()):
            cost_s = found["seconds_per_simulated_second"]
            best[found["name"]] = min(cost_s, best.get(found["name"], cost_s))
    required = {"inter-DC": REQUIRED_MEAN_FIELD_S}
    held = [verdict(name, f"{cost_s:.3f} s", required.get(name), cost_s, "<=") for name, cost_s in best.items()]
    return all(held)


def first_contact(repeats: int) -> bool:
    """Measure the delays that a new user meets: the import, the help, the demo's scenario (wall-clock seconds)."""
    print("\nFirst contact, wall-clock seconds")
    program = str(Path(sys.executable).parent / "ackclock")
    with tempfile.TemporaryDirectory() as folder:
        demo = [program, "run", str(ROOT / "scenarios/dumbbell.toml"), "--out"]
        return all(
            [
                waited("import ackclock", lambda _: [sys.executable, "-c", "import ackclock"], repeats, 0.5),
                waited("ackclock --help", lambda _: [program, "--help"], repeats, 0.5),
                waited("the demo's scenario, report included", lambda n: [*demo, f"{folder}/{n}"], repeats, 5.0),
            ]
        )


def waited(what: str, command: Callable[[int], list[str]], repeats: int, required_s: float) -> bool:
    """Prints the shortest wall-clock time of a command; whether it is short enough."""
    times_s = []
    for repeat in range(repeats):
        started_s = time.perf_counter()
        subprocess.run(command(repeat), check=True, capture_output=True)
        times_s.append(time.perf_counter() - started_s)
    return verdict(what, f"{min(times_s):.2f} s", required_s, min(times_s), "<=")


def verdict(what: str, value: str, required: float | None, measured: float, sense: str) -> bool:
    """Prints a figure with its requirement; whether it holds."""
    if required is None:
        print(f"  {what:<36}{value:>10}")
        return True
    holds = measured >= required if sense == ">=" else measured <= required
    sign = "≥" if sense == ">=" else "≤"
    print(f"  {what:<36}{value:>10}   required {sign} {required:g}: {'holds' if holds else 'DOES NOT HOLD'}")
    return holds


if __name__ == "__main__":
    sys.exit(main())
