"""The reader and all that uses it, fed with arbitrary input: facts, or one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from ackclock import judge, qlog
from ackclock.capture import qlog as capture
from ackclock.errors import InputError

PATH = Path("x.qlog")

LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.sampled_from(
        ["1RTT", "7", "-1", "1e400", "ack", "stream", "pto", "expired", "us", "delta", "", "\x1e", "\ud800"]
    ),
)
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner), max_leaves=6
)

KEYS = st.sampled_from(
    [
        *("header", "raw", "frames", "packet_number", "packet_type", "length", "frame_type", "acked_ranges", "ce"),
        *("congestion_window", "bytes_in_flight", "smoothed_rtt", "ssthresh", "pto_count", "pacing_rate", "path_id"),
        *("timer_type", "event_type", "new", "trigger", "max_datagram_size", "lost_packets", "packet_numbers"),
    ]
)
NAMES = st.sampled_from(
    [
        *("transport:packet_sent", "transport:packet_received", "recovery:packet_lost", "recovery:metrics_updated"),
        *("quic:timer_updated", "recovery:parameters_set", "quic:packets_acked", "recovery:congestion_state_updated"),
        *(":", "x", ""),
    ]
)

#: Well-formed packets, of which one part or another may be replaced.
HEADER = st.fixed_dictionaries({"packet_type": st.just("1RTT"), "packet_number": st.integers(0, 20) | LEAVES})
FRAME = st.fixed_dictionaries(
    {
        "frame_type": st.sampled_from(["ack", "stream"]),
        "acked_ranges": st.lists(st.lists(st.integers(0, 20) | LEAVES)) | VALUES,
    }
)
DATA = st.one_of(
    VALUES,
    st.dictionaries(KEYS, VALUES),
    st.fixed_dictionaries(
        {
            "header": HEADER,
            "frames": st.lists(FRAME, max_size=2) | VALUES,
            "raw": st.fixed_dictionaries({"length": st.integers(0, 1500) | LEAVES}),
            "congestion_window": st.integers(0, 10**6) | LEAVES,
            "smoothed_rtt": st.floats(0, 1e3) | LEAVES,
            "bytes_in_flight": st.integers(0, 10**6) | LEAVES,
        }
    ),
)
EVENT = st.one_of(
    VALUES,
    st.fixed_dictionaries({"time": st.floats(0, 1e4) | LEAVES, "name": NAMES | LEAVES, "data": DATA}),
    st.tuples(st.integers(0, 10**6) | LEAVES, st.just("recovery"), NAMES, DATA).map(list),
)


def _read(text: str) -> None:
    """Read a text, judge and analyse it; what is rejected is rejected in one line."""
    try:
        log = qlog.parse(PATH, text)
    except InputError as error:
        assert "\n" not in str(error)
        return
    for connection in qlog.connections(log):
        for name in judge.NAMES:
            json.dumps(judge.judge_connection(connection, name).as_json(), allow_nan=False)
    try:
        connections = capture._connections([log])
    except InputError as error:
        assert "\n" not in str(error)
        return
    analysis = capture._analysis([log], connections)
    json.dumps(analysis, allow_nan=False)
    for number, connection in enumerate(connections):
        list(capture._tables(number, connection, analysis["flows"][number]))


@settings(max_examples=300, deadline=None)
@given(st.lists(EVENT, max_size=12), VALUES, st.booleans())
def test_arbitrary_events(events: list[Any], trace: Any, is_sequence: bool):
    if is_sequence:
        _read("".join(f"\x1e{json.dumps(value)}\n" for value in [{"qlog_version": "0.3", "trace": trace}, *events]))
    else:
        about = trace if isinstance(trace, dict) else {}
        _read(json.dumps({"qlog_version": "0.3", "traces": [{**about, "events": events}, trace]}))


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=200))
@example("[" * 100_000)
@example('{"traces":' + "[" * 100_000)
@example('{"qlog_version": ' + "9" * 5000)
@example('{"a": 1}\x1e\x1e')
def test_arbitrary_text(text: str):
    _read(text)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200))
@example(b"\x1f\x8b" + bytes(50))
def test_arbitrary_bytes(tmp_path_factory, content: bytes):
    path = tmp_path_factory.mktemp("fuzz") / "x.qlog"
    path.write_bytes(content)
    try:
        qlog.read(path)
    except InputError as error:
        assert "\n" not in str(error)


SHORT = "".join(
    f"\x1e{json.dumps(value)}\n"
    for value in [
        {
            "qlog_version": "0.3",
            "trace": {"vantage_point": {"type": "server"}, "common_fields": {"time_format": "relative"}},
        },
        {"time": 0, "name": "recovery:metrics_updated", "data": {"congestion_window": 12000, "smoothed_rtt": 30}},
        {"time": 1, "name": "transport:packet_sent", "data": {"header": {"packet_number": 0}, "raw": {"length": 1200}}},
        {
            "time": 31,
            "name": "transport:packet_received",
            "data": {"frames": [{"frame_type": "ack", "acked_ranges": [[0]]}]},
        },
        {"time": 31, "name": "recovery:metrics_updated", "data": {"congestion_window": 13200}},
    ]
)


@settings(max_examples=300, deadline=None)
@given(st.integers(0, len(SHORT)), st.integers(0, 20), st.text(max_size=5))
def test_damaged_logs(place: int, length: int, new: str):
    """Cut a log short, or replace a part of it."""
    _read(SHORT[:place])
    _read(SHORT[:place] + new + SHORT[place + length :])
