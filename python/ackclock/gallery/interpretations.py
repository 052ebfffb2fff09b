"""Readings: the ways in which a paper's words can be understood, each with runs and a verdict of its own.

`readings.toml` in an entry's folder is a list of tables, a reading each, in the order in which they are shown:

    engines = ["packet"]                       # whose set-up they change; absent: every engine's

    [[reading]]
    name = "base"
    says = "“RTT of 1 s” is the RTT of an empty path."

    [[reading]]
    name = "total"
    says = "“RTT of 1 s” is path and queue together, as section 5.5.1 counts it."
    changes.network = { rate = "960kbit", rtt = "500ms" }
    at.cubic.flows = [{ congestion = { kind = "cubic", beta = 0.7 } }]

A reading without `changes` is the scenario as it stands. `at` has changes for the cases that one of the values in
`cases.toml` names. Engines that no reading changes are run once; what they give counts in every reading. `engines` in a
reading are those that can run it, where not all can.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ackclock.errors import InputError
from ackclock.input.fields import shown
from ackclock.input.source import read_toml

#: The file's name in an entry's folder.
FILE = "readings.toml"

_KEYS = {"name": str, "says": str, "changes": dict, "at": dict, "engines": list}


@dataclass(frozen=True, slots=True)
class Interpretation:
    """One way to read a paper: what it says in a sentence, and what changes in the scenario."""

    name: str
    description: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    at: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    engines: Sequence[str] | None = None

    def runs_in(self, engine: str) -> bool:
        """Return True if an engine can run it."""
        return self.engines is None or engine in self.engines


#: Interpretation where the paper leaves no choice.
NONE = Interpretation("", "")


@dataclass(frozen=True, slots=True)
class Interpretations:
    """All interpretations of an entry; `engines` are those whose set-up they change, None for every one."""

    every: Sequence[Interpretation] = ()
    engines: Sequence[str] | None = None

    def concern(self, engine: str) -> bool:
        """Return True if an engine runs once for each interpretation, not once for all."""
        return bool(self.every) and (self.engines is None or engine in self.engines)


def read(folder: Path) -> Interpretations:
    """Return the interpretations in an entry's folder, none without the file. Raises `InputError` for mistakes."""
    path = folder / FILE
    if not path.is_file():
        return Interpretations()
    every = [
        Interpretation(description=table.pop("says"), **table)
        for table in tables_of(path, "reading", _KEYS, ("name", "says"), {"engines": list})
    ]
    return Interpretations(every, read_toml(path).get("engines"))


def tables_of(
    path: Path, key: str, keys: Mapping[str, type], needed: Sequence[str], beside: Mapping[str, type] | None = None
) -> list[dict[str, Any]]:
    """The tables of `[[key]]` in a file, each with what is `needed` and a name of its own that a folder may have.

    `beside` are the keys that may stand beside them. Raises `InputError` for what is wrong.
    """
    found = read_toml(path)
    _check_keys(path, "", found, {**(beside or {}), key: list})
    tables = found.get(key, ())
    for number, table in enumerate(tables, 1):
        _check(path, f"{key} {number}", table, keys, needed)
    names = [table["name"] for table in tables]
    if not names or len(set(names)) < len(names):
        raise InputError(f"{path}: {key}: found {shown(names)}; expected one table or more, of different names")
    return list(tables)


def _check(path: Path, place: str, table: Any, keys: Mapping[str, type], needed: Sequence[str]) -> None:
    if not isinstance(table, dict):
        raise InputError(f"{path}: {place}: found {shown(table)}; expected a table")
    _check_keys(path, f"{place}: ", table, keys)
    for key in needed:
        if not table.get(key):
            raise InputError(f"{path}: {place}: {key}: found nothing; expected words")
    if not re.fullmatch(r"\w[\w .,%+-]*", table["name"]):
        raise InputError(
            f"{path}: {place}: name: found {shown(table['name'])}; expected words that a folder may be named"
        )


def _check_keys(path: Path, place: str, table: Mapping[str, Any], keys: Mapping[str, type]) -> None:
    for key, value in table.items():
        if key not in keys:
            raise InputError(f"{path}: {place}found the key {shown(key)}; expected of {', '.join(keys)}")
        if not isinstance(value, keys[key]):
            raise InputError(f"{path}: {place}{key}: found {shown(value)}; expected a {_NAMES[keys[key]]}")


_NAMES: Mapping[type, str] = {str: "string", dict: "table", list: "list"}
