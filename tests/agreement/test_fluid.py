"""The fluid engine beside the packet engine, which it is fed from: utilisation against the buffer.

In short form: 100 Mb/s, 10 flows with RTTs of 80 to 260 ms, 60 s, buffers of 0.05 and 0.2 bandwidth-delay products.
The packet engine's senders pace and have no send buffer, because a fluid knows neither bursts within a round trip nor
buffers at hosts; the gallery's K.box has the long
form at 1 and 10 Gb/s, with and without pacing.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

import ackclock as ac

VARIANTS = {
    "reno": '"reno"',
    "highspeed": '{ kind = "highspeed", whole_segments = false }',
    "cubic": '{ kind = "cubic", beta = 0.8, slow_start = "standard" }',
    "htcp": '{ kind = "htcp", bandwidth_switch = false, rtt_scaling = false }',
}
BUFFERS = ("0.05", "0.2")
#: Mean absolute error along a curve. A run has some ten epochs, and one more or less moves its utilisation by one or
#: two points.
POINTS = 0.03

SCENARIO = """
duration = "80s"
warmup = "20s"
[network]
topology = "dumbbell"
rate = "100Mbit"
rtt = {{ from = "80ms", to = "260ms" }}
frame_overhead = "0B"
queue = {{ discipline = "pfifo", limit = "{buffer}bdp" }}
[tcp]
pacing = true
tso_batching = false
[[flows]]
count = 10
congestion = {congestion}
start = {{ jitter = "1s" }}
[record]
interval = "100ms"
"""


@cache
def pair(variant: str, buffer: str, seed: int = 1) -> tuple[dict, dict]:
    """Metrics of the packet run, and of the fluid run with its synchronisation."""
    plan = ac.loads(SCENARIO.format(buffer=buffer, congestion=VARIANTS[variant])).plan()
    plan = replace(plan, seeds=(seed,))
    packets = ac.run(plan, engine="packet")
    fluid = ac.run(ac.replay(plan, packets), engine="fluid")
    return packets.metrics()["runs"][0]["metrics"], fluid.metrics()["runs"][0]["metrics"]


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_utilisation_follows(variant):
    pairs = [pair(variant, buffer) for buffer in BUFFERS]
    errors = [abs(fluid["utilisation"] - packets["utilisation"]) for packets, fluid in pairs]
    assert sum(errors) / len(errors) < POINTS


@pytest.mark.parametrize("variant", VARIANTS)
def test_epoch_rates_agree(variant):
    """The growth laws' speed: within a sixth in three runs, or three epochs where there are few."""
    for buffer in BUFFERS:
        runs = [pair(variant, buffer, seed) for seed in (1, 2, 3)]
        packets, fluid = (sum(run[part]["congestion_epochs"] for run in runs) / 3 for part in (0, 1))
        assert fluid == pytest.approx(packets, rel=1 / 6, abs=3)


@pytest.mark.parametrize("variant", VARIANTS)
def test_as_many_flows_are_hit(variant):
    """Check that the input rates come out, but for rounding to whole flows and for immune ones."""
    for buffer in BUFFERS:
        packets, fluid = pair(variant, buffer)
        assert fluid["synchronisation"] == pytest.approx(packets["synchronisation"], abs=0.05)
