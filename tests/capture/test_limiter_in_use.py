"""The rate of a limiter whose bucket a starved flow hardly uses."""

from __future__ import annotations

import pytest

import ackclock
from ackclock import capture

SCENARIO = """
duration = "20s"
seeds = [1]

[network]
topology = "dumbbell"
rate = "100Mbit"
rtt = "40ms"
queue = { discipline = "tbf", rate = "8Mbit", burst = "BURST", limit = "1600B", per_flow = false }

[[flows]]
congestion = "CCA"

[record]
pcap = ["senders", "receivers"]
"""


@pytest.mark.parametrize("place", ["senders", "receivers"])
@pytest.mark.parametrize(
    ("burst", "cca", "limiter"),
    [("3KB", "cubic", "undecided"), ("30KB", "bbr", "policer")],
)
def test_a_rate_is_the_limiters_or_unknown(burst, cca, limiter, place, tmp_path):
    ackclock.run(ackclock.loads(SCENARIO.replace("BURST", burst).replace("CCA", cca)).plan(), captures=tmp_path)
    path = capture.summarise([tmp_path / f"seed-1-{place}.pcap"]).analysis["path"]
    assert path["limiter"] == limiter
    assert path["rate_bps"] is None or path["rate_bps"] == pytest.approx(8e6, rel=0.01)
