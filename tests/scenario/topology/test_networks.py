"""Routed topologies: how many hosts, switches and links, how they are wired, and which hosts flows name."""

from __future__ import annotations

from collections import Counter

import pytest
from scenario.topology.networks import QUEUE, names, plan, rejections

from ackclock.plan import HostsPlan, Plan
from ackclock.scenario.topology import TOPOLOGIES

PORTS = f'rate = "1Gbit"\ndelay = "1us"\n{QUEUE}'
FAT_TREE = f'topology = "fat-tree"\nports = 4\nlevels = 3\n{PORTS}'
LEAF_SPINE = f'topology = "leaf-spine"\nleaves = 3\nspines = 2\nhosts = 4\nspine_rate = "10Gbit"\n{PORTS}'
ACCESS = 'access_rate = "1Gbit"\naccess_delay = "1ms"'
PARKING_LOT = f'topology = "parking-lot"\nhops = 3\n{ACCESS}\nrate = "100Mbit"\ndelay = "10ms"\n{QUEUE}'
Y = f"""topology = "y"
trunk = {{ rate = "50Mbit", delay = "10ms", queue = {{ discipline = "pfifo", limit = "1bdp" }} }}
[[network.branches]]
rate = "20Mbit"
delay = "5ms"
{QUEUE}
[[network.branches]]
rate = "40Mbit"
delay = "15ms"
{QUEUE}
"""


def joined(made: Plan) -> Counter[str]:
    """Return the number of links that leave each node."""
    return Counter(names(made, link.ends)[0] for link in made.links)


# --- fat trees ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ports", "levels", "hosts", "switches"),
    [
        (4, 3, 16, 20),
        (8, 3, 128, 80),
        (16, 3, 1024, 320),
        (24, 3, 3456, 720),
        (4, 1, 4, 1),
        (6, 2, 18, 9),
        (4, 4, 32, 56),
    ],
)
def test_hosts_switches_and_links_of_an_m_port_n_tree(ports, levels, hosts, switches):
    """2 (m/2)^n hosts, (2n − 1) (m/2)^(n−1) switches; every port of every switch is used, each host has one link."""
    assert hosts == 2 * (ports // 2) ** levels
    assert switches == (2 * levels - 1) * (ports // 2) ** (levels - 1)
    tree = TOPOLOGIES["fat-tree"].model_validate(
        {
            "topology": "fat-tree",
            "ports": ports,
            "levels": levels,
            "rate": "1Gbit",
            "delay": "1us",
            "queue": {"discipline": "pfifo", "limit": "1p"},
        }
    )
    wiring = tree.wire()
    assert len(wiring.hosts) == hosts
    assert len(wiring.nodes) - hosts == switches
    assert len(wiring.links) == hosts + switches * ports
    leaving = Counter(link.ends.source for link in wiring.links)
    arriving = Counter(link.ends.destination for link in wiring.links)
    assert leaving == arriving
    assert {leaving[number] for number, node in enumerate(wiring.nodes) if node.host} == {1}
    assert {leaving[number] for number, node in enumerate(wiring.nodes) if not node.host} == {ports}


def test_the_4_port_3_tree_is_wired_as_in_its_figure():
    """Lin et al. figure 2: SW<w, l> and SW<w', l + 1> are joined if the words agree in all digits but the l-th."""
    made = plan(FAT_TREE, '[[flows]]\nfrom = "h0"\nto = "h15"')
    pairs = {names(made, link.ends) for link in made.links}
    roots = [(0, 0), (0, 1), (1, 0), (1, 1)]
    below = [(first, second) for first in range(4) for second in range(2)]
    for upper, (_, other) in enumerate(roots):
        found = {int(to.split("-")[1]) for source, to in pairs if source == f"s0-{upper}"}
        assert found == {number for number, word in enumerate(below) if word[1] == other}
    for upper, (one, _) in enumerate(below):
        found = {int(to.split("-")[1]) for source, to in pairs if source == f"s1-{upper}" and to.startswith("s2")}
        assert found == {number for number, word in enumerate(below) if word[0] == one}
    hosts = [(first, second, third) for first in range(4) for second in range(2) for third in range(2)]
    for number, word in enumerate(hosts):
        assert (f"h{number}", f"s2-{below.index(word[:2])}") in pairs


@pytest.mark.parametrize(("other", "links"), [("h1", 2), ("h2", 4), ("h4", 6), ("h15", 6)])
def test_the_base_rtt_is_that_of_the_fewest_links(other, links):
    made = plan(FAT_TREE, f'[[flows]]\nfrom = "h0"\nto = "{other}"')
    assert made.flows[0].base_rtt_s == pytest.approx(2 * links * 1e-6)


def test_the_ports_of_switches_are_bottlenecks_and_the_cards_of_hosts_are_not():
    made = plan(FAT_TREE + '\nhost_rate = "100Mbit"', '[[flows]]\nfrom = "h0"\nto = "h15"')
    for link in made.links:
        source, destination = names(made, link.ends)
        assert link.bottleneck is not source.startswith("h")
        assert link.queue.parameters == {"limit_packets": 1000 if source.startswith("h") else 100}
        assert link.rate_bps == (100e6 if "h" in source + destination else 1e9)
    assert made.bottleneck_link.bottleneck
    assert made.routing == "ecmp"
    assert plan(FAT_TREE + '\nrouting = "ecmp-packet"', '[[flows]]\nbetween = "all"').routing == "ecmp-packet"


def test_impossible_trees_are_rejected():
    flows = '[[flows]]\nfrom = "h0"\nto = "h1"'
    assert rejections(FAT_TREE.replace("4", "5"), flows) == [
        "x.toml:4: network.ports: found 5; expected an even number"
    ]
    assert rejections(FAT_TREE.replace("ports = 4", "ports = 128"), flows) == [
        "x.toml:5: network.levels: found 128 ports and 3 levels, 544768 nodes; expected at most 100000 nodes"
    ]


# --- other networks ----------------------------------------------------------------------------------


def test_each_leaf_is_joined_to_every_spine():
    made = plan(LEAF_SPINE, '[[flows]]\nfrom = "h0"\nto = "h11"')
    assert Counter(node.name.split("-")[0].rstrip("0123456789") for node in made.nodes) == {
        "h": 12,
        "leaf": 3,
        "spine": 2,
    }
    assert {name: count for name, count in joined(made).items() if not name.startswith("h")} == {
        "leaf-0": 6,
        "leaf-1": 6,
        "leaf-2": 6,
        "spine-0": 3,
        "spine-1": 3,
    }
    assert ("h11", "leaf-2") in {names(made, link.ends) for link in made.links}
    rates = {link.rate_bps for link in made.links if "spine" in link.name}
    assert rates == {10e9}
    assert made.flows[0].base_rtt_s == pytest.approx(8e-6)


@pytest.mark.parametrize("hosts", [500, 1000])
def test_the_data_centre_of_65_switches(hosts):
    made = plan(f'topology = "inventec"\nhosts = {hosts}\n{PORTS}', f'[[flows]]\nfrom = "h0"\nto = "h{hosts - 1}"')
    kinds = Counter("host" if node.host else node.name.split("-")[0] for node in made.nodes)
    assert kinds == {"host": hosts, "core": 5, "region": 10, "rack": 50}
    ports = joined(made)
    # A core has a port for each of 10 region switches; one of these 5 up, and 4 of 5 racks of 5 switches below.
    assert {ports[name] for name in ports if name.startswith("core")} == {10}
    assert {ports[name] for name in ports if name.startswith("region")} == {5 + 4 * 5}
    assert {ports[name] for name in ports if name.startswith("rack")} == {4 + hosts // 50}
    assert made.flows[0].base_rtt_s == pytest.approx(12e-6)
    assert {link.rate_bps for link in made.links if "h" not in link.name} == {10e9}


def test_the_branches_of_a_y_join_in_its_trunk():
    made = plan(Y, '[[flows]]\npath = "branch-0"\n[[flows]]\npath = "branch-1"\ncount = 3')
    assert [names(made, flow.ends) for flow in made.flows] == [("branch-0", "end")] + 3 * [("branch-1", "end")]
    assert [flow.base_rtt_s for flow in made.flows] == pytest.approx([0.03, 0.05, 0.05, 0.05])
    forward = [(link.name, link.rate_bps) for link in made.links if link.bottleneck]
    assert forward == [("trunk", 50e6), ("branch-0", 20e6), ("branch-1", 40e6)]
    # 50 Mb/s × (30 + 3 × 50) / 4 ms = 281,250 B = 185.8 packets of 1514 B
    assert made.bottleneck_link.queue.parameters == {"limit_packets": 185}


def test_long_flows_cross_every_hop_and_the_others_one():
    made = plan(PARKING_LOT, '[[flows]]\npath = "long"\n[[flows]]\npath = "hop-2"')
    long, cross = made.flows
    assert (names(made, long.ends), names(made, cross.ends)) == (
        ("long-source", "long-sink"),
        ("hop-2-source", "hop-2-sink"),
    )
    # 3 × 10 ms + 2 × 1 ms, and 10 ms + 2 × 1 ms, there and back
    assert (long.base_rtt_s, cross.base_rtt_s) == pytest.approx((0.064, 0.024))
    assert [link.name for link in made.links if link.bottleneck] == ["hop-1", "hop-2", "hop-3"]
    pairs = [names(made, link.ends) for link in made.links]
    assert {("s1", "s2"), ("hop-2-source", "s1"), ("s2", "hop-2-sink")} <= set(pairs)


# --- who sends to whom -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keys", "pairs"),
    [
        ('from = "h0"\nto = "h1"', ["h0 h1"]),
        ('from = ["h0", "h1"]\nto = ["h1", "h2"]', ["h0 h1", "h0 h2", "h1 h2"]),
        ('from = ["h0", "h1"]\nto = ["h1", "h2"]\nbetween = "round-robin"', ["h0 h1", "h1 h2"]),
        ('to = "h11"', [f"h{number} h11" for number in range(11)]),
        ('from = "h1[01]"\nto = "h0"\ncount = 2', ["h10 h0", "h10 h0", "h11 h0", "h11 h0"]),
        ('from = "h1[01]"\nto = "h0"\nstreams = 2', ["h10 h0", "h10 h0", "h11 h0", "h11 h0"]),
    ],
)
def test_pairs_of_hosts(keys, pairs):
    made = plan(LEAF_SPINE, f"[[flows]]\n{keys}")
    assert [" ".join(names(made, flow.ends)) for flow in made.flows] == pairs
    assert not made.traffic


def test_all_to_all_is_every_host_to_every_other():
    made = plan(FAT_TREE, '[[flows]]\nbetween = "all"')
    assert len({(flow.ends.source, flow.ends.destination) for flow in made.flows}) == len(made.flows) == 16 * 15


@pytest.mark.parametrize(("pattern", "pairing"), [("permutation", "permutation"), ("random", "random")])
def test_patterns_that_depend_on_the_seed_are_drawn_by_the_engine(pattern, pairing):
    flows = f'[[flows]]\nbetween = "{pattern}"\ncount = 2\nsize = "2MB"\nstart = {{ at = "10ms", jitter = "1ms" }}'
    made = plan(FAT_TREE, flows)
    assert not made.flows
    first, second = made.traffic
    assert first == second
    assert first.population == HostsPlan(tuple(range(16)), tuple(range(16)), pairing)
    assert first.workload == {
        "start_s": 0.01,
        "stop_s": None,
        "arrivals": {"kind": "once", "jitter_s": 0.001},
        "size": {"kind": "fixed", "bytes": 2_000_000},
    }
    # The longest way of the tree: six links there and six back.
    assert made.mean_base_rtt_s == pytest.approx(12e-6)


def test_endless_flows_between_drawn_hosts():
    (made,) = plan(FAT_TREE, '[[flows]]\nbetween = "permutation"').traffic
    assert made.workload["size"] is None


def test_traffic_between_hosts():
    made = plan(
        FAT_TREE,
        """
[[traffic]]
kind = "poisson"
load = 0.5
size = "1p"
from = "h[0-3]"
to = "h[4-7]"
[[traffic]]
kind = "incast"
senders = 15
size = "10KB"
every = "10ms"
to = "h3"
[[traffic]]
kind = "udp"
packet = "1B"
rate = "1/s"
from = "h0"
to = ["h1", "h2"]
""",
    )
    poisson, incast = made.traffic
    assert poisson.population == HostsPlan((0, 1, 2, 3), (4, 5, 6, 7), "all")
    # Half of what four cards of 1 Gb/s carry, in packets of 1514 B.
    assert poisson.workload["arrivals"]["per_s"] == pytest.approx(0.5 * 4e9 / 8 / 1514)
    assert incast.population == HostsPlan(tuple(range(16)), (3,), "random")
    assert [names(made, datagrams.ends) for datagrams in made.datagrams] == [("h0", "h1"), ("h0", "h2")]


def test_generated_traffic_is_between_all_hosts_unless_it_names_some():
    text = '[[traffic]]\nkind = "incast"\nsenders = 12\nsize = "64KB"\nevery = "20ms"'
    every = tuple(range(16))
    assert plan(FAT_TREE, text).traffic[0].population == HostsPlan(every, every, "random")


MISTAKES = {
    "no ends": ("", '11: flows[0].from: found nothing; expected hosts: from, to, or between = "all"'),
    "no such host": ('from = "h99"\nto = "h1"', '12: flows[0].from: found "h99"; expected a host such as "h9"'),
    "nothing like it": ('from = "xyz"\nto = "h1"', '12: flows[0].from: found "xyz"; expected a host: "h0" to "h11"'),
    "a switch": ('from = "leaf-0"\nto = "h1"', '12: flows[0].from: found "leaf-0", which is a switch; expected a host'),
    "a number": ('from = 3\nto = "h1"', "12: flows[0].from: found 3; expected the name of a host, a pattern such as"),
    "no host at all": ('from = []\nto = "h1"', "12: flows[0].from: found a list of 0; expected at least one host"),
    "to itself": ('from = "h1"\nto = "h1"', "11: flows[0].between: found one host with itself; expected a source and"),
    "unequal": (
        'between = "permutation"\nfrom = "h0"\nto = "h*"',
        '12: flows[0].between: found "permutation" with 1 sources and 12 destinations; expected as many of both',
    ),
    "in turn to itself": (
        'between = "round-robin"',
        '12: flows[0].between: found "round-robin" to itself; expected lists whose hosts at the same place differ',
    ),
    "unknown pattern": (
        'between = "incast"',
        '12: flows[0].between: found "incast"; expected "all", "round-robin", "permutation" or "random"',
    ),
    "a direction": (
        'between = "all"\ndirection = "up"',
        "13: flows[0].direction: found a key that does not belong here; expected no direction: name hosts with from",
    ),
    "an RTT": (
        'between = "all"\nrtt = "1ms"',
        "13: flows[0].rtt: found a key that does not belong here; expected no rtt: the delays of the links make it",
    ),
    "a path": (
        'path = "long"',
        "12: flows[0].path: found a key that does not belong here; expected no path: this topo",
    ),
    "streams of what is drawn": (
        'between = "random"\nstreams = 2',
        '13: flows[0].streams: found 2; expected no streams beside between = "random": count draws so many',
    ),
    "sizes of what is drawn": (
        'between = "random"\nsize = ["1KB", "2KB"]',
        '13: flows[0].size: found several values; expected one value beside between = "random"',
    ),
    "stop of what is drawn": (
        'between = "random"\nstop = "500ms"',
        '13: flows[0].stop: found 0.5 s; expected no stop beside between = "random"',
    ),
}


@pytest.mark.parametrize(("keys", "expected"), MISTAKES.values(), ids=MISTAKES.keys())
def test_one_mistake_is_one_line(keys, expected):
    found = rejections(LEAF_SPINE, f"[[flows]]\n{keys}")
    assert found[0].startswith(f"x.toml:{expected}")
    assert len(found) == 1


TRAFFIC_MISTAKES = {
    "users of a pair": (
        'kind = "web"\nsize = "1KB"\nobjects = 1\nthink = "1s"\nbetween = "all"\nusers = 3',
        "17: traffic[0].users: found 3; expected 1: each pair of hosts is a source",
    ),
    "too many senders": (
        'kind = "incast"\nsize = "1KB"\nevery = "1s"\nsenders = 12\nto = "h*"',
        "15: traffic[0].senders: found 12; expected at most 11, the hosts beside the receiver",
    ),
    "drawn UDP": (
        'kind = "udp"\npacket = "1B"\nrate = "1/s"\nbetween = "random"',
        '15: traffic[0].between: found "random"; expected "all" or "round-robin": the ends of UDP are not drawn',
    ),
}


@pytest.mark.parametrize(("keys", "expected"), TRAFFIC_MISTAKES.values(), ids=TRAFFIC_MISTAKES.keys())
def test_traffic_that_cannot_be_between_hosts(keys, expected):
    (found,) = rejections(LEAF_SPINE, f"[[traffic]]\n{keys}")
    assert found.startswith(f"x.toml:{expected}")


def test_an_unknown_path_is_rejected():
    (found,) = rejections(PARKING_LOT, '[[flows]]\npath = "hop-4"')
    assert found.startswith('x.toml:11: flows[0].path: found "hop-4"; expected "hop-3" (known: "long", "hop-1"')
    found = rejections(PARKING_LOT, '[[flows]]\npath = "long"\nfrom = "s0"')
    assert found == ["x.toml:12: flows[0].from: found both path and from; expected one of path and from"]


# --- changes -----------------------------------------------------------------------------------------


def test_a_cable_fails_both_ways_and_a_link_one_way():
    changes = """
[[network.changes]]
at = "500ms"
link = "leaf-0<>spine-1"
up = false
[[network.changes]]
at = "100ms"
link = "leaf-0>spine-1"
rate = "1Gbit"
"""
    made = plan(LEAF_SPINE, f'{changes}\n[[flows]]\nbetween = "all"')
    found = [(change.at_s, made.links[change.link].name, change.rate_bps, change.up) for change in made.changes]
    assert found == [
        (0.1, "leaf-0>spine-1", 1e9, None),
        (0.5, "leaf-0>spine-1", None, False),
        (0.5, "spine-1>leaf-0", None, False),
    ]


def test_an_unknown_link_has_a_neighbour():
    change = '[[network.changes]]\nat = "1ms"\nlink = "leaf-0>spine-9"\nup = false'
    (found,) = rejections(LEAF_SPINE, f'{change}\n[[flows]]\nbetween = "all"')
    assert found.startswith(
        'x.toml:13: network.changes[0].link: found "leaf-0>spine-9"; expected a link such as "leaf-0'
    )


def test_a_load_between_hosts_is_one_of_the_cards_that_carry_less():
    traffic = '[[traffic]]\nkind = "poisson"\nload = 0.5\nsize = "1p"\n'
    to_one = plan(FAT_TREE, f'{traffic}from = "h[0-3]"\nto = "h4"').traffic[0]
    assert to_one.workload["arrivals"]["per_s"] == pytest.approx(0.5 * 1e9 / 8 / 1514)


def test_a_branch_that_is_faster_than_the_trunk_is_no_bottleneck():
    made = plan(Y.replace('"40Mbit"', '"100Mbit"'), '[[flows]]\npath = "branch-1"')
    assert [link.name for link in made.links if link.bottleneck] == ["trunk", "branch-0"]
