"""Flows of a run as qlog: read again, they are what the result has."""

from __future__ import annotations

import json

import polars as pl
import pytest
from click.testing import CliRunner
from small_networks import dumbbell

from ackclock import judge, qlog
from ackclock.dataset import Dataset
from ackclock.errors import InputError
from ackclock.exporters import qlog as exported
from ackclock.qlog import Lost, Metrics, Sent

SCENARIO = f"""
name = "Two flows"
duration = "6s"
{dumbbell("10Mbit", "40ms")}
[[flows]]
congestion = "cubic"
[[flows]]
congestion = "reno"
start = "1s"
[record]
pcap = PCAP
cubic_state = true
"""


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Dataset:
    return _run(tmp_path_factory, "true")


@pytest.fixture(scope="module")
def plain(tmp_path_factory) -> Dataset:
    return _run(tmp_path_factory, "false")


def _run(tmp_path_factory, pcap: str) -> Dataset:
    folder = tmp_path_factory.mktemp("run")
    (folder / "two.toml").write_text(SCENARIO.replace("PCAP", pcap))
    from ackclock.cli import program

    out = folder / "result"
    done = CliRunner().invoke(
        program.application, ["run", str(folder / "two.toml"), "--no-report", "--out", str(out), "--seed", "1"]
    )
    assert done.exit_code == 0, done.output
    return Dataset.read(out)


def _connections(data: Dataset, **options) -> list[qlog.Connection]:
    from pathlib import Path

    return qlog.connections(qlog.parse(Path("x.qlog"), "".join(exported.write(data, **options))))


@pytest.mark.parametrize("schema", exported.SCHEMAS)
@pytest.mark.parametrize("sequential", [True, False])
def test_both_forms_of_both_versions_have_the_same_facts(data, schema, sequential):
    found = _connections(data, schema=schema, sequential=sequential)
    assert len(found) == 2
    sent = data.transmissions.filter((pl.col("end") == "sender") & (pl.col("payload_bytes") > 0))
    for flow, connection in enumerate(found):
        of_flow = sent.filter(pl.col("flow") == flow)
        assert connection.sent_packets == of_flow.height
        assert connection.sent_bytes == of_flow["payload_bytes"].sum()
        assert connection.lost_packets == data.flows["retransmissions"][flow]
        # What was delivered at the end, but for what is under way or above a hole.
        delivered = data.flows["delivered_bytes"][flow]
        assert 0 <= delivered - connection.acked_bytes < 0.03 * delivered


def test_windows_are_those_of_the_samples(data):
    connection = _connections(data, flows=[0])[0]
    samples = data.flow_samples.filter(pl.col("flow") == 0)
    windows = [fact.cwnd_bytes for fact in connection.facts if isinstance(fact, Metrics) and fact.cwnd_bytes]
    mss = data.plan.groups[0].tcp.mss_bytes
    assert max(windows) == samples["cwnd"].max() * mss
    assert connection.max_datagram_bytes == mss


def test_a_loss_follows_the_transmission_of_its_packet(data):
    connection = _connections(data, flows=[1])[0]
    sent = {fact.packet.number: fact.time_s for fact in connection.facts if isinstance(fact, Sent)}
    for fact in connection.facts:
        if isinstance(fact, Lost):
            assert fact.packet is not None
            assert fact.time_s > sent[fact.packet.number]


def test_qvis_finds_its_keys(data):
    """qvis wants `qlog_version` 0.3 with JSON-SEQ and a trace in the first record, or `traces` in the only one."""
    first = json.loads(next(iter(exported.write(data))).strip("\x1e"))
    assert (first["qlog_version"], first["qlog_format"]) == ("0.3", "JSON-SEQ")
    assert "vantage_point" in first["trace"]
    whole = json.loads("".join(exported.write(data, sequential=False)))
    assert (whole["qlog_version"], len(whole["traces"])) == ("0.3", 2)
    times = [event["time"] for event in whole["traces"][0]["events"]]
    assert times == sorted(times)


def test_the_draft_names_its_schemas(data):
    first = json.loads(next(iter(exported.write(data, schema="draft"))).strip("\x1e"))
    assert first["file_schema"] == "urn:ietf:params:qlog:file:sequential"
    assert first["trace"]["event_schemas"][0].startswith("urn:ietf:params:qlog:events:quic-")


def test_internals_of_cubic_are_events_of_their_own(data):
    events = json.loads("".join(exported.write(data, sequential=False, flows=[0])))["traces"][0]["events"]
    states = [event["data"] for event in events if event["name"] == "ackclock:cubic_state_updated"]
    assert states
    assert {"w_cubic", "w_est", "k"} <= states[0].keys()


def test_without_transmissions_no_packet_is_invented(plain):
    connection = _connections(plain, flows=[0])[0]
    assert connection.sent_packets == connection.acked_packets == 0
    assert connection.lost_packets == plain.flows["retransmissions"][0]
    assert any(isinstance(fact, Metrics) for fact in connection.facts)


def test_our_reno_obeys_the_judge(data):
    """Our own Reno is TCP's in whole segments with PRR; no window of it leaves RFC 9002 by more than the tolerance."""
    result = judge.judge_connection(_connections(data, flows=[1])[0], "reno")
    assert not result.deviations
    assert result.agreed > 50


@pytest.mark.parametrize("options", [{"schema": "0.5"}, {"run": 7}, {"flows": [9]}])
def test_bad_options_are_rejected_in_one_line(data, options):
    with pytest.raises(InputError) as caught:
        list(exported.write(data, **options))
    assert "\n" not in str(caught.value)


def test_command_writes_by_the_name_of_the_file(data, tmp_path):
    from ackclock.cli import program

    result = data.write(tmp_path / "result")
    for name, begins in (("x.sqlog", "\x1e"), ("x.qlog", "{")):
        done = CliRunner().invoke(
            program.application, ["export", str(result), "--to", "qlog", "--out", str(tmp_path / name)]
        )
        assert done.exit_code == 0, done.output
        assert (tmp_path / name).read_text()[0] == begins


def test_flows_without_segments_are_left_out(tmp_path):
    from ackclock.cli import program

    udp = '\n[[traffic]]\nkind = "udp"\npacket = "1000B"\nrate = "50/s"\n'
    scenario = SCENARIO.replace("PCAP", "false").replace("\n[record]", f"{udp}[record]")
    (tmp_path / "mixed.toml").write_text(scenario)
    out = tmp_path / "result"
    arguments = ["run", str(tmp_path / "mixed.toml"), "--no-report", "--out", str(out), "--seed", "1"]
    done = CliRunner().invoke(program.application, arguments)
    assert done.exit_code == 0, done.output
    mixed = Dataset.read(out)
    assert mixed.flows.height == 3
    assert len(json.loads("".join(exported.write(mixed, sequential=False)))["traces"]) == 2
    with pytest.raises(InputError, match="--flow: found 2, which is not TCP's"):
        exported.write(mixed, flows=[2])
    log = CliRunner().invoke(
        program.application, ["export", str(out), "--to", "qlog", "--out", str(tmp_path / "x.qlog")]
    )
    assert log.stderr.splitlines() == [
        "not in the log: flow 2: not TCP's",
        "not in the log: packets, ACKs and the packets that were lost: record.pcap = true writes them",
    ]
