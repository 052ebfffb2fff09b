"""Import `iperf3 --json` or `--json-stream`: a stream is a flow, an interval a sample.

The format is that of iperf3's documentation (https://software.es.net/iperf/); the tests' files are of versions 3.12 and
3.21. Our reading:

- Of a stream that this host sends, an interval's bytes are those that its socket took, up to a send buffer more than
  what has arrived; the end reports what arrived in all, and when: a TCP flow ends when its receiver does.
- Of UDP, the datagrams that arrived are those that were sent without those that were lost, of the length of a block.
- Windows are bytes there, segments here. What --omit leaves out is missing, and times begin after it.
- Intervals are sorted by time. A test that ended early keeps its intervals, and a note says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from ackclock.errors import InputError
from ackclock.importers.measurements import DATAGRAMS, UNKNOWN, Flow, FlowSample, Run
from ackclock.importers.text import Text, Value
from ackclock.system.files import readable


def recognises(given: Text) -> bool:
    """Return True if the text looks like iperf3's JSON."""
    if given.is_event_stream:
        return any(event.get("event") == "start" for event in given.events()[0])
    return given.is_json and given.json.value.keys() >= {"start", "intervals"}


def read(files: Sequence[Text]) -> Iterator[Run]:
    """Return a run for each file. Raises `InputError`."""
    return map(_run, files)


def _run(given: Text) -> Run:
    document, is_complete = _document(given)
    error = document["error"].text()
    if error and not document["intervals"].value:
        raise InputError(f"{readable(given.path)}: found a test that failed ({error}); expected one that ran")
    flows = list(_flows(document))
    if not flows:
        raise InputError(f"{readable(given.path)}: intervals: found no streams; expected one or more")
    stamp = document["start"]["timestamp"]
    began_s = stamp["timesecs"].number() if stamp else None
    return Run(flows, began_s=began_s, notes=tuple(_notes(given, flows, error, is_complete)))


def _document(given: Text) -> tuple[Value, bool]:
    """Return the test as `--json` writes it, and True if nothing of it is missing.

    The events of `--json-stream` are its parts; with `--json-stream-full-output` the last one is the whole.
    """
    if not given.is_event_stream:
        document = given.json
        return document, bool(document["end"])
    events, is_complete = given.events()
    parts: dict[str, Any] = {"intervals": [], "end": None}
    for event in events:
        match event.get("event"):
            case "interval":
                parts["intervals"].append(event.get("data"))
            case "start" | "end" | "error" as name:
                parts[name] = event.get("data")
    return Value(given.path, "", parts), is_complete and parts["end"] is not None


def _notes(given: Text, flows: Sequence[Flow], error: str | None, is_complete: bool) -> Iterator[str]:
    """Yield a warning for a test of which only a part is there."""
    if error or not is_complete:
        reason = f"was interrupted ({error})" if error else "has no end"
        until_s = max(flow.end_s or 0.0 for flow in flows)
        yield f"{readable(given.path)}: the test {reason}; its first {until_s:.4g} s are imported"


def _flows(document: Value) -> Iterator[Flow]:
    ends = {int(connected["socket"].required()): connected for connected in document["start"]["connected"].items}
    rows: dict[int, list[tuple[float, Value]]] = {}
    for interval in document["intervals"].items:
        streams = [stream for stream in interval["streams"].items if not stream["omitted"].value]
        for stream in streams:
            at_s = streams[0]["end"].time_s()  # one instant for all: they are read one after the other
            rows.setdefault(int(stream["socket"].required()), []).append((at_s, stream))
    last = {key: result for one in _ends(document) for key, result in one.items()}
    for socket, result in rows.items():
        yield _flow(document, ends.get(socket), _sorted(result), last.get(socket, {}))


def _sorted(rows: list[tuple[float, Value]]) -> list[tuple[float, Value]]:
    """Return the intervals of a stream in the order of time. Raises `InputError` for two that end at once."""
    rows = sorted(rows, key=lambda row: row[0])
    for (before_s, _), (at_s, row) in pairwise(rows):
        if at_s == before_s:
            row["end"].wrong("intervals that end one after the other")
    return rows


def _ends(document: Value) -> Iterator[dict[int, dict[str, Value]]]:
    """Yield the final report of each socket: by the sender, the receiver, or of UDP."""
    if not document["end"]:
        return
    for stream in document["end"]["streams"].items if document["end"]["streams"] else []:
        reported = {key: value for key, value in stream.table.items() if isinstance(value.value, dict)}
        yield {int(value["socket"].required()): reported for value in reported.values() if value["socket"]}


def _flow(document: Value, ends: Value | None, rows: list[tuple[float, Value]], last: dict[str, Value]) -> Flow:
    sends = rows[0][1]["sender"].value is not False
    direction = "up" if sends else "down"
    near, far = (_end(ends, "local"), _end(ends, "remote")) if ends else (None, None)
    is_udp = document["start"]["test_start"]["protocol"].text() == "UDP"
    end = document["end"]
    congestion = (end["sender_tcp_congestion"].text() if end else None) or UNKNOWN
    mss = document["start"]["tcp_mss_default"].number() or None
    return Flow(
        group=f"{'UDP' if is_udp else congestion} {direction}",
        direction=direction,
        samples=list(_samples(rows, mss)),
        congestion=DATAGRAMS if is_udp else congestion,
        source=near if sends else far,
        destination=far if sends else near,
        start_s=rows[0][1]["start"].time_s(),
        end_s=rows[-1][0] if is_udp else _end_s(rows, last),
        base_rtt_s=_positive(last["sender"]["min_rtt"], 1e-6) if "sender" in last else None,
        counts=_udp_counts(last, document["start"]["test_start"]["blksize"]) if is_udp else _tcp_counts(last, rows),
    )


def _end_s(rows: list[tuple[float, Value]], last: dict[str, Value]) -> float:
    """Return when the receiver had the last bytes, or the end of the last interval if that is later."""
    received = last["receiver"]["end"] if "receiver" in last else None
    return max(rows[-1][0], received.time_s() if received else 0.0)


def _samples(rows: list[tuple[float, Value]], mss: float | None) -> Iterator[FlowSample]:
    total = 0.0
    for at_s, row in rows:
        total += row["bytes"].required()
        cwnd_bytes = _positive(row["snd_cwnd"])
        yield FlowSample(
            time_s=at_s,
            cwnd=cwnd_bytes / mss if cwnd_bytes and mss else None,
            srtt_s=_positive(row["rtt"], 1e-6),
            delivered_bytes=total,
        )


def _tcp_counts(last: dict[str, Value], rows: list[tuple[float, Value]]) -> dict[str, float | None]:
    reported = [count for _, row in rows if (count := row["retransmits"].number()) is not None]
    return {
        "delivered_bytes": last["receiver"]["bytes"].number() if "receiver" in last else None,
        "sent_bytes": _positive(last["sender"]["bytes"]) if "sender" in last else None,
        "retransmissions": last["sender"]["retransmits"].number()
        if "sender" in last
        else sum(reported)
        if reported
        else None,
    }


def _udp_counts(last: dict[str, Value], block: Value) -> dict[str, float | None]:
    if "udp" not in last:
        return {}
    reported = last["udp"]
    sent, lost, block_bytes = reported["packets"].number(), reported["lost_packets"].number(), block.number()
    arrived_bytes = None
    if sent is not None and lost is not None and block_bytes is not None:
        arrived_bytes = block_bytes * max(sent - lost, 0.0)
    return {
        "delivered_bytes": arrived_bytes,
        "measured_bytes": arrived_bytes,
        "sent_bytes": reported["bytes"].number(),
        "sent_packets": sent,
        "dropped_packets": lost,
    }


def _positive(value: Value, scale: float = 1.0) -> float | None:
    """Return a number in other units; iperf3 writes 0 for what it did not measure."""
    return scale * result if (result := value.number()) else None


def _end(ends: Value, which: str) -> str:
    host, port = ends[f"{which}_host"].text() or "?", ends[f"{which}_port"].number(65535)
    return f"[{host}]:{int(port or 0)}" if ":" in host else f"{host}:{int(port or 0)}"
