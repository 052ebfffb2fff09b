"""Routed networks in the fluid engine: the ways that it finds, what it refuses, and who gets what of several links."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from small_networks import graph_link

import ackclock as ac
from ackclock import engines
from ackclock.engines import features
from ackclock.engines.fluid import plans
from ackclock.errors import UnsupportedError

ALPHA_P = 20
FAST = f'{{ kind = "fast", alpha = {ALPHA_P} }}'
RATE_BPS = 50e6
HOPS = 3
PARKING_LOT = f"""
name = "long and short"
duration = "20s"
warmup = "10s"
[network]
topology = "parking-lot"
hops = {HOPS}
rate = "50Mbit"
delay = "5ms"
queue = {{ discipline = "pfifo", limit = "200p" }}
access_rate = "1Gbit"
[[flows]]
path = "long"
congestion = {FAST}
[[flows]]
path = "hop-1"
congestion = {FAST}
[[flows]]
path = "hop-2"
congestion = {FAST}
[[flows]]
path = "hop-3"
congestion = {FAST}
"""
GRAPH = f"""
name = "graph"
duration = "2s"
[network]
topology = "graph"
[[network.nodes]]
name = "h"
count = 3
host = true
[[network.nodes]]
name = "s"
count = 3
{graph_link("h-0", "s-0", "1ms")}\
{graph_link("h-1", "s-2", "2ms")}\
{graph_link("s-0", "s-1", "4ms", "100Mbit")}\
{graph_link("s-1", "s-2", "8ms", "100Mbit")}\
[[flows]]
from = "h-0"
to = "h-1"
"""
#: A host between the same switches as s-1: a way through it would be as short.
BETWEEN = graph_link("h-2", "s-[02]", "1ms")
#: A second switch between them: another way, as short.
MORE_LINKS = f'[[network.nodes]]\nname = "other"\n{graph_link("other", "s-[02]", "1ms")}'
#: A second card of h-0: a longer way in seconds, a shorter one in links.
CARD = graph_link("h-0", "s-2", "50ms")
BACK = """
[[flows]]
from = "h-1"
to = "h-0"
"""


def plan(text, more=""):
    return ac.loads(text + more, "routed.toml").plan()


def reasons_of(text, more=""):
    return {reason.what for reason in engines.engine("fluid").unsupported(plan(text, more))}


def names(given):
    return [[given.links[hop.link].name for hop in flow.forward.hops] for flow in plans.laid(given).flows]


@pytest.fixture(scope="module")
def parking_lot():
    given = plan(PARKING_LOT)
    return {engine: ac.run(given, engine=engine) for engine in ("fluid", "packet")}


# --- the ways ----------------------------------------------------------------------------------------


def test_a_path_is_every_link_from_nic_to_nic():
    assert names(plan(PARKING_LOT)) == [
        ["long-source>s0", "hop-1", "hop-2", "hop-3", "s3>long-sink"],
        ["hop-1-source>s0", "hop-1", "s1>hop-1-sink"],
        ["hop-2-source>s1", "hop-2", "s2>hop-2-sink"],
        ["hop-3-source>s2", "hop-3", "s3>hop-3-sink"],
    ]


@pytest.mark.parametrize("more", ["", BETWEEN])
def test_no_way_leads_through_a_host(more):
    assert names(plan(GRAPH, more)) == [["h-0>s-0", "s-0>s-1", "s-1>s-2", "s-2>h-1"]]
    assert reasons_of(GRAPH, more) == set()


def test_a_host_with_two_cards_takes_the_shorter_way():
    assert names(plan(GRAPH, CARD)) == [["h-0>s-2", "s-2>h-1"]]


def test_the_base_rtt_is_the_packet_engines(parking_lot):
    """Propagation there and back, nothing for transmission."""
    for data in parking_lot.values():
        assert data.flows["base_rtt_s"].to_list() == pytest.approx([0.030, 0.010, 0.010, 0.010])
    both = {engine: ac.run(plan(GRAPH), engine=engine).flows for engine in ("fluid", "packet")}
    assert both["fluid"]["base_rtt_s"].to_list() == both["packet"]["base_rtt_s"].to_list() == pytest.approx([0.030])
    assert both["fluid"].select("source", "destination").row(0) == ("h-0", "h-1")


# --- what is refused ---------------------------------------------------------------------------------


@pytest.mark.parametrize("choice", ["single", "ecmp", "ecmp-packet", "weighted"])
def test_a_choice_of_paths_is_rejected(choice):
    text = GRAPH.replace('topology = "graph"', f'topology = "graph"\nrouting = "{choice}"')
    assert reasons_of(text) == set()
    assert reasons_of(text, MORE_LINKS) == {plans.SEVERAL_WAYS}
    with pytest.raises(UnsupportedError, match='engine "fluid" has no several equally short ways'):
        ac.run(plan(text, MORE_LINKS), engine="fluid")


def test_a_choice_on_the_reverse_path_is_rejected():
    given = plan(GRAPH, MORE_LINKS)
    one_way = replace(given, links=tuple(link for link in given.links if link.name != "s-0>other"))
    assert names(one_way) == names(plan(GRAPH))
    assert list(plans.unsupported_routes(one_way)) == [plans.SEVERAL_WAYS]


def test_acknowledgements_do_not_wait_behind_data():
    assert reasons_of(GRAPH, BACK) == {features.REVERSE}


def test_changes_and_finite_transfers_are_rejected():
    change = '[[network.changes]]\nat = "1s"\nlink = "s-0>s-1"\nrate = "10Mbit"\n'
    assert reasons_of(GRAPH, change) == {features.CHANGES}
    assert reasons_of(GRAPH + 'size = "1MB"\n') == {features.FINITE}


# --- who gets what -----------------------------------------------------------------------------------


def test_fast_shares_a_parking_lot_in_proportion(parking_lot):
    """Each flow keeps alpha packets in the queues of its way, so rates solve Σ log x (Wei et al. 2006).

    On H hops with waiting time q each, x = α/(H q) and y = α/q with x + y = C: x = C/(H + 1), q = α (H + 1)/(H C).
    """
    data = parking_lot["fluid"]
    payload = 1448 / 1514 * RATE_BPS / 8 * 10.0
    expected = payload * np.array([1, *[HOPS] * HOPS]) / (HOPS + 1)
    assert data.flows["measured_bytes"].to_numpy() == pytest.approx(expected, rel=0.002)
    hops = data.links.filter("bottleneck")
    assert hops["backlog_mean_p"].to_list() == pytest.approx([ALPHA_P * (HOPS + 1) / HOPS] * HOPS, rel=0.002)
    assert data.links.filter(~pl.col("bottleneck"))["backlog_mean_p"].max() == 0


def test_the_packet_engine_agrees():
    """Reno, means of three runs: the short flows' rates within 5 %, the long one's, a tenth of theirs, within 30 %.

    As in the model, hosts take no time.
    """
    text = PARKING_LOT.replace(FAST, '"reno"').replace("20s", "60s").replace("200p", "1bdp")
    given = plan(text.replace("[[flows]]", '[[flows]]\nstart = { jitter = "1s" }\ntcp = { processing = "0s" }'))
    fluid, packet = (measured(name, given) for name in ("fluid", "packet"))
    assert fluid[0] == pytest.approx(packet[0], rel=0.3)
    assert fluid[1:] == pytest.approx(packet[1:], rel=0.05)


def measured(engine, given):
    runs = [engines.engine(engine).run(given, seed).flows["measured_bytes"].to_numpy() for seed in (1, 2, 3)]
    return np.mean(runs, axis=0)


def test_links_that_only_acknowledgements_cross_stay_empty(parking_lot):
    links = parking_lot["fluid"].links
    back = links.filter(pl.col("name").is_in(["s1>s0", "s2>s1", "s3>s2"]))
    assert back.height == HOPS
    assert back["arrived_total_p"].to_list() == [0] * HOPS
