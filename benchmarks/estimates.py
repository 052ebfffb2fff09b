"""Estimates of `ackclock … --dry-run` compared with measurements: events, CPU seconds and bytes on disk.

    python benchmarks/estimates.py [--fit] [--random N] [--longest SECONDS] [NAME…]

The plans are those of `scenarios/` (a sweep's first point) and so many at random, the same ones in each call. Those
that are estimated to take longer than `--longest` are left out. Each is run once, written and measured, in a process
whose imports are done; times are those of a machine of speed 1 (`ackclock.experiments.cost.speed`, measured beside
each run). `--fit` prints the packet engine's unit costs that fit the measured times best.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.optimize import nnls

from ackclock import engines
from ackclock.errors import ScenarioError
from ackclock.experiments import runner
from ackclock.experiments.cost import Cost, cost, packet, speed
from ackclock.experiments.cost.loads import loads
from ackclock.plan import Plan
from ackclock.scenario import planning

ROOT = Path(__file__).resolve().parent.parent

#: Estimates should be within this factor of what is measured.
FACTOR = 2.0


@dataclass(frozen=True)
class Row:
    """A plan, an estimate, and what was measured."""

    name: str
    engine: str
    plan: Plan
    estimated: Cost
    measured: Cost


def main() -> None:
    """Prints the table, and the fit if it is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--random", type=int, default=40, metavar="N")
    parser.add_argument("--longest", type=float, default=4.0, metavar="SECONDS")
    given = parser.parse_args()
    rows: list[Row] = []
    _warm_up()
    print(f"{'plan':32} {'engine':9} {'events':>17} {'CPU s':>15} {'kB':>17}")
    for name, engine, plan in plans(given.random):
        found = cost(plan, engine)
        if found.cpu_s > given.longest or (given.names and name not in given.names):
            continue
        row = Row(name, engine, plan, found, measured(plan, engine).at(1 / speed.measured()))
        rows.append(row)
        print(line(row), flush=True)
    print(summary(rows))
    if given.fit:
        print(fitted([row for row in rows if row.engine == "packet"]))


def _warm_up() -> None:
    """Imports what a first run would be charged for."""
    plan = planning.load(ROOT / "scenarios" / "pendulum.toml").plan()
    for engine in ("packet", "theory"):
        measured(plan, engine)


def plans(count: int) -> Iterator[tuple[str, str, Plan]]:
    """All plans, with each engine that can run them."""
    named = [(path.stem, planning.load(path)) for path in sorted((ROOT / "scenarios").glob("*.toml"))]
    named += [(f"random-{number}", loaded) for number in range(count) if (loaded := _loaded(scenario(number)))]
    for name, loaded in named:
        plan = loaded.point(0).plan
        for engine in ("packet", "fluid", "meanfield", "theory"):
            if not engines.unsupported(engines.engine(engine), plan):
                yield name, engine, plan


def _loaded(text: str) -> planning.Loaded | None:
    """A scenario, if it is one: what is drawn may not fit together."""
    try:
        loaded = planning.loads(text)
        loaded.plan()
    except ScenarioError:
        return None
    return loaded


def measured(plan: Plan, engine: str) -> Cost:
    """Runs it once."""
    with tempfile.TemporaryDirectory() as folder:
        captures = Path(folder) / "captures"
        begun_s = time.process_time()
        data = runner.run(plan, engine, plan.seeds[:1], jobs=1, captures=captures if plan.record.pcap else None)
        data.metrics()
        data.write(Path(folder) / "result", captures if plan.record.pcap else None)
        cpu_s = time.process_time() - begun_s
        written = sum(path.stat().st_size for path in (Path(folder) / "result").rglob("*") if path.is_file())
    flows, links = data.frame("flows"), data.frame("links")
    samples = data.frame("flow_samples").height + data.frame("queue_samples").height
    crossed = int(links["arrived_total_p"].sum() or 0)
    return Cost(int(flows["sent_packets"].sum() or 0) + crossed + samples, cpu_s, written)


def line(row: Row) -> str:
    """Estimate / measured, marked where they are too far apart."""
    found, real = row.estimated, row.measured
    columns = [(found.events, real.events), (found.cpu_s, real.cpu_s), (found.bytes / 1e3, real.bytes / 1e3)]
    if row.engine != "packet":
        columns[0] = (found.events, 0.0)
    told = [f"{one:8.3g}/{other:<8.3g}{' ' if near(one, other) else '!'}" for one, other in columns]
    return f"{row.name:32} {row.engine:9} {' '.join(told)}"


def near(one: float, other: float) -> bool:
    """Return True if two numbers are within the factor; a number that is not measured always is."""
    return other == 0 or 1 / FACTOR <= one / other <= FACTOR


def summary(rows: list[Row]) -> str:
    """Return the number of estimates within the factor."""
    packets = [row for row in rows if row.engine == "packet"]
    events = sum(near(row.estimated.events, row.measured.events) for row in packets)
    cpu = sum(near(row.estimated.cpu_s, row.measured.cpu_s) for row in rows)
    written = sum(near(row.estimated.bytes, row.measured.bytes) for row in rows)
    return (
        f"within a factor of {FACTOR:g}: events {events} of {len(packets)}, "
        f"CPU seconds {cpu} of {len(rows)}, bytes {written} of {len(rows)}"
    )


def fitted(rows: list[Row]) -> str:
    """Unit costs in µs, none below zero, with the least sum of squared relative errors."""
    counts = [packet.counted(row.plan, loads(row.plan))[1] for row in rows]
    times_us = np.array([1e6 * row.measured.cpu_s for row in rows])
    matrix = np.array([[getattr(count, name) for name in packet.UNITS_US] for count in counts])
    found, _ = nnls(matrix / times_us[:, None], np.ones(len(rows)))
    return "\n".join(f"{name:10} {value:.3g}" for name, value in zip(packet.UNITS_US, found, strict=True))


def scenario(number: int) -> str:
    """A scenario at random: rates, flows, buffers, disciplines, traffic, networks, samples, captures."""
    draw = random.Random(number)
    rate = draw.choice([1, 3, 10, 30, 100, 300, 1000, 3000, 10_000])
    duration_s = min(60.0, max(1.0, 10 ** draw.uniform(0.0, 2.0)), 4000 / rate)
    interval = draw.choice(["1ms", "10ms", "100ms", "1s"])
    rtt_ms = draw.choice([1, 5, 20, 50, 100, 200])
    limit = draw.choice(["0.1bdp", "0.5bdp", "1bdp", "2bdp"])
    discipline = draw.choice(["pfifo", "pfifo", "codel", "fq_codel", "pie", "sfq", "bfifo"])
    parts = [
        f'duration = "{duration_s:.3g}s"',
        f"[network]\n{_network(draw, rate, rtt_ms, discipline, limit)}",
        f'[record]\ninterval = "{interval if duration_s > 1 else "10ms"}"\npcap = {str(draw.random() < 0.15).lower()}',
        _flows(draw, draw.choice([1, 2, 5, 10, 50, 200, 1000])) if draw.random() < 0.8 else "",
    ]
    if draw.random() < 0.4 or not parts[-1]:
        parts.append(_traffic(draw))
    return "\n".join(parts)


def _network(draw: random.Random, rate: int, rtt_ms: int, discipline: str, limit: str) -> str:
    limit = limit if discipline in ("pfifo", "bfifo", "red") else draw.choice(["100p", "1000p"])
    queue = f'queue = {{ discipline = "{discipline}", limit = "{limit}" }}'
    if draw.random() < 0.2:
        return (
            f'topology = "fat-tree"\nk = {draw.choice([4, 6])}\nrate = "{min(rate, 1000)}Mbit"\ndelay = "10us"\n{queue}'
        )
    return f'topology = "dumbbell"\nrate = "{rate}Mbit"\nrtt = "{rtt_ms}ms"\n{queue}'


def _flows(draw: random.Random, count: int) -> str:
    kind = draw.choice(["cubic", "reno", "bbr", "vegas", "htcp"])
    size = draw.choice(["", "", "", 'size = "1MB"', 'application_rate = "500kbit"'])
    return f'[[flows]]\ncount = {count}\ncongestion = "{kind}"\n{size}\nstart = {{ jitter = "100ms" }}'


def _traffic(draw: random.Random) -> str:
    size = draw.choice(
        ['"20KB"', '{ distribution = "pareto", shape = 1.3, min = "4KB", max = "10MB", truncation = "clip" }']
    )
    return draw.choice(
        [
            f'[[traffic]]\nkind = "poisson"\nload = {draw.choice([0.1, 0.5, 0.8])}\nsize = {size}',
            f'[[traffic]]\nkind = "sources"\ncount = 20\nthink = "500ms"\nsize = {size}',
            f'[[traffic]]\nkind = "web"\nusers = 10\nthink = "1s"\nobjects = 5\nsize = {size}',
            '[[traffic]]\nkind = "udp"\nrate = "500/s"\npacket = "1000B"',
        ]
    )


if __name__ == "__main__":
    main()
