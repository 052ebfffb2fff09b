"""Export the flows of a result as qlog, for qvis and other tools of QUIC.

Events and fields are those of draft-ietf-quic-qlog-main-schema and draft-ietf-quic-qlog-quic-events. Two versions are
written: 0.3 (draft-ietf-quic-qlog-main-schema-02: `transport:packet_sent`, `recovery:metrics_updated`), the last one
that qvis opens, and the draft of July 2026 (-13: `quic:packet_sent`, `quic:recovery_metrics_updated`).

The flows are TCP's. What that means for a log of QUIC's events:

- Lengths count payload, as TCP's windows do; a window in segments becomes bytes by the segment size.
- A packet's number is the number of the transmission among those of its flow, from 0: QUIC never uses one twice, TCP's
  sequence numbers come again. Without the table `transmissions` (`record.pcap`) no packet is known, and a lost one has
  the number of its segment.
- An ACK frame has the packets that arrived before the acknowledgement was sent, and whose segments are below its
  cumulative number. What SACK reports earlier the result does not have.
- A packet is lost when its segment is retransmitted, at the latest; the sender may have marked it before.
- The states are those that events begin: recovery at a loss, recovery at marks, slow start at a timeout.

What a result lacks is not written.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import polars as pl

from ackclock import _core
from ackclock.dataset import Dataset
from ackclock.errors import InputError

#: Versions for `--schema`.
SCHEMAS = ("0.3", "draft")

#: Names in 0.3 → names in the draft, which has one namespace.
DRAFT_NAMES = {
    "transport:packet_sent": "quic:packet_sent",
    "transport:packet_received": "quic:packet_received",
    "recovery:packet_lost": "quic:packet_lost",
    "recovery:parameters_set": "quic:recovery_parameters_set",
    "recovery:metrics_updated": "quic:recovery_metrics_updated",
    "recovery:congestion_state_updated": "quic:congestion_state_updated",
}

#: Event schemas of the draft: QUIC's events, and one for the internal state of our controllers.
EVENT_SCHEMAS = ("urn:ietf:params:qlog:events:quic-13", "urn:ackclock:qlog:events:ackclock")

#: Causes of a transmission that follow the loss of the one before.
AFTER_LOSS = {"fast_retransmit": "reordering_threshold", "timeout": "pto_expired", "after_timeout": "pto_expired"}

#: Events that change the state of the controller: the new state and the trigger.
STATES = {"recovery": ("recovery", "loss"), "timeout": ("slow_start", "timeout"), "mark_reaction": ("recovery", "ecn")}

Event: TypeAlias = tuple[float, str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Trace:
    """One flow of one run."""

    label: str
    events: Sequence[Event]


def write(
    data: Dataset, *, schema: str = "0.3", sequential: bool = True, run: int = 0, flows: Sequence[int] = ()
) -> Iterator[str]:
    """Yield the text of a log: JSON text sequences, or one JSON object with a trace for each flow.

    Args:
        data: the result.
        schema: one of `SCHEMAS`.
        sequential: JSON-SEQ instead of JSON.
        run: the run.
        flows: only these flows; by default all whose windows can be written in bytes.

    Raises:
        InputError: an unknown schema, run or flow, or a flow whose segments have no known size.
    """
    if schema not in SCHEMAS:
        raise InputError(f"--schema: found {schema!r}; expected one of {', '.join(SCHEMAS)}")
    traces = [_trace(data, run, flow, mss_bytes) for flow, mss_bytes in _chosen(data, run, flows)]
    title = data.plan.name or "ackclock"
    named = ((trace, _renamed(trace.events, schema)) for trace in traces)
    return _sequence(title, schema, list(named)) if sequential else _object(title, schema, named)


def _chosen(data: Dataset, run: int, flows: Sequence[int]) -> list[tuple[int, int]]:
    """Return the flows with the segment size of each."""
    present = _flows_of(data, run)
    if not present:
        raise InputError(f"--run: found {run}; expected a run that has flows")
    if unknown := set(flows) - set(present):
        raise InputError(f"--flow: found {min(unknown)}; expected one from {present[0]} to {present[-1]}")
    sized = [(flow, size) for flow in sorted(set(flows) or present) if (size := _mss_bytes(data, run, flow))]
    if not sized or len(sized) < len(set(flows)):
        raise InputError(_no_segments(data, run, flows, [flow for flow, _ in sized]))
    return sized


def _no_segments(data: Dataset, run: int, flows: Sequence[int], sized: Sequence[int]) -> str:
    """Return why flows cannot be written: those of QUIC and UDP have no segment size."""
    if not flows:
        return f"{data.plan.name or 'the result'}: found no TCP flow; expected one, whose windows are segments"
    others = [flow for flow in flows if flow not in sized]
    known = [flow for flow in _flows_of(data, run) if _mss_bytes(data, run, flow)]
    which = f"a TCP flow, such as {known[0]}" if known else "a result with TCP flows"
    return f"--flow: found {others[0]}, which is not TCP's and has no segment size; expected {which}"


def notes(data: Dataset, run: int = 0, flows: Sequence[int] = ()) -> Iterator[str]:
    """Yield what a log of these flows lacks: flows that are not TCP's, and packets that were not recorded."""
    others = [str(flow) for flow in _flows_of(data, run) if not flows and not _mss_bytes(data, run, flow)]
    if others:
        yield f"flow{'s' if len(others) > 1 else ''} {', '.join(others)}: not TCP's"
    if not data.scan("transmissions").filter(pl.col("run") == run).head(1).collect().height:
        yield "packets, ACKs and the packets that were lost: record.pcap = true writes them"


def _flows_of(data: Dataset, run: int) -> list[int]:
    """Return the numbers of a run's flows."""
    rows = data.scan("flows").filter(pl.col("run") == run).select("flow").collect()
    return [int(flow) for flow in rows["flow"].sort()]


def _renamed(events: Iterable[Event], schema: str) -> Iterator[Event]:
    """Yield the events by the names of a version."""
    if schema == "0.3":
        return iter(events)
    return ((time_ms, DRAFT_NAMES.get(name, name), body) for time_ms, name, body in events)


# --- files -----------------------------------------------------------------------------------------------------------


def _header(title: str, schema: str, *, sequential: bool) -> dict[str, Any]:
    about = {"title": title, "description": f"Written by `ackclock export` (ackclock {_core.version})."}
    if schema == "0.3":
        return {"qlog_version": "0.3", "qlog_format": "JSON-SEQ" if sequential else "JSON", **about}
    kind = ("sequential", "json-seq") if sequential else ("contained", "json")
    return {
        "file_schema": f"urn:ietf:params:qlog:file:{kind[0]}",
        "serialization_format": f"application/qlog+{kind[1]}",
        **about,
    }


def _about(label: str, schema: str) -> dict[str, Any]:
    """Return what stands before the events of a trace. The end that opens a connection sends the data."""
    common = {"protocol_type": ["TCP"]}
    vantage = {"name": "sender", "type": "client"}
    if schema == "0.3":
        times: dict[str, Any] = {"time_format": "relative", "reference_time": 0}
        return {"title": label, "vantage_point": vantage, "common_fields": {**common, **times}}
    times = {"time_format": "relative_to_epoch", "reference_time": {"clock_type": "monotonic", "epoch": "unknown"}}
    return {
        "title": label,
        "vantage_point": vantage,
        "common_fields": {**common, **times},
        "event_schemas": list(EVENT_SCHEMAS),
    }


def _sequence(title: str, schema: str, traces: Sequence[tuple[Trace, Iterator[Event]]]) -> Iterator[str]:
    """Yield a log with one trace; several flows share it, each with its group (main schema, section 7.5)."""
    label = traces[0][0].label if len(traces) == 1 else title
    yield _record({**_header(title, schema, sequential=True), "trace": _about(label, schema)})
    entries = [
        ({"group_id": trace.label} if len(traces) > 1 else {}, event) for trace, events in traces for event in events
    ]
    entries.sort(key=lambda entry: entry[1][0])
    for group, (time_ms, name, body) in entries:
        yield _record({"time": time_ms, "name": name, **group, "data": body})


def _record(value: Mapping[str, Any]) -> str:
    return f"\x1e{json.dumps(value, allow_nan=False)}\n"


def _object(title: str, schema: str, traces: Iterable[tuple[Trace, Iterator[Event]]]) -> Iterator[str]:
    """Yield a log with a trace for each flow."""
    head = json.dumps(_header(title, schema, sequential=False), allow_nan=False)
    yield f'{head[:-1]}, "traces": ['
    for number, (trace, events) in enumerate(traces):
        about = json.dumps(_about(trace.label, schema), allow_nan=False)
        yield f'{"," if number else ""}\n{about[:-1]}, "events": ['
        for place, (time_ms, name, body) in enumerate(events):
            event = json.dumps({"time": time_ms, "name": name, "data": body}, allow_nan=False)
            yield f"{',' if place else ''}\n{event}"
        yield "\n]}"
    yield "\n]}\n"


# --- events ----------------------------------------------------------------------------------------------------------


def _trace(data: Dataset, run: int, flow: int, mss_bytes: int) -> Trace:
    row = _rows(data, "flows", run, flow).row(0, named=True)
    sent = _rows(data, "transmissions", run, flow)
    events = [
        (0.0, "recovery:parameters_set", _parameters(data, row["group"], mss_bytes)),
        *_packets(sent, mss_bytes),
        *_metrics(_rows(data, "flow_samples", run, flow), mss_bytes),
        *_states(_rows(data, "events", run, flow), has_packets=sent.height > 0),
        *_internals(_rows(data, "cubic_samples", run, flow), mss_bytes),
    ]
    events.sort(key=lambda event: event[0])
    ends = " to ".join(end for end in (row["source"], row["destination"]) if end)
    return Trace(f"flow {flow} ({row['congestion']}{', ' + ends if ends else ''})", events)


def _rows(data: Dataset, table: str, run: int, flow: int) -> pl.DataFrame:
    return data.scan(table).filter((pl.col("run") == run) & (pl.col("flow") == flow)).collect()


def _mss_bytes(data: Dataset, run: int, flow: int) -> int | None:
    """Return the segment size of a flow: the plan's, or that of a capture; None for one without segments."""
    groups, group = data.plan.groups, int(_rows(data, "flows", run, flow)["group"][0])
    tcp = groups[group].tcp if group < len(groups) else None
    if tcp is not None and tcp.mss_bytes:
        return tcp.mss_bytes
    captured = _rows(data, "captured", run, flow)
    return int(captured["mss"][0]) if captured.height and captured["mss"][0] else None


def _parameters(data: Dataset, group: int, mss_bytes: int) -> dict[str, Any]:
    groups = data.plan.groups
    tcp = groups[group].tcp if group < len(groups) else None
    initial = {} if tcp is None or not tcp.initial_window else {
        "initial_congestion_window": tcp.initial_window * mss_bytes
    }  # fmt: skip
    return {"max_datagram_size": mss_bytes, **initial}


def _packets(sent: pl.DataFrame, mss_bytes: int) -> Iterator[Event]:
    """Yield what was acknowledged, lost and sent: at one time in this order, as each causes the next."""
    if not sent.height:
        return
    data = sent.filter((pl.col("end") == "sender") & (pl.col("payload_bytes") > 0)).sort("time_s", maintain_order=True)
    acks = sent.filter(
        (pl.col("end") == "receiver") & pl.col("segment").is_not_null() & (pl.col("fate") == "delivered")
    )
    yield from _received(data, acks)
    yield from _sent(data, mss_bytes)


def _sent(data: pl.DataFrame, mss_bytes: int) -> Iterator[Event]:
    newest: dict[int, int] = {}
    columns = data.select("time_s", "segment", "payload_bytes", "cause").iter_rows()
    for number, (time_s, segment, payload_bytes, cause) in enumerate(columns):
        if cause in AFTER_LOSS and segment in newest:
            lost = {"header": _packet_header(newest[segment]), "trigger": AFTER_LOSS[cause]}
            yield _ms(time_s), "recovery:packet_lost", lost
        newest[segment] = number
        frame = {"frame_type": "stream", "stream_id": 0, "offset": segment * mss_bytes, "length": payload_bytes}
        body = {"header": _packet_header(number), "raw": {"length": payload_bytes}, "frames": [frame]}
        if cause == "tail_probe":
            body["trigger"] = "pto_probe"
        yield _ms(time_s), "transport:packet_sent", body


def _received(data: pl.DataFrame, acks: pl.DataFrame) -> Iterator[Event]:
    """Yield acknowledgements with the packets that each is the first to cover."""
    delivered = data.with_row_index("number").filter(pl.col("fate").is_in(["delivered", "duplicate"]))
    waiting: dict[int, list[tuple[float, int]]] = {}
    for number, segment, arrival_s in delivered.select("number", "segment", "arrival_s").iter_rows():
        waiting.setdefault(segment, []).append((arrival_s if arrival_s is not None else 0.0, number))
    below = min(waiting, default=0)
    rows = acks.sort("arrival_s", maintain_order=True).select("time_s", "segment", "arrival_s").iter_rows()
    for place, (sent_s, cumulative, arrival_s) in enumerate(rows):
        covered = []
        for segment in range(below, cumulative):
            copies = waiting.pop(segment, [])
            covered += [number for came_s, number in copies if came_s <= sent_s]
        below = max(below, cumulative)
        frame = {"frame_type": "ack", "acked_ranges": _ranges(sorted(covered))}
        frames = {"frames": [frame]} if covered else {}
        yield _ms(arrival_s), "transport:packet_received", {"header": _packet_header(place), **frames}


def _ranges(numbers: Sequence[int]) -> list[list[int]]:
    """Return numbers as ranges, first and last."""
    found: list[list[int]] = []
    for number in numbers:
        if found and found[-1][1] == number - 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return found


def _packet_header(number: int) -> dict[str, Any]:
    return {"packet_type": "1RTT", "packet_number": number}


def _metrics(samples: pl.DataFrame, mss_bytes: int) -> Iterator[Event]:
    """Yield the values that changed."""
    units = (
        ("cwnd", "congestion_window", mss_bytes),
        ("ssthresh", "ssthresh", mss_bytes),
        ("in_flight", "bytes_in_flight", mss_bytes),
    )
    before: dict[str, Any] = {}
    for row in samples.sort("time_s").iter_rows(named=True):
        values: dict[str, Any] = {to: round(row[name] * unit) for name, to, unit in units if row[name] is not None}
        if row["srtt_s"] is not None:
            values["smoothed_rtt"] = _ms(row["srtt_s"])
        changed = {name: value for name, value in values.items() if before.get(name) != value}
        before |= changed
        if changed:
            yield _ms(row["time_s"]), "recovery:metrics_updated", changed


def _states(events: pl.DataFrame, *, has_packets: bool) -> Iterator[Event]:
    for time_s, kind, value in events.select("time_s", "kind", "value").iter_rows():
        if kind in STATES:
            new, trigger = STATES[kind]
            yield _ms(time_s), "recovery:congestion_state_updated", {"new": new, "trigger": trigger}
        elif kind == "retransmission" and value is not None and not has_packets:
            yield _ms(time_s), "recovery:packet_lost", {"header": _packet_header(int(value))}


def _internals(samples: pl.DataFrame, mss_bytes: int) -> Iterator[Event]:
    """Yield CUBIC's state by the names of RFC 9438, windows in bytes."""
    for row in samples.iter_rows(named=True):
        windows = {name: round(row[name] * mss_bytes) for name in ("target", "w_cubic", "w_est", "origin")}
        w_max = {} if row["w_max"] is None else {"w_max": round(row["w_max"] * mss_bytes)}
        yield _ms(row["time_s"]), "ackclock:cubic_state_updated", {**windows, **w_max, "k": _ms(row["k_s"])}


def _ms(time_s: float) -> float:
    """Return milliseconds, to a nanosecond."""
    return round(1e3 * time_s, 6)
