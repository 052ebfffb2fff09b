"""Measurements of iperf3: documents and streams, TCP and UDP, whole and interrupted."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tests.importers.test_importing import DATA, call, metrics, rejected, saved

from ackclock import importers
from ackclock.figures import curves
from ackclock.metrics import METRICS, runs


def test_iperf3_reports_windows_round_trips_bytes_and_retransmissions():
    data = importers.read([DATA / "tcp.json"])
    flows, samples = data.flows, data.flow_samples
    assert flows["source"].to_list() == ["10.9.0.1:33606", "10.9.0.1:33616"]
    assert set(flows["destination"]) == {"10.9.0.2:5201"}
    assert set(flows["congestion"]) == {"cubic"}
    assert flows["delivered_bytes"].to_list() == [2631016, 2481872]
    assert flows["sent_bytes"].to_list() == [2832288, 2671560]
    assert flows["retransmissions"].to_list() == [0, 0]
    assert flows["base_rtt_s"].to_list() == pytest.approx([0.041904, 0.048923])
    assert samples.height == 8
    assert metrics(data)["retransmissions"] == 0
    second = samples.filter((samples["flow"] == 0) & samples["time_s"].is_between(0.9, 1.1)).row(0, named=True)
    assert (second["cwnd"], second["srtt_s"]) == (pytest.approx(95568 / 1448), pytest.approx(0.058149))
    assert samples["time_s"].n_unique() == 4
    assert flows["start_s"].to_list() == [0.0, 0.0]
    assert data.manifest["imported"]["began_s"] == [1795442506.0]
    assert data.queue_samples.height == data.links.height == data.events.height == 0
    assert samples["ssthresh"].null_count() == samples.height


@pytest.mark.parametrize("name", ["tcp.json", "reverse.json", "server.json"])
def test_goodput_of_tcp_is_that_which_iperf3_computes_for_the_receivers(name):
    received = json.loads((DATA / name).read_text())["end"]["sum_received"]
    data = importers.read([DATA / name])
    assert metrics(data)["goodput_bps"] == pytest.approx(received["bits_per_second"], rel=2e-4)


def test_retransmissions_of_an_import_are_counted_where_packets_are_not(tmp_path):
    data = importers.read([DATA / "bidir.json"])
    assert metrics(data)["retransmissions"] == 12 + 1
    assert "retransmission_rate" not in metrics(data)
    groups = data.metrics()["groups"]
    assert [groups[name]["retransmissions"]["mean"] for name in ("bbr up", "bbr down")] == [12, 1]
    row = next(
        line for line in call("import", DATA / "bidir.json", "--out", tmp_path).output.splitlines() if "retrans" in line
    )
    assert row.split() == ["retransmitted", "12", "packets", "1", "packets"]
    (part,) = runs(data, (0.0, 0.5))
    assert METRICS["retransmissions"].function(part) is None


def test_fairness_of_a_single_flow_is_not_shown(tmp_path):
    assert "Jain" not in call("import", DATA / "reverse.json", "--out", tmp_path / "one").output
    assert "Jain" in call("import", DATA / "tcp.json", "--out", tmp_path / "two").output


def test_goodput_of_uneven_intervals_is_that_of_each():
    """The curve at a sample is what was delivered since the one before, however long that took."""
    data = importers.read([DATA / "tcp.json"])
    drawn = curves.goodputs(next(runs(data)))
    first = data.flow_samples.filter(data.flow_samples["flow"] == 0).sort("time_s")
    bytes_ = np.diff(first["delivered_bytes"].to_numpy(), prepend=0)
    assert drawn.values[:, 0] == pytest.approx(8 * bytes_ / np.diff(first["time_s"].to_numpy(), prepend=0.0))


def test_iperf3_in_reverse_has_the_other_direction_and_no_window():
    data = importers.read([DATA / "reverse.json"])
    (flow,) = data.flows.to_dicts()
    assert (flow["source"], flow["destination"]) == ("10.9.0.2:5201", "10.9.0.1:33628")
    assert flow["retransmissions"] == 5
    assert flow["base_rtt_s"] is None
    assert set(data.flow_samples["cwnd"]) == {None}
    assert data.plan.groups[0].name == "cubic down"


@pytest.mark.parametrize(
    ("name", "sent", "block_bytes", "end_s"),
    [("udp.json", 863, 1448, 2.001681), ("udp-3.21.json", 153, 32768, 2.001272)],
)
def test_iperf3_of_udp_is_no_tcp(name, sent, block_bytes, end_s):
    data = importers.read([DATA / name])
    (flow,) = data.flows.to_dicts()
    assert (flow["congestion"], flow["sent_packets"], flow["dropped_packets"]) == ("udp", sent, 0)
    assert flow["delivered_bytes"] == sent * block_bytes
    assert "goodput_bps" not in metrics(data)
    assert metrics(data)["udp_goodput_bps"] == pytest.approx(8 * sent * block_bytes / end_s, rel=1e-3)
    assert metrics(data)["udp_loss_rate"] == 0


def test_lost_datagrams_of_iperf3_have_not_arrived(tmp_path):
    complete = json.loads((DATA / "udp.json").read_text())
    complete["end"]["streams"][0]["udp"]["lost_packets"] = 63
    data = importers.read([saved(tmp_path, "lossy.json", complete)])
    assert data.flows["delivered_bytes"].to_list() == [800 * 1448]
    assert metrics(data)["udp_loss_rate"] == pytest.approx(63 / 863)


def stream_of(name: str, *, error: str | None = None) -> list[str]:
    """Return the events of `--json-stream` for what `--json` wrote."""
    complete = json.loads((DATA / name).read_text())
    events = [{"event": "start", "data": complete["start"]}]
    events += [{"event": "interval", "data": interval} for interval in complete["intervals"]]
    if error:
        events.append({"event": "error", "data": error})
    return [json.dumps(event) for event in (*events, {"event": "end", "data": complete["end"]})]


def test_a_stream_of_iperf3_is_what_its_json_is(tmp_path):
    for name in ("tcp.json", "udp.json", "reverse.json"):
        path = saved(tmp_path, name, "\n".join(stream_of(name)))
        assert metrics(importers.read([path])) == metrics(importers.read([DATA / name]))
    data = importers.read([DATA / "stream.json"])
    assert data.flows.select("delivered_bytes", "congestion").row(0) == (5111808, "bbr")
    assert data.flow_samples.height == 4
    assert "notes" not in data.manifest["imported"]


def test_a_stream_that_breaks_off_keeps_what_is_complete(tmp_path):
    lines = stream_of("tcp.json")
    for text, until in [("\n".join(lines[:3]), "1"), ("\n".join(lines[:4])[:-20], "1")]:
        path = saved(tmp_path, "cut.json", text)
        data = importers.read([path])
        assert data.flow_samples.height == 4
        (note,) = data.manifest["imported"]["notes"]
        assert f"cut.json: the test has no end; its first {until}" in note
        assert "has no end" in call("import", path, "--out", tmp_path / "out").stderr
    assert "intervals: found no streams" in rejected(saved(tmp_path, "cut.json", lines[0]))
    broken = "\n".join([*lines[:2], lines[2][:-9], *lines[3:]])
    assert "cut.json:3: found broken JSON" in rejected(saved(tmp_path, "cut.json", broken))
    assert "JSON of another program" in rejected(saved(tmp_path, "x.json", '{"event": "suite", "data": 1}\n{}'))


def test_an_interrupted_test_keeps_its_intervals(tmp_path):
    interrupted = "interrupt - the client has terminated"
    complete = json.loads((DATA / "tcp.json").read_text())
    without_end = {key: value for key, value in complete.items() if key != "end"}
    for name, content, reason in [
        ("json", {**complete, "error": interrupted}, f"was interrupted ({interrupted})"),
        ("stream", "\n".join(stream_of("tcp.json", error=interrupted)), f"was interrupted ({interrupted})"),
        ("endless", without_end, "has no end"),
    ]:
        data = importers.read([saved(tmp_path, name, content)])
        assert data.flow_samples.height == 8
        (note,) = data.manifest["imported"]["notes"]
        assert f"{name}: the test {reason}; its first 2" in note
    failed = {**complete, "intervals": [], "error": interrupted}
    assert f"found a test that failed ({interrupted})" in rejected(saved(tmp_path, "x.json", failed))


def test_intervals_in_any_order_are_sorted(tmp_path):
    complete = json.loads((DATA / "tcp.json").read_text())
    complete["intervals"].reverse()
    shuffled = importers.read([saved(tmp_path, "shuffled.json", complete)])
    assert shuffled.flow_samples.equals(importers.read([DATA / "tcp.json"]).flow_samples)
    complete["intervals"].append(complete["intervals"][0])
    message = rejected(saved(tmp_path, "twice.json", complete))
    assert "intervals[4].streams[0].end: found" in message
    assert "expected intervals that end one after the other" in message


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("name", ["tcp.json", "stream.json", "ss.log"])
def test_files_of_powershell_are_read(tmp_path, name, encoding):
    text = "\ufeff" + (DATA / name).read_text().replace("\n", "\r\n")
    wide = importers.read([saved(tmp_path, name, text.encode(encoding))])
    assert metrics(wide) == metrics(importers.read([DATA / name]))


def test_iperf3_in_both_directions_has_a_flow_for_each():
    flows = importers.read([DATA / "bidir.json"]).flows
    assert flows["source"].to_list() == ["127.0.0.1:38960", "127.0.0.1:5201"]
    assert flows["delivered_bytes"].to_list() == [227934208, 277872640]


def test_iperf3_at_the_receiver_uses_what_arrived_and_not_what_was_sent():
    (flow,) = importers.read([DATA / "server.json"]).flows.to_dicts()
    assert (flow["source"], flow["destination"]) == ("127.0.0.1:38990", "127.0.0.1:5201")
    assert (flow["delivered_bytes"], flow["sent_bytes"], flow["retransmissions"]) == (1123287040, None, None)


def test_what_iperf3_leaves_out_is_left_out(tmp_path):
    complete = json.loads((DATA / "tcp.json").read_text())
    complete["intervals"][0]["streams"][0]["omitted"] = True
    data = importers.read([saved(tmp_path, "omitted.json", complete)])
    assert data.flow_samples.height == 7
    del complete["end"]["streams"], complete["start"]["tcp_mss_default"], complete["end"]["sender_tcp_congestion"]
    data = importers.read([saved(tmp_path, "less.json", complete)])
    assert set(data.flows["congestion"]) == {"unknown"}
    assert set(data.flow_samples["cwnd"]) == {None}
    assert data.flows["delivered_bytes"].null_count() == 2


def test_files_of_one_test_are_runs_with_intervals():
    data = importers.read([DATA / "tcp.json", DATA / "reverse.json"])
    outcome = data.metrics()
    assert [run["seed"] for run in outcome["runs"]] == [None, None]
    assert outcome["summary"]["goodput_bps"]["n"] == 2
    assert data.plan.groups[1].name == "cubic down"


def test_a_test_that_failed_reports_so():
    assert "found a test that failed (unable to connect to server" in rejected(DATA / "error.json")


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (("intervals", 1, "streams", 0, "bytes"), 1e400, "intervals[1].streams[0].bytes: found Infinity"),
        (("intervals", 1, "streams", 0, "end"), "x", 'intervals[1].streams[0].end: found "x"'),
        (("intervals", 1, "streams"), {}, "intervals[1].streams: found {}; expected a list"),
        (("start", "connected"), None, "start.connected: found nothing; expected a list"),
        (("intervals", 0, "streams", 0, "rtt"), -5, "found -5; expected a number from 0"),
        (("intervals",), [], "intervals: found no streams"),
    ],
)
def test_wrong_values_of_iperf3_are_named(tmp_path, place, value, message):
    complete = json.loads((DATA / "tcp.json").read_text())
    inner = complete
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    assert message in rejected(saved(tmp_path, "x.json", json.dumps(complete)))
