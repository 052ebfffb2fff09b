"""Packet captures: what happened to the TCP connections in them, as the dataset that engines write.

`crates/ackclock-capture` reads and analyses; here its rows become tables, and its findings answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ackclock import _core
from ackclock.captures import answers, clock, congestion, summary
from ackclock.captures.tally import Tally
from ackclock.dataset import Dataset, Spool, kinds
from ackclock.dataset.kinds import Kind
from ackclock.dataset.tables import EVENT_KINDS, SENDERS, SILENCES, TABLES, Column
from ackclock.errors import InputError
from ackclock.input import arguments
from ackclock.input.arguments import checked, optional, several
from ackclock.system import files as regular
from ackclock.system.files import readable

#: Standard input, among the files.
STANDARD_INPUT = "-"

#: Segments that are analysed before the rows found are put away; and somebody may want it to end.
AT_A_TIME = 50_000

#: Connections that answers have one by one. The tables have all.
MOST_FLOWS = 10_000

#: Parts of the time, of each of which the extremes of what came above the path's rate are kept.
LEVEL_PARTS = 2000

#: A flow is sampled at most once in this time, in seconds.
INTERVAL_S = 0.1

Columns = Mapping[str, Column]

#: Words behind integer codes.
NAMES: Mapping[str, Sequence[str]] = {
    "events.kind": EVENT_KINDS,
    "captured.sender": SENDERS,
    "captured.vantage": _core.CAPTURE_VANTAGES,
    "stalls.class": SILENCES,
    "windows.limit": _core.CAPTURE_LIMITS,
    "segments.fate": _core.CAPTURE_FATES,
    "segments.cause": _core.CAPTURE_CAUSES,
}


@dataclass(frozen=True, slots=True)
class Captured:
    """What captures tell: tables, answers (see `answers`), and why files, or the rest of them, could not be read."""

    data: Dataset
    answers: Mapping[str, Any]
    notes: tuple[str, ...] = ()


@checked(
    files=several(arguments.PATH, "paths of captures"),
    expression=arguments.TEXT,
    interval_s=arguments.number(1e-6, expected="a time in seconds"),
    segments=arguments.FLAG,
    clock_log=optional(arguments.PATH),
    command=optional(arguments.TEXT),
)
def read(
    files: Sequence[Path | str],
    expression: str = "",
    *,
    interval_s: float = INTERVAL_S,
    segments: bool = False,
    clock_log: Path | str | None = None,
    command: str | None = None,
) -> Captured:
    """Analyses captures (pcap or pcapng, also as gz, zst or xz; `-` is standard input) as one, in the order of time.

    Args:
        files: the captures.
        expression: only these packets, in the words of pcap-filter(7): addresses and ports.
        interval_s: flows are sampled at most once in this time, in seconds.
        segments: also the fate of each copy of each data segment and each acknowledgement, as the tables `segments`
            and `acknowledgements`.
        clock_log: a log of gaps in the clock of the host (see `clock`): silences that coincide with one have its class.
        command: for the manifest.

    Raises:
        InputError: nothing could be read, the expression is none, or the log is none of the captures' time.
    """
    if not files:
        raise InputError("files: found none; expected paths of captures")
    if len({str(path) for path in files}) < len(files):
        raise InputError("files: found the same capture twice; expected each once")
    for path in map(Path, files):
        if str(path) != STANDARD_INPUT:
            _check(path)
    try:
        capture = _core.Capture(list(files), expression, interval_s=interval_s, segments=segments)
    except ValueError as error:
        from ackclock.input.fields import shown

        raise InputError(f"--filter {shown(expression)}: {error}") from error
    log = None if clock_log is None else clock.read(clock_log)
    spool = Spool(names=NAMES)
    tally = Tally(MOST_FLOWS)
    for rows in _rows(capture):
        tally.add(rows["flows"])
        for table, columns in _tables(rows, interval_s):
            spool.append(table, columns if log is None or table != "stalls" else _logged(columns, log, capture))
    found = capture.files()
    notes = tuple(f"{readable(file['path'])}: {file['note']}" for file in found if file["note"])
    if all(file["refused"] for file in found):
        raise InputError("\n".join(notes))
    if log is not None:
        origin_s = 1e-9 * (capture.origin_ns or 0)
        log.check(origin_s, origin_s + capture.duration_s)
    rankings = congestion.rankings(capture)
    spool.revise("flows", "congestion", "flow", {flow: congestion.word(ranking) for flow, ranking in rankings.items()})
    told = _answers(spool.dataset(_about(command)), tally, capture, found, rankings)
    if told["path"]["rate_bps"]:
        spool.append("levels", capture.levels(told["path"]["rate_bps"], LEVEL_PARTS))
    data = spool.dataset({**_about(command), "capture": told})
    return Captured(data, told, notes)


@checked(folder=arguments.PATH, clock_log=optional(arguments.PATH))
def of_result(folder: Path | str, clock_log: Path | str | None = None) -> Captured:
    """What captures told when their result was written. Raises `InputError` if it is none, and for a clock log."""
    if clock_log is not None:
        raise InputError(f"--clock: found {readable(folder)}, a result; expected captures, which a log is joined with")
    data = Dataset.read(folder)
    if "capture" not in data.manifest:
        raise InputError(f"{readable(folder)}: found {kinds.of(data.manifest).value}; expected {Kind.CAPTURE.value}")
    return Captured(data, data.manifest["capture"])


def _check(path: Path) -> None:
    try:
        regular.check(path)
    except regular.UnreadableError as error:
        raise InputError(f"{readable(path)}: found {error.found}; expected a capture (pcap or pcapng)") from error


def _about(command: str | None) -> dict[str, Any]:
    return {"ackclock": _core.version, "runs": [{"run": 0}], **({"command": command} if command else {})}


def _rows(capture: _core.Capture) -> Iterator[Mapping[str, Columns]]:
    """Rows as they are found."""
    more = True
    while more:
        more = capture.advance(AT_A_TIME)
        yield capture.drain()


def _tables(rows: Mapping[str, Columns], interval_s: float) -> Iterator[tuple[str, Columns]]:
    """The dataset's tables of what the analysis found.

    A sample is taken when its flow sends; here all get the next instant that is a multiple of the interval, since
    metrics take means over the flows of an instant.
    """
    flows, events, samples = rows["flows"], rows["events"], rows["flow_samples"]
    if len(flows["flow"]):
        ends = _ends(flows)
        yield "flows", _known("flows", {**flows, **_as_flows(flows, ends)})
        yield "captured", _known("captured", {**flows, **ends})
    samples = {**samples, "time_s": interval_s * np.ceil(np.asarray(samples["time_s"]) / interval_s)}
    yield "flow_samples", _known("flow_samples", samples)
    yield "windows", _known("windows", samples)
    yield "events", _known("events", events)
    stood = np.asarray(events["kind"]) == EVENT_KINDS.index("stall")
    yield "stalls", {name: np.asarray(events[name])[stood] for name in TABLES["stalls"] if name in events}
    for table in ("segments", "acknowledgements"):
        yield table, _known(table, rows[table])


def _logged(stalls: Columns, log: clock.ClockLog, capture: _core.Capture) -> Columns:
    """Silences with the classes of the log where they coincide with its gaps."""
    begin_s = 1e-9 * (capture.origin_ns or 0) + np.asarray(stalls["time_s"])
    which, kinds, sure = log.explains(begin_s, np.asarray(stalls["duration_s"]))
    classes, confidence = np.array(stalls["class"]), np.array(stalls["confidence"])
    classes[which], confidence[which] = len(_core.CAPTURE_STALLS) + kinds, sure
    return {**stalls, "class": classes, "confidence": confidence}


def _known(table: str, columns: Columns) -> dict[str, Column]:
    """Those that the table has."""
    return {name: columns[name] for name in TABLES[table] if name in columns}


def _ends(flows: Columns) -> dict[str, Column]:
    """Of each direction its connection, and who its ends are."""
    flow = np.asarray(flows["flow"])
    return {
        "connection": flow // 2,
        "sender": flow % 2,
        "client": [_end(*end) for end in zip(flows["client"], flows["client_port"], strict=True)],
        "server": [_end(*end) for end in zip(flows["server"], flows["server_port"], strict=True)],
    }


def _end(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def _as_flows(flows: Columns, ends: Columns) -> dict[str, Column]:
    """What an engine would say of the same flows. A flow is over when its connection is closed.

    What was opened in the capture is a transfer. One that is not closed is unfinished, and its size is what was
    delivered, since it is at least that. Of one that began before nobody knows how long it took.
    """
    pairs = list(zip(ends["client"], ends["server"], ends["sender"], strict=True))
    start_s, end_s = np.asarray(flows["start_s"]), np.asarray(flows["last_ack_s"])
    over_s = np.where(flows["closed"], end_s, np.nan)
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
        "completion_s": np.where(is_transfer, over_s - start_s, np.nan),
        "size_bytes": np.where(is_transfer, delivered, np.iinfo(delivered.dtype).max),
    }


def _answers(
    data: Dataset,
    tally: Tally,
    capture: _core.Capture,
    files: Sequence[Mapping[str, Any]],
    rankings: Mapping[int, congestion.Ranking],
) -> dict[str, Any]:
    seen = tally.seen()
    listed = pl.Series(tally.largest())
    counts = data.scan("flows").select("flow", "sent_packets", "syn_retransmissions")
    rows = data.scan("captured").filter(pl.col("connection").is_in(listed.implode())).join(counts, on="flow")
    rows = rows.select(answers.COLUMNS)
    stalls = data.scan("stalls").filter((pl.col("flow") // 2).is_in(listed.implode())).sort("time_s")
    told = {
        "files": [_file(file) for file in files],
        "vantage": answers.vantage(seen),
        "packets": capture.segments,
        "connections": capture.connections,
        "path": capture.path() or dict(answers.NO_PATH),
        "capture_loss": answers.capture_loss(seen),
        "flows": answers.of_flows(
            rows.sort("flow").collect().iter_rows(named=True), stalls.collect().iter_rows(named=True), rankings
        ),
    }
    return {**told, "summary": summary.sentence(told)}


def _file(file: Mapping[str, Any]) -> dict[str, Any]:
    """What a file held besides TCP, as far as there is anything."""
    always = ("path", "packets", "segments", "note")
    return {key: value for key, value in file.items() if key in always or (value and key != "refused")}
