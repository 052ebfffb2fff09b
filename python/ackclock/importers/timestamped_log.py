"""Logs of commands that a loop repeats: snapshots, each preceded by its time.

    while sleep 0.2; do date +%s.%N; ss -tin; done > ss.log

A time is seconds since 1970, or a date and time as ISO 8601 has it, at the beginning of a line of its own, whatever
stands around it ("Time: 1795442506.95", "---1795442506.95"), or before each line, as `ts '%.s'` of moreutils puts it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime

from ackclock.importers.text import Text
from ackclock.partial_plan import LONGEST_S

_EPOCH = re.compile(r"\W*(?:[A-Za-z]+\W+)?(\d{9,10}(?:\.\d+)?)(?:[\s;,]+(.*))?")
_ISO = re.compile(
    r"\W*(?:[A-Za-z]+\W+)?(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?)(?:\s+(.*))?"
)


def snapshots(given: Text, expected: str) -> Iterator[tuple[float, list[tuple[int, str]]]]:
    """Yield each time in seconds since 1970, and the lines after it with their numbers.

    Raises `InputError` for lines before the first time, for times that go back, and for too long a log.
    """
    at_s: float | None = None
    first_s, lines = None, list[tuple[int, str]]()
    for number, line in given.lines():
        result = _time(given, number, line)
        if result is None:
            if at_s is None and line.strip():
                given.wrong(number, f"{line.strip()[:60]!r} before any time", expected)
            lines.append((number, line))
            continue
        time_s, rest = result
        first_s = time_s if first_s is None else first_s
        if not (at_s or first_s) <= time_s <= first_s + LONGEST_S:
            given.wrong(number, f"a time {time_s - (at_s or first_s):+.6g} s after the one before", "times that grow")
        if at_s is not None and time_s > at_s:
            yield at_s, lines
            lines = []
        at_s = time_s
        if rest:
            lines.append((number, rest))
    if at_s is not None:
        yield at_s, lines


def _time(given: Text, number: int, line: str) -> tuple[float, str] | None:
    """Return the time that a line begins with, and the rest of the line."""
    if result := _EPOCH.fullmatch(line):
        return float(result[1]), result[2] or ""
    if result := _ISO.fullmatch(line):
        try:
            time = datetime.fromisoformat(result[1].replace(",", "."))
        except ValueError:
            given.wrong(number, f"{result[1]!r}", "a date and a time")
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp(), result[2] or ""
    return None
