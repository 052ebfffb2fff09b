"""Base RTTs that are not quite alike."""

from __future__ import annotations

import pytest

import ackclock as ac
from ackclock.errors import ScenarioError

TEXT = """
duration = "2s"
seeds = [{seed}, 5]
[network]
topology = "{topology}"
rtt = "20ms"
queue = {{ discipline = "pfifo", limit = "1bdp" }}
rate = "10Mbit"
[[flows]]
count = 50
congestion = "reno"
{spread}
[[flows]]
congestion = "reno"
"""


def plan(spread='rtt_spread = "2ms"', seed=1, topology="dumbbell"):
    return ac.loads(TEXT.format(spread=spread, seed=seed, topology=topology)).plan()


def rtts_s(planned):
    return [flow.base_rtt_s for flow in planned.flows]


def test_each_source_has_an_rtt_of_its_own_within_the_spread():
    planned = plan()
    *spread_s, alone_s = rtts_s(planned)
    assert all(0.018 <= rtt_s <= 0.022 for rtt_s in spread_s)
    assert len(set(spread_s)) == 50
    assert max(spread_s) - min(spread_s) > 0.003
    assert alone_s == 0.02
    for flow in planned.flows:
        assert flow.forward.delay_s + flow.reverse.delay_s == pytest.approx(flow.base_rtt_s, abs=2e-12)


def test_it_is_drawn_with_the_first_seed():
    assert rtts_s(plan()) == rtts_s(plan())
    assert rtts_s(plan()) != rtts_s(plan(seed=2))


def test_the_queue_stays_what_it_is():
    assert plan().links == plan("").links
    assert plan().mean_base_rtt_s == 0.02


def test_none_is_none():
    assert plan('rtt_spread = "0ms"') == plan("")


def test_a_spread_above_the_rtt_is_rejected():
    with pytest.raises(ScenarioError, match=r"flows\[0\].rtt_spread: found 0.021 s; expected at most 0.02 s"):
        plan('rtt_spread = "21ms"')


def test_other_topologies_have_none():
    text = """
duration = "2s"
[network]
topology = "parking-lot"
hops = 2
access_rate = "1Gbit"
rate = "10Mbit"
delay = "5ms"
queue = { discipline = "pfifo", limit = "50p" }
[[flows]]
path = "long"
rtt_spread = "1ms"
"""
    with pytest.raises(ScenarioError, match="no rtt_spread: the delays of the links make the RTT"):
        ac.loads(text)
