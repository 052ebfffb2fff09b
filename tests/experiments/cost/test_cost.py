"""Estimated cost of a run compared with the actual one: events and bytes, which do not depend on the machine."""

from __future__ import annotations

import pytest

from ackclock.experiments import runner
from ackclock.experiments.cost import cost
from ackclock.plan import Plan
from ackclock.scenario import planning

DUMBBELL = """
duration = "5s"
[network]
topology = "dumbbell"
rate = "10Mbit"
rtt = "20ms"
queue = { discipline = "pfifo", limit = "1bdp" }
"""

FAT_TREE = """
duration = "200ms"
[network]
topology = "fat-tree"
levels = 3
ports = 4
rate = "100Mbit"
delay = "10us"
queue = { discipline = "pfifo", limit = "100p" }
"""

POISSON = '[[traffic]]\nkind = "poisson"\nload = 0.5\nsize = "100KB"\n'

#: One of each kind of what a plan may have, as cheap as it can be.
CASES = {
    "flows": DUMBBELL + '[[flows]]\ncount = 4\ncongestion = "cubic"\n',
    "samples": DUMBBELL + '[[flows]]\ncount = 2\n[record]\ninterval = "1ms"\n',
    "captures": DUMBBELL + "[[flows]]\ncount = 2\n[record]\npcap = true\n",
    "a slow application": DUMBBELL + '[[flows]]\ncount = 3\napplication_rate = "1Mbit"\n',
    "finite": DUMBBELL + '[[flows]]\ncount = 3\nsize = "500KB"\n',
    "generated": DUMBBELL + POISSON,
    "UDP": DUMBBELL + '[[traffic]]\nkind = "udp"\nrate = "250/s"\npacket = "500B"\n',
    "a graph": FAT_TREE + '[[flows]]\nbetween = "permutation"\n',
}


def plan_of(text: str) -> Plan:
    return planning.loads(text).plan()


@pytest.mark.parametrize("case", CASES)
def test_events_and_bytes_are_right_within_a_factor_of_two(case, tmp_path):
    plan = plan_of(CASES[case])
    captures = tmp_path / "captures" if plan.record.pcap else None
    data = runner.run(plan, "packet", captures=captures, jobs=1)
    data.write(tmp_path / "result", captures)
    sent, crossed = data.frame("flows")["sent_packets"].sum(), data.frame("links")["arrived_total_p"].sum()
    events = sent + crossed + data.frame("flow_samples").height + data.frame("queue_samples").height
    written = sum(path.stat().st_size for path in (tmp_path / "result").rglob("*") if path.is_file())
    found = cost(plan, "packet")
    assert events / 2 <= found.events <= 2 * events
    assert written / 2 <= found.bytes <= 2 * written


@pytest.mark.parametrize("engine", ["fluid", "meanfield", "theory", "linux"])
def test_every_engine_has_a_rule_that_grows_with_the_time(engine):
    text = CASES["flows"]
    short, long = (cost(plan_of(text.replace('"5s"', time)), engine) for time in ('"5s"', '"500s"'))
    assert 0 < short.cpu_s <= long.cpu_s
    assert 0 < short.kept_bytes <= short.bytes
    assert short.memory_bytes > 0


def test_a_link_bounds_what_is_sent_and_many_flows_share_it():
    one, many = (cost(plan_of(CASES["flows"].replace("count = 4", f"count = {n}")), "packet") for n in (4, 8))
    assert many.events < 1.5 * one.events
    faster = cost(plan_of(CASES["flows"].replace("10Mbit", "100Mbit")), "packet")
    assert faster.events > 5 * one.events


def test_random_loss_and_windows_bound_a_flow():
    wide = DUMBBELL.replace("10Mbit", "1Gbit")
    free = cost(plan_of(wide + '[[flows]]\ncongestion = "reno"\n'), "packet").events
    lossy = cost(plan_of(wide + 'loss = { probability = 0.01 }\n[[flows]]\ncongestion = "reno"\n'), "packet").events
    narrow = cost(plan_of(wide + '[tcp]\nreceive_window = "64KB"\n[[flows]]\ncongestion = "reno"\n'), "packet").events
    assert lossy < free / 20
    assert narrow < free / 10
