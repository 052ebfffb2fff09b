"""Import `iperf3 --json`: a stream is a flow, an interval a sample.

The format is that of iperf3's documentation (https://software.es.net/iperf/); the tests' files are of version 3.12. Our
reading: of a stream that this host sends, an interval's bytes are those that its socket took, up to a send buffer more
than what has arrived; what arrived in all is said at the end. Windows are bytes there, segments here. What --omit
leaves out is not there, and times begin after it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ackclock.errors import InputError
from ackclock.importers.measurements import DATAGRAMS, UNKNOWN, Flow, FlowSample, Run
from ackclock.importers.text import Text, Value
from ackclock.system.files import readable


def recognises(given: Text) -> bool:
    """Return True if the text looks like iperf3's JSON."""
    return given.is_json and given.json.value.keys() >= {"start", "intervals", "end"}


def read(files: Sequence[Text]) -> Iterator[Run]:
    """Return a run for each file. Raises `InputError`."""
    return map(_run, files)


def _run(given: Text) -> Run:
    document = given.json
    if error := document["error"]:
        result = f"a test that failed ({error.text()})"
        raise InputError(f"{readable(given.path)}: found {result}; expected one that ran")
    flows = list(_flows(document))
    if not flows:
        raise InputError(f"{readable(given.path)}: intervals: found no streams; expected one or more")
    stamp = document["start"]["timestamp"]
    return Run(flows, began_s=stamp["timesecs"].number() if stamp else None)


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
        yield _flow(document, ends.get(socket), result, last.get(socket, {}))


def _ends(document: Value) -> Iterator[dict[int, dict[str, Value]]]:
    """Yield the final report of each socket: by the sender, the receiver, or of UDP."""
    for stream in document["end"]["streams"].items if document["end"]["streams"] else []:
        reported = {key: value for key, value in stream.table.items() if isinstance(value.value, dict)}
        yield {int(value["socket"].required()): reported for value in reported.values() if value["socket"]}


def _flow(document: Value, ends: Value | None, rows: list[tuple[float, Value]], last: dict[str, Value]) -> Flow:
    sends = rows[0][1]["sender"].value is not False
    near, far = (_end(ends, "local"), _end(ends, "remote")) if ends else (None, None)
    is_udp = document["start"]["test_start"]["protocol"].text() == "UDP"
    congestion = document["end"]["sender_tcp_congestion"].text() or UNKNOWN
    mss = document["start"]["tcp_mss_default"].number() or None
    return Flow(
        group="UDP" if is_udp else f"{congestion} {'up' if sends else 'down'}",
        samples=list(_samples(rows, mss)),
        congestion=DATAGRAMS if is_udp else congestion,
        source=near if sends else far,
        destination=far if sends else near,
        start_s=rows[0][1]["start"].time_s(),
        end_s=rows[-1][0],
        base_rtt_s=_positive(last["sender"]["min_rtt"], 1e-6) if "sender" in last else None,
        counts=_udp_counts(last) if is_udp else _tcp_counts(last, rows),
    )


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


def _udp_counts(last: dict[str, Value]) -> dict[str, float | None]:
    if "udp" not in last:
        return {}
    reported = last["udp"]
    return {
        "sent_bytes": reported["bytes"].number(),
        "sent_packets": reported["packets"].number(),
        "dropped_packets": reported["lost_packets"].number(),
    }


def _positive(value: Value, scale: float = 1.0) -> float | None:
    """Return a number in other units; iperf3 writes 0 for what it did not measure."""
    return scale * result if (result := value.number()) else None


def _end(ends: Value, which: str) -> str:
    host, port = ends[f"{which}_host"].text() or "?", ends[f"{which}_port"].number(65535)
    return f"[{host}]:{int(port or 0)}" if ":" in host else f"{host}:{int(port or 0)}"
