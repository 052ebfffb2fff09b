"""Networks that a scenario draws link by link."""

from __future__ import annotations

import pytest
from scenario.topology.networks import QUEUE, names, plan, rejections

GRAPH = f"""topology = "graph"
[[network.nodes]]
name = "a"
count = 3
host = true
[[network.nodes]]
name = "b"
host = true
[[network.nodes]]
name = "switch"
[[network.links]]
from = "a-*"
to = "switch"
rate = "1Gbit"
delay = "10us"
{QUEUE}
[[network.links]]
from = "switch"
to = "b"
rate = "100Mbit"
delay = "20us"
weight = 2
loss = {{ every = 10 }}
one_way = true
{QUEUE}
[[network.links]]
from = "b"
to = "switch"
rate = "10Mbit"
delay = "30us"
one_way = true
bottleneck = true
{QUEUE}
"""


def test_any_graph():
    made = plan(GRAPH, '[[flows]]\nfrom = "a-*"\nto = "b"')
    assert [node.name for node in made.nodes] == ["a-0", "a-1", "a-2", "b", "switch"]
    assert [link.name for link in made.links] == [
        "a-0>switch",
        "switch>a-0",
        "a-1>switch",
        "switch>a-1",
        "a-2>switch",
        "switch>a-2",
        "switch>b",
        "b>switch",
    ]
    down, up = made.links[-2:]
    assert (down.rate_bps, down.weight, down.loss, down.bottleneck) == (
        100e6,
        2.0,
        {"kind": "every", "packets": 10},
        True,
    )
    assert (up.rate_bps, up.weight, up.loss, up.bottleneck) == (10e6, 1.0, None, True)
    assert [link.bottleneck for link in made.links[:2]] == [False, True]
    assert [names(made, flow.ends) for flow in made.flows] == [("a-0", "b"), ("a-1", "b"), ("a-2", "b")]
    assert made.flows[0].base_rtt_s == pytest.approx(70e-6)


GRAPH_MISTAKES = {
    "unknown node": ('from = "b"', 'from = "c"', '29: network.links[2].from: found "c"; expected a node such as "'),
    "pattern of nothing": (
        'from = "a-*"',
        'from = "c-*"',
        '14: network.links[0].from: found "c-*"; expected a node such',
    ),
    "itself": ('to = "b"', 'to = "switch"', '21: network.links[1].to: found "switch"; expected another node than from'),
    "the same name": (
        'name = "switch"',
        'name = "a-1"',
        '12: network.nodes[2].name: found "a-1"; expected another name: this one is taken',
    ),
    "no hosts": ("host = true", "host = false", "4: network.nodes: found no host; expected host = true for those"),
    "no way back": (
        'from = "b"\nto = "switch"',
        'from = "a-0"\nto = "switch"',
        '37: flows[0]: found no way from "a-0" to "b" and back; expected links that join them',
    ),
}


@pytest.mark.parametrize(("old", "new", "expected"), GRAPH_MISTAKES.values(), ids=GRAPH_MISTAKES.keys())
def test_an_impossible_graph_is_rejected(old, new, expected):
    assert old in GRAPH
    (found,) = rejections(GRAPH.replace(old, new), '[[flows]]\nfrom = "a-0"\nto = "b"')
    assert found.startswith(f"x.toml:{expected}")


def way(source: str, destination: str, delay: str) -> str:
    return f'[[network.links]]\nfrom = "{source}"\nto = "{destination}"\nrate = "1Gbit"\ndelay = "{delay}"\n{QUEUE}\n'


def nodes(**hosts: bool) -> str:
    tables = (f'[[network.nodes]]\nname = "{name}"\nhost = {str(host).lower()}\n' for name, host in hosts.items())
    return 'topology = "graph"\n' + "".join(tables)


def test_no_way_leads_through_a_host():
    network = nodes(a=True, middle=True, b=True, aside=False, beside=False)
    network += (
        way("a", "middle", "1us") + way("middle", "b", "1us") + way("a", "aside", "1us") + way("b", "beside", "1us")
    )
    (found,) = rejections(network, '[[flows]]\nfrom = "a"\nto = "b"')
    assert 'found no way from "a" to "b" and back' in found
    network = network.replace('"middle"\nhost = true', '"middle"\nhost = false')
    assert plan(network, '[[flows]]\nfrom = "a"\nto = "b"').flows[0].base_rtt_s == pytest.approx(4e-6)


def test_the_base_rtt_is_the_minimum_of_the_paths_with_the_fewest_links():
    network = nodes(a=True, b=True, one=False, two=False, three=False)
    for switch, delay in (("one", "3us"), ("two", "5us")):
        network += way("a", switch, delay) + way(switch, "b", delay)
    network += way("two", "three", "0s") + way("three", "b", "0s")
    made = plan(network, '[[flows]]\nfrom = "a"\nto = "b"')
    assert made.flows[0].base_rtt_s == pytest.approx(12e-6)
