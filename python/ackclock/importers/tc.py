"""Logs of `tc -s qdisc` (iproute2's tc(8)), as text or with -j, with times as `clocked` has them: a queue each.

Counts of tc are from the beginning of a discipline; here they are since the sample before, so the first has none. The
bottleneck is taken to be the queue with most drops, then with the longest backlog, of those that hold no other.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from ackclock.importers import timestamped_log
from ackclock.importers.measurements import Queue, QueueSample, Run
from ackclock.importers.text import Text, Value
from ackclock.system.files import printable

EXPECTED = "a time (date +%s.%N), then what `tc -s qdisc` prints"

_QDISC = re.compile(r"qdisc (\S+) (\S+?):? (?:dev (\S+) )?(root|ingress|parent (\S+))?.*")
_SENT = re.compile(r"\s*Sent \d+ bytes (\d+) pkts? \(dropped (\d+),.*")
_BACKLOG = re.compile(r"\s*backlog (\d+)([KMG]?)b (\d+)p.*")
_MARKS = re.compile(r".*\b(?:ecn_mark|marked) (\d+).*")

#: tc's K is 1024.
_SCALES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def recognises(given: Text) -> bool:
    """Whether it looks like one."""
    return re.search(r'^(?:.*\s)?qdisc \S+ \S+:|\{"kind":', given.text, re.MULTILINE) is not None and not given.is_json


def read(files: Sequence[Text]) -> Iterator[Run]:
    """A run for each file. Raises `InputError`."""
    return map(_run, files)


@dataclass
class _Counts:
    """What tc says of a queue at an instant; counts from its beginning."""

    sent_p: float | None = None
    drops_p: float | None = None
    marks_p: float | None = None
    backlog_p: float | None = None
    backlog_bytes: float | None = None


#: A queue's name, discipline, handle and parent, and what is said of it.
_Look: TypeAlias = tuple[str, str, str, str, _Counts]


@dataclass
class _Seen:
    """A queue so far; `parent` is the handle of what holds it."""

    discipline: str
    handle: str
    parent: str
    last: _Counts
    samples: list[QueueSample] = field(default_factory=list)

    @property
    def badness(self) -> tuple[float, float]:
        """Drops and longest backlog."""
        drops = sum(sample.drops_p or 0.0 for sample in self.samples)
        return drops, max((sample.backlog_p or 0.0 for sample in self.samples), default=0.0)


def _run(given: Text) -> Run:
    seen: dict[str, _Seen] = {}
    begin_s = None
    for at_s, lines in timestamped_log.snapshots(given, EXPECTED):
        begin_s = at_s if begin_s is None else begin_s
        for look in (*_of_text(given, lines), *_of_json(given, lines)):
            _take(seen, look, at_s - begin_s)
    if begin_s is None or not seen:
        given.wrong(1, "no queue", EXPECTED)
    return Run(queues=_queues(seen), began_s=begin_s)


def _take(seen: dict[str, _Seen], look: _Look, time_s: float) -> None:
    name, discipline, handle, parent, counts = look
    one = seen.setdefault(name, _Seen(discipline, handle, parent, _Counts()))
    one.samples.append(_sample(time_s, one.last, counts))
    one.last = counts


def _queues(seen: Mapping[str, _Seen]) -> list[Queue]:
    leaves = _leaves(seen)
    worst = max(leaves, key=lambda name: leaves[name].badness)
    return [Queue(name, one.discipline, one.samples, name == worst) for name, one in seen.items()]


def _leaves(seen: Mapping[str, _Seen]) -> Mapping[str, _Seen]:
    """Queues that hold no other; all, if each does."""
    holders = {one.parent.partition(":")[0] for one in seen.values() if one.parent}
    return {name: one for name, one in seen.items() if one.handle not in holders} or seen


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
    """What came since; a discipline that was replaced begins anew."""
    if before is None or now is None:
        return None
    return now - before if now >= before else now


def _of_text(given: Text, lines: Sequence[tuple[int, str]]) -> Iterator[_Look]:
    counts: _Counts | None = None
    for number, line in lines:
        if found := _QDISC.fullmatch(line.strip()):
            counts = _Counts()
            kind, handle, device, place, parent = found.groups()
            yield _name(kind, handle, device, parent or place), kind, *_at(device, handle, parent), counts
        elif counts is not None:
            _add(given, number, line, counts)


def _add(given: Text, number: int, line: str, counts: _Counts) -> None:
    if found := _SENT.fullmatch(line):
        counts.sent_p = given.number(number, found[1], "packets")
        counts.drops_p = given.number(number, found[2], "drops")
    elif found := _BACKLOG.fullmatch(line):
        counts.backlog_bytes = given.number(number, found[1], "backlog") * _SCALES[found[2]]
        counts.backlog_p = given.number(number, found[3], "backlog")
    elif found := _MARKS.fullmatch(line):
        counts.marks_p = given.number(number, found[1], "marks")


def _of_json(given: Text, lines: Sequence[tuple[int, str]]) -> Iterator[_Look]:
    for number, line in lines:
        if line.lstrip().startswith("[{"):
            yield from map(_of_value, _values(given, number, line))


def _values(given: Text, number: int, line: str) -> list[Value]:
    try:
        return Value(given.path, f"line {number}", json.loads(line)).items
    except (ValueError, RecursionError):
        given.wrong(number, "broken JSON", EXPECTED)


def _of_value(value: Value) -> _Look:
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
    """The handles of a queue and of what holds it: each device has its own."""
    place = device or ""
    return f"{place} {handle}", f"{place} {parent}" if parent else ""


def _name(kind: str, handle: str, device: str | None, parent: str | None) -> str:
    """What tells it from the others: a device may have several, and an unnamed handle is 0."""
    place = f" at {parent}" if parent and parent != "root" else ""
    return printable(" ".join(filter(None, (device, kind, f"{handle}:"))) + place)
