"""The reader of qlog: each version's form of the same connection gives the same facts."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from ackclock import qlog
from ackclock.errors import InputError
from ackclock.qlog import Acked, Lost, Metrics, ProbeTimeout, Sent

PACKET = {"packet_type": "1RTT", "packet_number": 7}
STREAM = {"frame_type": "stream", "stream_id": 0, "offset": 0, "length": 1100}
ACK = {"frame_type": "ack", "acked_ranges": [[5, 7]], "ce": 2}

#: Time in ms, name in version 0.3, data.
EVENTS = [
    (10.0, "transport:packet_sent", {"header": PACKET, "raw": {"length": 1200}, "frames": [STREAM]}),
    (10.5, "transport:packet_sent", {"header": {**PACKET, "packet_number": 8}, "raw": {"length": 1200}}),
    (50.0, "transport:packet_received", {"header": {**PACKET, "packet_number": 1}, "frames": [ACK]}),
    (50.0, "recovery:metrics_updated", {"congestion_window": 13200, "smoothed_rtt": 40.0, "bytes_in_flight": 1200}),
    (90.0, "recovery:packet_lost", {"header": {**PACKET, "packet_number": 8}, "trigger": "time_threshold"}),
    (95.0, "recovery:loss_timer_updated", {"event_type": "expired", "timer_type": "pto"}),
]

DRAFT = {
    "recovery:metrics_updated": "quic:recovery_metrics_updated",
    "recovery:packet_lost": "quic:packet_lost",
    "recovery:loss_timer_updated": "quic:timer_updated",
    "transport:packet_sent": "quic:packet_sent",
    "transport:packet_received": "quic:packet_received",
}


def _sequence(separator: str = "\x1e") -> str:
    head = {"qlog_version": "0.3", "qlog_format": "JSON-SEQ", "trace": {"vantage_point": {"type": "server"}}}
    lines = [head, *({"time": time, "name": name, "data": data} for time, name, data in EVENTS)]
    return "".join(f"{separator}{json.dumps(line)}\n" for line in lines)


def _contained(version: str = "0.3") -> str:
    events = [{"time": time, "name": name, "data": data} for time, name, data in EVENTS]
    trace = {"vantage_point": {"type": "server"}, "events": events}
    return json.dumps({"qlog_version": version, "qlog_format": "JSON", "traces": [trace]})


def _draft() -> str:
    head = {"file_schema": "urn:ietf:params:qlog:file:sequential", "trace": {"vantage_point": {"type": "server"}}}
    lines = [head, *({"time": time, "name": DRAFT[name], "data": data} for time, name, data in EVENTS)]
    return "".join(f"\x1e{json.dumps(line)}\n" for line in lines)


def _delta() -> str:
    head = {
        "qlog_version": "0.3",
        "trace": {"common_fields": {"time_format": "delta"}, "vantage_point": {"type": "server"}},
    }
    before, lines = 0.0, [head]
    for time, name, data in EVENTS:
        lines.append({"time": time - before, "name": name, "data": data})
        before = time
    return "".join(f"{json.dumps(line)}\n" for line in lines)


def _absolute() -> str:
    head = {
        "qlog_version": "0.4",
        "trace": {"common_fields": {"time_format": "absolute"}, "vantage_point": {"type": "server"}},
    }
    lines = [head, *({"time": 1.7e12 + time, "name": name, "data": data} for time, name, data in EVENTS)]
    return "".join(f"{json.dumps(line)}\n" for line in lines)


def _arrays() -> str:
    """Write as picoquic and old mvfst do: columns, microseconds, numbers as strings, sizes in the header."""
    rows = []
    for time, name, data in EVENTS:
        category, event = name.split(":")
        body = json.loads(json.dumps(data))
        if "raw" in body:
            body["header"]["packet_size"] = body.pop("raw")["length"]
        if "header" in body:
            body["header"]["packet_number"] = str(body["header"]["packet_number"])
            body["packet_type"] = body["header"].pop("packet_type")
        if "smoothed_rtt" in body:
            body = {"cwnd": body["congestion_window"], "smoothed_rtt": 40000, "bytes_in_flight": 1200}
        rows.append([str(int(time * 1000)), category.upper(), event.upper(), body])
    trace = {
        "vantage_point": {"type": "SERVER"},
        "configuration": {"time_units": "us"},
        "event_fields": ["relative_time", "CATEGORY", "EVENT_TYPE", "DATA"],
        "events": rows,
    }
    return json.dumps({"qlog_version": "draft-00", "traces": [trace]})


FORMS = {
    "0.3 JSON-SEQ": _sequence(),
    "newline-delimited": _sequence(""),
    "0.3 JSON": _contained(),
    "0.4 JSON": _contained("0.4"),
    "draft": _draft(),
    "delta times": _delta(),
    "absolute times": _absolute(),
    "arrays of draft-00": _arrays(),
}


def _connection(text: str) -> qlog.Connection:
    (connection,) = qlog.connections(qlog.parse(Path("x.qlog"), text))
    return connection


@pytest.mark.parametrize("form", FORMS)
def test_each_version_gives_the_same_facts(form):
    connection = _connection(FORMS[form])
    sent, second, acked, metrics, lost, timeout = connection.facts
    assert isinstance(sent, Sent)
    assert (sent.time_s, sent.packet.number, sent.packet.bytes) == (pytest.approx(0.0, abs=1e-9), 7, 1200.0)
    assert isinstance(second, Sent)
    assert second.in_flight_bytes == 2400.0
    assert isinstance(acked, Acked)
    assert [packet.number for packet in acked.packets] == [7]
    assert (acked.time_s, acked.prior_in_flight_bytes, acked.ce) == (pytest.approx(0.04, abs=1e-6), 2400.0, 2.0)
    assert isinstance(metrics, Metrics)
    assert (metrics.cwnd_bytes, metrics.srtt_s, metrics.ssthresh_bytes) == (13200.0, pytest.approx(0.04), None)
    assert isinstance(lost, Lost)
    assert lost.packet is not None
    assert lost.packet.number == 8
    assert isinstance(timeout, ProbeTimeout)
    assert connection.vantage == "server"


def test_a_late_acknowledgement_makes_a_loss_spurious():
    late = {"frame_type": "ack", "acked_ranges": [[8]]}
    event = {"time": 120.0, "name": "transport:packet_received", "data": {"header": PACKET, "frames": [late]}}
    connection = _connection(_sequence() + f"\x1e{json.dumps(event)}\n")
    assert connection.spurious == 1
    assert connection.facts[-1].spurious == 1


def test_packets_with_only_acks_are_not_in_flight():
    bare = {"header": {**PACKET, "packet_number": 9}, "raw": {"length": 40}, "frames": [ACK]}
    event = {"time": 130.0, "name": "transport:packet_sent", "data": bare}
    connection = _connection(_sequence() + f"\x1e{json.dumps(event)}\n")
    assert connection.facts[-1].in_flight_bytes == 0.0


def test_discarded_keys_take_packets_out_of_flight():
    """Keys of application data may be updated, which ends no flight."""
    initial = {"header": {**PACKET, "packet_type": "initial"}, "raw": {"length": 1200}, "frames": [STREAM]}
    later = [{"header": {**PACKET, "packet_number": number}, "raw": {"length": 100}} for number in (8, 9)]
    events = [
        (1.0, "transport:packet_sent", initial),
        (2.0, "security:key_discarded", {"key_type": "client_initial_secret"}),
        (3.0, "transport:packet_sent", later[0]),
        (4.0, "security:key_retired", {"key_type": "client_1rtt_secret"}),
        (5.0, "transport:packet_sent", later[1]),
    ]
    lines = [{"qlog_version": "0.3"}, *({"time": time, "name": name, "data": data} for time, name, data in events)]
    (connection,) = qlog.connections(qlog.parse(Path("x.sqlog"), "".join(f"\x1e{json.dumps(one)}\n" for one in lines)))
    assert [fact.in_flight_bytes for fact in connection.facts if isinstance(fact, Sent)] == [1200, 100, 200]


def test_huge_ranges_cost_nothing():
    frame = {"frame_type": "ack", "acked_ranges": [[0, 2**52]]}
    event = {"time": 130.0, "name": "transport:packet_received", "data": {"header": PACKET, "frames": [frame]}}
    assert _connection(_sequence() + f"\x1e{json.dumps(event)}\n").acked_packets == 1


def test_groups_are_connections():
    lines = _sequence("").strip().split("\n")
    grouped = [
        lines[0],
        *(line.replace('"time"', f'"group_id": "c{n % 2}", "time"', 1) for n, line in enumerate(lines[1:])),
    ]
    log = qlog.parse(Path("x.sqlog"), "\n".join(grouped))
    assert len(log.traces) == 2
    assert sum(len(trace.records) for trace in log.traces) == len(EVENTS)


def test_gzip_is_read(tmp_path):
    path = tmp_path / "x.sqlog.gz"
    path.write_bytes(gzip.compress(_sequence().encode()))
    assert qlog.is_qlog(path)
    assert len(qlog.connections(qlog.read(path))[0].facts) == 6


@pytest.mark.parametrize("form", ["0.3 JSON-SEQ", "0.3 JSON", "arrays of draft-00"])
def test_a_file_that_ends_early_is_read_as_far_as_it_goes(form):
    text = FORMS[form]
    log = qlog.parse(Path("x.qlog"), text[: text.rindex("expired") - 5])
    (connection,) = qlog.connections(log)
    assert len(connection.facts) == 5
    assert any("cut short" in note for note in log.notes)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello",
        "[1, 2]",
        "{}",
        '{"qlog_version": "0.1", "connections": []}',
        '{"traces": [{"error_description": "x"}]}',
    ],
)
def test_what_is_no_log_is_rejected_in_one_line(text):
    with pytest.raises(InputError, match=r"x\.qlog.*expected a qlog file") as caught:
        qlog.parse(Path("x.qlog"), text)
    assert "\n" not in str(caught.value)


def test_entries_that_are_no_events_are_counted():
    log = qlog.parse(Path("x.sqlog"), _sequence() + '\x1e17\n\x1e{"time": "soon"}\n\x1e{"a": 1}\n')
    assert any("3 entries" in note for note in log.notes)
    assert len(qlog.connections(log)[0].facts) == 6


def test_captures_are_no_logs(tmp_path):
    path = tmp_path / "x.pcap"
    path.write_bytes(b"\xd4\xc3\xb2\xa1" + bytes(40))
    assert not qlog.is_qlog(path)
    assert not qlog.is_qlog(tmp_path / "missing")


@pytest.mark.parametrize("command", [("capture",), ("judge", "--as", "reno")])
@pytest.mark.parametrize(("content", "found"), [(None, "no such file"), ("", "an empty file"), ("\n", "an empty file")])
def test_a_missing_or_empty_log_is_rejected_in_one_line(tmp_path, command, content, found):
    from ackclock.cli import program

    path = tmp_path / "server.sqlog"
    if content is not None:
        path.write_text(content)
    result = CliRunner().invoke(program.application, [*command, str(path)])
    assert result.exit_code == 2
    assert result.output == f"{path}: found {found}; expected a qlog file (JSON or JSON-SEQ)\n"
