"""CAKE in a network: shares of hosts (Høiland-Jørgensen, Täht, Morton 2018 section III) and of tins (tc-cake(8)).

The sources are UDP and send more than their shares, so that shares are the scheduler's alone.
"""

from __future__ import annotations

import polars as pl
import pytest

import ackclock as ac

WARMUP_S, END_S, PAYLOAD_BYTES = 2, 22, 1222
#: Capacity of 10 Mb/s in datagrams of 1250 bytes, with their headers and without a frame.
LINK_PER_S = 1000

TEXT = """duration = "{end}s"
warmup = "{warmup}s"
[network]
topology = "dumbbell"
rate = "{rate}"
rtt = "20ms"
frame_overhead = "0B"
queue = {{ discipline = "cake", rtt = "10s", {queue} }}
{traffic}
"""
UDP = '[[traffic]]\nname = "{name}"\nkind = "udp"\npacket = "{payload}B"\nrate = "{per_s}/s"\n{more}\n'


def udp(name: str, per_s: int, more: str = "") -> str:
    return UDP.format(name=name, payload=PAYLOAD_BYTES, per_s=per_s, more=more)


def shares(queue: str, traffic: str, rate: str = "20Mbit") -> list[float]:
    """The share of each group in the packets of 10 Mb/s that arrive."""
    text = TEXT.format(end=END_S, warmup=WARMUP_S, rate=rate, queue=queue, traffic=traffic)
    data = ac.run(ac.loads(text).plan(), engine="packet", jobs=1)
    groups = data.flows.group_by("group").agg(pl.col("measured_bytes").sum()).sort("group")
    packets = groups["measured_bytes"] / PAYLOAD_BYTES
    return [float(count) / LINK_PER_S / (END_S - WARMUP_S) for count in packets]


@pytest.mark.parametrize("limit", ["bandwidth = '10Mbit'", ""])
@pytest.mark.parametrize(
    ("isolation", "expected"),
    [("triple-isolate", 1 / 2), ("dual-srchost", 1 / 2), ("dual-dsthost", 1 / 2), ("hosts", 1 / 2), ("flows", 1 / 9)],
)
def test_a_host_with_one_flow_gets_as_much_as_one_with_eight(isolation, expected, limit):
    traffic = udp("one", 1500) + udp("eight", 300, "count = 8")
    rate = "20Mbit" if limit else "10Mbit"
    found = shares(f"isolation = '{isolation}', {limit}", traffic, rate)
    assert found == pytest.approx([expected, 1 - expected], abs=0.01)


def test_a_node_is_a_host_whatever_the_groups_of_its_flows():
    """Host h0 has one flow over the link from leaf to spine, h1 has four, each a `[[traffic]]` of its own."""
    text = f"""duration = "{END_S}s"
warmup = "{WARMUP_S}s"
[network]
topology = "leaf-spine"
leaves = 2
spines = 1
hosts = 4
rate = "100Mbit"
spine_rate = "10Mbit"
delay = "1ms"
frame_overhead = "0B"
queue = {{ discipline = "cake", rtt = "10s" }}
"""
    ends = [("h0", "h4"), *[("h1", "h5")] * 4]
    for number, (source, destination) in enumerate(ends):
        text += udp(f"flow {number}", 1500, f'from = "{source}"\nto = "{destination}"')
    flows = ac.run(ac.loads(text).plan(), engine="packet", jobs=1).flows.sort("flow")
    packets = flows["measured_bytes"] / PAYLOAD_BYTES / LINK_PER_S / (END_S - WARMUP_S)
    assert packets.to_list() == pytest.approx([0.5, *[0.125] * 4], abs=0.01)


@pytest.mark.parametrize(
    ("diffserv", "expected"),
    [
        ("diffserv3", {"cs0": 0.6875, "cs1": 0.0625, "ef": 0.25}),
        ("diffserv4", {"cs0": 0.1875, "cs1": 0.0625, "af41": 0.5, "ef": 0.25}),
        ("diffserv4", {"cs0": 0.9375, "cs1": 0.0625}),
        ("besteffort", {"cs0": 0.5, "ef": 0.5}),
    ],
)
def test_a_saturated_tin_gets_its_threshold_and_best_effort_the_rest(diffserv, expected):
    traffic = "".join(udp(name, 1500, f'dscp = "{name}"') for name in expected)
    found = shares(f"diffserv = '{diffserv}', bandwidth = '10Mbit'", traffic)
    assert found == pytest.approx(list(expected.values()), abs=0.01)


def test_an_ack_filter_frees_the_path_of_the_acks():
    """A download of 20 Mb/s beside a return path for a third of its ACKs: with the filter it is faster (section IV)."""
    text = """duration = "30s"
warmup = "5s"
[network]
topology = "dumbbell"
rate = "20Mbit"
rtt = "40ms"
queue = {{ discipline = "pfifo", limit = "1bdp" }}
[network.reverse]
rate = "200kbit"
queue = {{ discipline = "cake", bandwidth = "150kbit", ack_filter = "{mode}" }}
[[flows]]
congestion = "cubic"
"""
    found, delay_s = {}, {}
    for mode in ("off", "on", "aggressive"):
        data = ac.run(ac.loads(text.format(mode=mode)).plan(), engine="packet", jobs=1)
        found[mode] = data.flows["measured_bytes"].sum() * 8 / 25 / 20e6
        delay_s[mode] = data.links.filter(pl.col("link") == 1)["sojourn_mean_s"].item()
    assert found["off"] < 0.7
    assert found["on"] > 0.85
    assert found["aggressive"] > 0.85
    assert delay_s["aggressive"] < delay_s["on"] < delay_s["off"] / 10
