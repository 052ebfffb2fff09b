"""The cases of an entry: `scenario.toml` with what `cases.toml` changes in it.

`cases.toml` names dimensions, and in each the values with the keys that they change; every combination is a case:

    [congestion]
    cubic.flows = [{ congestion = "cubic" }]
    reno.flows = [{ congestion = "reno" }]

    [buffer]
    small.network.queue.limit = "0.1bdp"
    large.network.queue.limit = "1bdp"

gives `cubic small`, `cubic large`, `reno small` and `reno large`. Tables are merged key by key, lists of tables
table by table; anything else is replaced. What an engine is given otherwise than the others stands in a file of its
name, such as `linux.toml`, and is merged into every case; `quick.toml` comes last. What a reading of the paper
changes (`interpretations`) comes between the case and the engine.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ackclock.errors import InputError, Problem
from ackclock.gallery.interpretations import NONE, Interpretation
from ackclock.input.fields import Loc, dotted, shown
from ackclock.input.source import Source, read_toml, source_text
from ackclock.plan import Plan
from ackclock.scenario.planning import Loaded
from ackclock.scenario.scenario import checked

#: The only case of an entry without `cases.toml`.
ONLY = "all"

_NOTHING: Mapping[str, Any] = {}


def plans(
    folder: Path,
    *,
    engine: str | None = None,
    quick: bool = False,
    reading: Interpretation = NONE,
    switched: Interpretation = NONE,
) -> dict[str, Plan]:
    """The plan of each case, for an engine. Raises `ScenarioError` or `InputError` for what is wrong in the files."""
    found = contents(folder, engine=engine, quick=quick, reading=reading, switched=switched)
    return {name: plan(folder, name, content) for name, content in found.items()}


def contents(
    folder: Path,
    *,
    engine: str | None = None,
    quick: bool = False,
    reading: Interpretation = NONE,
    switched: Interpretation = NONE,
) -> dict[str, Mapping[str, Any]]:
    """The tables of each case, for an engine; `switched` is what a mechanism changes in the interpretation.

    Raises `ScenarioError` or `InputError` for files that are no TOML.
    """
    common = _source(folder).toml()
    own = folder / f"{engine}.toml"
    scale = merged(read_toml(own) if own.is_file() else {}, read_toml(folder / "quick.toml") if quick else {})
    every = list(_combinations(folder))
    for each, file in ((reading, "readings.toml"), (switched, "mechanisms.toml")):
        if unknown := [value for value in each.at if not any(value in values for values, _ in every)]:
            raise InputError(f"{folder / file}: at: found {shown(unknown[0])}; expected a value of cases.toml")
    return {
        " ".join(values): merged(_read_as(switched, values, merged(common, _read_as(reading, values, changes))), scale)
        for values, changes in every
    }


def _read_as(reading: Interpretation, values: tuple[str, ...], changes: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the changes of a case, with those of an interpretation."""
    for more in (reading.changes, *(reading.at[value] for value in values if value in reading.at)):
        changes = merged(changes, more)
    return changes


def plan(folder: Path, case: str, content: Mapping[str, Any]) -> Plan:
    """The plan of a case with these tables. Raises as `plans` does."""
    source = _source(folder)
    return Loaded(checked(content, _Case(f"{source.name} ({case})", source.text)), source).plan()


def cases(folder: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Each case's name, and what it changes."""
    return ((" ".join(values), changes) for values, changes in _combinations(folder))


def _combinations(folder: Path) -> Iterator[tuple[tuple[str, ...], Mapping[str, Any]]]:
    """The values that each case combines, and what it changes."""
    path = folder / "cases.toml"
    if not path.exists():
        yield (ONLY,), {}
        return
    for combination in itertools.product(*(_values(path, key, table) for key, table in read_toml(path).items())):
        changes: dict[str, Any] = {}
        for _, change in combination:
            changes = merged(changes, change)
        yield tuple(name for name, _ in combination), changes


def merged(base: Any, changes: Any) -> Any:
    """`base` with `changes` in it: tables key by key, lists of tables table by table, else `changes`."""
    if isinstance(base, Mapping) and isinstance(changes, Mapping):
        return {**base, **{key: merged(base.get(key), change) for key, change in changes.items()}}
    if _are_tables(base) and _are_tables(changes):
        return [merged(one, other) for one, other in itertools.zip_longest(base, changes, fillvalue=_NOTHING)]
    return changes


def _are_tables(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, Mapping) for item in value)


class _Case(Source):
    """A case's values, which stand in several files: mistakes have no line."""

    def problem(self, loc: Loc, found: str, expected: str) -> Problem:
        return Problem(self.name, None, dotted(loc), found, expected)


def _source(folder: Path) -> Source:
    return Source(str(folder / "scenario.toml"), source_text(folder / "scenario.toml"))


def _values(path: Path, dimension: str, table: Any) -> list[tuple[str, Mapping[str, Any]]]:
    if not isinstance(table, Mapping) or not all(isinstance(change, Mapping) for change in table.values()):
        raise InputError(f"{path}: {dimension}: found something else; expected tables of keys to change")
    return list(table.items())
