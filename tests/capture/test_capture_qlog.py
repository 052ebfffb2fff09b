"""`ackclock capture` of qlogs: the findings are those of the log's own events."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from ackclock.capture import qlog
from ackclock.capture.diagnosis import diagnose
from ackclock.cli import program
from ackclock.dataset import Dataset


def _log(vantage: str = "server") -> str:
    """Write a second of a sender with a window of 10 datagrams that is full, then used by a tenth of it."""
    lines: list[dict] = [
        {"qlog_version": "0.3", "trace": {"vantage_point": {"type": vantage}, "title": "hand-made"}},
        {"time": 0, "name": "recovery:parameters_set", "data": {"max_datagram_size": 1200}},
        {"time": 0, "name": "recovery:metrics_updated", "data": {"congestion_window": 12000, "ssthresh": 6000}},
    ]
    number = 0
    for round_ in range(20):
        at = 50.0 * round_
        for _ in range(10 if round_ < 10 else 1):
            header = {"packet_type": "1RTT", "packet_number": number}
            lines.append(
                {"time": at, "name": "transport:packet_sent", "data": {"header": header, "raw": {"length": 1200}}}
            )
            number += 1
        if round_ == 5:
            lost = {"header": {"packet_type": "1RTT", "packet_number": number - 1}}
            lines.append({"time": at + 45, "name": "recovery:packet_lost", "data": lost})
        frame = {"frame_type": "ack", "acked_ranges": [[0, number - 1]]}
        lines.append(
            {"time": at + 49, "name": "transport:packet_received", "data": {"frames": [frame], "raw": {"length": 40}}}
        )
        rtts = {"smoothed_rtt": 49, "latest_rtt": 49, "min_rtt": 48}
        lines.append({"time": at + 49, "name": "recovery:metrics_updated", "data": rtts})
    return "".join(f"\x1e{json.dumps(line)}\n" for line in lines)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "server.sqlog"
    path.write_text(_log())
    return path


def _run(*arguments: str):
    return CliRunner().invoke(program.application, ["capture", *arguments])


def test_findings_are_the_logs_own(path):
    (flow,) = qlog.summarise([path]).analysis["flows"]
    assert flow["sender"] == "server"
    assert flow["bytes"] == 109 * 1200
    assert flow["segments_lost"] == 1
    assert flow["retransmissions"]["spurious"] == 1  # round 6 acknowledges it
    assert flow["rtt_min_s"] == pytest.approx(0.048)
    assert flow["internals"]["cwnd_max_bytes"] == 12000
    assert flow["internals"]["ssthresh_last_bytes"] == 6000
    assert flow["internals"]["congestion_events"] == 1
    # Ten rounds with a full window, ten with a tenth of it.
    assert flow["limited"]["cwnd"] == pytest.approx(0.5, abs=0.03)
    assert flow["limited"]["application"] == pytest.approx(0.5, abs=0.03)


def test_a_diagnosis_can_be_made_of_it(path):
    assert diagnose(qlog.summarise([path]).analysis).heading


def test_tables_have_the_internals(path, tmp_path):
    out = tmp_path / "result"
    done = _run(str(path), "--out", str(out))
    assert done.exit_code == 0, done.output
    data = Dataset.read(out)
    assert data.flow_samples["cwnd"].unique().to_list() == [10.0]
    assert data.flow_samples["srtt_s"].drop_nulls().unique().to_list() == [0.049]
    assert data.events["kind"].cast(str).to_list().count("loss") == 1
    assert data.flows["delivered_bytes"].to_list() == [109 * 1200]


def test_json_has_the_keys_of_a_capture(path):
    printed = json.loads(_run(str(path), "--json").stdout)
    assert {"summary", "flows", "files", "path", "vantage"} <= printed.keys()


@pytest.mark.parametrize("option", [["--join"], ["--tables"], ["--segments"], ["--filter", "tcp"]])
def test_options_of_captures_are_rejected_in_one_line(path, option):
    done = _run(str(path), *option)
    assert done.exit_code == 2
    assert done.output.count("\n") == 1


def test_a_capture_among_logs_is_rejected(path, tmp_path):
    other = tmp_path / "x.pcap"
    other.write_bytes(b"\xd4\xc3\xb2\xa1" + bytes(40))
    done = _run(str(path), str(other))
    assert done.exit_code == 2
    assert "qlogs only" in done.output


def test_a_log_without_packets_is_rejected_in_one_line(tmp_path):
    path = tmp_path / "x.sqlog"
    path.write_text(
        '{"qlog_version": "0.3", "trace": {}}\n{"time": 0, "name": "recovery:metrics_updated", "data": {}}\n'
    )
    done = _run(str(path))
    assert done.exit_code == 2
    assert done.output.count("\n") == 1
