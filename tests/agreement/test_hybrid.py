"""The hybrid engine against packets: the same loss process, though most round trips are computed without packets.

The tolerances were set before the engine was written, for means over seeds: utilisation within 1 %, Jain's index within
0.02, synchronisation within 0.05, loss epochs and queueing delay within 5 %. `benchmarks/hybrid.py` draws more worlds.
"""

from __future__ import annotations

from statistics import mean

import pytest
from small_networks import dumbbell

import ackclock as ac
from ackclock import metrics
from ackclock.engines import engine


def scenario_text(duration_s, warmup_s, rate, rtt, queue, limit, count, congestion):
    return f"""
duration = "{duration_s}s"
warmup = "{warmup_s}s"
{dumbbell(rate, rtt, f"{limit}bdp", queue)}
[[flows]]
count = {count}
congestion = "{congestion}"
start = {{ jitter = "1s" }}
"""


SEEDS = range(1, 7)
ABSOLUTE = {"utilisation": 0.01, "jain": 0.02, "synchronisation": 0.05}
RELATIVE = {"congestion_epochs": 0.05, "queue_delay_mean_s": 0.05}

#: Rate, RTT, qdisc, limit in BDPs, flows, their algorithm, and the duration in s.
WORLDS = {
    "four CUBIC flows": ("100Mbit", "60ms", "pfifo", 1.0, 4, "cubic", 400),
    "eight Reno flows": ("100Mbit", "40ms", "pfifo", 0.5, 8, "reno", 300),
    "a CUBIC flow, a queue in bytes": ("200Mbit", "30ms", "bfifo", 0.8, 1, "cubic", 400),
    "twelve CUBIC flows, a small buffer": ("300Mbit", "50ms", "pfifo", 0.2, 12, "cubic", 300),
}


def scenario(world: str) -> str:
    rate, rtt, queue, limit, count, congestion, duration_s = WORLDS[world]
    return scenario_text(
        rate=rate,
        rtt=rtt,
        queue=queue,
        limit=limit,
        count=count,
        congestion=congestion,
        duration_s=duration_s,
        warmup_s=duration_s / 8,
    )


def averages(name: str, world: str) -> dict[str, float]:
    plan = ac.loads(scenario(world)).plan()
    runs = [metrics.table(engine(name).run(plan, seed))["runs"][0]["metrics"] for seed in SEEDS]
    return {metric: mean(run[metric] for run in runs) for metric in (*ABSOLUTE, *RELATIVE)}


@pytest.mark.parametrize("world", WORLDS)
def test_averages_agree_with_packets(world):
    packet, hybrid = averages("packet", world), averages("hybrid", world)
    wrong = {
        metric: (packet[metric], hybrid[metric])
        for metric, tolerance in (ABSOLUTE | RELATIVE).items()
        if abs(hybrid[metric] - packet[metric]) > tolerance * (1.0 if metric in ABSOLUTE else packet[metric])
    }
    assert not wrong
