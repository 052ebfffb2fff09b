"""ns-2 in networks of hosts and switches: the ways are the packet engine's, and so is what comes of them."""

from __future__ import annotations

import os
import shutil

import polars as pl
import pytest
from changed import changed

import ackclock as ac
from ackclock import engines
from ackclock.engines.external.planned_traffic import draw_traffic
from ackclock.plan import Plan

requires_ns2 = pytest.mark.skipif(
    shutil.which("ns") is None and not os.environ.get("CI"), reason="needs ns-2 (Debian's package ns2)"
)

#: 16 hosts; each host sends one long flow to another pod, so that hashes decide how many share a link to the roots.
TEXT = """
name = "A fat tree"
duration = "6s"
warmup = "1s"
seeds = [1]
[network]
topology = "fat-tree"
ports = 4
levels = 3
rate = "10Mbit"
delay = "2ms"
routing = "ecmp"
queue = { discipline = "pfifo", limit = "20p" }
frame_overhead = "0B"
[tcp]
stack = "ns2"
sack = true
timestamps = true
mss = "1448B"
[record]
paths = true
[[flows]]
from = ["h0", "h1", "h2", "h3", "h4", "h5", "h6", "h7", "h8", "h9", "h10", "h11", "h12", "h13", "h14", "h15"]
to = ["h4", "h5", "h6", "h7", "h8", "h9", "h10", "h11", "h12", "h13", "h14", "h15", "h0", "h1", "h2", "h3"]
between = "round-robin"
congestion = "reno"
"""

MORE = """
[[traffic]]
kind = "poisson"
rate = "20/s"
between = "random"
congestion = "reno"
size = "20KB"
[[traffic]]
kind = "udp"
from = "h3"
to = "h9"
packet = "500B"
rate = "50/s"
"""


def plan(*changes: tuple[str, str], more: str = "") -> Plan:
    return ac.loads(changed(TEXT, *changes) + more).plan()


def reasons_of(*changes: tuple[str, str], more: str = "") -> list[str]:
    return [reason.what for reason in engines.engine("ns2").unsupported(plan(*changes, more=more))]


@pytest.mark.parametrize("routing", ["single", "ecmp", "weighted"])
def test_the_ways_are_those_of_the_packet_engine(routing):
    of = plan(("ecmp", routing), ("6s", "2s"), more=MORE)
    assert reasons_of(("ecmp", routing), more=MORE) == []
    ours = engines.engine("packet").run(of, 1).frame("paths")
    sent = draw_traffic(of, 1)
    ways = {each.number: [hop.link for hop in each.forward.hops] for each in [*sent.connections, *sent.streams]}
    found = ours.group_by("flow").agg(pl.col("link").sort_by("hop"))
    assert found.height > 40
    assert {row["flow"]: row["link"] for row in found.iter_rows(named=True)} == {
        number: ways[number] for number in found["flow"]
    }


def test_a_way_leads_from_host_to_host_link_by_link():
    of = plan(more=MORE)
    assert of.nodes
    sent = draw_traffic(of, 1)
    for each in [*sent.connections, *sent.streams]:
        assert each.ends
        for path, first, last in (
            (each.forward, each.ends.source, each.ends.destination),
            (each.reverse, each.ends.destination, each.ends.source),
        ):
            ends = [of.links[hop.link].ends for hop in path.hops]
            assert [end.source for end in ends if end] == [first, *[end.destination for end in ends[:-1] if end]]
            assert ends[-1]
            assert ends[-1].destination == last
        delays_s = [of.links[hop.link].delay_s for hop in (*each.forward.hops, *each.reverse.hops)]
        assert each.base_rtt_s == pytest.approx(sum(delays_s))


@pytest.mark.parametrize("routing", ["ecmp-packet", "valiant"])
def test_random_paths_per_packet_are_rejected(routing):
    assert reasons_of(("ecmp", routing)) == [f'routing = "{routing}"']


def test_ns3_has_no_routed_networks():
    assert "routed networks" in [reason.what for reason in engines.engine("ns3").unsupported(plan())]


@requires_ns2
def test_a_fat_tree_agrees_with_the_packet_engine():
    # Receivers' windows hold all senders, so that nothing is lost and shares follow from the ways alone: among
    # senders who lose, chance decides who gets more.
    of = plan(('"20p"', '"200p"'), ('mss = "1448B"', 'mss = "1448B"\nreceive_window = "23168B"'))
    ours, theirs = (engines.engine(name).run(of, 1) for name in ("packet", "ns2"))
    assert theirs.frame("paths").equals(ours.frame("paths"))
    names = ("flow", "source", "destination", "base_rtt_s")
    assert theirs.flows.select(names).equals(ours.flows.select(names))
    both = ours.flows.join(theirs.flows, on="flow", suffix="_ns2")
    assert both["measured_bytes"].max() > 1.5 * both["measured_bytes"].min()  # the ways matter
    assert ((both["measured_bytes_ns2"] / both["measured_bytes"] - 1).abs() < 0.02).all()
    links = ours.links.join(theirs.links, on="link", suffix="_ns2")
    assert links.height == theirs.links.height
    assert (links["name"] == links["name_ns2"]).all()
    assert links["dropped_p"].sum() == links["dropped_p_ns2"].sum() == 0
    used = links.filter(pl.col("departed_p") > 1000)
    assert used.height > 48
    assert ((used["departed_bytes_ns2"] / used["departed_bytes"] - 1).abs() < 0.03).all()
    queued = used.filter(pl.col("sojourn_mean_s") > 4e-3)
    assert queued.height > 1
    assert ((queued["sojourn_mean_s_ns2"] / queued["sojourn_mean_s"] - 1).abs() < 0.02).all()


@requires_ns2
def test_transfers_and_datagrams_take_their_ways():
    of = plan(
        ("6s", "2s"), ("1s", "0s"), ('between = "round-robin"', 'between = "round-robin"\nstop = "1ms"'), more=MORE
    )
    ours, theirs = (engines.engine(name).run(of, 1) for name in ("packet", "ns2"))
    assert theirs.frame("paths").equals(ours.frame("paths"))
    both = ours.flows.join(theirs.flows, on="flow", suffix="_ns2").filter(pl.col("size_bytes") > 0)
    done = both.drop_nulls(["fct_s", "fct_s_ns2"])
    assert done.height > 25
    assert done["fct_s_ns2"].mean() == pytest.approx(done["fct_s"].mean(), rel=0.1)
