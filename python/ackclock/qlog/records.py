"""Files of qlog as traces of records: a time, a name, an object. See the package for the versions."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ackclock.errors import InputError
from ackclock.qlog import fields
from ackclock.qlog.fields import JsonObject
from ackclock.system import files
from ackclock.system.files import printable, readable

#: Longest file in bytes, also once it is decompressed: a connection of ten million packets has about that.
LONGEST = 2 << 30

#: Bytes at the beginning in which a file identifies itself; the draft recommends the first 256.
HEAD = 4096

#: Words of which one stands in that part.
MARKS = (b'"qlog_version"', b'"qlog_format"', b"urn:ietf:params:qlog:", b"application/qlog", b'"vantage_point"')

#: Names of files that are logs whatever they begin with.
SUFFIXES = (".qlog", ".sqlog", ".qlog.gz", ".sqlog.gz")

_GZIP = b"\x1f\x8b"

#: The separator of JSON text sequences (RFC 7464).
_SEPARATOR = "\x1e"

#: The end of a file behind the events of its only trace.
_CLOSING = "[]}]}"

#: Columns of events that are arrays, by their names in the versions.
_TIMES = ("time", "relative_time", "delta_time", "reference_time")
_EVENTS = ("event", "event_type", "type", "name")

EXPECTED = "a qlog file (JSON or JSON-SEQ)"


@dataclass(frozen=True, slots=True)
class Record:
    """One event: seconds from the first of its trace, category and name in lower case, and its data."""

    time_s: float
    category: str
    name: str
    data: JsonObject


@dataclass(frozen=True, slots=True)
class Trace:
    """The events of one connection at one end, in the order of time.

    `vantage` is "client", "server", or what else the log says; `unit_s` is the unit of its times, in seconds;
    `skipped` counts entries that are no events.
    """

    title: str
    vantage: str
    unit_s: float
    records: Sequence[Record]
    skipped: int = 0


@dataclass(frozen=True, slots=True)
class Log:
    """A file: its version, its traces and what could not be read."""

    path: Path
    version: str
    traces: Sequence[Trace]
    notes: tuple[str, ...] = ()


def is_qlog(path: Path) -> bool:
    """Return True if a path is that of a log by its name, or by a file's first bytes; False if they cannot be read."""
    if path.name.endswith(SUFFIXES):
        return True
    try:
        files.check(path)
        with path.open("rb") as file:
            head = file.read(HEAD)
    except (InputError, OSError, ValueError):
        return False
    if head.startswith(_GZIP):
        head = _inflate(head, HEAD)
    return any(mark in head for mark in MARKS)


def read(path: Path | str) -> Log:
    """Read a file, also one compressed by gzip. Raises `InputError` if it cannot be read or has no trace."""
    path = Path(path)
    try:
        content = files.read_bytes(path, LONGEST)
    except files.UnreadableError as error:
        raise InputError(f"{readable(path)}: found {error.found}; expected {EXPECTED}") from None
    if not content.strip():
        raise InputError(f"{readable(path)}: found an empty file; expected {EXPECTED}")
    if content.startswith(_GZIP):
        content = _inflate(content, LONGEST)
    return parse(path, content.decode("utf-8", "replace"))


def parse(path: Path, text: str) -> Log:
    """Return the log that a text is. Raises `InputError` if it has no trace."""
    header, entries, notes = _document(path, text)
    version = printable(fields.word(header, "qlog_version", "file_schema")) or "unknown"
    traces = [trace for raw, events in _raw_traces(header, entries) for trace in _split(raw, events)]
    if not traces:
        raise InputError(f"{readable(path)}: found no trace (version {version}); expected {EXPECTED}")
    if skipped := sum(trace.skipped for trace in traces):
        notes = (*notes, f"{skipped:,} entries that are no events were skipped")
    return Log(path, version, traces, notes)


def _inflate(content: bytes, longest: int) -> bytes:
    """Return what gzip compressed, as far as it is intact."""
    decoder = zlib.decompressobj(zlib.MAX_WBITS | 16)
    try:
        return decoder.decompress(content, longest)
    except zlib.error:
        return b""


def _document(path: Path, text: str) -> tuple[JsonObject, Sequence[Any] | None, tuple[str, ...]]:
    """Return the header of a file, its events if they follow the header, and notes."""
    if text.lstrip(" \t\r\n\ufeff").startswith(_SEPARATOR):
        return _sequence(path, text.split(_SEPARATOR))
    try:
        header, end = json.JSONDecoder().raw_decode(text.lstrip("\ufeff \t\r\n"))
    except (ValueError, RecursionError) as error:
        return _cut_short(path, text, error)
    if not isinstance(header, dict):
        raise InputError(f"{readable(path)}: found JSON that is no object; expected {EXPECTED}")
    rest = text.lstrip("\ufeff \t\r\n")[end:]
    return _sequence(path, [json.dumps(header), *rest.split("\n")]) if rest.strip() else (header, None, ())


def _sequence(path: Path, texts: Sequence[str]) -> tuple[JsonObject, Sequence[Any], tuple[str, ...]]:
    """Return header and events of a sequence; entries that are no JSON are None."""
    values = [_value(text) for text in texts if text.strip()]
    if not values or not isinstance(values[0], dict):
        raise InputError(f"{readable(path)}: found no header in the first record; expected {EXPECTED}")
    cut = values[-1] is None
    notes = ("the last record is cut short",) if cut else ()
    return values[0], values[1 : len(values) - cut], notes


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _cut_short(path: Path, text: str, error: Exception) -> tuple[JsonObject, Sequence[Any], tuple[str, ...]]:
    """Return what stands before the place where a JSON object of one trace ends early."""
    begin = text.find('"events"')
    begin = text.find("[", begin) if begin >= 0 else -1
    header = _value(text[:begin] + _CLOSING) if begin >= 0 else None
    if not isinstance(header, dict):
        where = getattr(error, "lineno", 1)
        raise InputError(f"{readable(path)}:{where}: found broken JSON; expected {EXPECTED}") from None
    events = list(_leading(text, begin + 1))
    traces = list(fields.tables(header, "traces"))
    return {**header, "trace": traces[-1] if traces else {}, "traces": None}, events, ("the file is cut short",)


def _leading(text: str, place: int) -> Iterator[Any]:
    """Yield the values of an array from a place in it, as far as they are intact."""
    decoder = json.JSONDecoder()
    while place < len(text):
        while place < len(text) and text[place] in " \t\r\n,":
            place += 1
        try:
            value, place = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            return
        yield value


def _raw_traces(header: JsonObject, entries: Sequence[Any] | None) -> Iterator[tuple[JsonObject, Sequence[Any]]]:
    if entries is not None:
        yield fields.table(header, "trace"), entries
        return
    for trace in fields.tables(header, "traces"):
        if isinstance(events := trace.get("events"), list):
            yield trace, events


def _split(raw: JsonObject, events: Sequence[Any]) -> Iterator[Trace]:
    """Yield a trace for each group of the events: several connections may share one."""
    common = fields.table(raw, "common_fields")
    columns = [str(name).lower() for name in raw["event_fields"]] if isinstance(raw.get("event_fields"), list) else []
    groups: dict[str, list[JsonObject]] = {}
    skipped = 0
    for event in events:
        entry = event if isinstance(event, dict) else _named(event, columns)
        if entry is None:
            skipped += bool(event) or event is None
            continue
        groups.setdefault(_group(entry, common), []).append(entry)
    unit_s = _unit_s(raw, common)
    title = printable(fields.word(raw, "title", "description"))
    vantage = fields.table(raw, "vantage_point")
    end = printable(fields.word(vantage, "type")).lower()
    end = printable(fields.word(vantage, "flow")).lower() if end == "network" else end
    for group, entries in groups.items():
        records, more = _records(entries, common, unit_s)
        label = f"{title} {group}".strip()
        yield Trace(label, end or "unknown", unit_s, records, skipped + more)
        skipped = 0


def _group(entry: JsonObject, common: JsonObject) -> str:
    group = entry.get("group_id", common.get("group_id"))
    return printable(group if isinstance(group, str) else json.dumps(group)) if group is not None else ""


def _named(event: Any, columns: Sequence[str]) -> JsonObject | None:
    """Return an event that is an array as an object, by the names of its columns or, without them, by its types."""
    if not isinstance(event, list) or not event:
        return None
    if columns:
        return dict(zip(columns, event, strict=False))
    words = [item for item in event if isinstance(item, str) and fields.signed(item) is None]
    datum = next((item for item in reversed(event) if isinstance(item, dict)), {})
    return {"time": event[0], "category": words[0], "name": words[1], "data": datum} if len(words) > 1 else None


def _unit_s(raw: JsonObject, common: JsonObject) -> float:
    unit = fields.word(fields.table(raw, "configuration"), "time_units") or fields.word(common, "time_units")
    return 1e-6 if unit == "us" else 1e-3


def _records(entries: Sequence[JsonObject], common: JsonObject, unit_s: float) -> tuple[list[Record], int]:
    """Return the events in the order of time, from the first on, and the number of those without time or name."""
    style = fields.word(common, "time_format") or ("delta" if "delta_time" in entries[0] else "")
    is_delta = style in ("delta", "relative_to_previous_event")
    found: list[tuple[float, str, str, JsonObject]] = []
    now = 0.0
    for entry in entries:
        time = next((value for key in _TIMES if (value := fields.signed(entry.get(key))) is not None), None)
        category, name = _name(entry)
        if time is None or not name:
            continue
        now = now + time if is_delta else time
        found.append((now * unit_s, category, name, fields.table(entry, "data")))
    found.sort(key=lambda one: one[0])
    start_s = found[0][0] if found else 0.0
    records = [Record(time_s - start_s, category, name, data) for time_s, category, name, data in found]
    return records, len(entries) - len(found)


def _name(entry: JsonObject) -> tuple[str, str]:
    """Return category and name of an event: `recovery:metrics_updated`, or the two in fields of their own."""
    name = fields.word(entry, *_EVENTS).lower()
    category = fields.word(entry, "category").lower()
    if ":" in name:
        category, _, name = name.rpartition(":")
    return category, name
