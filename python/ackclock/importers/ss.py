"""Import logs of `ss -tin` (iproute2's ss(8)), with times as `text.snapshots` reads them: a connection is a flow.

`cwnd`, `ssthresh` and `unacked` are segments, `rtt` and `minrtt` ms, `bytes_acked` what was acknowledged. Our reading:
of a connection that was there at the first look only what was acknowledged since then counts; one that came later began
when it was not yet there; one that was seen at the first look alone, or in a log of one look, tells nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ackclock.importers.measurements import UNKNOWN, Flow, FlowSample, Run, seconds
from ackclock.importers.text import Text, snapshots

EXPECTED = "a time (date +%s.%N), then what `ss -tin` prints"

#: A connection's first line: state, queues, both ends; with -O the rest stands behind.
_SOCKET = re.compile(r"(?:tcp\s+)?(?:ESTAB|[A-Z]+[-\d][-A-Z\d]*|CLOSING)\s+\d+\s+\d+\s+(\S+:\S+)\s+(\S+:\S+)(.*)")
_WORD = re.compile(r"([a-z_]+):(\S+)")
_CONTROL = re.compile(r"(?:^|.*\s)([a-z][a-z0-9_]*)\s+(?:wscale|rto):")

#: Words that ss prints before the congestion control, or where it has none.
_FLAGS = frozenset(("ts", "sack", "ecn", "ecnseen", "fastopen", "app_limited"))


def recognises(given: Text) -> bool:
    """Return True if the text looks like a log of ss."""
    return not given.is_json and re.search(r"\brto:\d.*\bcwnd:\d", given.text) is not None


def read(files: Sequence[Text]) -> Iterator[Run]:
    """Return a run for each file. Raises `InputError`."""
    return map(_run, files)


@dataclass
class _Connection:
    """A connection as far as the log has been read."""

    congestion: str
    start_s: float
    first_bytes: float | None = None
    samples: list[FlowSample] = field(default_factory=list)
    counts: dict[str, float | None] = field(default_factory=dict)
    rtt_min_ms: float | None = None


def _run(given: Text) -> Run:
    connections: dict[tuple[str, str], _Connection] = {}
    begin_s, before_s = None, 0.0
    for at_s, lines in snapshots(given, EXPECTED):
        begin_s, before_s = (at_s, at_s) if begin_s is None else (begin_s, before_s)
        for ends, number, details in _connections(lines):
            connection = connections.setdefault(ends, _Connection(_congestion(details), before_s - begin_s))
            _take(given, number, connection, details, at_s - begin_s)
        before_s = at_s
    flows = [
        _flow(ends, connection)
        for ends, connection in connections.items()
        if connection.samples[-1].time_s > connection.start_s
    ]
    if not flows:
        given.wrong(1, "no connection with its details at two times", EXPECTED)
    return Run(flows, began_s=begin_s)


def _connections(lines: Sequence[tuple[int, str]]) -> Iterator[tuple[tuple[str, str], int, str]]:
    """Yield both ends of each connection, and its details: on the same line, or on the next."""
    ends: tuple[str, str] | None = None
    for number, line in lines:
        if result := _SOCKET.fullmatch(line.strip()):
            ends, rest = (result[1], result[2]), result[3]
        else:
            rest = line
        if ends is not None and "rto:" in rest:
            yield ends, number, rest
            ends = None


def _congestion(details: str) -> str:
    control = _CONTROL.match(details)
    return control[1] if control and control[1] not in _FLAGS else UNKNOWN


def _take(given: Text, line: int, connection: _Connection, details: str, at_s: float) -> None:
    words = dict(_WORD.findall(re.sub(r"\w+:\([^)]*\)", "", details)))

    def number(word: str, part: int = 0) -> float | None:
        result = words.get(word, "").split("/")
        return given.number(line, result[part], word) if len(result) > part and result[part] else None

    acked = number("bytes_acked") or 0.0
    if connection.first_bytes is None:
        connection.first_bytes = 0.0 if at_s else acked
    rtt_min_ms = number("minrtt")
    connection.samples.append(
        FlowSample(
            at_s,
            cwnd=number("cwnd"),
            ssthresh=number("ssthresh"),
            srtt_s=seconds(number("rtt")),
            in_flight=number("unacked"),
            delivered_bytes=max(acked - connection.first_bytes, 0.0),
        )
    )
    connection.rtt_min_ms = rtt_min_ms if rtt_min_ms is not None else connection.rtt_min_ms
    connection.counts = {
        "delivered_bytes": max(acked - connection.first_bytes, 0.0),
        "sent_bytes": number("bytes_sent"),
        "sent_packets": number("data_segs_out"),
        "retransmissions": number("retrans", 1) or (0.0 if "data_segs_out" in words else None),
    }


def _flow(ends: tuple[str, str], connection: _Connection) -> Flow:
    return Flow(
        group=connection.congestion,
        samples=connection.samples,
        congestion=connection.congestion,
        source=ends[0],
        destination=ends[1],
        start_s=connection.start_s,
        end_s=connection.samples[-1].time_s,
        base_rtt_s=seconds(connection.rtt_min_ms),
        counts=connection.counts,
    )
