"""Packets sent per flow and round trip, where the receive window decides."""

from __future__ import annotations

import pytest
from small_networks import dumbbell

import ackclock as ac
from ackclock import metrics


@pytest.mark.parametrize("window", [10, 40])
def test_a_flow_sends_its_receive_window_in_each_round_trip(window):
    scenario = f"""
duration = "20s"
warmup = "5s"
network = {{ topology = "dumbbell", rate = "1Gbit", rtt = "100ms", queue = {{ discipline = "pfifo", limit = "1bdp" }} }}
tcp = {{ receive_window = "{window * 1448}B" }}
flows = [{{ count = 2, congestion = "reno" }}]
"""
    (run,) = metrics.runs(ac.run(ac.loads(scenario)))
    assert metrics.value(run, "sends_per_rtt") == pytest.approx(window, rel=0.02)


def test_it_is_null_in_a_part_of_a_run():
    """Packets are counted over the measured part only."""
    scenario = """
duration = "2s"
network = { topology = "dumbbell", rate = "5Mbit", rtt = "20ms", queue = { discipline = "pfifo", limit = "1bdp" } }
flows = [{ congestion = "reno" }]
"""
    data = ac.run(ac.loads(scenario))
    assert metrics.table(data, between=(0.5, 1.5))["summary"]["sends_per_rtt"]["mean"] is None


@pytest.mark.parametrize("probability", [0.1, 0.3])
def test_the_load_of_a_breaker_is_the_rate_over_ten_times_that_of_tcp(probability):
    """TCP's rate is 1 / sqrt(2 p / 3) packets in a round trip (RFC 8083 section 4.3): 3.87 and 2.24."""
    scenario = f"""
duration = "60s"
warmup = "5s"
{dumbbell("100Mbit", "10ms")}
loss = {{ probability = {probability} }}
[[flows]]
congestion = {{ kind = "aimd", increase = 50, beta = 0.99 }}
"""
    (run,) = metrics.runs(ac.run(ac.loads(scenario)))
    sends = metrics.value(run, "sends_per_rtt")
    assert isinstance(sends, float) and sends > 1
    # Of more than 5,500 packets the share that is lost has a standard error of 4 %, and its root half of it.
    assert metrics.value(run, "breaker_load") == pytest.approx(sends * (2 / 3 * probability) ** 0.5 / 10, rel=0.06)
