"""Hosts and switches in the kernel: packets take ways with the fewest links, all of them or the first."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from changed import changed

import ackclock as ac
from ackclock import engines
from ackclock.engines.linux import routed
from ackclock.engines.linux.script import script

sys.path.insert(0, str(Path(__file__).parent))
from wired import read

#: Al Fares 2008, k = 4: 16 hosts in 4 pods of 2 edge and 2 aggregation switches, 4 cores; 48 cables, 96 links.
FAT_TREE = """
duration = "1s"
[network]
topology = "fat-tree"
ports = 4
levels = 3
rate = "100Mbit"
delay = "10us"
queue = { discipline = "pfifo", limit = "100p" }
routing = "ecmp"
[[flows]]
between = "permutation"
congestion = "reno"
"""


def plan(*changes):
    return ac.loads(changed(FAT_TREE, *changes)).plan()


def ways(planned):
    """All ways between hosts by the routing tables: from node, to node → links, by the queues that are crossed."""
    net = routed.lay(planned)
    wired = read(script(net, planned))
    hosts = [number for number, node in enumerate(planned.nodes) if node.host]
    for source in hosts:
        for goal in hosts:
            if source != goal:
                found = wired.ways(f"h{source}", net.addresses[f"h{goal}"][0])
                yield source, goal, {tuple(int(node[1:]) for node in way if node[0] == "q") for way in found}


def expected(planned, source, goal):
    """All ways with the fewest links, by trying all."""
    found, reached = set(), {((), source)}
    while reached and not found:
        reached = {
            ((*links, number), link.ends.destination)
            for links, node in reached
            for number, link in enumerate(planned.links)
            if link.ends.source == node
        }
        found = {links for links, node in reached if node == goal}
        reached = {(links, node) for links, node in reached if not planned.nodes[node].host}
    return found


def test_all_shortest_ways_are_taken_and_no_others():
    """Between pods 4 ways of 6 links, within a pod 2 of 4, at one edge switch 1 of 2."""
    planned = plan()
    counts = {}
    for source, goal, found in ways(planned):
        if source == 0 or goal == 0 or source < goal < source + 4:
            assert found == expected(planned, source, goal)
        lengths = {len(way) for way in found}
        counts[len(found), *lengths] = counts.get((len(found), *lengths), 0) + 1
    assert counts == {(4, 6): 16 * 12, (2, 4): 16 * 2, (1, 2): 16}


def test_a_single_way_is_the_first():
    planned = plan(('routing = "ecmp"', 'routing = "single"'))
    for source, goal, found in ways(planned):
        (way,) = found
        if source == 0:
            assert way == min(expected(planned, source, goal))


def test_switches_of_different_tiers_hash_different_fields():
    net = routed.lay(plan())
    fields = [values["net.ipv4.fib_multipath_hash_fields"] for values in net.sysctls.values()]
    assert len(fields) == 20
    assert sorted(fields.count(one) for one in set(fields)) == [4, 8, 8]
    assert all(int(one) & 0x30 == 0x30 for one in fields)


def test_the_ends_of_flows_are_the_plans_hosts():
    planned = plan()
    net = routed.lay(planned)
    for flow, ends in zip(planned.flows, net.flows, strict=True):
        assert ends.nodes == (flow.ends.source, flow.ends.destination)
        assert ends.source.address == f"10.1.0.{flow.ends.source + 1}"


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (('routing = "ecmp"', 'routing = "ecmp-packet"'), "routing packet by packet"),
        (
            ('"reno"', '"reno"\n[[flows]]\nbetween = "all"\ncongestion = "reno"\ntcp = { initial_window = 2 }'),
            "different TCP settings in a routed network",
        ),
    ],
)
def test_unsupported_plans_are_rejected(change, what):
    (reason,) = engines.unsupported(engines.engine("linux"), plan(change))
    assert (reason.what, reason.available_in[0]) == (what, "packet")


def test_host_processing_delays_packets():
    """The ways are the same; the last cable to a host, and no other, has its time."""
    still, busy = (plan(("[[flows]]", f'[tcp]\nprocessing = "{time}"\n[[flows]]')) for time in ("0s", "10us"))
    assert list(ways(busy)) == list(ways(still))
    net = routed.lay(busy)
    assert all((cable.processing is not None) == (cable.target in net.hosts) for cable in net.cables)
    waits = [line for line in script(net, busy) if "parent 1: netem" in line]
    assert len(waits) == sum(cable.target in net.hosts for cable in net.cables)
    assert all("netem limit 1000000 delay 10us rate 1000gbit" in line for line in waits)
