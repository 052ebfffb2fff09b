"""The truth beside captures: why each packet was sent and what became of it, and that it joins with the files."""

from __future__ import annotations

from collections import Counter

import polars as pl
import pytest
from pcaps import frames
from small_networks import dumbbell

import ackclock as ac
from ackclock.dataset.tables import CAUSES

TEXT = f"""
duration = "4s"
{dumbbell("10Mbit", "20ms", "15p")}
loss = {{ probability = 5e-3 }}
[[flows]]
congestion = "cubic"
size = "800KB"
count = 2
start = {{ every = "100ms" }}
[[flows]]
congestion = "reno"
request = "200B"
size = "30KB"
[[flows]]
congestion = "reno"
application_rate = "400kbit"
[[flows]]
congestion = "reno"
tcp = {{ receive_window = "8KiB" }}
[[traffic]]
kind = "udp"
rate = "40/s"
packet = "500B"
[record]
pcap = ["senders", "receivers"]
"""
#: Numbers of the flows: see above. The UDP source comes last.
CUBIC, ASKED, SLOW, NARROW, UDP = (0, 1), 2, 3, 4, 5


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("captures")
    data = ac.run(ac.loads(TEXT).plan(), seeds=[3], captures=folder)
    return data, {path.stem.removeprefix("seed-3-"): frames(path) for path in folder.iterdir()}


def name(frame):
    """The flow of a frame, the end that sent it, and what tells it from others."""
    end = "receiver" if frame.source[1] == 5001 else "sender"
    host = (frame.source if end == "sender" else frame.destination)[0].split(".")
    flow = int(host[2]) * 256 + int(host[3]) - 1
    return flow, end, frame.identification, None if flow == UDP else frame.sequence


def of_rows(rows, time):
    """The names of rows, with a time in ns."""
    kept = rows.select("flow", "end", "identification", "sequence", "payload_bytes", (1e9 * pl.col(time)).round())
    return {row[:4]: row[4:] for row in kept.rows()}


@pytest.mark.parametrize(("vantage", "other"), [("senders", "receiver"), ("receivers", "sender")])
def test_every_packet_at_hosts_has_its_row_and_every_row_its_packet(run, vantage, other):
    data, seen = run
    rows = data.transmissions
    here = of_rows(rows.filter(pl.col("end") != other), "time_s")
    here |= of_rows(rows.filter(pl.col("end") == other, pl.col("arrival_s").is_not_null()), "arrival_s")
    found = {name(frame): frame for frame in seen[vantage]}
    assert found.keys() == here.keys()
    assert len(found) == len(seen[vantage]) > 2000
    for key, frame in found.items():
        payload_bytes, time_ns = here[key]
        assert abs(round(1e9 * frame.time_s) - time_ns) <= 1
        assert key[0] == UDP or frame.payload_bytes == payload_bytes


def test_rows_agree_with_the_tables_of_flows_and_events(run):
    data, _ = run
    rows = data.transmissions
    gone = rows.filter(pl.col("fate").is_in(["dropped", "lost"]))
    assert gone.height == data.flows["dropped_packets"].sum() > 10
    assert gone["link"].null_count() == 0
    told = data.events.filter(pl.col("kind").is_in(["drop", "loss"])).select("flow", "link")
    assert gone.select("flow", "link").sort("flow").rows() == told.sort("flow").rows()
    sent = rows.filter(pl.col("end") == "sender").group_by("flow").len().sort("flow")
    assert sent["len"].to_list() == data.flows["sent_packets"].to_list()
    repairs = rows.filter(pl.col("cause").is_in(["fast_retransmit", "timeout", "after_timeout"])).height
    probes = rows.filter(pl.col("cause") == "tail_probe").height
    assert repairs <= data.flows["retransmissions"].sum() <= repairs + probes


def test_heavy_loss_has_every_cause_and_timeouts_are_events():
    text = TEXT.replace("probability = 5e-3", "probability = 8e-2, syn = 0.5").replace('"4s"', '"15s"')
    data = ac.run(ac.loads(text).plan(), seeds=[2])
    rows = data.transmissions
    assert set(rows["cause"]) == set(CAUSES)
    timeouts = data.events.filter(pl.col("kind") == "timeout").select("flow", "time_s", segment=pl.col("value"))
    sent = rows.filter(pl.col("cause") == "timeout").select(
        "flow", "time_s", segment=pl.col("segment").cast(pl.Float64)
    )
    assert sent.rows() == timeouts.rows()
    assert sent.height > 5


def test_what_limits_is_what_the_scenario_limits(run):
    data, _ = run
    data_rows = data.transmissions.filter(pl.col("kind") == "data", pl.col("cause") == "new_data")

    def limits(flow):
        return Counter(data_rows.filter(pl.col("flow") == flow)["limit"].to_list())

    slow, narrow, cubic = limits(SLOW), limits(NARROW), limits(CUBIC[0])
    assert slow["application"] > 0.95 * slow.total()
    assert narrow["receiver"] > 0.8 * narrow.total()
    assert cubic["slow_start"] > 20
    assert cubic["cwnd"] + cubic["slow_start"] + cubic["recovery"] > 0.95 * cubic.total()
    assert cubic["nothing"] == 10, "the initial window"


def test_a_retransmission_waits_for_neither_the_application_nor_the_receiver():
    data = ac.run(ac.loads(TEXT.replace("probability = 5e-3", "probability = 5e-2")).plan(), seeds=[3])
    repairs = data.transmissions.filter(pl.col("cause").is_in(["fast_retransmit", "after_timeout", "timeout"]))
    for flow in (SLOW, NARROW):
        limits = set(repairs.filter(pl.col("flow") == flow)["limit"])
        assert "recovery" in limits
        assert not limits & {"application", "receiver"}


def test_a_model_based_cca_is_in_slow_start_until_it_has_measured_the_bandwidth():
    lines = ['duration = "5s"', "[network]", 'topology = "dumbbell"', 'rate = "8.8Mbit"', 'rtt = "2.6ms"']
    lines += ['queue = { discipline = "pfifo", limit = "5p" }', "[[flows]]", 'congestion = "bbr3"']
    data = ac.run(ac.loads("\n".join([*lines, "[record]", 'pcap = ["senders"]'])).plan(), seeds=[1])
    full = data.transmissions.filter(pl.col("limit").is_in(["slow_start", "cwnd"]))
    counts = Counter(full.filter(pl.col("time_s") > 1)["limit"].to_list())
    assert counts["cwnd"] > 100, "a window of some segments limits, and stays below where Startup ended"
    assert counts["slow_start"] == 0


def test_what_opens_a_connection_and_datagrams_have_no_window(run):
    data, _ = run
    others = data.transmissions.filter(~pl.col("kind").is_in(["data", "data_fin", "fin"]))
    assert others["cwnd"].null_count() == others["in_flight"].null_count() == others.height
    opening = others.filter(pl.col("cause") == "opening", pl.col("flow") == ASKED)
    assert opening["kind"].to_list() == ["client_syn", "server_syn_ack", "request"]
    datagrams = others.filter(pl.col("flow") == UDP)
    assert datagrams["sequence"].null_count() == datagrams.height > 100
    assert datagrams["segment"].to_list() == [*range(datagrams.height)]


def test_a_result_on_disk_has_the_table_only_if_requested(run, tmp_path):
    data, _ = run
    data.write(tmp_path / "asked")
    assert ac.Dataset.read(tmp_path / "asked").transmissions.equals(data.transmissions)
    without = ac.run(ac.loads(TEXT.replace('pcap = ["senders", "receivers"]', "")).plan(), seeds=[3])
    without.write(tmp_path / "not")
    assert not (tmp_path / "not" / "transmissions.parquet").exists()
    assert ac.Dataset.read(tmp_path / "not").transmissions.is_empty()
    assert without.flows.equals(data.flows)


def test_connections_begin_with_numbers_of_their_own(run):
    data, _ = run
    first = data.transmissions.filter(pl.col("cause") == "opening").select("flow", "end", "sequence", "identification")
    openings = first.filter(pl.col("sequence").is_not_null())
    assert openings["sequence"].n_unique() == openings.height == 11
    of_sender = data.transmissions.filter(pl.col("kind") == "data", pl.col("payload_bytes") == 1448)
    initial = of_sender.select("flow", (pl.col("sequence") - 1 - 1448 * pl.col("segment").cast(pl.Int64)) % 2**32)
    assert initial["sequence"].n_unique() == 5
    assert set(initial["sequence"]) < set(openings["sequence"])


def test_threads_change_nothing(run):
    data, _ = run
    together = ac.run(ac.loads(TEXT).plan(), seeds=[3, 4, 5], jobs=3).transmissions
    assert together.filter(pl.col("run") == 0).equals(data.transmissions)


BUFFERS = f"""
duration = "4s"
{dumbbell("10Mbit", "20ms", "50p")}
[[flows]]
congestion = "reno"
tcp = {{ receive_window = "16KiB" }}
slow_reader = {{ rate = "400kbit", pause = {{ at = "0s", for = "1s", every = "2s" }} }}
[[flows]]
congestion = "reno"
tcp = {{ send_buffer = "8KiB", tso_batching = false }}
[record]
pcap = ["senders", "receivers"]
"""


def test_what_limits_are_the_buffers_of_the_hosts():
    rows = ac.run(ac.loads(BUFFERS).plan(), seeds=[3]).transmissions
    new = rows.filter(pl.col("kind") == "data", pl.col("cause") == "new_data")
    unread, unsent = (Counter(new.filter(pl.col("flow") == flow)["limit"].to_list()) for flow in (0, 1))
    assert unread["receiver"] > 0.95 * (unread.total() - unread["nothing"])
    assert unsent["send_buffer"] > 0.95 * (unsent.total() - unsent["nothing"])
    probes = rows.filter(pl.col("kind") == "window_probe")
    assert set(probes["flow"]) == {0}
    assert set(probes["cause"]) == {"other"}
    assert probes["payload_bytes"].sum() == 0
