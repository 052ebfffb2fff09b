"""Import logs of `tc -s qdisc` (iproute2's tc(8)), as text or with -j, with times as `text.snapshots` reads them.

Counts of tc are from the beginning of a discipline; here they are since the sample before, so the first has none. The
bottleneck is taken to be the queue with most drops, then with the longest backlog, of those that hold no other.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from ackclock.importers.measurements import Queue, QueueSample, Run
from ackclock.importers.text import Text, Value, snapshots
from ackclock.system.files import printable

EXPECTED = "a time (date +%s.%N), then what `tc -s qdisc` prints"

_QDISC = re.compile(r"qdisc (\S+) (\S+?):? (?:dev (\S+) )?(root|ingress|parent (\S+))?.*")
_SENT = re.compile(r"\s*Sent \d+ bytes (\d+) pkts? \(dropped (\d+),.*")
_BACKLOG = re.compile(r"\s*backlog (\d+)([KMG]?)b (\d+)p.*")
_MARKS = re.compile(r".*\b(?:ecn_mark|marked) (\d+).*")

#: tc's K is 1024.
_SCALES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def recognises(given: Text) -> bool:
    """Return True if the text looks like a log of tc."""
    return re.search(r'^(?:.*\s)?qdisc \S+ \S+:|\{"kind":', given.text, re.MULTILINE) is not None and not given.is_json


def read(files: Sequence[Text]) -> Iterator[Run]:
    """Return a run for each file. Raises `InputError`."""
    return map(_run, files)


@dataclass
class _Counts:
    """Counters of a queue at an instant, since its creation."""

    sent_p: float | None = None
    drops_p: float | None = None
    marks_p: float | None = None
    backlog_p: float | None = None
    backlog_bytes: float | None = None


#: A queue's name, discipline, handle and parent, and what is said of it.
_Observation: TypeAlias = tuple[str, str, str, str, _Counts]


@dataclass
class _QueueSeries:
    """A queue as far as the log has been read; `parent` is the handle of the qdisc that contains it."""

    discipline: str
    handle: str
    parent: str
    last: _Counts
    samples: list[QueueSample] = field(default_factory=list)

    @property
    def severity(self) -> tuple[float, float]:
        drops = sum(sample.drops_p or 0.0 for sample in self.samples)
        return drops, max((sample.backlog_p or 0.0 for sample in self.samples), default=0.0)


def _run(given: Text) -> Run:
    queues_by_name: dict[str, _QueueSeries] = {}
    begin_s = None
    for at_s, lines in snapshots(given, EXPECTED):
        begin_s = at_s if begin_s is None else begin_s
        for observation in (*_of_text(given, lines), *_of_json(given, lines)):
            _take(queues_by_name, observation, at_s - begin_s)
    if begin_s is None or not queues_by_name:
        given.wrong(1, "no queue", EXPECTED)
    return Run(queues=_queues(queues_by_name), began_s=begin_s)


def _take(queues_by_name: dict[str, _QueueSeries], observation: _Observation, time_s: float) -> None:
    name, discipline, handle, parent, counts = observation
    queue = queues_by_name.setdefault(name, _QueueSeries(discipline, handle, parent, _Counts()))
    queue.samples.append(_sample(time_s, queue.last, counts))
    queue.last = counts


def _queues(queues_by_name: Mapping[str, _QueueSeries]) -> list[Queue]:
    leaves = _leaves(queues_by_name)
    worst = max(leaves, key=lambda name: leaves[name].severity)
    return [Queue(name, queue.discipline, queue.samples, name == worst) for name, queue in queues_by_name.items()]


def _leaves(queues_by_name: Mapping[str, _QueueSeries]) -> Mapping[str, _QueueSeries]:
    """Return the queues that contain no other; all, if each does."""
    holders = {queue.parent.partition(":")[0] for queue in queues_by_name.values() if queue.parent}
    return {name: queue for name, queue in queues_by_name.items() if queue.handle not in holders} or queues_by_name


def _sample(time_s: float, before: _Counts, now: _Counts) -> QueueSample:
    return QueueSample(
        time_s,
        backlog_p=now.backlog_p,
        backlog_bytes=now.backlog_bytes,
        departures_p=_since(before.sent_p, now.sent_p),
        drops_p=_since(before.drops_p, now.drops_p),
        marks_p=_since(before.marks_p, now.marks_p),
    )


def _since(before: float | None, now: float | None) -> float | None:
    """Return the increase; a qdisc that was replaced starts from 0."""
    if before is None or now is None:
        return None
    return now - before if now >= before else now


def _of_text(given: Text, lines: Sequence[tuple[int, str]]) -> Iterator[_Observation]:
    counts: _Counts | None = None
    for number, line in lines:
        if result := _QDISC.fullmatch(line.strip()):
            counts = _Counts()
            kind, handle, device, place, parent = result.groups()
            yield _name(kind, handle, device, parent or place), kind, *_at(device, handle, parent), counts
        elif counts is not None:
            _add(given, number, line, counts)


def _add(given: Text, number: int, line: str, counts: _Counts) -> None:
    if result := _SENT.fullmatch(line):
        counts.sent_p = given.number(number, result[1], "packets")
        counts.drops_p = given.number(number, result[2], "drops")
    elif result := _BACKLOG.fullmatch(line):
        counts.backlog_bytes = given.number(number, result[1], "backlog") * _SCALES[result[2]]
        counts.backlog_p = given.number(number, result[3], "backlog")
    elif result := _MARKS.fullmatch(line):
        counts.marks_p = given.number(number, result[1], "marks")


def _of_json(given: Text, lines: Sequence[tuple[int, str]]) -> Iterator[_Observation]:
    for number, line in lines:
        if line.lstrip().startswith("[{"):
            yield from map(_of_value, _values(given, number, line))


def _values(given: Text, number: int, line: str) -> list[Value]:
    try:
        return Value(given.path, f"line {number}", json.loads(line)).items
    except (ValueError, RecursionError):
        given.wrong(number, "broken JSON", EXPECTED)


def _of_value(value: Value) -> _Observation:
    kind, handle = value["kind"].text() or "?", (value["handle"].text() or "").rstrip(":")
    parent = value["parent"].text() or ""
    counts = _Counts(
        value["packets"].number(),
        value["drops"].number(),
        next((value[key].number() for key in ("ecn_mark", "marked") if value[key]), None),
        value["qlen"].number(),
        value["backlog"].number(),
    )
    device = value["dev"].text()
    return _name(kind, handle, device, parent), kind, *_at(device, handle, parent), counts


def _at(device: str | None, handle: str, parent: str | None) -> tuple[str, str]:
    """Return the handles of a queue and of its parent: each device has its own."""
    place = device or ""
    return f"{place} {handle}", f"{place} {parent}" if parent else ""


def _name(kind: str, handle: str, device: str | None, parent: str | None) -> str:
    """Return a unique name: a device may have several queues, and an unnamed handle is 0."""
    place = f" at {parent}" if parent and parent != "root" else ""
    return printable(" ".join(filter(None, (device, kind, f"{handle}:"))) + place)
