"""A scenario with other values at some keys: `--set network.rate=1Gbit`, and `Loaded.with_` in Python.

The new scenario's text is complete, so what is kept of it beside a result is what was run. A mistake in a value is told
of the option, any other at its line in the file.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from ackclock.errors import InputError, Problem
from ackclock.input import arguments, cli_values
from ackclock.input.fields import Loc, dotted, shown
from ackclock.input.source import Source
from ackclock.scenario import points

_A_KEY = 'a key such as "network.rate" or "flows[0].count"'

#: Characters of a TOML key without quotes.
_BARE = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)


@dataclass(frozen=True)
class Rewritten(Source):
    """The new text; `before` is the file, `paths` are the keys with other values, `option` says where those are."""

    before: Source
    paths: tuple[Loc, ...]
    option: str

    def problem(self, loc: Loc, found: str, expected: str) -> Problem:
        """A mistake of the option's, or at its line in the file."""
        if any(loc[: len(path)] == path for path in self.paths):
            return Problem(self.option, None, dotted(loc), found, expected)
        return self.before.problem(loc, found, expected)


def rewritten(source: Source, values: Mapping[str, Any], option: str = "with_") -> Rewritten:
    """The scenario with the values at their keys. Raises `InputError` for keys that have no place, or are swept."""
    content: Any = source.toml()
    swept = points.sweep(content, source)
    paths = []
    for key, value in values.items():
        path = points.path_of(key)
        if path is None or path[0] == "sweep":
            raise InputError(f"{option}: found {shown(key)}; expected {_A_KEY}")
        over = [axis.key for axis in swept.axes if axis.path[: len(path)] == path[: len(axis.path)]] if swept else []
        if over:
            raise InputError(f"{option}: found {shown(key)}, which is swept; expected another key, or --where")
        content = _placed(content, path, plain(value, key), f"{option}: {key}")
        paths.append(path)
    return Rewritten(source.name, text(content), source, tuple(paths), option)


def without_file(content: Mapping[str, Any], name: str) -> Rewritten:
    """Values that are in no file, as the text of one; mistakes are told of `name` and a key. Raises `TypeError`."""
    written = text(plain(content, ""))
    return Rewritten(name, written, Source(name, written), ((),), name)


def plain(value: Any, key: str) -> Any:
    """A value as TOML can have it: tables, lists, texts, numbers, truth values. Raises `TypeError` for any other."""
    if isinstance(value, Mapping):
        return {_name(name, key): plain(item, f"{key}.{name}" if key else name) for name, item in value.items()}
    if isinstance(value, (list, tuple, range)):
        return [plain(item, f"{key}[{place}]") for place, item in enumerate(value)]
    if isinstance(value, PurePath):
        return str(value)
    if hasattr(value, "dtype") and not getattr(value, "shape", None):
        value = value.item()  # of NumPy, or another library's
    if isinstance(value, (bool, int, float, str)):
        return value
    return arguments.wrong_type(
        key or "scenario", value, "what TOML has: a text, a number, true or false, a list, a table"
    )


def _name(name: object, key: str) -> str:
    return name if isinstance(name, str) else arguments.wrong_type(key or "scenario", name, "a key, as a text")


def values(text: str) -> dict[str, Any]:
    """Return the values of TOML text that ackclock wrote."""
    return tomllib.loads(text)


def settings(given: Sequence[str] | None, option: str = "--set") -> dict[str, Any]:
    """`KEY=VALUE` each; a value is a text unless TOML reads it otherwise. Raises `InputError`."""
    found: dict[str, Any] = {}
    for text in given or ():
        key, sign, value = text.partition("=")
        if not sign or not key.strip():
            raise InputError(f"{option}: found {shown(text)}; expected KEY=VALUE, such as network.rate=1Gbit")
        if key.strip() in found:
            raise InputError(f"{option}: found {shown(key.strip())} twice; expected each key once")
        found[key.strip()] = cli_values.value(value.strip())
    return found


def _placed(base: Any, path: Loc, value: Any, where: str) -> Any:
    """`base` with the value in its place, copied on the way there; tables are made where there is nothing."""
    if not path:
        return value
    step, rest = path[0], path[1:]
    if isinstance(step, int):
        if not isinstance(base, list) or step >= len(base):
            raise InputError(f"{where}: found no item [{step}] in the scenario; expected one that is there")
        return [_placed(item, rest, value, where) if at == step else item for at, item in enumerate(base)]
    if not isinstance(base, (dict, type(None))):
        raise InputError(f"{where}: found {shown(base)} in the scenario, which has no keys; expected a table")
    here = base or {}
    return {**here, step: _placed(here.get(step), rest, value, where)}


def text(content: Mapping[str, Any]) -> str:
    """Values as TOML: what is no table first, then a table each."""
    tables = {key: value for key, value in content.items() if isinstance(value, dict) and value}
    lists = {key: value for key, value in content.items() if _is_tables(value)}
    lines = [f"{_key(key)} = {inline(value)}" for key, value in content.items() if key not in {**tables, **lists}]
    for key, table in tables.items():
        lines += ["", f"[{_key(key)}]", *(f"{_key(name)} = {inline(value)}" for name, value in table.items())]
    for key, several in lists.items():
        for table in several:
            lines += ["", f"[[{_key(key)}]]", *(f"{_key(name)} = {inline(value)}" for name, value in table.items())]
    return "\n".join(lines) + "\n"


def _is_tables(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, dict) for item in value)


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _quoted(key)


def inline(value: Any) -> str:
    """A value as TOML has it behind a key."""
    if isinstance(value, dict):
        items = ", ".join(f"{_key(key)} = {inline(item)}" for key, item in value.items())
        return f"{{ {items} }}" if items else "{}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(inline, value))}]"
    return str(value).lower() if isinstance(value, bool) else _quoted(value) if isinstance(value, str) else str(value)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
