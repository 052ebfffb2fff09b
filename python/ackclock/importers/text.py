"""Text files of other programs, and values in their JSON: every use is checked, with its place."""

from __future__ import annotations

import codecs
import json
import math
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

from ackclock.errors import InputError
from ackclock.partial_plan import LONGEST_S
from ackclock.system import files
from ackclock.system.files import printable, readable

#: Longest file, in bytes, also once it is decompressed.
LONGEST = 256 << 20

#: Greatest whole number that all programs agree on (RFC 8259 section 6).
GREATEST = 2.0**53

_GZIP = b"\x1f\x8b"

#: Beginning of a pointer that Git LFS has instead of a large file (https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md).
_LFS_POINTER = b"version https://git-lfs.github.com/spec/"

#: Beginning of a stream of events.
_EVENT = re.compile(r'\s*\{\s*"event"\s*:')


@dataclass(frozen=True)
class Text:
    """A file's text."""

    path: Path
    text: str

    @property
    def name(self) -> str:
        """Return the file's name without gzip's suffix."""
        return self.path.name.removesuffix(".gz")

    @property
    def description(self) -> str:
        """Return a short description for a message."""
        if not self.text.strip():
            return "an empty file"
        return "JSON of another program" if self.is_json or self.is_event_stream else "other text"

    @property
    def is_json(self) -> bool:
        """Return True if the text may be one JSON object."""
        return self.text.lstrip()[:1] == "{" and not self.is_event_stream

    @property
    def is_event_stream(self) -> bool:
        """Return True if the text may be JSON objects that are events, one after the other."""
        return _EVENT.match(self.text) is not None

    def events(self) -> tuple[list[dict[str, Any]], bool]:
        """Return the JSON objects of an event stream, and True if the last one is complete.

        Raises `InputError` for what is broken before the last line.
        """
        found: list[dict[str, Any]] = []
        decoder, place = json.JSONDecoder(), 0
        while place < len(self.text.rstrip()):
            place += len(self.text[place:]) - len(self.text[place:].lstrip())
            try:
                value, place = decoder.raw_decode(self.text, place)
            except (RecursionError, ValueError) as error:
                if "\n" not in self.text[place:].strip():
                    return found, False
                self.wrong(self.text.count("\n", 0, place) + 1, f"broken JSON ({error})", "an event on each line")
            if not isinstance(value, dict):
                self.wrong(self.text.count("\n", 0, place) + 1, "JSON that is no table", "an event on each line")
            found.append(value)
        return found, True

    @cached_property
    def json(self) -> Value:
        """Parse the file as JSON. Raises `InputError` if it is none."""
        try:
            return Value(self.path, "", json.loads(self.text))
        except RecursionError:
            self.wrong(1, "JSON that is nested too deeply", "a program's measurements")
        except json.JSONDecodeError as error:
            self.wrong(error.lineno, f"broken JSON ({error.msg} in column {error.colno})", "a whole file")
        except ValueError:  # more digits than Python reads
            self.wrong(1, "a number of thousands of digits", "a program's measurements")

    def lines(self) -> Iterator[tuple[int, str]]:
        """Return the lines with their numbers."""
        return enumerate(self.text.splitlines(), 1)

    def wrong(self, line: int, result: str, expected: str) -> NoReturn:
        """Raise `InputError` for a line."""
        raise InputError(f"{readable(self.path)}:{line}: found {result}; expected {expected}")

    def number(self, line: int, word: str, what: str, maximum: float = GREATEST) -> float:
        """Return a number ≥ 0 in a line. Raises `InputError`."""
        try:
            value = float(word)
        except ValueError:
            value = math.nan
        if not 0 <= value <= maximum:
            self.wrong(line, f"{word[:40]!r} for {what}", f"a number from 0 to {maximum:.4g}")
        return value


@dataclass(frozen=True)
class Value:
    """A value in a file's JSON, and its place there: `intervals[2].streams[0]`."""

    path: Path
    place: str
    value: Any

    def wrong(self, expected: str) -> NoReturn:
        """Raise `InputError` with the value and its place."""
        shown = "nothing" if self.value is None else json.dumps(self.value)[:40]
        place = f"{printable(self.place)}: " if self.place else ""
        raise InputError(f"{readable(self.path)}: {place}found {shown}; expected {expected}")

    def __getitem__(self, key: str) -> Value:
        """Return the value of a key, null if it is missing. Raises `InputError` if this is no table."""
        if not isinstance(self.value, dict):
            self.wrong("a table")
        return Value(self.path, f"{self.place}.{key}" if self.place else key, self.value.get(key))

    def __bool__(self) -> bool:
        """Return True unless the value is null."""
        return self.value is not None

    @property
    def items(self) -> list[Value]:
        """Return the items of a list. Raises `InputError` if this is none."""
        if not isinstance(self.value, list):
            self.wrong("a list")
        return [Value(self.path, f"{self.place}[{number}]", value) for number, value in enumerate(self.value)]

    @property
    def table(self) -> dict[str, Value]:
        """Return the values of a table. Raises `InputError` if this is none."""
        if not isinstance(self.value, dict):
            self.wrong("a table")
        return {key: self[key] for key in self.value}

    def number(self, maximum: float = GREATEST) -> float | None:
        """Return a number from 0 to `maximum`; None for null. Raises `InputError` for all else."""
        if self.value is None:
            return None
        is_number = isinstance(self.value, (int, float)) and not isinstance(self.value, bool)
        if not is_number or not 0 <= self.value <= maximum:
            self.wrong(f"a number from 0 to {maximum:.4g}")
        return float(self.value)

    def required(self, maximum: float = GREATEST) -> float:
        """Return a number that must be present. Raises `InputError`."""
        result = self.number(maximum)
        return self.wrong("a number") if result is None else result

    def time_s(self) -> float:
        """Return seconds since the measurement began."""
        return self.required(LONGEST_S)

    def text(self) -> str | None:
        """Return a text on one line; None for null. Raises `InputError` for all else."""
        if self.value is not None and not isinstance(self.value, str):
            self.wrong("a text")
        return None if self.value is None else printable(self.value)


def read(path: Path) -> Text:
    """Return a file's text. Raises `InputError` if it cannot be read, is too long, cut off, or no text."""
    content = files.read_bytes(path, LONGEST)
    if content.startswith(_LFS_POINTER):
        result = "a Git LFS pointer instead of the file (`git lfs pull` fetches it)"
        raise InputError(f"{readable(path)}: found {result}; expected measurements")
    return Text(path, _decoded(path, _decompressed(path, content) if content.startswith(_GZIP) else content))


def _decoded(path: Path, content: bytes) -> str:
    """Decode UTF-8, or UTF-16 with a byte order mark, as PowerShell's `>` writes it."""
    is_wide = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        return content.decode("utf-16" if is_wide else "utf-8-sig")
    except UnicodeDecodeError as error:
        result = f"byte {error.start}, which is no text"
        raise InputError(f"{readable(path)}: found {result}; expected measurements") from None


def _decompressed(path: Path, content: bytes) -> bytes:
    result, rest = b"", content
    while rest:
        stream = zlib.decompressobj(wbits=31)
        try:
            result += stream.decompress(rest, LONGEST + 1 - len(result))
        except zlib.error as error:
            reason = str(error).rpartition(": ")[2]
            raise InputError(f"{readable(path)}: found damaged gzip ({reason}); expected a whole file") from None
        if len(result) > LONGEST:
            raise InputError(f"{readable(path)}: found more than {LONGEST >> 20} MiB in gzip; expected less")
        if not stream.eof:
            raise InputError(f"{readable(path)}: found gzip that is cut off; expected a whole file")
        rest = stream.unused_data
    return result


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
