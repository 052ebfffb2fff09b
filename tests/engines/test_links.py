"""Link impairments besides queueing: exact times on a trace, shares and bursts, and separate random streams."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from changed import changed
from small_networks import dumbbell

import ackclock as ac
from ackclock import engines
from ackclock.errors import ScenarioError

TRACED = """
duration = "100ms"
[network]
topology = "dumbbell"
rate = { trace = "t" }
rtt = "20ms"
frame_overhead = "0B"
queue = { discipline = "pfifo", limit = "100p" }
[[traffic]]
kind = "udp"
rate = "1000/s"
packet = "972B"
stop = "10500us"
[record]
packets = true
interval = "10ms"
[traces]
"""


def departures_ms(trace: str, text: str = TRACED) -> list[float]:
    """When datagrams of 1000 bytes leave that come at 0, 1, 2 … 10 ms."""
    log = ac.run(ac.loads(f"{text}t = '''\n{trace}'''\n").plan()).packets
    return (1e3 * log.filter(pl.col("what") == "dequeue")["time_s"]).round(6).to_list()


def test_opportunities_deliver_at_the_times_worked_out_by_hand():
    """1500 bytes at 2, 2, 5, 9 and 20 ms, and after 20 ms again.

    At 2 ms three packets are there, which 3000 bytes carry. At 5 ms one leaves and half of the next is sent; the rest
    of it leaves at 9 ms with another. At 20 ms one and a half of the last five leave, at 22 ms (3000 bytes) three, and
    the last one at 25 ms with its other half. Packets that leave together do so a picosecond apart.
    """
    expected = [2, 2, 2, 5, 9, 9, 20, 22, 22, 22, 25]
    assert departures_ms("2\n2\n5\n9\n20\n") == pytest.approx(expected, abs=1e-6)


def test_rates_send_bit_for_bit_at_the_times_worked_out_by_hand():
    """8 Mb/s is 1 ms a packet; from 2.5 ms on nothing, from 4 ms on 2 Mb/s (4 ms a packet), from 10 ms on 16 (0.5 ms).

    The third packet has sent half when the pause comes, and needs 2 ms of the slow rate: 6 ms. The fourth takes 4 ms,
    the fifth begins at 10 ms; the last ones come at 9 and 10 ms and wait for those before them.
    """
    trace = "time_s,rate_bps\n0,8e6\n0.0025,0\n0.004,2e6\n0.010,16e6\n1,\n"
    assert departures_ms(trace) == pytest.approx([1, 2, 6, 10, 10.5, 11, 11.5, 12, 12.5, 13, 13.5], abs=1e-6)


LINK = f"""
duration = "60s"
{dumbbell("10Mbit", "40ms", "100p")}
[[traffic]]
kind = "udp"
rate = "500/s"
packet = "1000B"
[record]
interval = "1s"
packets = true
"""


FLOW = changed(LINK, (LINK[LINK.index("[[traffic]]") :], '[[flows]]\ncongestion = "reno"\n'))


def with_keys(keys: str, text: str = LINK) -> ac.Dataset:
    return ac.run(ac.loads(changed(text, ('rtt = "40ms"\n', f'rtt = "40ms"\n{keys}\n'))).plan())


def sequences(data: ac.Dataset, kind: str) -> list[float]:
    """Return the sequence numbers of packets with an event at the link; not those that an end discards as damaged."""
    return data.events.filter(pl.col("kind") == kind, pl.col("link").is_not_null())["value"].to_list()


def arrivals(data: ac.Dataset) -> pl.DataFrame:
    return data.packets.filter(pl.col("what") == "arrive")


def test_burst_lengths_follow_the_chain():
    """30 000 packets, 300 bursts of 5 in the mean: the standard error of their length is .26, of the share .31 %."""
    lost = np.array(sequences(with_keys("loss = { p_good_to_bad = 0.01, p_bad_to_good = 0.2 }"), "loss"))
    bursts = 1 + (np.diff(lost) > 1).sum()
    assert lost.size / bursts == pytest.approx(5, abs=0.8)
    assert lost.size / 30_000 == pytest.approx(0.01 / 0.21, abs=0.01)


@pytest.mark.parametrize(("key", "kind", "column"), [
    ("duplicate", "duplicate", "duplicated_total_p"),
    ("corrupt", "corruption", "corrupted_total_p"),
])  # fmt: skip
def test_chances_are_those_that_are_written(key, kind, column):
    """30 000 draws of 2 %: a standard deviation of 24."""
    data = with_keys(f"{key} = {{ probability = 0.02 }}")
    count = len(sequences(data, kind))
    assert count == pytest.approx(600, abs=100)
    assert data.links[column].to_list() == [count]
    arrived = {"duplicate": count, "corrupt": -count}[key]
    assert data.flows["received_packets"][0] == pytest.approx(data.flows["sent_packets"][0] + arrived, abs=15)


def test_reordered_packets_arrive_without_the_delay():
    """One each 2 ms and a delay of 20 ms: one that overtakes is before 9 or 10 others, each of which is late."""
    data = with_keys("reorder = { probability = 0.001 }")
    late = np.diff(arrivals(data)["sequence"].to_numpy().astype(np.int64))
    ahead = (late < 0).sum()
    assert ahead == pytest.approx(30, abs=20)
    assert data.links["reordered_total_p"][0] == pytest.approx(9.5 * ahead, abs=1.5 * ahead)


@pytest.mark.parametrize(("distribution", "spread"), [("uniform", 1 / 3**0.5), ("normal", 1.0)])
def test_jitter_has_the_deviation_that_is_written(distribution, spread):
    """3 ms with packets 2 ms apart; the standard error of a standard deviation of 30 000 is .4 %."""
    data = with_keys(f'jitter = {{ deviation = "3ms", distribution = "{distribution}", in_order = false }}')
    arrived = arrivals(data).sort("sequence")
    delay_s = arrived["time_s"].to_numpy() - arrived["sequence"].to_numpy() / 500
    assert delay_s.std() == pytest.approx(3e-3 * spread, rel=0.02)
    assert data.links["reordered_total_p"][0] > 1000


def test_jitter_in_order_lets_no_packet_overtake():
    data = with_keys('jitter = { deviation = "10ms" }')
    assert (np.diff(arrivals(data)["sequence"].to_numpy().astype(np.int64)) > 0).all()
    assert data.links["reordered_total_p"][0] == 0


def test_each_has_a_stream_of_its_own():
    """Whatever is added, the same packets are lost, damaged and doubled."""
    loss, corrupt, duplicate = (
        "loss = { p_good_to_bad = 0.01, p_bad_to_good = 0.2 }",
        "corrupt = { probability = 0.01 }",
        "duplicate = { probability = 0.01 }",
    )
    jitter = 'jitter = { deviation = "1ms" }\nreorder = { probability = 0.01 }'
    both = with_keys(f"{loss}\n{corrupt}")
    assert sequences(both, "loss") == sequences(with_keys(loss), "loss")
    more = with_keys(f"{loss}\n{corrupt}\n{jitter}")
    assert sequences(more, "corruption") == sequences(both, "corruption")
    assert sequences(with_keys(f"{duplicate}\n{jitter}"), "duplicate") == sequences(with_keys(duplicate), "duplicate")


def test_nothing_is_as_if_it_were_not_written():
    none = "loss = { probability = 0 }\nduplicate = { probability = 0 }\ncorrupt = { probability = 0 }"
    plain = ac.loads(LINK).plan()
    assert ac.loads(changed(LINK, ('rtt = "40ms"\n', f'rtt = "40ms"\n{none}\n'))).plan().links[0].loss is None
    assert with_keys(none).flows.equals(ac.run(plain).flows)


def test_loss_and_media_change_during_a_run():
    """From 20 s to 40 s; what is not written again stays."""
    keys = "".join(
        f'[[network.changes]]\nat = "{at}"\nlink = "bottleneck"\n{now}\n'
        for at, now in (
            ("20s", "loss = { probability = 0.1 }\ncorrupt = { probability = 0.1 }"),
            ("30s", "duplicate = { probability = 0.1 }"),
            ("40s", "loss = { probability = 0 }\ncorrupt = { probability = 0 }"),
        )
    )
    data = ac.run(ac.loads(changed(LINK, ("[[traffic]]", f"{keys}[[traffic]]"))).plan())
    spans = data.events.filter(pl.col("kind") != "link_change").group_by("kind").agg(
        first=pl.col("time_s").min(), last=pl.col("time_s").max()
    )  # fmt: skip
    found = {kind: (first, last) for kind, first, last in spans.iter_rows()}
    assert 20 <= found["corruption"][0] < 21
    assert 39 < found["corruption"][1] <= 40
    assert 30 <= found["duplicate"][0] < 31
    assert found["duplicate"][1] > 59
    assert found["loss"][1] <= 40.1


def test_the_base_rtt_of_a_path_stays_where_a_delay_varies():
    """The common part of the paths is the link's; a change of its delay comes on top, as it does without jitter."""
    text = changed(FLOW, ('rtt = "40ms"', 'rtt = ["40ms", "60ms"]'), ("[[flows]]", "[[flows]]\ncount = 2"))
    jitter = changed(text, ("[[flows]]", 'jitter = { deviation = "0s" }\n[[flows]]'))
    change = '[[network.changes]]\nat = "1s"\nlink = "bottleneck"\ndelay = "5ms"\n'
    plans = [ac.loads(given + change).plan() for given in (text, jitter)]
    for plan in plans:
        links_s = [plan.links[flow.forward.hops[0].link].delay_s for flow in plan.flows]
        ways_s = [flow.forward.delay_s + link_s for flow, link_s in zip(plan.flows, links_s, strict=True)]
        assert ways_s == pytest.approx([0.02, 0.03])
        assert plan.changes[0].delay_s == pytest.approx(plan.links[0].delay_s + 0.005)
        assert [flow.base_rtt_s for flow in plan.flows] == [0.04, 0.06]
    assert [plan.links[0].delay_s for plan in plans] == [0, 0.02]


UNSUPPORTED = {
    "loss = { p_good_to_bad = 0.01, p_bad_to_good = 0.2 }": "random loss in bursts",
    'jitter = { deviation = "1ms" }': "jitter",
    "reorder = { probability = 0.01 }": "packets that are reordered",
    "duplicate = { probability = 0.01 }": "packets that are duplicated",
    "corrupt = { probability = 0.01 }": "packets that are damaged",
}


@pytest.mark.parametrize("engine", ["fluid", "meanfield", "ns2", "ns3", "theory"])
@pytest.mark.parametrize(("keys", "feature"), UNSUPPORTED.items(), ids=UNSUPPORTED.values())
def test_other_engines_reject_it_by_name(engine, keys, feature):
    plan = ac.loads(changed(FLOW, ('rtt = "40ms"\n', f'rtt = "40ms"\n{keys}\n'))).plan()
    assert any(feature in str(reason) for reason in engines.engine(engine).unsupported(plan))


@pytest.mark.parametrize(("engine", "has"), [("packet", True), ("linux", True), ("fluid", False), ("ns3", False)])
def test_a_trace_is_for_two_engines(engine, has):
    text = changed(FLOW, ('rate = "10Mbit"', 'rate = { trace = "t" }')) + '[traces]\nt = "time_s,rate_bps\\n0,1e6\\n"\n'
    reasons = [str(reason) for reason in engines.engine(engine).unsupported(ac.loads(text).plan())]
    assert any("trace" in reason for reason in reasons) != has


@pytest.mark.parametrize(("kernel", "has"), [("guest", True), ("6.1", True), ("live", False)])
def test_the_kernel_of_this_machine_has_no_opportunities(kernel, has):
    text = changed(FLOW, ('rate = "10Mbit"', 'rate = { trace = "t" }')) + '[traces]\nt = "1\\n"\n'
    reasons = [str(reason) for reason in engines.engine("linux").unsupported(ac.loads(text).on(kernel).plan())]
    assert any("delivery opportunities of a trace (it takes a CSV of rates)" in reason for reason in reasons) != has


def test_inconsistent_parameters_are_reported():
    traced = changed(FLOW, ('rate = "10Mbit"', 'rate = { trace = "t" }\nburst = "3KB"')) + '[traces]\nt = "1\\n"\n'
    with pytest.raises(ScenarioError, match="found a burst beside a trace; expected one of them"):
        ac.loads(traced).plan()
    loss = changed(FLOW, ('rtt = "40ms"', 'rtt = "40ms"\nloss = { p_good_to_bad = 0.1 }'))
    with pytest.raises(ScenarioError, match="network.loss: found p_good_to_bad without p_bad_to_good; expected"):
        ac.loads(loss).plan()
    y = """
duration = "1s"
[network]
topology = "y"
trunk = { rate = "1Mbit", delay = "0s", queue = { discipline = "pfifo", limit = "9p" }, reorder = { probability = 0 } }
branches = [
    { rate = "1Mbit", delay = "1ms", queue = { discipline = "pfifo", limit = "9p" } },
    { rate = "1Mbit", delay = "1ms", queue = { discipline = "pfifo", limit = "9p" } },
]
[[flows]]
path = "branch-0"
"""
    with pytest.raises(ScenarioError, match="network.trunk: found reorder without a delay; expected"):
        ac.loads(y).plan()
