"""Traffic between the hosts of a testbed: UDP, different TCPs, loops, links that change, measured paths."""

from __future__ import annotations

import polars as pl
import pytest
import testbeds
from testbeds import CHANGE, Testbed, run, with_traffic

import ackclock as ac

MISSING = testbeds.missing_requirement()
pytestmark = pytest.mark.skipif(MISSING is not None, reason=MISSING or "")


@pytest.mark.usefixtures("unchanged")
def test_udp_sources_send_between_hosts(bed: Testbed):
    """One that fits through the link, and one more that does not."""
    path = with_traffic(
        bed,
        '[[traffic]]\nkind = "udp"\nrate = "500/s"\npacket = "1000B"\n'
        '[[traffic]]\nkind = "udp"\nrate = "3750/s"\npacket = "1000B"\nstart = "1s"\n',
        "udp.toml",
    )
    status, _, errors = run(bed, path, out="udp")
    assert status == 0, errors
    flows = ac.Dataset.read(bed.folder / "udp").flows
    assert flows["congestion"].to_list() == ["udp", "udp"]
    assert flows["start_s"].to_list() == pytest.approx([0.0, 1.0], abs=0.2)
    slow, fast = flows.rows(named=True)
    assert slow["sent_packets"] == pytest.approx(4e6 * 2 / 8 / 1000, rel=0.02)
    assert fast["sent_packets"] == pytest.approx(30e6 / 8 / 1000, rel=0.05)
    received = [row["received_packets"] for row in (slow, fast)]
    assert received[0] > 0.4 * slow["sent_packets"]
    # 20 Mb/s take 1042 bytes of each, with the headers that HTB counts.
    assert received[1] + received[0] < 20e6 * 2 / 8 / 1042 + 100
    assert flows["delay_mean_s"].to_list() == [None, None]  # between two clocks
    samples = ac.Dataset.read(bed.folder / "udp").frame("flow_samples")
    assert samples.filter(samples["flow"] == 0)["delivered_bytes"].max() == pytest.approx(1000 * received[0], rel=0.1)


@pytest.mark.usefixtures("unchanged")
def test_delay_adaptive_udp_sources_receive_feedback(bed: Testbed):
    """A flow fills the queue: more delay than the target, so more datagrams than the 100 a second of its beginning."""
    follow = 'rate_adaptation = { target = "2ms", min = "100/s", max = "2000/s" }'
    udp = f'[[traffic]]\nkind = "udp"\n{follow}\npacket = "50B"\n'
    path = with_traffic(bed, f'[[flows]]\ncongestion = "cubic"\n{udp}', "follow.toml")
    status, _, errors = run(bed, path, out="follow")
    assert status == 0, errors
    _, flow = ac.Dataset.read(bed.folder / "follow").flows.rows(named=True)
    assert 400 < flow["sent_packets"] < 0.9 * 2 * 2000
    assert flow["received_packets"] > 0.5 * flow["sent_packets"]


@pytest.mark.usefixtures("unchanged")
def test_a_link_changes_during_a_run(bed: Testbed):
    path = with_traffic(bed, '[[flows]]\ncongestion = "cubic"\n', "changes.toml", duration=3, more=CHANGE)
    status, _, errors = run(bed, path, out="changes")
    assert status == 0, errors
    data = ac.Dataset.read(bed.folder / "changes")
    (event,) = data.frame("events").filter(data.frame("events")["kind"] == "link_change").rows(named=True)
    assert (event["time_s"], event["value"]) == (pytest.approx(1.5, abs=0.3), 5e6)
    samples = data.frame("queue_samples")
    # Of the rate after the change, not of that before, with which it would be a quarter.
    assert 0.5 < samples.filter(samples["time_s"] > 1.9)["utilisation"].mean() < 1.1
    delivered = data.frame("flow_samples").select("time_s", "delivered_bytes")
    for rate, span in ((20e6, (0.5, 1.4)), (5e6, (2.0, 2.9))):
        assert testbeds.UNPAUSED < rate_bps(delivered, *span) / (rate * 1448 / 1514) < 1.1


def rate_bps(delivered: pl.DataFrame, first_s: float, last_s: float) -> float:
    part = delivered.filter(pl.col("time_s").is_between(first_s, last_s))
    times, numbers = part["time_s"].to_list(), part["delivered_bytes"].to_list()
    return 8 * (numbers[-1] - numbers[0]) / (times[-1] - times[0])


@pytest.mark.usefixtures("unchanged")
def test_groups_have_packets_of_their_own_size_on_one_host(bed: Testbed):
    """An option of sockets; what would be the whole host's is refused before a host is touched."""
    flow = '[[flows]]\ncongestion = "cubic"\ntcp = {{ {} }}\n'
    path = with_traffic(bed, flow.format('mtu = "1500B"') + flow.format('mtu = "700B"'), "sizes.toml")
    status, _, errors = run(bed, path, out="sizes")
    assert status == 0, errors
    flows = ac.Dataset.read(bed.folder / "sizes").flows
    sizes = (flows["sent_bytes"] / flows["sent_packets"]).to_list()
    assert sizes == pytest.approx([1500, 700], rel=0.02)
    path = with_traffic(bed, flow.format("sack = true") + flow.format("sack = false"), "sacks.toml")
    status, _, errors = run(bed, path, out="sacks")
    assert (status, errors) == (
        3, 'Unsupported: engine "linux" has no room for several values of tcp_sack on one host of a testbed ("alice", '
        '"bob")\n'
    )  # fmt: skip


@pytest.mark.usefixtures("unchanged")
def test_sources_transfer_think_and_transfer_between_hosts(bed: Testbed):
    """Each source waits for its own transfers alone, by the clock of the host that sees them end."""
    path = with_traffic(
        bed,
        '[[traffic]]\nkind = "sources"\ncount = 4\nsize = "10KB"\nthink = "50ms"\ncongestion = "cubic"\n',
        "loops.toml",
    )
    status, _, errors = run(bed, path, out="loops")
    assert status == 0, errors
    flows = ac.Dataset.read(bed.folder / "loops").flows
    done = flows.filter(flows["end_s"].is_not_null())
    assert len(done) > 4 * 10
    assert len(flows) - len(done) <= 4


@pytest.mark.usefixtures("unchanged")
def test_a_path_is_measured_before_the_runs(bed: Testbed):
    """A router that is none of ackclock's lets 10 Mb/s through: the utilisation is that of what was found."""
    path = testbeds.scenario(bed, duration=3, more='existing_path = true\nrtt = "measured"', name="measured.toml")
    text = path.read_text().replace('rate = "20Mbit"', 'rate = "measured"')
    router = text[text.index('[[network.hosts]]\nname = "router"') : text.index('[[network.hosts]]\nname = "bob"')]
    path.write_text(text.replace(router, ""))
    for words in (
        "qdisc add dev right root handle 1: htb default 1",
        "class add dev right parent 1: classid 1:1 htb rate 10mbit",
        "qdisc add dev right parent 1:1 pfifo limit 50",
    ):
        bed.inside("router", "tc", *words.split())
    try:
        status, _, errors = run(bed, path, out="measured")
    finally:
        bed.inside("router", "tc", "qdisc", "del", "dev", "right", "root")
    assert status == 0, errors
    data = ac.Dataset.read(bed.folder / "measured")
    found = data.manifest["plan"]["options"]["testbed"]["measured"]
    assert testbeds.UNPAUSED < found["rate_bps"] / 10e6 < 1.05
    assert len(found["rates_bps"]) == 3
    assert 0 < found["rtt_s"] < 0.02
    assert data.frame("links")["rate_bps"].to_list() == [found["rate_bps"]]
    assert data.flows["base_rtt_s"].to_list() == [found["rtt_s"]] * 2
    # What was sent before the measured part and arrived in it counts, and what is under way at its end does not.
    goodput_bps = data.metrics()["summary"]["goodput_bps"]["mean"]
    assert testbeds.UNPAUSED < goodput_bps / (10e6 * 1448 / 1514) < 1.05
