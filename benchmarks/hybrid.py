#!/usr/bin/env python3
"""Agreement and speed of the hybrid engine against the packet engine over drawn dumbbells.

    python benchmarks/hybrid.py                          # 40 worlds, three seeds each: some ten minutes of a core
    python benchmarks/hybrid.py --worlds 100 --draw 2    # others

A world is drawn log-uniformly: 100 Mb/s to 2 Gb/s, 10 to 200 ms, a buffer of 0.05 to 2 BDP, 1 to 100 flows of Reno or
CUBIC. A run lasts for some tens of loss epochs, as far as the budget of packets allows. Both engines run the same
seeds; after their first loss they are different runs of the same process, so means over seeds are compared, and "in
noise" is an error within two standard errors of the tolerance. CPU seconds are those of the process.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from statistics import mean, variance
from typing import Any

import ackclock
from ackclock import metrics
from ackclock.engines import engine

ENGINES = ("packet", "hybrid")

#: The tolerances by metric: absolute, or relative to the packet engine's mean.
ABSOLUTE = {"utilisation": 0.01, "jain": 0.02, "synchronisation": 0.05}
RELATIVE = {"congestion_epochs": 0.05, "queue_delay_mean_s": 0.05, "loss_rate": 0.05}

#: Loss epochs that a run has if the budget allows, and the time before the measured part, in such epochs.
EPOCHS = 60
WARMUP_EPOCHS = 6

WIRE_BYTES = 1514

SCENARIO = """
duration = "{duration_s:.3f}s"
warmup = "{warmup_s:.3f}s"
[network]
topology = "dumbbell"
rate = "{rate_mbit:.6f}Mbit"
rtt = "{rtt_ms:.6f}ms"
queue = {{ discipline = "pfifo", limit = "{buffer_bdp:.6f}bdp" }}
[[flows]]
count = {flows}
congestion = "{congestion}"
start = {{ jitter = "{jitter_s:.3f}s" }}
"""


@dataclass(frozen=True)
class World:
    """A dumbbell: bit/s, s, BDPs, flows of one algorithm, and the budget of packets of a run."""

    rate_bps: float
    rtt_s: float
    buffer_bdp: float
    flows: int
    congestion: str
    packets: float

    @property
    def epoch_s(self) -> float:
        """A rough duration of a loss epoch, by the sawtooth of synchronised flows."""
        bdp_p = self.rate_bps * self.rtt_s / (8 * WIRE_BYTES)
        peak_p = bdp_p * (1 + self.buffer_bdp) / self.flows
        rtt_s = self.rtt_s * (1 + self.buffer_bdp / 2)
        reno_s = max(peak_p / 2, 1) * rtt_s
        return reno_s if self.congestion == "reno" else min(reno_s, math.cbrt(0.3 * peak_p / 0.4))

    @property
    def duration_s(self) -> float:
        """The duration of a run."""
        affordable_s = self.packets * 8 * WIRE_BYTES / self.rate_bps
        return max(min((EPOCHS + WARMUP_EPOCHS) * self.epoch_s, affordable_s), 20.0)

    def scenario(self) -> str:
        """The world as a scenario."""
        duration_s = self.duration_s
        warmup_s = min(WARMUP_EPOCHS * self.epoch_s, duration_s / 4)
        values = {"rate_mbit": self.rate_bps / 1e6, "rtt_ms": self.rtt_s * 1e3, "jitter_s": min(1.0, warmup_s)}
        return SCENARIO.format(duration_s=duration_s, warmup_s=warmup_s, **values, **asdict(self))


def main() -> None:
    """Draw worlds, run them, and print a line for each and the shares that agree."""
    options = _options()
    chance = random.Random(options.draw)
    found = []
    for _ in range(options.worlds):
        world = _drawn(chance, options)
        compared = _compared(world, range(1, options.seeds + 1))
        found.append(compared)
        print(json.dumps({**asdict(world), "duration_s": round(world.duration_s, 1), **compared}), flush=True)
    _report(found)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--worlds", type=int, default=40)
    parser.add_argument("--seeds", type=int, default=3, help="seeds of each world, at least 2")
    parser.add_argument("--draw", type=int, default=1, help="seed of the draw of worlds")
    parser.add_argument("--rate", type=float, nargs=2, default=(1e8, 2e9), help="lowest and highest rate, bit/s")
    parser.add_argument("--packets", type=float, default=2e7, help="packets of a run at most, unless it is 20 s")
    return parser.parse_args()


def _drawn(chance: random.Random, options: argparse.Namespace) -> World:
    def between(low: float, high: float) -> float:
        return math.exp(chance.uniform(math.log(low), math.log(high)))

    return World(
        rate_bps=between(*options.rate),
        rtt_s=between(0.01, 0.2),
        buffer_bdp=between(0.05, 2),
        flows=round(between(1, 100)),
        congestion=chance.choice(("reno", "cubic")),
        packets=options.packets,
    )


def _compared(world: World, seeds: Sequence[int]) -> dict[str, Any]:
    """Return the CPU seconds of both engines and, by metric, both means, the error and whether that agrees."""
    plan = ackclock.loads(world.scenario()).plan()
    cpu_s = dict.fromkeys(ENGINES, 0.0)
    tables: dict[str, list[dict[str, Any]]] = {name: [] for name in ENGINES}
    for seed in seeds:
        for name in ENGINES:
            began_s = time.process_time()
            run = engine(name).run(plan, seed)
            cpu_s[name] += time.process_time() - began_s
            tables[name].append(metrics.table(run)["runs"][0]["metrics"])
    compared = {name: _difference(name, *tables.values()) for name in (*ABSOLUTE, *RELATIVE)}
    return {"cpu_s": {name: round(spent, 2) for name, spent in cpu_s.items()}, **compared}


def _difference(name: str, *tables: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """Compare a metric's means; None if a run lacks it."""
    samples = [[table[name] for table in rows] for rows in tables]
    if any(value is None for values in samples for value in values):
        return None
    packet, hybrid = (mean(values) for values in samples)
    scale = 1.0 if name in ABSOLUTE else packet
    if scale == 0:
        return {"packet": packet, "hybrid": hybrid, "error": None, "agrees": hybrid == packet}
    error = (hybrid - packet) / scale
    spread = (
        math.sqrt(sum(variance(values) / len(values) for values in samples)) / scale if len(samples[0]) > 1 else 0.0
    )
    tolerance = ABSOLUTE.get(name) or RELATIVE[name]
    agrees = "yes" if abs(error) <= tolerance else "in noise" if abs(error) <= tolerance + 2 * spread else "no"
    return {
        "packet": round(packet, 6),
        "hybrid": round(hybrid, 6),
        "error": round(error, 4),
        "se": round(spread, 4),
        "agrees": agrees,
    }


def _report(found: Sequence[dict[str, Any]]) -> None:
    for name in (*ABSOLUTE, *RELATIVE):
        print(f"{name:20} " + " · ".join(_shares(name, found)))
    packet, hybrid = (sum(world["cpu_s"][name] for world in found) for name in ENGINES)
    print(f"CPU seconds {packet:.1f} packet, {hybrid:.1f} hybrid: {packet / max(hybrid, 0.01):.1f} times")


def _shares(name: str, found: Sequence[dict[str, Any]]) -> Iterator[str]:
    compared = [world[name] for world in found if world[name] and world[name]["error"] is not None]
    errors = [each["error"] for each in compared]
    for answer in ("yes", "in noise", "no"):
        yield f"{answer} {sum(each['agrees'] == answer for each in compared)}"
    if errors:
        yield f"mean error {mean(errors):+.4f}, median of |error| {sorted(map(abs, errors))[len(errors) // 2]:.4f}"


if __name__ == "__main__":
    main()
