"""Links that change, in the kernel."""

from __future__ import annotations

import polars as pl
import pytest
from small_networks import dumbbell

import ackclock as ac
from ackclock import engines
from ackclock.engines.linux import network
from ackclock.engines.linux.script import changes

TEXT = f"""
duration = "3s"
{dumbbell("10Mbit", "20ms", "30p")}
[[network.changes]]
at = "1s"
link = "bottleneck"
rate = "5Mbit"
[[network.changes]]
at = "2s"
link = "bottleneck"
up = false
[[network.changes]]
at = "2150ms"
link = "bottleneck"
delay = "5ms"
up = true
[[flows]]
congestion = "reno"
[record]
interval = "50ms"
"""


def test_the_commands_are_those_reasoned_by_hand():
    """Cables: to the entrance (0), to the queue (1), the link (2), back to the host (3): 10 ms, and 5 ms on top."""
    plan = ac.loads(TEXT).plan()
    slower, down, up = changes(plan, network.lay(plan), live=False)
    assert [change["rate_bps"] for change in (slower, down, up)] == [5e6, 0.0, 5e6]
    assert slower["commands"] == [
        "tc -n q0 class change dev out parent 1: classid 1:1 htb rate 5000000bit ceil 5000000bit burst 3 cburst 3"
        " quantum 1514",
        "tc -n w0 qdisc replace dev c3 root netem limit 1000000 delay 10ms rate 5000000bit",
    ]
    assert down["commands"] == [
        *(f"tc -n e0 qdisc change dev c1 parent 1:{n} handle 1{n}: netem limit 1000000 loss 100%" for n in (1, 2, 3)),
        "tc -n w0 qdisc replace dev c3 root netem limit 1000000 delay 10ms rate 5000000bit loss 100%",
    ]
    assert up["commands"][-1] == ("tc -n w0 qdisc replace dev c3 root netem limit 1000000 delay 15ms rate 5000000bit")


def test_goodput_follows(guest_kernel):
    """Full rate, half of it, nothing, and something again, as in the packet engine; what happens is told.

    An ACK that waited when the link failed is some 60 ms late.
    """
    plan = ac.loads(TEXT).plan()
    ours, theirs = (ac.run(plan, engine=engine, jobs=1) for engine in ("linux", "packet"))
    for begin_s, end_s, rate_bps in ((0.3, 1.0, 10e6), (1.2, 2.0, 5e6)):
        for data in (ours, theirs):
            assert sent_bps(data, begin_s, end_s) == pytest.approx(rate_bps, rel=0.03)
    for data in (ours, theirs):
        assert delivered_bytes(data, 2.1, 2.15) == 0
        assert delivered_bytes(data, 2.15, 3.0) > 0
        told = data.events.filter(pl.col("kind") == "link_change")
        assert told["time_s"].to_list() == pytest.approx([1.0, 2.0, 2.15], abs=1e-6)
        assert told["value"].to_list() == [5e6, 0.0, 5e6]
    assert ours.links["lost_total_p"][0] > 0


def sent_bps(data, begin_s, end_s):
    """Return the mean rate of the samples in (begin, end]: a packet is 1514 bytes."""
    rows = data.queue_samples.filter((pl.col("time_s") > begin_s) & (pl.col("time_s") <= end_s) & (pl.col("link") == 0))
    return rows["departures_p"].sum() * 1514 * 8 / (end_s - begin_s)


def delivered_bytes(data, begin_s, end_s):
    rows = data.flow_samples.filter((pl.col("time_s") > begin_s - 1e-9) & (pl.col("time_s") <= end_s + 1e-9))
    return rows["delivered_bytes"].max() - rows["delivered_bytes"].min()


def test_failing_links_of_a_routed_network_are_rejected_by_name():
    text = TEXT.replace('"dumbbell"', '"leaf-spine"\nleaves = 2\nspines = 1\nhosts = 1\ndelay = "1ms"')
    text = (
        text.replace('rtt = "20ms"\n', "")
        .replace("congestion", 'between = "all"\ncongestion')
        .replace('"bottleneck"', '"leaf-0<>spine-0"')
    )
    (reason,) = engines.unsupported(engines.engine("linux"), ac.loads(text).plan())
    assert reason.what == "links that fail in a routed network"
