"""A scenario file as text, values laid over it, and the line or the option in which a key was written.

Used by all that read TOML of users: scenarios, traces, entries of the gallery, cases of the evaluation, lessons.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

from ackclock.errors import Problem, ScenarioError
from ackclock.input.fields import Loc, dotted, shown
from ackclock.system import files

#: Longest scenario file, in bytes.
LONGEST_FILE = 16 << 20

#: Name of standard input in messages.
STDIN = "stdin"

EXPECTED = "a scenario file, or - for standard input"

#: A key whose value is the name of a file, and the table of contents by name.
FILE, CONTENTS = "trace", "traces"


class Attached(str):
    """The name of a file whose content is in the scenario's table of them."""

    __slots__ = ("content",)
    content: str

    @staticmethod
    def to(name: str, content: str) -> Attached:
        """The name with its content."""
        made = Attached(name)
        made.content = content
        return made


@dataclass(frozen=True)
class Source:
    """A scenario file's text, to point at its lines."""

    name: str
    text: str

    def problem(self, loc: Loc, found: str, expected: str) -> Problem:
        """A mistake at a key, with the line of the key or of the nearest table around it."""
        place = next((loc[:end] for end in range(len(loc), 0, -1) if loc[:end] in self._lines), ())
        return Problem(self.name, self._lines.get(place, 1), dotted(loc), found, expected)

    def toml(self) -> dict[str, Any]:
        """The values. Raises `ScenarioError` if the text is not TOML."""
        from ackclock import _core

        try:
            values = _core.toml_values(self.text)
        except ValueError as error:
            raise ScenarioError([_syntax_problem(self, str(error))]) from None
        return attach(values)

    @cached_property
    def _lines(self) -> dict[Loc, int]:
        """The line of each key."""
        from ackclock import _core

        return dict(_core.toml_spans(self.text))


def contents_table(texts: Mapping[str, str]) -> str:
    """Return the TOML table of files' contents by name; `tomli_w` would take a time that grows with their squares."""
    return f"\n[{CONTENTS}]\n" + "".join(f"{_quoted(name)} = {_multiline(text)}\n" for name, text in texts.items())


def _multiline(text: str) -> str:
    """Return a text as a literal of several lines, or where that cannot be, quoted."""
    is_plain = text.isascii() and not re.search(r"[^\n\t -~]|''|'$", text)
    return f"'''\n{text}'''" if is_plain else _quoted(text)


def _quoted(text: str) -> str:
    """Return a text in quotes: what JSON escapes, and DEL, are escaped in TOML too."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


#: The place of a value in the text below, an item of a list, or the option that it was written in.
Origin: TypeAlias = Loc | str


@dataclass(frozen=True)
class Overlay(Source):
    """A scenario with other values at some places; a mistake in one of them is reported where that was written.

    `content` is all values, `base` the scenario below, `origins` where the values at these places were written.
    """

    content: dict[str, Any]
    base: Source
    origins: Mapping[Loc, Origin]

    def toml(self) -> dict[str, Any]:
        """Return the values, which must not be changed."""
        return self.content

    def problem(self, loc: Loc, found: str, expected: str) -> Problem:
        """A mistake at a key: of the option, or with the line of the value."""
        path = next((loc[:end] for end in range(len(loc), -1, -1) if loc[:end] in self.origins), None)
        if path is None:
            return self.base.problem(loc, found, expected)
        return _problem_where_written(self.base, self.origins[path], loc, len(path), found, expected)


def overlay(base: Source, content: dict[str, Any], values: Iterable[tuple[Loc, Any, Origin]]) -> Overlay:
    """Lay values over those of a scenario, which stay as they are; a value inside another is set after it.

    Tables are made where there is nothing. Raises `ScenarioError` for a place that cannot be.
    """
    origins: dict[Loc, Origin] = {}
    for path, value, origin in sorted(values, key=lambda item: len(item[0])):
        try:
            content = _placed(content, path, 0, value)
        except _NoPlaceError as error:
            found = "nothing" if error.found is None else shown(error.found)
            key = origin if isinstance(origin, str) else origin[:-1]  # whichever value of a sweep's list it is
            problem = _problem_where_written(base, key, path, len(path), found, error.expected)
            raise ScenarioError([problem]) from None
        origins[path] = origin
    return Overlay(base.name, base.text, content, base, origins)


def _problem_where_written(base: Source, origin: Origin, loc: Loc, depth: int, found: str, expected: str) -> Problem:
    """A mistake at a key, of which the first steps, `depth` of them, are the place of an overlaid value."""
    if isinstance(origin, str):
        return Problem(origin, None, dotted(loc), found, expected)
    return base.problem((*origin, *loc[depth:]), found, expected)


class _NoPlaceError(Exception):
    def __init__(self, found: object, expected: str) -> None:
        super().__init__(expected)
        self.found, self.expected = found, expected


def _placed(base: Any, path: Loc, depth: int, value: Any) -> Any:
    """`base` with the value in its place; what is on the way there is copied, and made where there is nothing."""
    if depth == len(path):
        return value
    step = path[depth]
    if isinstance(step, int):
        if not isinstance(base, list) or step >= len(base):
            raise _NoPlaceError(base, f"a list with an item [{step}] at {dotted(path[:depth])}")
        return [_placed(item, path, depth + 1, value) if at == step else item for at, item in enumerate(base)]
    if isinstance(base, list) and base and isinstance(base[0], dict):
        raise _NoPlaceError(base, dotted((*path[:depth], 0, *path[depth:])))
    if not isinstance(base, (dict, type(None))):
        raise _NoPlaceError(base, f"a table at {dotted(path[:depth])}")
    here = base or {}
    return {**here, step: _placed(here.get(step), path, depth + 1, value)}


def attachments(values: object, loc: Loc = ()) -> Iterator[tuple[Loc, str]]:
    """The files that a scenario's values name, each with the place of its name."""
    items = values.items() if isinstance(values, dict) else enumerate(values) if isinstance(values, list) else ()
    for key, value in items:
        if key == FILE and isinstance(value, str):
            yield (*loc, key), value
        else:
            yield from attachments(value, (*loc, key))


def attach(values: dict[str, Any]) -> dict[str, Any]:
    """Return the values, in which the names of files that are in the table of contents have theirs."""
    contents = values.get(CONTENTS)
    attached: dict[str, Any] = _attached(values, contents) if isinstance(contents, dict) else values
    return attached


def _attached(value: Any, contents: Mapping[str, Any]) -> Any:
    if isinstance(value, list):
        return [_attached(item, contents) for item in value]
    if not isinstance(value, dict):
        return value
    made = {key: _attached(item, contents) for key, item in value.items()}
    if isinstance(name := made.get(FILE), str) and isinstance(content := contents.get(name), str):
        made[FILE] = Attached.to(name, content)
    return made


def named(path: str | Path) -> str:
    """Return the name of a scenario file in messages and results."""
    return STDIN if str(path) == "-" else files.readable(path)


def source_text(path: str | Path) -> str:
    """A file's text; `-` is standard input. Raises `ScenarioError` if it cannot be read or is not UTF-8."""
    content = _bytes(Path(path))
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ScenarioError(
            [Problem(named(path), line, "", f"the byte 0x{content[error.start]:02x}", "UTF-8 text")]
        ) from None


def read_toml(path: Path) -> dict[str, Any]:
    """Return the values of a TOML file. Raises `ScenarioError`."""
    return Source(named(path), source_text(path)).toml()


def _bytes(path: Path) -> bytes:
    try:
        return _standard_input() if str(path) == "-" else files.read_bytes(path, LONGEST_FILE)
    except files.UnreadableError as error:
        raise ScenarioError([Problem(named(path), None, "", error.found, EXPECTED)]) from None


def _standard_input() -> bytes:
    import sys

    if sys.stdin is None or sys.stdin.isatty():
        raise files.UnreadableError(Path("-"), "nothing but a terminal" if sys.stdin else "nothing")
    content = sys.stdin.buffer.read(LONGEST_FILE + 1)
    if len(content) > LONGEST_FILE:
        raise files.UnreadableError(Path("-"), f"more than {LONGEST_FILE >> 20} MiB")
    return content


def _syntax_problem(source: Source, message: str) -> Problem:
    """Return the mistake that the parser reports: its place in the first line, its reason in the last."""
    lines = source.text.splitlines() or [""]
    place = re.search(r"at line (\d+), column \d+", message)
    line = min(int(place[1]), len(lines)) if place else None
    reason = message.strip().splitlines()[-1]
    if line is None or "recursion depth" in reason:
        return Problem(source.name, line, "", "tables nested too deeply", "a scenario")
    found = shown(lines[line - 1].strip())
    return Problem(source.name, line, "", found, f"TOML ({reason[:1].lower()}{reason[1:]})")
