"""Tables of a dataset from the analysis of captures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ackclock import _core
from ackclock.capture import clock, congestion, udp
from ackclock.capture.analysis import AT_A_TIME, end
from ackclock.dataset import Dataset, Spool
from ackclock.dataset.tables import EVENT_KINDS, SENDERS, STALL_CLASSES, TABLES, Column

#: Parts of the time, of each of which the extremes of what came above the path's rate are kept.
LEVEL_PARTS = 2000

Columns = Mapping[str, Column]

#: Rounding of a time as a multiple of the interval: 1.1 s is eleven times 0.1 s.
ROUNDING = 1e-6

#: Words behind integer codes.
NAMES: Mapping[str, Sequence[str]] = {
    "events.kind": EVENT_KINDS,
    "captured.sender": SENDERS,
    "captured.vantage": _core.CAPTURE_VANTAGES,
    "stalls.class": STALL_CLASSES,
    "windows.limit": _core.CAPTURE_LIMITS,
    "segments.fate": _core.CAPTURE_FATES,
    "segments.cause": _core.CAPTURE_CAUSES,
}


def spooled(capture: _core.Capture, interval_s: float, log: clock.ClockLog | None) -> Spool:
    """Return all rows of a capture."""
    spool = Spool(names=NAMES)
    for rows in _rows(capture):
        for table, columns in _tables(rows, interval_s):
            spool.append(table, columns if log is None or table != "stalls" else _logged(columns, log, capture))
    return spool


def dataset(
    spool: Spool,
    capture: _core.Capture,
    rankings: Mapping[int, congestion.Ranking],
    analysis: Mapping[str, Any],
    command: str | None,
) -> Dataset:
    """Return the dataset with the rows, the CCAs identified, and the analysis in the manifest."""
    spool.revise("flows", "congestion", "flow", {flow: congestion.word(ranking) for flow, ranking in rankings.items()})
    if analysis["path"]["rate_bps"]:
        spool.append("levels", capture.levels(analysis["path"]["rate_bps"], LEVEL_PARTS))
    for table, columns in udp.tables(udp.of_analysis(analysis)["flows"]):
        spool.append(table, columns)
    about = {"ackclock": _core.version, "runs": [{"run": 0}], **({"command": command} if command else {})}
    return spool.dataset({**about, "capture": analysis})


def _rows(capture: _core.Capture) -> Iterator[Mapping[str, Columns]]:
    more = True
    while more:
        more = capture.advance(AT_A_TIME)
        yield capture.drain()


def _tables(rows: Mapping[str, Columns], interval_s: float) -> Iterator[tuple[str, Columns]]:
    """Yield the dataset's tables from the rows of the analysis.

    A sample is taken when its flow sends; here all get the next instant that is a multiple of the interval, since
    metrics take means over the flows of an instant.
    """
    flows, events, samples = rows["flows"], rows["events"], rows["flow_samples"]
    if len(flows["flow"]):
        ends = _ends(flows)
        yield "flows", _columns_of("flows", {**flows, **_as_flows(flows, ends)})
        yield "captured", _columns_of("captured", {**flows, **ends})
    numbers = np.ceil(np.asarray(samples["time_s"]) / interval_s - ROUNDING)
    samples = {**samples, "time_s": interval_s * numbers}
    yield "flow_samples", _columns_of("flow_samples", samples)
    yield "windows", _columns_of("windows", samples)
    yield "events", _columns_of("events", events)
    stood = np.asarray(events["kind"]) == EVENT_KINDS.index("stall")
    yield "stalls", {name: np.asarray(events[name])[stood] for name in TABLES["stalls"] if name in events}
    for table in ("segments", "acknowledgements"):
        yield table, _columns_of(table, rows[table])


def _logged(stalls: Columns, log: clock.ClockLog, capture: _core.Capture) -> Columns:
    """Give the stalls that coincide with gaps in the clock log their class."""
    begin_s = 1e-9 * (capture.origin_ns or 0) + np.asarray(stalls["time_s"])
    which, kinds, sure = log.explains(begin_s, np.asarray(stalls["duration_s"]))
    classes, confidence = np.array(stalls["class"]), np.array(stalls["confidence"])
    classes[which], confidence[which] = len(_core.CAPTURE_STALLS) + kinds, sure
    return {**stalls, "class": classes, "confidence": confidence}


def _columns_of(table: str, columns: Columns) -> dict[str, Column]:
    """Return the columns that the table has."""
    return {name: columns[name] for name in TABLES[table] if name in columns}


def _ends(flows: Columns) -> dict[str, Column]:
    """Return the connection of each direction, its sender and both addresses."""
    flow = np.asarray(flows["flow"])
    return {
        "connection": flow // 2,
        "sender": flow % 2,
        "client": [end(*each) for each in zip(flows["client"], flows["client_port"], strict=True)],
        "server": [end(*each) for each in zip(flows["server"], flows["server_port"], strict=True)],
    }


def _as_flows(flows: Columns, ends: Columns) -> dict[str, Column]:
    """Return the columns of `flows`. A flow is over when its connection is closed and all data arrived.

    What was opened in the capture is a transfer. One that is not over is unfinished, and its size is what was
    delivered, since it is at least that. Of one that began before nobody knows how long it took. All is measured:
    a capture has no warm-up; what is sent are segments with data, as the acknowledgements are those of a flow, too.
    """
    pairs = list(zip(ends["client"], ends["server"], ends["sender"], strict=True))
    start_s, end_s = np.asarray(flows["start_s"]), np.asarray(flows["last_ack_s"])
    is_over = np.asarray(flows["closed"], dtype=bool) & (np.asarray(flows["unresolved"]) == 0)
    over_s = np.where(is_over, end_s, np.nan)
    delivered = np.asarray(flows["delivered_bytes"])
    is_transfer = np.asarray(flows["opened"], dtype=bool) & (np.asarray(flows["payload_bytes"]) > 0)
    return {
        "group": np.zeros(len(pairs), np.uint32),
        "congestion": [congestion.UNKNOWN] * len(pairs),
        "source": [server if sender else client for client, server, sender in pairs],
        "destination": [client if sender else server for client, server, sender in pairs],
        "received_packets": np.full(len(pairs), np.iinfo(np.uint64).max, np.uint64),
        "base_rtt_s": flows["rtt_min_s"],
        "tail_probes": flows["retransmissions_tail_probe"],
        "end_s": over_s,
        "fct_s": np.where(is_transfer, over_s - start_s, np.nan),
        "size_bytes": np.where(is_transfer, delivered, np.iinfo(delivered.dtype).max),
        "measured_sent_packets": flows["data_segments"],
        "measured_retransmissions": flows["retransmissions"],
        "measured_timeouts": flows["timeouts"],
    }
