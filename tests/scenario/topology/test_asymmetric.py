"""The asymmetric line: two bottlenecks, and who goes over which."""

from __future__ import annotations

import pytest

from ackclock.errors import ScenarioError
from ackclock.plan import Plan
from ackclock.scenario import planning

LINE = """
duration = "60s"
[network]
topology = "asymmetric"
down = { rate = "10Mbit", delay = "42ms", queue = { discipline = "bfifo", limit = "1bdp" } }
up = { rate = "2Mbit", delay = "58ms", queue = { discipline = "pfifo", limit = "1bdp" } }
"""


def plan(flows: str = "[[flows]]") -> Plan:
    return planning.loads(LINE + flows, "x.toml").plan()


def test_both_links_are_bottlenecks_and_each_has_its_own_bdp():
    down, up = plan().links
    assert (down.name, down.rate_bps, down.bottleneck) == ("down", 10e6, True)
    assert (up.name, up.rate_bps, up.bottleneck) == ("up", 2e6, True)
    # 10 Mb/s × 100 ms = 125,000 B; 2 Mb/s × 100 ms = 25,000 B = 16.5 packets of 1514 B
    assert down.queue.parameters == {"limit_bytes": 125_000}
    assert up.queue.parameters == {"limit_packets": 16}


def test_the_acks_of_one_direction_share_the_link_of_the_other():
    down, up = plan('[[flows]]\n[[flows]]\ndirection = "up"').flows
    assert [hop.link for hop in down.forward.hops] == [0]
    assert [hop.link for hop in down.reverse.hops] == [1]
    assert (down.forward.delay_s, down.reverse.delay_s) == (0.042, 0.058)
    assert (up.forward, up.reverse) == (down.reverse, down.forward)
    assert up.base_rtt_s == down.base_rtt_s == pytest.approx(0.1)


def test_the_remaining_delay_is_split_evenly():
    flow = plan('[[flows]]\nrtt = "140ms"').flows[0]
    assert flow.base_rtt_s == pytest.approx(0.14)
    assert (flow.forward.delay_s, flow.reverse.delay_s) == pytest.approx((0.062, 0.078))


def test_no_way_is_shorter_than_the_line():
    with pytest.raises(ScenarioError) as caught:
        plan('[[flows]]\nrtt = "99ms"')
    assert str(caught.value) == (
        "x.toml:8: flows[0].rtt: found 0.099 s; expected at least 0.1 s, the two delays of the line"
    )


def test_a_side_reports_its_missing_keys():
    with pytest.raises(ScenarioError) as caught:
        planning.loads(LINE.replace('delay = "58ms", ', "").replace('"10Mbit"', "10") + "[[flows]]", "x.toml")
    assert str(caught.value).split("\n") == [
        "x.toml:5: network.down.rate: found 10; expected a rate such as 100Mbit (a number needs its unit)",
        'x.toml:6: network.up.delay: found nothing; expected its propagation delay, such as "10ms"',
    ]


def test_a_delay_that_changes_is_the_links_and_no_longer_that_of_the_ways():
    change = '[[network.changes]]\nat = "10s"\nlink = "up"\ndelay = "100ms"\n'
    made = plan(f"{change}[[flows]]")
    assert [link.delay_s for link in made.links] == [0.0, 0.058]
    assert (made.flows[0].forward.delay_s, made.flows[0].reverse.delay_s) == (0.042, 0.0)
    assert made.flows[0].base_rtt_s == pytest.approx(0.1)
    assert (made.changes[0].link, made.changes[0].delay_s) == (1, 0.1)
