"""Links that follow a trace: files in mahimahi's format, or CSV, beside a scenario.

*mahimahi*: a whole number of milliseconds a line, in order: at each an opportunity to deliver 1500 bytes, several in
the same millisecond on several lines. The last line is the period, after which the trace begins anew. R. Netravali et
al.: Mahimahi: Accurate Record-and-Replay for HTTP, USENIX ATC 2015, section 3.2.

*CSV*: a header with `time_s` and any of `rate_bps`, `delay_s`, `loss` (also `time_ms`, `rate_mbps`, `delay_ms`), and
then on each line a time, the first 0, and what holds from then on: the link's rate, of which 0 is a pause, its
propagation delay, its random loss of data packets. A last line of a time alone, such as `60,`, is the end, after which
the trace begins anew; without such a line the last values hold for as long as those before. With one line they are
constant. Without a column of rates the scenario gives the rate. Delay and loss become changes of the link in the plan.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from ackclock.errors import ScenarioError
from ackclock.input.fields import Quantity, Reader, fault, shown
from ackclock.input.source import CONTENTS, Attached, Source, attachments, contents_table
from ackclock.plan import Parameters, TracePlan
from ackclock.system import files

#: Bytes of IP packets that an opportunity of mahimahi's delivers.
OPPORTUNITY_BYTES = 1500

#: Longest trace, in bytes, and its bounds: a rate as that of a link. A scenario, its plan and its manifest hold all of
#: the trace, so a run takes some 30 bytes of memory for each byte of it: 2 GB for this limit.
LONGEST_FILE = 64 << 20
MAX_BPS = 1e13
MAX_S = 720 * 3600.0
MAX_DELAY_S = 100.0

#: Shortest period: a packet may take many of them.
MIN_PERIOD_S = 1e-3

#: Number and text of a line.
Line: TypeAlias = tuple[int, str]

#: Keys of a trace in a scenario: its file, and the rate that it lacks.
WORD, RATE_WORD = "trace", "rate"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a CSV: what it has, in a unit that is `times` / `per` of SI's, at most `maximum` in its own."""

    quantity: str
    expected: str
    maximum: float
    times: float = 1.0
    per: float = 1.0

    def value(self, name: str, number: int, text: str) -> float:
        """Return a value in SI units."""
        value: float = _number(name, (number, text), float, self.expected, self.maximum)
        return value * self.times / self.per


#: The columns of a CSV by their names in its header.
COLUMNS: Mapping[str, Column] = {
    "time_s": Column("time", "a time in seconds", MAX_S),
    "time_ms": Column("time", "a time in milliseconds", 1e3 * MAX_S, per=1e3),
    "rate_bps": Column("rate", "a rate in bit/s", MAX_BPS),
    "rate_mbps": Column("rate", "a rate in Mbit/s", MAX_BPS / 1e6, times=1e6),
    "delay_s": Column("delay", "a delay in seconds", MAX_DELAY_S),
    "delay_ms": Column("delay", "a delay in milliseconds", 1e3 * MAX_DELAY_S, per=1e3),
    "loss": Column("loss", "a loss probability", 1.0),
}

_HEADERS = '"time_s,rate_bps", with columns of rate_bps or rate_mbps, delay_s or delay_ms, and loss'


@dataclass(frozen=True, slots=True)
class Conditions:
    """Propagation delay and loss probability of a link, from each time of a period on; None: not in the trace."""

    at_s: Sequence[float] = ()
    delay_s: Sequence[float] | None = None
    loss: Sequence[float] | None = None

    @property
    def are_given(self) -> bool:
        """Return True if the trace has any."""
        return self.delay_s is not None or self.loss is not None


class Course(NamedTuple):
    """A parsed file: the plan's course of the rate, its period and mean, and the conditions."""

    rates: Parameters
    period_s: float
    mean_bps: float
    conditions: Conditions = Conditions()


class Traced(float):
    """The mean rate of a trace, in bit/s, that knows its course, and the conditions that the trace has besides."""

    trace: TracePlan
    conditions: Conditions

    def __new__(cls, rate_bps: float, trace: TracePlan, conditions: Conditions) -> Traced:
        """`rate_bps`: the mean over a period."""
        made = super().__new__(cls, rate_bps)
        made.trace, made.conditions = trace, conditions
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
        if not {WORD} <= value.keys() <= {WORD, RATE_WORD} or not isinstance(name, str):
            raise fault(shown(value), 'a rate such as "10Mbit", or { trace = "FILE" }')
        if not isinstance(name, Attached):
            raise fault(shown(name), "a trace in a table [traces], or a scenario file that it lies beside")
        constant_bps = self.rate.read(value[RATE_WORD]) if RATE_WORD in value else None
        return traced(str(name), name.content, constant_bps)

    def json_schema(self) -> dict[str, Any]:  # noqa: D102
        rate = self.rate.json_schema()
        keys = {
            WORD: {
                "type": "string",
                "description": "a file, by its path from the scenario's folder: mahimahi's format, or CSV",
            },
            RATE_WORD: rate,
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
def traced(name: str, text: str, constant_bps: float | None = None) -> Traced:
    """Parse a trace; faults name the wrong line."""
    first = next(_lines(text), None)
    if first is None:
        raise fault(f"an empty {name}", _FORMATS)
    is_csv = "," in first[1]
    if not is_csv and constant_bps is not None:
        raise fault(f"a rate beside {name}", "a CSV: opportunities are a rate")
    course = _csv(name, _lines(text), constant_bps) if is_csv else _opportunities(name, _lines(text))
    sha256 = hashlib.sha256(text.encode()).hexdigest()
    plan = TracePlan(name, sha256, course.period_s, course.rates)
    return Traced(course.mean_bps, plan, course.conditions)


def _lines(text: str) -> Iterator[Line]:
    """Yield the lines that are not empty, one at a time: a list of all takes twenty times the memory of the text."""
    return ((number, line.strip()) for number, line in enumerate(StringIO(text), 1) if not line.isspace())


_FORMATS = 'lines of milliseconds (mahimahi\'s format), or a CSV that begins with "time_s,rate_bps"'


def _opportunities(name: str, lines: Iterable[Line]) -> Course:
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
    rates = {"kind": "opportunities", "at_ms": at_ms, "bytes": OPPORTUNITY_BYTES}
    return Course(rates, period_s, 8 * OPPORTUNITY_BYTES * len(at_ms) / period_s)


def _csv(name: str, lines: Iterator[Line], constant_bps: float | None) -> Course:
    first, header = next(lines)
    columns = _columns(name, first, header)
    quantities = [column.quantity for column in columns]
    if "rate" in quantities and constant_bps is not None:
        raise fault(f"a rate beside {name}, which has one", "one of them")
    if "rate" not in quantities and constant_bps is None:
        raise fault(f"no column of rates in {name}", 'a column rate_bps, or the rate: { trace = "…", rate = "…" }')
    series, end_s = _series(name, lines, columns)
    at_s = series["time"]
    if not at_s:
        raise fault(f"no line after line {first} of {name}", "a time and a rate on each")
    last_step_s = at_s[-1] - at_s[-2] if len(at_s) > 1 else 1.0
    period_s = at_s[-1] + last_step_s if end_s is None else end_s
    if period_s < MIN_PERIOD_S:
        raise fault(f"a period of {period_s:g} s in {name}", f"{MIN_PERIOD_S:g} s or more")
    if constant_bps is None:
        course_s, rate_bps = at_s, series["rate"]
    else:
        course_s, rate_bps = [0.0], [constant_bps]
    steps = zip(course_s, [*course_s[1:], period_s], rate_bps, strict=True)
    mean_bps = math.fsum((end_s - begin_s) * rate for begin_s, end_s, rate in steps) / period_s
    if mean_bps < 1:
        raise fault(f"a mean of {mean_bps:g} bit/s in {name}", "a rate above 0")
    conditions = Conditions(at_s, series.get("delay"), series.get("loss"))
    return Course({"kind": "rates", "at_s": course_s, "rate_bps": rate_bps}, period_s, mean_bps, conditions)


def _columns(name: str, number: int, header: str) -> list[Column]:
    """Return the columns that a header names: a time, and each other quantity at most once."""
    words = [word.strip().lower() for word in header.split(",")]
    columns = [COLUMNS[word] for word in words if word in COLUMNS]
    quantities = [column.quantity for column in columns]
    is_sound = len(columns) == len(words) > 1 and len({*quantities}) == len(quantities)
    if not is_sound or quantities[0] != "time":
        raise fault(f"{shown(header)} in line {number} of {name}", _HEADERS)
    return columns


def _series(name: str, lines: Iterator[Line], columns: Sequence[Column]) -> tuple[dict[str, list[float]], float | None]:
    """Return the values of each quantity, in SI units, and the time of a last line that has nothing else."""
    series: dict[str, list[float]] = {column.quantity: [] for column in columns}
    end_s: float | None = None
    for number, text in lines:
        words = text.split(",")
        if end_s is not None:
            raise fault(f"{shown(text)} in line {number} of {name}, after the end", "no line after one of a time alone")
        if len(words) != len(columns):
            expected = f"{len(columns)} numbers, as in its first line"
            raise fault(f"{shown(text)} in line {number} of {name}", expected)
        before_s = series["time"][-1] if series["time"] else -1.0
        time_s = columns[0].value(name, number, words[0])
        if before_s < 0 and time_s != 0:
            raise fault(f"{time_s:g} s in line {number} of {name}", "0 s in the first line")
        _check_order(name, (number, text), time_s, before_s, strictly=True)
        if series["time"] and not any(word.strip() for word in words[1:]):
            end_s = time_s
            continue
        for column, word in zip(columns, words, strict=True):
            series[column.quantity].append(column.value(name, number, word))
    return series, end_s


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
