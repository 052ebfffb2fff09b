"""Logs of `ss -tin` (iproute2's ss(8)), with times as `clocked` has them: a connection is a flow.

`cwnd`, `ssthresh` and `unacked` are segments, `rtt` and `minrtt` ms, `bytes_acked` what was acknowledged. Our reading:
of a connection that was there at the first look only what was acknowledged since then counts; one that came later began
when it was not yet there; one that was seen at the first look alone, or in a log of one look, tells nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ackclock.importers import timestamped_log
from ackclock.importers.measurements import UNKNOWN, Flow, FlowSample, Run, seconds
from ackclock.importers.text import Text

EXPECTED = "a time (date +%s.%N), then what `ss -tin` prints"

#: A connection's first line: state, queues, both ends; with -O the rest stands behind.
_SOCKET = re.compile(r"(?:tcp\s+)?(?:ESTAB|[A-Z]+[-\d][-A-Z\d]*|CLOSING)\s+\d+\s+\d+\s+(\S+:\S+)\s+(\S+:\S+)(.*)")
_WORD = re.compile(r"([a-z_]+):(\S+)")
_CONTROL = re.compile(r"(?:^|.*\s)([a-z][a-z0-9_]*)\s+(?:wscale|rto):")

#: Words that ss prints before the congestion control, or where it has none.
_FLAGS = frozenset(("ts", "sack", "ecn", "ecnseen", "fastopen", "app_limited"))


def recognises(given: Text) -> bool:
    """Whether it looks like one."""
    return not given.is_json and re.search(r"\brto:\d.*\bcwnd:\d", given.text) is not None


def read(files: Sequence[Text]) -> Iterator[Run]:
    """A run for each file. Raises `InputError`."""
    return map(_run, files)


@dataclass
class _Seen:
    """A connection so far."""

    congestion: str
    start_s: float
    first_bytes: float | None = None
    samples: list[FlowSample] = field(default_factory=list)
    counts: dict[str, float | None] = field(default_factory=dict)
    rtt_min_ms: float | None = None


def _run(given: Text) -> Run:
    seen: dict[tuple[str, str], _Seen] = {}
    begin_s, before_s = None, 0.0
    for at_s, lines in timestamped_log.snapshots(given, EXPECTED):
        begin_s, before_s = (at_s, at_s) if begin_s is None else (begin_s, before_s)
        for ends, number, told in _connections(lines):
            one = seen.setdefault(ends, _Seen(_congestion(told), before_s - begin_s))
            _take(given, number, one, told, at_s - begin_s)
        before_s = at_s
    flows = [_flow(ends, one) for ends, one in seen.items() if one.samples[-1].time_s > one.start_s]
    if not flows:
        given.wrong(1, "no connection with its details at two times", EXPECTED)
    return Run(flows, began_s=begin_s)


def _connections(lines: Sequence[tuple[int, str]]) -> Iterator[tuple[tuple[str, str], int, str]]:
    """Both ends of each connection, and its details: behind them, or on the next line."""
    ends: tuple[str, str] | None = None
    for number, line in lines:
        if found := _SOCKET.fullmatch(line.strip()):
            ends, rest = (found[1], found[2]), found[3]
        else:
            rest = line
        if ends is not None and "rto:" in rest:
            yield ends, number, rest
            ends = None


def _congestion(told: str) -> str:
    control = _CONTROL.match(told)
    return control[1] if control and control[1] not in _FLAGS else UNKNOWN


def _take(given: Text, line: int, one: _Seen, told: str, at_s: float) -> None:
    words = dict(_WORD.findall(re.sub(r"\w+:\([^)]*\)", "", told)))

    def number(word: str, part: int = 0) -> float | None:
        found = words.get(word, "").split("/")
        return given.number(line, found[part], word) if len(found) > part and found[part] else None

    acked = number("bytes_acked") or 0.0
    if one.first_bytes is None:
        one.first_bytes = 0.0 if at_s else acked
    least = number("minrtt")
    one.samples.append(
        FlowSample(
            at_s,
            cwnd=number("cwnd"),
            ssthresh=number("ssthresh"),
            srtt_s=seconds(number("rtt")),
            in_flight=number("unacked"),
            delivered_bytes=max(acked - one.first_bytes, 0.0),
        )
    )
    one.rtt_min_ms = least if least is not None else one.rtt_min_ms
    one.counts = {
        "delivered_bytes": max(acked - one.first_bytes, 0.0),
        "sent_bytes": number("bytes_sent"),
        "sent_packets": number("data_segs_out"),
        "retransmissions": number("retrans", 1) or (0.0 if "data_segs_out" in words else None),
    }


def _flow(ends: tuple[str, str], one: _Seen) -> Flow:
    return Flow(
        group=one.congestion,
        samples=one.samples,
        congestion=one.congestion,
        source=ends[0],
        destination=ends[1],
        start_s=one.start_s,
        end_s=one.samples[-1].time_s,
        base_rtt_s=seconds(one.rtt_min_ms),
        counts=one.counts,
    )
