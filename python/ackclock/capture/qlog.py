"""Analyse qlogs: the connections of QUIC in them, in the form that captures have.

What a capture has to infer, a log has from the inside: windows, thresholds, round-trip times, what is in flight, losses
as the sender declares them. What only packets of TCP show is null or absent. A log has one end's view: of what the
peer sends it has the bytes that arrive, and no losses.

- Bytes are those of QUIC packets, headers and acknowledgements included.
- A probe of a timeout counts as a tail loss probe, which it is to QUIC (RFC 9002 section 6.2.4).
- A sender is limited by its window while it is full but for three datagrams, else by its application or by flow
  control, which a log does not separate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from ackclock import _core, qlog, repr_format
from ackclock.capture import Captured, CaptureSummary
from ackclock.capture.analysis import ENDS_OF_FLOWS, LIMITS, NO_PATH, RETRANSMISSIONS
from ackclock.capture.observations import NO_ECN
from ackclock.capture.udp import NO_UDP
from ackclock.errors import InputError
from ackclock.figures import numbers
from ackclock.qlog import Acked, Connection, Log, Lost, Metrics, ProbeTimeout, Sent, is_qlog
from ackclock.system.files import readable

__all__ = ["is_qlog", "read", "summarise"]

JsonObject: TypeAlias = dict[str, Any]

#: Flows are sampled at most once in this time, in seconds.
INTERVAL_S = 0.1

#: A window is full if no more than so many datagrams are missing.
FULL_DATAGRAMS = 3.0

#: The smallest datagram size that a QUIC connection may have, in bytes (RFC 9000 section 14).
DATAGRAM_BYTES = 1200.0


def summarise(paths: Sequence[Path]) -> CaptureSummary:
    """Return the analysis of logs. Raises `InputError` if one cannot be read."""
    logs = [qlog.read(path) for path in paths]
    return CaptureSummary(_analysis(logs, _connections(logs)), _notes(logs))


def read(paths: Sequence[Path], command: str | None = None) -> Captured:
    """Return the analysis of logs with its tables. Raises `InputError` if one cannot be read."""
    from ackclock.dataset import Spool

    logs = [qlog.read(path) for path in paths]
    connections = _connections(logs)
    analysis = _analysis(logs, connections)
    spool = Spool()
    for number, connection in enumerate(connections):
        for table, columns in _tables(number, connection, analysis["flows"][number]):
            spool.append(table, columns)
    about = {"ackclock": _core.version, "runs": [{"run": 0}], **({"command": command} if command else {})}
    return Captured(spool.dataset({**about, "capture": analysis}), analysis, _notes(logs))


def _connections(logs: Sequence[Log]) -> list[Connection]:
    found = [one for log in logs for one in qlog.connections(log) if one.sent_packets or one.received_packets]
    if not found:
        names = ", ".join(readable(log.path) for log in logs)
        raise InputError(f"{names}: found no packet_sent or packet_received; expected events of QUIC packets")
    return found


def _notes(logs: Sequence[Log]) -> tuple[str, ...]:
    return tuple(f"{readable(log.path)}: {note}" for log in logs for note in log.notes)


def _analysis(logs: Sequence[Log], connections: Sequence[Connection]) -> JsonObject:
    flows = [_flow(number, one) for number, one in enumerate(connections)]
    files = [{"path": readable(log.path), "version": log.version, "note": "; ".join(log.notes)} for log in logs]
    counted = sum(one.sent_packets + one.received_packets for one in connections)
    vantages = {flow["vantage"] for flow in flows}
    return {
        "files": [{**file, "packets": counted, "segments": counted} for file in files],
        "vantage": vantages.pop() if len(vantages) == 1 else None,
        "packets": counted,
        "connections": len(connections),
        "path": dict(NO_PATH),
        "capture_loss": {"packets": 0, "share": None},
        "clock_steps": {"count": 0, "seconds": 0.0},
        "flows": flows,
        "udp": dict(NO_UDP),
        "summary": _sentence(flows),
    }


def _sentence(flows: Sequence[JsonObject]) -> str:
    data = numbers.value(sum(flow["bytes"] for flow in flows), "bytes")
    lost = sum(flow["segments_lost"] for flow in flows)
    probes = sum(flow["internals"]["probe_timeouts"] for flow in flows)
    parts = [
        f"{repr_format.counted(len(flows), 'connection')} with {data}",
        f"{repr_format.counted(lost, 'packet')} declared lost",
        *([f"{repr_format.counted(probes, 'probe timeout')}"] if probes else []),
    ]
    return "; ".join(parts) + "."


def _is_sender(connection: Connection) -> bool:
    """Return True if the end that wrote the log sends more than it receives."""
    return connection.sent_bytes >= connection.received_bytes


def _flow(number: int, connection: Connection) -> JsonObject:
    own = 0 if connection.vantage == "client" else 1
    sends = _is_sender(connection)
    sender = own if sends else 1 - own
    reports = [fact for fact in connection.facts if isinstance(fact, Metrics)]
    rtts = [rtt_s for fact in reports if (rtt_s := fact.latest_rtt_s or fact.srtt_s)]
    least = [fact.min_rtt_s for fact in reports if fact.min_rtt_s] or rtts
    sent_s = [fact.time_s for fact in connection.facts if isinstance(fact, Sent) and fact.packet.in_flight]
    size = connection.acked_bytes if sends else connection.received_bytes
    return {
        "id": number,
        "flow": 2 * number + sender,
        "title": connection.title,
        "client": f"client-{number}",
        "server": f"server-{number}",
        "sender": ENDS_OF_FLOWS[sender],
        "vantage": "sender" if sends else "receiver",
        "vantage_confidence": 1.0,
        "packets": connection.sent_packets + connection.received_packets,
        "bytes": int(size),
        "reverse_bytes": int(connection.received_bytes if sends else connection.acked_bytes),
        "handshake_s": connection.handshake_s,
        "goodput_bps": 8.0 * size / connection.end_s if connection.end_s > 0 else None,
        "first_data_s": sent_s[0] if sent_s and sends else None,
        "last_data_s": sent_s[-1] if sent_s and sends else None,
        "rtt_min_s": min(least) if least else None,
        "rtt_mean_s": float(np.mean(rtts)) if rtts else None,
        "segments_lost": connection.lost_packets,
        **_absent(),
        "ecn": {**NO_ECN, "ce_packets": int(_marks(connection))},
        "established": connection.handshake_s is not None,
        "retransmissions": _retransmissions(connection),
        "limited": _limited(connection) if sends else None,
        "internals": _internals(connection, reports),
    }


def _absent() -> JsonObject:
    """Return the findings that only packets of TCP can give."""
    return {
        **dict.fromkeys(("reordered", "not_captured", "duplicates", "sack_reneged", "hop_changes"), 0),
        "nagle": {"waits": 0, "seconds": 0.0},
        "zero_window": {"count": 0, "seconds": 0.0, "share": 0.0},
        "too_large_bytes": None,
        "largest_delivered_bytes": None,
        "keep_alives": {"probes": 0, "unanswered": 0},
        "fast_open": None,
        "ack_wait_s": None,
        "rtt_step": None,
        "closed": True,
        "refused": False,
        "congestion": None,
        "stalls": [],
        "icmp": [],
    }


def _marks(connection: Connection) -> float:
    return max((fact.ce or 0.0 for fact in connection.facts if isinstance(fact, Acked)), default=0.0)


def _retransmissions(connection: Connection) -> dict[str, int]:
    """Return the probes, and what was declared lost: QUIC sends its content again in other packets."""
    probes = sum(isinstance(fact, Sent) and fact.is_probe for fact in connection.facts)
    counts = dict.fromkeys(RETRANSMISSIONS, 0)
    spurious = min(connection.spurious, connection.lost_packets)
    return counts | {"fast": connection.lost_packets - spurious, "spurious": spurious, "tail_probe": probes}


def _internals(connection: Connection, reports: Sequence[Metrics]) -> JsonObject:
    """Return what the implementation reports of itself, in bytes and seconds."""
    windows = [fact.cwnd_bytes for fact in reports if fact.cwnd_bytes is not None]
    thresholds = [fact.ssthresh_bytes for fact in reports if fact.ssthresh_bytes is not None]
    flights = [fact.in_flight_bytes for fact in reports if fact.in_flight_bytes is not None]
    smoothed = [fact.srtt_s for fact in reports if fact.srtt_s is not None]
    return {
        "cwnd_min_bytes": min(windows, default=None),
        "cwnd_max_bytes": max(windows, default=None),
        "cwnd_last_bytes": windows[-1] if windows else None,
        "ssthresh_last_bytes": thresholds[-1] if thresholds else None,
        "in_flight_max_bytes": max(flights, default=None),
        "srtt_mean_s": float(np.mean(smoothed)) if smoothed else None,
        "congestion_events": len(_recoveries(connection)),
        "probe_timeouts": sum(isinstance(fact, ProbeTimeout) for fact in connection.facts),
        "blocked_frames": connection.blocked_frames,
    }


def _recoveries(connection: Connection) -> list[float]:
    """Return the starts of recovery periods: losses of packets that were sent after the last one (RFC 9002 7.3.2)."""
    starts: list[float] = []
    for fact in connection.facts:
        if isinstance(fact, Lost) and (not starts or (fact.packet is not None and fact.packet.time_s > starts[-1])):
            starts.append(fact.time_s)
    return starts


def _datagram_bytes(connection: Connection) -> float:
    return connection.max_datagram_bytes or max(connection.largest_sent_bytes, DATAGRAM_BYTES)


def _limited(connection: Connection) -> dict[str, float] | None:
    """Return each limit's share of the time from the first window to the end."""
    slack = FULL_DATAGRAMS * _datagram_bytes(connection)
    seconds = dict.fromkeys(LIMITS, 0.0)
    losses = iter(_recoveries(connection))
    first_loss_s = next(losses, float("inf"))
    cwnd = ssthresh = in_flight = None
    last_s = 0.0
    for fact in connection.facts:
        if cwnd is not None and in_flight is not None:
            is_slow = last_s < first_loss_s if ssthresh is None else cwnd < ssthresh
            full = "slow_start" if is_slow else "cwnd"
            seconds[full if in_flight >= cwnd - slack else "application"] += fact.time_s - last_s
        last_s = fact.time_s
        if isinstance(fact, Metrics):
            cwnd = fact.cwnd_bytes if fact.cwnd_bytes is not None else cwnd
            ssthresh = fact.ssthresh_bytes if fact.ssthresh_bytes is not None else ssthresh
            in_flight = fact.in_flight_bytes if fact.in_flight_bytes is not None else in_flight
        elif isinstance(fact, Sent):
            in_flight = fact.in_flight_bytes
    total_s = sum(seconds.values())
    return {limit: value / total_s for limit, value in seconds.items()} if total_s > 0 else None


# --- tables ----------------------------------------------------------------------------------------------------------


def _tables(number: int, connection: Connection, flow: JsonObject) -> Iterator[tuple[str, Mapping[str, Any]]]:
    yield "flows", _flow_row(connection, flow)
    yield "captured", _captured_row(number, connection, flow)
    if _is_sender(connection):
        yield "flow_samples", _samples(connection, flow["flow"])
    yield "events", _events(connection, flow["flow"])


def _one(value: Any, absent: Any) -> Any:
    return np.array([absent if value is None else value])


def _flow_row(connection: Connection, flow: JsonObject) -> Mapping[str, Any]:
    ends = (flow["client"], flow["server"])
    source, destination = ends if flow["sender"] == "client" else ends[::-1]
    sends = _is_sender(connection)
    unknown = np.iinfo(np.uint64).max
    return {
        "flow": np.array([flow["flow"]], np.uint32),
        "group": np.zeros(1, np.uint32),
        "congestion": ["unknown"],
        "source": [source],
        "destination": [destination],
        "base_rtt_s": _one(flow["rtt_min_s"], np.nan),
        "start_s": np.zeros(1),
        "established_s": _one(connection.handshake_s, np.nan),
        "delivered_bytes": np.array([flow["bytes"]], np.uint64),
        "measured_bytes": np.array([flow["bytes"]], np.uint64),
        "sent_packets": np.array([connection.sent_packets if sends else unknown], np.uint64),
        "measured_sent_packets": np.array([connection.sent_packets if sends else unknown], np.uint64),
        "recoveries": np.array([flow["internals"]["congestion_events"] if sends else unknown], np.uint64),
        "tail_probes": np.array([flow["retransmissions"]["tail_probe"] if sends else unknown], np.uint64),
    }


def _captured_row(number: int, connection: Connection, flow: JsonObject) -> Mapping[str, Any]:
    no = np.zeros(1, bool)
    return {
        "flow": np.array([flow["flow"]], np.uint32),
        "connection": np.array([number], np.uint32),
        **{name: [flow[name]] for name in ("client", "server", "sender", "vantage")},
        "vantage_confidence": np.ones(1),
        "handshake_s": _one(connection.handshake_s, np.nan),
        "goodput_bps": _one(flow["goodput_bps"], np.nan),
        "rtt_min_s": _one(flow["rtt_min_s"], np.nan),
        "rtt_mean_s": _one(flow["rtt_mean_s"], np.nan),
        "opened": np.array([connection.handshake_s is not None]),
        **dict.fromkeys(("closed", "reset", "sack", "timestamps", "ecn"), no),
        "lost": np.array([connection.lost_packets], np.uint64),
        "spurious": np.array([connection.spurious], np.uint64),
        "received_packets": np.array([connection.received_packets], np.uint64),
        "received_bytes": np.array([int(connection.received_bytes)], np.uint64),
        "delivered_bytes": np.array([flow["bytes"]], np.uint64),
    }


def _samples(connection: Connection, flow: int) -> Mapping[str, Any]:
    """Return the last report of each interval, at its end; windows in datagrams."""
    datagram = _datagram_bytes(connection)
    rows: dict[int, list[float]] = {}
    values = [np.nan] * 4
    delivered = 0.0
    for fact in connection.facts:
        if isinstance(fact, Acked):
            delivered += sum(packet.bytes or 0.0 for packet in fact.packets)
        if not isinstance(fact, Metrics):
            continue
        windows = (fact.cwnd_bytes, fact.ssthresh_bytes, fact.in_flight_bytes)
        scaled = [None if window is None else window / datagram for window in windows] + [fact.srtt_s]
        values = [old if new is None else new for old, new in zip(values, scaled, strict=True)]
        rows[int(fact.time_s // INTERVAL_S) + 1] = [*values, delivered]
    columns = np.array(list(rows.values()), dtype=float).reshape(-1, 5).T
    return {
        "time_s": INTERVAL_S * np.array(list(rows), dtype=float),
        "flow": np.full(len(rows), flow, np.uint32),
        **dict(zip(("cwnd", "ssthresh", "in_flight", "srtt_s"), columns, strict=False)),
        "delivered_bytes": columns[4].astype(np.uint64),
    }


def _events(connection: Connection, flow: int) -> Mapping[str, Any]:
    rows: list[tuple[float, str, float]] = []
    if connection.handshake_s is not None:
        rows.append((connection.handshake_s, "established", np.nan))
    for fact in connection.facts:
        if isinstance(fact, Lost):
            rows.append((fact.time_s, "loss", np.nan if fact.packet is None else float(fact.packet.number)))
        elif isinstance(fact, Sent) and fact.is_probe:
            rows.append((fact.time_s, "tail_probe", float(fact.packet.number)))
    rows += [(time_s, "recovery", np.nan) for time_s in _recoveries(connection)]
    rows.sort(key=lambda row: row[0])
    return {
        "time_s": np.array([row[0] for row in rows], dtype=float),
        "flow": np.full(len(rows), flow, np.uint32),
        "kind": [row[1] for row in rows],
        "value": np.array([row[2] for row in rows], dtype=float),
    }
