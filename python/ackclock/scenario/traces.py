"""Rates that follow a trace: files in mahimahi's format, or CSV, beside a scenario.

*mahimahi*: a whole number of milliseconds a line, in order: at each an opportunity to deliver 1500 bytes, several in
the same millisecond on several lines. The last line is the period, after which the trace begins anew. R. Netravali et
al.: Mahimahi: Accurate Record-and-Replay for HTTP, USENIX ATC 2015, section 3.2.

*CSV*: the line `time_s,rate_bps`, then on each line a time in seconds, the first 0, and the rate from then on; 0 is a
pause. A last line without a rate, such as `60,`, is the end, after which the trace begins anew; without such a line the
last rate holds for as long as the one before it. With one line the rate is constant.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from io import StringIO
from pathlib import Path
from typing import Any, TypeAlias

from ackclock.errors import ScenarioError
from ackclock.input.fields import Quantity, Reader, fault, shown
from ackclock.input.source import CONTENTS, Attached, Source, attachments, contents_table
from ackclock.plan import TracePlan
from ackclock.system import files

#: Bytes of IP packets that an opportunity of mahimahi's delivers.
OPPORTUNITY_BYTES = 1500

#: The first line of a CSV.
HEADER = "time_s,rate_bps"

#: Longest trace, in bytes, and its bounds: a rate as that of a link. A scenario, its plan and its manifest hold all of
#: the trace, so a run takes some 30 bytes of memory for each byte of it: 2 GB for this limit.
LONGEST_FILE = 64 << 20
MAX_BPS = 1e13
MAX_S = 720 * 3600.0

#: Number and text of a line.
Line: TypeAlias = tuple[int, str]

#: Key of a trace in a scenario.
WORD = "trace"


class Traced(float):
    """The mean rate of a trace, in bit/s, that knows its course."""

    trace: TracePlan

    def __new__(cls, rate_bps: float, trace: TracePlan) -> Traced:
        """`rate_bps`: the mean over a period."""
        made = super().__new__(cls, rate_bps)
        made.trace = trace
        return made


@dataclass(frozen=True, slots=True)
class Traceable(Reader):
    """An annotation: a rate with its unit, or `{ trace = "FILE" }`."""

    rate: Quantity

    def read(self, value: object) -> float | None:
        """The rate in bit/s; of a trace its mean."""
        if not isinstance(value, dict):
            return self.rate.read(value)
        name = value.get(WORD)
        if value.keys() != {WORD} or not isinstance(name, str):
            raise fault(shown(value), 'a rate such as "10Mbit", or { trace = "FILE" }')
        if not isinstance(name, Attached):
            raise fault(shown(name), "a trace in a table [traces], or a scenario file that it lies beside")
        return traced(str(name), name.content)

    def json_schema(self) -> dict[str, Any]:  # noqa: D102
        rate = self.rate.json_schema()
        keys = {
            WORD: {
                "type": "string",
                "description": "a file, by its path from the scenario's folder: mahimahi's format, or CSV",
            }
        }
        return {
            "anyOf": [rate, {"type": "object", "properties": keys, "required": [WORD], "additionalProperties": False}]
        }


def with_traces(source: Source, folder: Path) -> Source:
    """The scenario with the files that it names behind its text, in a table `[traces]`: so it is complete.

    Raises `ScenarioError` for those that cannot be read.
    """
    values = source.toml()
    named = {name: loc for loc, name in attachments(values)}
    if not named or CONTENTS in values:
        return source
    problems, texts = [], {}
    for name, loc in named.items():
        try:
            texts[name] = _text(folder / name)
        except files.UnreadableError as error:
            expected = f"a trace of at most {LONGEST_FILE >> 20} MiB, by its path from the scenario's folder"
            problems.append(source.problem(loc, f"{shown(name)}: {error.found}", expected))
    if problems:
        raise ScenarioError(problems)
    return Source(source.name, source.text + contents_table(texts))


def _text(path: Path) -> str:
    """Return a file's text as a scenario holds it: without carriage returns.

    Bytes that are not UTF-8 become replacement characters, which no number contains.
    """
    return files.read_bytes(path, LONGEST_FILE).decode("utf-8-sig", errors="replace").replace("\r", "")


@lru_cache(maxsize=64)
def traced(name: str, text: str) -> Traced:
    """Parse a trace; faults name the wrong line."""
    first = next(_lines(text), None)
    if first is None:
        raise fault(f"an empty {name}", _FORMATS)
    course, period_s, mean_bps = (_rates if "," in first[1] else _opportunities)(name, _lines(text))
    sha256 = hashlib.sha256(text.encode()).hexdigest()
    return Traced(mean_bps, TracePlan(name, sha256, period_s, course))


def _lines(text: str) -> Iterator[Line]:
    """Yield the lines that are not empty, one at a time: a list of all takes twenty times the memory of the text."""
    return ((number, line.strip()) for number, line in enumerate(StringIO(text), 1) if not line.isspace())


_FORMATS = f'lines of milliseconds (mahimahi\'s format), or a CSV that begins with "{HEADER}"'


def _opportunities(name: str, lines: Iterable[Line]) -> tuple[dict[str, Any], float, float]:
    at_ms: list[int] = []
    last = 0
    for line in lines:
        value = _number(name, line, int, "a whole number of milliseconds", 1000 * MAX_S)
        _check_order(name, line, value, at_ms[-1] if at_ms else -1)
        # Equal times share an object, as most lines of a fast link have one.
        at_ms.append(at_ms[-1] if at_ms and at_ms[-1] == value else value)
        last = line[0]
    if at_ms[-1] <= 0:
        raise fault(f"0 in line {last} of {name}", "a period above 0 ms in the last line")
    period_s = at_ms[-1] / 1000
    course = {"kind": "opportunities", "at_ms": at_ms, "bytes": OPPORTUNITY_BYTES}
    return course, period_s, 8 * OPPORTUNITY_BYTES * len(at_ms) / period_s


def _rates(name: str, lines: Iterator[Line]) -> tuple[dict[str, Any], float, float]:
    first, header = next(lines)
    if "".join(header.split()).lower() != HEADER:
        raise fault(f"{shown(header)} in line {first} of {name}", f'"{HEADER}"')
    at_s: list[float] = []
    rate_bps: list[float] = []
    end_s: float | None = None
    for line in lines:
        if end_s is not None:
            raise fault(
                f"{shown(line[1])} in line {line[0]} of {name}, after the end", "no line after one without a rate"
            )
        if at_s and line[1].endswith(","):
            end_s = time_s = _number(name, (line[0], line[1][:-1]), float, "a time in seconds", MAX_S)
        else:
            time_s, rate = _pair(name, line)
            if not at_s and time_s != 0:
                raise fault(f"{time_s:g} s in line {line[0]} of {name}", "0 s in the first line")
        _check_order(name, line, time_s, at_s[-1] if at_s else -1.0, strictly=True)
        if end_s is None:
            at_s.append(time_s)
            rate_bps.append(rate)
    if not at_s:
        raise fault(f"no line after line {first} of {name}", "a time and a rate on each")
    last_step_s = at_s[-1] - at_s[-2] if len(at_s) > 1 else 1.0
    period_s = at_s[-1] + last_step_s if end_s is None else end_s
    steps = zip(at_s, [*at_s[1:], period_s], rate_bps, strict=True)
    mean_bps = math.fsum((end_s - begin_s) * rate for begin_s, end_s, rate in steps) / period_s
    if mean_bps < 1:
        raise fault(f"a mean of {mean_bps:g} bit/s in {name}", "a rate above 0")
    return {"kind": "rates", "at_s": at_s, "rate_bps": rate_bps}, period_s, mean_bps


def _pair(name: str, row: Line) -> tuple[float, float]:
    number, text = row
    words = text.split(",")
    if len(words) != 2:
        raise fault(f"{shown(text)} in line {number} of {name}", f'two numbers: "{HEADER}"')
    time_s = _number(name, (number, words[0]), float, "a time in seconds", MAX_S)
    return time_s, _number(name, (number, words[1]), float, "a rate in bit/s", MAX_BPS)


def _number(name: str, line: Line, kind: Callable[[str], Any], expected: str, most: float) -> Any:
    try:
        value = kind(line[1].strip())
    except ValueError:
        value = -1
    if not 0 <= value <= most:
        raise fault(f"{shown(line[1].strip())} in line {line[0]} of {name}", f"{expected}, from 0 to {most:g}")
    return value


def _check_order(name: str, line: Line, time: float, before: float, *, strictly: bool = False) -> None:
    if time < before or (strictly and time == before):
        raise fault(f"{shown(line[1])} in line {line[0]} of {name}, after {before:g}", "times in order")
