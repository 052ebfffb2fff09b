"""Measurements of other programs: what they say is there, what they do not say is null, and nonsense is one line."""

from __future__ import annotations

import copy
import gzip
import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from ackclock import importers
from ackclock.cli.program import application
from ackclock.dataset import Dataset
from ackclock.dataset.result_kind import Kind, kind
from ackclock.errors import InputError

DATA = Path(__file__).parent / "data"

#: Pointer that Git LFS has instead of a large file.
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 12345\n"


def call(*arguments):
    return CliRunner().invoke(application, [str(argument) for argument in arguments])


def metrics(data: Dataset) -> dict:
    (run,) = data.metrics()["runs"]
    return {name: value for name, value in run["metrics"].items() if value is not None}


def saved(tmp_path, name: str, content: str | bytes | dict) -> Path:
    path = tmp_path / name
    text = json.dumps(content) if isinstance(content, dict) else content
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def rejected(*paths, kind=None) -> str:
    with pytest.raises(InputError) as error:
        importers.read(paths, kind)
    assert "\n" not in str(error.value)
    return str(error.value)


# ---- flent ----


def flent(**series) -> dict:
    return {
        "version": 4,
        "x_values": [0.0, 0.2, 0.4, 0.6],
        "results": {name.replace("_", " "): values for name, values in series.items()},
        "metadata": {"NAME": "tcp_2up", "TITLE": "two", "LOCAL_HOST": "here", "HOST": "there", "SERIES_META": {}},
    }


def test_flent_has_a_flow_for_each_tcp_series(tmp_path):
    complete = flent(TCP_upload=[8.0, 8.0, None, 8.0], TCP_download=[4.0] * 4, TCP_upload_sum=[8.0] * 4)
    complete["results"]["TCP upload::tcp_cwnd"] = [10, 20, None, 40]
    complete["results"]["TCP upload::tcp_rtt"] = [20.5, None, 30, 40]
    complete["results"]["Ping (ms) ICMP"] = [20.0, 21.0, 22.0, 23.0]
    complete["results"]["Ping (ms) avg"] = [20.0, 21.0, 22.0, 23.0]
    complete["metadata"]["SERIES_META"] = {"TCP upload": {"CONGESTION_CONTROL": "bbr"}}
    data = importers.read([saved(tmp_path, "two.flent", gzip.compress(json.dumps(complete).encode()))])
    assert data.plan.name == "tcp_2up two"
    assert [group.name for group in data.plan.groups] == ["TCP upload", "TCP download", "Ping (ms) ICMP"]
    assert data.flows["congestion"].to_list() == ["bbr", "unknown", "udp"]
    assert data.flows["source"].to_list() == ["here", "there", "here"]
    up = data.flow_samples.filter(data.flow_samples["flow"] == 0)
    assert up["cwnd"].to_list() == [10, 20, 40]
    assert up["srtt_s"].to_list() == [pytest.approx(0.0205), None, pytest.approx(0.04)]
    assert up["delivered_bytes"].to_list() == [0, 200_000, 600_000]  # 8 Mb/s over 0.2 s, and over 0.4 s
    assert metrics(data)["goodput_bps"] == pytest.approx(12e6)
    assert metrics(data)["goodput_up_bps"] == pytest.approx(8e6)
    assert metrics(data)["goodput_down_bps"] == pytest.approx(4e6)


def test_goodput_of_flent_is_its_own_mean_and_pings_are_measured_under_load(tmp_path):
    """flent's StatsFormatter takes the mean over the values that are neither null nor 0."""
    complete = flent()
    complete["x_values"] = [float(second) for second in range(10)]
    complete["results"] = {
        "TCP upload": [None, None, None, 10.0, 20.0, 0.0, None, 30.0, None, None],
        "Ping (ms) ICMP": [10.0] * 3 + [50.0] * 5 + [10.0] * 2,
    }
    data = importers.read([saved(tmp_path, "quiet.flent", complete)])
    found = metrics(data)
    assert found["goodput_bps"] == pytest.approx(20e6)
    assert found["goodput_flow_bps"] == [pytest.approx(20e6)]
    assert "goodput_up_bps" not in found
    assert (data.plan.warmup_s, data.plan.duration_s) == (2.0, 7.0)
    assert found["rtt_mean_s"] == pytest.approx((10 + 5 * 50) / 6 / 1000)
    assert found["rtt_p95_s"] == pytest.approx(0.05)
    complete["results"]["TCP upload::tcp_rtt"] = [None] * 3 + [70.0] * 5 + [None] * 2
    both = metrics(importers.read([saved(tmp_path, "both.flent", complete)]))
    assert both["rtt_mean_s"] == pytest.approx(0.07)


def test_voip_and_udp_of_flent_are_flows_of_datagrams(tmp_path):
    complete = flent(TCP_upload=[1.0] * 4, UDP_upload=[2.0] * 4)
    complete["results"] |= {
        "VoIP": [None] * 4,
        "VoIP::bitrate": [64.0, 0.0, 32.0, 64.0],
        "VoIP::delay": [20.0] * 4,
        "VoIP::jitter": [1.0] * 4,
        "VoIP::loss": [0, 3, 1, 0],
    }
    data = importers.read([saved(tmp_path, "voip.flent", complete)])
    assert data.flows["congestion"].to_list() == ["unknown", "udp", "udp"]
    assert [group.name for group in data.plan.groups] == ["TCP upload", "UDP upload", "VoIP"]
    assert data.flows["dropped_packets"].to_list() == [None, None, 4]
    assert data.flows["delivered_bytes"].to_list()[2] == pytest.approx((32e3 + 64e3) / 8 * 0.2, abs=1)
    assert metrics(data)["udp_goodput_bps"] == pytest.approx(2e6 + (64e3 + 32e3 + 64e3) / 3)
    assert metrics(data)["goodput_bps"] == pytest.approx(1e6)


def test_flent_of_a_real_ping():
    data = importers.read([DATA / "ping.flent.gz"])
    assert data.flows["congestion"].to_list() == ["udp", "udp"]
    assert data.flow_samples["srtt_s"].min() == pytest.approx(0.043e-3, rel=0.01)


@pytest.mark.parametrize(
    ("complete", "message"),
    [
        (flent(CPU_load=[1.0] * 4), "results: found the test 'tcp_2up' with CPU load; expected series of TCP"),
        (flent(), "with no series"),
        (flent(Qdisc_drops=[1.0] * 4), "found the test 'tcp_2up' with Qdisc drops; expected series of TCP"),
        (
            flent(TCP_upload=[None] * 4),
            "found the test 'tcp_2up' with TCP upload without a value; expected series of TCP",
        ),
        (flent(TCP_upload=[1.0]), "results.TCP upload: found [1.0]; expected 4 values"),
        (flent(TCP_upload=[1.0, "2", 3, 4]), 'results.TCP upload[1]: found "2"; expected a number'),
        (flent(TCP_upload=[1.0, float("nan"), 3, 4]), "results.TCP upload[1]: found NaN; expected a number"),
        (flent(TCP_upload=[1.0, -1, 3, 4]), "found -1; expected a number from 0"),
        (flent(TCP_upload=[1.0, True, 3, 4]), "found true; expected a number"),
        ({**flent(), "x_values": [0, 1, 1, 2]}, "x_values: found times that do not grow"),
        ({**flent(), "x_values": [0, 1e9]}, "x_values[1]: found 1000000000.0; expected a number"),
        ({**flent(), "version": 99}, "version: found 99; expected a version up to 4"),
        ({**flent(), "results": 7}, "results: found 7; expected a table"),
    ],
)
def test_flent_of_another_kind_is_a_line_with_its_place(tmp_path, complete, message):
    assert message in rejected(saved(tmp_path, "other.flent", complete))


# ---- logs of ss and tc ----


def test_ss_and_tc_jointly_are_one_run():
    data = importers.read([DATA / "ss.log", DATA / "tc.log"])
    assert len(data.runs) == 1
    assert data.flows.height == 3
    busy = data.flows.filter(data.flows["congestion"] == "cubic").row(0, named=True)
    assert busy["destination"] == "10.9.0.2:5201"
    assert busy["base_rtt_s"] == pytest.approx(6e-6)
    first = data.flow_samples.filter(data.flow_samples["flow"] == 1).row(0, named=True)
    assert (first["cwnd"], first["in_flight"], first["srtt_s"]) == (21, 21, pytest.approx(1.186e-3))
    (queue,) = [link for link in data.plan.links if link.bottleneck]
    assert (queue.name, queue.queue.discipline) == ("pfifo 10: at 1:1", "pfifo")
    fifo = data.queue_samples.filter(data.queue_samples["link"] == 1)
    assert fifo["departures_p"].to_list()[0] is None
    assert fifo["departures_p"].drop_nulls().sum() == 3760 - 16  # before the first look
    assert {"goodput_bps", "rtt_mean_s", "queue_mean_p"} <= metrics(data).keys()
    assert data.links.height == 0


def test_logs_of_one_line_each_and_of_json_are_the_same():
    data = importers.read([DATA / "oneline.log"], "ss")
    assert set(data.flows["congestion"]) == {"bbr", "cubic"}
    assert data.flow_samples["ssthresh"].drop_nulls().to_list()[0] == 30
    data = importers.read([DATA / "oneline.log"], "tc")
    assert [link.queue.discipline for link in data.plan.links] == ["htb", "pfifo"]
    assert data.queue_samples["backlog_bytes"].max() == 84784


def test_tc_in_kilobytes_with_marks_and_a_new_discipline(tmp_path):
    log = """\
2026-11-23T14:00:00.000+00:00
qdisc fq_codel 0: dev eth0 root refcnt 2 limit 10240p flows 1024 target 5ms
 Sent 1000 bytes 10 pkt (dropped 1, overlimits 0 requeues 0)
 backlog 2Kb 3p requeues 0
  maxpacket 1514 drop_overlimit 0 new_flow_count 1 ecn_mark 2
2026-11-23T14:00:01.500+00:00
qdisc fq_codel 0: dev eth0 root refcnt 2 limit 10240p flows 1024 target 5ms
 Sent 1000 bytes 4 pkt (dropped 0, overlimits 0 requeues 0)
 backlog 0b 0p requeues 0
  maxpacket 1514 drop_overlimit 0 new_flow_count 1 ecn_mark 5
"""
    rows = importers.read([saved(tmp_path, "tc.log", log)]).queue_samples
    assert rows["time_s"].to_list() == [0.0, 1.5]
    assert rows["backlog_bytes"].to_list() == [2048, 0]
    assert rows["departures_p"].to_list() == [None, 4]
    assert rows["marks_p"].to_list() == [None, 3]


def test_queues_of_several_devices_are_several(tmp_path):
    look = """\
{}
qdisc htb 10: dev q0 root refcnt 3
 Sent 0 bytes 0 pkt (dropped 0, overlimits 0 requeues 0)
 backlog 0b 0p requeues 0
qdisc pfifo 20: dev q0 parent 10:1 limit 8p
 Sent 0 bytes 0 pkt (dropped {}, overlimits 0 requeues 0)
 backlog 0b 0p requeues 0
qdisc pfifo 10: dev q1 root limit 8p
 Sent 0 bytes 0 pkt (dropped {}, overlimits 0 requeues 0)
 backlog 0b 0p requeues 0
"""
    log = look.format(1700000000, 0, 0) + look.format(1700000001, 3, 5)
    links = importers.read([saved(tmp_path, "tc.log", log)]).plan.links
    assert [(link.name, link.bottleneck) for link in links] == [
        ("q0 htb 10:", False),
        ("q0 pfifo 20: at 10:1", False),
        ("q1 pfifo 10:", True),
    ]


def test_a_connection_that_was_present_before_counts_from_the_first_read(tmp_path):
    line = "ESTAB 0 0 10.0.0.1:1 10.0.0.2:2 reno wscale:7,7 rto:204 rtt:1/2 cwnd:{} bytes_acked:{} retrans:0/{}\n"
    log = "".join(f"{1.7e9 + k:.1f} {line.format(10 + k, 1000 + 500 * k, k)}" for k in range(4))
    data = importers.read([saved(tmp_path, "ss.log", log)])
    assert data.flows.select("delivered_bytes", "retransmissions", "congestion").row(0) == (1500, 3, "reno")
    assert metrics(data)["goodput_bps"] == pytest.approx(4000)


def test_a_connection_that_arrived_later_began_before_it_was_captured(tmp_path):
    line = "ESTAB 0 0 10.0.0.1:{} 10.0.0.2:2\n\t reno wscale:7,7 rto:204 rtt:1/2 cwnd:10 bytes_acked:{}\n"
    log = f"1700000000\n{line.format(7, 5)}1700000001\n1700000002\n{line.format(8, 4000)}1700000003\n"
    (flow,) = importers.read([saved(tmp_path, "ss.log", log)]).flows.to_dicts()
    assert (flow["source"], flow["start_s"], flow["end_s"]) == ("10.0.0.1:8", 1.0, 2.0)
    assert flow["delivered_bytes"] == 4000


@pytest.mark.parametrize(
    ("log", "message"),
    [
        ("ESTAB 0 0 a:1 b:2\n rto:1 cwnd:1", ":1: found 'ESTAB 0 0 a:1 b:2' before any time"),
        ("1700000000\nESTAB 0 0 a:1 b:2\n rto:1 cwnd:1e400", ":3: found '1e400' for cwnd"),
        ("1700000000\nESTAB 0 0 a:1 b:2\n rto:1 cwnd:1x", ":3: found '1x' for cwnd"),
        ("1700000000\n rto:1 cwnd:1", ":1: found no connection with its details at two times"),
        ("1700000009\n1700000001\nESTAB 0 0 a:1 b:2\n rto:1 cwnd:1", ":2: found a time -8 s after the one before"),
        ("2026-99-99 00:00:00\nESTAB 0 0 a:1 b:2\n rto:1 cwnd:1", ":1: found '2026-99-99 00:00:00'"),
        ("1700000000\nqdisc pfifo 1: root\n backlog 99999999999999999999b 1p", ":3: found '99999999999999999999'"),
        ('1700000000\n[{"kind": "pfifo", "packets": []}]\nqdisc pfifo 1: root', "line 2[0].packets: found []"),
        ('1700000000\n[{"kind"\nqdisc pfifo 1: root', ":2: found broken JSON"),
    ],
)
def test_logs_that_report_nonsense_are_a_line_with_its_number(tmp_path, log, message):
    assert message in rejected(saved(tmp_path, "x.log", log))


# ---- TEACUP ----


def test_teacup_tables_of_one_test_are_a_run(tmp_path):
    flow = "exp_20150401_tcp_cubic_run_0_172.16.10.2_5001_172.16.11.2_80"
    files = [
        saved(tmp_path, f"{flow}_web10g.cwnd", "1427900000.1,14480\n1427900000.2,28960\n"),
        saved(tmp_path, f"{flow}_web10g.tcp_rtt", "1427900000.1,40,41\n1427900000.2,50,60\n"),
        saved(tmp_path, f"{flow}.psiz.gz", gzip.compress(b"1427900000.05,1000\n1427900000.15,500\n")),
    ]
    data = importers.read(files)
    assert len(data.runs) == 1
    assert data.plan.name == "exp_20150401_tcp_cubic_run_0"
    (row,) = data.flows.to_dicts()
    assert (row["source"], row["destination"]) == ("172.16.10.2:5001", "172.16.11.2:80")
    assert data.flow_samples["cwnd"].to_list() == [10, 20]
    assert data.flow_samples["srtt_s"].to_list() == pytest.approx([0.04, 0.05])
    assert data.flow_samples["delivered_bytes"].to_list() == [1000, 1500]


def test_teacup_logs_of_web10g_are_read_by_the_names_of_their_columns(tmp_path):
    log = """\
Timestamp,Cid,LocalAddress,LocalPort,RemAddress,RemPort,SmoothedRTT,CurCwnd,CurMSS,CurSsthresh,ThruOctetsAcked,SegsRetrans
1427900000.1,7,10.0.0.1,5001,10.0.0.2,80,40,14000,1400,2147483647,0,0
1427900000.2,7,10.0.0.1,5001,10.0.0.2,80,44,28000,1400,14000,28000,2
1427900000.3,7,10.0.0.1,50
"""
    data = importers.read([saved(tmp_path, "exp_1_host1_web10g.log", log)])
    assert data.flow_samples["cwnd"].to_list() == [10, 20]
    assert data.flows["retransmissions"].to_list() == [2]
    assert data.flow_samples["delivered_bytes"].to_list() == [0, 28000]
    cut = log.replace("40,14000", "40")
    assert ":2: found 11 columns; expected 12" in rejected(saved(tmp_path, "exp_2_host1_web10g.log", cut))
    assert "names of the columns" in rejected(saved(tmp_path, "exp_3_host1_web10g.log", "1,2,3\n"))
    assert "found another name" in rejected(saved(tmp_path, "x.csv", log), kind="teacup")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "t_10.0.0.1_5001_10.0.0.2_80_siftr.cwnd",
            "1427900000.1,14480\nx,1\n",
            ":2: found 'x' for a time; expected a number",
        ),
        (
            "t_10.0.0.1_5001_10.0.0.2_80_ttprobe.cwnd",
            "1427900000.1,nan\n",
            ":1: found 'nan' for cwnd; expected a number",
        ),
        ("t_10.0.0.1_5001_10.0.0.2_80_web10g.tcp_rtt", " \n", ":1: found no samples; expected a table of TEACUP"),
        ("t_10.0.0.1_5001_10.0.0.2_80.rtt", "1427900000.1,2\n", "found other text; expected a data file of flent"),
    ],
)
def test_teacup_tables_of_another_kind_are_a_line(tmp_path, name, content, message):
    assert message in rejected(saved(tmp_path, name, content))


# ---- whatever comes ----


def test_what_is_imported_goes_through_every_view(tmp_path):
    out = tmp_path / "result"
    result = call("import", DATA / "ss.log", DATA / "tc.log", "--out", out)
    assert result.exit_code == 0, result.output
    assert "Total goodput" in result.stdout
    assert kind(out) is Kind.IMPORTED
    assert json.loads(call("import", DATA / "tcp.json", "--out", out, "--json").stdout)["engine"] is None
    assert call("check", out).exit_code == 0
    assert call("report", out).exit_code == 0
    assert call("plot", out, "cwnd").exit_code == 0
    assert Dataset.read(out).manifest["imported"]["files"][0]["kind"] == "iperf3"


def test_an_import_has_a_default_folder_and_a_default_figure(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("ss.log", "tcp.json", "ping.flent.gz"):
        shutil.copy(DATA / name, tmp_path)
    for name, folder, figure in (
        ("ss.log", "ss-import", "cwnd"),
        ("tcp.json", "tcp-import", "cwnd"),
        ("ping.flent.gz", "ping-import", "goodput"),
    ):
        assert f"wrote results/{folder}" in call("import", name).output
        assert call("plot", f"results/{folder}").stdout == f"wrote results/{folder}/{figure}.png\n"
    assert call("import", "ss.log").exit_code == 0
    Path("other").mkdir()
    shutil.copy(DATA / "tc.log", "other/ss.log")
    result = call("import", "other/ss.log")
    assert result.exit_code == 2
    assert result.stderr == "results/ss-import: found measurements of other files; expected another folder (--out)\n"


def test_a_folder_of_another_kind_is_left_single(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes").write_text("mine")
    result = call("import", DATA / "tcp.json", "--out", tmp_path / "mine")
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x", b"", "found an empty file; expected a data file of flent"),
        ("x.json", b"{}", "found JSON of another program"),
        ("x.json", b"{" * 100_000, "broken JSON"),
        ("x.json", b'{"a":' * 100_000, "nested too deeply"),
        ("x.json", b'{"start":' + b"9" * 5000 + b"}", "thousands of digits"),
        ("x.json", b'{"start": {}, "intervals": [', ":1: found broken JSON"),
        ("x.gz", gzip.compress(b"x" * 1000, mtime=0)[:20], "found gzip that is cut off"),
        ("x.gz", b"\x1f\x8b" + bytes(50), "found damaged gzip"),
        (
            "x.gz",
            POINTER,
            "found a Git LFS pointer instead of the file (`git lfs pull` fetches it); expected measurements",
        ),
        ("x", b"\xff\xfd\x00", "found byte 0, which is no text"),
        ("x", b"\xff\xfe\x00", "found byte 2, which is no text"),
    ],
)
def test_files_that_are_none_are_one_line(tmp_path, name, content, message):
    assert message in rejected(saved(tmp_path, name, content))


def test_a_small_file_that_becomes_a_large_one_is_rejected(tmp_path, monkeypatch):
    monkeypatch.setattr("ackclock.importers.text.LONGEST", 1 << 20)
    assert "more than 1 MiB in gzip" in rejected(saved(tmp_path, "bomb.gz", gzip.compress(bytes(1 << 22))))


def test_names_with_control_characters_stay_text(tmp_path):
    complete = flent(**{"TCP_upload\n\x1b[2J": [1.0, "x", 3, 4]})
    message = rejected(saved(tmp_path, "x.flent", complete))
    assert message.isprintable()
    complete = flent(**{"TCP_upload\x1b[2J": [1.0, 2, 3, 4]})
    complete["metadata"]["TITLE"] = "a\nb\x07"
    plan = importers.read([saved(tmp_path, "x.flent", complete)]).plan
    assert (plan.name, plan.groups[0].name) == ("tcp_2up a b?", "TCP upload?[2J")
    failed = {"start": {}, "intervals": [], "end": {}, "error": "a\nb"}
    assert "(a b)" in rejected(saved(tmp_path, "x.json", failed))


#: Whatever JSON can say.
JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5) | st.integers() | st.just(1e308),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def places(value, at=()) -> list[tuple]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, item in inner for place in ((*at, key), *places(item, (*at, key)))]


def tried(path: Path, kind: str | None = None) -> None:
    """It is read, and measured, or refused with a line."""
    try:
        data = importers.read([path], kind)
    except InputError as error:
        assert "\n" not in str(error)
    else:
        json.dumps(data.metrics(), allow_nan=False)


@settings(max_examples=60)
@given(st.data())
@pytest.mark.parametrize("name", ["tcp.json", "udp.json", "udp-3.21.json", "ping.flent.gz"])
def test_any_value_in_any_place_is_read_or_rejected(tmp_path_factory, name, data):
    content = (DATA / name).read_bytes()
    complete = json.loads(gzip.decompress(content) if name.endswith("gz") else content)
    changed = copy.deepcopy(complete)
    *way, last = data.draw(st.sampled_from(places(complete)))
    inner = changed
    for key in way:
        inner = inner[key]
    inner[last] = data.draw(JSON)
    tried(saved(tmp_path_factory.getbasetemp(), "any.json", json.dumps(changed)))


@settings(max_examples=60)
@given(st.data())
@pytest.mark.parametrize("name", ["ss.log", "tc.log", "oneline.log"])
def test_any_change_of_a_log_is_read_or_rejected(tmp_path_factory, name, data):
    text = (DATA / name).read_text()
    begin = data.draw(st.integers(0, len(text)))
    end = min(len(text), begin + data.draw(st.integers(0, 50)))
    changed = text[:begin] + data.draw(st.text(max_size=20)) + text[end:]
    path = saved(tmp_path_factory.getbasetemp(), "any.log", changed.encode("utf-8", "replace"))
    tried(path, "tc" if name == "tc.log" else "ss")
    tried(path)


@given(st.binary(max_size=300) | st.text(max_size=300).map(lambda text: text.encode("utf-8", "replace")))
@pytest.mark.parametrize("kind", importers.KINDS)
def test_any_bytes_are_rejected_in_one_line(tmp_path_factory, kind, content):
    tried(saved(tmp_path_factory.getbasetemp(), "t_a_1_b_2.cwnd", content), kind)
