"""Links with delivery opportunities in a guest: the packet engine's times, and its goodput and delay."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from statistics import median

import pytest
from changed import changed
from pcaps import frames

import ackclock as ac
from ackclock.engines.linux import network
from ackclock.engines.linux.script import script
from ackclock.engines.linux.traces import capacity_bps, stepped

#: Datagrams of 1000 bytes each millisecond, 0.3 ms after it, and small and large ones beside.
SCENARIO = """
duration = "300ms"
[network]
topology = "dumbbell"
rate = { trace = "t" }
rtt = "40ms"
queue = { discipline = "pfifo", limit = "100p" }
[[traffic]]
kind = "udp"
rate = "1000/s"
packet = "1000B"
start = "300us"
stop = "60ms"
[[traffic]]
kind = "udp"
rate = "150/s"
packet = "1472B"
start = "600us"
stop = "90ms"
[[traffic]]
kind = "udp"
rate = "300/s"
packet = "200B"
start = "800us"
stop = "90ms"
[record]
pcap = ["receivers"]
[traces]
t = '''
TRACE'''
"""

#: Several in a millisecond, some that nobody uses, and one at the end of the period.
TRACE = "2\n2\n5\n9\n9\n9\n9\n12\n20\n"


def plan_of(trace: str, *changes: tuple[str, str]) -> ac.Plan:
    return ac.loads(changed(SCENARIO, ("TRACE", trace), *changes)).plan()


def arrivals(plan: ac.Plan, engine: str, folder: Path) -> list[tuple[float, int]]:
    ac.run(plan, engine=engine, seeds=[1], jobs=1, captures=folder)
    return [(round(1e3 * frame.time_s, 2), frame.payload_bytes) for frame in frames(folder / "seed-1-receivers.pcap")]


def test_a_link_has_its_own_qdisc_and_transmits_full_packets():
    plan = plan_of(TRACE)
    lines = script(network.lay(plan), plan)
    assert "tc -n q0 qdisc add dev out root handle 1: opportunity0" in lines
    assert "tc -n q0 qdisc add dev out parent 1:1 handle 10: pfifo limit 100" in lines
    assert not [line for line in lines if "htb" in line or " rate " in line]
    longer = replace(plan, links=(replace(plan.links[0], frame_overhead_bytes=38),))
    framed = script(network.lay(longer), longer)
    assert "tc -n q0 qdisc add dev out root handle 1: stab overhead 24 linklayer ethernet opportunity0" in framed


def test_opportunities_are_no_steps_and_the_measured_ones_count():
    """Nine of 1514 bytes each 20 ms; between 100 and 105 ms there are the two at 102 and the one at 105."""
    plan = plan_of(TRACE)
    assert stepped(plan) == plan
    assert capacity_bps(plan, plan.links[0]) == pytest.approx(9 * 15 * 1514 * 8 / 0.3)
    part = replace(plan, warmup_s=0.1, duration_s=0.105)
    assert capacity_bps(part, plan.links[0]) == pytest.approx(3 * 1514 * 8 / 0.005)


@pytest.mark.parametrize("trace", [TRACE, "1\n7\n7\n30\n", "".join(f"{3 * n}\n" for n in range(1, 1200))])
def test_packets_arrive_at_the_packet_engine_s_times(guest_kernel, trace, tmp_path):
    plan = plan_of(trace)
    ours, theirs = (arrivals(plan, engine, tmp_path / engine) for engine in ("packet", "linux"))
    assert len(ours) > 60
    assert theirs == ours


def test_two_links_have_each_their_own(guest_kernel, tmp_path):
    """The way back of the dumbbell has another trace, and the datagrams of the second group go there."""
    reverse = 'reverse = { rate = { trace = "u" }, queue = { discipline = "pfifo", limit = "100p" } }\n'
    up = ('packet = "1472B"\n', 'packet = "1472B"\ndirection = "up"\n')
    plan = plan_of(TRACE, ('rtt = "40ms"\n', f'rtt = "40ms"\n{reverse}'), up, ("[traces]\n", '[traces]\nu = "7\\n"\n'))
    ours, theirs = (arrivals(plan, engine, tmp_path / engine) for engine in ("packet", "linux"))
    assert sorted(theirs) == sorted(ours), "those of two directions arrive in any order at the same time"


CELLULAR = (Path(__file__).parents[3] / "scenarios" / "traces" / "cellular.mahimahi").read_text(encoding="ascii")
LONG = f"""
duration = "60s"
warmup = "5s"
[network]
topology = "dumbbell"
rate = {{ trace = "t" }}
rtt = "50ms"
queue = {{ discipline = "pfifo", limit = "100p" }}
[[flows]]
congestion = "reno"
[traces]
t = '''
{CELLULAR}'''
"""


@pytest.mark.parametrize("control", ["reno", "cubic"])
def test_goodput_and_delay_are_the_packet_engine_s(guest_kernel, control):
    """Over a cellular link the goodput to 3 %, and the mean delay to 5 %: of three runs the median."""
    plan = ac.loads(changed(LONG, ('"reno"', f'"{control}"'))).plan()
    ours, theirs = (ac.run(plan, engine, seeds=[1, 2, 3], jobs=1).metrics()["runs"] for engine in ("packet", "linux"))
    for name, tolerance in {"goodput_bps": 0.03, "queue_delay_mean_s": 0.05, "rtt_mean_s": 0.05}.items():
        of_ours, of_theirs = (median(run["metrics"][name] for run in runs) for runs in (ours, theirs))
        assert of_theirs == pytest.approx(of_ours, rel=tolerance), name
