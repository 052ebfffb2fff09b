"""Conversion of a guest's output into a dataset with the plan's names."""

from __future__ import annotations

import numpy as np
import pytest

import ackclock as ac
from ackclock.engines.engine import RunOptions
from ackclock.engines.linux import network, process
from ackclock.engines.linux.process import order

TEXT = """
duration = "10s"
[network]
topology = "dumbbell"
rate = "10Mbit"
rtt = ["40ms", "60ms"]
queue = { discipline = "pfifo", limit = "20p" }
loss = { probability = 1e-3 }
[[flows]]
count = 2
congestion = "cubic"
tcp = { receive_window = "64KiB" }
[[traffic]]
kind = "udp"
rate = "125/s"
packet = "1000B"
[linux]
app_interval = "1ms"
reader = "periodic"
writer = "periodic"
"""


@pytest.fixture(scope="module")
def plan():
    return ac.loads(TEXT).plan()


def test_names_are_those_of_the_plan(plan):
    """Three flows of the plan, one of UDP among them, and a generated transfer, which has no name."""
    found = {
        "flows": {"flow": np.arange(4), "group": np.array([0, 0, 1, 0]), "start_s": np.zeros(4)},
        "links": {"link": np.array([0]), "arrived_p": np.array([5], dtype=np.uint64)},
        "events": {"time_s": np.array([1.0]), "flow": np.array([0]), "kind": ["drop"]},
        "packets": {},
    }
    data = process.dataset(plan, 7, found, RunOptions(command="c"), {"mode": "guest"})
    assert data.flows["source"].to_list() == ["sender-0", "sender-1", "sender-2", None]
    assert data.flows["destination"].to_list() == ["receiver-0", "receiver-1", "receiver-2", None]
    assert data.flows["congestion"].to_list() == ["cubic", "cubic", "udp", "cubic"]
    assert data.flows["base_rtt_s"].to_list()[:2] == [0.04, 0.06]
    assert data.flows["base_rtt_s"][3] is None
    assert data.links.select("name", "rate_bps", "bottleneck").row(0) == ("bottleneck", 10e6, True)
    assert data.events["kind"].to_list() == ["drop"]
    assert (data.manifest["engine"], data.manifest["linux"], data.runs[0]["seed"]) == ("linux", {"mode": "guest"}, 7)


def test_the_run_spec_has_every_path(plan, tmp_path):
    given = order(plan, 7, network.lay(plan), ["insmod x.ko"]).to_dict(tmp_path / "r")
    assert given["setup"][:2] == ["insmod x.ko", "ip netns add tx0"]
    assert given["sockets"][1] is None
    assert given["sockets"][0]["window_clamp_bytes"] == 65536
    assert given["flows"][1] == {
        "source": {"namespace": "tx0", "address": "10.1.0.2"},
        "destination": {"namespace": "rx0", "address": "10.2.0.2"},
        "nodes": None,
    }
    assert given["datagrams"][0]["source"]["namespace"] == "tx1"
    assert given["queues"] == [{"link": 0, "namespace": "q0", "device": "out", "handle": "10:"}]
    assert given["losses"] == [{"link": 0, "namespace": "e0", "device": "c1", "handle": "13:"}]
    assert (given["clock"], given["seed"], given["app_interval_s"]) == ("virtual", 7, 0.001)
    assert (given["reader"], given["writer"]) == ("periodic", "periodic")
    assert given["result"] == str(tmp_path / "r")


def tables_of(backlog_p, utilisation, late_s=(0.0, 0.0)):
    """The tables of a run whose samples were so late on average, and at most."""
    count = len(backlog_p)
    return {
        "queue_samples": {"link": [0] * count, "backlog_p": backlog_p, "utilisation": utilisation},
        "kernel": {"late_mean_s": late_s[:1], "late_max_s": late_s[1:], "skipped_samples": [2]},
    }


def test_a_shortage_of_memory_is_reported():
    assert list(process.squeezed(0)) == []
    (doubt,) = process.squeezed(3)
    assert doubt.startswith("TCP ran out of memory (net.ipv4.tcp_mem) 3 times")


def test_a_capture_with_missing_packets_is_reported():
    assert list(process.uncaptured(0)) == []
    (doubt,) = process.uncaptured(12)
    assert doubt == "the packet capture lacks 12 packets: too many came within 10 ms"


def test_the_rate_that_was_held(plan):
    """20 of 21 samples come after one with packets waiting: 10 at 1.0 and 10 at 0.9."""
    kept = process.timing_quality(plan, tables_of([5] * 21, [0.0] + [1.0, 0.9] * 10))
    assert kept["shares"] == {"bottleneck": pytest.approx(0.95)}
    (doubt,) = process.doubts(plan, kept)
    assert doubt == 'this machine could not keep up: the link "bottleneck" held 95.0 % of its rate while busy'


def test_an_idle_link_gives_no_timing_quality(plan):
    kept = process.timing_quality(plan, tables_of([0, 0, 0], [0.1, 0.1, 0.1]))
    assert kept["shares"] == {"bottleneck": None}
    assert list(process.doubts(plan, kept)) == []


def test_a_late_sample(plan):
    kept = process.timing_quality(plan, tables_of([0] * 4, [0.0] * 4, (0.005, 0.015)))
    assert (kept["late_mean_s"], kept["late_max_s"], kept["skipped_samples"]) == (0.005, 0.015, 2)
    (doubt,) = process.doubts(plan, kept)
    assert doubt == "this machine could not keep up: a sample came 15 ms late, of 10 ms"
