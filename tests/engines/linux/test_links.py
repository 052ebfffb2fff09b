"""Effects of links on packets in the kernel: the commands by hand, and goodput compared with the packet engine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from changed import changed
from small_networks import dumbbell

import ackclock as ac
from ackclock.engines.linux import network
from ackclock.engines.linux.script import changes, script
from ackclock.engines.linux.traces import capacity_bps, stepped

TEXT = f"""
duration = "4s"
{dumbbell("10Mbit", "40ms", "30p")}
[[flows]]
congestion = "reno"
"""

IMPAIRED = changed(
    TEXT,
    (
        'rtt = "40ms"\n',
        'rtt = "40ms"\n'
        "loss = { p_good_to_bad = 0.001, p_bad_to_good = 0.25, in_bad = 0.9 }\n"
        'jitter = { deviation = "2ms", distribution = "normal" }\n'
        "reorder = { probability = 0.01 }\nduplicate = { probability = 0.002 }\ncorrupt = { probability = 0.003 }\n",
    ),
)

#: Half a period of 8 Mb/s, a pause of two steps, and a fast end.
TRACE = "time_s,rate_bps\n0,8e6\n1,0\n1.2,10\n1.5,16e6\n2,\n"
TRACED = changed(TEXT, ('"10Mbit"', '{ trace = "t" }')) + f"[traces]\nt = '''\n{TRACE}'''\n"


def qdiscs(plan: ac.Plan) -> list[str]:
    return [line for line in script(network.lay(plan), plan) if "netem" in line]


def test_the_commands_are_those_reasoned_by_hand():
    """The 20 ms behind the bottleneck are all flows': they are the medium's, and behind it is only the host's time."""
    lines = qdiscs(ac.loads(IMPAIRED).plan())
    assert "tc -n e0 qdisc add dev c1 parent 1:3 handle 13: netem limit 1000000 loss gemodel 0.1% 25% 90% 0%" in lines
    assert "tc -n w0 qdisc add dev c3 root netem limit 1000000 rate 10000000bit" in lines
    assert (
        "tc -n i0 qdisc add dev c4 root netem limit 1000000 delay 20ms 2ms distribution normal reorder 1%"
        " duplicate 0.2% corrupt 0.3% rate 1000gbit"
    ) in lines
    (hosts,) = (line for line in lines if line.startswith("tc -n f0"))
    assert hosts.endswith("root netem limit 1000000 delay 10us 10us rate 1000gbit")


def test_jitter_out_of_order_has_no_rate():
    text = changed(IMPAIRED, ('distribution = "normal"', "in_order = false"))
    (line,) = (line for line in qdiscs(ac.loads(text).plan()) if line.startswith("tc -n i0"))
    assert line.endswith("delay 20ms 2ms reorder 1% duplicate 0.2% corrupt 0.3%")


def test_changes_are_netem_s():
    """A link whose medium is to change has one from the beginning; what is not written stays."""
    none = "loss = { probability = 0 }\nduplicate = { probability = 0 }\n"
    plan = ac.loads(f'{IMPAIRED}[[network.changes]]\nat = "1s"\nlink = "bottleneck"\n{none}').plan()
    (made,) = changes(plan, network.lay(plan), live=False)
    assert made["commands"] == [
        *(f"tc -n e0 qdisc change dev c1 parent 1:{n} handle 1{n}: netem limit 1000000 loss 0%" for n in (1, 2, 3)),
        "tc -n i0 qdisc replace dev c4 root netem limit 1000000 delay 20ms 2ms distribution normal reorder 1%"
        " corrupt 0.3% rate 1000gbit",
    ]


def test_a_trace_is_steps_and_a_pause_lets_one_packet_through():
    """12 112 bits of a packet in half a second are 24 224 bit/s; the period comes twice."""
    plan = ac.loads(TRACED).plan()
    made = stepped(plan)
    assert made.links[0].rate_bps == 8e6
    found = [(change.at_s, round(change.rate_bps or 0)) for change in made.changes]
    assert found == [(1.0, 24_224), (1.5, 16_000_000), (2.0, 8_000_000), (3.0, 24_224), (3.5, 16_000_000)]
    assert capacity_bps(plan, plan.links[0]) == pytest.approx((8e6 + 0.3 * 10 + 8e6) / 2)
    assert capacity_bps(replace(plan, warmup_s=1.5), plan.links[0]) == pytest.approx((8e6 + 16e6 + 3) / 2.5)


def goodputs_mbps(plan: ac.Plan, engine: str) -> np.ndarray:
    flows = ac.run(plan, engine=engine, jobs=1).flows
    rows = flows.group_by("run").agg(pl.col("measured_bytes").sum())
    return rows["measured_bytes"].to_numpy() * 8e-6 / (plan.duration_s - plan.warmup_s)


def test_a_kernel_follows_a_trace_and_media(guest_kernel):
    """The trace to 5 %, with some seconds of one flow; with everything that a link does packets get through."""
    traced = ac.loads(changed(TRACED, ('duration = "4s"', 'duration = "10s"\nwarmup = "2s"'))).plan()
    ours, theirs = (goodputs_mbps(traced, engine)[0] for engine in ("packet", "linux"))
    assert theirs == pytest.approx(ours, rel=0.05)
    impaired = ac.run(ac.loads(IMPAIRED).plan(), engine="linux", jobs=1)
    assert impaired.links["lost_total_p"][0] > 0
    assert impaired.flows["delivered_bytes"][0] > 500_000


CELLULAR = (Path(__file__).parents[3] / "scenarios" / "traces" / "cellular.csv").read_text(encoding="ascii")
LONG = changed(TEXT, ('"4s"', '"60s"\nwarmup = "5s"'), ("10Mbit", "20Mbit"), ('"30p"', '"1bdp"'))
HALVED = '[[network.changes]]\nat = "25s"\nlink = "bottleneck"\nrate = "10Mbit"\n'


def with_keys(keys: str) -> str:
    return changed(LONG, ("[[flows]]", f"{keys}\n[[flows]]"))


#: A link's impairment, and its number of seeds: media draw at random.
CELLS = {
    "bursts": (16, with_keys("loss = { p_good_to_bad = 0.0005, p_bad_to_good = 0.25 }")),
    "jitter in order": (6, with_keys('jitter = { deviation = "3ms", distribution = "normal" }')),
    # A packet each 606 µs: 1 and 5 % arrive after the one behind them.
    "jitter, 1 % reordered": (6, with_keys('jitter = { deviation = "353us", in_order = false }')),
    "jitter, 5 % reordered": (6, with_keys('jitter = { deviation = "443us", in_order = false }')),
    "1 % ahead by 20 ms": (16, with_keys("reorder = { probability = 0.01 }")),
    "5 % ahead by 20 ms": (16, with_keys("reorder = { probability = 0.05 }")),
    "halved": (2, LONG + HALVED),
    "cellular": (2, changed(LONG, ('"20Mbit"', '{ trace = "c" }')) + f"[traces]\nc = '''\n{CELLULAR}'''\n"),
}
#: The compared metrics, with their relative tolerances.
COMPARED = {"goodput": 0.03, "retransmissions": 0.15, "spurious": 0.15}


def measured(plan: ac.Plan, engine: str) -> pl.DataFrame:
    """A row a run: goodput in the measured part, retransmissions, and those that a D-SACK reported as needless."""
    data = ac.run(plan, engine=engine, jobs=1)
    needless = data.events.filter(pl.col("kind") == "spurious_retransmission").group_by("run").len("spurious")
    flows = data.flows.select("run", pl.col("measured_bytes").alias("goodput").cast(float), "retransmissions")
    return flows.join(needless, on="run", how="left").with_columns(pl.col("spurious").fill_null(0))


@pytest.mark.oracle
@pytest.mark.parametrize("control", ["reno", "cubic", "bbr"])
@pytest.mark.parametrize("cell", CELLS)
def test_flows_do_as_in_the_kernel(guest_kernel, cell, control):
    """Goodput within 3 %, repairs and needless ones within 15 %, and three standard errors of a difference besides."""
    seeds, text = CELLS[cell]
    text = changed(text, ('congestion = "reno"', f'congestion = "{control}"'))
    plan = replace(ac.loads(text).plan(), seeds=tuple(range(1, seeds + 1)))
    ours, theirs = (measured(plan, engine) for engine in ("packet", "linux"))
    for name, share in COMPARED.items():
        error = np.hypot(*(found[name].std() / seeds**0.5 for found in (ours, theirs)))
        allowed = share * theirs[name].mean() + 3 * error + 1  # one: repairs are whole, and some cells need none
        assert abs(ours[name].mean() - theirs[name].mean()) <= allowed, name


SHORT = """
duration = "500s"
seeds = [4, 9, 14]
[network]
topology = "asymmetric"
down = { rate = "2.4Mbit", delay = "21ms", queue = { discipline = "spa", limit = "1000p", target = "5ms" } }
up = { rate = "400kbit", delay = "21ms", queue = { discipline = "pfifo", limit = "10p" } }
[tcp]
stack = "linux"
initial_window = 4
[[traffic]]
kind = "poisson"
rate = "8.3333/s"
size = { distribution = "zipf", exponent = 1.7, max = "6200p" }
congestion = "reno"
rtt = "42ms"
"""


def response_times_s(engine: str) -> pl.DataFrame:
    """Mean, median and number of the transfers of as many segments, in a row for each number from one to six."""
    flows = ac.run(ac.loads(SHORT).plan(), engine=engine).flows.filter(pl.col("fct_s").is_not_null())
    segments = (pl.col("size_bytes") / 1448).ceil().alias("segments")
    time = pl.col("fct_s")
    return (
        flows.group_by(segments)
        .agg(time.mean().alias("mean"), time.median().alias("median"), pl.len())
        .filter(pl.col("segments") <= 6)
        .sort("segments")
    )


@pytest.mark.oracle
def test_short_transfers_under_spa_take_as_long_as_in_the_kernel(guest_kernel):
    """Braud 2016, figure 7-4: the FIN overtakes segments before it, so that SACKs have some repeated.

    Means of more than two segments are by few transfers that wait for timers, and the kernel's differ between machines.
    """
    ours, theirs = (response_times_s(engine) for engine in ("packet", "linux"))
    assert ours["median"].to_list() == pytest.approx(theirs["median"].to_list(), rel=0.05)
    assert ours["mean"].head(2).to_list() == pytest.approx(theirs["mean"].head(2).to_list(), rel=0.05)
    of_both = [np.average(engine["mean"][3:5], weights=engine["len"][3:5]) for engine in (ours, theirs)]
    assert of_both[0] == pytest.approx(of_both[1], rel=0.1)
