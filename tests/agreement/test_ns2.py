"""The packet engine with the TCP and the RED of ns-2, compared with recorded runs of ns-2 2.35.

`python tests/agreement/test_ns2.py` records `data/ns2.csv` anew, with the engine `ns2`.
"""

from __future__ import annotations

import csv
import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import ackclock as ac

RECORDED = Path(__file__).parent / "data" / "ns2.csv"

SCENARIO = """
name = "{flows} flows of ns-2"
duration = "120s"
warmup = "20s"
seeds = [1, 2, 3]
network = {{ topology = "dumbbell", rate = "10Mbit", rtt = "{rtt}", queue = {{ {queue} }} }}
tcp = {{ stack = "ns2" }}
record = {{ interval = "1s" }}
flows = [{{ count = {flows}, congestion = "reno", start = {{ jitter = "1s" }} }}]
"""

RED = (
    'discipline = "red", limit = "1000p", min = "5p", max = "15p", weight = 0.002, probability = 0.1, '
    'avpkt = "1040B", spare_empty = true'
)
ARED = 'discipline = "ared", limit = "1000p", target = "20ms", avpkt = "1040B", spare_empty = true, wait = true'

#: Flows, base RTT and queue.
CASES = {
    "1 BDP": (2, "100ms", 'discipline = "pfifo", limit = "1bdp"'),
    "20 packets": (64, "500ms", 'discipline = "pfifo", limit = "20p"'),
    "RED": (16, "200ms", RED),
    "RED that waits": (16, "200ms", f"{RED}, wait = true"),
    "gentle RED that waits": (16, "50ms", f"{RED}, wait = true, gentle = true"),
    "RED of packets": (16, "200ms", f"{RED}, wait = true, bytes = false"),
    "ARED": (16, "200ms", ARED),
}

MEASURES = ("goodput_bps", "retransmission_rate", "timeouts")

#: Tolerance of the mean goodput: seeds of one engine differ by up to 1 %.
GOODPUT = 0.03

#: Tolerance of the share of retransmissions: chance decides which of the losses end in a timeout.
RETRANSMITTED, FEW = 0.25, 0.001


def measured(case: str, engine: str) -> list[Mapping[str, Any]]:
    """The metrics of each seed."""
    flows, rtt, queue = CASES[case]
    scenario = ac.loads(SCENARIO.format(flows=flows, rtt=rtt, queue=queue))
    return [run["metrics"] for run in ac.run(scenario, engine=engine).metrics()["runs"]]


def recorded(case: str) -> list[Mapping[str, str]]:
    """The runs of ns-2."""
    with RECORDED.open(encoding="utf-8", newline="") as file:
        return [row for row in csv.DictReader(file) if row["case"] == case]


@pytest.mark.parametrize("case", CASES)
def test_goodput_and_retransmissions_are_those_of_ns2(case: str) -> None:
    theirs, ours = recorded(case), measured(case, "packet")

    def means(name: str) -> tuple[float, float]:
        return statistics.fmean(run[name] for run in ours), statistics.fmean(float(run[name]) for run in theirs)

    own, other = means("goodput_bps")
    assert own == pytest.approx(other, rel=GOODPUT)
    own, other = means("retransmission_rate")
    assert own == pytest.approx(other, rel=RETRANSMITTED, abs=FEW)


def record() -> None:
    """Run ns-2 and write the results."""
    with RECORDED.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["case", "seed", *MEASURES])
        for case in CASES:
            for seed, run in enumerate(measured(case, "ns2"), 1):
                writer.writerow([case, seed, *(f"{run[name]:.6g}" for name in MEASURES)])


if __name__ == "__main__":
    record()
